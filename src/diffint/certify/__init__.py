"""Proven bounds on the scores of rows and regions, including floating-point error."""
