"""How well attributions find the changed features of a row, and intervals over tables."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]

_SHARE = 0.8
_CONFIDENCE = 0.95


def right_first(attribution: Matrix, changed: Mask) -> Matrix:
    """Whether the largest attribution of each row is at a changed feature. → (rows,)

    Ties count partially, but a row whose attributions are all equal names no feature and is wrong.
    """
    at_top = attribution == attribution.max(axis=1, keepdims=True)
    share = (at_top & changed).sum(axis=1) / at_top.sum(axis=1)
    return np.where(at_top.all(axis=1), 0.0, share)


def hits(attribution: Matrix, changed: Mask) -> float:
    """Share of rows in which the first feature is a changed one."""
    return float(right_first(attribution, changed).mean())


def ranking_auc(attribution: Matrix, changed: Mask) -> float:
    """ROC-AUC of ranking changed before other features within a row, mean over the rows."""
    areas = []
    for values, truth in zip(attribution, changed, strict=True):
        difference = values[truth][:, None] - values[~truth]
        areas.append(((difference > 0) + 0.5 * (difference == 0)).mean())
    return float(np.mean(areas))


def recall(attribution: Matrix, changed: Mask) -> float:
    """Share of a row's changed features among as many with the largest attributions; mean.

    Features that tie for the last of these places share it.
    """
    shares = []
    for values, truth in zip(attribution, changed, strict=True):
        count = int(truth.sum())
        last = np.sort(values)[-count]
        above, tied = values > last, values == last
        found = (above & truth).sum() + (count - above.sum()) / tied.sum() * (tied & truth).sum()
        shares.append(found / count)
    return float(np.mean(shares))


def features_needed(attribution: Matrix) -> float:
    """Smallest number of features that make up 80 % of a row's sum, mean over the rows."""
    shares = np.cumsum(-np.sort(-attribution, axis=1), axis=1)
    return float((shares < _SHARE * shares[:, -1:]).sum(axis=1).mean() + 1)


WHERE_SHOWN = "top-1 where a reason is shown"
MEASURES = {"top-1": hits, "AUC": ranking_auc, "recall": recall}


def interval(values: Iterable[float]) -> tuple[float, float]:
    """The mean of the values of tables, and half the width of its 95 % t-interval."""
    known = np.array(list(values))
    if len(known) < 2:
        return float(known.mean()), np.nan
    error = known.std(ddof=1) / np.sqrt(len(known))
    quantile = stats.t.ppf((1 + _CONFIDENCE) / 2, len(known) - 1)
    return float(known.mean()), float(quantile * error)
