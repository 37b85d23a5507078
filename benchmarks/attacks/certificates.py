"""Attack the check of certificates: what is confirmed of a changed document must be true.

    python benchmarks/attacks/certificates.py --count 1000

Certificates of regions of numbers, categories and times are changed in one or several ways. Of each
one that `verify` confirms, rows are drawn from the region as the document names it, by values and
not by positions, and scored: none may lie outside of the bounds, or contradict the statement.
"""

from __future__ import annotations

import argparse
import copy
import json
import time
import warnings
from typing import Any

import numpy as np
import pandas

from diffint import DiffInt
from diffint.core.errors import InputError

LONGEST = 5.0  # seconds of the processor
_START = pandas.Timestamp("2020-01-01")
_DAYS = "when (days since 2020-01-01)"
_HOSTILE: list[Any] = [
    None, True, False, 0, 1, 2, 3, 20, -1, -5, 0.5, 3.5, 1e308, -1e308, 10**400, 5e-324, 1000,
    "", "x", "10", "20", "40", "inf", "-inf", "nan", [], {}, [[]], ["20"], float("nan"),
    float("inf"), "all flagged", "none flagged", "mixed", "undecided", "zip", "number", _DAYS,
]  # fmt: skip


def attack(count: int, seed: int) -> dict[str, Any]:
    """Change `count` certificates and verify each. → numbers of outcomes, and problems"""
    outcomes: dict[str, Any] = dict.fromkeys(("tried", "not read", "refused", "confirmed"), 0)
    problems: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        targets = [_target(with_times) for with_times in (False, True)]
        for i in range(count):
            rng = np.random.default_rng([seed, i])
            detector, documents = targets[rng.integers(len(targets))]
            document = _changed(documents[rng.integers(len(documents))], rng)
            outcomes["tried"] += 1
            started = time.process_time()
            try:
                found = detector.verify(json.dumps(document))
                found.text()
            except InputError:
                outcomes["not read"] += 1
                continue
            except Exception as error:
                problems.append(f"{i}: {type(error).__name__}: {error}")
                continue
            if time.process_time() - started > LONGEST:
                problems.append(f"{i}: took {time.process_time() - started:.1f} s")
            outcomes["confirmed" if found.confirmed else "refused"] += 1
            wrong = _what_is_wrong(detector, document, rng) if found.confirmed else None
            if wrong is not None:
                problems.append(f"{i}: {wrong}: {found.text()}")
    return {**outcomes, "problems": problems}


def _target(with_times: bool) -> tuple[DiffInt, list[dict[str, Any]]]:
    """A model and certificates of it."""
    rng = np.random.default_rng(0)
    table = _rows(rng, 200, {}, with_times)
    detector = DiffInt(
        n_units=6, hidden_width=5, n_members=2, epochs=3, random_state=0, false_positive_rate=0.1
    ).fit(table)
    ends: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"number": 9.0}, {"number": 12.0}),
        ({"zip": "20"}, {"zip": "20"}),
        ({"zip": "10", "other": 0.0}, {"zip": "10", "other": 1.0}),
        ({}, {}),
    ]
    if with_times:
        ends.append(({_DAYS: 3.0, "number": 9.0}, {_DAYS: 30.0}))
    return detector, [
        detector.certify_region(*region, splits=n).to_dict() for region in ends for n in (0, 5)
    ]


def _rows(rng: np.random.Generator, n: int, ends: dict[str, Any], with_times: bool) -> Any:
    """Rows of a region. ends: of features by name, as in a document"""

    def numbers(name: str, spread: float) -> Any:
        entry = ends.get(name, {"lower": "-inf", "upper": "inf"})
        low, high = float(entry["lower"]), float(entry["upper"])
        values = rng.normal(size=n) * spread
        inside = np.clip(values, low, high)
        if np.isfinite([low, high]).all():
            inside = np.where(rng.random(n) < 0.7, low + rng.random(n) * (high - low), inside)
        return inside

    def texts(name: str, known: list[str]) -> Any:
        entry = ends.get(name, {"values": known, "new_values": bool(ends)})
        return rng.choice([*entry["values"], *(["never seen"] if entry["new_values"] else [])], n)

    frame = pandas.DataFrame(
        {
            "number": numbers("number", 1.0 if not ends else 6.0),
            "zip": texts("zip", ["10", "20", "30"]),
            "other": numbers("other", 1.0 if not ends else 6.0),
        }
    )
    if with_times:
        entry = ends.get(_DAYS, {"lower": 0.0, "upper": 40.0})
        days = entry["lower"] + rng.random(n) * (entry["upper"] - entry["lower"])
        frame["when"] = (_START + pandas.to_timedelta(days, "D")).floor("s")
    return frame


def _what_is_wrong(
    detector: DiffInt, document: dict[str, Any], rng: np.random.Generator
) -> str | None:
    """Why a document is false; None if no row shows that it is."""
    ends = {entry["feature"]: entry for entry in document["region"]}
    with_times = _DAYS in document["features"]
    rows = _rows(rng, 1_000, {"": None, **ends}, with_times)
    if with_times:
        for part in ("hour", "weekday", "month"):
            entry = ends.get(f"when ({part})")
            if entry is not None:
                return None  # such rows cannot be drawn
        first, last = float(ends[_DAYS]["lower"]), float(ends[_DAYS]["upper"])
        days = (rows["when"] - _START) / pandas.Timedelta("1D")
        rows = rows[(days >= first) & (days <= last)]
    scores = detector.anomaly_score(rows)
    if not len(scores):
        return None
    low, high = (float(document["bounds"][which]) for which in ("lower", "upper"))
    if not low <= scores.min() <= scores.max() <= high:
        return f"scores from {scores.min()} to {scores.max()}"
    if document["threshold"] is not None:
        flagged = scores > document["threshold"]["value"]
        if document["statement"] == "all flagged" and not flagged.all():
            return "a row is not flagged"
        if document["statement"] == "none flagged" and flagged.any():
            return "a row is flagged"
    return None


def _changed(document: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """A document changed in one to three ways."""
    document = copy.deepcopy(document)
    for _ in range(int(rng.integers(1, 4))):
        ways = [_move_ends, _move_ends, _weaken, _replace]
        try:
            ways[rng.integers(len(ways))](document, rng)
        except (TypeError, KeyError, IndexError, AttributeError, ValueError):
            continue  # it was changed before so that this way does not fit
    return document


def _move_ends(document: dict[str, Any], rng: np.random.Generator) -> None:
    """Other ends of a feature, in the region and in all parts, and perhaps other named values."""
    j = int(rng.integers(len(document["features"])))
    name = document["features"][j]
    options = [0, 1, 2, 3, 4, 20, -5, 3.5, 0.5, 9.0, 30.0, "inf", "-inf", 1e308]
    lower, upper = options[rng.integers(len(options))], options[rng.integers(len(options))]
    if rng.random() < 0.5:
        upper = lower
    entry = {"feature": name, "lower": lower, "upper": upper}
    if name == "zip" or "(hour)" in name or rng.random() < 0.1:
        named = [["10"], ["20"], ["30"], [], ["10", "20"], ["30", "20", "10"]]
        entry |= {"values": named[rng.integers(len(named))], "new_values": bool(rng.integers(2))}
    document["region"] = [e for e in document["region"] if e["feature"] != name] + [entry]
    for which, end in (("lower", lower), ("upper", upper)):
        for part in document["parts"][which]:
            part[j] = end


def _weaken(document: dict[str, Any], rng: np.random.Generator) -> None:
    """Weaker claims, so that what was changed elsewhere is looked at; or stronger ones."""
    way = rng.integers(4)
    if way == 0:
        document["bounds"] = {"lower": 0.0, "upper": "inf"}
    elif way == 1:
        side = str(rng.choice(["lower", "upper"]))
        document["bounds"][side] *= 1 + 10.0 ** rng.uniform(-9, 0) * rng.choice([-1, 1])
    elif way == 2:
        document["bounds"] = {"lower": document["threshold"]["value"] * 1.0001, "upper": "inf"}
        document["statement"] = "all flagged"
        return
    document["statement"] = "undecided"
    document["witnesses"] = {"flagged": None, "passed": None}


def _replace(document: dict[str, Any], rng: np.random.Generator) -> None:
    """Replace, remove or repeat any value."""
    owner: Any = document
    while True:
        keys = list(owner) if isinstance(owner, dict) else list(range(len(owner)))
        key = keys[rng.integers(len(keys))]
        if not (isinstance(owner[key], (dict, list)) and owner[key]) or rng.random() < 0.1:
            break
        owner = owner[key]
    way = rng.random()
    if way < 0.1:
        del owner[key]
    elif way < 0.2 and isinstance(owner, list):
        owner.append(copy.deepcopy(owner[key]))
    else:
        owner[key] = _HOSTILE[rng.integers(len(_HOSTILE))]


def main() -> None:
    """Attack, and print the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--count", type=int, default=1_000, help="number of certificates")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    outcomes = attack(arguments.count, arguments.seed)
    for problem in outcomes.pop("problems"):
        print(problem)
    for outcome, number in outcomes.items():
        print(f"{number:8,}  {outcome}")


if __name__ == "__main__":
    main()
