"""The pages of a report; each is a function from results to Markdown."""
