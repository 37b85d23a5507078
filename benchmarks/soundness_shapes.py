"""Check bounds on regions over detectors of many shapes; `soundness.py` reports the result.

Each shape is a detector with random settings, fitted on a random table. In each of its regions
(some features pinned to one value, some free, some beyond the training range) the score is searched
from random rows, from corners and the middle of the region, from centers and ends of the units,
and from training rows, with gradients and by changing single features of the best rows found.
"""

from __future__ import annotations

import multiprocessing
import warnings
from typing import Any, NamedTuple

import numpy as np
import torch

from diffint import DiffInt
from diffint.certify.regions import RegionCertificate
from diffint.core.scaling import SCALERS
from score_search import TorchScore, follow_gradient

REGIONS = 10  # per shape
_RANDOM_ROWS = 3_600  # per region
_STARTS, _STEPS = 10, 30  # of the adversary, each for maximising and minimising
_ROUNDS, _CHANGED_ROWS = 3, 300
SEARCHED = (
    f"{_RANDOM_ROWS:,} random rows, {_ROUNDS * _CHANGED_ROWS} near the best ones, and "
    f"{2 * _STARTS * _STEPS} rows of the adversary in each ({_STARTS} starts, counted twice, and "
    f"{_STEPS - 1} steps up and down from each)"
)


class Outcome(NamedTuple):
    """Counts of one shape. broken: regions with a score outside a bound."""

    few_units: bool
    certified: bool
    low_temperature: bool
    regions: int
    pinned: int
    rows: int
    broken: int
    worst: str


def check_shapes(count: int, seed: int, jobs: int) -> list[Outcome]:
    """Check `count` shapes in `jobs` processes."""
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        return pool.map(check_shape, [(seed, i) for i in range(count)], chunksize=1)


def check_shape(which: tuple[int, int]) -> Outcome:
    """Fit one random detector and search its regions for scores outside the bounds."""
    torch.set_num_threads(1)
    rng = np.random.default_rng(which)
    settings = _random_settings(rng)
    d = round(float(np.exp(rng.uniform(np.log(2), np.log(60)))))
    x = _random_table(rng, d)
    detector = DiffInt(**settings, random_state=int(rng.integers(1000)), n_jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        detector.fit(x)
        return _check_regions(detector, settings, x, rng)


def _random_settings(rng: np.random.Generator) -> dict[str, Any]:
    def between(low: float, high: float) -> float:
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))

    return {
        "n_units": round(between(1, 200)),
        "hidden_width": round(between(2, 64)),
        "temperature": between(0.01, 0.5),
        "decoder": str(rng.choice(["free", "certified", "spectral"])),
        "scaling": str(rng.choice(list(SCALERS))),
        "error": str(rng.choice(["clipped", "unclipped"])),
        "missing": str(rng.choice(["signal", "ignored"])),
        "kept_rows": int(rng.choice([0, 1, 17, 500])),
        "n_members": int(rng.integers(1, 4)),
        "epochs": round(between(3, 100)),
        "learning_rate": between(1e-3, 0.3),
        "coverage_weight": float(rng.choice([0.0, 0.05, 0.3])),
    }


def _random_table(rng: np.random.Generator, d: int) -> np.ndarray:
    """Clusters of correlated, heavy-tailed or whole-numbered columns, with holes or a constant."""
    n_rows, n_clusters = int(rng.integers(60, 400)), int(rng.integers(1, 5))
    x = rng.normal(size=(n_rows, d))
    if rng.random() < 0.5:
        x = x @ rng.normal(size=(d, d)) / np.sqrt(d)
    x += rng.normal(size=(n_clusters, d))[rng.integers(n_clusters, size=n_rows)] * 3
    heavy, whole = rng.random((2, d)) < 0.15
    x[:, heavy] = np.sign(x[:, heavy]) * np.expm1(np.abs(x[:, heavy]))
    x[:, whole] = np.round(x[:, whole])
    x = x * 10.0 ** rng.integers(-3, 4, size=d)
    if rng.random() < 0.3:
        x[rng.random(x.shape) < 0.05] = np.nan
    if d > 2 and rng.random() < 0.3:
        x[:, 0] = 7.0
    return np.asarray(x)


def _random_region(x: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Around a training row; each feature pinned, narrow, wide, beyond the range or unbounded."""
    d, first, last = x.shape[1], np.nanmin(x, axis=0), np.nanmax(x, axis=0)
    span = last - first + 1e-9
    center = np.where(np.isnan(x), np.nanmean(x, axis=0), x)[rng.integers(len(x))]
    if rng.random() < 0.5:  # the whole training range of the features that are not pinned
        lower, upper = first.copy(), last.copy()
    else:
        center = np.where(rng.random(d) < 0.2, center + span * rng.normal(size=d), center)
        typical = rng.uniform(-3, 1)
        reach = span * 10.0 ** rng.uniform(typical - 1, typical, size=(2, d))
        lower, upper = center - reach[0], center + reach[1]
    unbounded = rng.random((2, d)) < rng.choice([0.0, 0.2])
    lower[unbounded[0]], upper[unbounded[1]] = -np.inf, np.inf
    pinned = rng.random(d) < rng.choice([0.0, 0.5, 0.9], p=[0.25, 0.5, 0.25])
    lower[pinned] = upper[pinned] = center[pinned]
    return lower, upper


def _check_regions(
    detector: DiffInt, settings: dict[str, Any], x: np.ndarray, rng: np.random.Generator
) -> Outcome:
    score, broken, rows, with_pinned, worst = TorchScore(detector.model_), 0, 0, 0, ""
    for i in range(REGIONS):
        lower, upper = _random_region(x, rng)
        absent = _absent(x.shape[1], rng)
        names = [detector.model_.feature_names[j] for j in absent]
        regions = [
            detector.certify_region(lower, upper, splits=s, missing=names, aim=aim)
            for s, aim in ((0, "verdict"), (4 * (i % 5), "bounds"), (16, "verdict"))
        ]
        scores = _search(detector, score, x, lower, upper, absent, rng)
        rows += len(scores)
        with_pinned += bool((lower == upper).any())
        for region in regions:
            wrong = region.verdict == "mixed" and not _are_witnesses(detector, region)
            if scores.min() < region.lower or scores.max() > region.upper or wrong:
                broken += 1
                worst = f"scores {scores.min()} to {scores.max()} in {region.lower} to "
                worst += f"{region.upper}: {x.shape[1]} features, {settings}"
                break
    return Outcome(
        few_units=settings["n_units"] <= 10,
        certified=settings["decoder"] != "free",
        low_temperature=settings["temperature"] < 0.05,
        regions=REGIONS,
        pinned=with_pinned,
        rows=rows,
        broken=broken,
        worst=worst,
    )


def _absent(d: int, rng: np.random.Generator) -> list[int]:
    """The features of a region that may be missing: usually none."""
    count = int(rng.choice([0, 1, 2], p=[0.7, 0.2, 0.1]))
    return sorted(rng.choice(d, size=min(count, d - 1), replace=False).tolist())


def _are_witnesses(detector: DiffInt, region: RegionCertificate) -> bool:
    """Whether the rows of a mixed region are in it, and on both sides of the threshold."""
    assert region.threshold is not None
    rows = region.rows.to_numpy(float)
    inside = (rows >= region.region_lower) & (rows <= region.region_upper)
    inside[:, list(region.missing)] |= np.isnan(rows[:, list(region.missing)])
    flagged = detector.anomaly_score(rows) > region.threshold
    return bool(inside.all() and flagged.tolist() == [True, False])


def _search(
    detector: DiffInt,
    score: TorchScore,
    x: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    absent: list[int],
    rng: np.random.Generator,
) -> np.ndarray:
    """The scores of all rows tried. lower, upper: (features,)"""
    d, span = len(lower), np.nanmax(x, axis=0) - np.nanmin(x, axis=0) + 1e-9
    middle = np.nanmean(x, axis=0)
    low = np.where(np.isinf(lower), np.minimum(upper, middle) - 3 * span, lower)
    high = np.where(np.isinf(upper), np.maximum(low, middle) + 3 * span, upper)

    # Places at which a score may be extreme: ends of the region, and the units' centers and ends.
    member = detector.model_.members[0]
    places = np.concatenate(
        [member.scaler.to_original(a) for a in (member.center, member.lower, member.upper)]
    )
    places = np.clip(np.where(np.isnan(places), low, places), low, high)
    known = np.clip(np.where(np.isnan(x), middle, x), low, high)

    def mixed(n_rows: int) -> np.ndarray:
        rows = low + (high - low) * rng.random((n_rows, d))
        corner = np.where(rng.random((n_rows, d)) < 0.5, low, high)
        unit = places[rng.integers(len(places), size=(n_rows, 1)), np.arange(d)]
        unlike = places[rng.integers(len(places), size=(n_rows, d)), np.arange(d)]
        training = known[rng.integers(len(known), size=n_rows)]
        kind = rng.integers(5, size=(n_rows, 1))
        rows = np.choose(kind, [rows, corner, unit, unlike, training])
        swapped = rng.random((n_rows, d)) < rng.choice([0.0, 0.1, 0.5], size=(n_rows, 1))
        return np.where(swapped, corner, rows)

    starts = mixed(_STARTS)
    starts[0] = (low + high) / 2
    width = np.where(high > low, high - low, 1.0)
    visited = follow_gradient(score, low, high, (starts - low) / width, _STEPS)
    rows = np.clip(np.concatenate([mixed(_RANDOM_ROWS), visited]), lower, upper)
    for j in absent:
        rows[rng.random(len(rows)) < 0.3, j] = np.nan
    scores = detector.anomaly_score(rows)
    seen = [scores]
    for _ in range(_ROUNDS):
        ends = np.concatenate([np.argsort(scores)[:5], np.argsort(scores)[-5:]])
        parents = rows[rng.choice(ends, size=_CHANGED_ROWS)]
        changed = rng.random(parents.shape) < rng.choice([1 / d, 0.2], size=(len(parents), 1))
        rows = np.clip(np.where(changed, mixed(len(parents)), parents), lower, upper)
        scores = detector.anomaly_score(rows)
        seen.append(scores)
    return np.concatenate(seen)
