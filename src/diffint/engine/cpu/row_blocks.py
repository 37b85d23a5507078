"""Run a compiled function on blocks of rows, on several threads."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

# Rows per call. The upper limit keeps a call within milliseconds, so that an interrupt takes effect
# soon; between calls Python handles signals.
_MOST_ROWS, _FEWEST_ROWS = 2_048, 64
_BLOCKS_PER_THREAD = 4  # at least, so that threads finish at about the same time

Work: TypeAlias = Callable[[int, int, int], None]
"""Called with (address of float64 rows in C order, number of rows, index of the first row)."""


def run_row_blocks(work: Work, x: NDArray[Any], n_jobs: int) -> None:
    """Call `work` on blocks that cover all rows of x, on up to `n_jobs` threads.

    The calling thread is one of them. The others are started for each call: this takes less than a
    tenth of a millisecond, and no thread is left over when the process forks.
    """
    n_rows = len(x)
    if n_jobs == 1 or n_rows < 2 * _FEWEST_ROWS:
        for start in range(0, n_rows, _MOST_ROWS):
            _call(work, x, start, min(_MOST_ROWS, n_rows - start))
        return
    # The first rows alone: code that is not compiled yet is compiled in this thread, which signals
    # interrupt, and not by several threads.
    _call(work, x, 0, _FEWEST_ROWS)
    n_rows -= _FEWEST_ROWS
    size = -(-n_rows // (n_jobs * _BLOCKS_PER_THREAD * _FEWEST_ROWS)) * _FEWEST_ROWS
    size = min(size, _MOST_ROWS)
    n_blocks = -(-n_rows // size)
    blocks = itertools.count()
    failures: list[BaseException] = []

    def work_on_blocks() -> None:
        try:
            while (block := next(blocks)) < n_blocks and not failures:
                start = block * size
                _call(work, x, _FEWEST_ROWS + start, min(size, n_rows - start))
        except BaseException as failure:
            failures.append(failure)

    threads = [
        threading.Thread(target=work_on_blocks, name=f"diffint_{i}")
        for i in range(1, min(n_jobs, n_blocks))
    ]
    for thread in threads:
        thread.start()
    work_on_blocks()
    try:
        for thread in threads:
            thread.join()
    except BaseException as interrupt:  # the other threads stop after their block
        failures.append(interrupt)
    if failures:
        raise failures[0]


def _call(work: Work, x: NDArray[Any], start: int, count: int) -> None:
    rows = np.ascontiguousarray(x[start : start + count], dtype=np.float64)
    work(rows.ctypes.data, count, start)  # `rows` keeps the memory alive
