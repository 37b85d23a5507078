import pytest

from diffint.formatting import number


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2019, "2,019"),
        (-2019.4, "−2,019"),
        (0.0, "0"),
        (-0.0, "0"),
        (0.18234, "0.182"),
        (12.0, "12"),
        (1.50, "1.5"),
        (1e-9, "1e-09"),
        (1e20, "1e+20"),
        (999.7, "1,000"),
        (float("nan"), "missing"),
        (float("inf"), "∞"),
    ],
)
def test_number(value, text):
    assert number(value) == text
