"""The order of values in a refresh, and the rows that a model has seen."""

import numpy as np
import pytest

from diffint.fit.category_positions import with_ordered_values


def ordered(values, former, shares):
    """The values in the order of a refresh, where `shares` is the mean of another column."""
    codes = np.repeat(np.arange(len(values)), 20).astype(float)
    x = np.stack([codes, np.repeat(shares, 20)], axis=1)
    return with_ordered_values(x, {0: values}, former={0: former})[1][0]


@pytest.mark.parametrize(
    ("values", "former", "shares", "expected"),
    [
        (("a", "b", "c"), ("a", "b", "c"), [3.0, 1.0, 2.0], ("a", "b", "c")),
        (("a", "b", "c"), (), [3.0, 1.0, 2.0], ("b", "c", "a")),
        (("a", "b", "c"), ("x", "y"), [3.0, 1.0, 2.0], ("b", "c", "a")),
        (("a", "b", "n"), ("b", "z", "a"), [3.0, 1.0, 2.0], ("b", "n", "a")),
        (("a", "b", "n"), ("a", "b"), [3.0, 1.0, 2.0], ("a", "n", "b")),  # from the other end
        (("a", "b", "n"), ("a", "b"), [2.0, 3.0, 1.0], ("n", "a", "b")),
    ],
)
def test_known_values_keep_their_order(values, former, shares, expected):
    assert ordered(values, former, shares) == expected
