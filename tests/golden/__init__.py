"""Stored reference files. `python -m tests.golden` writes those that do not exist yet."""
