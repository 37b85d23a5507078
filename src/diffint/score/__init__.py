"""Scores of rows, each feature's part of them, and the nearest pattern."""
