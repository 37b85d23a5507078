"""Boxes, coverage, stability and importance compared with their definitions."""

import warnings

import numpy as np

from diffint import DiffInt
from diffint.core.constants import MEMBERSHIP_FLOOR
from diffint.core.errors import TrainingWarning
from diffint.engine.reference import intervals as reference
from diffint.explain.importance import label_free_importance, tightness
from diffint.fit.boxes import (
    count_peers,
    coverages,
    covering_scale,
    find_boxes,
    joint_coverages,
    mean_memberships,
)
from diffint.fit.feature_summary import summarise_features
from diffint.fit.unit_matching import match_units, stabilities
from diffint.score.nearest_pattern import center_distances, nearest_units

from ..conftest import QUICK


def boxes(n_rows=200, n_units=6, n_features=4, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.uniform(-1, 1, (n_rows, n_features)).astype(np.float32)
    rows[rng.random(rows.shape) < 0.1] = np.nan
    center = rng.uniform(-0.5, 0.5, (n_units, n_features)).astype(np.float32)
    return rows, center - 0.6, center + 0.6


def test_mean_memberships():
    rows, lower, upper = boxes()
    membership = np.exp(reference.log_memberships(rows, lower, upper, 0.1))
    present = np.where(np.isnan(rows)[:, None, :], np.nan, membership)
    np.testing.assert_allclose(
        mean_memberships(rows, lower, upper, 0.1), np.nanmean(present, axis=0), atol=1e-5
    )


def test_coverages_alone_and_together():
    rows, lower, upper = boxes()
    inside = (rows[:, None] >= lower) & (rows[:, None] <= upper)
    present = ~np.isnan(rows)
    alone = coverages(rows, lower, upper)
    np.testing.assert_allclose(alone, inside.sum(axis=0) / present.sum(axis=0), atol=1e-6)
    importance = np.random.default_rng(1).random(lower.shape)
    together = joint_coverages(rows, lower, upper, importance)
    for k in range(len(lower)):
        for n in range(1, rows.shape[1] + 1):
            chosen = np.argsort(-importance[k])[:n]
            known = ~np.isnan(rows)[:, chosen].any(axis=1)
            kept = inside[known][:, k, chosen].all(axis=1)
            assert together[k, n - 1] == np.float32(kept.mean())


def test_values_at_both_ends_of_a_range_are_inside_it():
    rows = np.array([[1, 5], [2, 5], [2, np.nan], [3, 6], [4, 7]], dtype=np.float32)
    lower, upper = np.array([[2, 5]], dtype=np.float32), np.array([[3, 6]], dtype=np.float32)
    np.testing.assert_allclose(coverages(rows, lower, upper), [[3 / 5, 3 / 4]])
    together = joint_coverages(rows, lower, upper, np.array([[2.0, 1.0]]))
    np.testing.assert_allclose(together, [[3 / 5, 2 / 4]])


def test_a_row_is_matched_to_the_unit_that_fits_most_of_it():
    rows, lower, upper = boxes()
    unit = nearest_units(rows, lower, upper, 0.1)
    logs = reference.bounded_log_box_memberships(rows, lower, upper, 0.1, MEMBERSHIP_FLOOR)
    np.testing.assert_array_equal(unit, logs.argmax(axis=1))
    allowed = np.arange(len(lower)) % 2 == 0
    restricted = nearest_units(rows, lower, upper, 0.1, allowed)
    np.testing.assert_array_equal(restricted, np.where(allowed, logs, -np.inf).argmax(axis=1))


def test_feature_summary():
    x = np.column_stack([np.arange(100.0), np.linspace(0, 1, 100), np.full(100, 5.0)])
    x[:10, 0] = np.nan
    summary = summarise_features(x)
    np.testing.assert_allclose(summary.missing_share, [0.1, 0, 0])
    np.testing.assert_array_equal(summary.whole, [True, False, True])
    np.testing.assert_array_equal(summary.bin_counts.sum(axis=1), [90, 100, 100])
    assert summary.quantiles[0, 0] == 10
    assert summary.quantiles[1, 5] == 0.5


def test_units_are_matched_and_identical_members_are_stable():
    rng = np.random.default_rng(0)
    lower = rng.normal(size=(8, 3))
    upper = lower + 1.0
    order = rng.permutation(8)
    center, half = (lower + upper) / 2, (upper - lower) / 2
    match = match_units((center, half), (center[order], half[order]))
    np.testing.assert_array_equal(order[match], np.arange(8))
    same = stabilities([lower, lower[order]], [upper, upper[order]], np.full(3, 2.0))
    for stability in same:
        np.testing.assert_allclose(stability, 1.0)
    apart = stabilities([lower, lower + 0.4], [upper, upper + 0.4], np.full(3, 2.0))[0]
    np.testing.assert_allclose(apart, 1 / (1 + (0.2 / 2.0) ** 2))
    np.testing.assert_allclose(stabilities([lower], [upper], np.full(3, 2.0))[0], 1.0)


def test_extremely_small_ranges():
    lower = np.zeros((4, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        apart = stabilities([lower, lower + 1.0], [lower + 1.0, lower + 2.0], np.full(2, 1e-300))
        np.testing.assert_array_equal(apart, 0.0)
        same = stabilities([lower, lower], [lower + 1.0] * 2, np.full(2, 5e-324))
        np.testing.assert_array_equal(same, 1.0)
    x = np.random.default_rng(0).normal(size=(100, 2)) * 1e-300
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", TrainingWarning)
        detector = DiffInt(**QUICK, scaling="none").fit(x)
        importance = detector.explain_global().feature_importance
    assert ((importance >= 0) & (importance <= 1)).all()


def test_importance_lies_between_zero_and_one():
    rng = np.random.default_rng(0)
    lower = rng.normal(size=(8, 3))
    upper = lower + rng.exponential(2.0, (8, 3))
    tight = tightness(lower, upper, np.full(3, -1.0), np.ones(3))
    importance = label_free_importance(rng.random((8, 3)), tight, rng.random((8, 3)))
    assert ((importance >= 0) & (importance <= 1)).all()
    wide = tightness(np.full((1, 3), -2.0), np.full((1, 3), 2.0), np.full(3, -1.0), np.ones(3))
    np.testing.assert_array_equal(wide, 0.0)  # ends beyond the range exclude nothing
    half = tightness(np.full((1, 3), -2.0), np.zeros((1, 3)), np.full(3, -1.0), np.ones(3))
    np.testing.assert_array_equal(half, 0.5)


def test_boxes_cover_the_requested_share_of_rows():
    rng = np.random.default_rng(0)
    center = rng.uniform(-1, 1, (5, 4)).astype(np.float32)
    half_width = rng.uniform(0.1, 0.5, (5, 4)).astype(np.float32)
    unit = rng.integers(5, size=400)
    rows = (center[unit] + half_width[unit] * rng.normal(size=(400, 4))).astype(np.float32)
    rows[rng.random(rows.shape) < 0.1] = np.nan
    reach = center_distances(rows, unit, center, half_width)
    scale = covering_scale(reach, 0.8)
    inside = ~(np.abs(rows - center[unit]) > scale * half_width[unit]).any(axis=1)
    assert 0.8 <= inside.mean() <= 0.81
    assert covering_scale(reach, 0.0) == 1.0
    assert covering_scale(reach[:2], 0.8) == reach[:2].max()  # too few rows to leave any outside
    lower, upper = center - scale * half_width, center + scale * half_width
    counts = count_peers(rows, lower, upper)
    present = ~np.isnan(rows)
    for k in range(5):
        outside = (rows < lower[k]) | (rows > upper[k])
        assert counts.inside[k] == (~outside.any(axis=1)).sum()
        for j in range(4):
            peers = ~np.delete(outside, j, axis=1).any(axis=1) & present[:, j]
            assert counts.peers[k, j] == peers.sum()
            assert counts.peers_inside[k, j] == (peers & ~outside[:, j]).sum()


def test_a_pattern_contains_at_least_two_rows():
    center = np.array([[0.0, 0.0], [0.5, 0.5], [-0.9, 0.9]], dtype=np.float32)
    half_width = np.full((3, 2), 0.2, dtype=np.float32)
    rows = np.array([[0.0, 0.1], [0.1, 0.0], [0.5, 0.6], [0.4, 0.5], [-0.9, 0.9]], dtype=np.float32)
    boxes = find_boxes(rows, rows, rows, center, half_width, center, 0.1, 0.0)
    np.testing.assert_array_equal(boxes.is_pattern, [True, True, False])
    np.testing.assert_array_equal(boxes.counts.inside, [2, 2, 1])
    alone = find_boxes(rows[-1:], rows, rows, center, half_width, center, 0.1, 0.0)
    assert alone.is_pattern.all()  # no unit contains two rows
