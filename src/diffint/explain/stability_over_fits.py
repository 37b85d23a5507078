"""How much the importance of features changes between separate fits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from ..core.errors import InputError, InputTypeError
from ..core.formatting import counted
from ..core.immutable import Immutable
from .importance import feature_importance

if TYPE_CHECKING:
    import pandas

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class StabilityOverFits(Immutable):
    """Agreement of separate fits on the order of features.

    feature_names: of all detectors. importance: (fits, features). correlations: (pairs,) Spearman's
    rank correlation of each pair of fits, 1 if they order the features alike; in the order of
    `itertools.combinations`.
    """

    feature_names: tuple[str, ...]
    importance: Array
    correlations: Array

    @property
    def mean(self) -> float:
        """The mean correlation."""
        return float(self.correlations.mean())

    @property
    def least(self) -> float:
        """The correlation of the two fits that agree least."""
        return float(self.correlations.min())

    @property
    def deviation(self) -> float:
        """Standard deviation of the correlations."""
        return float(self.correlations.std())

    def to_frame(self) -> pandas.DataFrame:
        """Mean and spread of each feature's importance and rank, most important first.

        Columns: feature, importance, deviation, rank (1 is the most important), rank_deviation.
        """
        import pandas

        ranks = rankdata(-self.importance, axis=1)
        frame = pandas.DataFrame(
            {
                "feature": np.array(self.feature_names, dtype=object),
                "importance": self.importance.mean(axis=0),
                "deviation": self.importance.std(axis=0),
                "rank": ranks.mean(axis=0),
                "rank_deviation": ranks.std(axis=0),
            }
        )
        return frame.sort_values("rank", kind="stable", ignore_index=True)

    def __repr__(self) -> str:
        return (
            f"StabilityOverFits({len(self.importance)} fits, mean correlation {self.mean:.2f}, "
            f"least {self.least:.2f})"
        )


def stability_over_fits(detectors: Iterable[Any]) -> StabilityOverFits:
    """How well separate fits agree on which features are important.

    The fits differ in what you vary: `random_state`, the split of the table, or both.

    Parameters
    ----------
    detectors : iterable of fitted DiffInt or FittedModel
        At least two, with the same features.

    Returns
    -------
    stability : StabilityOverFits
        `correlations` of all pairs, `mean`, `least`, `deviation`, `to_frame()`.

    Examples
    --------
    >>> import numpy as np
    >>> from diffint import DiffInt, stability_over_fits
    >>> x = np.random.default_rng(0).normal(size=(100, 4)) ** [1, 3, 5, 7]
    >>> fits = [DiffInt(epochs=5, n_units=20, random_state=seed).fit(x) for seed in range(3)]
    >>> len(stability_over_fits(fits).correlations)
    3
    """
    if not isinstance(detectors, Iterable):
        raise InputTypeError(
            f"the detectors are a {type(detectors).__name__}; pass a list of fitted detectors"
        )
    models = [getattr(detector, "model_", detector) for detector in detectors]
    if len(models) < 2:
        raise InputError(
            f"{counted(len(models), 'fit')} given; stability needs at least two fits to compare"
        )
    for number, model in enumerate(models):
        if not hasattr(model, "members"):
            raise InputError(
                f"number {number} is not a fitted detector but {type(model).__name__}; fit it first"
            )
    names = models[0].feature_names
    for number, model in enumerate(models):
        if model.feature_names != names:
            raise InputError(
                f"fit {number} has other features than fit 0; compare fits of the same columns"
            )
    formulas = sorted({model.config.importance for model in models})
    if len(formulas) > 1:
        raise InputError(
            f"the fits have different formulas of importance ({', '.join(formulas)}); compare fits "
            "with the same one"
        )
    if len(names) < 2:
        raise InputError("a single feature has no order to compare; use tables with more columns")
    importance = np.array([feature_importance(model) for model in models])
    return StabilityOverFits(tuple(names), importance, rank_correlations(importance))


def rank_correlations(importance: Array) -> Array:
    """Spearman's correlation of every two lines. importance: (fits, features) → (pairs,)"""
    ranks = rankdata(importance, axis=1)
    pairs = combinations(range(len(ranks)), 2)
    return np.array([_correlation(ranks[a], ranks[b]) for a, b in pairs])


def _correlation(a: Array, b: Array) -> float:
    """Pearson's correlation of ranks; of two fits without any order 1, of one without it 0."""
    a, b = a - a.mean(), b - b.mean()
    norms = float(np.linalg.norm(a)), float(np.linalg.norm(b))
    if min(norms) == 0:
        return 1.0 if max(norms) == 0 else 0.0
    return float(a @ b / (norms[0] * norms[1]))
