"""Ray: detectors fitted and rows scored on a cluster give the bits of the library."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pyarrow
import pytest

from diffint import (
    CalibrationWarning,
    DiffInt,
    DiffIntError,
    InputError,
    InputWarning,
    ModelFileError,
    TrainingError,
)
from diffint.core.errors import InputTypeError, PlatformError

from .tables import (
    QUICK,
    assert_same_bits,
    expected,
    make_newer,
    mixed_detector,
    mixed_table,
    number_table,
)

ray = pytest.importorskip("ray", reason="the extra 'ray' is not installed")
from diffint.ray import RowsError, fit, fit_many, score  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::FutureWarning")


@pytest.fixture(scope="module", autouse=True)
def cluster():
    # More than two, since the actor of a job that failed keeps its CPU for a while.
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    ray.data.DataContext.get_current().execution_options.preserve_order = True
    yield
    ray.shutdown()


def blocks_of(frame, n_blocks):
    """A dataset of a frame in blocks, the second of which is empty."""
    parts = np.array_split(np.arange(len(frame)), n_blocks - 1)
    blocks = [frame.iloc[rows] for rows in parts]
    blocks.insert(1, frame.iloc[:0])
    return ray.data.from_arrow([pyarrow.Table.from_pandas(b, preserve_index=False) for b in blocks])


def test_numbers_with_rows_of_nulls_and_an_empty_block(numbers):
    new = number_table(300, seed=2)
    new.loc[7, ["a", "b", "c", "d"]] = np.nan
    found = score(numbers, blocks_of(new, 4), actors=2).to_pandas()
    assert list(found) == [*new, "score", "p_value", "flagged", "reasons"]
    assert found["id"].tolist() == new["id"].tolist()
    assert_same_bits(found, expected(numbers, new.drop(columns="id")))


def test_text_times_and_segments_from_files(tmp_path):
    mixed = mixed_detector(false_positive_rate=0.02)
    mixed.save(tmp_path / "mixed.diffint")
    new = mixed_table(300, seed=2)
    new.loc[5, "colour"] = "pink"
    (tmp_path / "new").mkdir()
    for part in (0, 1):
        new[part::2].to_parquet(tmp_path / "new" / f"{part}.parquet")
    found = score(
        tmp_path / "mixed.diffint",
        ray.data.read_parquet(str(tmp_path / "new")),
        keep=["id"],
        n_reasons=1,
        false_positive_rate=0.1,
    ).to_pandas()
    assert list(found) == ["id", "score", "p_value", "flagged", "reasons"]
    mixed.false_positive_rate = 0.1
    wanted = expected(mixed, new.drop(columns="id"), n_reasons=1).set_index(new["id"])
    assert_same_bits(found.set_index("id").loc[wanted.index], wanted)


def test_an_actor_is_killed_half_way(numbers, tmp_path):
    new = number_table(900, seed=2)
    killed = tmp_path / "killed"
    in_the_middle = int(new["id"].iloc[450])

    # Ray runs this in the actor that scores the rows; it ends that actor once, by itself, since
    # how far a run is cannot be known from outside.
    def end_once(rows):
        if in_the_middle in rows["id"].to_pylist() and not killed.exists():
            killed.write_text(str(ray.get_runtime_context().get_actor_id()))
            os.kill(os.getpid(), signal.SIGKILL)
        return rows

    ends = blocks_of(new, 31).map_batches(end_once, batch_size=None, batch_format="pyarrow")
    found = score(numbers, ends, actors=2).to_pandas()
    assert killed.read_text() not in {"", "None"}
    assert found["id"].tolist() == new["id"].tolist()
    assert_same_bits(found, expected(numbers, new.drop(columns="id")))


def test_no_rows_at_all(numbers):
    nothing = ray.data.from_pandas(number_table()[:0])
    assert score(numbers, nothing).count() == 0


# --- Invalid input when scoring ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda new: new.drop(columns="b"), "lacks a column that the model needs: 'b'"),
        (lambda new: new.rename(columns={"id": "score"}), "the kept column 'score' has the same"),
    ],
)
def test_columns_are_checked_before_anything_is_computed(numbers, change, match):
    with pytest.raises(InputError, match=match):
        score(numbers, ray.data.from_pandas(change(number_table(10))))


def test_columns_that_only_workers_see(numbers):
    unknown = ray.data.from_pandas(number_table(10)).map_batches(
        lambda rows: rows.drop(columns="b"), batch_format="pandas"
    )
    with pytest.raises(RowsError) as caught:
        score(numbers, unknown).to_pandas()
    with pytest.raises(InputError) as same:
        score(numbers, ray.data.from_pandas(number_table(10).drop(columns="b")))
    assert str(caught.value) == str(same.value)
    assert isinstance(caught.value, DiffIntError)


def test_a_cell_that_cannot_be_scored(numbers):
    new = number_table(30)
    new.loc[17, "c"] = np.inf
    with pytest.raises(InputError) as same:
        numbers.anomaly_score(new.drop(columns="id"))
    with pytest.raises(InputError) as caught:
        score(numbers, ray.data.from_pandas(new)).to_pandas()
    assert str(caught.value) == str(same.value)


def test_a_model_file_that_is_not_there_and_a_column_that_is_no_name(tmp_path):
    with pytest.raises(InputError, match="there is no model file"):
        score(tmp_path / "no.diffint", ray.data.from_pandas(number_table(10)))
    with pytest.raises(InputTypeError, match="by=5 is not text"):
        fit_many(number_table(10), by=5, **QUICK)


def test_a_model_file_of_another_version(numbers, tmp_path):
    path = tmp_path / "newer.diffint"
    numbers.save(path)
    make_newer(path)
    with pytest.raises(ModelFileError, match="format version"):
        score(path, ray.data.from_pandas(number_table(10)))


@pytest.mark.parametrize(
    ("package", "match"),
    [
        ({"__init__.py": "raise ModuleNotFoundError('No module named diffint')"}, "do not have"),
        (
            {"__init__.py": "", "core/__init__.py": "", "core/version.py": "__version__ = '9.9'"},
            r"have diffint 9\.9, not ",
        ),
    ],
)
def test_workers_without_the_package_or_with_another_version(numbers, tmp_path, package, match):
    for name, text in package.items():
        path = tmp_path / "diffint" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    options = {"runtime_env": {"env_vars": {"PYTHONPATH": str(tmp_path)}}}
    with pytest.raises(PlatformError, match=match):
        score(numbers, ray.data.from_pandas(number_table(10)), ray_options=options)
    with pytest.raises(PlatformError, match=r"install diffint-ad\[ray\]"):
        fit_many({"a": number_table(50)}, ray_options=options, **QUICK)


def test_arguments_that_make_no_sense(numbers):
    rows = ray.data.from_pandas(number_table(10))
    with pytest.raises(InputError, match="pass a Ray dataset"):
        score(numbers, number_table(10))
    with pytest.raises(InputError, match="pass a fitted DiffInt, or the path"):
        score(3, rows)
    with pytest.raises(InputError, match="actors=0 must be a whole number"):
        score(numbers, rows, actors=0)
    with pytest.raises(InputError, match="the first number is larger"):
        score(numbers, rows, actors=(3, 2))
    with pytest.raises(InputError, match="false_positive_rate=2"):
        score(numbers, rows, false_positive_rate=2)


def test_without_ray_the_error_names_the_extra(tmp_path):
    (tmp_path / "ray.py").write_text("raise ModuleNotFoundError('No module named ray')")
    code = "from diffint import DiffIntError\ntry:\n import diffint.ray\n"
    code += "except (DiffIntError, ImportError) as error: print(type(error).__name__, error)"
    code += "\nfrom diffint import DiffInt\ntry:\n DiffInt(device='ray').fit([[1.0], [2.0]])"
    code += "\nexcept DiffIntError as error: print(error)"
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith(
        "ModuleNotFoundError diffint.ray needs the package ray; install it with: pip"
    ), done
    assert done.stdout.count("diffint-ad[ray]") == 2


# --- Fitting -------------------------------------------------------------------------------------


def assert_same_model(found, wanted):
    """Whether two detectors were fitted to the same bits; when they were is left out."""
    model = replace(found.model_, training=wanted.model_.training)
    assert model.identity == wanted.model_.identity
    assert found.get_params() == {**wanted.get_params(), "device": found.device}


def test_members_are_trained_by_workers():
    table = mixed_table(300).drop(columns="id")
    settings = {**QUICK, "n_members": 3, "suspected_share": 0.05}
    found = fit(table, segments="shop", **settings)
    assert found.model_.training.device == "ray"
    assert_same_model(found, DiffInt(**settings).fit(table, segments="shop"))
    assert found.suspects_.any()


def test_an_error_in_training_is_that_of_the_library(rows):
    settings = {**QUICK, "scaling": "none", "learning_rate": 1e30}
    with pytest.raises(TrainingError) as same:
        DiffInt(**settings).fit(rows)
    with pytest.raises(TrainingError) as caught:
        fit(rows, **settings)
    assert str(caught.value) == str(same.value)
    assert type(caught.value) is TrainingError


def test_one_detector_for_each_shop(tmp_path):
    table = mixed_table(300, seed=4).drop(columns="id")
    found = fit_many(table, by="shop", **QUICK, n_jobs=2)
    assert list(found) == table["shop"].unique().tolist()
    assert not found.failures
    for shop, detector in found.items():
        part = table[table["shop"] == shop].drop(columns="shop")
        assert_same_model(detector, DiffInt(**QUICK, n_jobs=2).fit(part))
        detector.save(tmp_path / f"{shop}.diffint")


def test_tables_that_cannot_be_fitted_do_not_stop_others(tmp_path):
    good = number_table(100).drop(columns="id")
    good.to_parquet(tmp_path / "good.parquet")
    tables = {
        "one row": good[:1],
        2: good,
        "infinite": good.assign(a=np.inf),
        "from a file": partial(pd.read_parquet, tmp_path / "good.parquet"),
        "no file": partial(pd.read_parquet, tmp_path / "none.parquet"),
        "ends its worker": partial(os._exit, 1),
    }
    with pytest.warns(InputWarning, match="4 of 6 tables could not be fitted .'one row', 'inf"):
        found = fit_many(tables, ray_options={"max_retries": 0}, **QUICK)
    assert list(found) == [2, "from a file"]
    assert_same_model(found["from a file"], found[2])
    assert_same_model(found[2], DiffInt(**QUICK).fit(good))
    assert repr(found) == "<FittedMany: 2 detectors, 4 failed>"
    assert list(found.failures) == ["one row", "infinite", "no file", "ends its worker"]
    assert isinstance(found.failures["one row"], ValueError)
    assert isinstance(found.failures["ends its worker"], PlatformError)
    assert "infinite value" in str(found.failures["infinite"])
    assert "FileNotFoundError" in str(found.failures["no file"])
    with pytest.raises(KeyError, match=r"'infinite' could not be fitted: .*column 'a'"):
        found["infinite"]


def test_warnings_name_the_tables():
    good = number_table(100).drop(columns="id")
    few = good[:30]
    with pytest.warns(CalibrationWarning, match="^'a' and 'c': .* calibration rows are too few"):
        fit_many({"a": few, "b": good, "c": few}, **QUICK, false_positive_rate=0.05)


def test_invalid_arguments_of_many_fits():
    table = number_table(20)
    with pytest.raises(InputError, match="pass a mapping from names to tables"):
        fit_many(table, **QUICK)
    with pytest.raises(InputError, match="lacks a column that by names: 'shop'"):
        fit_many(table, by="shop", **QUICK)
    with pytest.raises(InputError, match=r"'a', which names the tables, has 2 rows without"):
        fit_many(table.assign(a=[None, None, *"abc" * 6]), by="a", **QUICK)
    with pytest.raises(InputError, match="needs a table with column names"):
        fit_many(table.to_numpy(), by="a", **QUICK)
    with pytest.raises(InputError, match="n_units"):
        fit_many({"a": table}, n_units=0)
    with pytest.raises(InputError, match="random_state is a generator"):
        fit_many({"a": table}, random_state=np.random.default_rng(0))
    with pytest.raises(InputError, match="each table is fitted by one worker"):
        fit_many({"a": table}, device="ray")
    with pytest.raises(InputError, match="leave it out"):
        fit(table, device="cpu")
