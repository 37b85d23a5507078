import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from diffint import DiffInt, InputError, InputWarning, stability_over_fits
from diffint.core.errors import InputTypeError

from ..conftest import QUICK


@pytest.fixture(scope="module")
def fits(rows):
    return [DiffInt(**{**QUICK, "random_state": seed}).fit(rows) for seed in range(4)]


def test_correlations_are_spearmans(fits):
    found = stability_over_fits(fits)
    importance = [fit.explain_global().feature_importance for fit in fits]
    np.testing.assert_array_equal(found.importance, importance)
    expected = [
        spearmanr(importance[a], importance[b])[0] for a in range(4) for b in range(a + 1, 4)
    ]
    np.testing.assert_allclose(found.correlations, expected)
    assert found.mean == pytest.approx(np.mean(expected))
    assert found.least == pytest.approx(min(expected))
    assert found.deviation == pytest.approx(np.std(expected))
    assert "4 fits" in repr(found)


def test_the_same_fit_twice_agrees(fits):
    found = stability_over_fits([fits[0], fits[0].model_])
    np.testing.assert_allclose(found.correlations, [1.0])


def test_frame(fits):
    frame = stability_over_fits(fits).to_frame()
    assert list(frame) == ["feature", "importance", "deviation", "rank", "rank_deviation"]
    assert frame["rank"].is_monotonic_increasing
    assert frame["rank"].sum() == pytest.approx(15)


def test_features_without_any_order():
    constant = np.full((30, 3), 1.0)
    settings = {**QUICK, "importance": "paper"}
    with pytest.warns(InputWarning):
        fits = [DiffInt(**{**settings, "random_state": s}).fit(constant) for s in (0, 1)]
    assert stability_over_fits(fits).mean == 1.0


def test_bad_input(fits, rows):
    with pytest.raises(InputError, match="at least two"):
        stability_over_fits(fits[:1])
    with pytest.raises(InputError, match="number 1 is not a fitted detector"):
        stability_over_fits([fits[0], DiffInt()])
    named = DiffInt(**QUICK).fit(pd.DataFrame(rows, columns=list("abcde")))
    with pytest.raises(InputError, match="other features"):
        stability_over_fits([fits[0], named])
    single = DiffInt(**QUICK).fit(rows[:, :1])
    with pytest.raises(InputError, match="single feature"):
        stability_over_fits([single, single])
    with pytest.raises(InputError, match="0 fits given"):
        stability_over_fits([])
    with pytest.raises(InputTypeError, match="the detectors are a DiffInt; pass a list"):
        stability_over_fits(fits[0])
    other = DiffInt(**{**QUICK, "importance": "paper"}).fit(rows)
    with pytest.raises(InputError, match="different formulas of importance"):
        stability_over_fits([fits[0], other])
