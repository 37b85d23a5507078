"""The certified clipping margin: its cost in accuracy, its constant, and whether it holds."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from ..bench.markdown import table
from ..certify.interval_layer import encoder_lipschitz_bound, graded_suppression
from ..certify.rows import MARGIN, empty_codes
from ..core.constants import NORM_EPSILON
from ..core.model import Member
from ..engine.reference.intervals import codes, log_box_memberships
from ..estimator import DiffInt
from ..show.plots.drawing import FAINT, legend_below, new_figure, top_title
from .page import beside, figure_text, mean_of, present
from .study import Claim, Findings, Measured, Row, Setup, Study, Task, verdict
from .style import line_handles, look_of, named_axes

Array = NDArray[np.float64]

DECODERS = ("free", "spectral", "certified")
# tab:certify: AUROC free and certified, L, collapse; three seeds. Not 42_WBC: see _WBC.
PAPER: dict[str, tuple[float | None, ...]] = {
    "14_glass": (0.891, 0.744, 1.05, 0.52),
    "42_WBC": (None, None, None, None),
    "18_Ionosphere": (0.953, 0.828, 1.04, 0.24),
    "29_Pima": (0.696, 0.686, 1.04, 0.53),
    "6_cardio": (0.976, 0.955, 1.06, 0.45),
    "31_satimage-2": (0.999, 0.987, 1.07, 0.38),
}
PAPER_MEAN = (0.908, 0.851, 1.05, 0.40)
# tab:spec-norms
PAPER_NORMS = {
    "14_glass": (1.022, 1.006),
    "18_Ionosphere": (1.071, 1.007),
    "6_cardio": (1.010, 1.000),
}
_WBC = (
    'The "wbc" of the paper\'s table (0.930 and 0.903) is not 42_WBC, to which tab:ab-norm gives '
    "0.998, and is probably 43_WDBC: none of its numbers is beside ours, but the paper's means "
    "include it."
)
_SHOWN = 60  # rows of a fit in the figure
_SLOPES = 100  # test rows at which the slope of the encoder is measured
MEASURES = (
    *("roc_auc", "hidden_norm", "output_norm", "collapse", "out_of_support"),
    *("encoder_bound", "papers_bound", "steepest", "suppressed", "not_suppressed"),
    *("inliers_out_of_support", "checked", "violations", "without_norm", "score", "bound"),
)


def tasks(setup: Setup, tables: list[str]) -> list[Task]:
    """Three seeds, each with the paper's two decoders and ours."""
    return [
        {"table": name, "decoder": decoder, "seed": seed}
        for name in tables
        for decoder in DECODERS
        for seed in setup.seed_range(3)
    ]


def measure(task: Task, setup: Setup) -> Measured:
    """Accuracy, spectral norms, collapse, and the inequality at test rows.

    checked, violations: rows, and those with a score below either bound. The slope of the free
    decoder's LayerNorm is at most max |gain| / √ε, which is a bound too, if a useless one;
    without_norm: violations if only the norms of the linear maps count.
    """
    name, seed = str(task["table"]), int(task["seed"])
    train, test, labels = setup.trial(name, seed)
    n_rows = setup.table(name).n_rows
    detector = setup.paper_detector(n_rows, seed, decoder=task["decoder"]).fit(train)
    member, scores = detector.model_.members[0], detector.anomaly_score(test)
    norms = [
        float(np.linalg.norm(weight.astype(float), 2))
        for weight in (member.decoder.hidden_weight, member.decoder.output_weight)
    ]
    inlier, tested = _margin(detector, member, train), _margin(detector, member, test)
    outside = tested["outside"]
    amplitude = np.linalg.norm(inlier["row"] - inlier["attractor"], axis=1).mean()
    pulled = np.linalg.norm(tested["output"] - tested["attractor"], axis=1)
    if detector.decoder == "free":
        slack = np.prod(norms) / np.sqrt(test.shape[1]) * tested["code_distance"]
        without_norm = int((scores < tested["distance"] - slack).sum())
        normed = float(np.abs(member.decoder.norm_gain).max()) / np.sqrt(NORM_EPSILON)
        bound = tested["distance"] - normed * slack
        violations, checked = int((scores < bound).sum()), len(test)
    else:
        without_norm = None
        certificate = detector.certify(np.vstack([test, train]))
        bound = certificate.bound_at_row[: len(test)]
        broken = (certificate.bound > certificate.score) | (
            certificate.bound_at_row > certificate.score
        )
        violations, checked = int(broken.sum()), len(certificate)
    suppression = graded_suppression(detector.model_, test)
    broken_units = suppression.log_weight > suppression.log_bound + 1e-9  # rounding of float64
    shown = np.random.default_rng(0).permutation(np.flatnonzero(outside))[:_SHOWN]
    return {
        "roc_auc": roc_auc_score(labels, scores),
        "hidden_norm": norms[0],
        "output_norm": norms[1],
        "collapse": pulled[outside].mean() / amplitude if outside.any() else None,
        "out_of_support": outside[labels == 1].mean(),
        "encoder_bound": encoder_lipschitz_bound(detector.model_),
        "papers_bound": detector.n_units * test.shape[1] / detector.temperature,
        "steepest": _steepest(member, detector.temperature, tested["row"][:_SLOPES]),
        "suppressed": int((suppression.n_violated > 0).sum()),
        "not_suppressed": int(broken_units.sum()),
        "inliers_out_of_support": inlier["outside"].mean(),
        "checked": checked,
        "violations": violations,
        "without_norm": without_norm,
        "score": scores[shown].tolist(),
        "bound": bound[shown].tolist(),
    }


def _steepest(member: Member, temperature: float, rows: Array) -> float:
    """The largest slope of the code at these scaled rows and at as many uniform ones."""
    lower, upper = member.lower.astype(np.float64), member.upper.astype(np.float64)
    drawn = np.random.default_rng(0).uniform(-1, 1, rows.shape)
    norms = []
    for x in np.vstack([rows, drawn]):
        slope = expit((upper - x) / temperature) - expit((x - lower) / temperature)
        code = codes(x[None], lower, upper, temperature)[0]
        norms.append(np.linalg.norm(code[:, None] * (slope - code @ slope) / temperature, 2))
    return float(max(norms))


def _margin(detector: DiffInt, member: Member, x: Array) -> dict[str, Any]:
    """The parts of the clipping margin of rows in original units, for any decoder."""
    temperature = detector.temperature
    row = member.scaler.transform(x)[0].astype(np.float64)
    lower, upper = member.lower.astype(np.float64), member.upper.astype(np.float64)
    above, below = row > upper.max(axis=0) + MARGIN, row < lower.min(axis=0) - MARGIN
    empty = empty_codes(above.astype(np.int8) - below, lower, upper, temperature)
    code = codes(row, lower, upper, temperature)
    attractor = member.decoder.reconstruct(empty)
    beta = -np.log1p(np.exp(MARGIN / temperature))
    return {
        "row": row,
        "attractor": attractor,
        "output": member.decoder.reconstruct(code),
        "distance": np.abs(row - attractor).mean(axis=1),
        "code_distance": np.linalg.norm(code - empty, axis=1),
        "outside": log_box_memberships(row, lower, upper, temperature).max(axis=1) < beta,
    }


def report(rows: list[Row]) -> Findings:
    """The paper's two tables, with ours beside them."""
    tables = present(rows, "table")

    def mean(measure: str, decoder: str) -> float:
        return float(np.mean([mean_of(rows, measure, table=t, decoder=decoder) for t in tables]))

    free, spectral, certified = (mean("roc_auc", decoder) for decoder in DECODERS)
    proven = [row for row in rows if row["decoder"] != "free"]
    checked = int(sum(row["checked"] for row in proven))
    violations = int(sum(row["violations"] for row in proven))
    products = [r["hidden_norm"] * r["output_norm"] for r in rows if r["decoder"] == "spectral"]
    collapse = mean("collapse", "spectral")
    loose = [row for row in rows if row["decoder"] == "free"]
    loose_bounds = [bound for row in loose for bound in row["bound"]]
    loose_violations = int(sum(row["violations"] for row in loose))
    pairs, broken = (int(sum(r[m] for r in rows)) for m in ("suppressed", "not_suppressed"))
    bounds, slopes = ([row[m] for row in rows] for m in ("encoder_bound", "steepest"))
    steep = max(s / b for s, b in zip(slopes, bounds, strict=True))
    claims = [
        Claim(
            "The inequality holds for every row with the certified decoder",
            "0 violations",
            f"{violations} violations",
            "holds" if violations == 0 else "does not hold",
            f"{checked:,} rows were checked without any tolerance, with the spectral and with our "
            "certified decoder",
        ),
        Claim(
            "Certification costs accuracy: mean ROC-AUC, free and certified",
            f"{PAPER_MEAN[0]:.3f} and {PAPER_MEAN[1]:.3f}",
            f"{free:.3f} and {spectral:.3f}",
            "holds" if spectral < free - 0.01 else "does not hold",
            f"the loss is {free - spectral:.3f} with the paper's decoder and "
            f"{free - certified:.3f} with our certified one, whose slope is not limited to 1; the "
            "paper's mean has another table, wbc, in place of 42_WBC",
        ),
        Claim(
            "L, the product of the spectral norms, is near 1",
            "1.03 to 1.08",
            f"{min(products):.2f} to {max(products):.2f}",
            "holds" if min(products) > 0.9 and max(products) < 1.2 else "does not hold",
            f"L is between {min(products):.3f} and {max(products):.3f}",
        ),
        Claim(
            "Reconstructions of rows out of support collapse: their distance from g(f₀) is this "
            "share of that of training inliers",
            figure_text(PAPER_MEAN[3], 2),
            figure_text(collapse, 2),
            "holds" if collapse < 0.6 else "does not hold",
            f"it is {collapse:.2f} on average with the paper's certified decoder and "
            f"{mean('collapse', 'free'):.2f} with the free one",
        ),
        Claim(
            "Nearly all test anomalies are out of support of every unit",
            "≥ 99 %",
            f"{100 * mean('out_of_support', 'spectral'):.0f} %",
            "holds" if mean("out_of_support", "spectral") >= 0.95 else "does not hold",
            f"so are {100 * mean('inliers_out_of_support', 'spectral'):.0f} % of the training "
            "inliers, so that this does not tell them apart",
        ),
        Claim(
            "With the free decoder the inequality holds too, but is loose and not certified",
            "holds",
            f"{100 * _share(loose, 'without_norm'):.1f} % of the rows violate it without the "
            "normalisation",
            "vacuous" if max(loose_bounds) < 0 else verdict(loose_violations == 0),
            f"{loose_violations} of {int(sum(r['checked'] for r in loose)):,} rows violate it, but "
            "that is with the largest possible slope of the decoder's normalisation in L, with "
            f"which the bounds are {figure_text(float(np.median(loose_bounds)), 0)} in the median "
            f"and {figure_text(max(loose_bounds), 0)} at most (of {len(loose_bounds)} rows that "
            "were kept), and no score is negative; the norms of the linear maps give no bound",
        ),
        Claim(
            "A unit is suppressed geometrically in its violated active intervals (cor:sparse)",
            "holds",
            f"{broken} violations",
            "holds" if broken == 0 else "does not hold",
            f"for {pairs:,} pairs of a test row and a unit that it violates; this is nearly an "
            "identity (each violated interval is a factor that is that small by the definition of "
            "a violation), so that it tests the program rather than the method",
        ),
        Claim(
            "The encoder is Lipschitz with the constant K·d/τ (prop:lip)",
            f"{min(row['papers_bound'] for row in rows):,.0f} to "
            f"{max(row['papers_bound'] for row in rows):,.0f}",
            f"{min(bounds):.1f} to {max(bounds):.1f}",
            "holds" if steep <= 1 else "does not hold",
            "our bound from the intervals is that much smaller, and no slope that was found is "
            f"above {steep:.2f} times it (the steepest has {max(slopes):.1f})",
        ),
    ]
    return Findings(claims, _text(rows, tables), _figure(rows))


def _share(rows: list[Row], measure: str) -> float:
    """Of the rows checked."""
    return float(sum(row[measure] for row in rows) / sum(row["checked"] for row in rows))


def _text(rows: list[Row], tables: list[str]) -> str:
    lines, norms = [], []
    for name in tables:
        paper = PAPER[name]
        means = {d: mean_of(rows, "roc_auc", table=name, decoder=d) for d in DECODERS}
        hidden, output = (
            mean_of(rows, m, table=name, decoder="spectral") for m in ("hidden_norm", "output_norm")
        )
        ours = [mean_of(rows, m, table=name, decoder="certified") for m in MEASURES[1:3]]
        spectral = [row for row in rows if row["table"] == name and row["decoder"] == "spectral"]
        kept = sum(row["checked"] - row["violations"] for row in spectral)
        lines.append(
            [
                name,
                beside(means["free"], paper[0]),
                beside(means["spectral"], paper[1]),
                figure_text(means["certified"]),
                beside(hidden * output, paper[2], 2),
                beside(mean_of(spectral, "collapse"), paper[3], 2),
                f"{100 * kept / sum(row['checked'] for row in spectral):.0f} % [100 %]",
            ]
        )
        known = PAPER_NORMS.get(name, (None, None))
        norms.append([name, beside(hidden, known[0]), beside(output, known[1]), *_digits(ours)])
    header = ("table", "free", "spectral", "certified (ours)", "L", "collapse", "bound holds")
    return (
        f"Mean over {len(present(rows, 'seed'))} seeds, 1000 epochs; the paper's numbers in square "
        "brackets. *Free*, *spectral*, *certified*: ROC-AUC with the free decoder, with the "
        'paper\'s certified one (`decoder="spectral"`) and with ours. L, collapse and the bound '
        "are those of the spectral decoder. *Collapse*: mean distance of the reconstructions of "
        "test rows that are out of support from g(f₀), over the mean distance of training inliers "
        "from it; the paper does not define its inlier amplitude. "
        + _WBC
        + "\n\n"
        + table(header, lines)
        + "\nLargest singular values of both maps, by SVD of the final weights:\n\n"
        + table(
            ("table", "spectral: ‖W₁‖", "‖W₂‖", "certified (ours): ‖W₁‖", "‖W₂‖"),
            norms,
        )
    )


def _digits(values: list[float]) -> list[str]:
    return [figure_text(value, 2) for value in values]


def _figure(rows: list[Row]) -> Figure:
    """The bridge figure: scores over their bounds, for the spectral and the free decoder."""
    figure = new_figure(height=3.8)
    axes = figure.subplots(1, 2)
    tables = present(rows, "table")
    for ax, decoder, title in zip(
        axes, ("spectral", "free"), ("Certified (spectral)", "Free, not certified"), strict=True
    ):
        chosen = [row for row in rows if row["decoder"] == decoder]
        highest = max(max(row["score"], default=0.0) for row in chosen) or 1.0
        ax.plot([0.0, highest], [0.0, highest], color=FAINT, zorder=0)
        ax.set_ylim(0.0, 1.05 * highest)
        for number, name in enumerate(tables):
            points = [(r["bound"], r["score"]) for r in chosen if r["table"] == name]
            bound, score = (np.concatenate([p[i] for p in points]) for i in (0, 1))
            ax.plot(bound, score, **{**look_of(number), "markersize": 3, "linestyle": "none"})
        named_axes(ax, "lower bound at the row", "score", title)
    top_title(figure, "Scores of rows out of support are not below the bound (grey line)")
    legend_below(figure, line_handles(tables, paper=False), 6)
    return figure


STUDY = Study(
    name="certify",
    paper="tab:certify, tab:spec-norms, fig:bridge, cor:sparse, prop:lip",
    question="Does the certified bound hold, and what does it cost?",
    cost="54 fits of about 3 s",
    keys=("table", "decoder", "seed"),
    measures=MEASURES,
    tasks=tasks,
    measure=measure,
    report=report,
    tables=tuple(PAPER),
    quick_tables=("14_glass", "18_Ionosphere", "29_Pima"),
)
