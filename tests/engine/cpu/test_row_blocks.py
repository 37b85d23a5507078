"""Blocks of rows on several threads."""

import threading

import numpy as np
import pytest

from diffint.engine.cpu.row_blocks import run_row_blocks


@pytest.mark.parametrize("n_rows", [0, 1, 127, 128, 5_000])
@pytest.mark.parametrize("n_jobs", [1, 2, 7])
def test_every_row_is_in_one_block(n_rows, n_jobs):
    counts = np.zeros(n_rows, dtype=int)
    lock = threading.Lock()

    def count(_address, n, start):
        with lock:
            counts[start : start + n] += 1

    run_row_blocks(count, np.zeros((n_rows, 2)), n_jobs)
    assert (counts == 1).all()


@pytest.mark.parametrize("n_jobs", [1, 4])
def test_an_error_in_any_thread_is_raised(n_jobs):
    def fail(_address, _n, start):
        if start >= 500:
            raise TypeError("failed")

    n_threads = threading.active_count()
    with pytest.raises(TypeError, match="failed"):
        run_row_blocks(fail, np.zeros((10_000, 2)), n_jobs)
    assert threading.active_count() == n_threads
