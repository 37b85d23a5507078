"""How far the running mean of memberships is from the true mean, during training."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from ..bench.markdown import table
from ..engine.reference.intervals import log_memberships
from ..show.plots.drawing import QUIET, legend_below, new_figure, top_title
from .page import figure_text, present
from .study import Claim, Findings, Measured, Row, Setup, Study, Task
from .style import line_handles, look_of, named_axes

Array = NDArray[np.float64]

TABLES = ("14_glass", "18_Ionosphere", "6_cardio")
DECAYS = (0.9, 0.99, 0.999)
PAPER_DECAY = 0.999
# A fit of few epochs is the beginning of a longer one: the paper's learning rate is constant.
EPOCHS = (1, 10, 20, 50, 100, 200, 500, 1000)
_DEVIATIONS = 4  # of the noise that the bound allows for
MEASURES = (
    *("steps", "transient", "uncorrected", "from_one", "corrected", "corrected_most"),
    *("drift", "noise", "within", "mean"),
)


def tasks(setup: Setup, tables: list[str]) -> list[Task]:
    """Three seeds and decays."""
    return [
        {"table": name, "decay": decay, "seed": seed}
        for name in tables
        for decay in ((PAPER_DECAY,) if setup.quick else DECAYS)
        for seed in setup.seed_range(3)
    ]


def measure(task: Task, setup: Setup) -> Measured:
    """Distances from the mean membership μ of the training rows, after several numbers of epochs.

    Means over units and features: uncorrected, from_one: |S_t − μ| of the running mean that starts
    at 0 or 1; corrected: that of S_t / (1 − ρ^t), and corrected_most its largest. drift: how far μ
    itself has moved at most since an earlier number of epochs; noise: the standard deviation of the
    corrected mean by the proposition, if batches are independent: that of one membership, times
    √(mean of 1 / batch size), times √((1 − ρ)/(1 + ρ) · (1 + ρ^t)/(1 − ρ^t)). within: share of
    |corrected − μ| ≤ drift + 4 · noise.
    """
    name, seed, decay = str(task["table"]), int(task["seed"]), float(task["decay"])
    train, _, _ = setup.trial(name, seed)
    n_rows = setup.table(name).n_rows
    found: dict[str, list[float]] = {name: [] for name in MEASURES}
    earlier: list[Array] = []
    for epochs in EPOCHS:
        detector = setup.paper_detector(n_rows, seed, epochs=epochs, support_decay=decay)
        detector.fit(train)
        member, training = detector.model_.members[0], detector.model_.training
        steps = training.epochs * -(-training.n_rows // training.batch_size)
        rest = decay**steps
        scaled = member.scaler.transform(train)[0]
        memberships = np.exp(
            log_memberships(scaled, member.lower, member.upper, detector.temperature)
        )
        mean, corrected = memberships.mean(axis=0), member.support.astype(np.float64)
        sizes = np.full(-(-len(train) // training.batch_size), training.batch_size)
        sizes[-1] = len(train) - sizes[:-1].sum()  # a last batch of one row counts like the others
        scale = np.sqrt((1 - decay) / (1 + decay) * (1 + rest) / (1 - rest) * (1 / sizes).mean())
        noise = scale * memberships.std(axis=0)
        moved = np.max([np.abs(before - mean) for before in earlier] or [0 * mean], axis=0)
        earlier.append(mean)
        error = np.abs(corrected - mean)
        for measure, value in {
            "steps": steps,
            "transient": rest,
            "uncorrected": np.abs((1 - rest) * corrected - mean).mean(),
            "from_one": np.abs((1 - rest) * corrected + rest - mean).mean(),
            "corrected": error.mean(),
            "corrected_most": error.max(),
            "drift": moved.mean(),
            "noise": noise.mean(),
            "mean": mean.mean(),
            "within": (error <= moved + _DEVIATIONS * noise + 1e-6).mean(),
        }.items():
            found[measure].append(float(value))
    return dict(found)


def report(rows: list[Row]) -> Findings:
    """How the errors fall with the steps, beside what the proposition says."""
    paper = [row for row in rows if row["decay"] == PAPER_DECAY]
    tables = present(paper, "table")
    means = {
        name: {m: np.mean([r[m] for r in paper if r["table"] == name], axis=0) for m in MEASURES}
        for name in tables
    }
    last = [float(found["corrected"][-1]) for found in means.values()]
    raw = [float(found["uncorrected"][-1]) for found in means.values()]
    rests = [float(found["transient"][-1]) for found in means.values()]
    # The transient as a share of what the proposition gives, ρ^t · μ, where it is visible.
    expected, seen = [], []
    for row in paper:
        for i, rest in enumerate(row["transient"]):
            if rest > 0.05:
                expected.append(rest * row["mean"][i])
                seen.append(row["uncorrected"][i])
    ratio = float(np.sum(seen) / np.sum(expected)) if expected else np.nan
    within = float(np.min([row["within"][1:] for row in rows]))  # drift is since the first
    within_last = float(np.min([row["within"][-1] for row in rows]))
    claims = [
        Claim(
            "The start S₀ fades as ρ^t: the mean error is ρ^t times its distance from μ",
            "1.00 times",
            f"{ratio:.2f} times",
            "holds" if 0.9 < ratio < 1.1 else "does not hold",
            f"the error of the running mean from 0 is {ratio:.2f} times that, where ρ^t > 0.05; "
            "this is nearly an identity (a running mean from 0 is 1 − ρ^t times a weighted mean of "
            "the memberships), so that it says only that this mean is near μ",
        ),
        Claim(
            "The running mean is asymptotically unbiased",
            "error → 0",
            f"{min(raw):.3f} to {max(raw):.3f}",
            "holds" if max(raw) < 0.01 else "holds in part",
            f"after the last epoch {100 * min(rests):.0f} to {100 * max(rests):.0f} % of the start "
            f"remain with ρ = {PAPER_DECAY}; divided by 1 − ρ^t, the error is {min(last):.4f} to "
            f"{max(last):.4f}",
        ),
        Claim(
            "It has finite memory: its error is bounded by noise and by how far μ has moved",
            "not measured",
            f"{100 * within_last:.1f} % after the last epoch",
            "holds" if within > 0.98 else "does not hold",
            f"of the (unit, feature) pairs of every fit at least {100 * within_last:.1f} % are "
            f"within drift + {_DEVIATIONS} standard deviations after the last epoch, and "
            f"{100 * within:.1f} % at every earlier time but the first; with the correction",
        ),
    ]
    return Findings(claims, _text(rows, means), _figure(means))


def _text(rows: list[Row], means: dict[str, dict[str, Array]]) -> str:
    header = (
        *("table", "steps", "ρ^t", "from 0", "from 1", "corrected", "largest", "drift", "noise"),
        "within the bound",
    )
    lines = [
        [
            name,
            f"{found['steps'][i]:,.0f}",
            *(figure_text(found[m][i]) for m in MEASURES[1:4]),
            *(figure_text(found[m][i], 4) for m in MEASURES[4:8]),
            f"{100 * found['within'][i]:.1f} %",
        ]
        for name, found in means.items()
        for i in range(len(found["steps"]))
    ]
    others = []
    for decay in present(rows, "decay"):
        chosen = [row for row in rows if row["decay"] == decay]
        final = {m: np.mean([row[m][-1] for row in chosen]) for m in MEASURES}
        others.append(
            [f"{decay:g}", figure_text(final["uncorrected"])]
            + [figure_text(final[m], 4) for m in ("corrected", "noise", "drift")]
        )
    return (
        "Mean absolute distance of the running mean of memberships from the mean membership of "
        f"the training rows, over units and features and {len(present(rows, 'seed'))} seeds, with "
        f"ρ = {PAPER_DECAY}. *From 0*, *from 1*: as it is, by where it starts (the paper does not "
        "say; its table of active coordinates agrees with 1). *Corrected*: divided by 1 − ρ^t, "
        "which this library does; *largest*: over all pairs. *Drift*: how far the true mean has "
        "moved; *noise*: the standard deviation that the proposition gives.\n\n"
        + table(header, lines)
        + "\nAfter the last epoch, mean over the tables:\n\n"
        + table(("ρ", "from 0", "corrected", "noise", "drift"), others)
    )


def _figure(means: dict[str, dict[str, Array]]) -> Figure:
    figure = new_figure(height=3.4)
    ax = figure.add_subplot()
    for number, found in enumerate(means.values()):
        look = look_of(number)
        ax.plot(found["steps"], found["uncorrected"], **{**look, "linestyle": ":"})
        ax.plot(found["steps"], found["corrected"], **look)
        allowed = found["drift"] + _DEVIATIONS * found["noise"]
        ax.plot(found["steps"], allowed, color=look["color"], linestyle="--", linewidth=1.0)
    named_axes(ax, "training steps", "mean |running mean − true mean|")
    ax.set_xscale("log")
    ax.set_yscale("log")
    top_title(figure, f"The running mean of memberships, ρ = {PAPER_DECAY}")
    styles: dict[str, Any] = {
        "from 0": ":",
        "divided by 1 − ρ^t": "-",
        "its bound (drift and noise)": "--",
    }
    handles = [
        *line_handles(list(means), paper=False),
        *(Line2D([], [], color=QUIET, linestyle=s, label=label) for label, s in styles.items()),
    ]
    legend_below(figure, handles, 3)
    return figure


STUDY = Study(
    name="support",
    paper="prop:ema",
    question="Is the running mean of memberships near the true mean when it is used?",
    cost="216 fits of about 0.4 s",
    keys=("table", "decay", "seed"),
    measures=MEASURES,
    tasks=tasks,
    measure=measure,
    report=report,
    tables=TABLES,
    quick_tables=TABLES[:2],
)
