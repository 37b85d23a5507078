"""What a model knows of columns that are not numbers, and the features that they become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

# What is read from a time besides its position, with the days until it repeats; each is a category,
# so that its cycle has no end.
CYCLES = {"hour": 1.0, "weekday": 7.0, "month": 365.0}


@dataclass(frozen=True)
class TimeColumn:
    """A column of times.

    zone: the time zone of the training times, None if they had none; hours are local ones.
    start: the day of the first training time (``2013-01-01``); days: from there to the last one.
    parts: those of `CYCLES` that repeat in the training times, and differ.
    """

    zone: str | None
    start: str
    days: float
    parts: tuple[str, ...]

    def features(self, name: str) -> list[str]:
        """The names of the features of the column with this name."""
        return [f"{name} ({part})" for part in (*self.parts, f"days since {self.start}")]


@dataclass(frozen=True)
class Kinds:
    """The columns of a table that are not numbers.

    times: by name; each becomes several features. categories: the features that are categories,
    with their values, by position; a row holds the position of its value, or the number of values
    for one that training rows do not have.
    """

    times: Mapping[str, TimeColumn] = field(default_factory=dict)
    categories: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    @property
    def only_numbers(self) -> bool:
        """Whether there is no such column."""
        return not (self.times or self.categories)

    @property
    def n_values(self) -> dict[int, int]:
        """The number of values of each category; one without values is ignored, and not listed."""
        return {j: len(values) for j, values in self.categories.items() if values}

    def features(self, columns: Sequence[str]) -> list[str]:
        """The names of the features of a table with these columns."""
        return [
            feature
            for name in columns
            for feature in (self.times[name].features(name) if name in self.times else [name])
        ]

    def positions(self, features: Sequence[str]) -> list[int]:
        """Which of the features are the positions of times in the span of the training times."""
        return list(self.starts(features))

    def starts(self, features: Sequence[str]) -> dict[int, str]:
        """Of the `positions` of times, the days from which they are counted."""
        starts = {time.features(name)[-1]: time.start for name, time in self.times.items()}
        return {j: starts[name] for j, name in enumerate(features) if name in starts}

    def spans(self, features: Sequence[str]) -> dict[int, float]:
        """The largest of the `positions` of times, which are at least 0; later times have none."""
        days = {time.features(name)[-1]: time.days for name, time in self.times.items()}
        return {j: days[name] for j, name in enumerate(features) if name in days}

    def calendar_pairs(self, features: Sequence[str]) -> list[tuple[int, int]]:
        """The positions of times, each with the hour, weekday and month of the same times.

        In a short span one tells the other, which says nothing about later times.
        """
        at = {feature: j for j, feature in enumerate(features)}
        return [
            (at[position], at[part])
            for name, time in self.times.items()
            for *parts, position in [time.features(name)]
            for part in parts
        ]

    def columns(self, features: Sequence[str]) -> list[str]:
        """The names of the columns of a table with these features."""
        column_of = {
            feature: name for name, time in self.times.items() for feature in time.features(name)
        }
        return list(dict.fromkeys(column_of.get(feature, feature) for feature in features))


def value_text(values: Sequence[str], code: float) -> str:
    """The value of a category at a position; other positions are those of new values."""
    return values[int(code)] if 0 <= code < len(values) else "a new value"


ONLY_NUMBERS = Kinds()
