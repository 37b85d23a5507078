"""The compiled evidence of drift is the one that is defined."""

import numpy as np
import pytest

from diffint.engine.cpu.drift_evidence import add_rows
from diffint.engine.reference.drift_evidence import (
    BETS,
    FIRST_SHARE,
    HORIZON,
    factors,
    log_evidence,
    p_value,
    uniforms,
)


def compiled_evidence(bins, counts, is_binary, seed, first):
    """The evidence after each row (rows, statistics), and the largest."""
    n = len(is_binary)
    counts, totals, seen = counts.copy(), counts.sum(axis=1), np.zeros(n, dtype=np.int64)
    money, growth = np.zeros((n, BETS.most)), np.ones((n, BETS.most))
    for s in range(n):
        own = len(BETS.odds) if is_binary[s] else len(BETS.slopes) + 2 * len(BETS.tails)
        money[s, :own] = FIRST_SHARE / own
    units, since, begun = seen.copy(), seen.copy(), np.zeros((n, BETS.most), dtype=np.int64)
    log_money, log_most, alarm = np.zeros(n), np.zeros(n), np.array([-1])
    evidence = np.empty(bins.shape)
    for i in range(len(bins)):
        add_rows(
            *(bins[i : i + 1], np.uint64(seed), first + i, is_binary, *BETS, FIRST_SHARE, HORIZON),
            *(counts, totals, seen, money, units, log_money, growth, begun, log_most, since),
            *(np.full(n, 5.0), alarm),
        )
        evidence[i] = log_money
    return evidence, log_most, alarm[0]


@pytest.mark.parametrize("seed", range(4))
def test_the_compiled_loop_computes_what_is_defined(seed):
    rng = np.random.default_rng(seed)
    is_binary = rng.random(6) < 0.5
    n_rows, n_bins, first = 300, 9, int(rng.integers(1, 10**9))
    counts = rng.integers(0, 30, size=(6, n_bins)) * (rng.random((6, 1)) < 0.7)
    # From row 150 on the rows are in other bins.
    bins = rng.integers(-1, n_bins, size=(n_rows, 6)).astype(np.int16)
    bins[150:] = np.minimum(bins[150:], rng.integers(0, n_bins, size=6))
    counts[is_binary, 2:] = 0
    bins[:, is_binary] = np.minimum(bins[:, is_binary], 1)
    evidence, log_most, alarm = compiled_evidence(bins, counts, is_binary, 2**63 + seed, first)
    rows = np.arange(first, first + n_rows, dtype=np.uint64)[:, None]
    u = uniforms(2**63 + seed, rows * np.uint64(6) + np.arange(6, dtype=np.uint64))
    expected = np.stack(
        [log_evidence(bins[:, s], counts[s], is_binary[s], u[:, s]) for s in range(6)], axis=1
    )
    np.testing.assert_allclose(evidence, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(log_most, np.maximum(expected.max(axis=0), 0.0), atol=1e-9)
    above = np.flatnonzero((expected >= 5.0).any(axis=1))
    assert alarm == (first + above[0] if len(above) else -1)


def test_evidence_beyond_the_largest_float():
    n_rows = 3_000
    bins = np.zeros((n_rows, 1), dtype=np.int16)
    counts = np.array([[0, 10**6]])
    evidence, _, _ = compiled_evidence(bins, counts, np.array([True]), 1, 0)
    u = uniforms(1, np.arange(n_rows, dtype=np.uint64))
    expected = log_evidence(bins[:400, 0], counts[0], True, u[:400])
    np.testing.assert_allclose(evidence[:400, 0], expected, rtol=1e-9)
    assert evidence[-1, 0] > 5_000
    back = np.concatenate([bins, np.ones((20_000, 1), dtype=np.int16)])
    evidence, log_most, _ = compiled_evidence(back, counts, np.array([True]), 1, 0)
    assert np.isfinite(evidence).all()
    assert evidence[-1, 0] < log_most[0]


@pytest.mark.parametrize("is_binary", [False, True])
def test_every_bet_is_fair(is_binary):
    """Its factor has the mean 1 over uniform p-values."""
    counts = np.array([17, 300])
    p = (np.arange(200_000) + 0.5) / 200_000
    mean = np.mean([factors(value, counts, is_binary) for value in p[::20]], axis=0)
    np.testing.assert_allclose(mean, 1.0, atol=0.01)
    assert (factors(0.0, counts, is_binary) >= 0).all()


def test_p_values_of_exchangeable_rows_are_uniform_and_independent():
    rng = np.random.default_rng(0)
    found = []
    for _ in range(4_000):
        counts, ps = np.zeros(3, dtype=np.int64), []
        for place in rng.choice(3, size=5, p=[0.7, 0.2, 0.1]):
            ps.append(p_value(counts, place, rng.random()))
            counts[place] += 1
        found.append(ps)
    found = np.array(found)
    np.testing.assert_allclose(found.mean(axis=0), 0.5, atol=0.02)
    np.testing.assert_allclose((found < 0.1).mean(axis=0), 0.1, atol=0.02)
    np.testing.assert_allclose(np.corrcoef(found.T), np.eye(5), atol=0.06)


def test_uniform_numbers():
    u = uniforms(3, np.arange(100_000, dtype=np.uint64))
    assert 0 <= u.min() < u.max() < 1
    assert abs(u.mean() - 0.5) < 0.005
    assert len(np.unique(u)) == len(u)
