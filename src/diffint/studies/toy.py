"""The paper's picture in two dimensions: inliers are reconstructed, outliers are pulled in."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from ..bench.markdown import table
from ..core.formatting import percent
from ..show.plots.drawing import (
    ANOMALY,
    BOX,
    FAINT,
    INK,
    NORMAL,
    QUIET,
    legend_below,
    new_figure,
    top_title,
)
from .page import mean_of
from .study import Claim, Findings, Measured, Row, Setup, Study, Task, verdict
from .style import named_axes

Array = NDArray[np.float64]

_TRAIN, _INLIERS, _OUTLIERS = 300, 200, 80
_CENTER, _SPREAD = (0.1, -0.1), 0.22
_NOISE, _NOISY_SPREAD = 0.05, 0.45  # share of noisy training rows, and how far they spread
_FAR = 0.9  # outliers are at least so far from the center in one feature, and at most 1.6
_LEVEL = 0.95  # of the training errors, the paper's threshold


def toy_rows(seed: int) -> tuple[Array, Array, Array]:
    """Training rows, test inliers and test outliers, (rows, 2) each."""
    rng = np.random.default_rng(seed)
    spread = np.where(rng.random(_TRAIN) < _NOISE, _NOISY_SPREAD, _SPREAD)
    train = _CENTER + rng.normal(size=(_TRAIN, 2)) * spread[:, None]
    inliers = rng.normal(_CENTER, _SPREAD, (_INLIERS, 2))
    around = rng.uniform(-1.6, 1.6, (10 * _OUTLIERS, 2))
    far = np.abs(around).max(axis=1) > _FAR
    return train, inliers, _CENTER + around[far][:_OUTLIERS]


def tasks(setup: Setup, tables: list[str]) -> list[Task]:
    """Five seeds; the first is drawn."""
    return [{"seed": seed} for seed in setup.seed_range(5)]


def measure(task: Task, setup: Setup) -> Measured:
    """Everything that the figure shows."""
    train, inliers, outliers = toy_rows(int(task["seed"]))
    detector = setup.paper_detector(_TRAIN, int(task["seed"])).fit(train)
    learned = detector.explain_global()
    unit = learned.top_units(1, 2)[0]
    lower, upper = learned.lower[unit], learned.upper[unit]
    threshold = np.quantile(detector.anomaly_score(train), _LEVEL)
    errors = [detector.anomaly_score(rows) for rows in (inliers, outliers)]
    images = [np.asarray(detector.reconstruct(rows)) for rows in (inliers, outliers)]

    low, high = train.min(axis=0), train.max(axis=0)

    def in_range(rows: Array) -> float:
        return float(((rows >= low) & (rows <= high)).all(axis=1).mean())

    def distance(rows: Array) -> float:
        return float(np.linalg.norm(rows - _CENTER, axis=1).mean())

    labels = np.repeat([0, 1], [len(inliers), len(outliers)])
    return {
        "roc_auc": roc_auc_score(labels, np.concatenate(errors)),
        "threshold": threshold,
        "inliers_above": (errors[0] > threshold).mean(),
        "outliers_above": (errors[1] > threshold).mean(),
        "inlier_error": errors[0].mean(),
        "outlier_error": errors[1].mean(),
        "outliers_in_range": in_range(outliers),
        "images_in_range": in_range(images[1]),
        "outlier_distance": distance(outliers),
        "image_distance": distance(images[1]),
        "box": [*lower, *upper],
        "inlier_errors": list(errors[0]),
        "outlier_errors": list(errors[1]),
        "images": list(np.concatenate(images).ravel()),
    }


def report(rows: list[Row]) -> Findings:
    """Whether the outliers are told apart, and whether they are pulled in."""
    found = mean_of(rows, "outliers_above")
    alarms = mean_of(rows, "inliers_above")
    before, after = mean_of(rows, "outliers_in_range"), mean_of(rows, "images_in_range")
    far, near = mean_of(rows, "outlier_distance"), mean_of(rows, "image_distance")
    ratio = mean_of(rows, "outlier_error") / mean_of(rows, "inlier_error")
    claims = [
        Claim(
            "outliers separate cleanly in the histogram of errors",
            "no numbers",
            f"{percent(found)} of outliers and {percent(alarms)} of inliers above the threshold",
            verdict(found >= 0.95, found > 0.5),
            f"the mean error of outliers is {ratio:.1f} times that of inliers, with a ROC-AUC of "
            f"{mean_of(rows, 'roc_auc'):.3f}",
        ),
        Claim(
            "out-of-support points are clipped onto the inliers",
            "no numbers",
            f"distance from the center {far:.2f} → {near:.2f}",
            verdict(after >= 0.9 and near < 0.5 * far, near < far),
            f"{percent(before)} of the outliers and {percent(after)} of their reconstructions are "
            f"in the training range; on average they are {far:.2f} and {near:.2f} from the center "
            f"(every row is clipped to the range before it is encoded)",
        ),
    ]
    header = ("seed", "ROC-AUC", "error: inliers", "outliers")
    header_more = ("above the threshold: inliers", "outliers", "reconstructed outliers in range")
    lines = [
        [
            f"{row['seed']:g}",
            f"{row['roc_auc']:.3f}",
            f"{row['inlier_error']:.3f}",
            f"{row['outlier_error']:.3f}",
            *(percent(row[m]) for m in ("inliers_above", "outliers_above", "images_in_range")),
        ]
        for row in rows
    ]
    text = (
        f"{_TRAIN} training rows around one point, {percent(_NOISE)} of them twice as far spread; "
        "the threshold is the 95th percentile of the training errors; the box is that of "
        "the most important unit.\n\n" + table((*header, *header_more), lines)
    )
    return Findings(claims, text, _figure(rows[0]))


def _figure(row: Row) -> Figure:
    train, inliers, outliers = toy_rows(int(row["seed"]))
    images = np.reshape(row["images"], (-1, 2))
    x0, y0, x1, y1 = row["box"]
    figure = new_figure(height=6.6)
    (a, b), (c, d) = figure.subplots(2, 2)
    point: dict[str, Any] = {"linestyle": "", "markersize": 3}
    for ax in (a, b, d):
        ax.add_patch(Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, edgecolor=BOX, linewidth=2))
        ax.set_xlim(-1.7, 1.9)
        ax.set_ylim(-1.9, 1.7)
        ax.set_aspect("equal")
    a.plot(*train.T, marker="o", color=QUIET, **point)
    b.plot(*inliers.T, marker="o", color=NORMAL, **point)
    b.plot(*outliers.T, marker="^", color=ANOMALY, **point)
    edges = np.linspace(0, max(row["outlier_errors"]), 30)
    c.hist(row["inlier_errors"], edges, color=NORMAL, alpha=0.75)
    c.hist(row["outlier_errors"], edges, color=ANOMALY, alpha=0.75)
    c.axvline(row["threshold"], color=INK, linestyle="--", linewidth=1.0)
    for start, end in zip(outliers, images[len(inliers) :], strict=True):
        d.plot(*zip(start, end, strict=True), color=FAINT, linewidth=0.7, zorder=1)
    d.plot(*outliers.T, marker="^", color=FAINT, **point)
    d.plot(*images[: len(inliers)].T, marker="o", color=NORMAL, **point)
    d.plot(*images[len(inliers) :].T, marker="^", color=ANOMALY, **point)
    named_axes(a, "", "", "(a) training rows and a learned box")
    named_axes(b, "", "", "(b) test rows")
    named_axes(c, "error", "test rows", "(c) errors")
    named_axes(d, "", "", "(d) rows → their reconstructions")
    top_title(figure, "The toy table in two dimensions")
    shown = (("training rows", QUIET, "o"), ("inliers", NORMAL, "o"), ("outliers", ANOMALY, "^"))
    handles: list[Any] = [Line2D([], [], marker=m, color=k, label=n, **point) for n, k, m in shown]
    handles.append(Line2D([], [], color=BOX, linewidth=2, label="box of the top unit"))
    handles.append(Line2D([], [], color=INK, linestyle="--", label="95 % of training errors"))
    legend_below(figure, handles, 5)
    return figure


STUDY = Study(
    name="toy",
    paper="fig:toy",
    question="Are inliers reconstructed, and outliers pulled onto them, in two dimensions?",
    cost="5 fits of about 1 s",
    keys=("seed",),
    measures=(
        *("roc_auc", "threshold", "inliers_above", "outliers_above", "inlier_error"),
        *("outlier_error", "outliers_in_range", "images_in_range", "outlier_distance"),
        *("image_distance", "box", "inlier_errors", "outlier_errors", "images"),
    ),
    tasks=tasks,
    measure=measure,
    report=report,
)
