"""One run of the evaluation, in a process of its own."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import resource
import signal
import sys
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
from ..tables.datasets import LabelledTable, read_adbench
from .baselines import Method, anomaly_scores, chosen_methods
from .protocol import TrainsOn, Trial, make_trial, scale_trial

# One core is one core: no library may start threads of its own.
ONE_CORE = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
}
# The environment variable that tells the server which methods to make ready.
ASKED = "DIFFINT_BENCH_METHODS"
# One core's time for many epochs is estimated from the difference between these.
_TIMED_EPOCHS = (2, 7)


@dataclass(frozen=True)
class Job:
    """What a process does: one method on one table, for one seed, or for many on a GPU."""

    table: str
    path: Path
    method: str
    plugin: str | None
    trains_on: TrainsOn
    seeds: tuple[int, ...]
    device: str = "cpu"


@dataclass(frozen=True)
class Outcome:
    """What a run measured for one seed; the seconds are those of all its job's seeds.

    on_gpu: of a fit on a GPU, its name, and the seconds that one core would take, estimated.
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
    """The process: tells the runner when a phase begins, then what came of it.

    Messages are ("fitting" | "scoring", None), ("done", (outcomes, peak memory in MB)),
    ("out of memory", text) and ("error", text).
    """
    _leave_no_orphan()
    _be_quiet()
    try:
        outcomes = run_job(job, lambda phase: pipe.send((phase, None)))
        pipe.send(("done", (outcomes, peak_memory_mb())))
    except MemoryError as error:
        pipe.send(("out of memory", str(error) or "MemoryError"))
    except BaseException as error:  # whatever a detector raises is a result
        text = str(error)
        # CUDA says it in its own way.
        state = "out of memory" if "out of memory" in text.lower() else "error"
        pipe.send((state, f"{type(error).__name__}: {text}"))
    finally:
        pipe.close()
        os._exit(0)  # no detector's threads or exit handlers hold up the runner


def run_job(job: Job, tell: Callable[[str], None] = lambda phase: None) -> list[Outcome]:
    """Fit and score every seed of a job; `tell` hears "fitting" and "scoring"."""
    table = read_adbench(job.path)
    plugins = [job.plugin] if job.plugin else []
    method = chosen_methods([] if plugins else [job.method], plugins)[job.method]
    trials = []
    for seed in job.seeds:
        trial = make_trial(table, seed, job.trains_on)
        if len(np.unique(trial.test_labels)) < 2:
            raise InputError(f"the test part of seed {seed} has rows of one kind only")
        trials.append(trial if method.scales_itself else scale_trial(trial))
    if job.device != "cpu":
        return run_on_gpu(job, method, table, trials, tell)
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    (seed,), (trial,) = job.seeds, trials
    _seed_everything(seed)
    tell("fitting")
    started = time.perf_counter()
    detector = method.make(seed, len(table.x))
    detector.fit(trial.train)
    fitted = time.perf_counter()
    tell("scoring")
    scores = anomaly_scores(detector, trial.test)
    seconds = fitted - started, time.perf_counter() - fitted
    return [_outcome(seed, trial, scores, *seconds)]


def run_on_gpu(
    job: Job,
    method: Method,
    table: LabelledTable,
    trials: list[Trial],
    tell: Callable[[str], None],
) -> list[Outcome]:
    """All seeds of a DiffInt configuration in one launch."""
    import torch

    from ..fit.pipeline import Task, fit_models
    from ..score.prepared import PreparedModel
    from ..score.scoring import anomaly_scores as model_scores

    detector = method.make(job.seeds[0], len(table.x))
    config = detector.config
    tasks = [
        Task(trial.train, np.zeros(len(trial.train), dtype=bool), np.random.SeedSequence(seed))
        for seed, trial in zip(job.seeds, trials, strict=True)
    ]
    tell("fitting")
    started = time.perf_counter()
    models = fit_models(tasks, table.feature_names, config, job.device)
    fitted = time.perf_counter()
    tell("scoring")
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
    """What `detector`, a DiffInt, would take to fit on one core, from a few of its epochs."""
    from sklearn.base import clone

    n_epochs = detector.config.resolved(len(rows), len(rows)).epochs
    timed = (n_epochs,) if n_epochs <= _TIMED_EPOCHS[-1] else _TIMED_EPOCHS
    clone(detector).set_params(epochs=1).fit(rows[:2000])  # compiles
    seconds = [_fit_seconds(clone(detector).set_params(epochs=e), rows) for e in timed]
    if len(timed) == 1:
        return seconds[0]
    per_epoch = max(0.0, seconds[1] - seconds[0]) / (timed[1] - timed[0])
    return seconds[0] + per_epoch * (n_epochs - timed[0])


def _fit_seconds(detector: Any, rows: NDArray[np.float64]) -> float:
    """Processor time of a fit, as others may share the core; the best of three if it is short."""
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
    # An infinite score is an opinion; the metrics only ask for the order.
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
    """Largest resident size of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def processor_name() -> str:
    """What this machine's processor calls itself."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def installed_versions() -> str:
    """Versions of what decides the results."""
    found = [f"diffint {__version__}", f"python {platform.python_version()}"]
    for name in ("pyod", "scikit-learn", "numpy", "scipy", "torch"):
        with contextlib.suppress(PackageNotFoundError):
            found.append(f"{name} {version(name)}")
    return "; ".join(found)


def _seed_everything(seed: int) -> None:
    """For detectors that take no seed and draw from the global generators."""
    import random

    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    if "torch" in sys.modules:
        import torch

        torch.manual_seed(seed)
        torch.set_num_threads(1)


def _leave_no_orphan() -> None:
    """A group of its own, to be killed with all it started; and it dies with the server."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the runner's to handle
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if sys.platform == "linux":
        set_death_signal = 1  # PR_SET_PDEATHSIG
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)
        if os.getppid() == 1:
            os._exit(1)


def _be_quiet() -> None:
    """What detectors print and warn of would tear the progress display."""
    warnings.simplefilter("ignore")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
