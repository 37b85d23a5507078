"""The arithmetic: its plain definition (reference), compiled for the CPU, and for a GPU."""
