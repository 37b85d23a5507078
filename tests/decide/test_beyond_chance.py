import numpy as np

from diffint.decide.beyond_chance import scores_beyond_chance, stand_out


def test_ordinary_scores_do_not_stand_out():
    for seed in range(20):
        scores = np.random.default_rng(seed).normal(10, 1, size=500)
        assert stand_out(scores).sum() <= 3
        assert scores_beyond_chance(np.exp(scores)).sum() == 0


def test_a_single_high_score_stands_out_among_many():
    scores = np.random.default_rng(0).normal(10, 1, size=500)
    scores[17] = 30
    assert np.flatnonzero(stand_out(scores)).tolist() == [17]


def test_many_high_scores_do_not_hide_each_other():
    scores = np.random.default_rng(0).normal(10, 1, size=500)
    scores[:100] += 20
    assert stand_out(scores)[:100].all()


def test_scores_without_spread():
    assert not stand_out(np.ones(50)).any()
    assert not stand_out(np.empty(0)).any()
    mostly_equal = np.ones(50)
    mostly_equal[:2] = 2.0  # nothing tells how rare a 2 is
    assert not stand_out(mostly_equal).any()
