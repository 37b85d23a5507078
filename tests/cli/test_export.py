"""``diffint export``."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pandas as pd

from diffint import DiffInt


def test_a_model_file_becomes_an_onnx_file(run, payments, tmp_path):
    done = run("export", payments / "m.diffint", "-o", tmp_path / "m.onnx", "--fpr", "0.1")
    assert done.code == 0, done.err
    assert "false-positive rate 0.1" in done.out
    assert "Input rows: a matrix of age, amount and visits" in done.out
    assert "Outputs: score, p_value and flagged" in done.out
    rows = pd.read_csv(payments / "new.csv")[["age", "amount", "visits"]]
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    score, _, flagged = session.run(None, {"rows": rows.to_numpy(np.float64)})
    detector = DiffInt.load(payments / "m.diffint")
    detector.false_positive_rate = 0.1
    np.testing.assert_allclose(score, detector.anomaly_score(rows), rtol=1e-5)
    np.testing.assert_array_equal(flagged, detector.predict(rows) == -1)


def test_inputs_by_column_are_listed(run, tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"city": rng.choice(["Oslo", "Rome"], 60), "x": rng.normal(size=60)})
    table.to_csv(tmp_path / "t.csv", index=False)
    model = tmp_path / "m.diffint"
    assert run("fit", tmp_path / "t.csv", "-o", model, "--epochs", "2").code == 0
    done = run("export", model, "-o", tmp_path / "m.onnx")
    assert done.code == 0, done.err
    assert "Input city: text\nInput x: numbers\n" in done.out


def test_the_model_file_is_not_overwritten(run, payments, tmp_path):
    model = tmp_path / "m.diffint"
    model.write_bytes((payments / "m.diffint").read_bytes())
    done = run("export", model, "-o", model)
    assert done.code == 2
    assert "input" in done.err
    assert model.read_bytes() == (payments / "m.diffint").read_bytes()


def test_wrong_input_ends_with_one_message(run, payments, tmp_path):
    for arguments, message in (
        ((payments / "t.csv", "-o", tmp_path / "m.onnx"), "is a table, not a model file"),
        ((payments / "m.diffint", "-o", tmp_path / "no" / "m.onnx"), "does not exist"),
        ((payments / "m.diffint", "-o", "-"), "standard output"),
        ((payments / "m.diffint", "-o", tmp_path / "m.onnx", "--fpr", "2"), "false_positive_rate"),
    ):
        done = run("export", *arguments)
        assert done.code == 2
        assert message in done.err
        assert "Traceback" not in done.err
        assert not list(tmp_path.iterdir())
