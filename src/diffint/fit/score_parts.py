"""What counts in a score beside the error: the distance from kept rows, and missing cells."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.associations import Associations
from ..core.config import Config
from ..core.constants import COMMONLY_MISSING
from ..core.model import Member
from ..core.scaling import Scaler
from ..score.prepared import PreparedMembers
from .sampling import Rows, at_most

_LARGEST_WEIGHT = 1e6  # of distances that are nearly all 0
_MEASURED_ROWS = 10_000  # largest sample on which the weights are measured
_HIGH, _MIDDLE = 0.9, 0.5  # quantiles whose difference is the spread of a part
_GROUP_ROWS = 16
_LEAST_SPREAD = 0.1  # of the standard deviation, where most values are equal
# The weights of a category and of a number that follow from another column.
_SURPRISE_WEIGHT, _NUMBER_WEIGHT = 3.0, 2.0
_COMMONLY_NEW, _LEAST_NEW = 0.05, 1e-4  # share of rows with a value of their own
_LEAST_SURPRISE = 0.1  # nats, where hardly any value surprises
_FEW = 0.95  # of the scores that are not high
_RARE_SCORE, _MARGIN = 0.995, 2.0  # a row without values exceeds this quantile by this factor


def n_kept(config: Config, train: list[Rows], left_out: list[Rows]) -> int:
    """How many rows each member keeps: the same number for all.

    None if no rows are left out: the threshold would come from the scores of kept rows, whose
    distance is 0, and nearly every new row would be above it.
    """
    if not all(map(len, left_out)):
        return 0
    return min(int(config.kept_rows), *map(len, train))


def keep_rows(
    x: NDArray[Any],
    train: Rows,
    scaled: NDArray[np.float32],
    scaler: Scaler,
    config: Config,
    count: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Choose the rows that a member keeps. → (kept, features) scaled, and which cells were missing

    x: (rows, features) in original units; train: the member's rows; scaled: (train rows, features)
    the same rows, scaled. A missing cell of a kept row gets the median of the feature. A feature
    without any value counts as 0, and not as missing.
    """
    if count == 0:
        return np.empty((0, x.shape[1]), dtype=np.float32), np.empty((0, x.shape[1]), dtype=bool)
    seen = scaler.seen
    rows = scaler.target(x[np.sort(at_most(train, count, rng))], config.error)
    missing = np.isnan(rows)
    if missing.any():
        middle = np.zeros(x.shape[1], dtype=np.float32)
        middle[seen] = np.nanmedian(scaled[:, seen], axis=0)
        rows = np.where(missing, middle, rows)
    order = _near_each_other(rows)
    return rows[order], (missing & seen)[order]


def _near_each_other(rows: NDArray[np.float32]) -> NDArray[np.intp]:
    """An order of rows (rows, features) in which rows that lie near each other stand together.

    The rows are halved at the middle of the feature that spreads most, as in a k-d tree, down to
    groups of _GROUP_ROWS. Scoring passes over whole groups that are far away.
    """
    order, groups = [], [np.arange(len(rows))]
    while groups:
        group = groups.pop()
        if len(group) <= _GROUP_ROWS:
            order.append(group)
            continue
        widest = np.ptp(rows[group], axis=0).argmax()
        group = group[np.argsort(rows[group, widest], kind="stable")]
        middle = -(-len(group) // _GROUP_ROWS) // 2 * _GROUP_ROWS
        groups += [group[middle:], group[:middle]]
    return np.concatenate(order)


def weigh_parts(
    config: Config,
    members: tuple[Member, ...],
    x: NDArray[Any],
    measured: list[Rows],
    missing_share: NDArray[np.float64],
    n_jobs: int,
    positions: Collection[int] = (),
) -> tuple[Member, ...]:
    """The members with the weights of distances and missing cells.

    members: their weights are 0; measured: for each member the rows that it left out, or all if
    it left out none; missing_share: (features,) of the training cells; positions: features that are
    positions of times, which rows of other times do not have.
    """
    keeps, signals = len(members[0].kept_rows) > 0, config.missing == "signal"
    has_categories = len(members[0].associations.categories) > 0
    if not (keeps or signals or has_categories):
        return members
    errors_only = PreparedMembers(config, members).packed
    both = PreparedMembers(config, tuple(replace(m, distance_weight=1.0) for m in members)).packed
    weighed = []
    for i, member in enumerate(members):
        rows = x[at_most(measured[i], _MEASURED_ROWS, np.random.default_rng(i))]
        error = errors_only.member_parts(rows, i, n_jobs)
        parts = error
        if keeps:
            distance = both.member_parts(rows, i, n_jobs) - error
            # The two parts vary as much as each other among the rows that the member does not know.
            spread = _spread(distance.sum(axis=1))
            weight = _spread(error.sum(axis=1)) / spread if spread > 0 else 1.0
            weight = min(weight, _LARGEST_WEIGHT)
            parts = error + weight * distance
            member = replace(member, distance_weight=float(weight))
        if signals:
            missing, surprise = _missing_cells(member, rows, parts, missing_share)
            member = replace(member, missing_error=missing, missing_surprise=surprise)
        if has_categories:
            member = replace(member, associations=_weighed_associations(member, rows, parts))
        if signals and positions:
            member = _with_neutral(member, config, rows, positions, n_jobs)
        weighed.append(member)
    return tuple(weighed)


def _weighed_associations(
    member: Member, rows: NDArray[Any], parts: NDArray[np.float64]
) -> Associations:
    """The member's associations with their weights. rows, parts: (rows, features), unknown rows

    The surprise of a category varies as much as the part of a feature usually does, or more if the
    category goes closely together with another column; that of a number counts less, as its error
    shows most of the same. A new value alone makes a row score above nearly all others, unless many
    training rows have a value of their own.
    """
    found = member.associations
    usual = float(np.mean([_spread(parts[:, j]) for j in np.flatnonzero(member.scaler.seen)]))
    surprise, _ = found.surprise(rows)
    spread = np.array([max(_spread(column), _LEAST_SURPRISE) for column in surprise.T])
    strength = np.array([found.strength(i) for i in range(len(found.columns))])
    is_category = np.isin(found.columns, found.categories)
    factor = np.where(is_category, _SURPRISE_WEIGHT, _NUMBER_WEIGHT)
    weight = factor * strength * usual * member.scaler.n_seen / spread
    scores = parts.sum(axis=1) * member.scaler.n_seen + surprise @ weight
    highest = np.maximum(_MARGIN * np.quantile(scores, _RARE_SCORE), weight * found.most_surprise)
    new_share = found.single_share
    rare = np.clip(1.0 - new_share / _COMMONLY_NEW, 0.0, 1.0)
    unseen = np.maximum(rare * highest, -weight * np.log(np.maximum(new_share, _LEAST_NEW)))
    return replace(found, weight=weight, unseen=np.where(is_category, unseen, 0.0))


def _with_neutral(
    member: Member, config: Config, rows: NDArray[Any], neutral: Collection[int], n_jobs: int
) -> Member:
    """The member with features whose missing cells raise and lower no score. rows: unknown ones

    As many rows have high scores without the value as with it. What the cell counts makes up for
    its part of the score, and for the rest of the row being nearer to some kept row.
    """
    error, surprise = member.missing_error.copy(), member.missing_surprise.copy()
    for j in neutral:
        error[j] = surprise[j] = 0.0
        member = replace(member, missing_error=error.copy(), missing_surprise=surprise.copy())
        without = np.array(rows)
        without[:, j] = np.nan
        packed = PreparedMembers(config, (member,)).packed
        high, lower = (np.quantile(packed.scores(x, n_jobs), _FEW) for x in (rows, without))
        error[j] = max(float(high - lower), 0.0) * member.scaler.n_seen
    return replace(member, missing_error=error)


def _spread(values: NDArray[np.float64]) -> float:
    high, middle = np.quantile(values, [_HIGH, _MIDDLE])
    return float(max(high - middle, _LEAST_SPREAD * values.std()))


def _missing_cells(
    member: Member,
    rows: NDArray[Any],
    parts: NDArray[np.float64],
    missing_share: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The error and the surprise of missing cells. rows, parts: (rows, features) → (features,) each

    A missing cell counts as much as a present one on average, and twice as much where training
    rows never miss the value. A row without any value scores above nearly all others: the surprise
    grows with the cube of the missing share, so that a few missing cells hardly disturb the order
    of the rows, but hardly any present cells do not look normal.
    """
    seen = member.scaler.seen
    present = ~np.isnan(rows) & seen
    typical = (
        member.scaler.n_seen * parts.sum(axis=0, where=present) / np.maximum(present.sum(axis=0), 1)
    )
    rare = np.where(seen, np.maximum(1.0 - missing_share / COMMONLY_MISSING, 0.0), 0.0)
    scores = parts.sum(axis=1)
    # The mean is the larger one where a few rows are extreme, or by rounding where all are equal.
    above = max(float(np.quantile(scores, _RARE_SCORE) - scores.mean()), 0.0)
    return typical * (1.0 + rare), _MARGIN * above * rare
