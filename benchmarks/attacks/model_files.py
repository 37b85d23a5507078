"""Attack the reader of model files: damaged and forged files must be refused or be sound models.

    python benchmarks/attacks/model_files.py --count 10000

Small fitted models are saved and changed in one way each (`forged_files`): single bits, bytes,
fields of the description, values and layout of arrays, whole networks; half of the changes other
than single bits get a valid checksum. Every file is loaded in a child process with limited memory
and time. A file that loads is used for everything a model is for: scores of finite rows must be
finite, no row may violate a bound of a certificate, nothing may raise an error other than a
`DiffIntError`, and the model must save and load again with the same scores.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diffint import DiffInt
from diffint.core.errors import DiffIntError

sys.path.insert(0, str(Path(__file__).parent))
from forged_files import Mutation, mutated

LONGEST = 30.0  # seconds for one file
MEMORY = 2 * 2**30  # bytes above those of the parent
FEATURES = ["number", "whole", "constant", "rare", "never"]
MAX_PROBLEMS = 40  # examples that are kept


@dataclass(frozen=True)
class Target:
    """A fitted model to attack: its file, rows to score, and their scores."""

    content: bytes
    rows: Any  # an array of numbers, or a frame
    scores: NDArray[np.float64]


def attack(count: int, seed: int) -> dict[str, Any]:
    """Change `count` model files and load each. → numbers of outcomes, and examples of problems"""
    outcomes: dict[str, Any] = {
        "tried": 0,
        "refused": 0,
        "loaded unchanged": 0,
        "loaded as another model": 0,
        "changed scores without a refusal by a bit flip": 0,
        "uncaught errors": 0,
        "hangs": 0,
        "over memory": 0,
        "violated bounds": 0,
    }
    problems: list[str] = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        targets = make_targets()
        done = 0
        while done < count:
            for outcome, what in _in_child(targets, done, count, seed):
                outcomes["tried"] += 1
                outcomes[outcome] += 1
                done += 1
                harmless = outcome in ("refused", "loaded unchanged", "loaded as another model")
                if not harmless and len(problems) < MAX_PROBLEMS:
                    problems.append(f"file {done - 1}: {outcome}: {what}")
    return {**outcomes, "problems": problems}


def make_targets() -> list[Target]:
    """Small models of every decoder and scaling, each used once so that all code is compiled."""
    targets = []
    settings = itertools.product(("free", "certified"), ("minmax", "unit", "standard", "none"))
    for i, (decoder, scaling) in enumerate(settings):
        rng = np.random.default_rng(i)
        x = _table(rng)
        detector = DiffInt(
            n_units=(6, 1, 3, 9)[i % 4],
            hidden_width=(5, 1, 8)[i % 3],
            n_members=1 + i % 2,
            epochs=2,
            decoder=decoder,
            scaling=scaling,
            error=("unclipped", "clipped")[i // 2 % 2],
            false_positive_rate=0.1,
            random_state=i,
            n_jobs=1,
            device="cpu",
        )
        import pandas

        frame = pandas.DataFrame(x, columns=FEATURES)
        detector.fit(frame if i % 2 else x)
        rows = _table(rng, 12)
        rows[0] = np.nan
        rows[1, :2], rows[2, :2], rows[3, :2] = 1e300, -np.finfo(float).max, 5e-324
        targets.append(_target(detector, rows, rng))
    for seed in range(8):
        rng, segmented = np.random.default_rng(seed), seed % 2 == 0
        detector = DiffInt(
            n_units=5,
            hidden_width=4,
            n_members=2,
            epochs=2,
            false_positive_rate=0.1,
            random_state=seed,
            n_jobs=1,
        )
        train, recent, rows = (_frame(rng, n_rows, segmented) for n_rows in (60, 60, 12))
        detector.fit(train, segments="s" if segmented else None)
        if seed % 3 == 0:
            detector.accept(train.head(2))
        if seed % 4 == 1:
            detector.refresh(recent)
        targets.append(_target(detector, rows, rng))
    return targets


def _target(detector: DiffInt, rows: Any, rng: np.random.Generator) -> Target:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        detector.save(path)
        target = Target(path.read_bytes(), rows, detector.anomaly_score(rows))
        check(path, target, Mutation(target.content, "none"), rng)
    return target


def _frame(rng: np.random.Generator, n_rows: int, segmented: bool) -> Any:
    """A table with two categories, times, numbers and perhaps a column of segments."""
    import pandas

    hours = pandas.to_timedelta(rng.integers(0, 24 * 40, n_rows), "h")
    frame = pandas.DataFrame(
        {
            "zip": rng.choice(["10", "20", "30"], n_rows),
            "number": np.where(rng.random(n_rows) < 0.1, np.nan, rng.normal(size=n_rows)),
            "when": pandas.Timestamp("2020-01-01") + hours,
            "word": rng.choice(np.array(["a", "b", None], dtype=object), n_rows),
        }
    )
    return frame.assign(s=rng.choice(["p", "q"], n_rows)) if segmented else frame


def _table(rng: np.random.Generator, n_rows: int = 40) -> NDArray[np.float64]:
    """A column of each kind: numbers, whole numbers, a constant, mostly missing, no value."""
    x = np.column_stack(
        [rng.normal(size=n_rows), rng.integers(0, 9, n_rows)] + [np.ones(n_rows)] * 3
    )
    x[:, 3] = np.where(rng.random(n_rows) < 0.7, np.nan, rng.normal(size=n_rows) * 1e6)
    x[:, 4] = np.nan
    return np.asarray(x, dtype=np.float64)


# --- One file ----------------------------------------------------------------------------------


class ViolatedBound(Exception):
    """A row scores outside the bounds of a certificate."""


def check(path: Path, target: Target, mutation: Mutation, rng: np.random.Generator) -> str:
    """Load a file and use the model for everything. → the outcome; raises whatever goes wrong"""
    try:
        detector = DiffInt.load(path)
    except DiffIntError:
        return "refused"
    detector.n_jobs = 1
    rows = target.rows
    if not isinstance(rows, np.ndarray):
        return _check_frame(detector, target, mutation, path)
    if detector.n_features_in_ != rows.shape[1]:
        rows = np.resize(rows, (len(rows), detector.n_features_in_))
    if hasattr(detector, "feature_names_in_"):
        del detector.feature_names_in_  # rows are passed as arrays
    scores = detector.anomaly_score(rows)
    assert np.isfinite(scores).all(), f"scores {scores}"
    same = scores.shape == target.scores.shape and bool((scores == target.scores).all())
    if mutation.is_bit_flip:
        return "loaded unchanged" if same else "changed scores without a refusal by a bit flip"
    assert same or not mutation.harmless, "other scores, though nothing that matters was changed"
    _check_certificates(detector, rows, scores, rng)
    _check_explanations(detector, rows, path, rng)
    again = path.with_name("again")
    detector.save(again)
    loaded = DiffInt.load(again)
    assert np.array_equal(loaded.anomaly_score(rows), scores), "other scores after saving"
    return "loaded unchanged" if same else "loaded as another model"


def _check_frame(detector: DiffInt, target: Target, mutation: Mutation, path: Path) -> str:
    """The same for a table with categories and times, which the file may name differently."""
    rows = target.rows
    try:
        scores = detector.anomaly_score(rows)
    except DiffIntError:
        return "loaded as another model"
    assert np.isfinite(scores).all(), f"scores {scores}"
    same = bool((scores == target.scores).all())
    assert same or not (mutation.harmless or mutation.is_bit_flip), "other scores"
    complete = scores[~np.isnan(detector._read(rows)).any(axis=1)]
    everything = detector.certify_region(None, None, splits=2)
    everything.text()
    if len(complete) and not (
        everything.lower <= complete.min() <= complete.max() <= everything.upper
    ):
        raise ViolatedBound(f"all rows: {everything}, but {complete}")
    detector.explain(rows).text()
    detector.explain_global().text()
    detector.nearest_normal(rows, max_changes=2).text()
    detector.p_values(rows)
    detector.predict(rows)
    detector.save(path.with_name("again"))
    loaded = DiffInt.load(path.with_name("again"))
    assert np.array_equal(loaded.anomaly_score(rows), scores), "other scores after saving"
    return "loaded unchanged" if same else "loaded as another model"


def _check_certificates(
    detector: DiffInt, rows: NDArray[Any], scores: NDArray[Any], rng: np.random.Generator
) -> None:
    n_features = rows.shape[1]
    middle = np.nan_to_num(rows[rng.integers(4, len(rows))])
    for width in (0.3, 100.0):
        lower = middle - width * rng.random(n_features)
        upper = middle + width * rng.random(n_features)
        region = detector.certify_region(lower, upper, splits=int(rng.integers(0, 2) * 4))
        region.text()
        inside = rng.uniform(lower, upper, size=(40, n_features))
        corners = rng.random((20, n_features))
        inside[:20] = np.where(corners < 0.3, lower, np.where(corners < 0.6, upper, inside[:20]))
        inside[20:30] = np.clip(1.0, lower, upper)  # the constant
        found = detector.anomaly_score(inside)
        if not (region.lower <= found.min() and found.max() <= region.upper):
            raise ViolatedBound(
                f"region: {found.min()} to {found.max()} instead of {region.lower} to "
                f"{region.upper}"
            )
    everything = detector.certify_region(None, None)
    complete = scores[~np.isnan(rows).any(axis=1)]
    if (
        len(complete)
        and not everything.lower <= complete.min() <= complete.max() <= everything.upper
    ):
        raise ViolatedBound(f"all rows: {everything}, but {complete}")
    if detector.decoder == "certified":
        certificate = detector.certify(rows)
        certificate.text()
        for bound in (certificate.bound, certificate.bound_at_row):
            if not (bound <= scores).all():
                raise ViolatedBound(f"rows: bounds {bound}, but scores {scores}")


def _check_explanations(
    detector: DiffInt, rows: NDArray[Any], path: Path, rng: np.random.Generator
) -> None:
    explained = detector.explain(rows)
    explained.text()
    for name in ("share", "responsibility", "distance"):
        values = getattr(explained, name)[~np.isnan(rows)]
        assert not np.isinf(values).any(), f"{name} is not finite"
    detector.explain_global().text()
    detector.match(rows)
    nearest = detector.nearest_normal(rows, max_changes=2)
    nearest.text()
    assert np.isfinite(nearest.to_frame()["suggested"]).all(), "an infinite suggestion"
    reconstructed = detector.reconstruct(rows)
    assert not np.isinf(reconstructed).any(), "an infinite reconstruction"
    detector.p_values(rows)
    detector.predict(rows)
    if rng.random() < 0.1:
        detector.report(rows, path.with_name("report.html"))


# --- Child processes ---------------------------------------------------------------------------


def _in_child(targets: list[Target], first: int, count: int, seed: int) -> Any:
    """Outcomes of the files from `first` on, until the child is done, dies or hangs."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            _limit_memory()
            with os.fdopen(writer, "w") as report:
                for i in range(first, count):
                    report.write(json.dumps(_try(targets, i, seed)) + "\n")
                    report.flush()
        finally:
            os._exit(0)
    os.close(writer)
    received, ended = b"", False
    done, allowed = first, time.monotonic() + LONGEST
    try:
        while not ended and done < count:
            ready, _, _ = select.select([reader], [], [], max(0.0, allowed - time.monotonic()))
            chunk = os.read(reader, 2**16) if ready else b""
            ended = not chunk
            *lines, received = (received + chunk).split(b"\n")
            for line in lines:
                done, allowed = done + 1, time.monotonic() + LONGEST
                yield json.loads(line)
            if ended:
                what = _mutation(targets, done, seed)[1].what
                outcome = "uncaught errors" if ready else "hangs"
                yield outcome, f"the process {'died' if ready else 'hung'}: {what}"
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reader)


def _limit_memory() -> None:
    with open("/proc/self/statm") as statm:
        used = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))


def _mutation(
    targets: list[Target], i: int, seed: int
) -> tuple[Target, Mutation, np.random.Generator]:
    """File `i`: the same for the same seed, whatever came before."""
    rng = np.random.default_rng([seed, i])
    target = targets[rng.integers(len(targets))]
    return target, mutated(target.content, rng), rng


def _try(targets: list[Target], i: int, seed: int) -> tuple[str, str]:
    target, mutation, rng = _mutation(targets, i, seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        path.write_bytes(mutation.content)
        try:
            return check(path, target, mutation, rng), mutation.what
        except MemoryError:
            return "over memory", mutation.what
        except ViolatedBound as error:
            return "violated bounds", f"{mutation.what}: {error}"
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(last.filename).name}:{last.lineno}"
            message = f"{mutation.what}: {type(error).__name__} in {where}: {str(error)[:300]}"
            return "uncaught errors", message.encode("ascii", "backslashreplace").decode()


def main() -> None:
    """Attack, and print the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--count", type=int, default=1_000, help="number of files")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    started = time.perf_counter()
    outcomes = attack(arguments.count, arguments.seed)
    for problem in outcomes.pop("problems"):
        print(problem)
    for outcome, number in outcomes.items():
        print(f"{number:8,}  {outcome}")
    print(f"{time.perf_counter() - started:8.0f}  seconds")


if __name__ == "__main__":
    main()
