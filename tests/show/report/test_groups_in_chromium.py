"""Threshold, groups, links to rows and the search for values in a browser."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

from diffint import DiffInt
from diffint.show.report import ScoredTable, build_report

from ...conftest import QUICK, make_rows
from .tables import MOMENT, data_of

NAMES = ["size", "mean area", "y", "z"]
IDS = "[...document.querySelectorAll('#items .id')].map((e) => e.textContent)"
GROUPS = "[...document.querySelectorAll('#groups .name')].map((e) => e.textContent)"
STATUS = "document.querySelector('#status').textContent"
MEANING = "document.querySelector('#rate-meaning').textContent"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The page and its data: 20 rows with z = 0, and larger sizes."""
    x = make_rows(1_900, 4)
    x[:, 3] += 20 * x[:, 3].std()
    x, new = x[:1_000], x[1_000:]
    detector = DiffInt(**QUICK, false_positive_rate=0.05)
    detector.fit(pandas.DataFrame(x, columns=NAMES))
    new[:20, 3] = 0.0
    new[20:120, 0] += np.linspace(1, 9, 100) * x[:, 0].std()
    scores = detector.anomaly_score(pandas.DataFrame(new, columns=NAMES))
    order = np.argsort(-scores, kind="stable")
    order = order[scores[order] > -detector.offset_]
    kept = {
        "shop": [f"Shop {i % 7}" for i in order],
        "remark": ["<i>odd</i>" if i % 9 == 0 else "" for i in order],
    }
    ids = tuple(f"id-{i}" for i in order)
    html = build_report(
        detector, ScoredTable("new.csv", scores, new[order], ids, kept=kept), created=MOMENT
    )
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(html, encoding="utf-8")
    return path, data_of(html)


@pytest.fixture
def page(started, report):
    started.resize(1280)
    started.prefer("light")
    started.open(report[0])
    return started


@pytest.fixture
def data(report):
    return report[1]


def search(page, text):
    page.click("#search")
    page.evaluate("document.querySelector('#search').select()")
    page.type(text)


def flagged_at(data, position):
    return [row[0] for row in data["rows"] if row[4] <= position]


def test_the_slider_moves_the_line_and_filters_rows_and_groups(page, data):
    own = data["slider"]["own"]
    assert page.evaluate(MEANING) == data["slider"]["positions"][own][2]
    assert page.evaluate("document.querySelector('#reset').hidden")
    groups = page.evaluate(GROUPS)
    page.evaluate("document.querySelector('#rate').focus()")
    page.press("Home")
    rate, threshold, meaning, _, place = data["slider"]["positions"][0]
    strict = flagged_at(data, 0)
    assert 0 < len(strict) < len(data["rows"])
    assert page.evaluate(IDS) == strict[:50]
    assert page.evaluate(MEANING) == meaning
    assert (
        page.evaluate("document.querySelector('#rate-text').textContent")
        == f"{rate} (threshold {threshold})"
    )
    assert page.evaluate("document.querySelector('#rate').ariaValueText") == rate
    assert page.evaluate("document.querySelector('#cut').style.left") == f"{place}%"
    assert float(page.evaluate("document.querySelector('#beyond-cut').getAttribute('x')")) == place
    shown = {
        name for name, _, rows, _ in data["groups"] if any(data["rows"][r][4] == 0 for r in rows)
    }
    assert set(page.evaluate(GROUPS)) <= shown
    page.press("ArrowRight")
    assert page.evaluate(IDS) == flagged_at(data, 1)[:50]
    page.press("End")
    assert page.evaluate(IDS) == flagged_at(data, own)[:50]  # the others are only counted
    note = page.evaluate("document.querySelector('#shown').textContent")
    assert note.startswith(f"Shown: {len(data['rows'])} of ")
    page.click("#reset")
    assert page.evaluate("document.activeElement.id") == "rate"
    assert page.evaluate(GROUPS) == groups
    assert page.problems() == []


@pytest.mark.parametrize("text", ["z = 0", "z=0", "Z =0"])
def test_searching_for_a_value(page, data, text):
    j = data["names"].index("z")
    zero = [row[0] for row in data["rows"] if any(b[0] == j and b[2] == "0" for b in row[8])]
    assert 10 < len(zero) <= 20
    search(page, text)
    assert page.evaluate(IDS) == zero
    assert page.evaluate(STATUS) == f"{len(zero)} of {len(data['rows'])} rows match."
    assert page.problems() == []


def test_searching_for_names_with_spaces_numbers_and_kept_cells(page, data):
    j = data["names"].index("mean area")
    value = next(b[2] for b in data["rows"][0][8] if b[0] == j)
    search(page, f"mean area={value.replace(',', '').replace('−', '-')}")
    assert data["rows"][0][0] in page.evaluate(IDS)
    search(page, "shop = shop 3")
    shop = data["kept"].index("shop")
    assert page.evaluate(IDS) == [r[0] for r in data["rows"] if r[-1][shop] == "Shop 3"][:50]
    search(page, "<i>odd")
    assert page.evaluate(IDS) == [r[0] for r in data["rows"] if r[-1][1]][:50]
    search(page, "z = 12345")
    assert page.evaluate(STATUS) == "No row matches."
    assert page.evaluate("document.querySelector('#groups-part').hidden")


def test_a_group_opens_to_its_rows(page, data):
    name, text, places, own = data["groups"][0]
    summary = "document.querySelector('#groups summary')"
    words = page.evaluate(f"{summary}.innerText")
    assert name in words
    assert text in words
    assert f"{len(places)} rows" in words
    high, low = (data["rows"][place][1] for place in (places[0], places[-1]))
    assert f"scores {low} to {high}" in words
    page.evaluate(f"{summary}.focus()")
    page.press("Enter")
    ids = "[...document.querySelectorAll('.rows-of-group .id')].map((e) => e.textContent)"
    assert page.evaluate(ids) == [data["rows"][place][0] for place in places][:20]
    reasons = "[...document.querySelectorAll('.rows-of-group .reason')].map((e) => e.textContent)"
    shown = [own.get(str(place), data["rows"][place][6]) for place in places][:20]
    assert page.evaluate(reasons) == shown
    page.press("Tab")
    page.press("Enter")
    assert page.evaluate("document.querySelectorAll('.rows-of-group .why').length") == 1
    cells = page.evaluate("document.querySelector('.rows-of-group .kept-cells').innerText")
    assert data["rows"][places[0]][-1][0] in cells
    search(page, data["rows"][places[0]][0])
    assert f"1 of {len(places)} rows" in page.evaluate(f"{summary}.innerText")
    assert page.problems() == []


def test_example_links_open_rows_also_those_not_drawn_yet(page, data):
    assert len(data["rows"]) > 60
    page.click("[data-key=score]")  # the highest score is last now, far down the list
    page.click("#groups .examples a")
    row_id = page.evaluate("document.querySelector('#groups .examples a').textContent")
    opened = "[...document.querySelectorAll('#items details[open] .id')].map((e) => e.textContent)"
    assert page.evaluate(opened) == [row_id]
    assert page.evaluate("document.activeElement.querySelector('.id').textContent") == row_id
    assert page.evaluate("location.hash").startswith("#row-")
    assert page.problems() == []


def test_rows_in_no_group_are_counted(page, data):
    grouped = {place for group in data["groups"] for place in group[2]}
    alone = len(data["rows"]) - len(grouped)
    text = page.evaluate("document.querySelector('#alone').textContent")
    expected = {0: "", 1: "1 row is in no group."}.get(alone, f"{alone} rows are in no group.")
    assert text == expected


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_fits_a_phone_with_opened_groups(started, report, scheme):
    started.resize(380, 800)
    started.prefer(scheme)
    started.open(report[0])
    started.evaluate("document.querySelectorAll('#groups details').forEach((d) => d.open = true)")
    started.settle()
    started.evaluate("document.querySelectorAll('li details').forEach((d) => d.open = true)")
    started.settle()
    assert started.evaluate("document.documentElement.scrollWidth") <= 380
    assert started.problems() == []


def test_printing_shows_groups_and_the_meaning_of_the_threshold(page):
    assert page.pdf().startswith(b"%PDF")
    assert page.problems() == []
