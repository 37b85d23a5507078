"""One run of the benchmark, executed in its own process."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import resource
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError
from ..core.version import __version__
from ..tables.datasets import LabelledTable, SplitTable
from .baselines import DIFFINT_METHODS, Method, anomaly_scores, chosen_methods
from .protocol import TrainsOn, Trial, fill_missing, scale_trial
from .suites import ADBENCH, Suite

# Limit every library to one thread, as runs are timed on one core.
ONE_CORE = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
}
# The environment variable with the methods that the server prepares.
METHODS_VARIABLE = "DIFFINT_BENCH_METHODS"
# The time of many epochs on one core is estimated from fits with these numbers of epochs.
_TIMED_EPOCHS = (2, 7)


@dataclass(frozen=True)
class Job:
    """The work of a process: one method on one table, for one seed, or for several on a GPU."""

    table: str
    path: Path
    method: str
    plugin: str | None
    trains_on: TrainsOn
    seeds: tuple[int, ...]
    device: str = "cpu"
    suite: Suite[Any] = ADBENCH


@dataclass(frozen=True)
class Outcome:
    """The result of one seed; the seconds are those of all seeds of the job.

    on_gpu: for a fit on a GPU, its name, and the estimated seconds on one core.
    """

    seed: int
    roc_auc: float
    average_precision: float
    fit_seconds: float
    score_seconds: float
    n_train: int
    n_test: int
    on_gpu: tuple[str, float] | None = None


def work(job: Job, pipe: Connection) -> None:
    """The main function of the process: sends the start of each phase and the result.

    Messages are ("fitting" | "scoring", None), ("done", (outcomes, peak memory in MB)),
    ("out of memory", text) and ("error", text). Then it waits to be killed: while it lives, the
    processes that it has started can be found, and killed too.
    """
    end_with_parent()
    # Its server lives as long as its processes do, so it does not end with the runner.
    runner_lives = threading.Thread(target=_kill_at_the_end_of, args=(pipe,), daemon=True)
    runner_lives.start()
    _silence_output()
    try:
        outcomes = run_job(job, lambda phase: pipe.send((phase, None)))
        pipe.send(("done", (outcomes, peak_memory_mb())))
    except MemoryError as error:
        pipe.send(("out of memory", str(error) or "MemoryError"))
    except BaseException as error:  # any error of a detector is a result
        text = str(error)
        # CUDA raises its own error type for it.
        state = "out of memory" if "out of memory" in text.lower() else "error"
        pipe.send((state, f"{type(error).__name__}: {text}"))
    finally:
        runner_lives.join()


def _kill_at_the_end_of(pipe: Connection) -> None:
    """Kill this process and those of its group once the runner has ended."""
    with contextlib.suppress(EOFError, OSError):
        pipe.recv()
    os.killpg(0, signal.SIGKILL)


def run_job(job: Job, on_phase: Callable[[str], None] = lambda phase: None) -> list[Outcome]:
    """Fit and score every seed of a job; `on_phase` is called with "fitting" and "scoring"."""
    table = job.suite.read(job.path)
    plugins = [job.plugin] if job.plugin else []
    method = chosen_methods([] if plugins else [job.method], plugins)[job.method]
    trials = []
    for seed in job.seeds:
        trial = job.suite.trial(table, seed, job.trains_on)
        if len(np.unique(trial.test_labels)) < 2:
            raise InputError(f"the test part of seed {seed} has only anomalies or only inliers")
        if job.method not in DIFFINT_METHODS:  # the other methods cannot handle missing values
            trial = fill_missing(trial)
        trials.append(scale_trial(trial, method.scaling))
    if job.device != "cpu":
        return run_on_gpu(job, method, table, trials, on_phase)
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    (seed,), (trial,) = job.seeds, trials
    _seed_everything(seed)
    on_phase("fitting")
    started = time.perf_counter()
    detector = method.make(seed, table.n_rows)
    detector.fit(trial.train)
    fitted = time.perf_counter()
    on_phase("scoring")
    scores = anomaly_scores(detector, trial.test)
    seconds = fitted - started, time.perf_counter() - fitted
    return [_outcome(seed, trial, scores, *seconds)]


def run_on_gpu(
    job: Job,
    method: Method,
    table: LabelledTable | SplitTable,
    trials: list[Trial],
    on_phase: Callable[[str], None],
) -> list[Outcome]:
    """All seeds of a DiffInt configuration in one launch."""
    import torch

    from ..fit.pipeline import fit_models
    from ..fit.task import Task
    from ..score.prepared import PreparedModel
    from ..score.scoring import anomaly_scores as model_scores

    detector = method.make(job.seeds[0], table.n_rows)
    config = detector.config
    tasks = [
        Task(trial.train, np.zeros(len(trial.train), dtype=bool), np.random.SeedSequence(seed))
        for seed, trial in zip(job.seeds, trials, strict=True)
    ]
    on_phase("fitting")
    started = time.perf_counter()
    models = fit_models(tasks, table.feature_names, config, job.device)
    fitted = time.perf_counter()
    on_phase("scoring")
    scores = [
        model_scores(PreparedModel(m), t.test, 1) for m, t in zip(models, trials, strict=True)
    ]
    seconds = fitted - started, time.perf_counter() - fitted
    estimate = estimated_one_core_seconds(detector, trials[0].train)
    gpu = torch.cuda.get_device_name(job.device)
    return [
        replace(_outcome(seed, trial, score, *seconds), on_gpu=(gpu, estimate))
        for seed, trial, score in zip(job.seeds, trials, scores, strict=True)
    ]


def estimated_one_core_seconds(detector: Any, rows: NDArray[np.float64]) -> float:
    """Estimated seconds of a DiffInt's fit on one core, from fits with few epochs."""
    from sklearn.base import clone

    n_epochs = detector.config.resolved(len(rows), len(rows)).epochs
    timed = (n_epochs,) if n_epochs <= _TIMED_EPOCHS[-1] else _TIMED_EPOCHS
    clone(detector).set_params(epochs=1).fit(rows[:2000])  # compile the code first
    seconds = [_fit_seconds(clone(detector).set_params(epochs=e), rows) for e in timed]
    if len(timed) == 1:
        return seconds[0]
    per_epoch = max(0.0, seconds[1] - seconds[0]) / (timed[1] - timed[0])
    return float(seconds[0] + per_epoch * (n_epochs - timed[0]))


def _fit_seconds(detector: Any, rows: NDArray[np.float64]) -> float:
    """Processor time of a fit, as other processes may share the core; short fits: best of three."""
    best = np.inf
    for _ in range(3):
        started = time.process_time()
        detector.fit(rows)
        best = min(best, time.process_time() - started)
        if best > 1.0:
            break
    return best


def _outcome(
    seed: int, trial: Trial, scores: Any, fit_seconds: float, score_seconds: float
) -> Outcome:
    from sklearn.metrics import average_precision_score, roc_auc_score

    scores, n_test = np.asarray(scores, dtype=np.float64), len(trial.test)
    if scores.shape == (n_test, 1):
        scores = scores[:, 0]
    if scores.shape != (n_test,):
        raise InputError(f"returned scores of shape {scores.shape} for {n_test} rows")
    if np.isnan(scores).any():
        raise InputError(f"returned NaN for {int(np.isnan(scores).sum())} of {n_test} rows")
    # Infinite scores are valid, but the metrics need finite ones; only the order matters.
    scores = np.nan_to_num(scores, posinf=np.finfo(float).max, neginf=np.finfo(float).min)
    return Outcome(
        seed=seed,
        roc_auc=float(roc_auc_score(trial.test_labels, scores)),
        average_precision=float(average_precision_score(trial.test_labels, scores)),
        fit_seconds=fit_seconds,
        score_seconds=score_seconds,
        n_train=len(trial.train),
        n_test=n_test,
    )


def peak_memory_mb() -> float:
    """Largest resident size of this process so far, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def processor_name() -> str:
    """The name of this machine's processor."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def installed_versions() -> str:
    """Versions of the packages that affect the results."""
    found = [f"diffint {__version__}", f"python {platform.python_version()}"]
    for name in ("pyod", "deepod", "scikit-learn", "numpy", "scipy", "torch"):
        with contextlib.suppress(PackageNotFoundError):
            found.append(f"{name} {version(name)}")
    return "; ".join(found)


def _seed_everything(seed: int) -> None:
    """Seed the global generators, for detectors without a seed parameter."""
    import random

    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    if "torch" in sys.modules:
        import torch

        torch.manual_seed(seed)
        torch.set_num_threads(1)


def end_with_parent() -> None:
    """Make a process group, which can be killed as a whole, and end when the parent ends."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the runner handles interrupts
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if sys.platform == "linux":
        set_death_signal = 1  # PR_SET_PDEATHSIG
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)
        if os.getppid() == 1:
            os._exit(1)


def _silence_output() -> None:
    """Discard what detectors print and warn, which would disturb the progress bar."""
    warnings.simplefilter("ignore")
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
