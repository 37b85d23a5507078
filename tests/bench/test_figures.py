"""The figures show the given values, and no texts overlap."""

from __future__ import annotations

import math

import numpy as np
import pandas
import pytest
from matplotlib.colors import to_hex

from diffint.bench.baselines import METHODS
from diffint.bench.figures import (
    TimedMethod,
    accuracy_against_time,
    critical_difference_diagram,
    svg_bytes,
)
from diffint.show.plots.drawing import ANOMALY, BOX, INK, NORMAL

from ..show.test_plots import check_layout, texts_of

NAMES = (*METHODS, "a plugin with a very long name, for the layout, v2")


def ranks_of(n_methods, seed=0, spread=1.0):
    rng = np.random.default_rng(seed)
    middle = (n_methods + 1) / 2
    ranks = np.clip(middle + spread * rng.normal(size=n_methods) * middle / 2, 1, n_methods)
    return pandas.Series(ranks, index=NAMES[-n_methods:] if n_methods < 4 else NAMES[:n_methods])


def found_texts(figure):
    return [text.get_text() for text in texts_of(figure)]


@pytest.mark.parametrize("n_methods", [2, 3, 4, 9, 25, len(NAMES)])
@pytest.mark.parametrize("spread", [1.0, 0.0])
def test_every_method_is_named_with_its_rank(n_methods, spread):
    ranks = ranks_of(n_methods, spread=spread)
    figure = critical_difference_diagram(ranks, 3.3, "ROC-AUC")
    check_layout(figure)
    texts = found_texts(figure)
    assert "critical difference 3.30" in " ".join(texts)
    for method, rank in ranks.items():
        name = method if method in METHODS else method[:4]  # names of METHODS are never shortened
        assert any(name in text and f"{rank:.2f}" in text for text in texts), method


def bars(figure):
    """The ends of the bars that connect methods, in inches."""
    return [line.get_xdata() for line in figure.axes[0].lines if line.get_linewidth() == 3.0]


def test_bars_connect_ranks_that_do_not_differ():
    ranks = pandas.Series({"DiffInt": 1.0, "KNN": 1.8, "LOF": 3.0, "PCA": 3.2})
    figure = critical_difference_diagram(ranks, 1.3, "")
    lengths = np.array([np.ptp(ends) - 0.06 for ends in bars(figure)])  # without their round ends
    np.testing.assert_allclose(lengths / lengths[0], np.array([0.8, 1.2, 0.2]) / 0.8)


def test_no_bars_without_a_critical_difference():
    figure = critical_difference_diagram(ranks_of(5), math.nan, "")
    assert not bars(figure)
    assert "critical" not in " ".join(found_texts(figure))


def test_a_critical_difference_longer_than_the_axis():
    figure = critical_difference_diagram(ranks_of(6), 40.0, "")
    check_layout(figure)
    assert "longer than the axis" in " ".join(found_texts(figure))
    assert len(bars(figure)) == 1


def test_diffint_and_plugins_are_highlighted():
    ranks = pandas.Series({"DiffInt": 1, "DiffInt-paper": 2, "Plugin": 3, "KNN": 4}, dtype=float)
    figure = critical_difference_diagram(ranks, 1.0, "")
    looks = {
        text.get_text().strip("0123456789.\u2002"): (to_hex(text.get_color()), text.get_weight())
        for text in texts_of(figure)
    }
    assert looks["DiffInt"] == (ANOMALY.lower(), "bold")
    assert looks["DiffInt-paper"] == (NORMAL.lower(), "bold")
    assert looks["Plugin"] == (BOX.lower(), "bold")
    assert looks["KNN"] == (INK.lower(), "normal")


def timed(n_methods, seed, crowded):
    rng = np.random.default_rng(seed)
    width = 0.3 if crowded else 2.0
    return [
        TimedMethod(name, 10 ** rng.uniform(-width, width), rng.uniform(3, 22), i % 5 == 0, i == 1)
        for i, name in enumerate(NAMES[:n_methods])
    ]


@pytest.mark.parametrize(
    ("n_methods", "seed", "crowded"),
    [(1, 0, False), (3, 0, True), (26, 1, False), (26, 2, True), (len(NAMES), 2, True)],
)
def test_every_point_has_its_own_name(n_methods, seed, crowded):
    methods = timed(n_methods, seed, crowded)
    figure = accuracy_against_time(methods, "Accuracy against time", "ROC-AUC")
    check_layout(figure)
    texts = " ".join(found_texts(figure))
    assert all(one.method[:4] in texts for one in methods)
    assert ("stopped at the time limit" in texts) == any(one.at_least for one in methods)
    assert ("estimated" in texts) == any(one.estimated for one in methods)


def test_methods_at_one_point_are_all_named():
    methods = [TimedMethod(name, 1.0, 2.0, False, False) for name in NAMES[:6]]
    check_layout(accuracy_against_time(methods, "", "ROC-AUC"))


def test_the_same_figure_gives_the_same_bytes():
    one, other = (svg_bytes(critical_difference_diagram(ranks_of(25), 5.0, "t")) for _ in range(2))
    assert one == other
    assert len(one) < 40_000
    assert b"dc:date" not in one
