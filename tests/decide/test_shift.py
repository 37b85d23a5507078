"""p-values for rows that come from elsewhere than the training rows."""

import numpy as np
import pandas as pd
import pytest

from diffint import DiffInt
from diffint.core.errors import CalibrationWarning, InputError, InputTypeError


def rows_of(rng, n, share_of_b):
    """Two kinds of rows; kind b spreads more."""
    kind = rng.random(n) < share_of_b
    frame = pd.DataFrame({"kind": kind.astype(float), "x": rng.normal(size=n)})
    frame["y"] = frame["x"] + rng.normal(size=n) * np.where(kind, 1.0, 0.2)
    return frame


@pytest.fixture(scope="module")
def detector():
    train = rows_of(np.random.default_rng(0), 3000, 0.2)
    settings = {"epochs": 20, "calibration": "holdout", "false_positive_rate": 0.1}
    return DiffInt(random_state=0, **settings).fit(train)


def ratio(frame):
    """How many times as common each kind is where 80 % of the rows are of kind b."""
    return np.where(frame["kind"] > 0.5, 0.8 / 0.2, 0.2 / 0.8)


def test_known_weights_keep_the_rate(detector):
    new = rows_of(np.random.default_rng(1), 4000, 0.8)
    plain, weighted = detector.p_values(new), detector.p_values(new, weights=ratio)
    assert (plain <= 0.1).mean() > 0.15  # the population moved
    assert (weighted <= 0.1).mean() == pytest.approx(0.1, abs=0.03)


def test_estimated_weights_nearly_keep_the_rate(detector):
    new = rows_of(np.random.default_rng(2), 2000, 0.8)
    estimated = detector.p_values(new, weights="estimate")
    assert (estimated <= 0.1).mean() < 0.14


def test_equal_weights_are_no_weights(detector):
    new = rows_of(np.random.default_rng(3), 200, 0.2)
    equal = detector.p_values(new, weights=lambda frame: np.ones(len(frame)))
    np.testing.assert_allclose(equal, detector.p_values(new), atol=1e-12)


def test_a_plain_definition(detector):
    new = rows_of(np.random.default_rng(4), 50, 0.5)
    sample = detector.model_.calibration
    known = ratio(pd.DataFrame(sample.sample, columns=list(new.columns)))
    scores, own = detector.anomaly_score(new), ratio(new)
    expected = [
        (known[sample.sample_scores >= s].sum() + w) / (known.sum() + w)
        for s, w in zip(scores, own, strict=True)
    ]
    np.testing.assert_allclose(detector.p_values(new, weights=ratio), expected)


def test_categories_are_texts_in_the_frame_of_features():
    rng = np.random.default_rng(0)
    train = pd.DataFrame({"x": rng.normal(size=300), "shop": rng.choice(["a", "b"], 300)})
    detector = DiffInt(epochs=2, random_state=0, false_positive_rate=0.1).fit(train)
    seen = []

    def weights(frame):
        seen.append(set(frame["shop"].dropna()))
        return np.ones(len(frame))

    detector.p_values(train[:20], weights=weights)
    assert seen == [{"a", "b"}, set(train["shop"][:20])]


@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        ("guess", InputTypeError, "weights is 'guess'; it must be a function"),
        (3.0, InputTypeError, "must be a function"),
        (lambda frame: np.exp(20 * frame["x"]), InputError, "are worth only"),
        (lambda frame: np.zeros(len(frame)), InputError, "are worth only 0"),
        (lambda frame: np.ones(3), InputError, r"returned shape \(3,\)"),
        (lambda frame: -np.ones(len(frame)), InputError, "returned NaN, a negative number"),
        (lambda frame: float("nan") * frame["x"], InputError, "returned NaN, a negative number"),
        (lambda frame: "text", InputError, "failed"),
        (lambda frame: frame["nope"], InputError, r"failed \(KeyError: 'nope'\)"),
        (lambda frame: np.full(len(frame), 1e308), InputError, "one above 1e"),
        (np.ones(500), InputTypeError, r"weights is array\(\[1\., .{10,60}; it must be"),
    ],
)
def test_wrong_weights(detector, weights, error, message):
    with pytest.raises(error, match=message):
        detector.p_values(rows_of(np.random.default_rng(5), 10, 0.5), weights=weights)


def test_a_model_without_stored_rows():
    train = rows_of(np.random.default_rng(0), 300, 0.2)
    detector = DiffInt(epochs=2, random_state=0, kept_rows=0).fit(train)
    assert len(detector.model_.calibration.sample) == 0
    with pytest.raises(InputError, match="stores no calibration rows"):
        detector.p_values(train, weights="estimate")


def test_one_new_row_cannot_be_estimated(detector):
    with pytest.raises(InputError, match="cannot be estimated from 1 new row"):
        detector.p_values(rows_of(np.random.default_rng(5), 1, 0.5), weights="estimate")


def test_a_small_table_has_few_rows_without_any_weights():
    train = rows_of(np.random.default_rng(0), 80, 0.2)
    detector = DiffInt(epochs=2, random_state=0, false_positive_rate=0.1).fit(train)
    detector.set_params(false_positive_rate=0.01)  # which 80 rows cannot show
    with pytest.warns(CalibrationWarning, match="too few"):
        equal = detector.p_values(train, weights=lambda frame: np.ones(len(frame)))
    assert equal.min() > 0.01


def test_groups_cannot_be_weighed():
    train = rows_of(np.random.default_rng(0), 300, 0.2)
    detector = DiffInt(epochs=2, random_state=0, false_positive_rate=0.1)
    detector.fit(train, groups=np.arange(300) // 3)
    with pytest.raises(InputError, match="cannot be combined with groups"):
        detector.p_values(train, weights="estimate")
