"""How well a union of soft boxes describes a known region in two dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ..bench.markdown import table
from ..certify.interval_layer import soft_union, soft_union_error
from ..show.plots.drawing import QUIET, legend_below, new_figure, top_title
from .importances import detector_of
from .page import figure_text, mean_of, present
from .study import Claim, Findings, Measured, Row, Setup, Study, Task
from .style import line_handles, look_of, named_axes

Array = NDArray[np.float64]

SHAPES = ("ring", "diamond")
# Boxes by construction, from the cells of a grid, and those that training finds.
CONSTRUCTED, FITTED = ("touching", "overlapping"), ("paper", "recommended")
CELLS, TEMPERATURES = (4, 8, 16, 32), (0.1, 0.03, 0.01, 0.003)
UNITS, FITTED_TEMPERATURES = (5, 20, 80, 200), (0.2, 0.1, 0.05, 0.02)
DEPTH = 0.1  # rows this far from the boundary must be described, by the proposition
_OVERLAP = 0.25  # of a cell: how much a box grows on each side
_ROWS, _SIDE = 1_000, 121
MEASURES = ("boxes", "l1", "inside", "outside", "violations", "hard_l1")


def tasks(setup: Setup, tables: list[str]) -> list[Task]:
    """All sizes and temperatures; fits with one seed."""
    cells = CELLS[::2] if setup.quick else CELLS
    built = [(k, n, t) for k in CONSTRUCTED for n in cells for t in TEMPERATURES]
    units = (5, 80) if setup.quick else UNITS
    temperatures = (0.1,) if setup.quick else FITTED_TEMPERATURES
    fitted = [(k, n, t) for k in FITTED for n in units for t in temperatures]
    return [
        {"shape": shape, "kind": kind, "size": size, "temperature": temperature}
        for shape in (SHAPES[:1] if setup.quick else SHAPES)
        for kind, size, temperature in (*built, *fitted)
    ]


def depth_of(shape: str, x: Array) -> Array:
    """Signed distance from the boundary of the region, positive inside. x: (rows, 2)"""
    if shape == "ring":
        radius = np.linalg.norm(x, axis=1)
        return np.asarray(np.minimum(radius - 0.4, 0.8 - radius))
    return np.asarray((0.8 - np.abs(x).sum(axis=1)) / np.sqrt(2.0))


def grid() -> Array:
    """Points of a square grid on [−1, 1]². → (points, 2)"""
    line = np.linspace(-1.0, 1.0, _SIDE)
    return np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)


def measure(task: Task, setup: Setup) -> Measured:
    """Distances of the soft union F from the indicator of the region, over a grid.

    l1: mean of |F − 1_D|; hard_l1: that of the union of the hard boxes; inside, outside: largest
    |F − 1_D| at points farther than 0.1 from the boundary of the region; violations: points at
    which F differs from the union of the hard boxes by more than the proposition's bound.
    """
    shape, kind, temperature = str(task["shape"]), str(task["kind"]), float(task["temperature"])
    points = grid()
    depth = depth_of(shape, points)
    if kind in CONSTRUCTED:
        lower, upper = _cells(shape, int(task["size"]), _OVERLAP if kind == "overlapping" else 0.0)
    else:
        lower, upper, points = _fitted(task, setup, points)
    union = soft_union(points, lower, upper, temperature)
    gaps = np.minimum(points[:, None] - lower, upper - points[:, None]).min(axis=2).max(axis=1)
    allowed = [soft_union_error(abs(gap), len(lower), 2, temperature) for gap in gaps]
    inside = (depth > 0).astype(float)
    error = np.abs(union - inside)
    return {
        "boxes": len(lower),
        "l1": error.mean(),
        "hard_l1": np.abs((gaps >= 0) - inside).mean(),
        "inside": error[depth > DEPTH].max(),
        "outside": error[depth < -DEPTH].max(),
        "violations": int((np.abs(union - (gaps >= 0)) > np.array(allowed) + 1e-12).sum()),
    }


def _cells(shape: str, n_cells: int, overlap: float) -> tuple[Array, Array]:
    """The cells of a grid whose center is in the region, each grown by `overlap` of its side."""
    edges = np.linspace(-1.0, 1.0, n_cells + 1)
    corner = np.stack(np.meshgrid(edges[:-1], edges[:-1]), axis=-1).reshape(-1, 2)
    side = 2.0 / n_cells
    corner = corner[depth_of(shape, corner + side / 2) > 0]
    return corner - overlap * side, corner + (1 + overlap) * side


def _fitted(task: Task, setup: Setup, points: Array) -> tuple[Array, Array, Array]:
    """The trained intervals of a member, and the points in its scaled units."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (8 * _ROWS, 2))
    rows = rows[depth_of(str(task["shape"]), rows) > 0][:_ROWS]
    detector = detector_of(str(task["kind"]), setup, _ROWS, 0)
    settings: dict[str, Any] = {"n_members": 1, "kept_rows": 0, "scaling": "minmax"}
    settings |= {"n_units": int(task["size"]), "temperature": float(task["temperature"])}
    member = detector.set_params(**settings).fit(rows).model_.members[0]
    lower, upper = member.lower.astype(np.float64), member.upper.astype(np.float64)
    return lower, upper, member.scaler.scaled(points)


def report(rows: list[Row]) -> Findings:
    """Whether boxes exist that describe the region, and whether training finds them."""
    shapes = present(rows, "shape")

    def best(kind: str, measure: str = "l1") -> float:
        """Mean over the shapes of the smallest error of a kind."""
        return float(
            np.mean(
                [
                    min(r[measure] for r in rows if (r["shape"], r["kind"]) == (shape, kind))
                    for shape in shapes
                ]
            )
        )

    def deep(kind: str) -> float:
        """Largest error inside with the most boxes and the smallest temperature."""
        size = max(row["size"] for row in rows if row["kind"] == kind)
        chosen = {"kind": kind, "size": size, "temperature": min(TEMPERATURES)}
        return max(mean_of(rows, "inside", shape=shape, **chosen) for shape in shapes)

    violations = int(sum(row["violations"] for row in rows))
    built = best("overlapping"), best("touching")
    paper, ours = best("paper"), best("recommended")
    claims = [
        Claim(
            "Some boxes and temperature come as near to a region D as wanted (mean distance of F "
            "from the indicator 1_D)",
            "→ 0",
            f"{min(built):.3f}",
            "holds" if min(built) < 0.05 else "does not hold",
            f"cells of a grid reach {min(built):.3f} with up to "
            f"{max(row['boxes'] for row in rows):.0f} boxes",
        ),
        Claim(
            "F → 1_D uniformly away from the boundary, with the boxes of a grid",
            "→ 0",
            f"{deep('touching'):.2f} inside",
            "holds" if deep("touching") < 0.01 else "does not hold",
            f"with cells that touch, as in the proof, the largest error inside stays at "
            f"{deep('touching'):.2f}, as F is at most 3/4 on a common face and 0.68 at a corner; "
            f"with cells that overlap it is {deep('overlapping'):.3f}",
        ),
        Claim(
            "(not in the paper) F is within our bound of the union of its hard boxes",
            "–",
            f"{violations} violations",
            "holds" if violations == 0 else "does not hold",
            f"at {len(rows) * _SIDE**2:,} points",
        ),
        Claim(
            "Training realizes such a cover, which the paper answers by fig:scatter and "
            "fig:ablation (here: mean distance of F from 1_D)",
            "no numbers",
            figure_text(paper),
            "holds" if paper < 2 * min(built) else "does not hold",
            f"the trained intervals of the paper's configuration have a mean error of {paper:.3f} "
            f"at best, those of `DiffInt()` {ours:.3f}; a region that is empty has "
            f"{_empty(shapes):.3f}",
        ),
    ]
    lines = [
        [row["shape"], row["kind"], f"{row['size']:.0f}", f"{row['boxes']:.0f}"]
        + [f"{row['temperature']:g}"]
        + [figure_text(row[m]) for m in ("l1", "hard_l1", "inside", "outside")]
        for row in rows
    ]
    header = (
        *("region", "boxes", "size", "K", "τ", "mean error", "of hard boxes"),
        *("largest inside", "outside"),
    )
    text = (
        "F = 1 − ∏(1 − m_k) beside the indicator of a ring and of a diamond in [−1, 1]², on "
        f"{_SIDE**2:,} points. *Touching*, *overlapping*: the cells of a grid of *size* × *size* "
        "whose center is in the region, as they are or grown by a quarter of a cell on each side. "
        "*Paper*, *recommended*: the intervals of one member with *size* units, trained on "
        f"{_ROWS:,} uniform rows of the region. *Largest*: over points farther than {DEPTH} from "
        "the boundary.\n\n" + table(header, lines)
    )
    return Findings(claims, text, _figure(rows, shapes[0]))


def _empty(shapes: list[str]) -> float:
    return float(np.mean([(depth_of(shape, grid()) > 0).mean() for shape in shapes]))


def _figure(rows: list[Row], shape: str) -> Figure:
    """Mean error over the number of boxes, one panel for each way to get them."""
    figure = new_figure(height=3.2)
    kinds = (*CONSTRUCTED, *FITTED)
    axes = figure.subplots(1, len(kinds), sharey=True)
    shown = {k: TEMPERATURES if k in CONSTRUCTED else FITTED_TEMPERATURES for k in kinds}
    every = sorted({*TEMPERATURES, *FITTED_TEMPERATURES}, reverse=True)
    for ax, kind in zip(axes, kinds, strict=True):
        for temperature in shown[kind]:
            line = [
                row
                for row in rows
                if (row["shape"], row["kind"], row["temperature"]) == (shape, kind, temperature)
            ]
            look = look_of(every.index(temperature))
            ax.plot([row["boxes"] for row in line], [row["l1"] for row in line], **look)
        named_axes(ax, "boxes K", "mean |F − 1_D|" if ax is axes[0] else "", kind.capitalize())
        ax.set_xscale("log")
        ax.axhline(_empty([shape]), color=QUIET, linestyle="--", linewidth=1.0)
    axes[0].set_ylim(0.0)
    top_title(figure, f"Soft unions and a {shape} (dashed: F = 0 everywhere)")
    legend_below(figure, line_handles([f"τ = {t:g}" for t in every], paper=False), len(every))
    return figure


STUDY = Study(
    name="capacity",
    paper="prop:capacity",
    question="Can a union of soft boxes describe a region, and does training find it?",
    cost="64 fits of about 1 s",
    keys=("shape", "kind", "size", "temperature"),
    measures=MEASURES,
    tasks=tasks,
    measure=measure,
    report=report,
)
