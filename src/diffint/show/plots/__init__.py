"""Figures of explanations, scores and certificates, drawn with matplotlib but without pyplot.

All numbers are those of the explanation's data frames. Importing this package imports matplotlib;
``import diffint`` does not.
"""

from .boxes import box_projection, constraint_bars
from .drift import drift_plot
from .heat_map import importance_heat_map
from .pattern_set import pattern_set_plot
from .regions import region_plot
from .rows import waterfall
from .scores import bound_versus_error, score_histogram

__all__ = [
    "bound_versus_error",
    "box_projection",
    "constraint_bars",
    "drift_plot",
    "importance_heat_map",
    "pattern_set_plot",
    "region_plot",
    "score_histogram",
    "waterfall",
]
