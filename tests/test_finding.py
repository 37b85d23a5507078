import numpy as np
import pandas as pd
import pytest

from diffint import AnomaliesFound, DiffInt, InputError, find_anomalies

QUICK = {"n_units": 12, "hidden_width": 8, "epochs": 10, "random_state": 0}

TRAINED = {**QUICK, "n_units": 50, "epochs": 150}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(150, 3)), columns=["a", "b", "c"])
    frame.index = [f"r{i}" for i in range(150)]
    frame.iloc[40] = [20.0, 9.0, -9.0]
    frame.iloc[41] = [9.0, -20.0, 9.0]
    return frame


@pytest.fixture(scope="module")
def found(table):
    return find_anomalies(table, **TRAINED)


def test_the_odd_rows_come_first(found):
    assert isinstance(found, AnomaliesFound)
    assert set(found.order[:2]) == {40, 41}
    assert found.suspects[[40, 41]].all()
    assert found.beyond_chance[[40, 41]].all()
    assert found.n_beyond_chance == found.beyond_chance.sum() < 10
    assert found.p_values[[40, 41]].max() < 0.01 < np.median(found.p_values)
    assert (np.diff(found.p_values[found.order]) >= 0).all()


def test_the_frame_is_ranked_and_keeps_the_index(found, table):
    frame = found.to_frame()
    assert set(frame.index[:2]) == {"r40", "r41"}
    assert list(frame.columns) == ["score", "p_value", "suspect", "beyond_chance"]
    assert frame["score"].is_monotonic_decreasing
    assert sorted(frame.index) == sorted(table.index)


def test_one_sentence_says_what_was_found(found):
    assert found.text() in repr(found)
    assert f"{found.n_beyond_chance} of 150 rows" in found.text()
    assert f"{found.suspects.sum()} suspects were left out of training." in found.text()


def test_the_detector_can_be_used_afterwards(found, table):
    assert (found.detector.predict(table.iloc[[40, 41]]) == -1).all()
    assert found.detector.model_.training.n_suspects == found.suspects.sum()


def test_explanations_have_the_scores_that_were_found(found, table):
    why = found.explain(table, 3)
    assert np.array_equal(why.score, found.scores[found.order[:3]])
    assert np.array_equal(why.p_value, found.p_values[found.order[:3]])
    for i in range(2):
        name = table.index[found.order[i]]
        assert name in why.text(i)
        assert why.reasons(i)
    with pytest.raises(InputError, match="pass the same table"):
        found.explain(table[:100])


def test_only_the_same_table_can_be_explained(found, table):
    for other in (table.iloc[::-1], table.assign(a=table["a"] + 1)):
        with pytest.raises(InputError, match="not the table that was searched, or its rows stand"):
            found.explain(other)
    assert len(found.explain(table.copy(), 2)) == 2
    zeros = table.assign(a=0.0).iloc[:60]
    same = find_anomalies(zeros, **QUICK)
    assert len(same.explain(zeros.assign(a=-0.0), 2)) == 2


def test_rows_are_scored_by_members_that_were_not_trained_on_them():
    """Each row is one of a kind, so that a member that knows it would find it near."""
    x = np.random.default_rng(0).normal(size=(101, 20))
    found = find_anomalies(x, **QUICK, suspected_share=0)
    known = found.detector.anomaly_score(x)
    assert (found.scores > known).mean() > 0.9
    fresh = found.detector.anomaly_score(np.random.default_rng(1).normal(size=(500, 20)))
    assert abs(np.median(found.scores) / np.median(fresh) - 1) < 0.15


def test_groups_are_left_out_together():
    x = np.repeat(np.random.default_rng(0).normal(size=(30, 8)), 4, axis=0)
    x += 1e-3 * np.random.default_rng(1).normal(size=x.shape)
    found = find_anomalies(x, groups=np.arange(120) // 4, suspected_share=0, **QUICK)
    in_groups = found.scores.reshape(30, 4)  # the same members score the rows of a group
    assert np.ptp(in_groups, axis=1).max() < 0.01 * np.median(found.scores)


def test_missing_cells_and_arrays():
    x = np.random.default_rng(0).normal(size=(60, 3))
    x[::7, 1] = np.nan
    x[3] = np.nan
    with pytest.warns(match="without any value"):
        found = find_anomalies(x, **QUICK)
    assert np.isfinite(found.scores).all()
    assert found.to_frame().index.sort_values().tolist() == list(range(60))


@pytest.mark.parametrize("n_rows", [2, 9])
def test_too_few_rows(n_rows):
    with pytest.raises(InputError, match="at least 10"):
        find_anomalies(np.random.default_rng(0).normal(size=(n_rows, 2)), **QUICK)


def test_ten_rows_are_enough():
    found = find_anomalies(np.random.default_rng(0).normal(size=(10, 2)), **QUICK)
    assert np.isfinite(found.scores).all()
    assert len(found.to_frame()) == 10


def test_equal_rows_and_constant_columns():
    found = find_anomalies(np.ones((40, 2)), **QUICK)
    assert (
        found.text() == "None of 40 rows stands out beyond chance; no suspects were left out "
        "of training."
    )
    x = np.column_stack([np.ones(40), np.random.default_rng(0).normal(size=40)])
    x[5, 0] = 7.0
    assert find_anomalies(x, **QUICK).order[0] == 5


def test_too_few_groups():
    x = np.random.default_rng(0).normal(size=(40, 2))
    with pytest.raises(InputError, match="fewer than 5 rows or groups"):
        find_anomalies(x, groups=np.arange(40) % 3, **QUICK)


@pytest.mark.parametrize(
    "settings", [{"calibration": "training"}, {"calibration": "holdout"}, {"n_members": 1}]
)
def test_settings_with_which_rows_cannot_be_left_out_in_turn(table, settings):
    with pytest.raises(InputError, match="members that leave out different rows"):
        find_anomalies(table, **QUICK, **settings)


def test_wrong_settings(table):
    with pytest.raises(InputError, match="suspected_share"):
        find_anomalies(table, suspected_share="some", **QUICK)
    with pytest.raises(TypeError, match="contamination"):
        find_anomalies(table, contamination=0.1)


def test_the_same_seed_gives_the_same_scores(found, table):
    again = find_anomalies(table, **TRAINED, n_jobs=1)
    assert np.array_equal(found.scores, again.scores)
    assert isinstance(again.detector, DiffInt)
