"""Bounds on regions: no row inside the region scores outside them."""

import itertools
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from diffint import DiffInt, InputError
from diffint.certify.regions import RegionCertificate

from ..conftest import QUICK, make_rows


def random_region(x: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A region of any size around a row, with some sides unbounded and some features fixed."""
    d = x.shape[1]
    center = np.nan_to_num(x[rng.integers(len(x))])
    reach = (np.nanstd(x, axis=0) + 0.1) * 10.0 ** rng.uniform(-4, 1, size=(2, d))
    reach[:, rng.random(d) < 0.2] = 0.0
    lower, upper = center - reach[0], center + reach[1]
    lower[rng.random(d) < 0.1] = -np.inf
    upper[rng.random(d) < 0.1] = np.inf
    return lower, upper


def rows_in(
    lower: np.ndarray, upper: np.ndarray, x: np.ndarray, rng: np.random.Generator, n_rows: int
) -> np.ndarray:
    """Rows in a region: uniform, at its ends, and far away on unbounded sides."""
    spread = np.nanmax(np.abs(x)) + 1.0
    far = 10.0 ** rng.uniform(-1, 6, size=(n_rows, len(lower)))
    low = np.where(np.isinf(lower), np.minimum(upper, 0) - spread * far, lower)
    high = np.where(np.isinf(upper), np.maximum(lower, 0) + spread * far, upper)
    low = np.where(np.isinf(low), -spread * far, low)
    high = np.where(np.isinf(high), spread * far, high)
    inside = low + (high - low) * rng.random((n_rows, len(lower)))
    inside = np.where(rng.random(inside.shape) < 0.3, low, inside)
    inside = np.where(rng.random(inside.shape) < 0.3, high, inside)
    return np.clip(inside, np.maximum(lower, -1e300), np.minimum(upper, 1e300))


def climb(detector: DiffInt, start: np.ndarray, lower, upper, sign: float, rng) -> float:
    """The largest (sign 1) or smallest (sign −1) score that a random search finds in the region."""
    best, value = start, sign * detector.anomaly_score(start[None])[0]
    step = np.minimum(upper, 1e6) - np.maximum(lower, -1e6)
    for _ in range(12):
        moves = rng.normal(size=(60, len(start))) * step * (rng.random((60, len(start))) < 0.4)
        tried = np.clip(best + moves, lower, upper)
        scores = sign * detector.anomaly_score(tried)
        if scores.max() > value:
            best, value = tried[scores.argmax()], scores.max()
        else:
            step = step / 3
    return sign * value


@pytest.mark.parametrize("decoder", ["free", "certified"])
@pytest.mark.parametrize("scaling", ["adaptive", "minmax", "unit", "standard", "none"])
@pytest.mark.parametrize("error", ["clipped", "unclipped"])
@pytest.mark.parametrize("temperature", [0.02, 0.1])
def test_no_row_scores_outside_the_bounds(decoder, scaling, error, temperature):
    x = np.random.default_rng(0).normal(size=(150, 4))
    x[::9, 1] = np.nan
    x[:, 2] = 7.0
    settings = {"decoder": decoder, "scaling": scaling, "error": error}
    detector = DiffInt(**QUICK, **settings, temperature=temperature).fit(x)
    rng = np.random.default_rng(1)
    for i in range(12):
        lower, upper = random_region(x, rng)
        region = detector.certify_region(lower, upper, splits=8 * (i % 3))
        scores = detector.anomaly_score(rows_in(lower, upper, x, rng, 1_000))
        assert region.lower <= scores.min()
        assert scores.max() <= region.upper


@pytest.mark.parametrize("n_features", [1, 6])
@pytest.mark.parametrize("units", [1, 40])
@pytest.mark.parametrize("decoder", ["free", "certified"])
def test_a_search_finds_no_score_outside_the_bounds(n_features, units, decoder):
    x = make_rows(150, n_features, seed=2)
    settings = {**QUICK, "n_units": units, "epochs": 30, "decoder": decoder}
    detector = DiffInt(**settings).fit(x)
    rng = np.random.default_rng(3)
    for _ in range(4):
        lower, upper = random_region(x, rng)
        region = detector.certify_region(lower, upper, splits=10)
        for start in rows_in(lower, upper, x, rng, 2):
            assert region.upper >= climb(detector, start, lower, upper, 1.0, rng)
            assert region.lower <= climb(detector, start, lower, upper, -1.0, rng)


@pytest.mark.parametrize("decoder", ["free", "certified"])
@pytest.mark.parametrize("units", [2, 5])
def test_bounds_hold_where_one_unit_dominates(decoder, units):
    """Few units and a low temperature: pinned features can leave the code to a single unit."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(150, 20)) + 3 * rng.normal(size=(4, 20))[rng.integers(4, size=150)]
    settings = {**QUICK, "n_units": units, "n_members": 1, "epochs": 40, "temperature": 0.02}
    detector = DiffInt(**settings, decoder=decoder).fit(x)
    member = detector.model_.members[0]
    ends = np.concatenate([member.scaler.to_original(a) for a in (member.lower, member.upper)])
    for _ in range(30):
        lower, upper = x.min(axis=0), x.max(axis=0)
        pinned = rng.random(20) < 0.5
        lower[pinned] = upper[pinned] = x[rng.integers(len(x))][pinned]
        region = detector.certify_region(lower, upper)
        at_units = np.clip(
            ends[rng.integers(len(ends), size=(300, 1)), np.arange(20)], lower, upper
        )
        tried = np.concatenate([at_units, rows_in(lower, upper, x, rng, 300)])
        scores = detector.anomaly_score(tried)
        assert region.lower <= scores.min()
        assert scores.max() <= region.upper


@pytest.fixture(scope="module", params=["free", "certified"])
def detector(request, rows):
    return DiffInt(**{**QUICK, "epochs": 40}, decoder=request.param).fit(rows)


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), shrink=st.lists(st.floats(0, 1), min_size=10, max_size=10))
def test_upper_bounds_of_a_smaller_region_are_not_above_those_of_the_larger(fitted, seed, shrink):
    x = make_rows()
    lower, upper = random_region(x, np.random.default_rng(seed))
    share = np.reshape(shrink, (2, 5)) / 2
    low = np.where(np.isinf(lower), np.minimum(upper, 0) - 1e4, lower)
    high = np.where(np.isinf(upper), np.maximum(low, 0) + 1e4, upper)
    low, high = np.minimum(low, high), np.maximum(low, high)
    inner_low = np.maximum(low + (high - low) * share[0], lower)
    inner_high = np.minimum(np.maximum(high - (high - low) * share[1], inner_low), upper)
    outer = fitted.certify_region(lower, upper, splits=0)
    inner = fitted.certify_region(np.minimum(inner_low, inner_high), inner_high, splits=0)
    assert inner.upper <= outer.upper


def test_a_region_of_one_row_gives_its_score(detector, rows):
    for row in [*rows[:10], rows[0] + 1e6]:
        region = detector.certify_region(row, row)
        score = detector.anomaly_score(row[None])[0]
        assert region.lower <= score <= region.upper
        assert region.upper - region.lower < 1e-6
        # Nearly one row: only the float32 error remains.
        region = detector.certify_region(row - 1e-9, row + 1e-9)
        assert region.lower <= score <= region.upper
        assert region.upper - region.lower < 2e-3


def test_splitting_only_tightens(detector, rows):
    center, spread = rows.mean(axis=0), rows.std(axis=0)
    widths = []
    for splits in (0, 8, 64, 256):
        ends = center - spread / 4, center + spread / 4
        region = detector.certify_region(*ends, splits=splits, aim="bounds")
        widths.append(region.upper - region.lower)
        assert region.n_boxes <= splits + 1
    assert all(b <= a for a, b in itertools.pairwise(widths))
    assert widths[-1] < 0.9 * widths[0]


def test_constant_and_empty_columns():
    x = np.random.default_rng(0).normal(size=(100, 4))
    x[:, 1], x[:, 2] = 3.0, np.nan
    with pytest.warns(UserWarning, match="no value"):
        detector = DiffInt(**QUICK).fit(x)
    anything = dict.fromkeys(["x0", "x3"], 0.0)
    rng = np.random.default_rng(1)
    for low, high in [(3.0, 3.0), (3.0, 4.0), (2.0, 3.0), (2.0, 4.0), (3.5, 4.0), (-9.0, 2.0)]:
        region = detector.certify_region(
            {**anything, "x1": low}, {**anything, "x1": high}, splits=4
        )
        new = np.column_stack(
            [np.zeros(50), rng.uniform(low, high, 50), rng.normal(size=50), np.zeros(50)]
        )
        new[0, 1], new[1, 1] = low, high
        new[2, 1] = np.clip(3.0, low, high)
        scores = detector.anomaly_score(new)
        assert region.lower <= scores.min()
        assert scores.max() <= region.upper
        # At most three different scaled values, each a single row: splitting finds them all.
        np.testing.assert_allclose([region.lower, region.upper], [scores.min(), scores.max()])


@pytest.mark.parametrize("decoder", ["free", "certified"])
@pytest.mark.parametrize("missing", ["signal", "ignored"])
def test_features_that_may_be_missing(decoder, missing):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 4))
    x[:, 1] = 3.0  # a constant feature
    x[rng.random(120) < 0.1, 2] = np.nan
    settings = {**QUICK, "decoder": decoder, "missing": missing, "kept_rows": 20}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        detector = DiffInt(**settings).fit(x)
    low, high = np.array([-0.5, 3.0, -0.2, 0.0]), np.array([0.5, 3.0, 0.2, 0.0])
    names = ["x0", "x1", "x2"]
    rows = rng.uniform(low, high, size=(4_000, 4))
    rows[:, :3][rng.random((4_000, 3)) < 0.4] = np.nan
    scores = detector.anomaly_score(rows)
    for splits in (0, 20):
        region = detector.certify_region(low, high, splits=splits, missing=names, aim="bounds")
        assert region.lower <= scores.min()
        assert scores.max() <= region.upper
        assert region.missing == (0, 1, 2)
    assert "x0, x1, x2 may be missing" in region.text()
    complete = detector.certify_region(low, high, aim="bounds")
    assert complete.upper - complete.lower < region.upper - region.lower
    with pytest.raises(InputError, match="'x9', which is not a feature"):
        detector.certify_region(low, high, missing=["x9"])
    with pytest.raises(InputError, match="must be a list"):
        detector.certify_region(low, high, missing="x0")


def test_verdicts(detector, rows):
    row = rows[detector.anomaly_score(rows).argmin()]
    assert detector.certify_region(row, row).verdict == "none flagged"
    assert detector.certify_region(row, row).certainly_passed()
    far = rows[0] + 100 * np.ptp(rows, axis=0)
    region = detector.certify_region(far, far)
    assert region.verdict == "all flagged"
    assert region.certainly_flagged()
    assert not region.certainly_flagged(threshold=1e9)
    assert "certain to be flagged" in region.text()
    everything = detector.certify_region(None, None)
    assert everything.verdict == "mixed"
    assert "with any values" in everything.text()
    assert detector.predict(everything.rows.to_numpy()).tolist() == [-1, 1]
    assert everything.threshold == -detector.offset_


def test_everything_beyond_the_range_is_flagged(rows):
    detector = DiffInt(**{**QUICK, "epochs": 40}, decoder="certified").fit(rows)
    beyond = rows.max(axis=0) + np.ptp(rows, axis=0)
    region = detector.certify_region(beyond, None)
    assert region.verdict == "all flagged"
    assert (detector.predict(beyond + np.abs(make_rows(50))) == -1).all()


def test_names_and_series(rows):
    frame = pd.DataFrame(rows, columns=list("abcde"))
    detector = DiffInt(**QUICK).fit(frame)
    by_name = detector.certify_region({"b": 0.0}, {"b": 1.0, "c": 5.0})
    low, high = np.full(5, -np.inf), np.full(5, np.inf)
    low[1], high[1], high[2] = 0.0, 1.0, 5.0
    by_place = detector.certify_region(low, high)
    assert (by_name.lower, by_name.upper) == (by_place.lower, by_place.upper)
    series = detector.certify_region(pd.Series({"b": 0.0}), pd.Series({"c": 5.0, "b": 1.0}))
    assert (series.lower, series.upper) == (by_place.lower, by_place.upper)
    assert "b in [0, 1], c ≤ 5" in by_name.text()


def test_names_that_are_not_strings(rows):
    frame = pd.DataFrame(rows[:, :3], columns=[10, 20, 30])
    detector = DiffInt(**QUICK).fit(frame)
    expected = detector.certify_region([1.0, 2.0, 3.0], None)
    for lower in (
        pd.Series({30: 3.0, 20: 2.0, 10: 1.0}),
        {30: 3.0, 20: 2.0, 10: 1.0},
        {"30": 3.0, np.int64(20): 2.0, 10: 1.0},
    ):
        region = detector.certify_region(lower, None)
        np.testing.assert_array_equal(region.region_lower, [1.0, 2.0, 3.0])
        assert (region.lower, region.upper) == (expected.lower, expected.upper)
    region = detector.certify_region(None, {10: 0.0})
    np.testing.assert_array_equal(region.region_upper, [0.0, np.inf, np.inf])
    region = detector.certify_region(frame.iloc[0], frame.iloc[0])
    np.testing.assert_array_equal(region.region_lower, rows[0, :3])
    # A series with the default index does not name the features.
    with pytest.raises(InputError, match=r"names 0, which is not a feature; .* pass a list"):
        detector.certify_region(pd.Series([1.0, 2.0, 3.0]), None)
    with pytest.raises(InputError, match="'10' more than once"):
        detector.certify_region({10: 0.0, "10": 1.0}, None)
    with pytest.raises(InputError, match="'20' more than once"):
        detector.certify_region(pd.Series([1.0, 2.0], index=[20, 20]), None)
    with pytest.raises(InputError, match="lower is a table; pass one row"):
        detector.certify_region(frame[:1], None)


def test_series_without_names_are_read_by_position_if_features_have_no_names(fitted, rows):
    region = fitted.certify_region(pd.Series(rows[0]), None)
    np.testing.assert_array_equal(region.region_lower, rows[0])
    region = fitted.certify_region(pd.Series({"x3": 1.0}), None)
    assert region.region_lower[3] == 1.0
    for series in (pd.Series(rows[0, :3]), pd.Series(rows[0], index=[4, 3, 2, 1, 0])):
        with pytest.raises(InputError, match=r"which is not a feature; .* pass a list or an array"):
            fitted.certify_region(series, None)


def test_text_gives_the_exact_region_and_proven_bounds(detector, rows):
    low, high = rows[3] - 1 / 3, rows[3] + 1e4 / 7
    region = detector.certify_region(low, high, splits=3)
    text = region.text().replace(",", "").replace("−", "-")
    ends = re.findall(r"x\d in \[(\S+) (\S+)\]", text)
    np.testing.assert_array_equal(np.array(ends, dtype=float), np.column_stack([low, high]))
    bounds = re.search(r"scores between (\S+) and (\S+)\.\n", text)
    assert float(bounds[1]) <= region.lower
    assert float(bounds[2]) >= region.upper


@pytest.mark.parametrize(
    ("threshold", "text"),
    [
        (0.12344, "between 0.12345 and 0.6789.\nWith the threshold at 0.12344, all of them"),
        (
            0.12345,
            "between 0.123 and 0.679.\nWith the threshold at 0.123, these bounds",
        ),
        (0.6789, "between 0.123 and 0.679.\nWith the threshold at 0.679, none of them"),
        (0.67893, "between 0.12345 and 0.6789.\nWith the threshold at 0.67893, none of them"),
        (
            0.67888,
            "between 0.12345 and 0.6789.\nWith the threshold at 0.67888, these bounds",
        ),
        (None, "between 0.123 and 0.679."),
    ],
)
def test_text_shows_on_which_side_of_the_threshold_bounds_are(threshold, text):
    ends = np.array([0.0]), np.array([1.0])
    region = RegionCertificate(("a",), *ends, 0.12345, 0.6789, 1, threshold)
    assert text in region.text()


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        ([0] * 4, [1] * 5, "shape"),
        ([0] * 5, 1.0, "shape"),
        ([0, 0, 2, 0, 0], [1] * 5, "'x2' has lower end 2, above its upper end 1"),
        ([0, np.nan, 0, 0, 0], [1] * 5, "NaN for feature 'x1'"),
        ({"nowhere": 1}, {}, "'nowhere', which is not a feature"),
        ({"x0": "low"}, {}, "one number per feature"),
        (["a"] * 5, [1] * 5, "one number per feature"),
        ([10**400, 0, 0, 0, 0], None, "one number per feature"),
        ({"x0": 10**400}, None, "one number per feature"),
        ({"x0": np.inf}, {}, "no finite value of feature 'x0'"),
    ],
)
def test_bad_regions(fitted, lower, upper, message):
    with pytest.raises(InputError, match=message):
        fitted.certify_region(lower, upper)


@pytest.mark.parametrize("splits", [-1, 1.5, "many", True])
def test_bad_splits(fitted, splits):
    with pytest.raises(InputError, match="splits"):
        fitted.certify_region(None, None, splits=splits)


def test_unfitted():
    with pytest.raises(NotFittedError):
        DiffInt().certify_region(None, None)


def test_a_column_of_times_is_answered_with_its_features():
    rng = np.random.default_rng(0)
    names = [f"reading{i}" for i in range(9)]
    table = pd.DataFrame(rng.normal(size=(200, 9)), columns=names)
    hours = pd.to_timedelta(rng.integers(0, 2000, 200), unit="h")
    table["when"] = pd.Timestamp("2024-01-01") + hours
    detector = DiffInt(**QUICK).fit(table)
    with pytest.raises(InputError, match=r"not a feature; its features are 'when \(hour\)', 'when"):
        detector.certify_region({"when": "2024-02-01"}, None)


@pytest.mark.parametrize("n_features", [8, 9])
def test_at_most_eight_features_are_named(n_features):
    detector = DiffInt(**QUICK).fit(make_rows(60, n_features))
    named = ", ".join(f"'x{j}'" for j in range(8)) + (", …" if n_features > 8 else "")
    with pytest.raises(InputError, match=rf"the features are {named}\. To give"):
        detector.certify_region({"y": 1.0}, None)


def test_parts_that_are_not_decided(detector, rows):
    whole = detector.certify_region(None, None, splits=0)
    assert whole.undecided.index.tolist() == [(0, "lower"), (0, "upper")]
    assert np.isinf(whole.undecided.to_numpy()).all()
    far = rows[0] + 100 * np.ptp(rows, axis=0)
    near = rows[detector.anomaly_score(rows).argmin()]
    for decided in (far, near):
        assert len(detector.certify_region(decided, decided).undecided) == 0
