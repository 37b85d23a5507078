"""The benchmark of false positives: its expected shares, a small run, and the committed page."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
RESULTS = BENCHMARKS.parent / "docs" / "results"


@pytest.fixture(autouse=True)
def _scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def test_what_is_expected_is_how_often_a_kept_promise_looks_broken():
    from diffint.core.calibration import Calibration
    from false_positives import CONFIDENCE, above_by_chance

    rng, rate, n, n_tested, draws = np.random.default_rng(0), 0.05, 300, 100, 4000
    above = 0
    for _ in range(draws):
        known = Calibration("holdout", np.sort(rng.random(n)), np.ones(n, dtype=np.int64))
        threshold = known.threshold(rate, CONFIDENCE)
        above += (rng.random(n_tested) > threshold).sum() > rate * n_tested
    expected = above_by_chance(known, rate, n_tested)
    error = np.sqrt(expected * (1 - expected) / draws)
    assert abs(above / draws - expected) < 4 * error
    assert expected > 1 - CONFIDENCE + 4 * error  # some of it is the sample of test rows


def test_runs_of_one_table_count_as_one():
    from false_positives import exceeding

    runs = pd.DataFrame(
        {"suite": "adbench", "table": np.repeat([f"t{i}" for i in range(10)], 20), "rate": 0.1}
    ).assign(inliers=100, confident_flagged=10, expected=0.05)
    runs.loc[runs["table"] == "t0", "confident_flagged"] = 11  # all 20 runs of one table
    found = exceeding(runs)
    assert (found["tables"], found["runs"], found["above"], found["share"]) == (10, 200, 20, 0.1)
    assert found["p_independent"] < 0.01
    assert found["p"] > 0.05


def test_a_small_run_is_written(tmp_path):
    rng = np.random.default_rng(0)
    for suite in ("adbench", "macrodata"):
        (tmp_path / suite).mkdir()
    x, y = rng.normal(size=(160, 3)), np.repeat([0, 1], [150, 10])
    np.savez(tmp_path / "adbench" / "45_wine.npz", X=x, y=y)
    np.savez(
        tmp_path / "macrodata" / "one.npz",
        train=x[:90], test=x[90:], test_labels=y[90:], feature_names=np.array(["a", "b", "c"]),
    )  # fmt: skip
    (tmp_path / "half.csv").write_text(
        "suite,table,half\nadbench,45_wine,report\nmacrodata,one,report\n"
    )
    out = tmp_path / "results"
    command = [
        sys.executable,
        str(BENCHMARKS / "false_positives.py"),
        "--seeds",
        "2",
        "--jobs",
        "1",
    ]
    command += ["--adbench", str(tmp_path / "adbench"), "--macrodata", str(tmp_path / "macrodata")]
    command += ["--selection", str(tmp_path / "half.csv"), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    runs = pd.read_csv(out.with_suffix(".csv"))
    assert len(runs) == 2 * 2 * 3
    assert (runs["confident_flagged"].fillna(0) <= runs["inliers"]).all()
    page = out.with_suffix(".md").read_text()
    again = subprocess.run([*command, "--page-only"], capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    assert out.with_suffix(".md").read_text() == page


def test_the_committed_page_is_that_of_the_committed_rows():
    from false_positives import report

    page = (RESULTS / "false_positives.md").read_text()
    command = page.split("`")[3]
    assert "\n".join(report(pd.read_csv(RESULTS / "false_positives.csv"), command)) + "\n" == page
