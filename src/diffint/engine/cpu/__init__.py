"""The network compiled for the CPU with numba: training, scoring and explaining.

Training: one call runs many steps without entering Python. `layout` has the arrays, `linear` the
matrix product, `forward` and `backward` the two passes, `spectral` the normalisation of the
certified decoder, `steps` the training step, `team` the barrier between threads, `training` the
loop.

Scoring: `packed_members` packs a model into the vectors of `score_layout`. `score_kernel` and
`explain_kernel` take tiles of rows through `score_scaling`, `score_encoding` and `score_decoding`;
the innermost loops are in `score_tiles` and `score_row_loops`.

Arrays are padded (units, hidden width and outputs to whole vectors, rows and features to multiples
of four) with cells that contribute nothing and get no gradient. `engine/reference` has the same
network in plain torch and NumPy; the tests compare the two.
"""
