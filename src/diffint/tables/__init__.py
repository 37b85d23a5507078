"""What users pass in, and files, to checked numbers; and files written whole or not at all."""
