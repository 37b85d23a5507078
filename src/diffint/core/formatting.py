"""Numbers, counts, lists and names as text for people."""

from __future__ import annotations

import math
import unicodedata
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

import numpy as np


def number(value: float, digits: int = 3) -> str:
    """At least `digits` significant digits, and no exponent except for very large or small values.

    Thousands are separated from 10,000 on, so that years are not: 2007.
    """
    value = float(value)
    if not math.isfinite(value):
        return "missing" if math.isnan(value) else ("−∞" if value < 0 else "∞")
    size = abs(value)
    if size == 0 or size >= 1e15 or size < 1e-6:
        text = f"{value:.{digits}g}"
    else:
        separator = "," if size >= 9_999.5 else ""
        places = max(digits - 1 - math.floor(math.log10(size)), 0)
        text = f"{value:{separator}.{places}f}"
        text = text.rstrip("0").rstrip(".") if places else text
    return "0" if text == "-0" else text.replace("-", "−", 1) if text[0] == "-" else text


def distinct_numbers(*values: float) -> list[str]:
    """`number` of each value, with enough digits that different values look different."""
    different = {value for value in values if not math.isnan(value)}
    for digits in range(3, 17):
        texts = [number(value, digits) for value in values]
        shown = {text for value, text in zip(values, texts, strict=True) if value in different}
        if len(shown) == len(different):
            return texts
    return [repr(float(value)) for value in values]


FINEST_MOMENT = "ms"  # unit of the times that a model reads


def moment_text(start: str, days: float, unit: str = "D") -> str:
    """``2013-12-30``: a number of days after the start.

    unit: D, m, s or ms; the moment is cut to it, not rounded
    """
    if math.isnan(days):
        return "missing"
    moment = np.datetime64(start, "ms") + np.timedelta64(round(days * 86_400_000), "ms")
    return str(moment.astype(f"datetime64[{unit}]")).replace("T", " ")


def moments_beside(start: str, lower: float, upper: float, *values: float) -> list[str]:
    """`beside_range` of days after the start: the coarsest unit that shows which are inside."""
    texts: list[str] = []
    for unit in ("D", "m", "s", FINEST_MOMENT):
        texts = [moment_text(start, days, unit) for days in (lower, upper, *values)]
        low, up, *shown = texts
        if (low == up) == (lower == upper) and all(
            math.isnan(value) or (text < low, text > up) == (value < lower, value > upper)
            for text, value in zip(shown, values, strict=True)
        ):
            break
    return texts


def percent(share: float) -> str:
    """A share in whole percent, but ``under 1 %`` for 0 and ``over 99 %`` for 100 unless exact."""
    if 0 < share <= 0.005:
        return "under 1 %"
    if 0.995 <= share < 1:
        return "over 99 %"
    return f"{100 * share:.0f} %"


def counted(count: int, thing: str) -> str:
    """``1 row``, ``2,000 rows``"""
    many = thing[:-1] + "ies" if thing.endswith("y") else thing + "s"
    return f"{count:,} {thing if count == 1 else many}"


def listed(things: list[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``"""
    return " and ".join([", ".join(things[:-1]), things[-1]] if len(things) > 1 else things)


# Letters and marks that are drawn as nothing, although Unicode counts them as printable.
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")


def printable(text: str, keep: str = "") -> str:
    """Text from outside, safe to show: characters that act instead of being seen become escapes.

    Control characters, which can colour, move or clear a terminal, line breaks and tabs, marks that
    change the direction of writing, invisible characters and lone surrogates are written as in
    Python: ``\\x1b``, ``\\n``, ``\\u202e``. Everything else stays. keep: characters to leave.
    """
    if text.isprintable() and _INVISIBLE.isdisjoint(text):
        return text
    return "".join(
        c if c in keep or _is_visible(c) else c.encode("unicode_escape").decode() for c in text
    )


def _is_visible(character: str) -> bool:
    if character.isprintable():
        return character not in _INVISIBLE
    return unicodedata.category(character) == "Zs"  # spaces of other widths


def shown_name(name: str, longest: int = 40) -> str:
    """A feature's name for a line of text: `printable`, shortened in the middle, never empty."""
    return shortened(" ".join(printable(name).split()) or repr(name), longest)


def shortened(text: str, longest: int = 40) -> str:
    """Both ends of a text with more than `longest` characters."""
    if len(text) <= longest:
        return text
    return f"{text[: longest // 2]}…{text[len(text) - longest // 2 + 1 :]}"


def rounded_down(value: float, digits: int = 3) -> str:
    """`number`, but never above the value: correct for a lower bound."""
    return _rounded(value, digits, ROUND_FLOOR)


def rounded_up(value: float, digits: int = 3) -> str:
    """`number`, but never below the value: correct for an upper bound."""
    return _rounded(value, digits, ROUND_CEILING)


def exact_number(value: float) -> str:
    """`number` with enough digits to read exactly the same value back."""
    texts = (number(value, digits) for digits in range(3, 18))
    return next((text for text in texts if _parsed(text) == value), number(value))


def bounds_beside(lower: float, upper: float, limit: float) -> tuple[str, str, str]:
    """A lower bound rounded down, an upper bound rounded up, and the limit to compare them with.

    They have enough digits to show on which side of the limit each bound is.
    """
    for digits in range(3, _MOST_DIGITS + 1):
        texts = rounded_down(lower, digits), rounded_up(upper, digits), number(limit, digits)
        low, high, shown = (_parsed(text) for text in texts)
        if (_side(low, shown), _side(high, shown)) == (_side(lower, limit), _side(upper, limit)):
            return texts
    return exact_number(lower), exact_number(upper), exact_number(limit)


def beside_range(lower: float, upper: float, *values: float, exact: int = 3) -> list[str]:
    """The ends of a range rounded outwards, and values with as many digits.

    They have enough digits to show which values are inside. exact: ends with so few digits are not
    rounded.
    """
    short_low, short_up = number(lower, exact), number(upper, exact)
    for digits in range(3, _MOST_DIGITS + 1):
        ends = [number(lower, digits), number(upper, digits)]
        if lower != upper:
            ends = [rounded_down(lower, digits), rounded_up(upper, digits)]
        if _parsed(short_low) == lower:
            ends[0] = short_low
        if _parsed(short_up) == upper:
            ends[1] = short_up
        texts = [number(value, digits) for value in values]
        low, up = map(_parsed, ends)
        if (low == up) == (lower == upper) and all(
            _outside(_parsed(text), low, up) == _outside(value, lower, upper)
            for text, value in zip(texts, values, strict=True)
        ):
            return [*ends, *texts]
    return [exact_number(value) for value in (lower, upper, *values)]


def _outside(value: float, lower: float, upper: float) -> int:
    """−1 below a range, 1 above, 0 inside or missing."""
    return int(value > upper) - int(value < lower)


_MOST_DIGITS = 15  # significant decimal digits that every float keeps


def _rounded(value: float, digits: int, rounding: str) -> str:
    value, digits = float(value), min(digits, _MOST_DIGITS)
    if value == 0 or not math.isfinite(value):
        return number(value)
    exact = Decimal(repr(value))
    last = exact.adjusted() + 1 - digits
    if 1e-6 <= abs(value) < 1e15:
        last = min(last, 0)
    return number(float(exact.quantize(Decimal((0, (1,), last)), rounding)), digits)


def _parsed(text: str) -> float:
    """The value of a text that `number` wrote."""
    text = text.replace(",", "").replace("−", "-").replace("∞", "inf")
    return math.nan if text == "missing" else float(text)


def _side(value: float, limit: float) -> int:
    return int(value > limit) - int(value < limit)
