"""From a fitted model and rows to scores, their parts by feature, and the nearest pattern."""
