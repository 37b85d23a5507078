"""Every model that a fit returns can be saved, and scores the same rows the same after loading."""

import warnings

import numpy as np
import pandas as pd
import pytest

from diffint import DiffInt

FAST = {"n_units": 8, "hidden_width": 8, "epochs": 2, "random_state": 0, "n_jobs": 1}
VARIANTS = [
    *({}, {"decoder": "certified"}, {"decoder": "spectral"}, {"kept_rows": 0}, {"n_members": 1}),
    *({"calibration": "holdout"}, {"calibration": "training"}, {"missing": "ignored"}),
    *({"scaling": "minmax"}, {"scaling": "unit"}, {"scaling": "standard"}, {"scaling": "none"}),
]


def tables(n_rows: int) -> dict[str, np.ndarray | pd.DataFrame]:
    rng = np.random.default_rng(n_rows)
    numbers = rng.normal(size=(n_rows, 3))
    nothing, text = np.full(n_rows, np.nan), np.full(n_rows, "v", dtype=object)
    varied = np.char.add("v", (np.arange(n_rows) % 3).astype(str)).astype(object)
    one, day = numbers[:, 0], pd.Timestamp("2020-01-01")
    holes, extreme = numbers.copy(), numbers.copy()
    holes[:, 1:][rng.random((n_rows, 2)) < 0.5] = np.nan
    extreme[0] = 1e7
    return {
        "equal rows": np.full((n_rows, 3), 3.7),
        "rows of zeros": np.zeros((n_rows, 2)),
        "one feature": one[:, None],
        "a constant feature": np.column_stack([one, np.full(n_rows, 1e6 + 0.3)]),
        "a feature without values": np.column_stack([one, nothing]),
        "missing cells": holes,
        "one extreme row": extreme,
        "huge values": numbers * 1e13,
        "tiny values": numbers * 1e-300,
        "subnormal values": numbers * 1e-320,
        "one category": pd.DataFrame({"a": text}),
        "a constant category": pd.DataFrame({"a": text, "b": one}),
        "values of their own": pd.DataFrame({"a": [f"v{i}" for i in range(n_rows)], "b": one}),
        "a category without values": pd.DataFrame({"a": np.full(n_rows, None), "b": one}),
        "a category and nothing else": pd.DataFrame({"a": varied, "b": nothing}),
        "a time": pd.DataFrame({"t": [day] * n_rows, "b": one}),
        "times": pd.DataFrame({"t": day + pd.to_timedelta(np.arange(n_rows) * 7, "h"), "b": one}),
    }


def check(detector: DiffInt, table, path, **given) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        detector.fit(table, **given)
    detector.save(path)
    loaded = DiffInt.load(path)
    scores = detector.anomaly_score(table)
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(loaded.anomaly_score(table), scores)
    assert loaded.model_.identity == detector.model_.identity


@pytest.mark.parametrize("settings", VARIANTS, ids=str)
def test_small_tables(settings, tmp_path):
    for n_rows in (2, 3, 60):
        for table in tables(n_rows).values():
            check(DiffInt(**FAST, **settings), table, tmp_path / "m")


def test_more_rows_and_the_preset_of_the_paper(tmp_path):
    for table in tables(300).values():
        check(DiffInt(**FAST), table, tmp_path / "m")
        check(DiffInt(**{**DiffInt.paper().get_params(), **FAST}), table, tmp_path / "m")


def test_segments_and_groups(tmp_path):
    for n_rows in (3, 60):
        for table in tables(n_rows).values():
            table = pd.DataFrame(table).rename(columns=str)
            check(DiffInt(**FAST), table, tmp_path / "m", groups=np.arange(n_rows) // 2)
            for value in (np.arange(n_rows) % 2).astype(str), "all":
                check(DiffInt(**FAST), table.assign(s=value), tmp_path / "m", segments="s")


def test_one_extreme_row_among_many(tmp_path):
    """Its error alone moves the mean above nearly all scores."""
    table = tables(2_000)["one extreme row"]
    detector = DiffInt(**FAST, scaling="standard")
    check(detector, table, tmp_path / "m")
    blank = np.full((1, 3), np.nan)
    assert detector.anomaly_score(blank)[0] > np.median(detector.anomaly_score(table))


@pytest.mark.parametrize("settings", [{"kept_rows": 0}, {"calibration": "training"}], ids=str)
def test_a_loaded_model_without_stored_rows_bounds_regions(settings, tmp_path):
    detector = DiffInt(**FAST, **settings).fit(tables(60)["one extreme row"])
    detector.save(tmp_path / "m")
    before = detector.certify_region({"x0": 5.0}, None, splits=2)
    after = DiffInt.load(tmp_path / "m").certify_region({"x0": 5.0}, None, splits=2)
    assert (after.lower, after.upper) == (before.lower, before.upper)
