"""Compiled scores and explanations compared with their definition, for many shapes."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from diffint import DiffInt
from diffint.certify.regions import certify_region
from diffint.engine.cpu.packed_members import PackedMembers
from diffint.engine.reference import robust, score
from diffint.engine.reference.intervals import log_box_memberships
from diffint.score.nearest_pattern import center_distances
from diffint.score.prepared import PreparedModel

from ...conftest import make_rows

# (units, hidden, features, members), settings that differ from the defaults
SHAPES = [
    ((16, 16, 5, 2), {}),
    ((1, 1, 1, 1), {}),
    ((7, 17, 16, 3), {"decoder": "certified"}),
    ((17, 7, 17, 2), {"error": "clipped"}),
    ((40, 33, 36, 4), {"scaling": "unit"}),
    ((16, 16, 3, 2), {"scaling": "unit", "error": "clipped"}),
    ((9, 20, 4, 2), {"scaling": "standard"}),
    ((33, 5, 7, 2), {"scaling": "none", "decoder": "certified"}),
    ((20, 16, 6, 3), {"temperature": 0.02}),
    ((12, 8, 50, 2), {"temperature": 0.02, "decoder": "certified"}),
    ((12, 16, 9, 2), {"temperature": 2.0}),
    ((200, 128, 33, 1), {"init": "gaussian"}),
]


def make_model(shape, settings, seed=0):
    """A model of a table with missing cells, a constant feature and one without values."""
    units, hidden, features, members = shape
    x = np.random.default_rng(seed).normal(size=(150, features)) * 3.0
    x[::9, 0] = np.nan
    if features > 4:
        x[:, 2] = 4.0
        x[:, 3] = np.nan
    if features > 5:
        x[:, 5] = np.nan
        x[:3, 5] = 1.0  # some members see no value of it
    return (
        DiffInt(
            n_units=units,
            hidden_width=hidden,
            n_members=members,
            epochs=2,
            random_state=seed,
            **settings,
        )
        .fit(x)
        .model_
    )


def new_rows(n_features, n_rows=75, seed=1):
    """Rows inside and outside of the training range, with missing cells and an empty row."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 5, size=(n_rows, n_features))
    if n_features > 4:
        x[::2, 2] = 4.0
    x[rng.random(x.shape) < 0.1] = np.nan
    x[7] = np.nan
    x[8] = 1e30
    return x


@pytest.fixture(params=SHAPES, ids=lambda p: f"{p[0]} {p[1]}", scope="module")
def model(request):
    return make_model(*request.param)


@pytest.fixture
def x(model):
    return new_rows(model.n_features)


def pack(model):
    return PackedMembers(model.config, model.members)


def defined_matches(model, x):
    """Each member's nearest unit, the median member, and the excess over its box."""
    units, excesses, distances = [], [], []
    for member in model.members:
        unclipped = member.scaler.transform(x)[1]
        unit = robust.nearest_units(model.config, member, x)
        above, below = unclipped - member.box_upper[unit], unclipped - member.box_lower[unit]
        units.append(unit)
        excesses.append(np.where(above > 0, above, np.where(below < 0, below, np.float32(0))))
        distances.append(center_distances(unclipped, unit, member.center, member.box_half_width))
    middle = np.argsort(np.stack(distances), axis=0, kind="stable")[(len(units) - 1) // 2]
    return np.stack(units, axis=1), middle, np.stack(excesses)[middle, np.arange(len(x))]


def assert_near(actual, expected, size=1.0):
    """Equal up to float32 rounding; `size` is the magnitude of the values."""
    np.testing.assert_allclose(actual, expected, rtol=2e-4, atol=1e-4 * size)


def test_scores(model, x):
    packed = pack(model)
    assert_near(packed.scores(x), score.scores(model, x))
    for m, member in enumerate(model.members):
        parts = score.member_parts(model.config, member, x)
        assert_near(packed.member_scores(x, m), parts.sum(axis=1))


def test_parts(model, x):
    packed = pack(model)
    scores, parts = packed.parts(x)
    np.testing.assert_array_equal(scores, packed.scores(x))
    np.testing.assert_allclose(parts.sum(axis=1), scores, rtol=1e-12)
    assert_near(parts, score.parts(model, x))


def test_reconstructions_and_log_box_memberships(model, x):
    packed = pack(model)
    every = packed.reconstructions(x)
    assert every.dtype == np.float32
    for m, member in enumerate(model.members):
        assert_near(every[m], score.reconstruction(model.config, member, x))
        encoded = member.scaler.transform(x)[0]
        logs = log_box_memberships(encoded, member.lower, member.upper, model.config.temperature)
        np.testing.assert_allclose(packed.log_box(x, m), logs, rtol=1e-4, atol=1e-4)


def test_explained(model, x):
    found = pack(model).explained(x)
    expected, responsibility = robust.expected_and_responsibility(model, x)
    units, median_member, excess = defined_matches(model, x)
    size = np.nanmax(np.abs(model.features.quantiles), axis=1, initial=0.0)  # (features,)
    np.testing.assert_array_equal(np.isnan(found.expected), np.isnan(expected))
    assert (np.abs(np.nan_to_num(found.expected - expected)) <= 1e-4 * (size + 1.0)).all()
    assert_near(found.responsibility, responsibility)
    for m, member in enumerate(model.members):
        assert member.is_pattern[found.units[:, m]].all()
        # Units may differ only if their memberships are equal up to float32 rounding.
        logs = robust.robust_log_box(model.config, member, x)
        each = np.arange(len(x))
        chosen, other = logs[each, found.units[:, m]], logs[each, units[:, m]]
        np.testing.assert_allclose(chosen, other, atol=1e-4)
    same = (found.units == units).all(axis=1) & (found.member == median_member)
    assert same.mean() > 0.9
    np.testing.assert_array_equal(found.excess[same], excess[same])


def everything(packed, x, n_jobs=1):
    """All results; the first axis of each is the row."""
    return [
        *packed.parts(x, n_jobs),
        *packed.reconstructions(x, n_jobs),
        packed.log_box(x, 0, n_jobs),
        *packed.explained(x, n_jobs),
    ]


def assert_same(actual, expected):
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_row_does_not_depend_on_other_rows(model):
    packed = pack(model)
    x = new_rows(model.n_features, n_rows=203)
    expected = everything(packed, x)
    rng = np.random.default_rng(3)
    for chosen in (rng.permutation(len(x)), np.arange(len(x))[::7], rng.integers(0, len(x), 500)):
        assert_same(everything(packed, x[chosen]), [a[chosen] for a in expected])
    for i in range(0, len(x), 17):
        assert_same(everything(packed, x[i : i + 1]), [a[i : i + 1] for a in expected])


def test_number_of_threads_changes_no_bit(model):
    packed = pack(model)
    x = new_rows(model.n_features, n_rows=1_111)
    expected = everything(packed, x)
    for n_jobs in (2, 3, 8):
        assert_same(everything(packed, x, n_jobs), expected)


def test_any_memory_layout_and_float_type(model, x):
    packed = pack(model)
    single = x.astype(np.float32)
    expected = everything(packed, single.astype(np.float64))
    frozen = x.copy()
    frozen.flags.writeable = False
    spread = np.zeros((len(x), 2 * x.shape[1]))
    spread[:, ::2] = x
    assert_same(everything(packed, single), expected)
    expected = everything(packed, x)
    for other in (np.asfortranarray(x), x[::-1][::-1], frozen, spread[:, ::2]):
        assert_same(everything(packed, other), expected)


def test_integers_and_empty_tables(model):
    packed = pack(model)
    whole = np.arange(model.n_features * 6).reshape(6, -1)
    assert_same(everything(packed, whole), everything(packed, whole.astype(float)))
    for found in everything(packed, np.empty((0, model.n_features))):
        assert len(found) == 0


def test_concurrent_calls():
    model = make_model((30, 16, 8, 3), {})
    packed, x = pack(model), new_rows(8, n_rows=3_000)
    expected = everything(packed, x)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda i: everything(packed, x, 1 + i % 3), range(24)):
            assert_same(found, expected)


def test_an_empty_row(model):
    """Its parts are those of missing cells alone; if these are ignored, it scores 0."""
    empty = np.full((1, model.n_features), np.nan)
    scores, parts = pack(model).parts(empty)
    np.testing.assert_allclose(parts, score.parts(model, empty), rtol=1e-12)
    assert scores[0] == pytest.approx(parts.sum(), rel=1e-12)
    assert scores[0] > 0.0
    ignoring = replace(model, config=replace(model.config, missing="ignored"))
    scores, parts = pack(ignoring).parts(empty)
    assert scores[0] == 0.0
    assert not parts.any()


def test_tiny_columns_are_scaled_exactly():
    # The kernel treats numbers below 1e-38 as zero, except in the table.
    x = make_rows(200, 3) * 1e-310
    assert 0 < np.ptp(x[:, 0]) < np.finfo(float).tiny
    model = (
        DiffInt(n_units=16, hidden_width=16, epochs=2, n_members=2, random_state=0).fit(x).model_
    )
    assert_near(pack(model).scores(x), score.scores(model, x))


@pytest.mark.parametrize("scaling", ["minmax", "unit", "standard", "none"])
def test_the_kind_of_a_feature_has_one_definition(scaling):
    """Also of scalers that no fit returns: a constant and a divisor for the same feature."""
    model = make_model((9, 8, 6, 1), {"scaling": scaling})
    member = model.members[0]
    constant, divisor = np.meshgrid([np.nan, 1.0], [0.0, 1.5, 3.0])
    scaler = replace(member.scaler, constant=constant.ravel(), divisor=divisor.ravel())
    model = replace(model, members=(replace(member, scaler=scaler),))
    x = new_rows(6)
    x[::3] = 1.0
    assert_near(pack(model).scores(x), score.scores(model, x))
    expected = pack(model).explained(x).expected
    np.testing.assert_array_equal(np.isnan(expected[0]), ~scaler.seen)
    np.testing.assert_array_equal(expected[:, scaler.is_constant], 1.0)


@pytest.mark.parametrize("settings", [{}, {"decoder": "certified"}, {"temperature": 0.02}])
def test_scores_are_within_proven_bounds(settings):
    model = make_model((40, 16, 4, 2), settings)
    x = np.random.default_rng(5).normal(size=(12, 4)) * 3.0
    for row, value in zip(x, pack(model).scores(x), strict=True):
        proven = certify_region(PreparedModel(model), row - 1e-5, row + 1e-5, 0)
        assert proven.lower <= value <= proven.upper


def test_the_float_mode_of_the_thread_is_restored(model, x):
    pack(model).scores(x)
    pack(model).explained(x)
    assert np.float32(1e-30) * np.float32(1e-12) > 0
