"""The quick version of the studies of theory and interpretability, in direction.

With DIFFINT_ADBENCH the tables are real ones, else they are generated under the same names.
"""

from __future__ import annotations

import numpy as np
import pytest

from diffint.studies.attribution import gini
from diffint.studies.page import mean_of, values_of

from .test_findings import NEEDS_REAL, quick  # noqa: F401


def test_fewer_rows_meet_the_strict_hypothesis_with_more_active_intervals(quick):  # noqa: F811
    for row in quick("active-threshold"):
        assert np.all(np.diff(row["active"]) >= 0)
        comparable = np.array(row["vacuous"]) == 0  # vacuous units are not violated
        assert np.all(np.diff(np.array(row["anomalies"])[comparable]) <= 0)
        # A running mean that has hardly moved from 1 has fewer values below a threshold.
        assert np.all(np.array(row["unfinished"]) <= row["active"])


def test_no_score_is_below_its_certified_bound(quick):  # noqa: F811
    rows = quick("certify")
    assert all(row["violations"] == 0 for row in rows)
    norms = values_of(rows, "hidden_norm", decoder="spectral")
    assert all(0.9 < norm < 1.3 for norm in norms)
    assert mean_of(rows, "hidden_norm", decoder="certified") > 2 * max(norms)


@NEEDS_REAL
def test_the_spectral_decoder_collapses_and_costs_accuracy(quick):  # noqa: F811
    rows = quick("certify")
    accuracy = {name: mean_of(rows, "roc_auc", decoder=name) for name in ("free", "spectral")}
    assert accuracy["spectral"] < accuracy["free"] - 0.02
    assert mean_of(rows, "collapse", decoder="spectral") < mean_of(rows, "collapse", decoder="free")


def test_clipping_raises_memberships(quick):  # noqa: F811
    rows = quick("clamping")
    assert sum(row["n_extreme"] for row in rows) > 0
    assert all(row["raised"] > 0.9 and row["lowered"] == 0 for row in rows)
    assert mean_of(rows, "scores_lowered") > 0.5


def test_the_running_mean_needs_its_correction(quick):  # noqa: F811
    for row in quick("support"):
        assert np.all(np.array(row["corrected"]) < 0.2 * np.array(row["uncorrected"]))
        assert np.all(np.diff(row["uncorrected"]) < 1e-3)  # the start fades
        assert min(row["within"][1:]) > 0.98


def test_the_papers_importance_is_that_of_random_intervals(quick):  # noqa: F811
    rows = quick("stability")
    trained, random = (
        mean_of(rows, f"random_{formula}", configuration=configuration)
        for configuration, formula in (("paper", "paper"), ("recommended", "boxes"))
    )
    assert trained > 0.7
    assert random < trained - 0.3


@NEEDS_REAL
def test_important_constraints_matter_more_than_random_ones(quick):  # noqa: F811
    for row in quick("faithfulness"):
        formula = "paper" if row["configuration"] == "paper" else "boxes"
        assert row[f"top_{formula}"][1] > row[f"random_{formula}"][1]


def test_the_papers_intervals_are_as_wide_as_at_the_start(quick):  # noqa: F811
    rows = quick("conciseness")
    assert mean_of(rows, "width", configuration="paper") == pytest.approx(0.69, abs=0.06)
    assert mean_of(rows, "width", configuration="recommended") < 0.6
    for row in rows:
        assert 1 <= row["for_share"] <= row["features"]


def test_importance_finds_the_tight_features_and_so_do_random_intervals(quick):  # noqa: F811
    pytest.importorskip("torch")
    from sklearn.metrics import roc_auc_score

    rows = quick("attribution")
    for row in rows:
        for method in ("lfi", "ours", "ecod"):
            assert roc_auc_score(row["tight"], row[method]) > 0.9
    assert mean_of(rows, "sanity", variant="centred") > 0.6


def test_boxes_that_overlap_describe_a_region_and_those_that_touch_have_gaps(quick):  # noqa: F811
    rows = quick("capacity")
    assert all(row["violations"] == 0 for row in rows)
    fine = {"size": 16, "temperature": 0.003}
    assert mean_of(rows, "l1", kind="overlapping", **fine) < 0.1
    assert mean_of(rows, "inside", kind="overlapping", **fine) < 0.01
    assert mean_of(rows, "inside", kind="touching", **fine) > 0.24
    assert min(values_of(rows, "l1", kind="paper")) > 0.2


def test_gini():
    assert gini(np.ones(5)) == pytest.approx(0.0)
    assert gini(np.array([0.0, 0.0, 0.0, 1.0])) == pytest.approx(0.75)
