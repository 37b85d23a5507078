"""Which rows are like those that a person has called normal.

A row that was accepted was flagged for a few of its values: with plausible ones in their place it
would not have been. Another row is like it if it has nearly the same values there, and would not be
flagged with plausible ones either. So nothing else that is wrong with it is silenced.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.accepted import Accepted
from ..core.flag_rule import FlagRule
from ..core.kinds import value_text
from ..core.model import FeatureSummary, FittedModel
from ..score.prepared import PreparedModel
from ..score.scoring import anomaly_scores
from .nearest_normal import N_CANDIDATES, mended_by, nearest_normal

if TYPE_CHECKING:
    import pandas

Mask = NDArray[np.bool_]

_NEAR = 0.5  # standard deviations of the training values
_RELATIVE = 0.1  # of the distance from the median: far away, values differ more


def accepted_rows(
    prepared: PreparedModel, x: NDArray[Any], rule: FlagRule, n_jobs: int = 1
) -> tuple[Accepted, Mask]:
    """What to remember of rows (rows, features), and which of them are flagged at all (rows,)."""
    x = np.asarray(x, dtype=np.float64)
    flagged = rule.flagged(anomaly_scores(prepared, x, n_jobs))
    first: dict[bytes, int] = {}  # copies of a row would say nothing more
    for i in np.flatnonzero(flagged).tolist():
        first.setdefault(x[i].tobytes(), i)
    places = np.array(list(first.values()), dtype=np.intp)
    most = min(N_CANDIDATES, x.shape[1])
    found = nearest_normal(prepared, x[places], rule.take(places), most, n_jobs)
    wrong = np.ones((len(places), x.shape[1]), dtype=bool)  # if no change is enough
    for i, changes in enumerate(found.changes):
        if changes:
            wrong[i] = np.isin(np.arange(x.shape[1]), [change.feature for change in changes])
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return Accepted(x[places], wrong, (now,) * len(places)), flagged


def are_accepted(
    prepared: PreparedModel,
    x: NDArray[Any],
    scores: NDArray[np.float64],
    rule: FlagRule,
    n_jobs: int = 1,
) -> Mask:
    """Whether rows (rows, features) are like accepted ones; scores: (rows,) theirs. → (rows,)"""
    accepted, model = prepared.model.accepted, prepared.model
    like = np.zeros(len(x), dtype=bool)
    if not len(accepted):
        return like
    flagged = np.flatnonzero(rule.flagged(scores))
    near = _tolerances(model.features, accepted.rows)
    categories = np.isin(np.arange(x.shape[1]), list(model.categories))
    cuts = np.broadcast_to(rule.threshold, len(x))
    # Rows that were accepted for the same features are judged together.
    for kind in np.unique(accepted.wrong, axis=0):
        known = np.flatnonzero((accepted.wrong == kind).all(axis=1))
        there = np.flatnonzero(kind)
        open_rows = flagged[~like[flagged]]
        alike = _near_any(
            x[open_rows][:, there],
            accepted.rows[known][:, there],
            np.where(categories[there], 0.0, near[known][:, there]),
        )
        rows = open_rows[alike]
        if not len(rows):
            continue
        if kind.all():  # like it in everything
            like[rows] = True
            continue
        for cut in np.unique(cuts[rows]):  # one for each segment
            own = rows[cuts[rows] == cut]
            like[own] = mended_by(prepared, x[own], there, float(cut), n_jobs)
    return like


def _tolerances(features: FeatureSummary, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far from each accepted value another one may be. → the shape of the rows"""
    levels = list(features.levels)
    low, middle, high = (features.quantiles[:, levels.index(q)] for q in (0.05, 0.5, 0.95))
    deviation = (high - low) / 3.29  # of a normal distribution with these quantiles
    distance = np.abs(rows - middle)
    return np.asarray(np.fmax(_NEAR * deviation, _RELATIVE * distance))


def _near_any(
    values: NDArray[np.float64], known: NDArray[np.float64], near: NDArray[np.float64]
) -> Mask:
    """Whether values (rows, n) are near any of the known ones (accepted, n) in all n."""
    found = np.zeros(len(values), dtype=bool)
    for one, tolerance in zip(known, near, strict=True):
        missing = np.isnan(one)
        with np.errstate(invalid="ignore"):
            close = np.abs(values - one) <= np.nan_to_num(tolerance)
        found |= np.where(missing, np.isnan(values), close).all(axis=1)
    return found


def accepted_frame(model: FittedModel) -> pandas.DataFrame:
    """One line per accepted row: when, the features it was flagged for, and its values."""
    import pandas

    accepted, names = model.accepted, model.feature_names
    frame = pandas.DataFrame(accepted.rows, columns=list(names))
    for j, values in model.categories.items():
        frame[names[j]] = [value_text(values, code) for code in accepted.rows[:, j]]
    frame.insert(0, "accepted", list(accepted.when))
    features = [", ".join(names[j] for j in np.flatnonzero(row)) for row in accepted.wrong]
    frame.insert(1, "flagged_for", features)
    return frame
