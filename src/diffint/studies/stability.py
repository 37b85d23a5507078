"""Do fits with other splits and seeds find the same features important?"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ..bench.markdown import table
from ..explain.stability_over_fits import rank_correlations
from ..show.plots.drawing import legend_below, new_figure, top_title
from .importances import FORMULAS, correlation_with_random, detector_of, importance_by
from .page import beside, figure_text, mean_of, present
from .study import Claim, Findings, Measured, Row, Setup, Study, Task
from .style import bar_handles, grouped_bars, named_axes, paper_dashes

Array = NDArray[np.float64]

CONFIGURATIONS = ("paper", "recommended", "minmax")
# Configuration and formula.
KINDS = (
    *(("paper", "paper"), ("paper", "boxes")),
    *(("recommended", "paper"), ("recommended", "boxes"), ("minmax", "boxes")),
)
# tab:seed-stab: mean, least and deviation of Spearman's correlation over ten pairs of fits.
PAPER = {
    "14_glass": (0.74, 0.57, 0.11),
    "18_Ionosphere": (0.88, 0.84, 0.03),
    "6_cardio": (0.92, 0.83, 0.04),
}
MEASURES = ("paper", "boxes", "random_paper", "random_boxes")


def tasks(setup: Setup, tables: list[str]) -> list[Task]:
    """Five seeds, each with a split of its own, in both configurations."""
    return [
        {"table": name, "configuration": configuration, "seed": seed}
        for name in tables
        for configuration in CONFIGURATIONS
        for seed in setup.seed_range(5, quick=3)
    ]


def measure(task: Task, setup: Setup) -> Measured:
    """Importance of all features by both formulas, and its correlation with random intervals'."""
    name, seed = str(task["table"]), int(task["seed"])
    train, _, _ = setup.trial(name, seed)
    detector = detector_of(str(task["configuration"]), setup, setup.table(name).n_rows, seed)
    model = detector.fit(train).model_
    found: Measured = {formula: importance_by(model, formula).tolist() for formula in FORMULAS}
    for formula in FORMULAS:
        found[f"random_{formula}"] = correlation_with_random(model, train, formula)
    return found


def report(rows: list[Row]) -> Findings:
    """Correlations between fits, beside those with intervals that were never trained."""
    tables = present(rows, "table")

    def pairs(name: str, configuration: str, formula: str) -> Array:
        chosen = [r for r in rows if (r["table"], r["configuration"]) == (name, configuration)]
        return rank_correlations(np.array([row[formula] for row in chosen]))

    found = {(name, *kind): pairs(name, *kind) for name in tables for kind in KINDS}
    theirs = [float(found[name, "paper", "paper"].mean()) for name in tables]
    ours = [float(found[name, "recommended", "boxes"].mean()) for name in tables]
    plain = [float(found[name, "minmax", "boxes"].mean()) for name in tables]
    mixed = [float(found[name, "recommended", "paper"].mean()) for name in tables]
    random = {
        kind: [
            mean_of(rows, f"random_{kind[1]}", table=name, configuration=kind[0]) for name in tables
        ]
        for kind in KINDS
    }
    stable = all(mean >= PAPER[name][0] - 0.05 for name, mean in zip(tables, theirs, strict=True))
    largest = max(random["paper", "paper"])
    claims = [
        Claim(
            "Fits on other splits order the features alike: mean Spearman correlation ("
            + ", ".join(tables)
            + ")",
            _listed([PAPER[name][0] for name in tables]),
            _listed(theirs),
            "holds" if stable else "does not hold",
            "with the paper's configuration and formula no table is clearly below its figure"
            if stable
            else "with the paper's configuration and formula a table is more than 0.05 below it",
        ),
        Claim(
            "The order reflects what was learned",
            "sanity check +0.01, on synthetic rows",
            _listed(random["paper", "paper"]),
            "holds" if largest < 0.5 else "does not hold",
            "the same formula on random intervals that were never trained orders the features "
            f"with a correlation of up to {largest:.2f}: it is the data that is stable",
        ),
    ]
    lines = [
        [
            name,
            configuration,
            FORMULAS[formula],
            *(
                beside(value, PAPER[name][i] if (configuration, formula) == KINDS[0] else None, 2)
                for i, value in enumerate((values.mean(), values.min(), values.std()))
            ),
            figure_text(
                mean_of(rows, f"random_{formula}", table=name, configuration=configuration), 2
            ),
        ]
        for (name, configuration, formula), values in found.items()
    ]
    header = ("table", "configuration", "importance", "mean", "least", "deviation", "random")
    text = (
        f"Spearman correlation of the importance of features between {len(present(rows, 'seed'))} "
        "fits, each with its own split and seed; the paper's numbers in square brackets. *Random*: "
        "correlation with the importance of random intervals, as the paper's training starts from, "
        "with the support measured on the same rows (mean over five draws and all fits). A high "
        "one says that training hardly mattered. A negative one is no failure: random intervals "
        "lie around the middle of every range and are equally wide, so that the features with most "
        "rows in the middle come first; trained boxes are narrow where rows are close together, "
        "which in skewed features is near an end.\n\n"
        f"`DiffInt()` with its own formula has {_listed(ours)} ({', '.join(tables)}), with the "
        f"paper's {_listed(mixed)}: intervals that start at data rows are as wide as their feature "
        "is spread, so that a high support and a small half-width cancel. *Minmax* is `DiffInt()` "
        f'without curves for long tails (`scaling="minmax"`), {_listed(plain)}: which features '
        "have a curve depends on the split in small tables, and a curve changes how tight a range "
        "is.\n\n" + table(header, lines)
    )
    return Findings(claims, text, _figure(found, tables))


def _listed(values: list[float]) -> str:
    return " / ".join(figure_text(value, 2) for value in values)


def _figure(found: dict[tuple[str, str, str], Array], tables: list[str]) -> Figure:
    figure = new_figure(height=3.2)
    ax = figure.add_subplot()
    places = grouped_bars(ax, [[found[(name, *kind)].mean() for name in tables] for kind in KINDS])
    for kind, place in zip(KINDS, places, strict=True):
        for x, name in zip(place, tables, strict=True):
            values = found[(name, *kind)]
            ax.plot(np.full(len(values), x), values, "o", color="black", ms=2.5, alpha=0.5)
    paper_dashes(ax, [PAPER[name][0] for name in tables])
    named_axes(ax, "", "Spearman correlation of two fits")
    ax.set_xticks(range(len(tables)), tables)
    top_title(figure, "Agreement of fits on important features (dashed: the paper)")
    handles = bar_handles([f"{configuration}, {FORMULAS[f]}" for configuration, f in KINDS])
    legend_below(figure, handles, 2)
    return figure


STUDY = Study(
    name="stability",
    paper="tab:seed-stab",
    question="Do separate fits find the same features important?",
    cost="45 fits of about 2 s",
    keys=("table", "configuration", "seed"),
    measures=MEASURES,
    tasks=tasks,
    measure=measure,
    report=report,
    tables=tuple(PAPER),
    quick_tables=("14_glass", "18_Ionosphere"),
)
