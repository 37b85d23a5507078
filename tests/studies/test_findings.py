"""The quick version of each study shows what the full one shows, in direction.

With DIFFINT_ADBENCH the tables are real ones, else they are generated under the same names.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from diffint.studies.page import mean_of, present
from diffint.studies.registry import study_named
from diffint.studies.row_file import read_rows
from diffint.studies.run import run_study
from diffint.studies.study import Row, Setup

REAL = os.environ.get("DIFFINT_ADBENCH")
NEEDS_REAL = pytest.mark.skipif(not REAL, reason="DIFFINT_ADBENCH names no folder of real tables")


@pytest.fixture(scope="module")
def quick(tmp_path_factory) -> Callable[[str], list[Row]]:
    """quick("toy") → the rows of the quick version, after its page has been written"""
    folder = Path(REAL) if REAL else _generated(tmp_path_factory.mktemp("tables"))
    out = tmp_path_factory.mktemp("out")

    def run(name: str) -> list[Row]:
        study = study_named(name)
        outcome = run_study(study, Setup(folder, quick=True), out)
        assert outcome.findings.claims
        for file in (f"{name}.md", f"{name}.svg"):
            assert (out / "quick" / file).stat().st_size > 500
        return list(read_rows(out / "quick" / f"{name}.csv", study).values())

    return run


def _generated(folder: Path) -> Path:
    """Tables whose inliers keep to a plane, and whose anomalies are a cluster beside it."""
    names = ("14_glass", "18_Ionosphere", "29_Pima", "37_Stamps", "42_WBC", "45_wine", "6_cardio")
    for number, name in enumerate(names):
        rng = np.random.default_rng(number)
        y = (np.arange(240) % 8 == 0).astype(np.int64)
        x = rng.normal(size=(240, 3)) @ rng.normal(size=(3, 6)) + rng.normal(0, 0.1, (240, 6))
        x[y == 1] = rng.normal(size=6) * 2 + rng.normal(0, 0.2, (int(y.sum()), 6))
        np.savez(folder / f"{name}.npz", X=x, y=y)
    return folder


@NEEDS_REAL
def test_the_papers_accuracy_is_reached(quick):
    rows = quick("paper-check")
    from diffint.bench.paper_numbers import ROC_AUC

    for name in present(rows, "table"):
        assert mean_of(rows, "roc_auc", table=name) == pytest.approx(ROC_AUC[name].value, abs=0.05)


def test_two_intervals_hardly_move_but_the_anomaly_stands_out(quick):
    for row in quick("pipeline"):
        assert row["end_scores"][-1] > 3 * max(row["end_scores"][:-1])
        assert row["end_half_width"] == pytest.approx(row["start_half_width"], rel=0.2)


def test_outliers_of_the_toy_are_told_apart_and_pulled_in(quick):
    (row,) = quick("toy")
    assert row["outliers_above"] > 0.9
    assert row["inliers_above"] < 0.2
    assert row["image_distance"] < 0.8 * row["outlier_distance"]


def test_inliers_are_reconstructed_better_than_by_binary_patterns(quick):
    pytest.importorskip("torch")
    rows = quick("reconstruction")
    for name in present(rows, "table"):
        ours, theirs = (
            mean_of(rows, "error", table=name, method=method) for method in ("DiffInt", "BinaPs")
        )
        assert ours < 0.7 * theirs
        assert mean_of(rows, "bin_error", table=name) < theirs


def test_more_units_sharpen_inliers_more_than_outliers(quick):
    rows = quick("units")
    ratio = {
        measure: mean_of(rows, measure, n_units=200) / mean_of(rows, measure, n_units=5)
        for measure in ("inlier_error", "outlier_error")
    }
    assert ratio["inlier_error"] < ratio["outlier_error"]
    assert mean_of(rows, "roc_auc", n_units=50) > mean_of(rows, "roc_auc", n_units=200) - 0.03


def test_no_map_is_far_better_than_another(quick):
    rows = quick("normalization")
    means = {name: mean_of(rows, "roc_auc", scaling=name) for name in present(rows, "scaling")}
    assert set(means) == {"none", "unit", "standard", "minmax", "adaptive"}
    assert max(means.values()) - means["minmax"] < 0.15
    assert min(means.values()) > 0.6


def test_anomalies_in_training_cost_accuracy_that_is_won_back(quick):
    rows = quick("contamination")

    def accuracy(detector: str, share: float) -> float:
        return mean_of(rows, "roc_auc", detector=detector, share=share)

    assert accuracy("paper", 0.2) < accuracy("paper", 0.0) - 0.02
    assert accuracy("ours", 0.2) < accuracy("ours", 0.0) - 0.02
    if REAL:  # the generated anomalies are so many and so alike that they count as a kind of rows
        assert accuracy("ours, auto", 0.2) > accuracy("ours", 0.2)
        assert mean_of(rows, "found", detector="ours, auto", share=0.2) > 0.2


def test_a_box_holds_inliers_and_not_outliers_but_was_hardly_learned(quick):
    rows = quick("projection")
    for name in ("paper", "ours"):
        inliers, outliers = (
            mean_of(rows, measure, configuration=name)
            for measure in ("inliers_inside", "outliers_inside")
        )
        assert inliers > outliers
    assert mean_of(rows, "moved", configuration="paper") < 0.1


def test_the_usual_temperature_is_near_the_best(quick):
    rows = quick("temperature")
    for name in present(rows, "table"):
        best = max(mean_of(rows, "roc_auc", table=name, temperature=t) for t in (0.05, 0.2, 0.5))
        assert mean_of(rows, "roc_auc", table=name, temperature=0.1) > best - 0.06


def test_time_grows_no_faster_than_rows_features_and_units(quick):
    rows = quick("complexity")
    for row in rows:
        assert row["interval_parameters"] == 2 * row["n_units"] * row["n_features"]
    for grows in ("n_rows", "n_features", "n_units"):
        first, last = (row for row in rows if row["grows"] == grows)
        growth = last["fit_seconds"] / first["fit_seconds"]
        assert growth < 1.8 * last[grows] / first[grows]  # other programs may disturb
    first, last = (row for row in rows if row["grows"] == "n_rows")
    assert last["score_us"] < 2 * first["score_us"]
    assert last["parameters"] == first["parameters"]
