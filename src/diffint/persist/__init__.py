"""Saving and loading a fitted model."""
