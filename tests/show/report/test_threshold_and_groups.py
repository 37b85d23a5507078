"""The data of the threshold slider, of the groups and of the kept columns."""

from __future__ import annotations

import re

import numpy as np
import pytest

from diffint import DiffInt, InputError
from diffint.core.formatting import number
from diffint.show.report import ScoredTable, build_report

from ...conftest import QUICK, make_rows
from .tables import MOMENT, data_of, report_on, scored_table, text_of


def far_from_zero(n_rows):
    x = make_rows(n_rows, 4)
    x[:, 3] += 20 * x[:, 3].std()
    return x


@pytest.fixture(scope="module")
def detector():
    return DiffInt(**QUICK, false_positive_rate=0.05).fit(far_from_zero(2_500)[:2_000])


@pytest.fixture(scope="module")
def table():
    """New rows, 20 of them with a value of 0 in the last feature."""
    x = far_from_zero(2_500)[2_000:]
    x[:20, 3] = 0.0
    return x


@pytest.fixture(scope="module")
def html(detector, table):
    return report_on(detector, table)


def test_each_position_says_what_the_detector_would_flag(detector, table, html):
    slider, scores = data_of(html)["slider"], detector.anomaly_score(table)
    assert slider["positions"][slider["own"]][0] == "5 %"
    rates = [float(position[0].removesuffix(" %")) / 100 for position in slider["positions"]]
    assert rates == sorted(rates)
    assert rates[0] <= 0.005
    assert rates[-1] == 0.2
    last = -1
    for rate, (_, threshold, text, _, place) in zip(rates, slider["positions"], strict=True):
        cut = detector.model_.calibration.threshold(rate)
        n_flagged = int((scores > cut).sum())
        assert threshold == number(cut)
        assert text.startswith(f"Of 500 rows, {n_flagged:,} ")
        by_chance = re.search("; (about|fewer than) (\\d+) normal rows? would be flagged", text)
        assert float(by_chance[2]) == pytest.approx(rate * 500, abs=0.6)
        assert n_flagged >= last
        assert 0 <= place <= 100
        last = n_flagged


def test_each_position_bounds_the_share_of_false_alerts(detector, table, html):
    """The bound of `select`, at any threshold."""
    found, scores = detector.select(table, 0.1), detector.anomaly_score(table)
    seen = []
    for rate, _, text, *_ in data_of(html)["slider"]["positions"]:
        flagged = scores > detector.model_.calibration.threshold(
            float(rate.removesuffix(" %")) / 100
        )
        bound = found.bounds[flagged][np.argmax(found.p_values[flagged])]
        stated = re.search(r"With 95 % confidence.*, at most (\d+) % of the flagged rows are", text)
        if stated:
            assert float(stated[1]) / 100 == pytest.approx(bound, abs=0.006)
        else:
            assert bound == 1.0 and "All flagged rows may be false alerts." in text  # noqa: PT018
        seen.append(bound)
    assert min(seen) < 0.5 < max(seen)


def test_rows_are_shown_at_the_positions_that_flag_them(detector, table, html):
    data = data_of(html)
    scores = scored_table(detector, table).scores
    scores = np.sort(scores[scores > -detector.offset_])[::-1]
    thresholds = [
        detector.model_.calibration.threshold(float(position[0].removesuffix(" %")) / 100)
        for position in data["slider"]["positions"]
    ]
    for row, score in zip(data["rows"], scores, strict=True):
        assert [score > cut for cut in thresholds[: data["slider"]["own"] + 1]] == [
            place >= row[4] for place in range(data["slider"]["own"] + 1)
        ]
    n_shown = len(data["rows"])
    assert data["slider"]["positions"][data["slider"]["own"]][3] == ""
    looser = data["slider"]["positions"][-1]
    n_flagged = int(re.match("Of 500 rows, (\\d+)", looser[2])[1])
    assert looser[3].startswith(f"Shown: {n_shown} of {n_flagged} flagged rows")


def test_positions_are_those_that_the_calibration_can_tell_apart(rows):
    few = DiffInt(**QUICK, false_positive_rate=0.1).fit(rows[:60])
    positions = data_of(report_on(few, rows))["slider"]["positions"]
    assert len({position[1] for position in positions}) == len(positions)
    assert float(positions[0][0].removesuffix(" %")) > 1.5  # 1 of 61 at the least
    few.false_positive_rate = 0.001  # which they do not reach
    slider = data_of(report_on(few, rows))["slider"]
    assert slider["own"] == 0
    few.false_positive_rate = 0.7
    slider = data_of(report_on(few, rows))["slider"]
    assert slider["positions"][-1][0] == "70 %"
    assert slider["own"] == len(slider["positions"]) - 1


def test_a_threshold_from_training_rows_promises_less(rows):
    optimistic = DiffInt.paper(**{**QUICK, "n_members": 1}, false_positive_rate=0.05).fit(rows)
    assert "at least about 15 normal rows would be" in text_of(report_on(optimistic, rows))


def test_groups_have_rows_that_share_a_reason(detector, table, html):
    data = data_of(html)
    ids = [row[0] for row in data["rows"]]
    planted = next(group for group in data["groups"] if group[0] == "x3 = 0")
    assert {ids[place] for place in planted[2]} <= {str(i + 1) for i in range(20)}
    assert len(planted[2]) > 10
    assert "x3 = 0" in planted[1]
    for _, _, places, _ in data["groups"]:
        assert len(places) > 1
        assert places == sorted(places)  # highest score first
    every = [place for group in data["groups"] for place in group[2]]
    assert len(every) == len(set(every))


def test_rows_of_a_group_have_the_reason_they_are_in_it_for(detector, table):
    rows = table.copy()
    rows[:20, 3], rows[:12, 1] = 0.0, 1e3
    data = data_of(report_on(detector, rows))
    found = 0
    for name, _, places, own in data["groups"]:
        features = [one for one in data["names"] if f"{one} " in f"{name} "]
        assert set(map(int, own)) <= set(places)
        for place, brief in own.items():
            assert any(brief.startswith(f"{one} = ") for one in features)
            assert brief != data["rows"][int(place)][6]
            found += 1
    assert found >= 1


def test_a_table_without_flagged_rows_has_a_slider_and_no_groups(detector, table):
    calm = table[detector.anomaly_score(table) <= -detector.offset_]
    data = data_of(report_on(detector, calm))
    assert (data["groups"], data["rows"]) == ([], [])
    assert data["slider"]["positions"][-1][3].startswith("Shown: 0 of")


def test_kept_columns_are_escaped_and_shortened(detector, table):
    scored = scored_table(detector, table)
    n = len(scored.ids)
    kept = {"<b>name</b>": ["</script><img src=x>"] * n, "note": ["long " * 100] * (n - 1) + [""]}
    scored = ScoredTable("t.csv", scored.scores, scored.rows, scored.ids, kept=kept)
    html = build_report(detector, scored, created=MOMENT)
    data = data_of(html)
    assert data["kept"] == list(kept)
    assert data["rows"][0][-1][0] == "</script><img src=x>"
    assert 50 < len(data["rows"][0][-1][1]) <= 120
    assert data["rows"][-1][-1][1] == ""
    assert "<img" not in html
    assert "<b>" not in html
    with pytest.raises(InputError, match="the kept column 'note' has length 1"):
        ScoredTable("t.csv", scored.scores, scored.rows, scored.ids, kept={"note": ["a"]})
