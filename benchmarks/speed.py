"""Measure the speed: ratios of our times and those of others.

    python benchmarks/speed.py [--data FOLDER] [--only layer fit peers growth import floor]

Compares our code with an eager torch version of the same computation
(`diffint.engine.reference.network`) and with other libraries, each on two cores. The parts fit,
peers need a folder of ADBench tables, by default DIFFINT_ADBENCH. As times on a shared
machine are noisy, every result is the ratio of two medians of interleaved repeats.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import signal
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from diffint import DiffInt
from diffint.bench.protocol import make_trial
from diffint.core.checks import resolve_jobs
from diffint.core.config import PAPER, paper_batch_size
from diffint.core.scaling import fit_scaler
from diffint.engine.cpu import backward, forward, layout, spectral, steps
from diffint.engine.cpu.linear import TILE_ROWS, multiply_add, whole_tiles
from diffint.engine.cpu.team import meet, share
from diffint.engine.cpu.training import Team
from diffint.engine.interface import epoch_orders
from diffint.engine.kernel_cache import compiled
from diffint.engine.parameters import initial_parameters
from diffint.tables.datasets import adbench_files, read_adbench

TABLES = ("31_satimage-2", "32_shuttle")
LAYER_SHAPES = ((64, 36, 20), (1024, 39, 20), (64, 274, 20), (64, 9, 12), (1024, 10, 12))
UNITS = PAPER.n_units
THREADS = min(2, resolve_jobs(-1))
PEER_LIMIT = 100  # seconds
PEER_REPEATS = 5


def seconds(work: Callable[[], Any]) -> float:
    """Wall-clock time of one call."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def medians(ours: Callable[[], Any], theirs: Callable[[], Any], repeats: int) -> list[float]:
    """Median seconds of each, measured alternately, each time after a pause and a warm-up.

    Idle threads of the other library stay busy for a while; the pause lets them stop. The warm-up
    brings the cores back to full speed.
    """

    def measured(work: Callable[[], Any]) -> float:
        time.sleep(0.3)
        work()
        return seconds(work)

    times = [(measured(ours), measured(theirs)) for _ in range(repeats)]
    return [statistics.median(column) for column in zip(*times, strict=True)]


def show(what: str, ours: float, theirs: float, least: float, unit: str = "ms") -> None:
    """Print one line of the table; least: the required ratio, 0 for none."""
    scale = 1e3 if unit == "ms" else 1.0
    ratio = theirs / ours
    required, verdict = f"{least:g}×", "yes" if ratio >= least else "NO"
    if not least:
        required = verdict = ""
    print(
        f"| {what} | {ours * scale:.3g} {unit} | {theirs * scale:.3g} {unit} "
        f"| {ratio:.1f}× | {required} | {verdict} |",
        flush=True,
    )


def header(title: str, rival: str) -> None:
    """Print the heading of a table."""
    print(f"\n### {title}\n\n| what | ours | {rival} | ratio | at least | reached |")
    print("|---|---|---|---|---|---|", flush=True)


@compiled
def layer_passes(  # type: ignore[no-untyped-def]
    thread, threads, passes, w, g, shape, work, rows, upstream
):
    """Run the interval layer forward and backward, `passes` times."""
    features = share(shape.features, 1, thread, threads)
    first, last = share(whole_tiles(rows), TILE_ROWS, thread, threads)
    for _ in range(passes):
        forward.set_bounds(w, shape, work, features[0], features[1])
        meet(work.team, threads)
        forward.encode(shape, work, first, last, rows, False)
        work.d_code[first:last] = upstream[first:last]
        backward.log_gradients(work, first, last)
        meet(work.team, threads)
        backward.interval_gradients(w, g, shape, work, rows, features[0], features[1], 0.0)


class Step:
    """Compiled training steps on random rows, on both cores."""

    def __init__(self, rows: int, features: int, threads: int = THREADS) -> None:
        rng = np.random.default_rng(0)
        self.rows = rows
        self.x = rng.uniform(-1, 1, (rows, features)).astype(np.float32)
        self.start = initial_parameters(rng, self.x, PAPER)
        self.shape = layout.shape_of(self.start, 0.1, 1.0)
        flat = layout.pack(self.start, self.shape)
        self.weights = layout.views(flat, self.shape)
        self.gradients, self.moment1, self.moment2 = (
            layout.views(np.zeros_like(flat), self.shape) for _ in range(3)
        )
        self.singular = spectral.start_spectral(rng, self.weights, self.shape)
        self.work = layout.workspace(self.shape, self.weights, rows)
        self.work.x[:rows] = self.x
        self.parts = steps.parts_for(self.shape, self.weights, self.singular, self.work)
        self.team = Team(threads, self.work.team)
        self.support = np.zeros(self.weights.center.shape)
        self.support_weight = np.zeros(features)
        self.upstream = rng.normal(size=self.work.d_code.shape).astype(np.float32)

    def layer(self, passes: int) -> None:
        """Run the interval layer forward and backward, `passes` times."""
        self.team.call(
            layer_passes,
            passes,
            self.weights,
            self.gradients,
            self.shape,
            self.work,
            self.rows,
            self.upstream,
        )

    def train(self, passes: int) -> None:
        """Run whole training steps, including Adam and support."""
        order = np.tile(np.arange(self.rows), passes)
        self.team.call(
            steps.train_steps,
            self.parts,
            self.x,
            order,
            0,
            len(order),
            self.rows,
            0,
            layout.Schedule(1e-9, 1.0, 1, False, 0.0),
            self.shape,
            self.weights,
            self.gradients,
            self.moment1,
            self.moment2,
            self.singular,
            self.work,
            self.support,
            self.support_weight,
            0.999,
        )

    def seconds_per_step(self, passes: int, repeats: int = 15) -> float:
        """Median time of a whole step."""
        self.train(passes)
        return (
            statistics.median(seconds(lambda: self.train(passes)) for _ in range(repeats)) / passes
        )


def bench_layer() -> None:
    """Compare the interval layer, forward and backward, with eager torch."""
    import torch

    from diffint.engine.reference.network import IntervalLayer

    header("Interval layer, forward + backward (rows, units, features)", "eager torch")
    for rows, features, least in LAYER_SHAPES:
        step = Step(rows, features)
        layer = IntervalLayer(
            torch.tensor(step.start.center), torch.tensor(step.start.width_logit), 0.1
        )
        x = torch.tensor(step.x)
        upstream = torch.tensor(step.upstream[:rows, :UNITS])

        passes = 200 if rows == 64 else 20

        def eager(
            layer: Any = layer, x: Any = x, upstream: Any = upstream, passes: int = passes
        ) -> None:
            for _ in range(passes):
                layer.zero_grad()
                torch.softmax(layer(x), dim=1).backward(upstream)

        ours, theirs = medians(functools.partial(step.layer, passes), eager, repeats=7)
        show(f"({rows}, {UNITS}, {features})", ours / passes, theirs / passes, least)


def split(name: str, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Training inliers and test rows of the first split."""
    trial = make_trial(read_adbench(adbench_files(folder)[name]), 0, "inliers")
    return trial.train, trial.test


def bench_fit(folder: Path, epochs: int = 60) -> None:
    """Compare whole fits of the paper configuration with the eager loop of as many steps."""
    from diffint.engine.reference.network import train_eagerly

    header(f"Whole fit, paper configuration, {epochs} epochs", "eager loop")
    for name in TABLES:
        rows, _ = split(name, folder)
        batch = paper_batch_size(len(read_adbench(adbench_files(folder)[name]).x))
        detector = DiffInt.paper(epochs=epochs, batch_size=batch, random_state=0, device="cpu")

        def eager(rows: Any = rows, batch: int = batch) -> None:
            scaled = fit_scaler(rows, "minmax").transform(rows)[0]
            rng = np.random.default_rng(0)
            start = initial_parameters(rng, scaled, PAPER)
            orders = epoch_orders(rng, len(scaled), epochs)
            train_eagerly(scaled, start, orders, batch, 1, PAPER)

        fit = functools.partial(detector.fit, rows)
        ours = statistics.median(seconds(fit) for _ in range(3))
        show(name, ours, seconds(eager), 10, "s")


def bench_peers(folder: Path) -> None:
    """Compare the default fit with PyOD's autoencoder and LUNAR: two cores, then one.

    Threads of torch that wait keep their cores busy, so that on a shared machine the wall time on
    two cores says little; the processor time on one core is not disturbed. LUNAR takes long: it is
    fitted once, on one core, and stopped at the limit.
    """
    import torch
    from pyod.models.auto_encoder import AutoEncoder
    from pyod.models.lunar import LUNAR

    before = torch.get_num_threads()
    tables = {name: split(name, folder)[0] for name in TABLES}
    for threads, measure, what in (
        (THREADS, wall_seconds, f"wall time on {THREADS} cores"),
        (1, processor_seconds, "processor time on one core"),
    ):
        torch.set_num_threads(threads)
        header(f"Default fit against PyOD's detectors, {what}", "theirs")
        for name, rows in tables.items():
            fit = functools.partial(DiffInt(random_state=0, device="cpu", n_jobs=threads).fit, rows)
            auto_encoder = functools.partial(AutoEncoder(verbose=0).fit, rows)
            times = [(measure(fit), measure(auto_encoder)) for _ in range(PEER_REPEATS)]
            ours, theirs = (statistics.median(column) for column in zip(*times, strict=True))
            show(f"{name}, AutoEncoder", ours, theirs, 1, "s")
            if threads == 1:
                show(f"{name}, LUNAR", ours, processor_seconds(LUNAR().fit, rows), 1, "s")
    print(f"\nLUNAR is stopped after {PEER_LIMIT} s.", flush=True)
    torch.set_num_threads(before)


def wall_seconds(work: Callable[..., Any]) -> float:
    """Wall time of one call."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def processor_seconds(work: Callable[..., Any], *arguments: Any) -> float:
    """Processor time of one call, which is stopped at the limit."""

    def stop(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, PEER_LIMIT)
    started = time.process_time()
    with contextlib.suppress(TimeoutError):
        work(*arguments)
    signal.setitimer(signal.ITIMER_PROF, 0)
    return time.process_time() - started


def bench_growth() -> None:
    """Time per step for more features, and per epoch for more rows."""
    print("\n### Growth\n\n| what | time | against linear |\n|---|---|---|")
    previous = None
    for features in (10, 100, 1000):
        took = Step(64, features).seconds_per_step(max(1, 1000 // features))
        _grow(f"step of 64 rows, {features} features", took, features, previous)
        previous = (took, features)
    previous = None
    for rows in (10_000, 100_000, 1_000_000):
        x = np.random.default_rng(0).uniform(size=(rows, 10))
        detector = DiffInt.paper(epochs=1, batch_size=1024, random_state=0, device="cpu")
        one = statistics.median(seconds(functools.partial(detector.fit, x)) for _ in range(3))
        detector.set_params(epochs=3)
        three = statistics.median(seconds(functools.partial(detector.fit, x)) for _ in range(3))
        took = (three - one) / 2
        _grow(f"epoch of {rows:,} rows, 10 features", took, rows, previous)
        previous = (took, rows)


def _grow(what: str, took: float, size: int, previous: tuple[float, int] | None) -> None:
    against = "" if previous is None else f"{took / previous[0] / (size / previous[1]):.2f}×"
    print(f"| {what} | {took * 1e3:.3g} ms | {against} |", flush=True)


def bench_import() -> None:
    """Compare the import times of diffint and of scikit-learn's ensembles."""

    def importing(module: str) -> Callable[[], Any]:
        return lambda: subprocess.run([sys.executable, "-c", f"import {module}"], check=True)

    ours, theirs = medians(importing("diffint"), importing("sklearn.ensemble"), repeats=7)
    print(
        f"\n### Import\n\n`import diffint` {ours:.2f} s, `import sklearn.ensemble` {theirs:.2f} s: "
        f"{ours / theirs:.2f}× (at most 1.3×)",
        flush=True,
    )


def bench_floor() -> None:
    """The shortest possible time of a step, from its operations and the core's measured peak."""
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=s).astype(np.float32) for s in ((128, 256), (256, 128)))
    c = np.zeros((128, 128), dtype=np.float32)
    multiply_add(a, b, c)
    took = statistics.median(seconds(lambda: multiply_add(a, b, c)) for _ in range(200))
    peak = a.size * 128 / took  # multiply-adds per second
    print(
        f"\n### Floor\n\nOne core's measured peak: {peak / 1e9:.0f} G multiply-adds/s in float32 "
        "(our matrix product on 128 × 256 × 128).\n"
    )
    print(
        "| step (rows, units, features) | layer operations | decoder multiply-adds | floor |"
        " whole step | share |"
    )
    print("|---|---|---|---|---|---|")
    for rows, features in ((64, 36), (1024, 9), (64, 9), (64, 274), (1024, 39)):
        took = Step(rows, features, threads=1).seconds_per_step(20 if rows == 64 else 4)
        # Vector operations per element; a multiply-add counts as one. Forward: two multiply-adds,
        # product of the edges, clamp, running product. Backward: two multiply-adds, product, clamp,
        # division, two selected weights, two scaled edges, two multiply-adds, membership sum.
        layer = (5 + 12) * rows * UNITS * features
        decoder = 3 * rows * PAPER.hidden_width * (UNITS + features)
        floor = (layer + decoder) / peak
        print(
            f"| ({rows}, {UNITS}, {features}) | {layer / 1e6:.1f} M | {decoder / 1e6:.1f} M "
            f"| {floor * 1e3:.3f} ms | {took * 1e3:.3f} ms | {floor / took:.0%} |",
            flush=True,
        )


def main() -> None:
    """Run the selected parts."""
    parts = {
        "layer": bench_layer,
        "fit": bench_fit,
        "peers": bench_peers,
        "growth": bench_growth,
        "import": bench_import,
        "floor": bench_floor,
    }
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    folder = os.environ.get("DIFFINT_ADBENCH")
    parser.add_argument("--data", type=Path, default=Path(folder) if folder else None)
    parser.add_argument("--only", nargs="*", choices=parts, default=list(parts))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in options.only:
        if name not in ("fit", "peers"):
            parts[name]()  # type: ignore[operator]
        elif options.data is None:
            print(f"\n({name}: skipped, needs --data or DIFFINT_ADBENCH)")
        else:
            parts[name](options.data)  # type: ignore[operator]


if __name__ == "__main__":
    main()
