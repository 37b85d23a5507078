"""Proven bounds on scores, for rows and for regions, with all float error accounted for."""
