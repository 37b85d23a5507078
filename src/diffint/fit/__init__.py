"""Fitting a model on a table of normal rows: split, train, measure, calibrate."""
