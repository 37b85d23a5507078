"""What the library says in words, one file for each kind of text."""
