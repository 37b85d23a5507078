"""The network compiled for the CPU: forward, hand-written backward, Adam, scoring.

One call trains many steps without entering Python. The arrays are padded (units, hidden width
and output to whole vectors, rows and features to multiples of four) with cells that contribute
nothing and receive no gradient. `network.py` holds the same network in plain torch; the tests
compare the two step by step.

`layout` says where things lie, `linear` multiplies, `forward` and `backward` are the two passes,
`spectral` the certified decoder's normalisation, `steps` the training step. `score_kernel` scores
and explains rows with all members at once; `score_tiles` holds its innermost loops.
"""
