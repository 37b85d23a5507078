import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diffint.core.formatting import (
    beside_range,
    bounds_beside,
    exact_number,
    number,
    percent,
    printable,
    rounded_down,
    rounded_up,
    shown_name,
)


def written(text):
    """A formatted number in Python's notation."""
    return text.replace(",", "").replace("−", "-")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2019, "2019"),
        (-2019.4, "−2019"),
        (0.0, "0"),
        (-0.0, "0"),
        (0.18234, "0.182"),
        (12.0, "12"),
        (1.50, "1.5"),
        (1e-9, "1e-09"),
        (1e20, "1e+20"),
        (999.7, "1000"),
        (float("nan"), "missing"),
        (float("inf"), "∞"),
    ],
)
def test_number(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "down", "up"),
    [
        (0.12399, "0.123", "0.124"),
        (-0.12399, "−0.124", "−0.123"),
        (0.3, "0.3", "0.3"),
        (0.9999, "0.999", "1"),
        (2019.5, "2019", "2020"),
        (99.99, "99.9", "100"),
        (1.2399e-9, "1.23e-09", "1.24e-09"),
        (1.2399e20, "1.23e+20", "1.24e+20"),
        (9.999e-7, "9.99e-07", "0.000001"),
        (0.0, "0", "0"),
        (-0.0, "0", "0"),
        (float("inf"), "∞", "∞"),
        (float("-inf"), "−∞", "−∞"),
        (float("nan"), "missing", "missing"),
    ],
)
def test_rounding_down_and_up(value, down, up):
    assert (rounded_down(value), rounded_up(value)) == (down, up)


ordinary = st.floats(-1e300, 1e300, allow_subnormal=False)


@given(ordinary, st.integers(1, 15))
def test_a_rounded_bound_is_never_tighter(value, digits):
    # Compared with the decimal number that Python prints for the value.
    exact = Fraction(repr(value))
    low, high = (Fraction(written(f(value, digits))) for f in (rounded_down, rounded_up))
    assert low <= exact <= high
    assert high - low <= max(abs(exact), Fraction(1)) / 10 ** (digits - 1)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_exact_numbers_can_be_read_back(value):
    assert float(written(exact_number(value))) == value


def test_exact_numbers_are_as_short_as_possible():
    assert [exact_number(v) for v in (9.5, -1234567.25, 0.1, 1e20)] == [
        "9.5",
        "−1,234,567.25",
        "0.1",
        "1e+20",
    ]
    assert exact_number(math.inf) == "∞"


@given(ordinary, ordinary, ordinary)
def test_rounded_bounds_stay_on_their_side_of_the_limit(lower, upper, limit):
    low, high, shown = (float(written(t)) for t in bounds_beside(lower, upper, limit))
    assert low <= lower
    assert high >= upper
    for bound, text in ((lower, low), (upper, high)):
        assert (bound > limit, bound < limit) == (text > shown, text < shown)


def test_close_bounds_get_the_digits_they_need():
    assert bounds_beside(0.1237, 0.5, 0.1236) == ("0.1237", "0.5", "0.1236")
    assert bounds_beside(0.0, 0.12355, 0.1236) == ("0", "0.12355", "0.1236")
    assert bounds_beside(0.1, math.inf, 0.5) == ("0.1", "∞", "0.5")
    tight = math.nextafter(0.3, 1.0)
    assert bounds_beside(tight, 1.0, 0.3) == (repr(tight), "1", "0.3")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("a\nb\tc\rd", r"a\nb\tc\rd"),
        ("\x00\x07\x7f\x85\x9b", r"\x00\x07\x7f\x85\x9b"),
        ("\u202egpj.exe\u202c", r"\u202egpj.exe\u202c"),
        ("\u200e\u200f\u2066\u2069", r"\u200e\u200f\u2066\u2069"),
        ("a\u200bb\u2060\ufeff\u3164", r"a\u200bb\u2060\ufeff\u3164"),
        ("\ud800", r"\ud800"),
        ("\u2028", r"\u2028"),
        ("[bold]Ω µ é 日本 🎈\u00a0%[/bold]", "[bold]Ω µ é 日本 🎈\u00a0%[/bold]"),
        ("", ""),
    ],
)
def test_characters_that_act_are_shown_as_text(text, shown):
    assert printable(text) == shown
    assert printable(shown) == shown


@given(st.text())
def test_printable_text_has_no_characters_that_act(text):
    shown = printable(text)
    assert all(c.isprintable() or c.isspace() for c in shown)
    assert not set("\n\r\t\x0b\x0c\x1c\x85\u2028\u2029") & set(shown)
    assert printable(text, keep="\n").count("\n") == text.count("\n")
    shown.encode()


def test_names_are_short_and_on_one_line():
    assert shown_name("  a   b ") == "a b"
    assert shown_name("a\nb") == r"a\nb"
    assert shown_name("") == "''"
    assert len(shown_name("long " * 30)) == 40


def test_half_a_percent_is_not_nothing():
    assert percent(0.005) == "under 1 %"
    assert percent(0.0051) == "1 %"
    assert percent(0.995) == "over 99 %"


@pytest.mark.parametrize(
    ("lower", "upper", "values", "texts"),
    [
        (4.5712, 4.718, (4.64, 2.54), ["4.57", "4.72", "4.64", "2.54"]),
        (4.5712, 4.718, (4.5711,), ["4.5712", "4.718", "4.5711"]),
        (99_999.84, 100_000.2, (100_000.1,), ["99,999", "100,001", "100,000"]),
        (2.0, 2.0, (2.004,), ["2", "2", "2.004"]),
        (3, 1210, (1210, math.nan), ["3", "1210", "1210", "missing"]),
        (-0.55554, 1.0, (), ["−0.556", "1"]),
    ],
)
def test_numbers_beside_a_range(lower, upper, values, texts):
    assert beside_range(lower, upper, *values) == texts


def test_ends_with_few_digits_are_not_rounded():
    assert beside_range(3.68, 10.54, 58.9, exact=4) == ["3.68", "10.54", "58.9"]
    assert beside_range(3.68, 10.54321, 58.9, exact=4) == ["3.68", "10.6", "58.9"]


@given(
    st.lists(st.floats(-1e12, 1e12), min_size=2, max_size=2, unique=True), st.floats(-1e12, 1e12)
)
def test_written_numbers_are_on_the_same_side_of_a_range(ends, value):
    lower, upper = sorted(ends)
    low, up, shown = (float(written(text)) for text in beside_range(lower, upper, value))
    assert low <= lower <= upper <= up
    assert (shown < low, shown > up) == (value < lower, value > upper)
