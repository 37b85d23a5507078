"""The benchmark: every detector on every table, under one protocol, with statistical tests.

`protocol` defines the tables and the rows a method gets, `baselines` the methods; `runner` runs a
`grid` and writes to a `store`; `report` makes pages and figures from the stored rows.
"""
