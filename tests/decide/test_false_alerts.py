"""Bounds on the share of false alerts, for all thresholds together."""

import numpy as np
import pytest
from scipy.stats import betabinom

from diffint.core.errors import InputError
from diffint.decide.false_alerts import false_alert_bounds, false_alert_envelope


def conformal(calibration, scores):
    at_least = len(calibration) - np.searchsorted(np.sort(calibration), scores)
    return (1 + at_least) / (1 + len(calibration))


def all_hold(bounds, p_values, normal):
    """Whether no threshold has a larger share of normal rows than its bound."""
    order = np.argsort(p_values)
    last = np.flatnonzero(np.diff(p_values[order], append=2.0))  # of equal p-values
    share = np.cumsum(normal[order])[last] / (last + 1)
    return bool((share <= bounds[order][last] + 1e-12).all())


def at_every_level(levels, counts):
    return counts[np.searchsorted(levels, np.arange(1, levels[-1] + 1))]


@pytest.mark.parametrize(
    ("n", "m", "n_anomalies", "shift", "decimals", "most"),
    [
        (100, 100, 0, 0.0, 15, 0.975),
        (400, 150, 0, 0.0, 15, 0.975),
        (100, 400, 0, 0.0, 1, 0.99),  # tied scores
        (300, 300, 30, 3.0, 15, 0.985),
        (300, 300, 150, 9.0, 15, 0.985),  # all anomalies are obvious
        (300, 300, 150, -9.0, 15, 1.0),  # anomalies look more normal than normal rows
    ],
)
def test_bounds_hold_for_all_thresholds_together(n, m, n_anomalies, shift, decimals, most):
    rng = np.random.default_rng(0)
    normal = np.arange(m) >= n_anomalies
    held = []
    for _ in range(2000):
        scores = rng.normal(np.where(normal, 0.0, shift)).round(decimals)
        p_values = conformal(rng.normal(size=n).round(decimals), scores)
        held.append(all_hold(false_alert_bounds(p_values, n), p_values, normal))
    assert 0.94 <= np.mean(held) <= most  # two standard errors of 2000 runs


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 300), (30, 30), (200, 50), (60, 600), (500, 500)])
def test_the_envelope_holds_with_the_confidence_asked_for(n, m, confidence):
    levels, counts = false_alert_envelope(n, m, confidence)
    limits = np.append(0, at_every_level(levels, counts))
    # Rows and calibration rows in order of score: each next one is any of those left. rows[i]: the
    # probability that the first i + k are i rows and k calibration rows, none of them too early.
    rows = np.zeros(m + 1)
    rows[0] = 1.0
    i = np.arange(m + 1)
    for position in range(n + m):
        k = position - i
        possible = (k >= 0) & (k <= n)
        row_next = np.where(possible, (m - i) / (n + m - position), 0.0)
        calibration_next = np.where(possible, (n - k) / (n + m - position), 0.0)
        in_time = i <= limits[np.clip(k + 1, 0, n + 1)]
        following = rows * calibration_next * in_time
        following[1:] += (rows * row_next)[:-1]
        rows = following
    assert rows[m] >= confidence
    if min(n, m) >= 50:  # counts are whole numbers, so that some is lost
        assert rows[m] <= (1 + confidence) / 2


def test_the_envelope_follows_the_law_of_counts_at_every_level():
    """All levels, exact probabilities and shuffled rows, instead of a grid and approximations."""
    n, m, draws = 80, 120, 4000
    levels = np.arange(1, (n + 1) // 4 + 1)  # as many as are simulated
    at_least = betabinom.sf(np.arange(m + 1)[:, None] - 1, m, levels, n + 1 - levels)
    excess = -np.log(np.maximum(at_least, 1e-300)) + 0.75 * np.log((n + 1) / levels)
    is_row = np.arange(n + m) < m
    shuffled = np.random.default_rng(1).permuted(np.tile(is_row, (draws, 1)), axis=1)
    counts = np.cumsum(shuffled, axis=1)[~shuffled].reshape(draws, n)[:, : len(levels)]
    cautious = 0.95 + 2 * np.sqrt(0.95 * 0.05 / 4000)
    allowed = np.quantile(excess[counts, levels - 1].max(axis=1), cautious)
    plain = (excess <= allowed).sum(axis=0) - 1
    envelope = at_every_level(*false_alert_envelope(n, m))[: len(levels)]
    assert (np.abs(envelope - plain) <= 2 + 0.03 * plain).all()


def test_bounds_are_the_best_that_the_envelope_gives():
    rng = np.random.default_rng(2)
    for _ in range(30):
        n, m = rng.integers(1, 60), rng.integers(1, 60)
        p_values = rng.integers(1, n + 2, size=m) / (n + 1)
        envelope = at_every_level(*false_alert_envelope(n, m))
        bounds = false_alert_bounds(p_values, n)
        alerts = np.array([(p_values <= (j + 0.5) / (n + 1)).sum() for j in range(1, n + 2)])
        for p, bound in zip(p_values, bounds, strict=True):
            j = round(p * (n + 1)) - 1
            lower = [envelope[s] + alerts[j] - alerts[s] for s in range(j)]
            best = min([alerts[j], *envelope[j:], *lower])
            # Too few anomalies to rule out that all rows are normal.
            assert bound == pytest.approx(best / alerts[j])


def test_fewer_rows_can_be_normal_where_many_are_anomalies():
    rng = np.random.default_rng(3)
    n, m = 1000, 2000
    scores = np.concatenate([rng.normal(2.5, 1, size=1000), rng.normal(size=1000)])
    p_values = conformal(rng.normal(size=n), scores)
    level = np.rint(p_values * (n + 1)).astype(int)
    alerts = np.cumsum(np.bincount(level, minlength=n + 2))[1:]
    if_all_may_be_normal = at_every_level(*false_alert_envelope(n, m))
    most = alerts + np.minimum.accumulate(np.minimum(if_all_may_be_normal - alerts, 0))
    from_all_rows = (most / np.maximum(alerts, 1))[level - 1]
    bounds = false_alert_bounds(p_values, n)
    assert (bounds <= from_all_rows).all()
    flagged = (p_values > 0.02) & (p_values < 0.1)
    assert (bounds[flagged] < 0.75 * from_all_rows[flagged]).all()
    assert 0.5 <= bounds.max() <= 0.65  # of all rows, half are normal


def test_more_confidence_gives_larger_bounds():
    rng = np.random.default_rng(4)
    for n_anomalies in [0, 20, 150]:
        scores = rng.normal(np.where(np.arange(300) < n_anomalies, 3.0, 0.0))
        p_values = conformal(rng.normal(size=200), scores)
        bounds = [false_alert_bounds(p_values, 200, c) for c in [0.5, 0.8, 0.95, 0.99, 0.9999]]
        assert (np.diff(bounds, axis=0) >= 0).all()
        assert (bounds[-1] == 1).all()  # more than the simulation can give


def test_obvious_anomalies_have_small_bounds():
    rng = np.random.default_rng(5)
    scores = np.concatenate([rng.normal(9, 1, size=100), rng.normal(size=900)])
    bounds = false_alert_bounds(conformal(rng.normal(size=3000), scores), 3000)
    assert bounds[:100].max() < 0.1
    assert 0.85 < bounds.max() <= 1


def test_few_rows():
    assert false_alert_bounds(np.empty(0), 100).shape == (0,)
    assert false_alert_bounds(np.array([0.01]), 99).tolist() == [0.0]  # p is below 1 - 0.95
    assert false_alert_bounds(np.array([0.2]), 99).tolist() == [1.0]
    assert false_alert_bounds(np.array([1.0]), 999).tolist() == [1.0]
    assert false_alert_bounds(np.array([0.5, 1.0, 0.5]), 1).tolist() == [1.0, 1.0, 1.0]


def test_equal_p_values():
    assert (false_alert_bounds(np.ones(50), 100) == 1).all()
    lowest = false_alert_bounds(np.full(500, 1 / 501), 500)
    assert (lowest == lowest[0]).all()
    assert 0 < lowest[0] < 0.02


def test_rounding_of_p_values_does_not_matter():
    rng = np.random.default_rng(7)
    n = 999
    scores = np.concatenate([rng.normal(3, 1, size=500), rng.normal(size=500)])
    p_values = conformal(rng.normal(size=n), scores)
    expected = false_alert_bounds(p_values, n)
    assert len(np.unique(expected)) > 100
    rounded = np.minimum(p_values * rng.choice([1 - 4e-16, 1.0, 1 + 4e-16], size=1000), 1.0)
    np.testing.assert_array_equal(false_alert_bounds(rounded, n), expected)


def test_the_order_of_rows_does_not_matter():
    rng = np.random.default_rng(6)
    p_values = rng.integers(1, 101, size=200) / 100
    order = rng.permutation(200)
    bounds = false_alert_bounds(p_values, 99)
    np.testing.assert_array_equal(false_alert_bounds(p_values[order], 99), bounds[order])


@pytest.mark.parametrize(
    ("p_values", "n", "confidence", "message"),
    [
        ([0.5, np.nan], 10, 0.95, "p_values must be"),
        ([0.5, 1.5], 10, 0.95, "p_values must be"),
        ([[0.5]], 10, 0.95, "p_values must be"),
        ([0.5], 0, 0.95, "n_calibration=0 must be at least 1"),
        ([0.5], 10, 1.0, r"confidence=1\.0 must be above 0 and below 1"),
    ],
)
def test_bad_input(p_values, n, confidence, message):
    with pytest.raises(InputError, match=message):
        false_alert_bounds(np.array(p_values), n, confidence)
    with pytest.raises(InputError, match="n_normal=0 must be at least 1"):
        false_alert_envelope(10, 0)
