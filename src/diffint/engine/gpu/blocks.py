"""The tile sizes of the GPU kernels."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Blocks:
    """Sizes of the tiles the kernels work on.

    rows, stages: rows and pipeline stages of the interval layer's forward kernel; step_rows,
    step_warps: rows and warps of its backward kernel; decoder_*: units, features and hidden
    activations at a time, warps, and the limit of registers per thread; softmax_*, gradient_out:
    tiles of those kernels; splits: number of partial sums of a weight gradient.
    """

    rows: int
    stages: int
    step_rows: int
    step_warps: int
    decoder_units: int
    decoder_out: int
    decoder_slice: int
    decoder_warps: int
    decoder_registers: int | None
    softmax_rows: int
    softmax_units: int
    gradient_out: int
    splits: int


# Small batches need many small programs and deep pipelines, large ones few loads and registers.
# These values were the fastest of those tried on an H200.
_SMALL = Blocks(
    rows=32,
    stages=4,
    step_rows=8,
    step_warps=1,
    decoder_units=64,
    decoder_out=64,
    decoder_slice=32,
    decoder_warps=8,
    decoder_registers=None,
    softmax_rows=16,
    softmax_units=32,
    gradient_out=64,
    splits=1,
)
_LARGE = Blocks(
    rows=64,
    stages=1,
    step_rows=32,
    step_warps=4,
    decoder_units=32,
    decoder_out=32,
    decoder_slice=16,
    decoder_warps=4,
    decoder_registers=168,
    softmax_rows=64,
    softmax_units=64,
    gradient_out=64,
    splits=4,
)


def blocks_for(batch_size: int, n_features: int) -> Blocks:
    """The tiles for a batch size; independent of the number of runs, so that results are too."""
    if batch_size <= 256:
        return _SMALL
    return replace(_LARGE, decoder_out=16, gradient_out=16) if n_features <= 16 else _LARGE
