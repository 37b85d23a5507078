"""Compare the speed of the interval layer on the GPU with the GPU's theoretical limits.

    python benchmarks/gpu_layer.py [--rows 1024 --units 200 --features 39 --runs 10]

The smallest number of float32 instructions per element (row, unit, feature), without addresses,
loops, loads and padding:

forward, 5:   two multiply-adds (1 + v·P, 1 + u·Q), their product, the clamp, the running product.
backward, 13: the same two multiply-adds, product and clamp (4); the reciprocal (1); the test
              whether the clamp binds and the selection (2); upstream times membership (1); for
              each edge a multiplication and a multiply-add (4); the sum of memberships (1).

The arithmetic floor is the time for these instructions at the GPU's rate of float32 multiply-adds.
The memory floor is the time to move the smallest number of bytes at the GPU's bandwidth: forward
reads u, v, P, Q and writes the log box memberships; backward reads u, v, P, Q and the upstream
gradient, and reads and writes P, Q, both parameters, their two moments and the support. The larger
floor is the limit. The measured backward time includes Adam, the support and the new P and Q, which
are computed in the same kernel.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from diffint.core.config import PAPER
from diffint.engine.cpu import layout, spectral
from diffint.engine.gpu.launch import Launch
from diffint.engine.parameters import initial_parameters

FORWARD_INSTRUCTIONS, BACKWARD_INSTRUCTIONS = 5, 13
# For an H200: specified float32 operations per second outside the tensor cores (a multiply-add is
# two), and the measured bandwidth of a large copy in bytes per second, read plus written.
FLOAT32_PEAK, BANDWIDTH = 67e12, 4.3e12


def make_launch(n_rows: int, n_units: int, n_features: int, n_runs: int) -> Launch:
    """A launch with batches of `n_rows` random rows."""
    config = replace(PAPER, n_units=n_units)
    rng = np.random.default_rng(0)
    data = [rng.uniform(-1, 1, (n_rows, n_features)).astype(np.float32) for _ in range(n_runs)]
    starts = [initial_parameters(rng, rows, config) for rows in data]
    shape = layout.shape_of(starts[0], config.temperature, 1.0)
    flat = np.stack([layout.pack(start, shape) for start in starts])
    singular = [spectral.start_spectral(rng, layout.views(one, shape), shape) for one in flat]
    orders = torch.arange(n_rows, dtype=torch.int32, device="cuda")
    launch = Launch(data, flat, singular, shape, n_rows, 1, orders, 0.999)
    plan = np.tile(np.array([0, n_rows], dtype=np.int32), (1, n_runs, 1))
    launch.load(plan, np.tile(np.array([1e-5, 0.5, 0.5], dtype=np.float32), (1, n_runs, 1)))
    launch.run(1)
    return launch


def microseconds(work: Callable[[], None], repeats: int = 20, rounds: int = 15) -> float:
    """Median time of `work` in a captured graph, so that host overhead is not measured."""
    work()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(repeats):
            work()
    times = []
    for _ in range(rounds + 3):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        stop.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(stop) * 1e3 / repeats)
    return float(statistics.median(times[3:]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("rows", 1024), ("units", 200), ("features", 39), ("runs", 10)):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()

    launch = make_launch(args.rows, args.units, args.features, args.runs)
    launch.base.zero_()
    line = (launch.plan, launch.base, 0, launch.runs)
    forward = microseconds(lambda: launch._encode(line))
    backward = microseconds(lambda: launch._update_intervals(line))

    elements = args.runs * args.rows * args.units * args.features
    row_cells = args.runs * args.rows * args.features * 4
    unit_cells = args.runs * args.units * args.features * 4
    logits = args.runs * args.rows * args.units * 4
    print(f"{torch.cuda.get_device_name()}, {args.runs} runs of {args.rows} rows x ", end="")
    print(f"{args.units} units x {args.features} features")
    total = total_floor = 0.0
    for name, measured, instructions, moved in (
        ("forward", forward, FORWARD_INSTRUCTIONS, 2 * row_cells + 2 * unit_cells + logits),
        ("backward", backward, BACKWARD_INSTRUCTIONS, 2 * row_cells + 18 * unit_cells + logits),
    ):
        arithmetic = elements * instructions / (FLOAT32_PEAK / 2) * 1e6
        memory = moved / BANDWIDTH * 1e6
        floor = max(arithmetic, memory)
        total, total_floor = total + measured, total_floor + floor
        print(
            f"{name:9s} {measured:7.1f} us   floors: arithmetic {arithmetic:6.1f} us, "
            f"memory {memory:5.1f} us   floor / measured {floor / measured:5.1%}"
        )
    print(f"both      {total:7.1f} us   floor / measured {total_floor / total:5.1%}")


if __name__ == "__main__":
    main()
