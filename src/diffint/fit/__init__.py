"""From a table of normal rows to a fitted model: split, train, measure, calibrate."""
