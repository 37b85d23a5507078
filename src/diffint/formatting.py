"""Numbers as people write them."""

from __future__ import annotations

import math


def number(value: float, digits: int = 3) -> str:
    """At least `digits` significant digits, thousands separated, no exponent where avoidable."""
    value = float(value)
    if not math.isfinite(value):
        return "missing" if math.isnan(value) else ("−∞" if value < 0 else "∞")
    size = abs(value)
    if size == 0 or size >= 1e15 or size < 1e-6:
        text = f"{value:.{digits}g}"
    elif size >= 10 ** (digits - 1):
        text = f"{value:,.0f}"
    else:
        places = digits - 1 - math.floor(math.log10(size))
        text = f"{value:,.{places}f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text.replace("-", "−", 1) if text[0] == "-" else text


def distinct_numbers(*values: float) -> list[str]:
    """`number` of each value, with as many digits as it takes to tell different values apart."""
    different = {value for value in values if not math.isnan(value)}
    for digits in range(3, 17):
        texts = [number(value, digits) for value in values]
        shown = {text for value, text in zip(values, texts, strict=True) if value in different}
        if len(shown) == len(different):
            return texts
    return [repr(float(value)) for value in values]


def percent(share: float) -> str:
    """A share as whole percents, ``under 1 %`` and ``over 99 %`` where those would mislead."""
    if 0 < share < 0.005:
        return "under 1 %"
    if 0.995 <= share < 1:
        return "over 99 %"
    return f"{100 * share:.0f} %"


def counted(count: int, thing: str) -> str:
    """``1 row``, ``2,000 rows``"""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def listed(things: list[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``"""
    return " and ".join([", ".join(things[:-1]), things[-1]] if len(things) > 1 else things)
