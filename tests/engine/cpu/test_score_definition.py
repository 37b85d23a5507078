"""The compiled score is the defined one: with curves, kept rows and missing cells."""

from dataclasses import replace

import numpy as np
import pytest

from diffint import DiffInt
from diffint.engine.cpu.packed_members import PackedMembers
from diffint.engine.reference import robust, score

N_FEATURES = 9


def make_table(n_rows, seed=0):
    """Columns of every kind."""
    rng = np.random.default_rng(seed)
    x = np.empty((n_rows, N_FEATURES))
    x[:, 0] = rng.normal(size=n_rows)
    x[:, 1] = rng.lognormal(0, 3, n_rows)
    x[:, 2] = 7.0  # constant
    x[:, 3] = np.nan  # never seen
    x[:, 4] = rng.integers(0, 4, n_rows)
    x[:, 5] = rng.standard_cauchy(n_rows) * 1e6
    x[:, 6] = np.where(rng.random(n_rows) < 0.002, rng.normal(size=n_rows), 1.0)
    x[:3, 6] = -1.0, 4.0, 4.0
    x[:, 7] = rng.lognormal(0, 3, n_rows) * 1e-280
    x[:, 8] = rng.random(n_rows)
    x[rng.random(n_rows) < 0.3, 5] = np.nan
    x[rng.random(n_rows) < 0.01, 0] = np.nan
    return x


def new_rows(model, n_rows=90, seed=1):
    """Rows like those of the table and far from them, at knots and beside them, with gaps."""
    rng = np.random.default_rng(seed)
    x = make_table(n_rows, seed)
    x[:, 3] = rng.normal(size=n_rows)
    x[::7, 2] = 8.0
    x[::11] *= 10.0
    knots = [(j, c.values) for m in model.members for j, c in m.scaler.curves.items()]
    for i, (j, values) in enumerate(knots):
        place = slice(i % 5, None, 5)
        at = rng.choice(values, len(x[place]))
        x[place, j] = np.nextafter(at, rng.choice([-np.inf, np.inf, 0.0], len(at)))
        x[i % 5 + 1 :: 10, j] = rng.choice(values, len(x[i % 5 + 1 :: 10]))
    x[rng.random(x.shape) < 0.1] = np.nan
    x[5], x[6], x[7] = np.nan, 1e300, -1e300
    x[8, 1:] = np.nan
    return x


def fit(kept_rows, missing, error, n_rows=300, n_members=2):
    settings = {"n_units": 12, "hidden_width": 16, "epochs": 2, "random_state": 0}
    return (
        DiffInt(**settings, n_members=n_members, kept_rows=kept_rows, missing=missing, error=error)
        .fit(make_table(n_rows))
        .model_
    )


@pytest.fixture(
    scope="module",
    params=[
        (0, "signal", "unclipped"),
        (1, "signal", "unclipped"),
        (15, "ignored", "clipped"),
        (16, "signal", "clipped"),
        (17, "ignored", "unclipped"),
        (500, "signal", "unclipped"),
    ],
    ids=str,
)
def model(request):
    kept_rows, missing, error = request.param
    n_rows = 700 if kept_rows == 500 else 300
    with pytest.warns(UserWarning, match="no value in the training rows"):
        model = fit(kept_rows, missing, error, n_rows)
    for member in model.members:
        assert len(member.kept_rows) == kept_rows
        assert {1, 5, 7} <= set(member.scaler.curves)
        assert not member.scaler.seen[3]
    return model


def pack(model):
    return PackedMembers(model.config, model.members)


def test_scores_and_parts(model):
    x, packed = new_rows(model), pack(model)
    scores, parts = packed.parts(x)
    np.testing.assert_array_equal(scores, packed.scores(x))
    np.testing.assert_allclose(parts.sum(axis=1), scores, rtol=1e-12)
    # Which of two kept rows is nearest may depend on rounding; the sum does not.
    np.testing.assert_allclose(scores, score.scores(model, x), rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(parts, score.parts(model, x), rtol=2e-4, atol=2e-4)
    assert np.isfinite(parts).all()
    assert not parts[:, 3].any()


def test_values_are_scaled_exactly_as_defined(model):
    """The excess over a box is a difference of the scaled float32 value."""
    x = new_rows(model)
    for member in model.members:
        alone = replace(model, members=(member,))
        found = pack(alone).explained(x)
        unclipped = member.scaler.transform(x)[1]
        unit = found.units[:, 0]
        above, below = unclipped - member.box_upper[unit], unclipped - member.box_lower[unit]
        excess = np.where(above > 0, above, np.where(below < 0, below, np.float32(0)))
        np.testing.assert_array_equal(found.excess, excess)
        expected, _ = robust.expected_and_responsibility(alone, x)
        np.testing.assert_allclose(found.expected, expected, rtol=1e-3, atol=1e-3)


def test_a_row_does_not_depend_on_other_rows_or_threads(model):
    x, packed = new_rows(model, 203), pack(model)
    scores, parts = packed.parts(x)
    rng = np.random.default_rng(3)
    for chosen in (rng.permutation(len(x)), np.arange(5), rng.integers(0, len(x), 1_000)):
        for n_jobs in (1, 2, 3):
            found = packed.parts(x[chosen], n_jobs)
            np.testing.assert_array_equal(found[0], scores[chosen])
            np.testing.assert_array_equal(found[1], parts[chosen])
    for i in range(0, 60, 7):
        assert packed.scores(x[i : i + 1])[0] == scores[i]


def test_kept_rows_have_distance_0(model):
    """A training row that a member keeps counts its errors alone."""
    member = model.members[0]
    if not len(member.kept_rows):
        assert member.distance_weight == 0.0
        return
    x = make_table(700 if len(member.kept_rows) == 500 else 300)
    complete = x[~np.isnan(np.delete(x, 3, axis=1)).any(axis=1)]
    target = member.scaler.target(complete, model.config.error)
    kept = (score.distances(member, target) == 0).all(axis=1)
    assert kept.any() or len(member.kept_rows) == 1
    alone = replace(model, members=(member,))
    errors = replace(model, members=(replace(member, distance_weight=0.0),))
    both, error = pack(alone).scores(complete), pack(errors).scores(complete)
    np.testing.assert_allclose(both[kept], error[kept], rtol=1e-12)
    assert (both[~kept] > error[~kept]).all()
    # Kept rows are training rows of the member, and no others.
    assert kept.sum() <= len(member.kept_rows)


def test_weights_that_no_fit_gives(model):
    """The definition holds for any weights, not only for those that a fit measures."""
    rng = np.random.default_rng(4)
    members = tuple(
        replace(
            member,
            distance_weight=float(10.0 ** rng.uniform(-3, 3)),
            missing_error=rng.random(N_FEATURES),
            missing_surprise=rng.random(N_FEATURES),
            kept_rows=rng.normal(size=member.kept_rows.shape).astype(np.float32) * 5,
        )
        for member in model.members
    )
    model = replace(model, members=members)
    x = new_rows(model)
    scores, parts = pack(model).parts(x)
    np.testing.assert_allclose(scores, score.scores(model, x), rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(parts.sum(axis=1), scores, rtol=1e-12)


@pytest.mark.parametrize("n_features", [1, 2, 9, 37])
@pytest.mark.parametrize("n_kept", [1, 15, 16, 17, 300, 700])
def test_the_nearest_kept_row_is_found(n_features, n_kept):
    """Whole groups of kept rows are passed over; the nearest row must never be in one of them."""
    rng = np.random.default_rng(n_kept)
    centers = rng.normal(0, 3, size=(5, n_features))
    x = centers[rng.integers(0, 5, 900)] + rng.normal(0, 0.3, size=(900, n_features))
    settings = {"n_units": 2, "hidden_width": 2, "epochs": 1, "n_members": 1, "random_state": 0}
    model = DiffInt(**settings, kept_rows=n_kept).fit(x).model_
    (member,) = model.members
    assert len(member.kept_rows) == min(n_kept, member.n_rows)
    shuffled = replace(member, kept_rows=rng.permutation(member.kept_rows))
    rows = np.concatenate([x[:200], x[:50] * 10, rng.normal(size=(50, n_features)) * 1e4])
    rows[::3][rng.random(rows[::3].shape) < 0.3] = np.nan
    rows[-1] = np.nan
    for kept in (member, shuffled):
        packed = PackedMembers(model.config, (replace(kept, distance_weight=1.0),))
        expected = score.member_parts(model.config, replace(kept, distance_weight=1.0), rows)
        np.testing.assert_allclose(packed.scores(rows), expected.sum(axis=1), rtol=1e-4, atol=1e-5)
