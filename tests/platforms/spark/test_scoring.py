"""Spark gives the same bits as the library, whatever happens to its workers."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from diffint import DiffInt
from diffint.core.errors import (
    CalibrationWarning,
    InputError,
    InputTypeError,
    ModelFileError,
    PlatformError,
)

from ..tables import (
    QUICK,
    assert_same_bits,
    expected,
    make_newer,
    mixed_table,
    number_detector,
    number_table,
)


@pytest.fixture
def platform(spark):
    """The functions to test; imported late, as pyspark may be missing."""
    import diffint.spark

    return diffint.spark


def by_id(df):
    """A Spark frame on the driver, in the order of its ids."""
    return df.toArrow().to_pandas().sort_values("id", ignore_index=True)


def test_numbers(spark, platform, numbers):
    new = number_table(500, seed=2)
    df = (
        spark.createDataFrame(new)
        .repartition(3)
        .withColumnRenamed("a", "A")
        .selectExpr("id", "d", "c", "b", "A as a", "map('k', 1) as tags")
    )
    scored = platform.score(numbers, df)
    assert scored.columns == [*df.columns, "score", "p_value", "flagged", "reasons"]
    assert dict(scored.dtypes)["tags"] == "map<string,int>"
    assert_same_bits(by_id(scored), expected(numbers, new.drop(columns="id")))


def test_text_times_and_segments_from_a_file(spark, platform, mixed, tmp_path):
    new = mixed_table(500, seed=2)
    new.loc[5, "colour"] = "pink"
    mixed.save(tmp_path / "model.diffint")
    # Times are local times of the session's zone in the library's table.
    df = spark.createDataFrame(new)
    assert dict(df.dtypes)["time"] == "timestamp"
    scored = platform.score(tmp_path / "model.diffint", df, keep=["id", "time"])
    wanted = expected(mixed, new.drop(columns="id"))
    found = scored.toArrow().to_pandas()
    assert list(found) == ["id", "time", "score", "p_value", "flagged", "reasons"]
    assert_same_bits(found, wanted)


def test_times_with_a_zone(spark, platform):
    zoned = mixed_table(400, 1).drop(columns=["id", "shop"])
    zoned["time"] = zoned["time"].dt.tz_localize("UTC")
    detector = DiffInt(n_units=8, epochs=3, n_members=2, random_state=0).fit(zoned)
    new = zoned.assign(id=range(400))
    found = by_id(platform.score(detector, spark.createDataFrame(new), reasons=False))
    np.testing.assert_array_equal(found["score"], detector.anomaly_score(zoned))


def test_types_of_spark(spark, platform, numbers):
    """Whole numbers with missing cells are kept as they are; decimals and floats are numbers."""
    new = number_table(200, 3).round(2)
    df = spark.createDataFrame(new).selectExpr(
        "if(id % 7 = 0, null, id + 9007199254740993) as big",
        "id",
        "cast(nanvl(a, null) as decimal(12, 2)) as a",
        *("b", "c", "d"),
    )
    found = by_id(platform.score(numbers, df))
    assert_same_bits(found, expected(numbers, new.drop(columns="id")))
    rows = {row.id: row.big for row in platform.score(numbers, df).select("id", "big").collect()}
    assert all(big == (None if i % 7 == 0 else i + 9007199254740993) for i, big in rows.items())


def test_options(spark, platform, numbers):
    new = number_table(200, seed=2)
    df = spark.createDataFrame(new)
    brief = platform.score(numbers, df, reasons=False, keep=["id"])
    assert brief.columns == ["id", "score", "p_value", "flagged"]
    other = number_detector()
    other.false_positive_rate = 0.3
    found = by_id(platform.score(numbers, df, n_reasons=1, false_positive_rate=0.3))
    assert_same_bits(found, expected(other, new.drop(columns="id"), n_reasons=1))
    with pytest.warns(CalibrationWarning, match="too few for a false-positive rate of 1e-05"):
        platform.score(numbers, df, false_positive_rate=1e-5)


def test_empty_partitions_and_rows_without_values(spark, platform, numbers):
    new = number_table(20, 4)
    new.loc[[3, 4], ["a", "b", "c", "d"]] = np.nan
    df = spark.createDataFrame(new[:6]).repartition(8)
    found = by_id(platform.score(numbers, df))
    wanted = expected(numbers, new.drop(columns="id"))[:6]
    assert_same_bits(found, wanted)
    assert platform.score(numbers, df.where("id < 0")).count() == 0
    nulls = df.selectExpr("id", *(f"cast(null as double) as {name}" for name in "abcd"))
    blank = by_id(platform.score(numbers, nulls))
    assert (blank["score"] == wanted["score"][3]).all()


def test_a_stream(spark, platform, numbers, tmp_path):
    new = number_table(300, seed=2)
    for i in range(3):
        (tmp_path / "in").mkdir(exist_ok=True)
        new[100 * i : 100 * (i + 1)].to_parquet(tmp_path / "in" / f"{i}.parquet", index=False)
    schema = spark.createDataFrame(new[:1]).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    scored = platform.score(numbers, reader.parquet(str(tmp_path / "in")))
    assert scored.isStreaming
    with platform.plain_errors():
        query = (
            scored.writeStream.format("memory")
            .queryName("scored")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    assert_same_bits(by_id(spark.table("scored")), expected(numbers, new.drop(columns="id")))


def test_a_worker_that_is_killed_half_way(spark, platform, numbers, tmp_path):
    new = number_table(300, seed=2)
    mark = tmp_path / "killed"

    def kill_once(batches):
        for batch in batches:
            yield batch
            if not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)

    df = spark.createDataFrame(new).repartition(4)
    scored = platform.score(numbers, df)
    found = by_id(scored.mapInArrow(kill_once, scored.schema))
    assert mark.exists()
    assert_same_bits(found, expected(numbers, new.drop(columns="id")))


def test_an_executor_that_is_killed_half_way(spark, numbers, tmp_path):
    """In a process of its own, as a session is either local or has executors."""
    numbers.save(tmp_path / "model.diffint")
    number_table(300, seed=2).to_parquet(tmp_path / "new.parquet", index=False)
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONWARNINGS": "ignore"}
    script = Path(__file__).with_name("killed_executor.py")
    subprocess.run([sys.executable, script, tmp_path], check=True, env=environment, timeout=240)
    assert (tmp_path / "killed").exists()
    found = pd.read_parquet(tmp_path / "scored.parquet")
    assert_same_bits(found, expected(numbers, number_table(300, seed=2).drop(columns="id")))


def test_a_model_is_prepared_once_in_a_worker(numbers):
    from diffint.platforms.model_bytes import model_bytes, worker_scorer
    from diffint.platforms.score_frame import ScoringOptions

    content = model_bytes(numbers)
    options, same = ScoringOptions(keep=["id"]), ScoringOptions(keep=("id",))
    assert worker_scorer(content, options) is worker_scorer(bytes(bytearray(content)), same)


def test_columns_are_checked_before_any_job(spark, platform, mixed):
    df = spark.createDataFrame(mixed_table(20))
    with pytest.raises(
        InputError, match=r"lacks columns that the model needs: 'colour'.* and 'shop'"
    ):
        platform.score(mixed, df.withColumnRenamed("colour", "Colour").drop("shop"))
    with pytest.raises(InputError, match="lacks a column that keep names: 'name'"):
        platform.score(mixed, df, keep=["name"])
    with pytest.raises(InputError, match="kept column 'score' has the same name"):
        platform.score(mixed, df.withColumnRenamed("id", "score"))
    with pytest.raises(InputTypeError, match="'size' has the type string, but had numbers"):
        platform.score(mixed, df.withColumn("size", df["size"].cast("string")))
    with pytest.raises(InputTypeError, match="the model is a int; pass a fitted DiffInt"):
        platform.score(3, df)


def test_a_file_that_is_no_model_of_this_version(spark, platform, numbers, tmp_path):
    path = tmp_path / "model.diffint"
    numbers.save(path)
    make_newer(path)
    with pytest.raises(ModelFileError, match="format version"):
        platform.score(path, spark.createDataFrame(number_table(20)))


def test_another_version_on_the_workers(spark, platform, numbers, monkeypatch):
    from diffint.platforms.spark import scoring

    own = scoring.__version__
    monkeypatch.setattr(scoring, "__version__", "99.0")
    message = f"a worker has diffint {own}, but the driver has 99.0; install the same version"
    with pytest.raises(PlatformError, match=message):
        platform.score(numbers, spark.createDataFrame(number_table(20)))


def test_a_worker_without_the_package(spark, platform, numbers, monkeypatch, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        textwrap.dedent(
            """
            import sys

            class Nothing:
                def find_spec(self, name, path=None, target=None):
                    if name.split(".")[0] == "diffint":
                        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

            sys.meta_path.insert(0, Nothing())
            """
        )
    )
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\nPYTHONPATH="{tmp_path}:$PYTHONPATH" exec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))
    message = "the Python of Spark's workers has no package 'diffint'; install diffint-ad"
    with pytest.raises(PlatformError, match=message) as caught:
        platform.score(numbers, spark.createDataFrame(number_table(20)))
    assert "\n" not in str(caught.value)


def test_cells_that_cannot_be_scored(spark, platform, numbers):
    new = number_table(50).fillna(1.0)
    new.loc[30, "b"] = np.inf
    scored = platform.score(numbers, spark.createDataFrame(new))
    with (
        pytest.raises(
            InputError, match=r"column 'b' has 1 infinite value .* drop or cap"
        ) as caught,
        platform.plain_errors(),
    ):
        scored.collect()
    assert "\n" not in str(caught.value)


def test_other_errors_stay_as_they_are(spark, platform):
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match="nothing"), platform.plain_errors():
        spark.table("nothing")


def test_names_with_dots(spark, platform):
    table = number_table(300).rename(columns={"a": "a.x", "id": "the.id"})
    detector = DiffInt(**QUICK).fit(table.drop(columns="the.id"))
    found = platform.score(detector, spark.createDataFrame(table)).toPandas()
    assert list(found.columns[: table.shape[1]]) == list(table.columns)
    found = found.set_index("the.id").loc[table["the.id"]]
    np.testing.assert_array_equal(
        found["score"], detector.anomaly_score(table.drop(columns="the.id"))
    )


def test_kept_columns_that_differ_from_the_output_in_case_only(spark, platform, numbers):
    df = spark.createDataFrame(number_table(20).assign(Score=1.0))
    with pytest.raises(InputError, match=r"kept column 'Score' .* as Spark ignores case"):
        platform.score(numbers, df)
    assert platform.score(numbers, df, keep=["id"]).count() == 20


def test_other_things_than_spark_frames_and_models(spark, platform, numbers, mixed):
    from pyspark.sql import functions

    with pytest.raises(InputTypeError, match="the rows are a pandas DataFrame; pass a Spark"):
        platform.score(numbers, number_table(20))
    with pytest.raises(InputTypeError, match="the rows are a pandas DataFrame; pass a Spark"):
        platform.fit(number_table(20))
    with pytest.raises(InputError, match=r"there is no model file 'hdfs://x/no.diffint'; give"):
        platform.score("hdfs://x/no.diffint", spark.createDataFrame(number_table(20)))
    with pytest.raises(InputError, match="cannot keep groups of rows together"):
        platform.fit(spark.createDataFrame(number_table(20)), groups="id")
    df = spark.createDataFrame(mixed_table(20))
    text = next(iter(mixed.model_.categories))
    name = mixed.model_.feature_names[text]
    with pytest.raises(InputTypeError, match="has the type array<int>; the model needs numbers"):
        platform.score(mixed, df.withColumn(name, functions.array(functions.lit(1))))


def test_messages_are_not_cut_at_words_of_a_column(spark, platform):
    table = number_table(200)[["a", "b"]].rename(columns={"a": "SQLSTATE code"})
    detector = DiffInt(**QUICK).fit(table)
    df = spark.createDataFrame(table.assign(b=np.inf))  # two partitions
    with (
        pytest.raises(InputError, match="column 'b' has 100 infinite values"),
        platform.plain_errors(),
    ):
        platform.score(detector, df).collect()
    df = spark.createDataFrame(table.assign(**{"SQLSTATE code": np.inf}))
    with (
        pytest.raises(InputError, match="column 'SQLSTATE code' has 100 infinite values"),
        platform.plain_errors(),
    ):
        platform.score(detector, df).collect()
