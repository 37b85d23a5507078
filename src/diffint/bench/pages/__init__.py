"""The pages of a report, each a function of the results that gives its Markdown."""
