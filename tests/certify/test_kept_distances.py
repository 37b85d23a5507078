"""Bounds with kept rows, curves and missing cells: no score lies outside them."""

import numpy as np
import pytest
import torch
from benchmarks.score_search import TorchScore, follow_gradient

from diffint import DiffInt

from ..conftest import QUICK
from .test_regions import climb, random_region, rows_in

N_FEATURES = 5


def make_table(n_rows=300, seed=0):
    """Long tails, codes with one dominating value, a constant, and missing cells."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, N_FEATURES))
    x[:, 1] = np.exp(3 * x[:, 1])
    x[:, 2] = np.where(rng.random(n_rows) < 0.01, 4.0, 1.0)
    x[:3, 2] = 9.0, -2.0, 4.0
    x[:, 3] = 7.0
    x[rng.random(n_rows) < 0.3, 4] = np.nan
    return x


def probes(x, n_rows=500, seed=1):
    """Rows like those of x, near them and far from them, with few and many missing cells."""
    rng = np.random.default_rng(seed)
    rows = x[rng.integers(len(x), size=n_rows)]
    rows = rows * (1 + rng.normal(size=rows.shape) * 10.0 ** rng.uniform(-4, 3, (n_rows, 1)))
    rows[:, 3] = np.where(rng.random(n_rows) < 0.5, 7.0, rows[:, 3])
    rows[rng.random(rows.shape) < rng.choice([0.0, 0.2, 0.8], (n_rows, 1))] = np.nan
    rows[0] = np.nan
    return np.vstack([x, rows])


SETTINGS = [
    {"kept_rows": 0},
    {"kept_rows": 1},
    {"kept_rows": 17, "missing": "ignored"},
    {"kept_rows": 500, "error": "clipped"},
    {"kept_rows": 500},
    {"kept_rows": 500, "temperature": 0.02},
    {"kept_rows": 500, "calibration": "training", "scaling": "standard"},
]


@pytest.fixture(scope="module", params=SETTINGS, ids=str)
def settings(request):
    return {**QUICK, **request.param}


@pytest.mark.filterwarnings("ignore:.*no value:diffint.core.errors.InputWarning")
def test_no_row_scores_below_its_bound(settings):
    x = make_table()
    detector = DiffInt(**settings, decoder="certified").fit(x)
    new = probes(x)
    certificate = detector.certify(new)
    np.testing.assert_array_equal(certificate.score, detector.anomaly_score(new))
    assert (certificate.bound <= certificate.bound_at_row).all()
    assert (certificate.bound_at_row <= certificate.score).all()
    assert (certificate.beside_error.mean(axis=0) <= certificate.bound).all()
    if settings["kept_rows"]:
        assert (certificate.beside_error > 0).mean() > 0.5
    assert "proven to be at least" in certificate.text(len(new) - 1)


@pytest.mark.parametrize("decoder", ["free", "certified"])
def test_no_row_of_a_region_scores_outside_its_bounds(settings, decoder):
    x = make_table()
    detector = DiffInt(**settings, decoder=decoder).fit(x)
    rng = np.random.default_rng(2)
    for i in range(10):
        lower, upper = random_region(x, rng)
        region = detector.certify_region(lower, upper, splits=8 * (i % 3))
        near = np.clip(np.nan_to_num(x[rng.integers(len(x), size=200)]), lower, upper)
        rows = np.vstack([rows_in(lower, upper, x, rng, 400), near])
        scores = detector.anomaly_score(rows)
        assert region.lower <= scores.min()
        assert scores.max() <= region.upper
        best = rows[scores.argmax()], rows[scores.argmin()]
        if i < 3:
            assert climb(detector, best[0], lower, upper, 1.0, rng) <= region.upper
            assert climb(detector, best[1], lower, upper, -1.0, rng) >= region.lower


@pytest.mark.parametrize("decoder", ["free", "certified"])
def test_gradients_lead_to_no_score_outside_the_bounds(decoder):
    x = np.delete(make_table(), 3, axis=1)  # the adversary does not know constants
    detector = DiffInt(**QUICK, decoder=decoder).fit(x)
    adversary = TorchScore(detector.model_)
    complete = x[~np.isnan(x).any(axis=1)]
    found = adversary(torch.from_numpy(complete)).detach().numpy()
    np.testing.assert_allclose(found, detector.anomaly_score(complete), rtol=1e-4)
    rng = np.random.default_rng(4)
    for _ in range(4):
        ends = complete[rng.integers(len(complete), size=(2, 4)), np.arange(4)]
        low, high = ends.min(axis=0), ends.max(axis=0)
        tried = follow_gradient(adversary, low, high, rng.random((6, 4)), 25)
        region = detector.certify_region(low, high, splits=8)
        scores = detector.anomaly_score(tried)
        assert region.lower <= scores.min()
        assert scores.max() <= region.upper


@pytest.mark.parametrize("decoder", ["free", "certified"])
def test_a_region_of_one_row_gives_its_score(decoder):
    x = make_table()
    detector = DiffInt(**QUICK, decoder=decoder).fit(x)
    complete = x[~np.isnan(x).any(axis=1)]
    for row in [*complete[:10], complete[11] * 100.0, complete[12] - 1e6]:
        region = detector.certify_region(row, row)
        score = detector.anomaly_score(row[None])[0]
        assert region.lower <= score <= region.upper
        assert region.upper - region.lower < 1e-5 * (1.0 + score)


def test_regions_split_at_curves():
    """Splitting tightens the bounds of a wide range of a feature with a long tail."""
    x = make_table()
    detector = DiffInt(**QUICK).fit(x)
    lower = np.array([0.0, 1e-3, 1.0, 7.0, 0.0])
    upper = np.array([0.0, 1e4, 1.0, 7.0, 0.0])
    widths = [
        (region := detector.certify_region(lower, upper, splits=splits, aim="bounds")).upper
        - region.lower
        for splits in (0, 16, 128)
    ]
    assert widths[0] > widths[1] > widths[2]


def test_a_region_with_training_rows_is_not_bounded_away_from_them():
    x = make_table()
    detector = DiffInt(**QUICK).fit(x)
    complete = x[~np.isnan(x).any(axis=1)]
    region = detector.certify_region(complete.min(axis=0), complete.max(axis=0))
    scores = detector.anomaly_score(complete)
    assert region.lower <= scores.min()
    assert scores.max() <= region.upper
