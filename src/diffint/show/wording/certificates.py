"""Texts of certificates. Bounds are rounded outwards, so that every statement is proven."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...certify.region_ends import bounded_features, has_new_values
from ...certify.rows import FLAGS, Certificate, common_pattern
from ...core.formatting import (
    bounds_beside,
    counted,
    exact_number,
    number,
    printable,
    rounded_down,
    rounded_up,
    shown_name,
)
from ...core.row_labels import row_name
from ...explain.constraints import values_between

if TYPE_CHECKING:
    from ...certify.certain_threshold import CertainThreshold
    from ...certify.document import Document
    from ...certify.regions import RegionCertificate
    from ...certify.verification import Verification


_NOT_CONSIDERED = {
    "segments": "This is the threshold of all rows together; those of the segments differ.",
    "accepted rows": "Rows like accepted ones are not flagged; this is not considered here.",
}
_NEW_VALUE = "a new value"
_MARKS = ',=≤≥"\\'  # in a value, they could be taken for a part of the sentence
_MOST_VALUES_SHOWN = 6  # of a row, unless more features have an end


def certificate_text(certificate: Certificate, row: int) -> str:
    """What is proven about the score of one row."""
    c, beside = certificate, certificate.beside_error[:, row].mean()
    error = max(c.bound[row] - beside, 0.0)
    lines = [
        f"Row {row_name(row, c.index)}: score {number(c.score[row])}, proven to be at least "
        f"{rounded_down(c.bound[row])} from its features alone"
        f" ({rounded_down(c.bound_at_row[row])} using its code).",
        f"Whatever its code is, its error is at least {rounded_down(error)}.",
    ]
    margin = np.maximum(c.distance - c.slack - c.rounding, 0.0)[:, row].mean()
    if margin > c.image_distance[:, row].mean():
        lines.append(
            "Its distance from the reconstruction of rows beyond all intervals is "
            f"{rounded_down(c.distance[:, row].mean())}; up to "
            f"{rounded_up(c.slack[:, row].mean())} of it is not certain (Lipschitz bound "
            f"{rounded_up(c.lipschitz_bound.mean())})."
        )
    if beside > 0:
        lines.append(
            f"The rest of the bound, {rounded_down(beside)}, is not bounded but computed: its "
            "distance from the nearest kept training row, missing cells and categories."
        )
    sides = common_pattern(c.pattern[:, row])
    beyond = [
        printable(c.feature_names[j])
        + ("" if j in c.categories else f" ({'above' if sides[j] > 0 else 'below'})")
        for j in np.flatnonzero(sides)
    ]
    lines.append(
        f"Features beyond the intervals of all units: {', '.join(beyond)}."
        if beyond
        else "No feature is beyond the intervals of all units."
    )
    for name, meaning in FLAGS.items():
        if getattr(c, name)[row]:
            lines.append(f"The row is {meaning}; {_inlier_share(c, name)}.")
    vacuous = int(c.n_vacuous_units.sum())
    if vacuous:
        total = c.n_units * len(c.n_vacuous_units)
        verbs = "constrains nothing and raises" if vacuous == 1 else "constrain nothing and raise"
        lines.append(f"{vacuous} of {counted(total, 'unit')} {verbs} no flag.")
    return "\n".join(lines)


def _inlier_share(certificate: Certificate, name: str) -> str:
    rates = certificate.inlier_rates
    if rates is None:
        return "this share is unknown for training rows"
    return f"so are {100 * getattr(rates, name):.3g} % of the training rows"


def region_text(certificate: RegionCertificate) -> str:
    """A region with exact ends, its bounds rounded outwards, and the verdict."""
    notes = [] if certificate.threshold is None else _notes(certificate)
    return "\n".join([*_region_lines(certificate), *notes])


def _notes(found: RegionCertificate | Verification) -> list[str]:
    """Why `predict` may differ from what is said about the threshold."""
    return [_NOT_CONSIDERED[name] for name in found.not_considered]


def _region_lines(certificate: RegionCertificate | Document) -> list[str]:
    c = certificate
    bounded = [text for _, text in _bounded(c)]
    where = ", ".join(bounded) if bounded else "any values"
    low, high = rounded_down(c.lower), rounded_up(c.upper)
    if c.threshold is not None:
        low, high, threshold = bounds_beside(c.lower, c.upper, c.threshold)
    absent = [printable(c.feature_names[j]) for j in c.missing]
    which = f"row ({', '.join(absent)} may be missing)" if absent else "complete row"
    lines = [f"Every {which} with {where} scores between {low} and {high}."]
    if c.threshold is not None:
        verdict = {
            "all flagged": "all of them are certain to be flagged",
            "none flagged": "none of them can be flagged",
            "mixed": "some of them are flagged, and some are not",
            "undecided": "these bounds do not decide whether they are flagged; more splits or "
            "seconds give tighter bounds",
        }[c.verdict]
        lines.append(f"With the threshold at {threshold}, {verdict}.")
        if c.verdict == "mixed" and c.passed_row is not None:
            lines.append(f"A row with {row_text(c, c.passed_row)} is not flagged.")
    return lines


def threshold_text(found: CertainThreshold) -> str:
    """From which value on rows are certain to be flagged, and what is known nearer."""
    name, sign = printable(found.feature), "≥" if found.side == "above" else "≤"
    beside = [text for j, text in _bounded(found.certificate) if j != name]
    where = f" and {', '.join(beside)}" if beside else ""
    if found.value is None:
        with_ = f" with {', '.join(beside)}" if beside else ""
        lines = [f"For no {name} is every complete row{with_} proven to be flagged."]
    else:
        lines = [
            f"Every complete row with {name} {sign} {exact_number(found.value)}{where} is certain "
            "to be flagged."
        ]
    if found.not_proven is not None:
        end = f"{name} {sign} {exact_number(found.not_proven)}"
        if found.passed_row is None:
            lines.append(f"For {end} this is not decided.")
        else:
            values = row_text(found.certificate, found.passed_row)
            lines.append(f"For {end} this is not so: a row with {values} is not flagged.")
    return "\n".join([*lines, *_notes(found.certificate)])


def row_text(certificate: RegionCertificate | Document, row: NDArray[np.float64]) -> str:
    """A row of a region in words, features with an end first. row: (features,)"""
    c = certificate
    bounded = bounded_features(c.region_lower, c.region_upper, c.categories)
    places = [*bounded, *(j for j in range(len(row)) if j not in bounded)]
    shown = []
    for j in places[: max(len(bounded), _MOST_VALUES_SHOWN)]:
        values = c.categories.get(j, ())
        text = _listed(values, row[j], row[j])[0] if values else number(row[j])
        shown.append(f"{printable(c.feature_names[j])} = {text}")
    more = len(row) - len(shown)
    return ", ".join(shown) + (f" and {counted(more, 'other value')}" if more else "")


def _bounded(certificate: RegionCertificate | Document) -> list[tuple[str, str]]:
    """The names of features with an end, and their ends in words."""
    c = certificate
    return [
        (printable(c.feature_names[j]), f"{printable(c.feature_names[j])} {_ends(c, j)}")
        for j in bounded_features(c.region_lower, c.region_upper, c.categories)
    ]


def verification_text(verification: Verification) -> str:
    """Whether a certificate is confirmed, and what it states or why it is not."""
    v = verification
    if not v.confirmed or v.document is None or v.lower is None or v.upper is None:
        return f"Refused ({v.reason}): {v.detail}."
    split = f", {v.n_splits} of them split further" if v.n_splits else ""
    return "\n".join(
        [
            f"Confirmed: {counted(v.n_parts, 'part')} checked by independent code{split}, in "
            f"{v.seconds:.1f} s; it finds bounds of {rounded_down(v.lower)} and "
            f"{rounded_up(v.upper)}.",
            *_region_lines(v.document),
            *_notes(v),
        ]
    )


def _ends(certificate: RegionCertificate | Document, j: int) -> str:
    """``≤ 3``; of a category ``= Ideal``, ``one of Ideal, Premium, a new value``"""
    low, high = certificate.region_lower[j], certificate.region_upper[j]
    values = certificate.categories.get(j, ())
    if not values:
        return _range(low, high)
    shown = _listed(values, low, high)
    return f"= {shown[0]}" if len(shown) == 1 else f"one of {', '.join(shown)}"


def _listed(values: Sequence[str], low: float, high: float) -> list[str]:
    """The values of a category between two positions, in words of which no two are the same."""
    new = [_NEW_VALUE] if has_new_values(values, high) else []
    return [*map(_value, values_between(values, low, high)), *new]


def _value(value: str) -> str:
    """A value, in quotation marks if it is long, or not a plain word beside other words."""
    plain = shown_name(value) == value and not any(mark in value for mark in _MARKS)
    return (
        value if plain and value != _NEW_VALUE else printable(json.dumps(value, ensure_ascii=False))
    )


def _range(low: float, high: float) -> str:
    lower, upper = exact_number(low), exact_number(high)
    if low == high:
        return f"= {lower}"
    if np.isinf(low):
        return f"≤ {upper}"
    return f"≥ {lower}" if np.isinf(high) else f"in [{lower}, {upper}]"
