"""The band of p-values holds for all ranks at once, and is tight where alerts are decided."""

import tracemalloc

import numpy as np
import pytest

from diffint.decide.conditional_p_values import p_value_band


@pytest.mark.parametrize(("n_rows", "confidence"), [(1, 0.9), (20, 0.95), (300, 0.8), (2000, 0.99)])
def test_with_the_confidence_no_rank_is_too_rare(n_rows, confidence):
    band = p_value_band(n_rows, confidence)
    rng = np.random.default_rng(n_rows)
    shares = np.sort(rng.random((4_000, n_rows)), axis=1)  # of new rows above each rank
    holds = (shares <= band[:-1]).all(axis=1).mean()
    # Twice the standard error of 4,000 draws and of the simulation in the band.
    error = 2 * np.sqrt(confidence * (1 - confidence) * (1 / 4_000 + 1 / 10_000))
    assert -error < holds - confidence < error + 0.02  # steps between ranks make it hold more


@pytest.mark.parametrize("n_rows", [1, 2, 63, 64, 65, 66, 1000, 30_000])
def test_p_values_ascend_and_end_at_1(n_rows):
    band = p_value_band(n_rows, 0.95)
    assert band.shape == (n_rows + 1,)
    assert (np.diff(band) >= 0).all()
    assert band[0] > 0
    assert band[-1] == 1
    assert (band[:-1] >= np.arange(1, n_rows + 1) / (n_rows + 1)).all()


@pytest.mark.parametrize("n_rows", [500, 30_000])
def test_the_smallest_p_values_are_smaller_than_those_of_simes_and_of_dkw(n_rows):
    smallest = p_value_band(n_rows, 0.95)[:3]
    simes = 1 - 0.05 ** (2 / n_rows)  # of the first rank; it is larger for others
    dkw = np.sqrt(np.log(2 / 0.05) / (2 * n_rows))
    assert smallest[0] < 0.62 * simes < 0.62 * dkw
    assert (n_rows * smallest < [3.8, 6.6, 8.9]).all()


def test_few_of_a_hundred_thousand_ranks_are_simulated_and_can_be_asked_for_again():
    p_value_band.cache_clear()
    tracemalloc.start()
    try:
        first = p_value_band(100_000, 0.95)
        assert tracemalloc.get_traced_memory()[1] < 400e6  # all ranks: 8 GB
    finally:
        tracemalloc.stop()
    assert p_value_band(100_000, 0.95) is first
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 0
