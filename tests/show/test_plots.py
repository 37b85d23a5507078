"""Figures: the drawn numbers equal those of the frames, and nothing is cut off."""

from __future__ import annotations

import io
import subprocess
import sys
import textwrap
from itertools import combinations

import numpy as np
import pandas
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from sklearn.exceptions import NotFittedError

from diffint import DiffInt, InputError
from diffint.core.formatting import number, percent
from diffint.show.plots import (
    bound_versus_error,
    box_projection,
    constraint_bars,
    importance_heat_map,
    score_histogram,
    waterfall,
)
from diffint.show.plots.drawing import ANOMALY, NORMAL, QUIET

from ..conftest import QUICK

LONG = "the mean of the concave portions of the contour, in 10 $ per m² and year, "


def texts_of(figure):
    """Every visible text that is not empty."""
    found = figure.findobj(Text)
    return [text for text in found if text.get_visible() and text.get_text().strip()]


def check_layout(figure):
    """Nothing lies outside the figure, and no two texts overlap."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    tight, size = figure.get_tightbbox(renderer), figure.get_size_inches()
    assert tight.x0 >= -0.02
    assert tight.y0 >= -0.02
    assert tight.x1 <= size[0] + 0.02
    assert tight.y1 <= size[1] + 0.02
    boxes = [(t.get_text(), t.get_window_extent(renderer)) for t in texts_of(figure)]
    width, height = size * figure.dpi
    for text, box in boxes:
        inside = box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1
        assert inside, text
    for (one, a), (other, b) in combinations(boxes, 2):
        across = min(a.x1, b.x1) - max(a.x0, b.x0)
        down = min(a.y1, b.y1) - max(a.y0, b.y0)
        assert across <= 1 or down <= 1, (one, other)


def words(figure):
    return " | ".join(t.get_text() for t in texts_of(figure))


def rectangles(ax):
    return [p for p in ax.patches if isinstance(p, Rectangle)]


# --- Difficult tables ----------------------------------------------------------------------------


def _mixed(rng):
    """Every kind of column, with names that are too long."""
    n = 200
    x = np.column_stack(
        [
            rng.normal(5, 1, n),
            rng.integers(0, 2, n),
            np.full(n, 7.0),
            rng.poisson(3, n),
            rng.normal(size=n) * 1e12,
            rng.normal(size=n) * 1e-9,
            np.exp(rng.normal(0, 3, n)),
            np.full(n, np.nan),
            1e6 + rng.normal(size=n) * 0.01,
        ]
    )
    x[rng.random(x.shape) < 0.05] = np.nan
    kinds = ("plain", "flag", "constant", "count", "huge", "tiny", "heavy", "empty", "offset")
    names = [LONG + kind for kind in kinds]
    return pandas.DataFrame(x, columns=names)


TABLES = {
    "mixed": _mixed,
    "one feature": lambda rng: rng.normal(size=(60, 1)),
    "one flag": lambda rng: rng.integers(0, 2, (60, 1)),
    "hundred features": lambda rng: pandas.DataFrame(
        rng.normal(size=(50, 100)), columns=[f"{LONG}{'W' * 30} {j}" for j in range(100)]
    ),
    "constant": lambda rng: np.full((30, 2), 3.0),
    "extreme": lambda rng: rng.normal(size=(60, 3)) * [1e-300, 1e300, 1e100],
}


@pytest.fixture(scope="module", params=list(TABLES))
def hard(request):
    """A detector fitted on a difficult table, and rows to draw: some normal, some not."""
    rng = np.random.default_rng(0)
    x = TABLES[request.param](rng)
    members = 1 if "one" in request.param else 2
    detector = DiffInt(**{**QUICK, "n_members": members}, decoder="certified")
    with np.errstate(all="ignore"):
        detector.fit(x)
    frame = pandas.DataFrame(x)
    new = pandas.concat([frame[:20], frame[:10] * 3 + 1.0], ignore_index=True)
    if frame.shape[1] > 1:
        new.iloc[25] = np.nan
    return detector, new, np.arange(30) >= 20


@pytest.mark.filterwarnings("ignore::diffint.core.errors.InputWarning")
def test_layout_of_difficult_tables(hard):
    detector, new, labels = hard
    learned, why = detector.explain_global(), detector.explain(new)
    check_layout(box_projection(learned, new, labels))
    check_layout(box_projection(detector.model_, new[:1], []))
    check_layout(constraint_bars(learned, detector.model_.features))
    check_layout(learned.plot())
    for row in (21, 25):
        check_layout(waterfall(why, row))
    check_layout(detector.explain(new[:1]).plot(0))
    check_layout(
        score_histogram(why.score, why.threshold, labels, detector.model_.calibration.scores)
    )
    certificate = detector.certify(new)
    check_layout(bound_versus_error(certificate, why.threshold))


# --- The numbers ---------------------------------------------------------------------------------


def test_a_projected_box_equals_the_frame(fitted, rows):
    learned = fitted.explain_global()
    frame = learned.to_frame(n_units=1, n_constraints=2)
    figure = box_projection(learned, rows)
    (ax,) = figure.axes
    (box,) = rectangles(ax)
    np.testing.assert_allclose(box.get_xy(), frame.lower)
    size = [box.get_width(), box.get_height()]
    np.testing.assert_allclose(size, frame.upper - frame.lower)
    sides = [line for line in ax.lines if len(line.get_xdata()) == 2]
    solid = [line.get_linestyle() == "-" for line in sides]
    assert solid == frame[["binds_below", "binds_above"]].to_numpy().ravel().tolist()
    assert frame.feature[0] in ax.get_xlabel()
    assert frame.feature[1] in ax.get_ylabel()
    drawn = np.concatenate([np.ma.getdata(c.get_offsets()) for c in ax.collections])
    names = list(learned.feature_names)
    shown = rows[:, [names.index(name) for name in frame.feature]]
    inside = np.ones(len(shown), dtype=bool)
    for i in range(2):
        inside &= ~(frame.binds_below[i] & (shown[:, i] < frame.lower[i]))
        inside &= ~(frame.binds_above[i] & (shown[:, i] > frame.upper[i]))
    assert len(drawn) == len(rows)
    assert f"normal rows: {percent(inside.mean())} of {len(rows)} inside" in words(figure)


def test_distant_rows_do_not_change_the_limits(fitted, rows):
    distant = rows[:30].copy()
    distant[-1] = 1e9
    figure = box_projection(fitted.model_, distant, np.arange(30) == 29)
    check_layout(figure)
    assert figure.axes[0].get_xlim()[1] < 1e8
    assert "outside the picture, drawn at its edge: 1 row" in words(figure)


def test_features_of_a_projection_can_be_chosen(fitted, rows):
    learned = fitted.explain_global()
    (ax,) = box_projection(learned, rows, unit=-1, features=["x3", 1]).axes
    assert ax.get_xlabel().startswith("x3: ")
    assert ax.get_ylabel().startswith("x1: ")
    (box,) = rectangles(ax)
    np.testing.assert_allclose(box.get_xy(), learned.lower[-1, [3, 1]])
    (ax,) = box_projection(learned, rows, features="x2").axes
    assert ax.get_ylabel() == "row"


def test_constraint_bars_show_the_training_histogram_and_the_range(fitted):
    learned, features = fitted.explain_global(), fitted.model_.features
    frame = learned.to_frame(n_units=1, n_constraints=3)
    figure = constraint_bars(learned, features, n_constraints=3)
    for ax, line in zip(figure.axes, frame.itertuples(), strict=True):
        j = learned.feature_names.index(line.feature)
        bars = rectangles(ax)
        counts = features.bin_counts[j]
        assert [bar.get_height() for bar in bars[: len(counts)]] == counts.tolist()
        colored = bars[len(counts) :]
        left = min(bar.get_x() for bar in colored)
        right = max(bar.get_x() + bar.get_width() for bar in colored)
        np.testing.assert_allclose([left, right], [line.lower, line.upper])
        assert sorted(end.get_xdata()[0] for end in ax.lines) == [line.lower, line.upper]
        assert f"holds for {percent(line.coverage)} of" in ax.get_title(loc="right")
    assert percent(frame.joint_coverage.iloc[-1]) in figure.get_suptitle()


def test_whole_numbers_have_one_bar_each():
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.integers(0, 2, 80), rng.integers(2, 9, 80)]).astype(float)
    detector = DiffInt(**QUICK).fit(x)
    learned = detector.explain_global()
    figure = constraint_bars(learned, detector.model_.features, unit=0)
    for ax, j in zip(figure.axes, learned.constraint_order(0), strict=True):
        values, counts = np.unique(x[:, j], return_counts=True)
        bars = rectangles(ax)[: len(values)]
        middles = [bar.get_x() + bar.get_width() / 2 for bar in bars]
        np.testing.assert_allclose(middles, values)
        assert [bar.get_height() for bar in bars] == counts.tolist()


@pytest.mark.parametrize("n_features", [2, 5, 10])
def test_waterfall_bars_sum_to_the_score(fitted, rows, n_features):
    distant = rows[:4].copy()
    distant[2, 1] += 1e4
    why = fitted.explain(distant)
    figure = waterfall(why, 2, n_features)
    frame = why.to_frame()
    frame = frame[frame.row == 2].head(n_features)
    bars = rectangles(figure.axes[0])
    widths = np.array([bar.get_width() for bar in bars])
    np.testing.assert_allclose(widths[: len(frame)], frame.share * why.score[2])
    np.testing.assert_allclose(widths.sum(), why.score[2])
    starts = [bar.get_x() for bar in bars]
    np.testing.assert_allclose(starts, np.cumsum(widths) - widths, atol=1e-12)
    labels = [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    assert [label.split(" = ")[0] for label in labels[: len(frame)]] == frame.feature.tolist()
    assert (labels[-1] == "3 other features") == (n_features == 2)
    assert number(why.threshold) in words(figure)
    assert percent(frame.share.iloc[0]) in words(figure)


def test_missing_cells_are_neither_inside_nor_outside(fitted, rows):
    new = rows[:2].copy()
    new[0, 1:] = np.nan
    new[0, 0] += 1e4  # outside; all other values are missing
    new[1, 2] = np.nan
    why = fitted.explain(new)
    figure = waterfall(why, 0)
    check_layout(figure)
    assert "outside the range" in words(figure)
    assert "inside the range" not in words(figure).replace("outside", "")
    bars = rectangles(figure.axes[0])
    labels = [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    missing = [label.endswith(" missing") for label in labels]
    assert sum(missing) == 4
    for bar, gone in zip(bars, missing, strict=True):
        assert to_hex(bar.get_facecolor()).upper() == (QUIET if gone else ANOMALY)
    figure = waterfall(why, 1)
    colours = {to_hex(bar.get_facecolor()).upper() for bar in rectangles(figure.axes[0])}
    assert QUIET in colours
    assert ("inside the range" in words(figure).replace("outside", "")) == (NORMAL in colours)


def test_heat_map_shows_the_importances(fitted):
    learned = fitted.explain_global()
    heat, bars = importance_heat_map(learned, n_units=3, n_features=4).axes
    units, order = learned.top_units(3), learned.feature_order[:4]
    cells = np.asarray(heat.images[0].get_array())
    np.testing.assert_array_equal(cells, learned.importance[units][:, order].T)
    texts = [text.get_text() for text in heat.texts]
    assert texts == [f"{value:.2f}" for value in cells.ravel()]
    assert [t.get_text() for t in heat.get_xticklabels()] == [str(unit) for unit in units]
    frame = learned.features_to_frame().head(4)
    assert [bar.get_width() for bar in rectangles(bars)] == frame.importance.tolist()
    assert [t.get_text() for t in heat.get_yticklabels()] == frame.feature.tolist()


def test_histogram_counts_every_score():
    rng = np.random.default_rng(0)
    scores, labels = rng.lognormal(0, 0.3, 200), np.arange(200) >= 150
    figure = score_histogram(scores, 2.0, labels, scores[:50])
    (ax,) = figure.axes
    heights = np.array([bar.get_height() for bar in rectangles(ax)]).reshape(2, -1)
    np.testing.assert_allclose(heights.sum(axis=1), 100.0)
    assert f"{(scores[:150] > 2).sum()} of 150 above" in words(figure)
    assert ax.get_xscale() == "linear"
    assert 2.0 in [line.get_xdata()[0] for line in ax.lines]
    for tail in ([*scores, 1e4], [*scores, 0.0, 1e4]):
        figure = score_histogram(tail, 2.0)
        assert figure.axes[0].get_xscale() == "asinh"
        check_layout(figure)
        total = sum(bar.get_height() for bar in rectangles(figure.axes[0]))
        np.testing.assert_allclose(total, 100.0)
    for few in ([0.3], [0.0], [0.2, 0.2]):
        check_layout(score_histogram(few, 0.1, [], few))


def test_bounds_are_drawn_over_scores(rows):
    detector = DiffInt(**QUICK, decoder="certified").fit(rows)
    certificate = detector.certify(rows[:50] * 2)
    figure = bound_versus_error(certificate, 0.5)
    (ax,) = figure.axes
    at_row, a_priori = (np.ma.getdata(c.get_offsets()) for c in ax.collections)
    np.testing.assert_array_equal(a_priori, np.column_stack([certificate.score, certificate.bound]))
    expected = np.column_stack([certificate.score, certificate.bound_at_row])
    np.testing.assert_array_equal(at_row, expected)
    assert f"proven above: {(certificate.bound > 0.5).sum()} of 50 rows" in words(figure)
    check_layout(bound_versus_error(detector.certify(rows[:1])))


# --- Arguments -----------------------------------------------------------------------------------


def test_bad_arguments(fitted, rows):
    learned, why = fitted.explain_global(), fitted.explain(rows[:3])
    features = fitted.model_.features
    cases = [
        (lambda: why.plot(3), r"row=3 does not exist; 3 rows explained"),
        (lambda: why.plot(1.5), "row=1.5 must be a whole number"),
        (lambda: why.plot(0, 0), "0 features cannot be shown"),
        (lambda: box_projection(learned, rows, unit=32), "unit=32 does not exist; 32 units"),
        (lambda: box_projection(learned, rows, features=["x0", "y"]), "there is no feature 'y'"),
        (lambda: box_projection(learned, rows, features=[0, 9]), "feature=9 does not exist"),
        (lambda: box_projection(learned, rows, features=[0, 0]), "two different ones"),
        (lambda: box_projection(learned, rows, features=[]), "two different ones"),
        (lambda: box_projection(learned, rows, [True]), "anomalies must contain"),
        (lambda: constraint_bars(learned, features, unit="top"), "unit='top' must be"),
        (lambda: constraint_bars(learned, features, n_constraints=0), "0 constraints"),
        (lambda: importance_heat_map(learned, n_units=True), "True units"),
        (lambda: score_histogram([], 1.0), "scores must be"),
        (lambda: score_histogram([1.0, np.nan], 1.0), "scores must be"),
        (lambda: score_histogram([1.0, 2.0], 1.0, [1, 2]), "labels must contain"),
        (lambda: score_histogram(["a"], 1.0), "scores must be .*anomaly_score"),
        (lambda: score_histogram([1.0], 1.0, None, ["a"]), "calibration_scores must be"),
        (lambda: score_histogram([10**400], 1.0), "scores must be"),
        (lambda: score_histogram([1.0], None), "threshold=None must be a finite .*offset_"),
        (lambda: score_histogram([1.0], np.nan), "threshold=nan must be"),
        (lambda: score_histogram([1.0], np.inf), "threshold=inf must be"),
        (lambda: score_histogram([1.0], "high"), "threshold='high' must be"),
        (lambda: box_projection(learned, rows, features=1.5), r"no feature 1\.5; pass names or"),
        (lambda: box_projection(learned, rows, features=[True]), "no feature True; pass names"),
        (lambda: box_projection(learned, rows, features=[None]), "no feature None; pass names"),
        (lambda: box_projection(rows, rows), "cannot draw ndarray; pass a fitted"),
        (lambda: importance_heat_map(why), "cannot draw LocalExplanation"),
        (lambda: constraint_bars(learned), "pass the features of its model"),
        (lambda: constraint_bars(learned, fitted.model_), "pass the features of its model"),
    ]
    for draw, message in cases:
        with pytest.raises(InputError, match=message):
            draw()
    with pytest.raises(ValueError, match="2 features"):
        box_projection(learned, rows[:, :2])


def test_detectors_and_models_are_drawn_like_their_explanation(fitted, rows):
    learned = fitted.explain_global()
    expected = [
        box_projection(learned, rows),
        constraint_bars(learned, fitted.model_.features, unit=1),
        importance_heat_map(learned, 3),
    ]
    for source in (fitted, fitted.model_):
        drawn = [
            box_projection(source, rows),
            constraint_bars(source, unit=1),
            importance_heat_map(source, 3),
        ]
        assert [words(figure) for figure in drawn] == [words(figure) for figure in expected]
    with pytest.raises(NotFittedError):
        importance_heat_map(DiffInt())


def test_bound_versus_error_needs_a_finite_threshold(rows):
    certificate = DiffInt(**QUICK, decoder="certified").fit(rows).certify(rows[:5])
    with pytest.raises(InputError, match="threshold=nan must be a finite number"):
        bound_versus_error(certificate, np.nan)


def test_names_that_are_numbers(rows):
    detector = DiffInt(**QUICK).fit(pandas.DataFrame(rows, columns=[10, 20, 30, 4, 2]))

    def shown(features):
        (ax,) = box_projection(detector, rows, features=features).axes
        return [label.split(":")[0] for label in (ax.get_xlabel(), ax.get_ylabel())]

    assert shown([10, 20]) == ["10", "20"]
    assert shown(30) == ["30", "row"]
    assert shown(["20", 30]) == ["20", "30"]
    assert shown([0, 4]) == ["10", "2"]  # both are numbers of features
    assert shown([10, 4]) == ["10", "4"]
    with pytest.raises(InputError, match="feature=50 does not exist"):
        shown([10, 50])


def test_column_names_of_frames_are_checked(rows):
    frame = pandas.DataFrame(rows, columns=list("abcde"))
    detector = DiffInt(**QUICK).fit(frame)
    box_projection(detector.model_, frame)
    box_projection(detector.model_, rows)
    with pytest.raises(ValueError, match="names"):
        box_projection(detector.model_, frame[list("edcba")])


def test_figures_do_not_use_pyplot_and_show_in_notebooks(fitted, rows):
    import matplotlib.pyplot as plt

    figure = fitted.explain(rows[:1]).plot(0)
    assert plt.get_fignums() == []
    assert figure._repr_png_().startswith(b"\x89PNG")
    tall, wide = figure.get_size_inches()[::-1]
    assert wide == 7.0
    assert tall <= 4.6


def test_importing_explanations_does_not_import_matplotlib():
    script = """
    import sys, diffint, diffint.explain.global_explanation, diffint.explain.local_explanation
    assert "matplotlib" not in sys.modules
    import diffint.plots
    assert "matplotlib.pyplot" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True)


# --- Certified regions ---------------------------------------------------------------------------


def test_a_region_is_drawn_with_its_parts_and_rows(fitted):
    names = fitted.model_.feature_names
    one = fitted.certify_region({names[0]: 90}, None, splits=4, aim="bounds")
    two = fitted.certify_region({names[0]: 90, names[1]: 100}, {names[1]: 150}, splits=4)
    nothing = fitted.certify_region({names[0]: 1e9}, None)
    for certificate in (one, two, nothing):
        figure = certificate.plot()
        check_layout(figure)
        assert "the region" in words(figure)
        drawn = sum(len(c.get_paths()) for c in figure.axes[0].collections)
        assert 1 <= drawn <= certificate.n_boxes
    assert f"{one.n_boxes} parts" in words(one.plot())
    check_layout(two.plot([names[2], names[3]]))
    with pytest.raises(InputError, match="one or two"):
        fitted.certify_region(None, None).plot()
    with pytest.raises(InputError, match="one or two"):
        two.plot([0, 1, 2])


def test_the_region_of_a_category_has_its_values_on_the_axis():
    table = pandas.DataFrame({"cut": ["Ideal", "Fair", "Good"] * 60, "x": np.arange(180.0)})
    detector = DiffInt(**QUICK).fit(table)
    certificate = detector.certify_region({"cut": "Fair", "x": 10}, {"cut": "Fair", "x": 50})
    figure = certificate.plot()
    check_layout(figure)
    assert "Fair" in words(figure)


def test_values_with_dollar_signs_are_no_formulas():
    rng = np.random.default_rng(0)
    price = rng.integers(0, 3, 400)
    table = pandas.DataFrame({"price": np.array(["US$ 5 to US$ 9", "a$\\frac{b$", "free"])[price]})
    table["x"] = price * 10 + rng.normal(size=400)
    why = DiffInt(**QUICK).fit(table).explain(table.head(3))
    for row in range(3):
        figure = waterfall(why, row)
        figure.savefig(io.BytesIO())
        labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
        assert not any("$" in label.replace(r"\$", "") for label in labels)
