"""Texts of explanations and certificates, one file per kind of text."""
