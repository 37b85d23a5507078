"""The packed members against the plain paths: same numbers, whatever the shape, rows or threads."""

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from diffint import DiffInt
from diffint.attribution import attribute
from diffint.contributions import scores_and_contributions
from diffint.measuring import MATCH_FLOOR
from diffint.packed_members import PackedMembers, packed_members
from diffint.patterns import match_rows
from diffint.scoring import anomaly_scores, evaluate

from .conftest import make_rows

# (units, hidden, features, members), then what differs from the defaults
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
    """A model of a table with missing cells, a constant and a never-seen feature."""
    units, hidden, features, members = shape
    x = np.random.default_rng(seed).normal(size=(150, features)) * 3.0
    x[::9, 0] = np.nan
    if features > 4:
        x[:, 2] = 4.0
        x[:, 3] = np.nan
    if features > 5:
        x[:, 5] = np.nan
        x[:3, 5] = 1.0  # some members have not seen it
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
    """Rows inside and outside of the training range, with missing cells and a blank row."""
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


def assert_near(actual, expected, size=1.0):
    """Equal but for float32 rounding; of values up to 1e15 where nothing is clipped."""
    np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=2e-5 * size)


def test_scores(model, x):
    packed = PackedMembers(model)
    assert_near(packed.scores(x), anomaly_scores(model, x))
    for m, member in enumerate(model.members):
        assert_near(packed.member_scores(x, m), evaluate(model, member, x).scores)


def test_parts(model, x):
    packed = PackedMembers(model)
    scores, parts = packed.parts(x)
    np.testing.assert_array_equal(scores, packed.scores(x))
    np.testing.assert_allclose(parts.sum(axis=1), scores, rtol=1e-12)
    assert_near(parts, scores_and_contributions(model, x)[1])


def test_reconstructions_and_log_box_memberships(model, x):
    packed = PackedMembers(model)
    every = packed.reconstructions(x)
    assert every.dtype == np.float32
    for m, member in enumerate(model.members):
        result = evaluate(model, member, x, reconstruct=True, memberships=True)
        assert_near(every[m], result.reconstruction)
        np.testing.assert_allclose(packed.log_box(x, m), result.log_box, rtol=1e-5, atol=2e-5)


def test_explained(model, x):
    found = PackedMembers(model).explained(x)
    plain, matches = attribute(model, x), match_rows(model, x)
    span = np.fmax(*(np.abs(a) for a in (model.features.quantiles[:, [0, -1]].T)))
    assert_near((found.expected - plain.expected) / span, np.zeros(x.shape) + 0 * plain.expected)
    assert_near(found.responsibility, plain.responsibility)
    differs = found.units != matches.units
    for m, member in enumerate(model.members):  # but for two units that are as near
        clipped, _ = member.scaler.transform(x)
        logs = reference_bounded(clipped, member, model.config.temperature)
        each = np.arange(len(x))
        near = logs[each, found.units[:, m]], logs[each, matches.units[:, m]]
        np.testing.assert_allclose(*near, atol=1e-5)
        assert member.is_pattern[found.units[:, m]].all()
    same = ~differs.any(axis=1) & (found.member == matches.member)
    assert same.mean() > 0.95
    np.testing.assert_array_equal(found.excess[same], matches.excess[same])


def reference_bounded(x, member, temperature):
    """Σ_j log max(I, floor) in float64; (rows, units)"""
    x = x[:, None, :].astype(np.float64)
    with np.errstate(over="ignore"):
        below = np.exp(np.minimum((member.lower.astype(float) - x) / temperature, 700))
        above = np.exp(np.minimum((x - member.upper.astype(float)) / temperature, 700))
        membership = 1 / ((1 + below) * (1 + above))
    membership = np.where(np.isnan(x), 1.0, np.maximum(membership, MATCH_FLOOR))
    return np.log(membership).sum(axis=2)


def everything(packed, x, n_jobs=1):
    """Every result for rows, each with the rows first."""
    return [
        *packed.parts(x, n_jobs),
        *packed.reconstructions(x, n_jobs),
        packed.log_box(x, 0, n_jobs),
        *packed.explained(x, n_jobs),
    ]


def assert_same(actual, expected):
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_row_does_not_depend_on_the_rows_beside_it(model):
    packed = PackedMembers(model)
    x = new_rows(model.n_features, n_rows=203)
    expected = everything(packed, x)
    rng = np.random.default_rng(3)
    for chosen in (rng.permutation(len(x)), np.arange(len(x))[::7], rng.integers(0, len(x), 500)):
        assert_same(everything(packed, x[chosen]), [a[chosen] for a in expected])
    for i in range(0, len(x), 17):
        assert_same(everything(packed, x[i : i + 1]), [a[i : i + 1] for a in expected])


def test_the_number_of_threads_changes_no_bit(model):
    packed = PackedMembers(model)
    x = new_rows(model.n_features, n_rows=1_111)
    expected = everything(packed, x)
    for n_jobs in (2, 3, 8):
        assert_same(everything(packed, x, n_jobs), expected)


def test_any_layout_and_kind_of_number(model, x):
    packed = PackedMembers(model)
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


def test_whole_numbers_and_no_rows(model):
    packed = PackedMembers(model)
    whole = np.arange(model.n_features * 6).reshape(6, -1)
    assert_same(everything(packed, whole), everything(packed, whole.astype(float)))
    for found in everything(packed, np.empty((0, model.n_features))):
        assert len(found) == 0


def test_many_threads_at_once():
    model = make_model((30, 16, 8, 3), {})
    packed, x = PackedMembers(model), new_rows(8, n_rows=3_000)
    expected = everything(packed, x)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda i: everything(packed, x, 1 + i % 3), range(24)):
            assert_same(found, expected)


def test_a_blank_row_scores_0(model):
    packed = PackedMembers(model)
    scores, parts = packed.parts(np.full((1, model.n_features), np.nan))
    assert scores[0] == 0.0
    assert not parts.any()


def test_tiny_columns_are_scaled_exactly():
    # The kernel takes numbers below 1e-38 for zero, but not those of the table.
    x = make_rows(200, 3) * 1e-310
    assert 0 < np.ptp(x[:, 0]) < np.finfo(float).tiny
    model = (
        DiffInt(n_units=16, hidden_width=16, epochs=2, n_members=2, random_state=0).fit(x).model_
    )
    assert_near(PackedMembers(model).scores(x), anomaly_scores(model, x))


def test_the_thread_computes_with_tiny_numbers_afterwards(model, x):
    PackedMembers(model).scores(x)
    PackedMembers(model).explained(x)
    assert np.float32(1e-30) * np.float32(1e-12) > 0


def test_an_error_in_a_thread_is_raised():
    packed = PackedMembers(make_model((4, 4, 3, 1), {}))
    packed._new_scratch = None  # nothing can be borrowed
    with pytest.raises(TypeError):
        packed.scores(new_rows(3, n_rows=1_000), 4)


def test_packed_once_and_let_go():
    model = make_model((4, 4, 3, 1), {})
    packed = packed_members(model)
    assert packed_members(model) is packed
    gone = weakref.ref(packed)
    del packed, model
    gc.collect()
    assert gone() is None
