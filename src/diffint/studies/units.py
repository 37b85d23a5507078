"""How many units the bottleneck needs: accuracy, and the error of outliers, as K grows."""

from __future__ import annotations

from matplotlib.figure import Figure
from sklearn.metrics import roc_auc_score

from ..show.plots.drawing import legend_below, new_figure, top_title
from .page import comparison_table, mean_of, present
from .study import Claim, Findings, Measured, Row, Setup, Study, Task, verdict
from .style import line_handles, look_of, named_axes, ticks_at

UNITS = (5, 10, 20, 50, 100, 200, 300)
_QUICK_UNITS = (5, 50, 200)
# fig:ablation names no tables and prints no numbers; these are tables that it uses elsewhere.
TABLES = ("18_Ionosphere", "6_cardio", "31_satimage-2")
_SAME = 0.01  # a difference of ROC-AUC that the paper would call none


def tasks(setup: Setup, tables: list[str]) -> list[Task]:
    """Every number of units on every table."""
    return [
        {"table": name, "n_units": n_units, "seed": seed}
        for name in tables
        for n_units in (_QUICK_UNITS if setup.quick else UNITS)
        for seed in setup.seed_range(3)
    ]


def measure(task: Task, setup: Setup) -> Measured:
    """ROC-AUC, and the mean error of test inliers and outliers, in [−1, 1] units."""
    name, seed = str(task["table"]), int(task["seed"])
    train, test, labels = setup.trial(name, seed)
    n_rows = setup.table(name).n_rows
    detector = setup.paper_detector(n_rows, seed, n_units=task["n_units"]).fit(train)
    scores = detector.anomaly_score(test)  # the mean absolute error, in this configuration
    return {
        "roc_auc": roc_auc_score(labels, scores),
        "inlier_error": scores[labels == 0].mean(),
        "outlier_error": scores[labels == 1].mean(),
    }


def report(rows: list[Row]) -> Findings:
    """Three tables, and whether accuracy saturates while the error of outliers stays."""
    tables, units = present(rows, "table"), sorted(present(rows, "n_units"))
    mean = {
        (name, k, m): mean_of(rows, m, table=name, n_units=k)
        for name in tables
        for k in units
        for m in ("roc_auc", "inlier_error", "outlier_error")
    }
    fewest, most = units[0], units[-1]
    half = max(k for k in units if k <= 100)
    lost = {t: mean[t, 200, "roc_auc"] - mean[t, half, "roc_auc"] for t in tables}
    worst = max(tables, key=lambda t: lost[t])
    kept, sharper = (
        {t: mean[t, most, m] / mean[t, fewest, m] for t in tables}
        for m in ("outlier_error", "inlier_error")
    )
    selective = [t for t in tables if kept[t] > sharper[t]]
    enough = {
        t: min(k for k in units if mean[t, k, "roc_auc"] >= mean[t, most, "roc_auc"] - _SAME)
        for t in tables
    }
    claims = [
        Claim(
            "ROC-AUC saturates well below K = 200",
            "no numbers",
            ", ".join(f"{t} from {k:g}" for t, k in enough.items()),
            verdict(max(enough.values()) < 200),
            f"the tables are within {_SAME} of their accuracy with {most:g} units from "
            f"{', '.join(f'{k:g}' for k in sorted(set(enough.values())))} units on",
        ),
        Claim(
            "K can be halved without a measurable loss",
            "none",
            f"at most {max(lost.values()):.3f}",
            verdict(max(lost.values()) <= _SAME),
            f"{half:g} units instead of 200 cost most on {worst}, {max(lost[worst], 0.0):.3f}",
        ),
        Claim(
            "the error of outliers stays high while that of inliers falls",
            "no numbers",
            f"× {min(kept.values()):.2f}–{max(kept.values()):.2f} against "
            f"× {min(sharper.values()):.2f}–{max(sharper.values()):.2f}",
            verdict(len(selective) == len(tables), bool(selective)),
            f"from {fewest:g} to {most:g} units, the error of outliers keeps more of its size than "
            f"that of inliers on {len(selective)} of {len(tables)} tables",
        ),
    ]
    names = {k: f"K = {k:g}" for k in units}
    text = f"Means over {len(present(rows, 'seed'))} seeds.\n"
    for title, measure_name in (
        ("ROC-AUC", "roc_auc"),
        ("Mean error of test outliers", "outlier_error"),
        ("Mean error of test inliers", "inlier_error"),
    ):
        text += f"\n{title}:\n\n{comparison_table(rows, measure_name, 'n_units', names)}"
    return Findings(claims, text, _figure(tables, units, mean))


def _figure(
    tables: list[str], units: list[float], mean: dict[tuple[str, float, str], float]
) -> Figure:
    figure = new_figure(height=3.4)
    left, right = figure.subplots(1, 2)
    for number, name in enumerate(tables):
        look = look_of(number)
        left.plot(units, [mean[name, k, "roc_auc"] for k in units], **look)
        right.plot(units, [mean[name, k, "outlier_error"] for k in units], **look)
        inliers = [mean[name, k, "inlier_error"] for k in units]
        right.plot(units, inliers, **{**look, "linestyle": ":", "fillstyle": "none"})
    named_axes(left, "units K", "ROC-AUC", "(a)")
    named_axes(right, "units K", "mean error", "(b) outliers; dotted: inliers")
    for ax in (left, right):
        ticks_at(ax, units)
    right.set_ylim(bottom=0)
    top_title(figure, "Accuracy and error with K units")
    legend_below(figure, line_handles(tables, paper=False), 3)
    return figure


STUDY = Study(
    name="units",
    paper="fig:ablation",
    question="How many units does the bottleneck need?",
    cost="63 fits of about 2 s",
    keys=("table", "n_units", "seed"),
    measures=("roc_auc", "inlier_error", "outlier_error"),
    tasks=tasks,
    measure=measure,
    report=report,
    tables=TABLES,
    quick_tables=TABLES[:1],
)
