"""The drift benchmark: plants that are changes, MMD² by its definition, runs that go on."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    yield
    for name in ("drift_streams", "drift_rivals", "drift_tables", "result_lines"):
        sys.modules.pop(name, None)


def test_only_features_that_a_change_changes_are_chosen():
    from drift_tables import changeable

    rng = np.random.default_rng(0)
    a = rng.normal(size=2_000)
    rows = pd.DataFrame(
        {
            "a": a,
            "b": a + 0.5 * rng.normal(size=2_000),
            "mostly one value": np.where(rng.random(2_000) < 0.95, 3.0, rng.normal(size=2_000)),
            "constant": 1.0,
            "text": rng.choice(["x", "y"], 2_000),
        }
    )
    assert changeable("spread", rows) == ["a", "b"]
    assert changeable("correlation", rows) == ["a", "b"]
    assert changeable("mean", rows) == ["a", "b", "mostly one value"]
    assert changeable("new category", rows) == ["text"]
    assert changeable("missing", rows) == list(rows)


def test_the_mean_discrepancy_is_the_one_that_is_defined():
    from drift_rivals import MeanDiscrepancy

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 3)), rng.normal(size=(30, 3)) + 0.4
    model = SimpleNamespace(
        calibration=SimpleNamespace(sample=x), categories={}, kinds=SimpleNamespace(n_values={})
    )
    test = MeanDiscrepancy(
        SimpleNamespace(model_=model), 30, 0.01, 3_000, lambda n: rng.normal(size=(n, 3))
    )
    both = np.concatenate([x, y]) - x.mean(axis=0)
    both /= x.std(axis=0)
    distances = ((both[:, None] - both) ** 2).sum(axis=2)
    among = np.sort(distances[:60, :60][~np.eye(60, dtype=bool)])
    kernel = np.exp(-distances / among[len(among) // 2 - 1])
    np.fill_diagonal(kernel, 0.0)
    expected = kernel[:60, :60].sum() / (60 * 59) + kernel[60:, 60:].sum() / (30 * 29)
    expected -= 2 * kernel[:60, 60:].mean()
    assert test.value(test.encoded(y)) == pytest.approx(expected, abs=1e-6)


def test_runs_that_were_done_are_not_done_again():
    from drift_streams import BEFORE, CHANGES, _tasks

    options = SimpleNamespace(streams=3, rows=100, change_streams=1, mmd_streams=1, adbench=None)
    tables = ["independent", "mixed"]
    assert len(_tasks(tables, options, [])) == 5
    done = [{"table": "independent", "seed": 0, "change": "none", "before": 100}]
    done += [
        {"table": "mixed", "seed": 0, "change": change, "before": before}
        for change in CHANGES
        for before in BEFORE
    ]
    left = _tasks(tables, options, done)
    assert [(task[1], task[2]) for task in left] == [
        ("mixed", 0),
        ("independent", 1),
        ("independent", 0),
    ]
