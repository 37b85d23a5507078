"""Anomalies among the training rows: what they cost, and what `suspected_share` wins back.

The training rows are the inliers of the training part and as many of its anomalies as make up 5, 10
or 20 % of them, or all it has if these are fewer: of the tables only WPBC has enough for 20 %, and
Lymphography, glass and WBC have no more than 3 to 5 %. The page has the true shares.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from ..bench.markdown import table
from ..bench.protocol import TEST_SHARE
from ..core.formatting import listed, percent
from ..estimator import DiffInt
from ..show.plots.drawing import legend_below, new_figure, top_title
from .page import comparison_table, figure_text, mean_of, paired_difference, present, signed
from .study import Claim, Findings, Measured, Row, Setup, Study, Task, verdict, verdict_on_gain
from .style import line_handles, look_of, named_axes, paper_look

SHARES = (0.0, 0.05, 0.1, 0.2)
# tab:ab-contam: three seeds.
PAPER = {
    name: dict(zip(SHARES, values, strict=True))
    for name, values in {
        "45_wine": (0.950, 0.659, 0.645, 0.624),
        "21_Lymphography": (0.994, 0.978, 0.970, 0.973),
        "46_WPBC": (0.584, 0.565, 0.570, 0.520),
        "14_glass": (0.876, 0.755, 0.728, 0.726),
        "42_WBC": (0.998, 0.979, 0.982, 0.976),
        "39_vertebral": (0.477, 0.458, 0.432, 0.456),
        "37_Stamps": (0.953, 0.865, 0.816, 0.766),
    }.items()
}
PAPER_MEANS = dict(zip(SHARES, (0.833, 0.751, 0.735, 0.720), strict=True))
# The detectors: the configuration and its `suspected_share`; "true" is the share of anomalies.
DETECTORS = {
    "paper": "the paper's configuration",
    "paper, true": "the same, suspected_share = the true share",
    "ours": "ours, suspected_share = 0 (default)",
    "ours, true": "ours, suspected_share = the true share",
    "ours, auto": 'ours, suspected_share = "auto"',
}


def tasks(setup: Setup, tables: list[str]) -> list[Task]:
    """Every share of anomalies with every detector."""
    return [
        {"table": name, "share": share, "detector": detector, "seed": seed}
        for name in tables
        for share in (SHARES[::3] if setup.quick else SHARES)
        for detector in DETECTORS
        for seed in setup.seed_range(3)
        if share or "true" not in detector
    ]


def measure(task: Task, setup: Setup) -> Measured:
    """ROC-AUC on the test part, the true share, and how many suspects are anomalies."""
    labelled, seed, share = setup.table(str(task["table"])), int(task["seed"]), float(task["share"])
    train, test, anomalous, labels = train_test_split(
        labelled.x, labelled.y.astype(bool), test_size=TEST_SHARE, random_state=seed
    )
    rng = np.random.default_rng(seed)
    inliers, anomalies = np.flatnonzero(~anomalous), rng.permutation(np.flatnonzero(anomalous))
    added = anomalies[: round(share / (1 - share) * len(inliers))]
    rows = rng.permutation(np.concatenate([inliers, added]))
    dirty = anomalous[rows]
    name, _, how = str(task["detector"]).partition(", ")
    suspected: dict[str, Any] = {"true": float(dirty.mean()), "auto": "auto", "": 0.0}
    if name == "paper":
        detector = setup.paper_detector(labelled.n_rows, seed, suspected_share=suspected[how])
    else:
        detector = DiffInt(
            suspected_share=suspected[how], random_state=seed, n_jobs=1, device=setup.device
        )
    detector.fit(train[rows])
    return {
        "roc_auc": roc_auc_score(labels, detector.anomaly_score(test)),
        "true_share": float(dirty.mean()),
        "found": _share(detector.suspects_[dirty]),
        "lost": _share(detector.suspects_[~dirty]),
    }


def _share(mask: NDArray[np.bool_]) -> float | None:
    return float(mask.mean()) if len(mask) else None


def report(rows: list[Row]) -> Findings:
    """One table per detector, and what is won back at the largest share."""
    shares = [share for share in SHARES if share in present(rows, "share")]
    most, tables = shares[-1], present(rows, "table")
    means = {
        name: [mean_of(rows, "roc_auc", detector=name, share=share) for share in shares]
        for name in DETECTORS
    }
    lost, lost_error = paired_difference(
        rows, "roc_auc", {"detector": "paper", "share": 0.0}, {"detector": "paper", "share": most}
    )
    won, won_error = paired_difference(
        rows,
        "roc_auc",
        {"detector": "ours, auto", "share": most},
        {"detector": "ours", "share": most},
    )
    at_most = means["paper"][-1]
    before, after = (
        {t: mean_of(rows, "roc_auc", table=t, detector="paper", share=s) for t in tables}
        for s in (0.0, most)
    )
    below = [t for t in tables if after[t] < 0.5]
    at_once = [t for t in below if before[t] < 0.5]
    never_rises = all(b - a <= 0.005 for a, b in pairwise(means["paper"]))
    true = [mean_of(rows, "true_share", share=share, detector="paper") for share in shares]
    claims = [
        Claim(
            f"{percent(most)} anomalies in training cost 11 points of ROC-AUC",
            f"{PAPER_MEANS[0.0]:.3f} → {PAPER_MEANS[most]:.3f}",
            f"{means['paper'][0]:.3f} → {at_most:.3f}",
            verdict_on_gain(lost, lost_error, PAPER_MEANS[0.0] - PAPER_MEANS[most]),
            f"at the shares that the tables allow, {100 * true[-1]:.1f} % on average, they cost "
            f"{signed(lost, lost_error)}, mean over the tables with its standard error",
        ),
        Claim(
            "the loss is graceful, and accuracy stays well above chance",
            figure_text(PAPER_MEANS[most]),
            figure_text(at_most),
            verdict(never_rises and not below and at_most > 0.6, never_rises and at_most > 0.6),
            f"the mean goes {' → '.join(figure_text(mean) for mean in means['paper'])} at mean "
            f"true shares of {', '.join(f'{100 * share:.1f}' for share in true)} %"
            + (f"; below 0.5 at the end: {listed(below)}" if below else "")
            + (f" (already without anomalies: {listed(at_once)})" if at_once else ""),
        ),
        Claim(
            "(not in the paper) suspected_share wins some of it back",
            "–",
            signed(won, won_error),
            verdict_on_gain(won, won_error),
            f'at the largest shares, {100 * true[-1]:.1f} % on average, "auto" changes our mean by '
            f"{signed(won, won_error)}",
        ),
    ]
    text = (
        f"ROC-AUC, mean over {len(present(rows, 'seed'))} seeds; in square brackets the paper's. "
        "The columns have nominal shares of anomalies. Where the training part has too few, it "
        "keeps all it has, and the true share is smaller; the paper does not say what it does "
        "there.\n\n## True shares of anomalies, %\n\n"
    )
    names = {share: percent(share) for share in shares}
    counted = [
        {**row, "percent": 100 * row["true_share"]} for row in rows if row["detector"] == "paper"
    ]
    text += comparison_table(counted, "percent", "share", names, digits=1)
    for name, title in DETECTORS.items():
        chosen = [row for row in rows if row["detector"] == name]
        columns = {s: names[s] for s in shares if s or "true" not in name}
        paper = PAPER if name == "paper" else None
        text += f"\n## {title[0].upper()}{title[1:]}\n\n"
        text += comparison_table(chosen, "roc_auc", "share", columns, paper)
    text += "\n## What is left out\n\nMeans over all tables and seeds.\n\n"
    text += table(
        ("detector", "anomalies", "anomalies found", "ordinary rows left out"),
        [
            [
                DETECTORS[name],
                names[share],
                *(_percent(rows, m, name, share) for m in ("found", "lost")),
            ]
            for name in DETECTORS
            if "," in name
            for share in shares
            if share or "true" not in name
        ],
    )
    return Findings(claims, text, _figure(shares, true, means))


def _percent(rows: list[Row], measure: str, detector: str, share: float) -> str:
    value = mean_of(rows, measure, detector=detector, share=share)
    return "–" if math.isnan(value) else f"{100 * value:.1f} %"


def _figure(shares: list[float], true: list[float], means: dict[str, list[float]]) -> Figure:
    """Mean ROC-AUC by the nominal share; below it the mean true share."""
    figure = new_figure(height=3.8)
    ax = figure.add_subplot()
    for number, values in enumerate(means.values()):
        ax.plot([100 * share for share in shares], values, **look_of(number))
    theirs = [PAPER_MEANS[share] for share in shares]
    ax.plot([100 * share for share in shares], theirs, **paper_look(0))
    named_axes(ax, "anomalies in training, %: nominal (mean true share)", "mean ROC-AUC")
    labels = [f"{100 * s:.0f}\n({100 * t:.1f})" for s, t in zip(shares, true, strict=True)]
    ax.set_xticks([100 * share for share in shares], labels)
    top_title(figure, "Anomalies among the training rows")
    legend_below(figure, line_handles(list(DETECTORS.values())), 2)
    return figure


STUDY = Study(
    name="contamination",
    paper="tab:ablate (b), tab:ab-contam",
    question="What do anomalies among the training rows cost, and what wins it back?",
    cost="378 fits of about 1 s",
    keys=("table", "share", "detector", "seed"),
    measures=("roc_auc", "true_share", "found", "lost"),
    tasks=tasks,
    measure=measure,
    report=report,
    tables=tuple(PAPER),
    quick_tables=("45_wine",),
)
