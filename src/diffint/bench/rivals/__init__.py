"""Detectors that no package offers, or that need a correction."""
