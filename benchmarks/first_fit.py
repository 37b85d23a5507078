"""The first fit on a machine: seconds until the demo's model is fitted, and to stop it.

With a fresh folder for compiled code each time. Also for several processes that start at the same
time, of which one compiles. Wall time depends on what else the machine does; CPU time, of all
processes together, does so less.

Usage: python benchmarks/first_fit.py [--repeats 3] [--at-once 8]
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from diffint.bench.worker import processor_name

FIT = """
import numpy as np
from diffint import DiffInt
from diffint.tables.datasets import breast_cancer

table = breast_cancer()
normal = np.flatnonzero(table.y == 0)  # and of these 60 %, as in `diffint demo`
chosen = np.random.default_rng(0).choice(normal, int(0.6 * len(normal)), replace=False)
DiffInt(random_state=0, false_positive_rate=0.05).fit(table.x[np.sort(chosen)])
"""
INTERRUPTED_AFTER_S = (2.0, 4.0, 6.0)


def start(folder: str) -> subprocess.Popen[bytes]:
    """A process that fits, with compiled code in this folder."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
    return subprocess.Popen([sys.executable, "-c", FIT], env=environment, stderr=subprocess.DEVNULL)


def seconds_to_fit(folder: str, processes: int = 1) -> tuple[float, float]:
    """Wall and CPU seconds from the start of Python to a fitted model in all processes."""
    before, started = os.times(), time.perf_counter()
    running = [start(folder) for _ in range(processes)]
    exit_codes = [process.wait() for process in running]
    if any(exit_codes):
        raise RuntimeError("a fit failed")
    wall, after = time.perf_counter() - started, os.times()
    used = after.children_user + after.children_system
    return wall, used - before.children_user - before.children_system


def seconds_to_stop(after: float) -> float:
    """From an interrupt so many seconds after the start to the end of the process."""
    with tempfile.TemporaryDirectory() as folder:
        process = start(folder)
        time.sleep(after)
        if process.poll() is not None:
            raise RuntimeError(f"the fit ended within {after} s")
        sent = time.perf_counter()
        process.send_signal(signal.SIGINT)
        process.wait()
        return time.perf_counter() - sent


def main() -> None:
    """Print the times."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--at-once", type=int, default=8, help="processes that start together")
    options = parser.parse_args()
    repeats, at_once = options.repeats, options.at_once
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(f"{processor_name()}, {cores} cores, load {os.getloadavg()[0]:.1f}\n")
    times: dict[str, list[tuple[float, float]]] = {}
    for _ in range(repeats):
        for prefix, processes in (("", 1), (f"{at_once} at once: ", at_once)):
            with tempfile.TemporaryDirectory() as folder:
                for name in ("first fit", "second"):
                    fits = times.setdefault(prefix + name, [])
                    fits.append(seconds_to_fit(folder, processes))
    print("| fit | wall | CPU |\n|---|---|---|")
    for name, fits in times.items():
        wall, used = (statistics.median(column) for column in zip(*fits, strict=True))
        print(f"| {name} | {wall:.1f} s | {used:.1f} s |")
    stops = ", ".join(f"{seconds_to_stop(after):.2f} s" for after in INTERRUPTED_AFTER_S)
    print(f"\nFrom an interrupt to the end, after {INTERRUPTED_AFTER_S} s: {stops}")


if __name__ == "__main__":
    main()
