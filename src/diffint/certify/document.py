"""Certificates of regions as documents: JSON that names the model, the statement and its proof.

A document holds all that is claimed and the parts of the region for which it was proven, so that
`verification` can check it without a search. Numbers have all digits of float64. JSON has no
infinities and no missing values: unbounded ends are ``"-inf"`` and ``"inf"``, and a feature that
has no value in a part or a row is ``null``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError
from ..core.version import __version__
from ..tables.categories import OTHER
from .region_ends import (
    Categories,
    all_rows,
    bounded_features,
    check_region,
    has_new_values,
    read_missing,
)

if TYPE_CHECKING:
    from ..core.model import FittedModel
    from .regions import RegionCertificate

Array = NDArray[np.float64]

FORMAT_KEY, FORMAT_VERSION = "diffint_certificate", 1
METHOD = "interval bounds on parts of the region"
STATEMENTS = ("all flagged", "none flagged", "mixed", "undecided")
_KEYS = (
    *(FORMAT_KEY, "method", "versions", "model", "threshold", "features", "region", "missing"),
    *("statement", "bounds", "witnesses", "parts"),
)
_ROUNDED = 1e-5  # what bounds are rounded by, relative
_NOT_ONE = "this is not a certificate of a region, or it was damaged"


@dataclass(frozen=True, eq=False)
class Document:
    """What a document claims; the names are those of `RegionCertificate`.

    statement: one of `STATEMENTS`; without a threshold, "undecided". n_parts: how many parts it
    says to have. values_agree: whether the named values of categories are those between the ends.
    """

    feature_names: tuple[str, ...]
    region_lower: Array
    region_upper: Array
    lower: float
    upper: float
    threshold: float | None
    false_positive_rate: float | None
    confidence: float | None
    categories: Categories
    missing: tuple[int, ...]
    statement: str
    flagged_row: Array | None
    passed_row: Array | None
    parts_lower: Array
    parts_upper: Array
    n_parts: int
    values_agree: bool

    @property
    def verdict(self) -> str:
        """The statement."""
        return self.statement


def not_considered(model: FittedModel) -> tuple[str, ...]:
    """What `predict` considers beside the score and the threshold of all rows together.

    → some of "segments" and "accepted rows"
    """
    found = {
        "segments": len(model.calibration.segment_names),
        "accepted rows": len(model.accepted),
    }
    return tuple(name for name, count in found.items() if count)


def to_dict(certificate: RegionCertificate) -> dict[str, Any]:
    """The document of a certificate, of values that JSON has."""
    c = certificate
    if c.model is None:
        raise InputError("the certificate does not know its model; make it with certify_region")
    names = c.feature_names
    region: list[dict[str, Any]] = []
    for j in bounded_features(c.region_lower, c.region_upper, c.categories):
        low, high = float(c.region_lower[j]), float(c.region_upper[j])
        region.append({"feature": names[j], "lower": _json(low), "upper": _json(high)})
        if j in c.categories:
            region[-1] |= _values(c.categories[j], low, high)
    threshold = None
    if c.threshold is not None:
        rates = {"false_positive_rate": c.false_positive_rate, "confidence": c.confidence}
        threshold = {"value": float(c.threshold), **rates}
    rows = {"flagged": c.flagged_row, "passed": c.passed_row}
    return {
        FORMAT_KEY: FORMAT_VERSION,
        "method": METHOD,
        "versions": {"diffint": __version__, "numpy": np.__version__},
        "model": {"sha256": c.model},
        "threshold": threshold,
        "features": list(names),
        "region": region,
        "missing": [names[j] for j in c.missing],
        "statement": c.verdict if c.threshold is not None else "undecided",
        "bounds": dict(zip(("lower", "upper"), _claimed(c), strict=True)),
        "witnesses": {
            which: None if row is None else _row(row, names, c.categories)
            for which, row in rows.items()
        },
        "parts": {
            "count": len(c.parts_lower),
            "lower": [[_json(v) for v in part] for part in c.parts_lower.tolist()],
            "upper": [[_json(v) for v in part] for part in c.parts_upper.tolist()],
        },
    }


def to_json(certificate: RegionCertificate) -> str:
    """The document as text: one line for each part."""
    document = to_dict(certificate)
    parts = document.pop("parts")
    text = json.dumps(document, indent=1)[:-2]
    lists = []
    for which in ("lower", "upper"):
        lines = ",\n   ".join(json.dumps(part) for part in parts[which])
        lists.append(f'  "{which}": [\n   {lines}\n  ]')
    count = json.dumps(parts["count"])
    inside = ",\n".join([f'  "count": {count}', *lists])
    return f'{text},\n "parts": {{\n{inside}\n }}\n}}\n'


def parse(content: str | bytes | Mapping[str, Any]) -> dict[str, Any]:
    """The JSON object in a file, or one that would be in a file; a certificate of any version."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a key occurs twice")
        return dict(pairs)

    def refuse(text: str) -> Any:
        raise ValueError(f"{text} is not JSON")

    try:
        if isinstance(content, Mapping):
            content = json.dumps(dict(content))
        raw = json.loads(content, object_pairs_hook=once, parse_constant=refuse)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{_NOT_ONE}: {str(error)[:200]}") from None
    if not isinstance(raw, dict) or FORMAT_KEY not in raw:
        raise InputError(f"{_NOT_ONE}: it has no entry {FORMAT_KEY!r}")
    return raw


def method_of(raw: Mapping[str, Any]) -> str:
    """The name of the method of a parsed document."""
    return _Reader(raw, "").text("method")


def model_of(raw: Mapping[str, Any]) -> str:
    """The checksum of the model of a parsed document."""
    return _Reader(raw, "").inside("model", ("sha256",)).text("sha256")


def version_of(raw: Mapping[str, Any]) -> str:
    """The version of diffint that wrote a parsed document."""
    return _Reader(raw, "").inside("versions", ("diffint", "numpy")).text("diffint")


def read(raw: Mapping[str, Any], model: FittedModel) -> Document:
    """A parsed document of this format about this model, with checked types and shapes."""
    top = _Reader(raw, "", _KEYS)
    names = tuple(top.texts("features"))
    if names != model.feature_names:
        raise InputError(f"{_NOT_ONE}: 'features' are not those of the model")
    categories = model.categories
    lower, upper, agree = *all_rows(names, model.kinds), True
    place = {name: j for j, name in enumerate(names)}
    for i, given in enumerate(top.entry("region", list)):
        where = f"region[{i}]"
        j = _Reader(given, where).chosen("feature", place)
        if place.pop(names[j], None) is None:
            raise InputError(f"{_NOT_ONE}: 'region' names a feature twice")
        named = ("values", "new_values") if j in categories else ()
        entry = _Reader(given, where, ("feature", "lower", "upper", *named))
        lower[j], upper[j] = entry.end("lower"), entry.end("upper")
        if named:
            given_values = {"values": entry.texts("values"), "new_values": entry.flag("new_values")}
            agree &= given_values == _values(categories[j], lower[j], upper[j])
    try:
        check_region(names, model.kinds, lower, upper)
        missing = read_missing(names, categories, top.texts("missing"))
    except InputError as error:
        raise InputError(f"{_NOT_ONE}: {error}") from None

    threshold = rate = confidence = None
    if raw["threshold"] is not None:
        given = top.inside("threshold", ("value", "false_positive_rate", "confidence"))
        threshold, rate = given.number("value"), given.number_or_none("false_positive_rate")
        confidence = given.number_or_none("confidence")
    bounds = top.inside("bounds", ("lower", "upper"))
    witnesses = top.inside("witnesses", ("flagged", "passed"))
    rows = [witnesses.row(which, names, categories, missing) for which in ("flagged", "passed")]
    parts = top.inside("parts", ("count", "lower", "upper"))
    ends = [parts.table(which, len(names)) for which in ("lower", "upper")]
    if ends[0].shape != ends[1].shape or (np.isnan(ends[0]) != np.isnan(ends[1])).any():
        raise InputError(f"{_NOT_ONE}: the ends of its parts do not fit together")
    if (ends[0] > ends[1]).any():
        raise InputError(f"{_NOT_ONE}: a part is empty")
    return Document(
        feature_names=names,
        region_lower=lower,
        region_upper=upper,
        lower=bounds.end("lower"),
        upper=bounds.end("upper"),
        threshold=threshold,
        false_positive_rate=rate,
        confidence=confidence,
        categories=categories,
        missing=missing,
        statement=top.chosen("statement", {text: text for text in STATEMENTS}),
        flagged_row=rows[0],
        passed_row=rows[1],
        parts_lower=ends[0],
        parts_upper=ends[1],
        n_parts=parts.entry("count", int),
        values_agree=agree,
    )


class _Reader:
    """Entries of a JSON object, each with an error that says which one is wrong."""

    def __init__(self, value: Any, where: str, keys: Sequence[str] = ()) -> None:
        self._where = where
        if not isinstance(value, dict):
            raise InputError(f"{_NOT_ONE}: {where or 'it'} is not an object")
        wrong = [key for key in keys if key not in value]
        if keys:
            wrong += [key for key in value if key not in keys]
        if wrong:
            what = "lacks" if wrong[0] in keys else "has an unknown entry"
            raise InputError(f"{_NOT_ONE}: {where or 'it'} {what} {wrong[0]!r}")
        self._value = value

    def _name(self, key: str) -> str:
        return f"{self._where}.{key}" if self._where else key

    def _wrong(self, key: str) -> InputError:
        shown = json.dumps(self._value.get(key))[:40]
        return InputError(f"{_NOT_ONE}: {self._name(key)!r} cannot be {shown}")

    def entry(self, key: str, kind: type) -> Any:
        value = self._value.get(key)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise self._wrong(key)
        return value

    def flag(self, key: str) -> bool:
        if not isinstance(self._value.get(key), bool):
            raise self._wrong(key)
        return bool(self._value[key])

    def inside(self, key: str, keys: Sequence[str]) -> _Reader:
        return _Reader(self._value.get(key), self._name(key), keys)

    def text(self, key: str) -> str:
        return str(self.entry(key, str))

    def texts(self, key: str) -> list[str]:
        values = self.entry(key, list)
        if not all(isinstance(value, str) for value in values):
            raise self._wrong(key)
        return list(values)

    def chosen(self, key: str, options: Mapping[str, Any]) -> Any:
        value = self.text(key)
        if value not in options:
            raise self._wrong(key)
        return options[value]

    def number(self, key: str) -> float:
        return _number(self._value.get(key), lambda: self._wrong(key))

    def number_or_none(self, key: str) -> float | None:
        return None if self._value.get(key) is None else self.number(key)

    def end(self, key: str) -> float:
        return _end(self._value.get(key), lambda: self._wrong(key))

    def row(
        self,
        key: str,
        names: tuple[str, ...],
        categories: Categories,
        missing: tuple[int, ...],
    ) -> Array | None:
        """A row by the names of its features: numbers, values of categories, null if missing.

        A new value of a category is its position, a number.
        """
        if self._value.get(key) is None:
            return None
        cells = _Reader(self._value[key], self._name(key), names)._value
        row = np.empty(len(names))
        for j, name in enumerate(names):
            value, values = cells[name], categories.get(j, ())
            if value is None and j in missing:
                row[j] = np.nan
            elif isinstance(value, str) and value in values:
                row[j] = values.index(value)
            else:
                row[j] = _number(value, lambda: self._wrong(key))
                if values and (row[j] != len(values) or OTHER in values):
                    raise self._wrong(key)
        return row

    def table(self, key: str, width: int) -> Array:
        """Ends of parts. → (parts, width)"""
        rows = self.entry(key, list)
        if not all(isinstance(row, list) and len(row) == width for row in rows):
            raise InputError(f"{_NOT_ONE}: {self._name(key)!r} must have one end for each feature")

        def wrong() -> InputError:
            return InputError(f"{_NOT_ONE}: {self._name(key)!r} has an end that is not a number")

        table = np.empty((len(rows), width))
        for i, row in enumerate(rows):
            for j, value in enumerate(row):
                table[i, j] = np.nan if value is None else _end(value, wrong)
        return table


def _claimed(c: RegionCertificate) -> tuple[float | str | None, float | str | None]:
    """Both bounds, rounded outwards where that keeps them on their side of the threshold.

    The reference allows a little more for rounding errors than the code that found the bounds.
    """
    low, high = c.lower, c.upper
    if math.isfinite(low) and math.isfinite(high):
        low = max(low - _ROUNDED * (1.0 + abs(low)), 0.0)
        high += _ROUNDED * (1.0 + abs(high))
    if c.threshold is not None and low <= c.threshold < c.lower:
        low = c.lower
    if c.threshold is not None and high > c.threshold >= c.upper:
        high = c.upper
    return _json(low), _json(high)


def _json(value: float) -> float | str | None:
    """A number as JSON has it."""
    value = float(value)
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else ("inf" if value > 0 else "-inf")


def _end(value: Any, wrong: Callable[[], InputError]) -> float:
    if isinstance(value, str) and value in ("inf", "-inf"):
        return float(value)
    return _number(value, wrong)


def _number(value: Any, wrong: Callable[[], InputError]) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise wrong()
    try:
        number = float(value)
    except OverflowError:
        raise wrong() from None
    if not math.isfinite(number):
        raise wrong()
    return number


def _row(row: Array, names: tuple[str, ...], categories: Categories) -> dict[str, Any]:
    """A row by the names of its features."""
    cells = {}
    for j, name in enumerate(names):
        values = categories.get(j, ())
        known = row[j] in range(len(values))
        cells[name] = values[int(row[j])] if known else _json(row[j])
    return cells


def _values(values: tuple[str, ...], low: float, high: float) -> dict[str, Any]:
    """The values of a category between two positions, and whether new ones are among them."""
    named = [value for place, value in enumerate(values) if low <= place <= high]
    return {"values": named, "new_values": has_new_values(values, high)}
