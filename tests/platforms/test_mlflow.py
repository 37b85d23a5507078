"""MLflow: a logged detector gives the bits of the library, also in a new process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from diffint import DiffInt, InputError, ModelFileError, __version__
from diffint.core.errors import InputTypeError

from .tables import (
    QUICK,
    assert_same_bits,
    expected,
    make_newer,
    mixed_table,
    number_table,
)

mlflow = pytest.importorskip("mlflow", reason="the extra 'mlflow' is not installed")
import diffint.mlflow  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")


@pytest.fixture
def saved(numbers, tmp_path):
    """The folder of an MLflow model."""
    diffint.mlflow.save_model(numbers, tmp_path / "model")
    return tmp_path / "model"


def test_a_logged_and_registered_model(mixed, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file:{tmp_path}/runs")
    with mlflow.start_run():
        info = diffint.mlflow.log_model(mixed, registered_model_name="shops")
    new = mixed_table(200, seed=2)
    wanted = expected(mixed, new.drop(columns="id"))
    found = mlflow.pyfunc.load_model(info.model_uri).predict(new)
    assert list(found) == ["score", "p_value", "flagged", "reasons"]
    assert_same_bits(found, wanted)
    native = diffint.mlflow.load_model("models:/shops/1")
    assert isinstance(native, DiffInt)
    assert native.model_.identity == mixed.model_.identity
    assert native.segment_column_ == "shop"


def test_parameters_choose_rate_and_reasons(numbers, saved):
    new = number_table(200, seed=2)
    function = mlflow.pyfunc.load_model(str(saved))
    short = function.predict(new, params={"reasons": False})
    assert list(short) == ["score", "p_value", "flagged"]
    found = function.predict(new, params={"false_positive_rate": 0.2, "n_reasons": 1})
    detector = DiffInt.load(saved / "data" / "model.diffint")
    detector.false_positive_rate = 0.2
    assert_same_bits(found, expected(detector, new.drop(columns="id"), n_reasons=1))
    assert found["flagged"].sum() > short["flagged"].sum()


def test_signature_example_and_requirements(mixed, tmp_path):
    diffint.mlflow.save_model(mixed, tmp_path / "model", extra_pip_requirements=["idna==3.20"])
    info = mlflow.models.get_model_info(str(tmp_path / "model"))
    assert set(info.flavors) == {"diffint", "python_function"}
    assert info.signature.inputs.input_names() == ["colour", "size", "count", "time", "shop"]
    assert info.signature.outputs.input_names() == ["score", "p_value", "flagged", "reasons"]
    defaults = {param.name: param.default for param in info.signature.params}
    assert defaults == {"reasons": True, "n_reasons": 3, "false_positive_rate": 0.1}
    packages = (tmp_path / "model" / "requirements.txt").read_text().split()
    assert packages[0] == f"diffint-ad=={__version__}"
    names = [package.partition("==")[0] for package in packages]
    assert {"numpy", "numba", "pandas", "scikit-learn", "idna"} < set(names)
    assert {"mlflow", "mlflow-skinny"} & set(names)
    assert packages[0] in (tmp_path / "model" / "conda.yaml").read_text()
    # What a server does with the example: JSON in, a frame out.
    serving = (tmp_path / "model" / "serving_input_example.json").read_text()
    assert "colour" in json.loads(serving)["dataframe_split"]["columns"]
    answer = mlflow.models.validate_serving_input(str(tmp_path / "model"), serving)
    assert np.isfinite(answer["score"]).all()


def test_the_model_file_is_the_only_artifact_that_is_not_text(saved):
    files = [path.name for path in saved.rglob("*") if path.is_file()]
    readable = {".json", ".txt", ".yaml", ""}
    assert [name for name in files if Path(name).suffix not in readable] == ["model.diffint"]


def test_a_detector_of_an_array(tmp_path):
    rows = number_table(300, seed=1).drop(columns="id").to_numpy()
    detector = DiffInt(**QUICK, false_positive_rate=0.05).fit(rows)
    diffint.mlflow.save_model(detector, tmp_path / "model")
    new = number_table(100, seed=2).drop(columns="id").to_numpy()
    found = mlflow.pyfunc.load_model(str(tmp_path / "model")).predict(new)
    np.testing.assert_array_equal(found["score"], detector.anomaly_score(new))


def test_in_a_new_process(numbers, saved, tmp_path):
    new = number_table(100, seed=2)
    new.to_parquet(tmp_path / "new.parquet")
    code = (
        "import sys, mlflow, pandas\n"
        "function = mlflow.pyfunc.load_model(sys.argv[1])\n"
        "assert 'torch' not in sys.modules\n"
        "function.predict(pandas.read_parquet(sys.argv[2])).to_parquet(sys.argv[3])\n"
    )
    output = tmp_path / "scored.parquet"
    subprocess.run(
        [sys.executable, "-c", code, saved, tmp_path / "new.parquet", output],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
    )
    assert_same_bits(pd.read_parquet(output), expected(numbers, new.drop(columns="id")))


# --- Invalid input -------------------------------------------------------------------------------


def test_rows_that_cannot_be_scored(numbers, saved):
    function = mlflow.pyfunc.load_model(str(saved))
    new = number_table(20)
    with pytest.raises(mlflow.MlflowException, match=r"missing inputs \['b'\]"):
        function.predict(new.drop(columns="b"))
    with pytest.raises(InputTypeError, match="column 'b' contains text"):
        function.predict(new.assign(b="much"))
    with pytest.raises(InputError, match="column 'b' has 20 infinite values"):
        function.predict(new.assign(b=np.inf))
    with pytest.raises(InputError, match=r"false_positive_rate=1\.5"):
        function.predict(new, params={"false_positive_rate": 1.5})
    assert function.predict(new[:0]).empty


def test_whole_numbers_and_missing_cells_are_accepted(numbers, saved):
    new = number_table(20).drop(columns="id").round().fillna(100).astype("int64")
    new = new.assign(a=None, b=new["b"].astype("Int64"))
    found = mlflow.pyfunc.load_model(str(saved)).predict(new)
    np.testing.assert_array_equal(found["score"], numbers.anomaly_score(new))


def test_models_that_cannot_be_loaded(saved, tmp_path):
    make_newer(saved / "data" / "model.diffint")
    for load in (diffint.mlflow.load_model, mlflow.pyfunc.load_model):
        with pytest.raises(ModelFileError, match="format version"):
            load(str(saved))
    mlflow.pyfunc.save_model(
        tmp_path / "other", loader_module="json", data_path=__file__, pip_requirements=[]
    )
    with pytest.raises(InputError, match="is not a model of diffint; its flavors are 'python_f"):
        diffint.mlflow.load_model(str(tmp_path / "other"))


def test_segments_without_a_column_cannot_be_saved(tmp_path):
    table = number_table(200).drop(columns="id")
    detector = DiffInt(**QUICK).fit(table, segments=["north", "south"] * 100)
    with pytest.raises(InputError, match="segments that are not from a column"):
        diffint.mlflow.save_model(detector, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_without_mlflow_the_error_names_the_extra(tmp_path):
    (tmp_path / "mlflow.py").write_text("raise ModuleNotFoundError('No module named mlflow')")
    code = "from diffint import DiffIntError\ntry:\n import diffint.mlflow\n"
    code += "except (DiffIntError, ImportError) as error: print(error)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith("diffint.mlflow needs the package mlflow; install it")
