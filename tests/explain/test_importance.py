"""Importance of constraints and features, by our formula and by the paper's."""

from dataclasses import replace

import numpy as np
import pytest

from diffint import DiffInt, InputError

from ..conftest import QUICK


@pytest.fixture(scope="module")
def paper(rows):
    return DiffInt.paper(n_units=16, hidden_width=8, epochs=20, random_state=0).fit(rows)


def test_the_papers_formula(paper):
    member, learned = paper.model_.members[0], paper.explain_global()
    tightness = np.maximum(1.0 - member.half_width.astype(float) / 2.0, 0.0)  # the range is 2
    np.testing.assert_array_equal(learned.tightness, tightness)
    np.testing.assert_array_equal(learned.support, member.support)
    expected = member.support * tightness * member.stability
    np.testing.assert_allclose(learned.importance, expected, rtol=1e-12)
    np.testing.assert_array_equal(learned.feature_importance, learned.importance.max(axis=0))


def test_a_half_width_beyond_the_range_has_no_importance(rows):
    settings = {"importance": "paper", "scaling": "standard", "box_coverage": 0.0}
    fitted = DiffInt(**QUICK, **settings).fit(rows)
    member = fitted.model_.members[0]
    wide = member.half_width >= member.scaler.span
    learned = fitted.explain_global()
    first = len(member.half_width)
    assert (learned.importance[:first][wide] == 0).all()
    assert ((learned.importance >= 0) & (learned.importance <= 1)).all()


def test_constant_features_have_none(rows):
    x = rows.copy()
    x[:, 1] = 3.0
    fitted = DiffInt(**QUICK, importance="paper").fit(x)
    learned = fitted.explain_global()
    assert (learned.importance[:, 1] == 0).all()
    assert learned.feature_importance[1] == 0
    assert (learned.feature_importance[[0, 2]] > 0).all()


def test_several_members_are_averaged(rows):
    fitted = DiffInt(**{**QUICK, "n_members": 3}, importance="paper").fit(rows)
    learned = fitted.explain_global()
    highest = learned.importance.reshape(3, -1, rows.shape[1]).max(axis=1)
    np.testing.assert_allclose(learned.feature_importance, highest.mean(axis=0))
    assert (learned.stability < 1).any()


def test_it_changes_neither_scores_nor_the_identity(rows):
    ours, theirs = (DiffInt(**QUICK, importance=kind).fit(rows) for kind in ("boxes", "paper"))
    np.testing.assert_array_equal(ours.anomaly_score(rows), theirs.anomaly_score(rows))
    assert (ours.explain_global().importance != theirs.explain_global().importance).any()
    config = replace(ours.model_.config, importance="paper")
    assert replace(ours.model_, config=config).identity == ours.model_.identity


def test_joint_coverage_is_that_of_the_order_shown(paper, rows):
    """The shares shown beside constraints are of the constraints above them."""
    learned = paper.explain_global()
    frame = learned.to_frame(n_units=2, n_constraints=3)
    names = list(learned.feature_names)
    for unit, lines in frame.groupby("unit"):
        inside = np.ones(len(rows), dtype=bool)
        for line in lines.itertuples():
            j = names.index(line.feature)
            inside &= (rows[:, j] >= learned.lower[unit, j]) & (
                rows[:, j] <= learned.upper[unit, j]
            )
            assert line.joint_coverage == pytest.approx(inside.mean(), abs=0.02)


def test_it_survives_saving(paper, tmp_path):
    paper.save(tmp_path / "m")
    loaded = DiffInt.load(tmp_path / "m")
    assert loaded.importance == "paper"
    np.testing.assert_array_equal(
        loaded.explain_global().feature_importance, paper.explain_global().feature_importance
    )


def test_other_words_are_refused(rows):
    with pytest.raises(InputError, match="importance"):
        DiffInt(**QUICK, importance="lfi").fit(rows)
