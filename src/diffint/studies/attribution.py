"""Global importance beside attributions of single rows that are averaged, on synthetic rows."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from ..bench.markdown import MISSING, table
from ..explain.stability_over_fits import rank_correlations
from ..show.plots.drawing import QUIET, new_figure, top_title
from . import attributions
from .importances import correlation_with_random, detector_of, importance_by
from .page import beside, figure_text, mean_of, present
from .study import Claim, Findings, Measured, Row, Setup, Study, Task
from .style import COLOURS, named_axes

Array = NDArray[np.float64]

FAMILIES = {20: (6, 3), 28: (10, 2), 36: (14, 2)}  # features: tight ones, trainings
# "centred": tight features are normal, broad ones uniform. "placed": a tight feature is anywhere in
# its range, and one value in fifty is uniform, so that all ranges are equally wide.
VARIANTS = ("centred", "placed")
_ROWS, _POOL = 1_000, 40
STEPS, SAMPLES = 24, 120


class Method(NamedTuple):
    """A ranking: its name, and the paper's separation, agreement, stability, Gini and queries."""

    name: str
    separation: float | None = None
    agreement: float | None = None
    stability: float | None = None
    gini: float | None = None
    queries: int | None = None


# tab:lfi-global
METHODS = {
    "lfi": Method("LFI (the paper's importance)", 1.00, None, 0.71, 0.11, 0),
    "ours": Method("importance of `DiffInt()`", queries=0),
    "gradient": Method("gradient × input", 1.00, 0.71, 0.69, 0.33, 1),
    "integrated": Method("integrated gradients", 1.00, 0.69, 0.66, 0.45, STEPS),
    "shap": Method("KernelSHAP", 1.00, 0.72, 0.67, 0.58, SAMPLES),
    "ecod": Method("ECOD tails", 1.00, 0.74, 0.67, 0.47, 0),
}
PAPER_SANITY = 0.01
MEASURES = (*METHODS, "tight", "sanity", "sanity_ours", "roc_auc")


def tasks(setup: Setup, tables: list[str]) -> list[Task]:
    """Seven trainings of each variant; two of the smallest family in a quick run."""
    families = {20: (6, 2)} if setup.quick else FAMILIES
    return [
        {"variant": variant, "features": d, "seed": seed}
        for variant in VARIANTS
        for d, (_, trainings) in families.items()
        for seed in range(trainings)
    ]


def measure(task: Task, setup: Setup) -> Measured:
    """Importance of every feature by each method: attributions are means over flagged anomalies."""
    d, seed = int(task["features"]), int(task["seed"])
    train, anomalies, tight = family(d, FAMILIES[d][0], str(task["variant"]), seed)
    paper = detector_of("paper", setup, _ROWS, seed).fit(train)
    ours = detector_of("recommended", setup, _ROWS, seed).fit(train)
    scores = paper.anomaly_score(anomalies)
    pool = anomalies[np.argsort(-scores)[: 10 if setup.quick else _POOL]]
    each: dict[str, Array | None] = {
        "gradient": attributions.gradient_times_input(paper, pool),
        "integrated": attributions.integrated_gradients(paper, train, pool, STEPS),
        "shap": attributions.kernel_shap(paper, train, pool, seed, SAMPLES)
        if attributions.is_installed("shap")
        else None,
        "ecod": attributions.ecod_tails(train, pool),
    }
    labels = np.repeat([0, 1], [len(train), len(anomalies)])
    return {
        "lfi": importance_by(paper.model_, "paper").tolist(),
        "ours": importance_by(ours.model_, "boxes").tolist(),
        **{m: None if a is None else np.abs(a).mean(axis=0).tolist() for m, a in each.items()},
        "tight": tight.astype(float).tolist(),
        "sanity": correlation_with_random(paper.model_, train, "paper"),
        "sanity_ours": correlation_with_random(ours.model_, train, "boxes"),
        "roc_auc": roc_auc_score(labels, np.concatenate([paper.anomaly_score(train), scores])),
    }


def family(
    n_features: int, n_tight: int, variant: str, seed: int
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Training rows, anomalies, and which features are tight; the same ones for every seed.

    Anomalies differ from rows in every tight feature, by a uniform value at least 0.3 from its
    center.
    """
    shape, rng = np.random.default_rng(n_features), np.random.default_rng([n_features, seed])
    tight = np.zeros(n_features, dtype=bool)
    tight[shape.choice(n_features, n_tight, replace=False)] = True
    center = shape.uniform(-0.95, 0.95, n_features) if variant == "placed" else 0.0
    spread = shape.uniform(0.03, 0.1, n_features)

    def draw(n_rows: int) -> Array:
        broad = rng.uniform(-1, 1, (n_rows, n_features))
        narrow = rng.normal(center, spread, broad.shape)
        strays = 0.02 if variant == "placed" else 0.0
        return np.where(tight & (rng.random(broad.shape) >= strays), narrow, broad)

    train, anomalies = draw(_ROWS), draw(_ROWS // 10)
    for row in anomalies:
        for j in np.flatnonzero(tight):
            row[j] = rng.uniform(-1, 1)
            while abs(row[j] - np.broadcast_to(center, n_features)[j]) < 0.3:
                row[j] = rng.uniform(-1, 1)
    return train, anomalies, tight


def report(rows: list[Row]) -> Findings:
    """The paper's table for both variants."""
    found = {
        (variant, method): _summary([r for r in rows if r["variant"] == variant], method)
        for variant in present(rows, "variant")
        for method in METHODS
    }
    main = {method: found["centred", method] for method in METHODS}
    placed = {method: found["placed", method] for method in METHODS}
    others = [main[m] for m in METHODS if m not in ("lfi", "ours") and main[m]]
    agreement = [s["agreement"] for s in others]
    sanity = mean_of(rows, "sanity", variant="centred")
    sanity_ours = {v: mean_of(rows, "sanity_ours", variant=v) for v in VARIANTS}
    gini = {m: s["gini"] for m, s in main.items() if s}
    claims = [
        Claim(
            "LFI puts the relevant features first (separation AUC)",
            "1.00",
            figure_text(main["lfi"]["separation"], 2),
            "holds" if main["lfi"]["separation"] > 0.95 else "does not hold",
            f"it is {main['lfi']['separation']:.2f} where tight features are in the middle of "
            f"their range, and {placed['lfi']['separation']:.2f} where they are anywhere in it "
            f"(ours {main['ours']['separation']:.2f} and {placed['ours']['separation']:.2f})",
        ),
        Claim(
            "LFI agrees with the averaged attributions (Spearman)",
            "0.69 to 0.74",
            f"{figure_text(min(agreement), 2)} to {figure_text(max(agreement), 2)}",
            "holds" if min(agreement) > 0.6 else "holds in part",
            f"the correlations are {min(agreement):.2f} to {max(agreement):.2f}",
        ),
        Claim(
            "LFI is as stable over trainings as the others",
            "0.71",
            figure_text(main["lfi"]["stability"], 2),
            "holds"
            if main["lfi"]["stability"] >= max(s["stability"] for s in others) - 0.1
            else "does not hold",
            f"LFI has {main['lfi']['stability']:.2f}, the attributions "
            f"{min(s['stability'] for s in others):.2f} to "
            f"{max(s['stability'] for s in others):.2f}",
        ),
        Claim(
            "LFI reflects what was learned: correlation with a model of random intervals",
            f"+{PAPER_SANITY:.2f}",
            figure_text(sanity, 2),
            "holds" if abs(sanity) < 0.3 else "does not hold",
            f"with the support measured anew it is {sanity:.2f}: random intervals order the "
            f"features alike; ours has {figure_text(sanity_ours['centred'], 2)} and "
            f"{figure_text(sanity_ours['placed'], 2)} (tight features anywhere)",
        ),
        Claim(
            "LFI is the least concentrated (Gini)",
            "0.11, others 0.33 to 0.58",
            f"{gini['lfi']:.2f}, others {min(s['gini'] for s in others):.2f} to "
            f"{max(s['gini'] for s in others):.2f}",
            "holds" if gini["lfi"] < min(s["gini"] for s in others) else "does not hold",
            f"LFI has {gini['lfi']:.2f}",
        ),
    ]
    return Findings(claims, _text(rows, found), _figure(main))


def _summary(rows: list[Row], method: str) -> dict[str, float]:
    """Means over trainings; empty if the method could not be run."""
    if any(row[method] is None for row in rows):
        return {}
    separation = [roc_auc_score(row["tight"], row[method]) for row in rows]
    agreement = [float(rank_correlations(np.array([row["lfi"], row[method]]))[0]) for row in rows]
    pairs = [
        float(rank_correlations(np.array([a[method], b[method]]))[0])
        for a, b in combinations(rows, 2)
        if a["features"] == b["features"]
    ]
    return {
        "separation": float(np.mean(separation)),
        "agreement": float(np.mean(agreement)),
        "stability": float(np.mean(pairs)),
        "gini": float(np.mean([gini(np.array(row[method])) for row in rows])),
    }


def gini(values: Array) -> float:
    """0 if all are equal, near 1 if one has everything."""
    ordered = np.sort(values)
    n = len(ordered)
    return float((2 * np.arange(1, n + 1) - n - 1) @ ordered / (n * ordered.sum()))


def _text(rows: list[Row], found: dict[tuple[str, str], dict[str, float]]) -> str:
    lines = []
    for (variant, key), summary in found.items():
        method, known = METHODS[key], METHODS[key] if variant == "centred" else Method("")
        cells = [MISSING] * 4
        if summary:
            cells = [
                beside(summary[m], getattr(known, m), 2)
                for m in ("separation", "agreement", "stability", "gini")
            ]
        cells[1] = MISSING if key == "lfi" else cells[1]
        lines.append([variant, method.name, *cells, str(method.queries)])
    aucs = [mean_of(rows, "roc_auc", variant=v) for v in present(rows, "variant")]
    missing = "" if found["centred", "shap"] else " The package shap is not installed."
    return (
        "Seven trainings of three families (20, 28 and 36 features, 6, 10 and 14 of them tight), "
        "1,000 rows each; attributions of the paper's score, as the mean magnitude over the "
        f"{_POOL} anomalies with the highest scores; the paper's numbers in square brackets. "
        "*Centred*: tight features are normal around 0 and broad ones uniform, the plain reading "
        "of the paper's text. *Placed*: a tight feature is anywhere in its range, and one value in "
        "fifty is uniform, so that the range does not give it away. ROC-AUC of the paper's score "
        f"{' and '.join(figure_text(a) for a in aucs)}.{missing}\n\n"
        + table(
            ("variant", "ranking", "separation", "agreement", "stability", "Gini", "queries"), lines
        )
    )


def _figure(main: dict[str, dict[str, float]]) -> Figure:
    figure = new_figure(height=3.2)
    left, right = figure.subplots(1, 2)
    shown = {key: s for key, s in main.items() if s and key != "lfi"}
    for ax, measure, title in (
        (left, "agreement", "Spearman correlation with LFI"),
        (right, "stability", "Stability over trainings"),
    ):
        keys = list(shown) if measure == "agreement" else ["lfi", *shown]
        ax.barh(range(len(keys)), [main[key][measure] for key in keys], 0.6, color=COLOURS[0])
        for place, key in enumerate(keys):
            known = getattr(METHODS[key], measure)
            if known is not None:
                ax.plot([known] * 2, [place - 0.4, place + 0.4], color=QUIET, linestyle="--")
        names = [METHODS[key].name.replace("`", "").partition(" (")[0] for key in keys]
        named_axes(ax, title, "")
        ax.set_yticks(range(len(keys)), names)
        ax.invert_yaxis()
        ax.axvline(0.0, color="black", linewidth=0.8)
    top_title(figure, "Global importance and averaged attributions (dashed: the paper)")
    return figure


STUDY = Study(
    name="attribution",
    paper="tab:lfi-global",
    question="Does importance without queries tell the same as averaged attributions?",
    cost="28 fits of about 3 s, and KernelSHAP (packages shap and torch)",
    keys=("variant", "features", "seed"),
    measures=MEASURES,
    tasks=tasks,
    measure=measure,
    report=report,
)
