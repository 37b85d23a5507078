"""Graphs of models of numbers give the scores, p-values and flags of the library."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from diffint import DiffInt

from ..conftest import QUICK, make_rows
from .running import assert_same, feeds_of, run_graph, session_of

FEW = {"false_positive_rate": 0.05}


def make_table(n_rows: int, seed: int, n_features: int = 6) -> np.ndarray:
    """Rows with a long tail, a constant, a column without values, and missing cells."""
    rng = np.random.default_rng(seed)
    table = make_rows(n_rows, n_features, seed=0)[rng.permutation(n_rows)]
    table[:, 1] = np.exp(rng.normal(0, 2, n_rows))
    table[:, 2] = 3.0
    table[:, 3] = np.where(rng.random(n_rows) < 0.97, 0.0, rng.normal(size=n_rows))
    table[rng.random(table.shape) < 0.03] = np.nan
    table[:, 4] = np.nan
    return table


def make_new_rows(n_rows: int, seed: int, n_features: int = 6) -> np.ndarray:
    """Such rows, some of them with values beyond those, other constants and more missing cells."""
    rng = np.random.default_rng(seed)
    table = make_table(n_rows, seed, n_features)
    table[::3] += rng.normal(size=table[::3].shape) * np.nanstd(table[:, :4]) * 0.1
    table[::7, 4] = 1.0
    table[rng.random(table.shape) < 0.05] = np.nan
    table[0], table[1], table[2] = 1e300, -1e300, np.nan
    return table


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"missing": "ignored"},
        {"kept_rows": 0},
        {"decoder": "certified"},
        {"decoder": "spectral"},
        {"error": "clipped"},
        {"scaling": "minmax"},
        {"scaling": "unit"},
        {"scaling": "standard"},
        {"temperature": 0.001},
        {"temperature": 5.0},
        {"confidence": 0.9},
        {"calibration": "holdout"},
        {"n_members": 1},
        {"kept_rows": 0, "missing": "ignored", "scaling": "none", "decoder": "certified"},
    ],
    ids=lambda changes: ",".join(f"{name}={value}" for name, value in changes.items()) or "usual",
)
def test_every_setting_gives_the_scores_of_the_library(changes, tmp_path):
    detector = DiffInt(**(QUICK | FEW | changes)).fit(make_table(400, 0))
    rows = make_new_rows(600, 1)
    assert_same(detector, run_graph(detector, tmp_path / "m.onnx", rows), rows)


def test_the_configuration_of_the_paper(tmp_path):
    detector = DiffInt.paper(epochs=5, random_state=0, false_positive_rate=0.05)
    detector.fit(make_table(300, 0))
    rows = make_new_rows(600, 1)
    assert_same(detector, run_graph(detector, tmp_path / "m.onnx", rows), rows)


@pytest.mark.parametrize("n_features", [1, 5, 33, 70])
@pytest.mark.parametrize("temperature", [0.1, 0.001])
def test_any_number_of_features(n_features, temperature, tmp_path):
    rows = make_rows(300, n_features)
    detector = DiffInt(**(QUICK | FEW), temperature=temperature).fit(rows)
    new = np.concatenate([rows[:200], rows[:200] * 3.0])
    assert_same(detector, run_graph(detector, tmp_path / "m.onnx", new), new)


def test_groups_count_once(tmp_path):
    rows = make_table(400, 0)
    detector = DiffInt(**QUICK, false_positive_rate=0.2, confidence=0.9)
    detector.fit(rows, groups=np.repeat(np.arange(100), 4))
    assert detector.model_.calibration.grouped
    new = make_new_rows(600, 1)
    assert_same(detector, run_graph(detector, tmp_path / "m.onnx", new), new)


def test_segments_have_their_own_thresholds(tmp_path):
    rng = np.random.default_rng(0)
    rows, names = make_table(600, 0), ["north", "south", "1", "tiny"]
    segments = rng.choice(names, 600, p=[0.5, 0.3, 0.19, 0.01])
    rows[segments == "south"] *= 1.5
    detector = DiffInt(**(QUICK | FEW)).fit(rows, segments=segments)
    new, of_new = make_new_rows(600, 1), rng.choice([*names, "elsewhere"], 600)
    found = run_graph(detector, tmp_path / "m.onnx", new, of_new)
    assert_same(detector, found, new, of_new)


def test_too_few_calibration_rows_flag_only_above_all_of_them(tmp_path):
    rows = make_rows(60)
    detector = DiffInt(**QUICK, false_positive_rate=0.001).fit(rows)
    new = np.concatenate([rows, rows * 3])
    found = run_graph(detector, tmp_path / "m.onnx", new)
    np.testing.assert_array_equal(found.flagged, detector.predict(new) == -1)
    assert found.flagged.any()


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    """A detector with its graph."""
    detector = DiffInt(**(QUICK | FEW)).fit(make_table(400, 0))
    return detector, session_of(detector, tmp_path_factory.mktemp("usual") / "m.onnx")


CELLS = st.one_of(
    st.floats(allow_nan=True, allow_infinity=False),
    st.floats(-1e3, 1e3),
    st.sampled_from([0.0, -0.0, 3.0, 100.0, 5e-324, 1.7e308]),
)


@settings(max_examples=150)
@given(rows=arrays(np.float64, st.tuples(st.integers(1, 4), st.just(6)), elements=CELLS))
def test_any_finite_rows(usual, rows):
    detector, session = usual
    found = session.run(["score"], {"rows": rows})[0]
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(found, detector.prepared.packed.scores(rows), rtol=1e-5)


def test_a_score_does_not_depend_on_the_other_rows(usual):
    _, session = usual
    rows = make_new_rows(3000, 2)  # several blocks, the last one not full
    together = session.run(None, {"rows": rows})
    for i in (0, 1, 2, 1500, 2999):
        alone = session.run(None, {"rows": rows[i : i + 1]})
        for all_rows, one in zip(together, alone, strict=True):
            assert one.shape == (1,)
            np.testing.assert_allclose(one[0], all_rows[i], rtol=1e-12)


def test_no_rows_give_no_scores(usual):
    _, session = usual
    assert [found.shape for found in session.run(None, {"rows": np.empty((0, 6))})] == [(0,)] * 3


def test_an_infinite_cell_counts_like_the_largest_number(usual):
    _, session = usual
    rows = make_table(50, 3)
    infinite, huge = rows.copy(), rows.copy()
    infinite[::2, 0], infinite[1::2, 1] = np.inf, -np.inf
    huge[::2, 0], huge[1::2, 1] = 1.7e308, -1.7e308
    found = [session.run(["score"], {"rows": x})[0] for x in (infinite, huge)]
    np.testing.assert_array_equal(*found)


def test_memory_does_not_grow_with_kept_rows_times_rows(usual):
    """100,000 rows × 300 kept rows × 6 features would need 0.7 GB at once in float32."""
    import psutil

    detector, session = usual
    rows = np.tile(make_table(1000, 4), (100, 1))
    session.run(["score"], {"rows": rows[:1000]})
    process = psutil.Process()
    before = process.memory_info().rss
    found = session.run(["score"], {"rows": rows})[0]
    grown = process.memory_info().rss - before
    np.testing.assert_array_equal(found[:1000], found[-1000:])
    assert grown < 10 * rows.nbytes
    assert feeds_of(session, rows)["rows"] is rows
    assert detector.model_.n_kept_rows > 0
