"""Tables and figures of the paper, measured again: one file per study.

`study` says what a study is, `registry` lists them, `run` runs one, `page` and `overview` write
what came out.
"""
