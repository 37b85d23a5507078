"""The figures: each a function of an explanation, in original units, drawn without pyplot.

Every number in them is one that the explanation's own frames hold. Matplotlib is imported with
this package, and so never by ``import diffint``.
"""

from .boxes import box_projection, constraint_bars
from .heat_map import importance_heat_map
from .rows import waterfall
from .scores import bound_versus_error, score_histogram

__all__ = [
    "bound_versus_error",
    "box_projection",
    "constraint_bars",
    "importance_heat_map",
    "score_histogram",
    "waterfall",
]
