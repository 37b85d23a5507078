"""The ONNX file: valid, described, run without diffint; what cannot be written is refused."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import diffint
from diffint import DiffInt
from diffint.core.errors import InputError

from ..conftest import QUICK

WITHOUT_DIFFINT = """
import sys
sys.modules["diffint"] = None  # importing it fails
import json
import re
import numpy as np
import onnxruntime
rows = np.load(sys.argv[2])
score, p_value, flagged = onnxruntime.InferenceSession(sys.argv[1]).run(None, {"rows": rows})
np.savez(sys.argv[3], score=score, p_value=p_value, flagged=flagged)
"""


@pytest.fixture
def path(fitted, tmp_path) -> Path:
    fitted.to_onnx(tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def test_the_graph_runs_where_diffint_cannot_be_imported(fitted, rows, path, tmp_path):
    np.save(tmp_path / "rows.npy", rows * 1.05)
    files = [str(tmp_path / name) for name in ("m.onnx", "rows.npy", "found.npz")]
    subprocess.run([sys.executable, "-c", WITHOUT_DIFFINT, *files], check=True, timeout=120)
    found = np.load(tmp_path / "found.npz")
    np.testing.assert_allclose(found["score"], fitted.anomaly_score(rows * 1.05), rtol=1e-5)
    np.testing.assert_allclose(found["p_value"], fitted.p_values(rows * 1.05), atol=0.01)


def test_the_file_is_valid_and_states_its_opset(path):
    onnx.checker.check_model(path, full_check=True)
    model = onnx.load(path)
    assert {one.domain: one.version for one in model.opset_import} == {"": 17, "ai.onnx.ml": 3}
    assert model.producer_name == "diffint"
    used = {node.op_type for node in model.graph.node}
    assert "Scan" in used


def test_the_metadata_describe_the_model(fitted, path):
    facts = onnxruntime.InferenceSession(path).get_modelmeta().custom_metadata_map
    read = {name.removeprefix("diffint."): json.loads(text) for name, text in facts.items()}
    assert read["features"] == ["x0", "x1", "x2", "x3", "x4"]
    assert read["inputs"] == [{"name": "rows", "column": None, "kind": "matrix"}]
    assert read["categories"] == read["times"] == {}
    assert read["version"] == diffint.__version__
    assert read["opset"] == 17
    assert read["false_positive_rate"] == 0.05
    assert read["confidence"] is None
    assert read["threshold"] == -fitted.offset_
    assert read["model_identity"] == fitted.model_.identity


def test_flags_are_those_of_the_rate_at_the_time_of_the_export(rows, tmp_path):
    detector = DiffInt(**QUICK, false_positive_rate=0.05).fit(rows)
    shares = []
    for rate in (0.05, 0.5):
        detector.false_positive_rate = rate
        detector.to_onnx(tmp_path / "m.onnx")
        session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
        flagged = session.run(["flagged"], {"rows": rows})[0]
        np.testing.assert_array_equal(flagged, detector.predict(rows) == -1)
        shares.append(flagged.mean())
    assert shares[0] < shares[1]


def test_a_loaded_model_writes_the_same_file(fitted, path, tmp_path):
    fitted.save(tmp_path / "m.diffint")
    DiffInt.load(tmp_path / "m.diffint").to_onnx(tmp_path / "again.onnx")
    assert (tmp_path / "again.onnx").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.zeros((3, 5), np.float32), "expected: (tensor(double))"),
        (np.zeros((3, 4)), "Got: 4 Expected: 5"),
        (np.zeros(5), "Invalid rank"),
    ],
    ids=["float32", "too few columns", "one row without its axis"],
)
def test_the_runtime_refuses_rows_of_another_type_or_shape(path, wrong, message):
    session = onnxruntime.InferenceSession(path)
    with pytest.raises(Exception, match=re.escape(message)):
        session.run(None, {"rows": wrong})


def test_columns_of_different_lengths_are_refused(tmp_path):
    table = pd.DataFrame({"city": ["Oslo", "Rome"] * 50, "x": np.arange(100.0)})
    DiffInt(**QUICK).fit(table).to_onnx(tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    given = {"city": np.array(["Oslo", "Rome"], dtype=object), "x": np.zeros(3)}
    with pytest.raises(Exception, match="Concat"):
        session.run(None, given)


def test_accepted_rows_are_refused_with_what_to_do(rows, tmp_path):
    detector = DiffInt(**QUICK, false_positive_rate=0.05).fit(rows)
    detector.accept(rows * 3)
    with pytest.raises(InputError, match=r"300 accepted rows.*withdraw\(detector.accepted.index\)"):
        detector.to_onnx(tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())
    detector.withdraw(detector.accepted.index)
    detector.to_onnx(tmp_path / "m.onnx")


def test_a_detector_that_is_not_fitted_is_refused(tmp_path):
    with pytest.raises(NotFittedError):
        DiffInt().to_onnx(tmp_path / "m.onnx")


def test_the_model_file_and_the_table_are_not_overwritten(fitted, rows, tmp_path):
    fitted.save(tmp_path / "m.diffint")
    before = (tmp_path / "m.diffint").read_bytes()
    with pytest.raises(InputError, match="input"):
        DiffInt.load(tmp_path / "m.diffint").to_onnx(tmp_path / "m.diffint")
    assert (tmp_path / "m.diffint").read_bytes() == before
    table = np.lib.format.open_memmap(tmp_path / "t.npy", "w+", rows.dtype, rows.shape)
    table[:] = rows
    with pytest.raises(InputError, match="input"):
        DiffInt(**QUICK).fit(table).to_onnx(tmp_path / "t.npy")


def test_a_folder_that_is_missing_is_named(fitted, tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist; create it first"):
        fitted.to_onnx(tmp_path / "no" / "m.onnx")


def test_a_graph_that_is_too_large_is_refused(fitted, tmp_path, monkeypatch):
    from diffint.export import onnx_file

    monkeypatch.setattr(onnx_file, "_LARGEST", 1000)
    with pytest.raises(InputError, match="GB, more than"):
        fitted.to_onnx(tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


def test_without_onnx_the_message_says_what_to_install(fitted, tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("diffint.export")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(InputError, match="needs onnx; install it with: pip install onnx"):
        fitted.to_onnx(tmp_path / "m.onnx")


def test_importing_and_scoring_do_not_import_onnx():
    code = (
        "import sys, numpy; from diffint import DiffInt; "
        "DiffInt(n_units=4, epochs=1, n_members=2).fit(numpy.random.rand(30, 2)); "
        "import diffint.cli.app; sys.exit('onnx' in sys.modules)"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=120)
