"""The false-positive rate of tables in which rows repeat by chance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from diffint import DiffInt

N_FITS, N_ROWS, N_NEW = 20, 300, 2_000
FIRST_TABLE = 10_000  # the seeds of the tables


def whole_numbers(rng: np.random.Generator, n_rows: int) -> Any:
    return rng.binomial(3, 0.3, size=(n_rows, 3)).astype(float)


def one_hot(rng: np.random.Generator, n_rows: int) -> Any:
    codes = rng.choice(4, size=(n_rows, 3), p=(0.5, 0.3, 0.15, 0.05))
    return np.eye(4)[codes].reshape(n_rows, 12)


def categories(rng: np.random.Generator, n_rows: int) -> Any:
    shares = (0.4, 0.25, 0.18, 0.1, 0.05, 0.02)
    return pd.DataFrame(rng.choice(list("abcdef"), size=(n_rows, 3), p=shares), columns=list("xyz"))


def continuous(rng: np.random.Generator, n_rows: int) -> Any:
    return rng.normal(size=(n_rows, 4))


def flagged_shares(make: Callable[[np.random.Generator, int], Any], rate: float) -> Any:
    """The share of new rows flagged, for each fit."""
    shares = np.empty(N_FITS)
    for seed in range(N_FITS):
        rng = np.random.default_rng(FIRST_TABLE + seed)
        detector = DiffInt(
            calibration="members", false_positive_rate=rate, random_state=seed, n_jobs=1
        ).fit(make(rng, N_ROWS))
        new = make(rng, N_NEW)
        flagged = detector.predict(new) == -1
        np.testing.assert_array_equal(flagged, detector.p_values(new) <= rate)
        shares[seed] = flagged.mean()
    return shares


@pytest.mark.parametrize(
    ("make", "rate"),
    [(whole_numbers, 0.06), (one_hot, 0.08), (categories, 0.05)],
)
def test_the_rate_holds_where_rows_repeat(make: Any, rate: float) -> None:
    shares = flagged_shares(make, rate)
    assert shares.mean() <= rate + 3.0 * shares.std(ddof=1) / np.sqrt(N_FITS)


def test_few_rows_are_flagged_less_often_where_none_repeat() -> None:
    assert flagged_shares(continuous, 0.05).mean() >= 0.03
