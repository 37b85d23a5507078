"""p-values for new rows that come from elsewhere than the training rows.

If normal rows of some kind are w times as common now as among the training rows, and w is known for
every row, then a p-value in which each calibration row counts w times is valid (weighted conformal
prediction; Tibshirani, Foygel Barber, Candès and Ramdas 2019).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError, InputTypeError
from ..core.formatting import counted, shortened
from ..core.model import FittedModel

if TYPE_CHECKING:
    import pandas

Array = NDArray[np.float64]

_LEAST_SHARE = 0.5  # of a small calibration that is to count
_FEWEST = 30  # calibration rows that must count after weighing
_MOST_NEW = 5_000  # new rows that weights are estimated from
_LARGEST_ODDS, _LARGEST_WEIGHT = 1e3, 1e100
_FAILURES = (TypeError, ValueError, KeyError, IndexError, AttributeError)


def weighted_p_values(
    model: FittedModel, x: NDArray[Any], scores: Array, weights: Any, rate: float
) -> Array:
    """Weighted conformal p-values of rows. x: (rows, features); scores: (rows,) → (rows,)

    p = (sum of the weights of calibration rows that score at least as high + the row's own weight)
    / (sum of all their weights + the row's own weight), over the calibration rows that the model
    stores. weights: a function from a data frame of features to (rows,), or "estimate".
    """
    calibration = model.calibration
    if not calibration.held_out or not len(calibration.sample):
        raise InputError(
            "the model stores no calibration rows to weigh; fit with kept_rows='auto' and "
            "calibration='auto'"
        )
    if calibration.grouped:
        raise InputError("weights cannot be combined with groups of rows")
    sample = calibration.sample
    if isinstance(weights, str) and weights == "estimate":
        known, new = _estimated(sample, x)
    elif callable(weights):
        known, new = (_given(model, weights, rows) for rows in (sample, x))
    else:
        raise InputTypeError(
            f"weights is {shortened(repr(weights))}; it must be a function from a data frame of "
            "features to one weight per row, or 'estimate'"
        )
    _check_enough(known, rate)
    order = np.argsort(calibration.sample_scores, kind="stable")
    from_above = np.append(np.cumsum(known[order][::-1])[::-1], 0.0)
    places = np.searchsorted(calibration.sample_scores[order], scores, side="left")
    return np.asarray((from_above[places] + new) / (from_above[0] + new))


def _check_enough(weights: Array, rate: float) -> None:
    """Raise an error if the weights leave too few calibration rows that count."""
    effective = float(weights.sum() ** 2 / (weights**2).sum()) if weights.any() else 0.0
    # A small table may have few rows without any weights.
    needed = min(max(_FEWEST, 1.0 / rate - 1.0), _LEAST_SHARE * len(weights))
    if effective < needed:
        raise InputError(
            f"with these weights the {counted(len(weights), 'stored calibration row')} are worth "
            f"only {effective:.0f}, where at least {np.ceil(needed):.0f} are needed for a "
            f"false-positive rate of {rate:g}: too few training rows are like the new ones; fit on "
            "rows like them, or raise false_positive_rate"
        )


def _given(model: FittedModel, function: Any, x: NDArray[Any]) -> Array:
    """The weights that a function gives to rows, checked."""
    frame = feature_frame(model, x)
    try:
        weights = np.asarray(function(frame), dtype=np.float64)
    except _FAILURES as error:
        raise InputError(
            f"the function of weights failed ({type(error).__name__}: {error})"
        ) from error
    if weights.shape != (len(x),):
        raise InputError(
            f"the function of weights returned shape {weights.shape} for {counted(len(x), 'row')}; "
            "it must return one number per row"
        )
    if not ((weights >= 0) & (weights <= _LARGEST_WEIGHT)).all():
        raise InputError(
            "the function of weights returned NaN, a negative number, or one above "
            f"{_LARGEST_WEIGHT:g}"
        )
    return weights


def feature_frame(model: FittedModel, x: NDArray[Any]) -> pandas.DataFrame:
    """Rows (rows, features) as a data frame of features, with the texts of categories."""
    import pandas

    frame = pandas.DataFrame(np.asarray(x, dtype=np.float64), columns=list(model.feature_names))
    for j, values in model.categories.items():
        codes = np.asarray(x[:, j], dtype=np.float64)
        texts = np.array([*values, None], dtype=object)
        known = (codes >= 0) & (codes < len(values))
        frame[model.feature_names[j]] = texts[np.where(known, codes, len(values)).astype(np.intp)]
    return frame


def _estimated(known: Array, new: NDArray[Any]) -> tuple[Array, Array]:
    """Weights by a classifier that tells new rows from calibration rows. (rows, features) each

    The odds of its answer, by rows that it was not trained on, are the ratio of the densities.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.model_selection import StratifiedKFold
    from threadpoolctl import threadpool_limits

    rng = np.random.default_rng(0)
    chosen = rng.permutation(len(new))[:_MOST_NEW]
    rows = np.concatenate([known, np.asarray(new, dtype=np.float64)[chosen]])
    is_new = np.r_[np.zeros(len(known), dtype=bool), np.ones(len(chosen), dtype=bool)]
    n_folds = min(5, int(is_new.sum()), int((~is_new).sum()))
    if n_folds < 2:
        raise InputError(f"weights cannot be estimated from {counted(len(new), 'new row')}")
    odds_known, odds_new = np.zeros(len(known)), np.zeros(len(new))
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=0)
    ratio = len(known) / len(chosen)
    # Threads that wait for each other take far longer than one, on a machine that is in use.
    with threadpool_limits(1, user_api="openmp"):
        for train, test in folds.split(rows, is_new):
            model = HistGradientBoostingClassifier(
                max_iter=50, max_leaf_nodes=8, learning_rate=0.1, random_state=0
            )
            model.fit(rows[train], is_new[train])
            left_out = test[~is_new[test]]
            odds_known[left_out] = _odds(model, rows[left_out]) * ratio
            odds_new += _odds(model, np.asarray(new, dtype=np.float64)) * ratio / n_folds
    return odds_known, odds_new


def _odds(model: Any, rows: Array) -> Array:
    share = model.predict_proba(rows)[:, 1]
    return np.asarray(np.minimum(share / np.maximum(1.0 - share, 1e-12), _LARGEST_ODDS))
