"""Heat map of the importance of features and of the ranges of patterns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...core.checks import check_count
from ...core.model import FittedModel
from ...explain.global_explanation import GlobalExplanation
from .checks import explanation_of
from .drawing import INK, NORMAL, QUIET, SMALL, TEXT, WIDTH, fitted, new_figure, plain, top_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ...estimator import DiffInt


def importance_heat_map(
    explained: GlobalExplanation | FittedModel | DiffInt, n_units: int = 8, n_features: int = 12
) -> Figure:
    """Heat map of the importance of the top units' constraints, beside that of the features.

    explained: a detector, its `model_`, or its `explain_global()`.
    n_units, n_features: largest number of columns and rows.
    """
    explanation = explanation_of(explained)
    units = explanation.top_units(check_count(n_units, "units"))
    order = explanation.feature_order[: check_count(n_features, "features")]
    names = [fitted(explanation.feature_names[j], 2.0, SMALL) for j in order]
    figure = new_figure(max(1.2 + 0.275 * len(order), 2.2), max(WIDTH, 4.0 + 0.38 * len(units)))
    places = np.arange(len(order))
    widths = [max(0.38 * len(units), 1.0), 1.6]
    heat, bars = figure.subplots(1, 2, sharey=True, width_ratios=widths)
    _draw_heat(heat, explanation.importance[np.ix_(np.array(units, dtype=np.intp), order)].T, units)
    heat.set_yticks(places, names, size=SMALL)
    heat.set_ylim(len(order) - 0.5, -0.5)
    plain(bars, "left", "bottom")
    bars.tick_params(length=0, labelleft=False)
    bars.set_xticks([])
    whole = explanation.feature_importance[order]
    bars.barh(places, whole, height=min(0.62, 0.2 * len(order)), color=NORMAL)
    bars.set_xlim(0, max(float(whole.max()), 1e-3) * 1.3)
    for place, value in enumerate(whole):
        bars.annotate(
            f"{value:.2f}", (value, place), (3, 0), textcoords="offset points",
            va="center", size=SMALL, color=INK,
        )  # fmt: skip
    bars.set_title("whole model", size=TEXT)
    top_title(figure, "Importance of features (0 to 1)")
    return figure


def _draw_heat(ax: Axes, cells: NDArray[np.float64], units: list[int]) -> None:
    """Draw coloured cells (features, units) with their numbers."""
    plain(ax, "left", "bottom")
    ax.tick_params(length=0)
    if not units:
        ax.set_xticks([])
        ax.set_title("no pattern has a narrow range", size=TEXT, color=QUIET)
        return
    top = max(float(cells.max()), 1e-3)
    ax.imshow(cells, cmap="Blues", vmin=0, vmax=1.15 * top, aspect="auto")
    for (i, k), value in np.ndenumerate(cells):
        colour = "white" if value > 0.65 * top else INK
        ax.text(k, i, f"{value:.2f}", ha="center", va="center", size=SMALL - 0.5, color=colour)
    ax.set_xticks(np.arange(len(units)), [str(unit) for unit in units], size=SMALL)
    ax.set_xlabel("pattern", size=TEXT)
    ax.set_title("ranges of single patterns", size=TEXT)
