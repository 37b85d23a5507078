"""Whether the population has moved since the fit, where, and how many alerts that explains."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError
from ..core.flag_rule import FlagRule
from ..core.formatting import counted
from ..core.model import FittedModel
from ..score.prepared import PreparedModel
from ..tables.training_table import TrainingTableSearch
from .drift_dictionary import Dictionary, build_dictionary
from .drift_summary import FeatureShift, describe
from .permutation_test import MaxTest, compare_means, equal_chances
from .restored import as_in_similar_rows, with_former_numbers, with_former_values
from .streams import is_empty

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

LEVEL = 0.01
SCORE = "(score)"
FEWEST_ROWS = 20
MOST_ROWS = 5_000  # new rows that are compared; more would show only shifts that do not matter
_MOST_PER_STORED = 10  # new rows for each stored one, beyond which more say nothing
_MOST_RESTORED = 5  # features whose former distributions are tried
_MOSTLY = 0.5
_NEARLY = 0.999  # of the largest statistic: then the plainer kind of shift is named


@dataclass(frozen=True)
class Drift:
    """Whether new rows come from where the training rows came from, and where they differ.

    p_value: of the largest difference, over all features; exact for exchangeable rows.
    shifts: what is most different in each feature, the largest statistic first.
    critical: the statistic above which a p-value is at most the level, by the permutations.
    n_rows: new rows; n_compared: how many of them were compared; n_stored: with how many stored
        calibration rows.
    flagged_share: of the new rows; expected_share: of rows like the training rows, at most.
    explained: pairs of features that moved and the share of rows that would be flagged if these,
        and those before them, had the values that they had in training.
    grouped: whether training rows come in groups, so that p-values may be too small.
    training_rows: whether these are rows that the model was trained on, or such are among them;
        the score, which is too low for these, is not compared.
    """

    p_value: float
    level: float
    shifts: tuple[FeatureShift, ...]
    critical: float
    n_rows: int
    n_compared: int
    n_stored: int
    flagged_share: float
    expected_share: float
    explained: tuple[tuple[str, float], ...]
    grouped: bool = False
    training_rows: bool = False

    @property
    def drifted(self) -> bool:
        """Whether the population has moved: p ≤ level."""
        return self.p_value <= self.level

    @property
    def features(self) -> tuple[str, ...]:
        """All features, the one that moved most first; ``(score)`` is the anomaly score."""
        return tuple(shift.feature for shift in self.shifts)

    @property
    def moved(self) -> tuple[FeatureShift, ...]:
        """The features that moved, with p ≤ level: with few exceptions over all of them at once."""
        return tuple(shift for shift in self.shifts if shift.p_value <= self.level)

    def to_frame(self) -> pandas.DataFrame:
        """One line per feature, the one that moved most first.

        Columns: feature, p_value (that counts all features), statistic (difference of means in
        standard errors), kind of shift, value (of a category), measure, was, now (values of the
        measure), shift (now − was), shift_sd (in standard deviations of the stored rows).
        """
        import pandas

        return pandas.DataFrame([asdict(shift) for shift in self.shifts])

    def text(self) -> str:
        """A few sentences: whether, where, and how many alerts that explains."""
        from ..show.wording.drift import drift_text

        return drift_text(self)

    def to_dict(self) -> dict[str, Any]:
        """All results as values for JSON; what is not a number is None."""
        values = asdict(self) | {"drifted": self.drifted, "text": self.text()}
        values["shifts"] = [
            {name: _for_json(value) for name, value in shift.items()} for shift in values["shifts"]
        ]
        values["explained"] = [
            {"feature": name, "flagged_share": share} for name, share in self.explained
        ]
        return {name: _for_json(value) for name, value in values.items()}

    def to_json(self) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict())

    def plot(self) -> Figure:
        """How much each feature moved, and from where to where."""
        from ..show.plots import drift_plot

        return drift_plot(self)

    def __repr__(self) -> str:
        moved = ", ".join(shift.feature for shift in self.moved[:3])
        what = f"moved: {moved}" if moved else "not moved"
        return f"Drift({what}; p_value={self.p_value:.3g}, {counted(self.n_rows, 'row')})"

    def _repr_html_(self) -> str:
        from ..show.notebook import drift_html

        return drift_html(self)


def _for_json(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def check_comparable(model: FittedModel) -> None:
    """Raise an error if a model does not store enough rows to compare new ones with."""
    n_stored = len(model.calibration.sample)
    if n_stored == 0:
        setting = "kept_rows" if model.calibration.held_out else "calibration"
        raise InputError(
            f"the model stores no calibration rows to compare new rows with; fit with "
            f"{setting}='auto'"
        )
    if n_stored < FEWEST_ROWS:
        raise InputError(
            f"the model stores only {counted(n_stored, 'calibration row')}, but drift needs at "
            f"least {FEWEST_ROWS}; fit on more rows or fewer columns"
        )
    if not _compared_features(model):
        raise InputError("the model has only columns of times, which drift does not compare")


def is_comparable(model: FittedModel, n_rows: int) -> bool:
    """Whether so many rows can be compared with those of a model."""
    try:
        check_comparable(model)
    except InputError:
        return False
    return n_rows >= FEWEST_ROWS


def check_enough_rows(table: Any) -> None:
    """Raise an error if a table of any kind has no rows: the reader's would speak of samples."""
    if is_empty(table):
        _check_enough(0)


def _check_enough(n_rows: int) -> None:
    if n_rows < FEWEST_ROWS:
        raise InputError(f"drift needs at least {FEWEST_ROWS} rows; there are only {n_rows}")


def rows_to_compare(model: FittedModel) -> int:
    """How many new rows are compared at most."""
    return min(MOST_ROWS, _MOST_PER_STORED * len(model.calibration.sample))


def find_drift(
    prepared: PreparedModel,
    x: NDArray[Any],
    scores: Array,
    rule: FlagRule,
    level: float,
    n_jobs: int = 1,
    whole: WholeTable | None = None,
) -> Drift:
    """Compare new rows with the stored calibration rows. x: (rows, features); scores: (rows,)

    rule: which of the rows are flagged; whole: what is known of all rows, if these are only some of
    them, drawn at random.
    """
    model, calibration = prepared.model, prepared.model.calibration
    check_comparable(model)
    n_rows, n_flagged, training_rows = whole or _whole_table(model, x, scores, rule)
    _check_enough(n_rows)
    stored = calibration.sample
    rng = np.random.default_rng([len(stored), n_rows, x.shape[1]])
    if len(x) > rows_to_compare(model):
        some = np.sort(rng.choice(len(x), rows_to_compare(model), replace=False))
        x, scores, rule = x[some], scores[some], rule.take(some)
    new = x.astype(np.float64)
    compared = _compared_columns(model, stored, new, None if training_rows else scores)
    found = compare_rows(compared, len(stored), calibration.kind != "holdout", level, rng)
    explained: list[tuple[str, float]] = []
    if n_flagged > rule.rate * n_rows:
        moved = [
            shift for shift in found.shifts if shift.p_value <= level and shift.feature != SCORE
        ]
        for name, rows in _restored(model, new, moved[:_MOST_RESTORED], rng):
            share = float(rule.flagged(prepared.packed.scores(rows, n_jobs)).mean())
            explained.append((name, share))
            if share <= rule.rate:
                break
    return Drift(
        p_value=found.p_value,
        level=level,
        shifts=found.shifts,
        critical=found.critical,
        n_rows=n_rows,
        n_compared=len(x),
        n_stored=len(stored),
        flagged_share=n_flagged / n_rows,
        expected_share=rule.rate,
        explained=tuple(explained),
        grouped=calibration.grouped,
        training_rows=training_rows,
    )


def _whole_table(model: FittedModel, x: NDArray[Any], scores: Array, rule: FlagRule) -> WholeTable:
    search = TrainingTableSearch(model)
    search.add(x)
    return WholeTable(len(x), int(rule.flagged(scores).sum()), search.found)


class WholeTable(NamedTuple):
    """What is known of all rows; training_rows: whether the model was trained on some of them."""

    n_rows: int
    n_flagged: int
    training_rows: bool


class Columns(NamedTuple):
    """The columns that are compared.

    pooled: (rows, columns), stored rows first; values: of those that are categories; alone: numbers
    that are not compared in pairs.
    """

    names: list[str]
    pooled: Array
    values: dict[int, tuple[str, ...]]
    alone: list[int]


class Comparison(NamedTuple):
    """What a comparison of rows found; see `Drift`."""

    p_value: float
    shifts: tuple[FeatureShift, ...]
    critical: float


def compare_rows(
    compared: Columns, n_stored: int, trained_on: bool, level: float, rng: np.random.Generator
) -> Comparison:
    """Compare the first rows, which are stored ones, with the others.

    trained_on: whether the stored rows helped to list the values of categories
    """
    n_values = {k: len(values) for k, values in compared.values.items()}
    dictionary = build_dictionary(
        compared.pooled, n_stored, n_values, compared.alone, trained_on, rng
    )
    weights = equal_chances(dictionary.is_pair, level)
    test = compare_means(dictionary.columns, n_stored, weights, level, rng)
    largest, bound = np.abs(test.statistics).max(initial=0.0), test.bounds.min(initial=1.0)
    p_value = float(test.p_values(np.array([largest]), np.array([bound]))[0])
    shifts = _shifts(test, dictionary, compared, n_stored)
    return Comparison(p_value, shifts, test.critical(level))


def _compared_columns(
    model: FittedModel, stored: Array, new: Array, scores: Array | None
) -> Columns:
    """The features, and the score if it is given and comparable with that of stored rows.

    Scores by fewer members are not, and a score with times in it moves by itself.
    """
    chosen = _compared_features(model)
    names = [model.feature_names[j] for j in chosen]
    columns = [_pooled(stored[:, j], new[:, j]) for j in chosen]
    alone = []
    if scores is not None and model.calibration.kind == "holdout" and not model.kinds.times:
        alone.append(len(names))
        names.append(SCORE)
        columns.append(np.concatenate([model.calibration.sample_scores, scores]))
    values = {k: model.categories[j] for k, j in enumerate(chosen) if j in model.categories}
    return Columns(names, np.column_stack(columns), values, alone)


def _is_stuck(new: Array, stored: Array) -> bool:
    """Whether most new numbers are equal, and stored ones were not: they have no ranks to keep."""
    most, before = _largest_share(new), _largest_share(stored)
    return most > max(_MOSTLY, 2.0 * before)


def _largest_share(x: Array) -> float:
    """The share of the most common value among those that are there. (rows,)"""
    _, counts = np.unique(x[~np.isnan(x)], return_counts=True)
    return float(counts.max() / counts.sum()) if len(counts) else 0.0


def _compared_features(model: FittedModel) -> list[int]:
    """All features but those that the fit ignored and those of times: new rows have new ones."""
    times = {feature for name, time in model.kinds.times.items() for feature in time.features(name)}
    return [
        j
        for j, name in enumerate(model.feature_names)
        if name not in times
        and model.features.missing_share[j] < 1.0
        and model.categories.get(j) != ()
    ]


def _pooled(stored: Array, new: Array) -> Array:
    """Values of a column in one precision: that of float32 if either sample has only such values.

    Otherwise 0.1 would not be equal to 0.1 if one table was read in float32.
    """
    with np.errstate(over="ignore"):
        rough, rough_new = stored.astype(np.float32), new.astype(np.float32)
    either = np.array_equal(rough, stored, True) or np.array_equal(rough_new, new, True)
    return np.concatenate([rough, rough_new] if either else [stored, new]).astype(np.float64)


def _shifts(
    test: MaxTest, dictionary: Dictionary, compared: Columns, n_stored: int
) -> tuple[FeatureShift, ...]:
    """What is most different in each feature, the largest statistic first.

    A pair counts only for the feature that comes first: it is that one that changes its pairs. Of
    equal statistics, that of the feature with larger ones besides is first.
    """
    sizes = np.abs(test.statistics)
    own = np.array([entry.features[0] for entry in dictionary.entries])
    other = np.array([entry.features[-1] for entry in dictionary.entries])
    left = set(range(len(compared.names)))
    counts = np.ones(len(sizes), dtype=bool)
    order: list[int] = []
    entries_of: list[NDArray[np.intp]] = []
    while left:
        top, total = np.zeros((2, len(compared.names)))
        for features, entries in ((own, counts), (other, counts & (other != own))):
            np.maximum.at(top, features[entries], sizes[entries])
            np.add.at(total, features[entries], sizes[entries] ** 2)
        j = max(left, key=lambda k: (top[k], total[k]))
        entries_of.append(np.flatnonzero(counts & ((own == j) | (other == j))))
        order.append(j)
        left.remove(j)
        counts[entries_of[-1]] = False
    top = np.array([sizes[entries].max(initial=0.0) for entries in entries_of])
    bounds = np.array([test.bounds[entries].min(initial=1.0) for entries in entries_of])
    p_values = test.p_values(top, bounds)
    stored, new = compared.pooled[:n_stored], compared.pooled[n_stored:]
    shifts = []
    for place, j in enumerate(order):
        entries = entries_of[place]
        chosen = int(entries[np.flatnonzero(sizes[entries] >= _NEARLY * top[place])[0]])
        shifts.append(
            describe(
                dictionary.entries[chosen],
                j,
                compared.names,
                compared.values.get(j, ()),
                dictionary.columns[:, chosen],
                stored,
                new,
                float(p_values[place]),
                float(top[place]),
            )
        )
    return tuple(shifts)


def _restored(
    model: FittedModel, new: Array, moved: Sequence[FeatureShift], rng: np.random.Generator
) -> Iterator[tuple[str, Array]]:
    """The new rows with one feature after the other as it was in training. → name, rows"""
    stored, rows = model.calibration.sample, new.copy()
    for shift in moved:
        j = model.feature_names.index(shift.feature)
        is_number = j not in model.categories
        if shift.is_relation or (is_number and _is_stuck(rows[:, j], stored[:, j])):
            rows[:, [j]] = as_in_similar_rows(rows, stored, [j], set(model.categories))
        elif is_number:
            rows[:, j] = with_former_numbers(rows[:, j], stored[:, j], rng)
        else:
            rows[:, j] = with_former_values(rows[:, j], stored[:, j], rng)
        yield shift.feature, rows
