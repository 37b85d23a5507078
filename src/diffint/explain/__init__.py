"""Why rows score as they do, and what a model learned: results as plain arrays."""
