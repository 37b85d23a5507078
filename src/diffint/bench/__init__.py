"""The evaluation: every detector on every table, under one protocol, with honest statistics.

Data flows one way: `protocol` says which rows a method sees, `baselines` what the methods are,
`runner` works a `grid` off into a `store`, and `report` reads it out.
"""
