"""Detectors of the benchmark that no package offers, implemented from their papers."""
