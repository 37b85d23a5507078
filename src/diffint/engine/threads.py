"""Run a Python function on blocks of rows, on several threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


def run_blocks(work: Callable[[int], None], starts: range, n_jobs: int) -> None:
    """Call `work` with every start, on up to `n_jobs` threads."""
    if n_jobs == 1 or len(starts) <= 1:
        for start in starts:
            work(start)
        return
    with ThreadPoolExecutor(min(n_jobs, len(starts)), thread_name_prefix="diffint") as pool:
        for _ in pool.map(work, starts):
            pass
