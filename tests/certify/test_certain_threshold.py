"""From which value of a feature on rows are certain to be flagged."""

import numpy as np
import pandas as pd
import pytest

from diffint import DiffInt, InputError

from ..conftest import QUICK


@pytest.fixture(scope="module")
def detector():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"size": rng.normal(10, 1, 300), "weight": rng.normal(size=300), "flat": 1.0}
    )
    frame["shop"] = rng.choice(["north", "south"], 300)
    settings = {**QUICK, "epochs": 40, "decoder": "certified", "false_positive_rate": 0.05}
    return DiffInt(**settings).fit(frame)


@pytest.mark.parametrize("side", ["above", "below"])
def test_every_row_beyond_is_flagged(detector, side):
    found = detector.certain_threshold("size", side)
    assert found.value is not None
    assert found.value == float(f"{found.value:.4g}")
    assert found.certificate.verdict == "all flagged"
    rng = np.random.default_rng(1)
    away = rng.exponential(3.0, 500) * (1 if side == "above" else -1)
    rows = pd.DataFrame({"size": found.value + away, "weight": rng.normal(size=500), "flat": 1.0})
    rows["shop"] = rng.choice(["north", "south"], 500)
    assert (detector.predict(rows) == -1).all()
    sign = "≥" if side == "above" else "≤"
    assert f"size {sign} " in found.text()
    assert "certain to be flagged" in found.text()
    # What is not proven lies nearer to the training rows, by a step of the search.
    step = found.value - found.not_proven if side == "above" else found.not_proven - found.value
    assert 0 < step < 0.1
    if found.passed_row is not None:
        row = pd.DataFrame([found.passed_row], columns=list(rows))
        row["shop"] = [["north", "south"][int(row["shop"].iloc[0])]]
        assert detector.predict(row) == 1


def test_ends_of_other_features(detector):
    anywhere = detector.certain_threshold("size")
    ordinary = {"weight": -0.1}, {"weight": 0.1}
    narrower = detector.certain_threshold("size", lower=ordinary[0], upper=ordinary[1])
    assert "weight in [−0.1, 0.1]" in narrower.text()
    assert narrower.value <= anywhere.value + 0.05
    certain = detector.certain_threshold("size", lower={"weight": 50.0})
    assert certain.value < 8  # such a weight is odd by itself


def test_bad_input(detector):
    with pytest.raises(InputError, match="'sice' is not a feature"):
        detector.certain_threshold("sice")
    with pytest.raises(InputError, match="must be one of 'above', 'below'"):
        detector.certain_threshold("size", "beyond")
    with pytest.raises(InputError, match="is a category"):
        detector.certain_threshold("shop")
    with pytest.raises(InputError, match="no two different training values"):
        detector.certain_threshold("flat")
    with pytest.raises(InputError, match="must not have an end for 'size'"):
        detector.certain_threshold("size", lower={"size": 3})
    with pytest.raises(InputError, match="must map names"):
        detector.certain_threshold("size", lower=[1, 2, 3, 4])
