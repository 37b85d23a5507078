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
        text = f"{value:.{places}f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text.replace("-", "−", 1) if text[0] == "-" else text
