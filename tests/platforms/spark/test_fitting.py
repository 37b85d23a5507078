"""A Spark fit: the sample, the ranges of all other rows, and what cannot be fitted."""

import numpy as np
import pandas as pd
import pytest

from diffint import DiffInt
from diffint.core.errors import InputError, InputTypeError

from ..tables import QUICK, mixed_table, number_table


@pytest.fixture
def fit(spark):
    import diffint.spark

    return diffint.spark.fit


def long_tailed(n_rows=20_000, seed=0):
    """Three columns, of which one has a long tail and one misses some cells."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.normal(size=n_rows), "b": rng.exponential(size=n_rows) ** 3})
    frame["c"] = frame["a"] + 0.1 * rng.normal(size=n_rows)
    frame.loc[rng.random(n_rows) < 0.1, "a"] = np.nan
    return frame


def test_a_small_table_is_fitted_like_by_the_library(spark, fit):
    table = mixed_table(400)
    detector = fit(spark.createDataFrame(table), ignore=["id"], segments="shop", **QUICK)
    own = DiffInt(**QUICK).fit(table.drop(columns="id"), segments="shop")
    new = mixed_table(100, seed=1).drop(columns="id")
    np.testing.assert_array_equal(detector.anomaly_score(new), own.anomaly_score(new))
    np.testing.assert_array_equal(detector.p_values(new), own.p_values(new))


def test_ranges_are_those_of_all_rows_but_the_calibration_rows(spark, fit, tmp_path):
    table = long_tailed()
    table.to_parquet(tmp_path / "table.parquet")
    df = spark.read.parquet(str(tmp_path / "table.parquet"))
    detector = fit(df, sample_rows=5_000, **QUICK)
    model = detector.model_
    assert model.training.n_rows == 6_250
    assert model.calibration.kind == "holdout"
    assert len(model.calibration.scores) == 1_250
    assert model.calibration.proven
    largest, smallest = model.features.quantiles[:, -1], model.features.quantiles[:, 0]
    for j, name in enumerate(table):
        highest = np.sort(table[name].dropna())[::-1]
        # The largest values are missing only if they are among the calibration rows.
        assert largest[j] in highest[:8]
        assert smallest[j] in highest[-8:]
        at = model.features.levels.tolist().index(0.5)
        low, median, high = np.quantile(highest, [0.1, 0.5, 0.9])
        assert model.features.quantiles[j, at] == pytest.approx(median, abs=0.05 * (high - low))
    assert model.features.missing_share[0] == pytest.approx(0.1, abs=0.02)
    detector.save(tmp_path / "model.diffint")
    new = long_tailed(500, seed=1)
    np.testing.assert_array_equal(
        DiffInt.load(tmp_path / "model.diffint").anomaly_score(new), detector.anomaly_score(new)
    )


def test_the_same_seed_and_partitions_give_the_same_detector(spark, fit, tmp_path):
    table = mixed_table(8_000, seed=3)
    table.to_parquet(tmp_path / "table.parquet", index=False)
    df = spark.read.parquet(str(tmp_path / "table.parquet"))
    how = {"ignore": ["id"], "segments": "shop", "sample_rows": 5_000, **QUICK}
    first, second = fit(df, **how), fit(df, **how)
    other = fit(df, **{**how, "random_state": 1})
    new = mixed_table(500, seed=4).drop(columns="id")
    scores = first.anomaly_score(new)
    np.testing.assert_array_equal(scores, second.anomaly_score(new))
    np.testing.assert_array_equal(first.p_values(new), second.p_values(new))
    assert (scores != other.anomaly_score(new)).any()
    assert first.model_.kinds.times["time"].start == "2024-01-01"
    assert set(first.model_.categories[0]) == {"red", "green", "blue"}


def test_rows_marked_as_anomalies_are_left_out(spark, fit):
    table = number_table(9_000).fillna(100.0).assign(fraud=0)
    table.loc[::3, ["a", "fraud"]] = [1e6, 1]
    df = spark.createDataFrame(table)
    how = {"anomalies": "fraud", "ignore": ["id"], **QUICK}
    for n_rows, wanted in ((5_000, 6_000), (100_000, 6_000)):
        detector = fit(df.limit(9_000), sample_rows=n_rows, **how)
        assert detector.model_.training.n_rows == wanted
        assert detector.model_.features.quantiles[0, -1] < 1e6
        assert detector.model_.columns == ["a", "b", "c", "d"]
    with pytest.raises(InputError, match="True/False or 0/1; 3,000 rows of 9,000 have something"):
        fit(df.replace(1, 2, subset=["fraud"]), **how)
    with pytest.raises(InputTypeError, match="'fraud', named by anomalies, has the type string"):
        fit(df.withColumn("fraud", df["fraud"].cast("string")), **how)


def test_what_cannot_be_fitted(spark, fit):
    df = spark.range(20).selectExpr("id", "cast(id as double) as a", "array(id) as tags")
    with pytest.raises(InputTypeError, match="'tags' has the type array<bigint>"):
        fit(df)
    with pytest.raises(InputError, match="lacks a column that ignore names: 'name'"):
        fit(df, ignore=["name"])
    with pytest.raises(InputTypeError, match="pass a list of column names"):
        fit(df, ignore="tags")
    with pytest.raises(InputError, match="lacks a column that anomalies names: 'fraud'"):
        fit(df, anomalies="fraud")
    with pytest.raises(InputError, match="no column left"):
        fit(df, ignore=df.columns)
    with pytest.raises(InputError, match="0 of 0 rows can be trained on"):
        fit(df.where("id < 0"), ignore=["tags"])
    with pytest.raises(InputError, match="sample_rows=10 must be a whole number"):
        fit(df, ignore=["tags"], sample_rows=10)
    with pytest.raises(TypeError, match="n_unit"):
        fit(df, ignore=["tags"], n_unit=3)


@pytest.mark.parametrize(
    ("cell", "message"),
    [("double('Infinity')", "infinite values"), ("1e304", "beyond the largest")],
)
def test_values_beyond_reach_anywhere_in_the_table(spark, fit, cell, message):
    """In a row that is hardly ever in the sample."""
    df = spark.range(60_000).selectExpr("double(id % 977) as a", f"if(id = 17, {cell}, id) as b")
    with pytest.raises(InputError, match=f"column 'b' has .*{message}"):
        fit(df, sample_rows=5_000, **QUICK)
