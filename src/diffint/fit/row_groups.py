"""Which training rows belong together, so that none is left out while a copy of it is trained on.

Scores of rows left out of training say how new rows will score only if no copy of them was trained
on. Rows of one group are therefore left out together, and count as one row when the threshold is
computed. Without groups from the user, copies are found here: rows that are equal, or far closer to
each other than to any other row, if all of them occur about equally often, or nearly all an even
number of times, or a multiple of three, and so on. Independent rows that agree by chance, or come
from small clusters, differ more in how often they occur. They are not grouped: new rows will be
like them too.

Other rows may depend on each other as well: equal rows with values that occur nowhere else, rows
that share such values in many columns, and rows that are somewhat closer to each other. They cannot
be told from independent rows of a population with few types or small clusters, so there is a
warning only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.scaling import fit_scaler

Codes = NDArray[np.intp]
Floats = NDArray[np.floating[Any]]

_HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)
# --- Of equal rows
_FEWEST_VALUES = 20  # different rows needed to conclude from their numbers of occurrences
_CERTAIN_DEVIATION = 3.0  # standard errors of the variance of the numbers of occurrences
_MULTIPLES_SHARE = 0.9
_DESIGN_SHARE = 0.2  # of all combinations of the columns' values, in a table of combinations
_MOST_VALUES_SHARE = 0.8  # different values per row, in a column whose values repeat
_FEWEST_SHARED_COLUMNS, _OWN_SHARE = 4, 0.75  # columns whose values repeat, and of own values
# --- Of near rows
_FEWEST_ROWS, _FEW_ROWS, _MOST_ROWS = 30, 60, 20_000
_SAMPLE = 500  # rows whose neighbours are measured
_LARGEST_GROUP, _USUAL_GROUP, _LARGEST_COPIES = 300, 40, 30
_FEWEST_GROUPS = 10
_FEWEST_VALUES_SHARE = 0.1  # different values per row, in a column whose distances are informative
_MOST_EQUAL_SHARE = 0.1  # rows with the most frequent value, in such a column
_MOST_MISSING_SHARE = 0.2
_MOST_COLUMNS = 100
_LARGEST_VALUE = 10.0  # standardised; limits the effect of heavy tails
_SUSPICIOUS, _CLEAR = 1.5, 4.0  # of `_clustering`; measured by benchmarks/independence.py
_NEAR = 3.0  # how many times farther than a row's near copies the next row is


class RowGroups(NamedTuple):
    """What was found in a table.

    codes: (rows,) the group of each row. n_copies: the rows that repeat another row of their group.
    n_equal: further rows that share their values with others and may be copies. close: the size of
    further groups of close rows, 0 if there is no sign of any.
    """

    codes: Codes
    n_copies: int
    n_equal: int
    close: int


def find_row_groups(x: Floats, search_near: bool = True) -> RowGroups:
    """The groups of copied rows in a table, and signs of others. x: (rows, features)

    search_near: whether to look for rows that are nearly equal or close, which takes longest
    """
    codes = _numbered(x)
    counts, first = np.bincount(codes), _first_of(codes)
    are_copies = counts.max() > 1 and _are_copies(counts) and not _is_design(x, first)
    near, close = _near_rows(x, first) if search_near else (np.arange(len(first)), 0)
    # Rows that are equal by chance stay apart.
    together = are_copies | (np.bincount(near)[near] > 1)
    groups = np.where(together[codes], near[codes], len(first) + np.arange(len(x)))
    groups = np.unique(groups, return_inverse=True)[1].ravel()
    n_copies = len(x) - int(groups.max()) - 1
    return RowGroups(groups, n_copies, 0 if n_copies else _n_sharing(x), close)


# --- Equal rows --------------------------------------------------------------------------------


def _numbered(x: NDArray[Any]) -> Codes:
    """(rows,) a number for each row, the same for equal rows; missing values equal each other."""
    from pandas import factorize
    from pandas.util import hash_array

    hashes = np.zeros(len(x), dtype=np.uint64)
    for column in x.T:
        # Adding 0 turns −0 into 0; NaNs can have different bits.
        same = np.where(np.isnan(column), np.nan, column) + 0.0
        hashes = hashes * _HASH_FACTOR + hash_array(same)
    return np.asarray(factorize(hashes)[0], dtype=np.intp)


def _first_of(codes: Codes) -> Codes:
    """The first row with each number."""
    return np.unique(codes, return_index=True)[1]


def _are_copies(counts: NDArray[np.intp]) -> bool:
    """Whether different rows occur `counts` (values,) times because the table was copied.

    The counts of independent rows are those of Poisson variables with any means, without zeros.
    Their variance is at least that of equal means, and on average at most half of them are
    multiples of 2, and fewer are multiples of larger numbers.
    """
    from scipy.optimize import brentq
    from scipy.stats import poisson

    if len(counts) < _FEWEST_VALUES or counts.max() == 1:
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


def _is_design(x: Floats, different: Codes) -> bool:
    """Whether rows are the combinations of the columns' values: an experiment, hours of a week."""
    numbers = [len(np.unique(column[different])) for column in x.T]
    varying = [n for n in numbers if n > 1]
    return len(varying) > 1 and len(different) >= _DESIGN_SHARE * float(
        np.prod(varying, dtype=float)
    )


def _n_sharing(x: Floats) -> int:
    """How many rows share their values with other rows, in the columns whose values repeat.

    Values that occur in no other combination count: two independent rows would hardly agree on
    several of them. Grades and counts occur in many combinations.
    """
    limit = _MOST_VALUES_SHARE * len(x)
    values = [_numbered(column[:, None]) for column in x.T]
    repeating = [v for v in values if _FEWEST_VALUES <= v.max() + 1 <= limit]
    if len(repeating) < _FEWEST_SHARED_COLUMNS:
        return 0
    table = np.stack(repeating, axis=1)
    codes = _numbered(table)
    own = np.zeros(int(codes.max()) + 1, dtype=np.int64)
    for column in table[_first_of(codes)].T:
        own += np.bincount(column)[column] == 1
    copies = np.bincount(codes) - 1
    return int(copies[own >= _OWN_SHARE * table.shape[1]].sum())


# --- Near rows ---------------------------------------------------------------------------------


def _near_rows(x: Floats, different: Codes) -> tuple[Codes, int]:
    """Groups of nearly equal rows, and the size of groups of rows that are only close.

    x: (rows, features); different: (values,) one of each set of equal rows → groups (values,)
    """
    alone = np.arange(len(different))
    if len(different) < _FEWEST_ROWS:
        return alone, 0
    all_rows, n_rows = len(different) <= _MOST_ROWS, len(x)
    if not all_rows:  # copies among more rows hardly change a row's score
        different = np.random.default_rng(0).permutation(different)[:_MOST_ROWS]
        n_rows = _MOST_ROWS
    rows = _comparable(x[different], n_rows)
    clustering, size = _clustering(rows)
    usual = len(rows) >= _FEW_ROWS and size < _USUAL_GROUP
    if clustering < (_SUSPICIOUS if usual else _CLEAR):
        return alone, 0
    if all_rows and clustering >= _CLEAR and size < _LARGEST_COPIES:
        linked = _linked(rows)
        if _are_copies(np.bincount(linked)):
            return linked, 0
    return alone, size + 1


def _comparable(x: Floats, n_rows: int) -> Floats:
    """Standardised values of continuous columns; missing ones are central. → (rows, columns)"""
    scaled = fit_scaler(x, "minmax").transform(x)[0].astype(np.float64)
    columns: list[Floats] = []
    for column in scaled.T:
        known = column[~np.isnan(column)]
        if len(columns) == _MOST_COLUMNS or len(known) < (1 - _MOST_MISSING_SHARE) * len(x):
            continue
        counts = np.unique(known, return_counts=True)[1]
        many = len(counts) >= max(_FEWEST_VALUES_SHARE * n_rows, 2)
        if many and counts.max() <= _MOST_EQUAL_SHARE * len(known):
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
    rows = rows[_first_of(_numbered(rows))]
    largest = min(_LARGEST_GROUP, len(rows) // _FEWEST_GROUPS)
    if len(rows) < _FEWEST_ROWS or rows.shape[1] == 0:
        return 0.0, 0
    sample = np.random.default_rng(0).permutation(len(rows))[:_SAMPLE]
    n_neighbours = 3 * largest + 1
    distances = np.maximum(_neighbours(rows, rows[sample], n_neighbours + 1)[0], 1e-9)
    steps = np.minimum(np.log(distances[:, 1:] / distances[:, :-1]), 3.0).mean(axis=0)
    growth = steps * np.arange(1, n_neighbours + 1)
    best, size = 0.0, 0
    for k in range(1, largest + 1):
        around = growth[max(int(0.8 * k) - 1, 0) : int(np.ceil(1.25 * k))].mean()
        beyond = max(float(growth[2 * k : 3 * k + 1].mean()), 1e-9)
        if around / beyond > best:
            best, size = around / beyond, k
    return float(best), size


def _linked(rows: Floats) -> Codes:
    """Groups of rows that are nearly equal: each row and those far closer than the next one."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    n_neighbours = min(_LARGEST_COPIES, len(rows) // 3)
    distances, neighbours = _neighbours(rows, rows, n_neighbours + 1)
    distances = np.maximum(distances, 1e-9)
    steps = np.log(distances[:, 1:] / distances[:, :-1])
    count = np.where(steps.max(axis=1) > np.log(_NEAR), steps.argmax(axis=1) + 1, 0)
    mates = np.arange(n_neighbours + 1) < count[:, None]
    source = np.repeat(np.arange(len(rows)), count)
    links = coo_matrix((np.ones(len(source)), (source, neighbours[mates])), shape=(len(rows),) * 2)
    return np.asarray(connected_components(links, directed=False)[1], dtype=np.intp)


def _neighbours(rows: Floats, of: Floats, count: int) -> tuple[Floats, Codes]:
    """Distances to the nearest rows, and which they are, without the row itself; (of, count)"""
    from sklearn.neighbors import NearestNeighbors

    method = "kd_tree" if rows.shape[1] <= 5 else "brute"  # trees are slow in many dimensions
    search = NearestNeighbors(n_neighbors=count + 1, algorithm=method).fit(rows)
    distances, found = search.kneighbors(of)
    return distances[:, 1:], found[:, 1:]
