"""Which training rows belong together, so that none is left out while a copy of it is trained on.

Scores of rows left out of training say how new rows will score only if no copy of them was trained
on. Rows of one group are therefore left out together, and count as one row when the threshold is
computed. Without groups from the user, copies are found here:

- Equal rows, if the table consists of copies: all rows occur about equally often, or nearly all
  occur a multiple of twice, three times, and so on. Independent rows that agree by chance (grades,
  counts, types of goods) differ more in how often they occur. They are not grouped: new rows will
  repeat them too.
- Nearly equal rows: far closer to each other than to any other row.

Other rows may be copies as well, or measurements of one subject: equal rows with values that occur
nowhere else, and rows that are only somewhat closer to each other. They cannot be told from
independent rows of a population with few types or small clusters, so there is a warning only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.scaling import fit_scaler

Codes = NDArray[np.intp]
Floats = NDArray[np.floating]

_HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_FEWEST_VALUES = 20  # different rows needed to conclude from their numbers of occurrences
_CERTAIN_DEVIATION = 3.0  # standard errors of the variance of the counts
_MULTIPLES_SHARE = 0.9
_FEWEST_ROWS, _MOST_ROWS = 60, 20_000  # with more, copies hardly change a row's score
_SAMPLE = 500  # rows whose neighbours are measured
_MOST_NEIGHBOURS = 120
_CONTINUOUS_SHARE = 0.1  # different values per row, in a column whose distances are informative
_LARGEST_VALUE = 10.0  # standardised; limits the effect of heavy tails
# Of `_clustering`. One of 1,000 tables of independent rows exceeds the first, as do 22 of 336 real
# ones (benchmarks/independence.py).
_SUSPICIOUS, _CLEAR = 1.5, 4.0
_NEAR = 3.0  # how many times farther than a row's near copies the next row is


class RowGroups(NamedTuple):
    """What was found in a table.

    codes: (rows,) the group of each row. n_copies: the rows that repeat another row of their group.
    n_equal: further rows that equal another one and may be copies. close: the size of further
    groups of close rows, 0 if there is no sign of any.
    """

    codes: Codes
    n_copies: int
    n_equal: int
    close: int


def find_row_groups(x: Floats) -> RowGroups:
    """The groups of copied rows in a table, and signs of others. x: (rows, features)"""
    codes, are_copies, n_equal = _equal_rows(x)
    first = np.unique(codes, return_index=True)[1]
    near, close = _near_rows(x[first], len(x))
    # Rows that are equal by chance stay apart.
    together = are_copies | (np.bincount(near)[near] > 1)
    groups = np.where(together[codes], near[codes], len(first) + np.arange(len(x)))
    groups = np.unique(groups, return_inverse=True)[1].ravel()
    return RowGroups(groups, len(x) - int(groups.max()) - 1, n_equal, close)


def _equal_rows(x: Floats) -> tuple[Codes, bool, int]:
    """The number of each row's value (rows,), whether equal rows are copies, and how many may be.

    Missing values equal each other.
    """
    from pandas import factorize
    from pandas.util import hash_array

    hashes = np.zeros(len(x), dtype=np.uint64)
    for column in x.T:
        # Adding 0 turns −0 into 0; NaNs can have different bits.
        same = np.where(np.isnan(column), np.nan, column) + 0.0
        hashes = hashes * _HASH_FACTOR + hash_array(same)
    codes = factorize(hashes)[0].astype(np.intp)
    counts = np.bincount(codes)
    if counts.max() == 1:
        return codes, False, 0
    if _are_copies(counts):
        return codes, True, 0
    first = np.unique(codes, return_index=True)[1]
    own_values, varying = np.zeros(len(counts), dtype=np.int64), 0
    for column in x[first].T:
        values, found = factorize(column, use_na_sentinel=False)
        own_values += np.bincount(values)[values] == 1
        varying += len(found) > 1
    may_be_copies = (counts > 1) & (2 * own_values >= varying)
    return codes, False, int((counts - 1)[may_be_copies].sum())


def _are_copies(counts: NDArray[np.intp]) -> bool:
    """Whether different rows occur `counts` (values,) times because the table was copied.

    The counts of independent rows are those of Poisson variables with any means, without zeros.
    Their variance is at least that of equal means, and on average at most half of them are
    multiples of 2, and fewer are multiples of larger numbers.
    """
    from scipy.optimize import brentq
    from scipy.stats import poisson

    if len(counts) < _FEWEST_VALUES:
        return False
    mean = float(counts.mean())
    rate = brentq(lambda r: r / -np.expm1(-r) - mean, 1e-12, mean)  # the mean with the zeros
    values = np.arange(1, int(mean + 20 * np.sqrt(mean)) + 20)
    share = poisson.pmf(values, rate) / -np.expm1(-rate)
    variance, fourth = (float(share @ (values - mean) ** power) for power in (2, 4))
    error = np.sqrt((fourth - variance**2) / len(counts))
    if float(counts.var()) < variance - _CERTAIN_DEVIATION * error:
        return True
    largest = int(np.median(counts))
    return any((counts % m == 0).mean() >= _MULTIPLES_SHARE for m in range(2, largest + 1))


# --- Neighbours --------------------------------------------------------------------------------


def _near_rows(different: Floats, n_rows: int) -> tuple[Codes, int]:
    """Groups of nearly equal rows (rows,), and the size of groups of rows that are only close.

    different: (rows, features) the table of `n_rows` rows without its equal rows
    """
    alone = np.arange(len(different))
    if not _FEWEST_ROWS <= len(different) <= _MOST_ROWS:
        return alone, 0
    rows = _comparable(different, n_rows)
    if rows.shape[1] == 0:
        return alone, 0
    clustering, size = _clustering(rows)
    if clustering < _SUSPICIOUS:
        return alone, 0
    if clustering < _CLEAR:
        return alone, size + 1
    linked = _linked(rows)
    left = np.unique(linked, return_index=True)[1]
    clustering, size = _clustering(rows[left])
    return linked, size + 1 if clustering >= _SUSPICIOUS else 0


def _comparable(x: Floats, n_rows: int) -> Floats:
    """Standardised values of the columns with many different values; missing ones are central."""
    scaled = fit_scaler(x, "minmax").transform(x)[0].astype(np.float64)
    columns = []
    for column in scaled.T:
        known = column[~np.isnan(column)]
        if len(np.unique(known)) < max(_CONTINUOUS_SHARE * n_rows, 2):
            continue
        center, spread = float(np.median(known)), float(known.std())
        standardised = np.clip((column - center) / spread, -_LARGEST_VALUE, _LARGEST_VALUE)
        columns.append(np.nan_to_num(standardised))
    return np.stack(columns, axis=1) if columns else np.empty((len(x), 0))


def _clustering(rows: Floats) -> tuple[float, int]:
    """How strongly rows come in small groups, and the number of neighbours in a group.

    With r_k the distance to the k-th neighbour, k · log(r_{k+1} / r_k) has the same mean 1/D for
    every k if rows are independent and D the dimension of the space they fill. If rows come in
    groups of g + 1, the mean is larger around g, where the next neighbour belongs to another group.
    Gives the largest ratio of the mean around some k to that around larger ones, and that k.
    """
    rows = np.unique(rows, axis=0)
    if len(rows) < _FEWEST_ROWS:
        return 0.0, 0
    sample = np.random.default_rng(0).permutation(len(rows))[:_SAMPLE]
    n_neighbours = min(_MOST_NEIGHBOURS, len(rows) // 3)
    distances = _neighbours(rows, rows[sample], n_neighbours + 1)[0]
    distances = np.maximum(distances, 1e-9)
    steps = np.minimum(np.log(distances[:, 1:] / distances[:, :-1]), 3.0).mean(axis=0)
    growth = steps * np.arange(1, n_neighbours + 1)
    best, size = 0.0, 0
    for k in range(1, n_neighbours // 3):
        around = growth[max(int(0.8 * k) - 1, 0) : int(np.ceil(1.25 * k))].mean()
        beyond = max(float(growth[2 * k : 3 * k + 1].mean()), 1e-9)
        if around / beyond > best:
            best, size = around / beyond, k
    return float(best), size


def _linked(rows: Floats) -> Codes:
    """Groups of rows that are nearly equal: each row and those far closer than the next one."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    n_neighbours = min(_MOST_NEIGHBOURS, len(rows) // 3)
    distances, neighbours = _neighbours(rows, rows, n_neighbours + 1)
    steps = np.log(np.maximum(distances[:, 1:], 1e-9) / np.maximum(distances[:, :-1], 1e-9))
    count = np.where(steps.max(axis=1) > np.log(_NEAR), steps.argmax(axis=1) + 1, 0)
    mates = np.arange(n_neighbours + 1) < count[:, None]
    source = np.repeat(np.arange(len(rows)), count)
    links = coo_matrix((np.ones(len(source)), (source, neighbours[mates])), shape=(len(rows),) * 2)
    return np.asarray(connected_components(links, directed=False)[1], dtype=np.intp)


def _neighbours(rows: Floats, of: Floats, count: int) -> tuple[Floats, Codes]:
    """Distances to the nearest rows, and which they are, without the row itself; (of, count)"""
    from sklearn.neighbors import NearestNeighbors

    distances, found = NearestNeighbors(n_neighbors=count + 1).fit(rows).kneighbors(of)
    return distances[:, 1:], found[:, 1:]
