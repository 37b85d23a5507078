"""Models that no fit produces are refused, also with a valid checksum."""

import os
from dataclasses import replace

import numpy as np
import pytest

from diffint import DiffInt, ModelFileError

from .forging import forge


def put(name, place, value):
    """A change that sets one value of an array."""

    def change(arrays):
        arrays[name][place] = value

    change.__name__ = f"{name}-{place}-{value}"
    return change


FIRST, CELL, EVERY = (0, 0), (0, 0, 0), (...,)
NAN, INF = np.nan, np.inf

IMPOSSIBLE = [
    put("members.center", CELL, NAN),
    put("members.center", CELL, 1e16),
    put("members.half_width", CELL, -1e-3),
    put("members.half_width", CELL, 1e18),
    put("members.decoder.hidden_weight", CELL, -INF),
    put("members.decoder.hidden_weight", CELL, 1e18),
    put("members.decoder.norm_gain", FIRST, 1e16),
    put("members.decoder.output_bias", FIRST, NAN),
    put("members.box_scale", 0, 0.0),
    put("members.box_scale", 0, NAN),
    put("members.box_scale", 0, 1e300),
    put("members.box_scale", 0, 1e35),
    put("members.is_pattern", 0, False),
    put("members.support", CELL, -0.5),
    put("members.mean_membership", CELL, 1.5),
    put("members.stability", CELL, NAN),
    put("members.coverage", CELL, 1.01),
    put("members.training_coverage", CELL, -0.01),
    put("members.joint_coverage", CELL, NAN),
    put("members.box_rows", FIRST, -1),
    put("members.box_rows", FIRST, 10**6),
    put("members.peers", CELL, -1),
    put("members.peers", EVERY, 0),
    put("members.peers", CELL, 10**6),
    put("members.peers_inside", CELL, -1),
    put("members.peers_inside", CELL, 10**6),
    put("members.counted_rows", 0, 0),
    put("members.counted_rows", 0, 10**6),
    put("members.coverage_rows", 0, 0),
    put("members.coverage_counts", FIRST, -1),
    put("members.coverage_counts", FIRST, 10**6),
    put("members.n_rows", 0, -3),
    put("members.history", FIRST, NAN),
    put("members.history", FIRST, -1.0),
    put("members.center_movement", 0, INF),
    put("members.half_width_movement", 0, -1.0),
    put("members.scaler.constant", FIRST, 0.0),  # of a feature that varies
    put("members.scaler.constant", FIRST, INF),
    put("members.scaler.divisor", FIRST, -1.0),
    put("members.scaler.divisor", FIRST, 1e305),
    put("members.scaler.offset", FIRST, -1e305),
    put("members.scaler.offset", FIRST, NAN),
    put("members.scaler.lower", FIRST, -2.0),
    put("features.levels", 0, 0.5),
    put("features.quantiles", FIRST, INF),
    put("features.quantiles", FIRST, NAN),
    put("features.quantiles", FIRST, 1e9),
    put("features.bin_edges", FIRST, -INF),
    put("features.bin_edges", EVERY, NAN),
    put("features.bin_counts", FIRST, -1),
    put("features.bin_counts", FIRST, 10**6),
    put("features.bin_counts", EVERY, 0),
    put("features.missing_share", 0, 1.0),
    put("features.missing_share", 0, -0.1),
    put("features.missing_share", 0, NAN),
    put("calibration.scores", 0, -1.0),
    put("calibration.scores", 0, NAN),
    put("calibration.scores", 0, 1e6),  # not ascending
    put("calibration.scores", -1, INF),
    put("calibration.group_sizes", 0, 0),
    put("calibration.group_sizes", 0, -1),
    put("calibration.group_sizes", 0, 2),  # of a group of two, only one
    put("calibration.group_sizes", 0, 10**9),
    put("features.name_bytes", slice(0, 4), np.frombuffer(b"x0x0", np.uint8)),  # the same name
]


@pytest.mark.parametrize("change", IMPOSSIBLE, ids=lambda change: change.__name__)
def test_an_impossible_value(saved, change):
    forge(saved, arrays=change)
    with pytest.raises(ModelFileError, match=r"impossible|calibration|name|not in order"):
        DiffInt.load(saved)


def test_a_model_that_cannot_be_loaded_is_not_saved(fitted, tmp_path):
    detector = DiffInt(**fitted.get_params())
    member = fitted.model_.members[0]
    broken = replace(member, half_width=-member.half_width)
    detector._set_model(replace(fitted.model_, members=(broken, *fitted.model_.members[1:])))
    with pytest.raises(ModelFileError, match="impossible intervals"):
        detector.save(tmp_path / "m")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("decoder", ["free", "certified"])
def test_the_largest_weights_give_finite_scores(rows, saved, fitted, decoder, tmp_path):
    settings = {**fitted.get_params(), "decoder": decoder}
    path = tmp_path / "m"
    DiffInt(**settings).fit(rows).save(path)

    def change(arrays):
        rng = np.random.default_rng(0)
        for name, array in arrays.items():
            if name.startswith("members.decoder."):
                array[:] = rng.choice([-1e15, 1e15], size=array.shape)

    forge(path, arrays=change)
    detector = DiffInt.load(path)
    scores = detector.anomaly_score(rows)
    assert np.isfinite(scores).all()
    region = detector.certify_region(rows.min(axis=0), rows.max(axis=0))
    assert region.lower <= scores.min()
    assert scores.max() <= region.upper < np.inf
    assert np.isfinite(detector.reconstruct(rows)).all()
    assert np.isfinite(detector.explain(rows).expected).all()


def test_a_model_with_groups_and_segments_is_loaded_unless_they_are_impossible(rows, tmp_path):
    path = tmp_path / "m.diffint"
    settings = {"n_units": 4, "hidden_width": 4, "epochs": 1, "n_members": 2, "random_state": 0}
    groups, segments = np.arange(300) // 3, np.array(["a", "b", "c"])[np.arange(300) % 3]
    detector = DiffInt(**settings).fit(rows, groups=groups)
    detector.save(path)
    assert (DiffInt.load(path).model_.calibration.group_sizes == 3).all()
    forge(path, arrays=put("calibration.group_sizes", 0, 2))
    with pytest.raises(ModelFileError, match="impossible groups"):
        DiffInt.load(path)
    detector = DiffInt(**settings).fit(rows, segments=segments)
    detector.save(path)
    assert DiffInt.load(path).model_.calibration.segment_names == ("a", "b", "c")
    for code in (3, -1):
        detector.save(path)
        forge(path, arrays=put("calibration.segments", 0, code))
        with pytest.raises(ModelFileError, match="impossible segments"):
            DiffInt.load(path)
