"""Rows selected by a false discovery rate, and the bound on false alerts."""

import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from diffint import DiffInt
from diffint.core.calibration import Calibration
from diffint.core.errors import CalibrationWarning, InputError
from diffint.core.flag_rule import FlagRule
from diffint.decide.false_alerts import false_alert_bounds
from diffint.decide.selection import select_rows, step_up


def calibration(n, rng, segments=None):
    scores = rng.normal(size=n)
    order = np.argsort(scores)
    if segments is None:
        return Calibration("holdout", scores[order], np.ones(n, np.int64))
    names = tuple(f"s{k}" for k in range(segments.max() + 1))
    scores = scores + 5 * segments
    order = np.argsort(scores)
    ones = np.ones(n, np.int64)
    return Calibration("holdout", scores[order], ones, segments[order], np.arange(n), names)


def plain_step_up(p, level):
    """Benjamini and Hochberg, as they wrote it."""
    ordered, chosen = sorted(p), 0
    for k, value in enumerate(ordered, 1):
        if value <= level * k / len(p) + 1e-15:
            chosen = k
    return (
        np.array([value <= ordered[chosen - 1] for value in p])
        if chosen
        else np.zeros(len(p), bool)
    )


@settings(max_examples=200)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=60), st.sampled_from([0.05, 0.1, 0.5]))
def test_the_step_up_procedure(counts, level):
    p = np.array(counts) / 41
    np.testing.assert_array_equal(step_up(p, level), plain_step_up(p, level))


@pytest.mark.parametrize("method", ["benjamini-hochberg", "storey"])
@pytest.mark.parametrize("segmented", [False, True])
def test_false_discoveries_and_bounds_hold(method, segmented):
    """Over many calibrations; in segments of different scores, too."""
    false, power, held = [], [], []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        n, m, odd = 300, 200, 40
        codes = rng.integers(2, size=n) if segmented else None
        rule = FlagRule(calibration(n, rng, codes), 0.1)
        scores = rng.normal(size=m)
        scores[:odd] += 4.0
        if segmented:
            new = rng.integers(2, size=m)
            rule, scores = rule.for_rows(new), scores + 5 * new
        found = select_rows(rule, scores, 0.2, method, confidence=0.9)
        is_normal = np.arange(m) >= odd
        false.append((found.selected & is_normal).sum() / max(found.n_selected, 1))
        power.append(found.selected[:odd].mean())
        below = found.p_values[:, None] >= found.p_values  # rows to look at, for each row
        share = (below & is_normal).sum(axis=1) / below.sum(axis=1)
        held.append((share <= found.bounds + 1e-12).all())
    assert np.mean(false) <= 0.2 + 2 * np.std(false) / np.sqrt(len(false))
    assert np.mean(power) > 0.8
    assert np.mean(held) >= 0.9 - 2 * np.sqrt(0.09 / len(held))


def test_storey_selects_more_among_many_anomalies():
    rng = np.random.default_rng(0)
    rule = FlagRule(calibration(2000, rng), 0.1)
    scores = np.concatenate([rng.normal(size=100), rng.normal(2.5, 1.0, size=300)])
    plain, storey = (select_rows(rule, scores, 0.05, m) for m in ("benjamini-hochberg", "storey"))
    assert plain.n_selected < storey.n_selected
    assert (storey.selected | ~plain.selected).all()


@settings(deadline=None, max_examples=100)
@given(st.integers(1, 60), st.lists(st.floats(0, 1), min_size=1, max_size=40))
@example(99, [0.04, 0.04, 0.04, 0.9])  # with one more of the high p-values, none is selected
def test_the_level_of_storey_is_the_defined_one(n, places):
    """q / π₀, where π₀ = (1 + p-values above λ) / (rows · (1 − λ)), and λ is 1/2 or just below."""
    counts = [1 + round(place * n) for place in places]  # p-values times n + 1
    rule = FlagRule(Calibration("holdout", np.arange(1.0, n + 1), np.ones(n, np.int64)), 0.1)
    level = Fraction(max((n + 1) // 2, 1), n + 1)
    p = [Fraction(count, n + 1) for count in counts]
    normal = (1 + sum(value > level for value in p)) / (len(p) * (1 - level))
    rate = Fraction(1, 20) / min(normal, 1)
    allowed = [value for k, value in enumerate(sorted(p), 1) if value <= rate * k / len(p)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)  # few rows may allow no selection
        found = select_rows(rule, n + 1.5 - np.array(counts), 0.05, "storey")
    np.testing.assert_allclose(found.p_values, [float(value) for value in p])
    assert found.selected.tolist() == [value <= max(allowed, default=-1) for value in p]


def test_too_few_calibration_rows_to_select_any():
    rule = FlagRule(calibration(9, np.random.default_rng(0)), 0.1)
    with pytest.warns(
        CalibrationWarning, match="no row can be selected .* 9 calibration rows is 0.1;"
    ):
        found = select_rows(rule, np.array([9.0, 9.0]), 0.05)
    assert found.n_selected == 0
    assert found.bound == 0.0
    assert "None of 2 rows is selected" in found.text()


def test_training_scores_promise_nothing():
    scores = Calibration("training", np.arange(9.0), np.ones(9, np.int64))
    with pytest.raises(InputError, match="no false discovery rate follows"):
        select_rows(FlagRule(scores, 0.1), np.arange(3.0), 0.1)


def test_bounds_in_segments_are_those_of_each_with_a_share_of_the_error():
    rng = np.random.default_rng(0)
    rule = FlagRule(calibration(300, rng, np.repeat([0, 1], [100, 200])), 0.1)
    codes = np.repeat([0, 1], 30)
    scores = rng.normal(size=60) + 5 * codes + 4 * (rng.random(60) < 0.3)
    found = select_rows(rule.for_rows(codes), scores, 0.2, confidence=0.9)
    false = np.zeros(60)
    for code, n in enumerate((100, 200)):
        p = found.p_values[codes == code]
        counts = false_alert_bounds(p, n, 0.95) * (p[:, None] >= p).sum(axis=1)
        for i, value in enumerate(found.p_values):
            false[i] += max(
                (count for count, own in zip(counts, p, strict=True) if own <= value), default=0
            )
    n_selected = (found.p_values[:, None] >= found.p_values).sum(axis=1)
    np.testing.assert_allclose(found.bounds, np.minimum(false / n_selected, 1.0))


# --- Of a detector -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def detector():
    rows = np.random.default_rng(0).normal(size=(600, 3))
    return DiffInt(epochs=5, random_state=0, calibration="holdout").fit(rows)


@pytest.fixture(scope="module")
def new():
    rows = np.random.default_rng(1).normal(size=(200, 3))
    rows[:20] += 8.0
    return pd.DataFrame(rows, columns=["x0", "x1", "x2"], index=[f"r{i}" for i in range(200)])


def test_select(detector, new):
    found = detector.select(new.to_numpy(), false_discovery_rate=0.1)
    assert found.selected.dtype == bool
    assert found.selected.shape == (200,)
    assert found.selected[:20].all()
    assert found.n_selected < 30
    assert 0.0 < found.bound < 0.6
    assert found.bound == found.bounds[found.selected].max()
    np.testing.assert_array_equal(found.scores, detector.anomaly_score(new.to_numpy()))
    np.testing.assert_array_equal(found.p_values, detector.p_values(new.to_numpy()))
    assert (np.diff(found.scores[found.order]) <= 0).all()
    assert found.proven
    text = found.text()
    assert text.startswith(f"{found.n_selected} of 200 rows are selected: at most 10 % of them")
    assert "proven for rows like the training rows" in text
    assert "of 200 rows" in found._repr_html_()
    assert repr(found).startswith("Selection(")


def test_the_frame_keeps_the_index(detector, new):
    found = detector.select(new.rename(columns=str).to_numpy())
    assert list(found.to_frame().columns) == ["score", "p_value", "selected", "bound"]
    named = DiffInt(epochs=2, random_state=0).fit(new[20:]).select(new)
    assert list(named.to_frame().index) == list(new.index)
    assert not named.proven  # a small table
    assert "measured, not proven" in named.text()


@pytest.mark.parametrize(
    "wrong",
    [
        {"false_discovery_rate": 0.0},
        {"false_discovery_rate": 1.0},
        {"false_discovery_rate": "a"},
        {"confidence": 1.0},
        {"method": "bonferroni"},
        {"segments": ["a"] * 200},
    ],
)
def test_wrong_arguments(detector, new, wrong):
    with pytest.raises(InputError):
        detector.select(new.to_numpy(), **wrong)


def test_an_empty_batch(detector):
    with pytest.raises(ValueError, match="0 sample"):
        detector.select(np.empty((0, 3)))


def test_the_rate_of_a_model_file(detector, new, tmp_path):
    """The confidence of the false-positive rate is saved, and has no influence on `select`."""
    strict = DiffInt(epochs=2, random_state=0, calibration="holdout", confidence=0.9)
    strict.fit(np.random.default_rng(0).normal(size=(2000, 3)))
    strict.save(tmp_path / "m.diffint")
    loaded = DiffInt.load(tmp_path / "m.diffint")
    assert loaded.confidence == 0.9
    assert loaded.offset_ == strict.offset_ < strict.set_params(confidence=None).offset_
    plain = strict.select(new.to_numpy())
    np.testing.assert_array_equal(loaded.select(new.to_numpy()).selected, plain.selected)
    with pytest.raises(InputError, match="confidence=1"):
        strict.set_params(confidence=1).predict(new.to_numpy())
