"""The surprise of values beside categories as nodes; `core/associations.py` is the definition.

A table with one more line for cells that are in no bin gives the surprise of each value in each bin
of another column; all pairs of columns are looked up at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..core.associations import Associations
from .graph import WHOLE, Graph, Value

_LARGEST = float(np.finfo(float).max)


def surprise_parts(graph: Graph, associations: Associations, x: Value, known: Value) -> Value:
    """What surprising and new values add to the score, times the number of features. → (rows,)

    x: (rows, features) without NaN; known: (rows, features) where a cell is not missing
    """
    columns, no_bin = associations.columns, associations.n_bins
    bins = _bins(graph, associations, x, known)
    own = bins.columns(columns)  # (rows, columns)

    # Positions in one long table: of the column, of the value, of the other column's bin.
    excess = [[_with_no_bin(table) for table in tables] for tables in associations.excess]
    for i, c in enumerate(columns):
        excess[i][c][:] = 0.0  # a value does not surprise beside itself
    sizes = np.array([[table.size for table in line] for line in excess])
    starts = np.append(0, np.cumsum(sizes)[:-1]).reshape(sizes.shape)
    place = own.unsqueezed(2) * (no_bin + 1) + bins.unsqueezed(1) + starts
    flat = np.concatenate([table.ravel() for line in excess for table in line])
    by_others = graph.op("Gather", flat, place).reduced("Max", 2)

    rarity = [np.append(associations.rarity(i), 0.0) for i in range(len(columns))]
    new = [_without_rows(associations, i) for i in range(len(columns))]
    first = np.append(0, np.cumsum([len(values) for values in rarity])[:-1])
    alone = graph.op("Gather", np.concatenate(rarity), own + first)
    is_new = graph.op("Gather", np.concatenate(new), own + first)
    is_new = is_new & known.columns(columns)
    surprise = graph.op("Max", by_others, alone) * associations.weight
    return is_new.where(associations.unseen, surprise).sum(1)


def _bins(graph: Graph, associations: Associations, x: Value, known: Value) -> Value:
    """The bin of every cell, the number of bins for a cell that is in none. → (rows, features)"""
    n_bins = associations.n_bins
    is_category = np.isin(np.arange(len(n_bins)), associations.categories)
    edges = np.where(np.isnan(associations.edges), np.inf, associations.edges)
    x = x.clip(-_LARGEST, _LARGEST)
    code = x.clip(-1.0, n_bins.astype(np.float64)).cast(WHOLE)
    inside = (x.unsqueezed(2) >= edges).cast(WHOLE).sum(2)
    place = graph.constant(is_category).where(code, inside)
    return (known & (place >= 0)).where(place, n_bins)


def _without_rows(associations: Associations, i: int) -> NDArray[np.bool_]:
    """Which values of the i-th column have no training row; a number has none. → (values + 1,)

    The last one is for cells that are in no bin.
    """
    column = associations.columns[i]
    if column not in associations.categories:
        return np.zeros(int(associations.n_bins[column]) + 1, dtype=bool)
    return np.append(associations.table(i, column).diagonal() == 0, True)


def _with_no_bin(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """A table (values, bins) with zeros for cells that are in no bin."""
    return np.pad(table, ((0, 1), (0, 1)))
