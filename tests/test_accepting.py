"""Rows that a person has called normal, and rows like them."""

import numpy as np
import pandas as pd
import pytest

from diffint import DiffInt
from diffint.core.errors import InputError, InputWarning

NAMES = ["a", "b", "c", "d"]


def table(n, seed):
    """c follows from a and b."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 4)), columns=NAMES)
    frame["c"] = frame["a"] + frame["b"] + 0.1 * frame["c"]
    return frame


def kind(n, seed):
    """A harmless kind of row: d is about 9."""
    return table(n, seed).assign(d=9.0 + 0.1 * np.random.default_rng(seed).normal(size=n))


@pytest.fixture(scope="module")
def fitted():
    return DiffInt(random_state=0, false_positive_rate=0.02).fit(table(800, 0))


@pytest.fixture
def detector(fitted, tmp_path):
    """Its model may be changed."""
    fitted.save(tmp_path / "fresh.diffint")
    return DiffInt.load(tmp_path / "fresh.diffint")


def test_rows_of_the_kind_are_no_longer_flagged(detector):
    rows = kind(100, 1)
    assert (detector.predict(rows) == -1).all()
    accepted = detector.accept(rows[:20])
    assert len(accepted) == 20
    assert (accepted["flagged_for"] == "d").mean() > 0.8
    rest = rows[20:]
    assert (detector.predict(rest) == 1).mean() > 0.9
    silent = detector.predict(rest) == 1
    assert (detector.p_values(rest)[silent] == 1.0).all()
    assert not detector.select(rest).selected[silent].any()
    assert not detector.explain(rest).flagged[silent].any()
    assert (detector.decision_function(rest)[silent] == np.inf).all()


def test_what_differs_is_still_flagged(detector):
    """Another value of the same feature, and the same value with something else wrong."""
    detector.accept(kind(20, 1))
    other_value, lower, both = kind(50, 2), kind(50, 3), kind(50, 4)
    other_value["d"] += 4.0
    lower["d"] -= 4.0
    both["c"] += 5.0
    for rows in (other_value, lower, both):
        assert (detector.predict(rows) == -1).all()
    odd = table(50, 5).assign(c=6.0)
    assert (detector.predict(odd) == -1).all()


def test_scores_and_other_rows_stay_as_they_are(detector, fitted):
    new = table(300, 6)
    detector.accept(kind(20, 1))
    np.testing.assert_array_equal(detector.anomaly_score(new), fitted.anomaly_score(new))
    np.testing.assert_array_equal(detector.p_values(new), fitted.p_values(new))


def test_a_table_is_scored_once(detector, monkeypatch, tmp_path):
    detector.accept(kind(20, 1))
    rows, scored = table(100, 2), []
    whole = detector.prepared.packed.scores
    packed = type(detector.prepared.packed)
    monkeypatch.setattr(
        packed,
        "scores",
        lambda self, x, *more: scored.append(len(x)) or whole(x, *more),
    )
    for method in (detector.predict, detector.p_values, detector.select, detector.drift):
        scored.clear()
        method(rows)
        assert scored.count(100) == 1, method.__name__


def test_p_values_with_weights_are_1_too(detector):
    rows = kind(40, 1)
    detector.accept(rows[:20])
    silent = detector.predict(rows) == 1
    weighted = detector.p_values(rows, weights=lambda frame: np.ones(len(frame)))
    assert (weighted[silent] == 1.0).all()


def test_listed_saved_and_taken_back(detector, tmp_path):
    detector.accept(kind(3, 1))
    detector.accept(table(2, 2).assign(c=9.0))
    assert list(detector.accepted.columns) == ["accepted", "flagged_for", *NAMES]
    assert list(detector.accepted.index) == [0, 1, 2, 3, 4]
    detector.save(tmp_path / "m.diffint")
    loaded = DiffInt.load(tmp_path / "m.diffint")
    pd.testing.assert_frame_equal(loaded.accepted, detector.accepted)
    rows = kind(20, 3)
    np.testing.assert_array_equal(loaded.predict(rows), detector.predict(rows))
    remaining = loaded.withdraw([0, 1, 2])
    assert len(remaining) == 2
    assert (loaded.predict(rows) == -1).all()
    assert len(loaded.withdraw([0, 1])) == 0
    assert len(detector.fit(table(100, 0)).accepted) == 0  # another model


def test_texts_and_report_say_so(detector, tmp_path):
    rows = kind(30, 1)
    detector.accept(rows[:20])
    silent = int(np.flatnonzero(detector.predict(rows) == 1)[0])
    assert "like a row that was accepted as normal (p = 1)." in detector.explain(rows).text(silent)
    detector.explain(rows)._repr_html_()
    page = detector.report(pd.concat([rows, table(100, 2)]), tmp_path / "r.html").read_text()
    n_silent = int((detector.predict(rows) == 1).sum())
    assert f"{n_silent} rows like accepted ones are not flagged." in page


def test_categories_and_missing_cells():
    rng = np.random.default_rng(0)
    frame = table(500, 0).assign(shop=rng.choice(["x", "y"], 500))
    detector = DiffInt(random_state=0, epochs=30, false_positive_rate=0.02).fit(frame)
    new = table(40, 1).assign(shop="z")  # a text that no training row has
    assert (detector.predict(new) == -1).all()
    detector.accept(new[:20])
    assert (detector.predict(new[20:]) == 1).mean() > 0.8
    assert detector.accepted["shop"].iloc[0] == "a new value"
    partly = table(40, 2).assign(shop="x", a=np.nan, d=12.0)
    assert (detector.predict(partly) == -1).all()
    detector.accept(partly[:20])
    assert (detector.predict(partly[:20]) == 1).all()
    assert (detector.predict(partly[20:]) == 1).mean() > 0.6
    assert (detector.predict(partly.assign(d=30.0)) == -1).all()


def test_rows_that_are_not_flagged_need_not_be_accepted(detector):
    calm = table(5, 7)
    calm = calm[detector.predict(calm) == 1]
    with pytest.warns(InputWarning, match="not flagged and need not be accepted"):
        assert len(detector.accept(calm)) == 0


def test_a_row_that_is_given_twice_is_accepted_once(detector):
    rows = kind(3, 1)
    assert len(detector.accept(pd.concat([rows, rows]))) == 3
    assert len(detector.withdraw([])) == 3


@pytest.mark.parametrize("wrong", [[0], 5, "a", [-1], [0.5]])
def test_wrong_numbers_to_withdraw(detector, wrong):
    with pytest.raises(InputError, match="there are 0"):
        detector.withdraw(wrong)
