"""Figures in README and docs are those of the results files."""
