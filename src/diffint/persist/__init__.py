"""The model file: written, read and checked."""
