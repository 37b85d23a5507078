"""Attribution methods compared by `explain_quality.py`, with a common signature.

Each takes a `Setting` and planted rows and returns attributions (rows, features); the most
responsible feature has the largest value.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import IsolationForest

from diffint import DiffInt
from diffint.engine.cpu import explain_kernel, score_kernel
from diffint.explain.local_explanation import LocalExplanation
from diffint.explain.responsibility import responsibilities
from diffint.score.parts import feature_parts
from diffint.score.prepared import PreparedModel
from diffint.studies import attributions
from explain_planting import NEIGHBOURS, Planted, nearest_rows

Matrix = NDArray[np.float64]

GRADIENT_STEPS = 50
LENIENT = {"z_outlier": 4.0, "pct_outliers": 0.05}  # OutlierTree: instead of 8 and 0.01
_FLOOR = 0.05  # of the spread of neighbours, in standard deviations


@dataclass(frozen=True)
class Setting:
    """A fitted detector and its training rows; rivals are fitted when they are first needed."""

    detector: DiffInt
    train: Matrix
    seed: int

    @property
    def prepared(self) -> PreparedModel:
        return self.detector.prepared

    @cached_property
    def forest(self) -> IsolationForest:
        return IsolationForest(random_state=self.seed, n_jobs=1).fit(self.train)

    @cached_property
    def outlier_tree(self) -> Any:
        return fit_outlier_tree(named(self.train))

    @cached_property
    def lenient_outlier_tree(self) -> Any:
        return fit_outlier_tree(named(self.train), **LENIENT)


class Count:
    """Number of rows evaluated with all members."""

    rows = 0


@contextmanager
def counted_rows() -> Iterator[Count]:
    """Count every row that scoring passes to the compiled networks."""
    count = Count()
    score, explain = score_kernel.score_rows, explain_kernel.explain_rows

    def counting(original: Callable[..., None]) -> Callable[..., None]:
        def call(address: int, n_rows: int, *others: Any) -> None:
            count.rows += n_rows
            original(address, n_rows, *others)

        return call

    score_kernel.score_rows, explain_kernel.explain_rows = counting(score), counting(explain)
    try:
        yield count
    finally:
        score_kernel.score_rows, explain_kernel.explain_rows = score, explain


def order_of_reasons(setting: Setting, planted: Planted) -> Matrix:
    """The order in which `explain` looks for reasons."""
    return setting.detector.explain(planted.rows).doubt


def reasons_shown(setting: Setting, planted: Planted) -> Matrix:
    """The features with a reason, the first reason first; 0 for all others."""
    return features_shown(setting.detector.explain(planted.rows))


def features_shown(why: LocalExplanation) -> Matrix:
    """Attributions of the features with a reason, the first reason first; 0 for all others."""
    result = np.zeros_like(why.doubt)
    for i in range(len(why)):
        for rank, reason in enumerate(why.reasons_of(i)):
            result[i, reason.feature] = result.shape[1] - rank
    return result


def responsibility(setting: Setting, planted: Planted) -> Matrix:
    """`diffint.explain.responsibility.responsibilities`."""
    return responsibilities(setting.prepared, planted.rows)


def plain_residual(setting: Setting, planted: Planted) -> Matrix:
    """Each feature's part of the score."""
    return feature_parts(setting.prepared, planted.rows)


def kernel_shap(setting: Setting, planted: Planted) -> Matrix:
    """KernelSHAP on the anomaly score: default number of samples, k-means background."""
    return attributions.kernel_shap(setting.detector, setting.train, planted.rows, setting.seed)


def integrated_gradients(setting: Setting, planted: Planted) -> Matrix:
    """Integrated gradients of the score from the median training row, in scaled units."""
    return attributions.integrated_gradients(
        setting.detector, setting.train, planted.rows, GRADIENT_STEPS
    )


def tree_shap(setting: Setting, planted: Planted) -> Matrix:
    """TreeSHAP on an isolation forest, whose depths are low for anomalies."""
    import shap

    return -np.asarray(shap.TreeExplainer(setting.forest).shap_values(planted.rows))


def outlier_tree(setting: Setting, planted: Planted) -> Matrix:
    """1 for the column that OutlierTree names, 0 for all if it names none."""
    return columns_named(setting.outlier_tree, named(planted.rows))


def lenient_outlier_tree(setting: Setting, planted: Planted) -> Matrix:
    """The same with settings that find more."""
    return columns_named(setting.lenient_outlier_tree, named(planted.rows))


def named(rows: Matrix) -> pd.DataFrame:
    """The rows as a table with names of columns."""
    return pd.DataFrame(rows, columns=[f"x{j}" for j in range(rows.shape[1])])


def fit_outlier_tree(train: pd.DataFrame, **settings: float) -> Any:
    """An OutlierTree, with its defaults but for `settings`."""
    from outliertree import OutlierTree

    tree = OutlierTree(nthreads=1, **settings)
    tree.fit(_with_categories(train), outliers_print=0)
    return tree


def columns_named(tree: Any, rows: pd.DataFrame) -> Matrix:
    """1 for the column of each row that the tree names. → (rows, columns)"""
    found = tree.predict(_with_categories(rows), outliers_print=0)["suspicious_value"]
    names = [value.get("column") if isinstance(value, dict) else None for value in found]
    return np.array([[float(name == one) for name in rows.columns] for one in names])


def _with_categories(table: pd.DataFrame) -> pd.DataFrame:
    return table.astype(dict.fromkeys(table.select_dtypes(exclude="number"), "category"))


def ecod_tails(setting: Setting, planted: Planted) -> Matrix:
    """−log of the smaller tail probability among the training values and the row's value."""
    return attributions.ecod_tails(setting.train, planted.rows)


def largest_z(setting: Setting, planted: Planted) -> Matrix:
    """Distance to the mean in standard deviations."""
    return np.abs(standardised(setting.train, planted.rows)[1])


def neighbours(setting: Setting, planted: Planted) -> Matrix:
    """Distance to the median of the nearest training rows, relative to the range."""
    return _distance_to_neighbours(setting.train, planted.rows, planted.rows)


def neighbours_before(setting: Setting, planted: Planted) -> Matrix:
    """The same with the neighbours of the row before planting."""
    return _distance_to_neighbours(setting.train, planted.rows, planted.before)


def _distance_to_neighbours(train: Matrix, rows: Matrix, near: Matrix) -> Matrix:
    span = np.ptp(train, axis=0)
    span = np.where(span > 0, span, 1.0)
    medians = np.median(train[nearest_rows(train / span, near / span)], axis=1)
    return np.asarray(np.abs(rows - medians) / span)


def neighbours_without(setting: Setting, planted: Planted) -> Matrix:
    """Distance to the middle of neighbours that are found without the feature."""
    return deviations_without(*standardised(setting.train, planted.rows))


def deviations_without(
    train: Matrix, rows: Matrix, groups: Sequence[Sequence[int]] | None = None
) -> Matrix:
    """Distance of a value from the median of the 20 nearest training rows, over their spread.

    The neighbours of each feature are found without it. The spread is their standard deviation,
    which found more than the mean absolute deviation did.
    train, rows: standardised; groups: the columns of each feature, one by default
    → (rows, features)
    """
    groups = groups or [[j] for j in range(train.shape[1])]
    result = np.empty((len(rows), len(groups)))
    for i, row in enumerate(rows):
        squares = (train - row) ** 2
        total = squares.sum(axis=1)
        for g, columns in enumerate(groups):
            apart = total - squares[:, columns].sum(axis=1)
            near = train[np.argpartition(apart, NEIGHBOURS)[:NEIGHBOURS]][:, columns]
            median = np.median(near, axis=0)
            spread = near.std(axis=0).sum() + _FLOOR
            result[i, g] = np.abs(row[columns] - median).sum() / spread
    return result


def standardised(train: Matrix, rows: Matrix) -> tuple[Matrix, Matrix]:
    """Both with the training rows' means and standard deviations."""
    middle, deviation = train.mean(axis=0), train.std(axis=0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    return (train - middle) / deviation, (rows - middle) / deviation


Method = Callable[[Setting, Planted], Matrix]

ORDER, SHOWN = "order of reasons (ours)", "reasons shown (ours)"
KERNEL_SHAP, GRADIENTS, OUTLIER_TREE = "KernelSHAP", "integrated gradients", "OutlierTree"
WITHOUT = "20 neighbours without the feature"
METHODS: dict[str, Method] = {
    ORDER: order_of_reasons,
    SHOWN: reasons_shown,
    "responsibility (ours)": responsibility,
    "plain residual (share)": plain_residual,
    KERNEL_SHAP: kernel_shap,
    GRADIENTS: integrated_gradients,
    "IForest + TreeSHAP": tree_shap,
    OUTLIER_TREE: outlier_tree,
    f"{OUTLIER_TREE}, lenient": lenient_outlier_tree,
    "ECOD tails": ecod_tails,
    "largest z-score": largest_z,
    "20 neighbours' median": neighbours,
    WITHOUT: neighbours_without,
    "20 neighbours before planting (oracle)": neighbours_before,
}
_PACKAGES = {
    KERNEL_SHAP: "shap",
    GRADIENTS: "torch",
    "IForest + TreeSHAP": "shap",
    OUTLIER_TREE: "outliertree",
    f"{OUTLIER_TREE}, lenient": "outliertree",
}


def missing_package(method: str) -> str | None:
    """The package that a method needs and that is not installed."""
    package = _PACKAGES.get(method)
    return package if package and importlib.util.find_spec(package) is None else None
