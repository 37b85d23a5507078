"""The network compiled for the CPU with numba: training, scoring, explaining and certifying.

Training: one call runs many steps without entering Python. `layout` has the arrays, `intervals` the
interval layer with its innermost loop in `product_tile`, `linear` the matrix product, `forward` and
`backward` the two passes, `spectral` the normalisation of the paper's decoder, `steps` the training
step, whose parts are called by address (`indirect_calls`), `team` the barrier between
threads, `training` the loop.

Scoring: `packed_members` packs a model into the vectors of `score_layout`. `score_kernel` and
`explain_kernel` take tiles of rows through `score_scaling`, `score_encoding` and `score_decoding`;
the innermost loops are in `score_tiles` and `score_row_loops`. `row_blocks` divides rows between
threads.

After training: `interval_layer` is the interval layer for plain arrays, `box_counts` counts rows in
boxes, `margins` belongs to certificates.

`vector_code` and `tuple_references` help to write the LLVM code of innermost loops.

Arrays are padded (units, hidden width and outputs to whole vectors, rows and features to multiples
of four) with cells that contribute nothing and get no gradient. `engine/reference` has the same
network in plain torch and NumPy; the tests compare the two.

Functions are compiled on first use, or ahead of the first fit by `engine/compile_ahead`, and their
code is kept on disk by `engine/kernel_cache`.
"""
