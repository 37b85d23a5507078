"""The label column of `fit`: 0 and 1, or a named value that means an anomaly."""

import numpy as np
import pandas as pd
import pytest

from diffint import DiffInt

QUICK = ("--epochs", 1, "--members", 1, "--units", 8, "--kept-rows", 0)


def table(labels):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 2)).round(3), columns=["a", "b"])
    return frame.assign(**{"is = fraud": np.resize(labels, 60)})


@pytest.fixture
def fit(run, tmp_path):
    def fit_table(frame, label, suffix=".csv"):
        path = tmp_path / f"t{suffix}"
        (frame.to_csv if suffix == ".csv" else frame.to_parquet)(path, index=False)
        return run("fit", path, "-o", tmp_path / "m", "--label", label, *QUICK)

    return fit_table


@pytest.mark.parametrize(
    ("labels", "value", "n_known"),
    [
        (["no", "no", "yes"], "=yes", 20),
        (["a", "b", "c"], "=b,c", 40),
        (["", "", "bad, worse"], '="bad, worse"', 20),
        ([1, 1, 2], "=2", 20),
        ([1.0, 1.0, 2.0], "=2", 20),
        ([-1, 1, 1], "=-1", 20),
        ([True, False, False], "", 20),
        ([True, False, False], "=False", 40),
        ([0, 0, 1], "", 20),
    ],
)
def test_values_that_mean_an_anomaly(fit, tmp_path, labels, value, n_known):
    done = fit(table(labels), f"is = fraud{value}")
    assert done.code == 0, done.err
    assert f"Left out {n_known} known anomalies." in done.out
    assert DiffInt.load(tmp_path / "m").model_.training.n_known_anomalies == n_known


@pytest.mark.parametrize("value", ["=2", "=2.0"])
def test_numbers_in_a_typed_file(fit, value):
    done = fit(table([1.0, 1.0, 2.0]), f"is = fraud{value}", ".parquet")
    assert "Left out 20 known anomalies." in done.out


@pytest.mark.parametrize(
    ("labels", "value", "messages"),
    [
        (
            ["no", "no", "yes"],
            "",
            [
                "the label 'is = fraud' has 'no' in line 2; it must be 0 or 1",
                'which value means an anomaly, such as --label "is = fraud=yes" (its values: ',
                "'no' and 'yes')",
            ],
        ),
        ([1, 1, 2], "", ["is 2 in line 4; it must be 0 or 1", '--label "is = fraud=2"']),
        ([0.0, 1.0, np.nan], "", ["the label 'is = fraud' is missing in line 4"]),
        (["no", "yes"], "=Yes", ["no row has 'Yes'", "its values are 'no' and 'yes'"]),
        (["no", "yes"], "=", ["no row has ''"]),
        ([f"v{i}" for i in range(60)], "=v", ["no row has 'v'", "and 55 more"]),
    ],
)
def test_values_that_mean_nothing(fit, tmp_path, labels, value, messages):
    (tmp_path / "m").write_text("old")
    done = fit(table(labels), f"is = fraud{value}")
    assert done.code == 2
    assert done.err.count("\n") == 1
    for message in messages:
        assert message in done.err, done.err
    assert (tmp_path / "m").read_text() == "old"
