"""What clipping rows to the training range does to scores and memberships."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from ..bench.markdown import table
from ..core.model import Member
from ..engine.reference.intervals import codes, log_memberships
from ..show.plots.drawing import (
    ACCENT,
    ANOMALY,
    BOX,
    FAINT,
    NORMAL,
    has_long_tail,
    legend_below,
    new_figure,
    top_title,
)
from .page import beside, figure_text, mean_of, present, signed
from .study import Claim, Findings, Measured, Row, Setup, Study, Task, verdict
from .style import named_axes

Array = NDArray[np.float64]

EPOCHS = 200
# tab:clamp: extreme rows, ROC-AUC with and without clipping, mean change of their scores; one seed.
PAPER = {
    "14_glass": (5, 0.810, 0.798, 0.10),
    "18_Ionosphere": (70, 0.963, 0.969, 0.04),
    "6_cardio": (62, 0.969, 0.971, 0.12),
}
_ROUNDING = 1e-6  # an end of the training range may be scaled to slightly more than 1
_SHOWN = 40  # extreme rows of a fit in the figure
MEASURES = (
    *("n_test", "n_extreme", "clipped", "unclipped", "encoder_clipped", "change"),
    *("raised", "lowered", "boxes_raised", "scores_lowered", "masked", "anomalies"),
    *("shown_clipped", "shown_unclipped", "shown_anomaly"),
)


def tasks(setup: Setup, tables: list[str]) -> list[Task]:
    """Five seeds; the paper has one."""
    return [{"table": name, "seed": seed} for name in tables for seed in setup.seed_range(5)]


def measure(task: Task, setup: Setup) -> Measured:
    """Scores and memberships of the same fit with and without clipping.

    clipped, unclipped, encoder_clipped: ROC-AUC; the last clips what the encoder is given, and
    limits what the error is measured against to [−3, 3], as the recommended configuration does.
    change: mean of |score − unclipped score| over the extreme rows. raised, lowered: shares of the
    memberships of values out of range that clipping raises and lowers; boxes_raised: the same of
    box memberships of extreme rows. masked: anomalies flagged only without clipping, of
    `anomalies`, with the 95th percentile of training scores as threshold; scores_lowered: share of
    extreme rows.
    """
    name, seed = str(task["table"]), int(task["seed"])
    train, test, labels = setup.trial(name, seed)
    detector = setup.paper_detector(setup.table(name).n_rows, seed, epochs=EPOCHS).fit(train)
    member, temperature = detector.model_.members[0], detector.temperature
    row, limited = (part.astype(np.float64) for part in member.scaler.transform(test))
    # The detector limits its unclipped values to [−3, 3]; here only those of constant features are,
    # which have no range that could scale them.
    raw = np.where(member.scaler.varies, member.scaler.scaled(test), limited)
    raw = np.where(np.abs(raw - row) > _ROUNDING, raw, row)
    scores = {
        "clipped": _scores(member, row, row, temperature),
        "unclipped": _scores(member, raw, raw, temperature),
        "encoder_clipped": _scores(member, row, limited, temperature),
    }
    if not np.allclose(scores["clipped"], detector.anomaly_score(test), rtol=1e-3, atol=1e-5):
        raise RuntimeError("the clipped scores of the study are not those of the detector")
    beyond = raw != row
    extreme = beyond.any(axis=1)
    logs = [
        log_memberships(x[extreme], member.lower, member.upper, temperature) for x in (row, raw)
    ]
    outside = np.broadcast_to(beyond[extreme][:, None, :], logs[0].shape)
    boxes = [log.sum(axis=2) for log in logs]
    limit = np.quantile(detector.anomaly_score(train), 0.95)
    anomaly = labels == 1
    flagged = {kind: anomaly & (score > limit) for kind, score in scores.items()}
    change = scores["clipped"] - scores["unclipped"]
    shown = np.random.default_rng(0).permutation(np.flatnonzero(extreme))[:_SHOWN]
    return {
        "n_test": len(test),
        "n_extreme": int(extreme.sum()),
        **{kind: roc_auc_score(labels, score) for kind, score in scores.items()},
        "change": np.abs(change[extreme]).mean(),
        "raised": (logs[0] > logs[1])[outside].mean(),
        "lowered": (logs[0] < logs[1])[outside].mean(),
        "boxes_raised": (boxes[0] > boxes[1]).mean(),
        "scores_lowered": (change[extreme] < 0).mean(),
        "masked": int((flagged["unclipped"] & ~flagged["clipped"]).sum()),
        "anomalies": int(anomaly.sum()),
        "shown_clipped": scores["clipped"][shown].tolist(),
        "shown_unclipped": scores["unclipped"][shown].tolist(),
        "shown_anomaly": labels[shown].tolist(),
    }


def _scores(member: Member, encoded: Array, target: Array, temperature: float) -> Array:
    """Mean absolute errors. encoded, target: (rows, features) scaled → (rows,)"""
    code = codes(encoded, member.lower, member.upper, temperature)
    return np.asarray(np.abs(target - member.decoder.reconstruct(code)).mean(axis=1))


def report(rows: list[Row]) -> Findings:
    """The paper's table, and the claim about memberships."""
    tables = present(rows, "table")
    gaps = [
        abs(mean_of(rows, "clipped", table=t) - mean_of(rows, "unclipped", table=t)) for t in tables
    ]
    raised, lowered, boxes = (mean_of(rows, m) for m in ("raised", "lowered", "boxes_raised"))
    masked, anomalies = (int(sum(row[m] for row in rows)) for m in ("masked", "anomalies"))
    changes = [mean_of(rows, "change", table=t) for t in tables]
    alike = [0.5 <= c / PAPER[t][3] <= 2 for c, t in zip(changes, tables, strict=True)]
    falling = mean_of(rows, "scores_lowered")
    gain = mean_of(rows, "encoder_clipped") - mean_of(rows, "clipped")
    claims = [
        Claim(
            "Clipping can only lower memberships",
            "never raised",
            f"{100 * raised:.0f} % raised",
            "holds" if raised == 0 else "does not hold",
            f"of the memberships of values out of range, clipping raises {100 * raised:.1f} % and "
            f"lowers {100 * lowered:.1f} %: it moves values towards the centers; of the box "
            f"memberships it raises {100 * boxes:.1f} %",
        ),
        Claim(
            "Clipping hardly changes ROC-AUC",
            "at most 0.012",
            f"at most {max(gaps):.3f}",
            "holds" if max(gaps) <= 0.02 else "does not hold",
            f"the largest difference of a table's means is {max(gaps):.3f}",
        ),
        Claim(
            "Scores of extreme rows change by 0.04 to 0.12 on average",
            "0.04 to 0.12",
            f"{min(changes):.2f} to {max(changes):.2f}",
            verdict(all(alike), any(alike)),
            "the means of the tables are "
            + ", ".join(beside(c, PAPER[t][3], 2) for c, t in zip(changes, tables, strict=True))
            + f" ({sum(alike)} of {len(tables)} are half to twice the paper's); for "
            f"{100 * falling:.0f} % of the extreme rows clipping lowers the score",
        ),
        Claim(
            "Clipping masks no anomaly",
            "0",
            f"{masked} of {anomalies}",
            "holds" if masked == 0 else "does not hold",
            f"{masked} of {anomalies} test anomalies are above the 95th percentile of training "
            "scores only without clipping",
        ),
    ]
    lines = [
        [
            name,
            f"{mean_of(rows, 'n_test', table=name):.0f}",
            beside(mean_of(rows, "n_extreme", table=name), PAPER[name][0], 0),
            beside(mean_of(rows, "clipped", table=name), PAPER[name][1]),
            beside(mean_of(rows, "unclipped", table=name), PAPER[name][2]),
            figure_text(mean_of(rows, "encoder_clipped", table=name)),
            beside(mean_of(rows, "change", table=name), PAPER[name][3], 2),
            f"{100 * mean_of(rows, 'raised', table=name):.1f} %",
            f"{100 * mean_of(rows, 'lowered', table=name):.1f} %",
        ]
        for name in tables
    ]
    header = (
        *("table", "test rows", "extreme", "clipped", "unclipped", "encoder clipped"),
        *("change of score", "memberships raised", "lowered"),
    )
    text = (
        f"{EPOCHS} epochs, mean over {len(present(rows, 'seed'))} seeds; the paper's numbers, of "
        "one seed, in square brackets. *Extreme*: test rows with a value outside the training "
        "range. *Clipped*, *unclipped*, *encoder clipped*: ROC-AUC if everything is clipped, "
        "nothing, or only what the encoder is given, with the error measured against values "
        f"limited to [−3, 3] (which `DiffInt()` does): the mean changes by {signed(gain)}. "
        "*Raised*, *lowered*: memberships of values out of range, by clipping; the rest does not "
        "change, as 1e-8 is the smallest.\n\n" + table(header, lines)
    )
    return Findings(claims, text, _figure(rows, tables))


def _figure(rows: list[Row], tables: list[str]) -> Figure:
    figure = new_figure(height=3.2)
    left, right = figure.subplots(1, 2)
    place = np.arange(len(tables))
    kinds = {"clipped": NORMAL, "unclipped": ANOMALY}
    for shift, (kind, colour) in zip((-0.2, 0.2), kinds.items(), strict=True):
        ours = [mean_of(rows, kind, table=t) for t in tables]
        left.bar(place + shift, ours, 0.36, color=colour)
        paper = [PAPER[t][1 if kind == "clipped" else 2] for t in tables]
        left.plot(place + shift, paper, "_", color="black", markersize=16)
    named_axes(left, "", "ROC-AUC", "Accuracy (black line: the paper)")
    left.set_ylim(0.5, 1.0)
    left.set_xticks(place, [name.partition("_")[2] for name in tables])
    points = {
        name: np.concatenate([row[f"shown_{name}"] for row in rows])
        for name in ("clipped", "unclipped", "anomaly")
    }
    ends = [0.0, 1.02 * points["clipped"].max()]
    right.plot(ends, ends, color=FAINT, zorder=0)
    for label, colour, marker in ((0, BOX, "o"), (1, ACCENT, "^")):
        chosen = points["anomaly"] == label
        look = {"color": colour, "marker": marker, "markersize": 3.5, "alpha": 0.7}
        right.plot(points["unclipped"][chosen], points["clipped"][chosen], ls="none", **look)
    named_axes(right, "score, not clipped", "score, clipped", "Test rows out of range")
    if has_long_tail(points["unclipped"]):
        right.set_xscale("log")
    top_title(figure, "Clipping rows to the training range")
    handles = [Patch(label=kind, color=colour) for kind, colour in kinds.items()]
    handles += [Patch(label="inliers", color=BOX), Patch(label="anomalies", color=ACCENT)]
    legend_below(figure, handles, 4)
    return figure


STUDY = Study(
    name="clamping",
    paper="tab:clamp",
    question="What does clipping to the training range do, and can it raise memberships?",
    cost="15 fits of about 0.5 s",
    keys=("table", "seed"),
    measures=MEASURES,
    tasks=tasks,
    measure=measure,
    report=report,
    tables=tuple(PAPER),
    quick_tables=("14_glass", "18_Ionosphere"),
)
