"""Scores compared with their definition, from several threads, and after a fork."""

import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from diffint import DiffInt
from diffint.engine.reference.score import scores as defined_scores
from diffint.score.prepared import PreparedModel
from diffint.score.scoring import anomaly_scores

from ..conftest import QUICK, make_rows
from ..waiting import LIMIT


@pytest.mark.parametrize("decoder", ["free", "certified"])
@pytest.mark.parametrize("scaling", ["adaptive", "minmax", "unit", "standard", "none"])
@pytest.mark.parametrize("error", ["clipped", "unclipped"])
@pytest.mark.parametrize("temperature", [0.02, 0.1, 2.0])
def test_scores_equal_the_definition(decoder, scaling, error, temperature):
    x = np.random.default_rng(0).normal(size=(150, 5))
    x[::9, 1] = np.nan
    settings = {"decoder": decoder, "scaling": scaling, "error": error, "temperature": temperature}
    model = DiffInt(**QUICK, **settings).fit(x).model_
    new = np.random.default_rng(1).normal(0, 3, size=(70, 5))
    new[::5, 2] = np.nan
    # With a small temperature, codes of rows far outside of all boxes depend on tiny differences.
    np.testing.assert_allclose(
        anomaly_scores(PreparedModel(model), new), defined_scores(model, new), rtol=2e-4, atol=1e-5
    )


def test_scoring_in_several_threads(fitted):
    x = make_rows(20_000, seed=5)
    expected = fitted.anomaly_score(x)
    with ThreadPoolExecutor(8) as pool:
        for scores in pool.map(lambda _: fitted.anomaly_score(x), range(16)):
            np.testing.assert_array_equal(scores, expected)


def test_fitting_in_several_threads(rows):
    expected = DiffInt(**QUICK).fit(rows).anomaly_score(rows)
    with ThreadPoolExecutor(4) as pool:
        for fitted in pool.map(lambda _: DiffInt(**QUICK).fit(rows), range(8)):
            np.testing.assert_array_equal(fitted.anomaly_score(rows), expected)


def _score_in_child(detector, x, queue):
    queue.put(detector.anomaly_score(x))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_after_a_fork(fitted):
    x = make_rows(20_000, seed=5)
    expected = fitted.anomaly_score(x)  # the parent process has started threads before
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    children = [context.Process(target=_score_in_child, args=(fitted, x, queue)) for _ in range(2)]
    for child in children:
        child.start()
    for _ in children:
        np.testing.assert_array_equal(queue.get(timeout=LIMIT), expected)
    for child in children:
        child.join(LIMIT)
        assert child.exitcode == 0
