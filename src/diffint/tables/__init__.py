"""Input and files: data frames, arrays and table files as checked numbers; atomic file writing."""
