"""Figure of the features that moved since the fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.lines import Line2D

from ...core.checks import check_count
from ...decide.drift import Drift
from ..wording.drift import change_text, p_text
from .drawing import (
    ANOMALY,
    INK,
    QUIET,
    SMALL,
    TEXT,
    fitted,
    legend_below,
    new_figure,
    number_axis,
    plain,
    top_title,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def drift_plot(drift: Drift, n_features: int = 12) -> Figure:
    """Bars of how much each feature moved, in standard errors, with what has changed.

    n_features: largest number of features, the ones that moved most.
    """
    shifts = drift.shifts[: check_count(n_features, "features")]
    figure = new_figure(max(1.4 + 0.3 * len(shifts), 2.4))
    ax = figure.add_subplot()
    plain(ax, "left")
    places = np.arange(len(shifts))
    sizes = np.array([shift.statistic for shift in shifts])
    colours = [ANOMALY if shift.p_value <= drift.level else QUIET for shift in shifts]
    ax.barh(places, sizes, height=0.62, color=colours)
    ax.set_yticks(places, [fitted(shift.feature, 1.6, SMALL) for shift in shifts], size=SMALL)
    ax.set_ylim(len(shifts) - 0.5, -0.5)
    limit = drift.critical if np.isfinite(drift.critical) else 0.0
    # The texts beside the bars take as much room as the longest bar.
    number_axis(ax.xaxis, 0.0, max(float(sizes.max()), limit, 1.0) * 2.0, 4.5)
    for place, shift in enumerate(shifts):
        ax.annotate(
            fitted(change_text(shift), 2.3, SMALL), (shift.statistic, place), (4, 0),
            textcoords="offset points", va="center", size=SMALL, color=INK,
        )  # fmt: skip
    if limit:
        ax.axvline(limit, color="black", linestyle="--", linewidth=1.2, zorder=0)
        label = f"above: moved, at a level of {drift.level:g} over all features"
        legend_below(figure, [Line2D([], [], color="black", linestyle="--", label=label)])
    ax.set_xlabel("difference of means, in standard errors", size=TEXT)
    moved = "The population has moved" if drift.drifted else "The population has not moved"
    top_title(figure, f"{moved} ({p_text(drift.p_value)})")
    return figure
