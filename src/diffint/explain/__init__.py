"""Explanations of rows and of the model, as plain arrays."""
