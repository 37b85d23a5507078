"""The report in a browser: sorting, searching, opening rows, dark mode, phone and print."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import numpy as np
import pandas
import pytest

from diffint import DiffInt
from diffint.show.report import ScoredTable, build_report

from ...conftest import QUICK, make_rows
from .tables import MOMENT, PAYLOADS, data_of

NAMES = ["<script>alert(1)</script>", "amount", "a name that is long " * 8, "Ω", "rate of change"]
N_ROWS = 120

IDS = "[...document.querySelectorAll('#items .id')].map((e) => e.textContent)"
OPENED = "document.querySelectorAll('#items details[open]').length"
TOPS = "[...document.querySelectorAll('#items .reason')].map((e) => e.textContent.split(' = ')[0])"
SPILLS = (
    "[...document.querySelectorAll('body *')].filter((e) => !e.closest('.skip, .unseen') && "
    "e.getBoundingClientRect().right > innerWidth + 0.5).map((e) => e.outerHTML.slice(0, 90))"
)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The folder of a report with flagged rows and one without, and the data of the first."""
    folder = tmp_path_factory.mktemp("reports")
    x = make_rows(300, len(NAMES))
    detector = DiffInt(**QUICK, false_positive_rate=0.05)
    detector.fit(pandas.DataFrame(x, columns=NAMES))
    anomalies = x[:N_ROWS] + np.linspace(1, 9, N_ROWS)[:, None] * x.std(axis=0) * ([1, 9, 0, 5, 3])
    scores = detector.anomaly_score(pandas.DataFrame(anomalies, columns=NAMES))
    order = np.argsort(-scores, kind="stable")
    order = order[scores[order] > -detector.offset_]
    ids = [f"id-{i}" for i in order]
    ids[1], ids[2] = "<img src=x onerror=alert(1)>", "long-" * 60
    full = build_report(
        detector, ScoredTable("anomalies.csv", scores, anomalies[order], tuple(ids)), created=MOMENT
    )
    nothing = ScoredTable("calm.csv", np.full(20, 1e-3), np.empty((0, len(NAMES))), ())
    calm = build_report(detector, nothing, created=MOMENT)
    (folder / "full.html").write_text(full, encoding="utf-8")
    (folder / "calm.html").write_text(calm, encoding="utf-8")
    return folder, data_of(full)


@pytest.fixture
def page(started, pages):
    """The report with flagged rows, newly opened in a wide window."""
    started.resize(1280)
    started.prefer("light")
    started.open(pages[0] / "full.html")
    return started


@pytest.fixture
def data(pages):
    return pages[1]


def test_rows_are_drawn_without_console_errors(page, data):
    n_rows = len(data["rows"])
    assert n_rows > 60
    assert page.evaluate(IDS) == [row[0] for row in data["rows"][:50]]
    page.click("#more")
    assert len(page.evaluate(IDS)) == min(n_rows, 100)
    assert page.evaluate("document.activeElement.localName") == "summary"
    page.click("#all")
    assert page.evaluate(OPENED) == min(n_rows, 100)
    assert (
        page.evaluate("document.querySelector('#items').querySelectorAll('img, script').length")
        == 0
    )
    assert page.evaluate("document.querySelector('#all').textContent") == "Close all"
    assert page.problems() == []


def test_sorting(page, data):
    by_rank = [row[0] for row in data["rows"]]
    page.click("[data-key=score]")
    assert page.evaluate(IDS) == by_rank[::-1][:50]
    page.click("[data-key=p]")
    order = sorted(range(len(by_rank)), key=lambda i: (data["rows"][i][2], i))
    assert page.evaluate(IDS) == [by_rank[i] for i in order][:50]
    page.click("[data-key=id]")
    numbered = [row_id for row_id in page.evaluate(IDS) if row_id.startswith("id-")]
    assert numbered == sorted(numbered, key=lambda row_id: int(row_id[3:]))
    page.click("[data-key=reason]")
    pressed = (
        "[...document.querySelectorAll('.sorts [aria-pressed=true]')].map((e) => e.dataset.key)"
    )
    assert page.evaluate(pressed) == ["reason"]
    label = "document.querySelector('[data-key=reason]').getAttribute('aria-label')"
    assert page.evaluate(label) == "Top reason, sorted ascending"
    first = [name for name, _ in groupby(page.evaluate(TOPS))]
    page.click("[data-key=reason]")
    last = [name for name, _ in groupby(page.evaluate(TOPS))]
    assert first[0] != last[0]
    for names in (first, last):  # rows with the same feature are together
        assert len(names) == len(set(names))
    assert page.problems() == []


def test_searching(page, data):
    some = data["rows"][10][0]
    page.click("#search")
    page.type(some.upper())
    found = page.evaluate(IDS)
    assert some in found
    assert all(some in row_id for row_id in found)
    page.evaluate("document.querySelector('#search').select()")
    page.type("amount")
    about = [r[0] for r in data["rows"] if any(data["names"][bar[0]] == "amount" for bar in r[8])]
    assert page.evaluate(IDS) == about[:50]
    page.evaluate("document.querySelector('#search').select()")
    page.type("nothing like this")
    assert page.evaluate(IDS) == []
    assert page.evaluate("document.querySelector('#status').textContent") == "No row matches."
    assert page.problems() == []


def test_opening_a_row_by_click(page, data):
    page.click("#items summary")
    assert page.evaluate(OPENED) == 1
    text = page.evaluate("document.querySelector('#items .why').innerText")
    _, _, _, _, _, head, _, reasons, bars, _, _, normal_if, _ = data["rows"][0]
    assert head in text
    for feature, reason in reasons:
        assert " ".join((data["names"][feature] + reason).split()) in " ".join(text.split())
    assert f"Row {data['rows'][0][0]}{normal_if}" in text
    n_bars = page.evaluate("document.querySelectorAll('#items .fall .bar').length")
    assert n_bars == len(bars) + (len(bars) < len(NAMES))
    page.click("#items summary")
    assert page.evaluate(OPENED) == 0
    assert page.problems() == []


def test_opening_a_row_by_keyboard(page):
    page.evaluate("document.querySelector('.sorts button:last-of-type').focus()")
    page.press("Tab")
    assert page.evaluate("document.activeElement === document.querySelector('#items summary')")
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) == "solid"  # the focus is visible
    page.press("Enter")
    assert page.evaluate("document.querySelectorAll('#items .why').length") == 1
    page.press("Space")
    assert page.evaluate(OPENED) == 0
    page.press("Tab")
    page.press("Space")
    assert page.evaluate("document.querySelectorAll('#items details')[1].open")


def test_dark_mode(page):
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.click("#theme")
    dark = page.evaluate(paper)
    assert (light, dark) == ("rgb(255, 255, 255)", "rgb(21, 24, 28)")
    assert page.evaluate("document.querySelector('#theme').ariaPressed") == "true"
    page.click("#theme")
    assert page.evaluate(paper) == light
    page.evaluate("delete document.documentElement.dataset.theme")
    page.prefer("dark")
    assert page.evaluate(paper) == dark


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(page, scheme):
    """Every text has a contrast of at least 4.5 with its background, as WCAG requires."""
    page.prefer(scheme)
    page.click("#items summary")
    lowest = page.evaluate(
        """(() => {
          const numbers = (c) => (c.match(/[\\d.]+/g) ?? []).map(Number);
          const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
            .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
            .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
          const behind = (e) => {
            for (; e; e = e.parentElement) {
              const c = numbers(getComputedStyle(e).backgroundColor);
              if (c.length === 3) return c;
            }
          };
          const own = (e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
          return Math.min(...[...document.querySelectorAll('body *')]
            .filter((e) => !/^(script|noscript|style)$/.test(e.localName) && own(e))
            .map((e) => [light(numbers(getComputedStyle(e).color)), light(behind(e))])
            .map(([a, b]) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)));
        })()"""
    )
    assert lowest >= 4.5


@pytest.mark.parametrize("name", ["full.html", "calm.html"])
def test_fits_a_phone(started, pages, name):
    started.resize(380, 800)
    started.open(pages[0] / name)
    started.evaluate("document.querySelector('#all')?.click()")
    started.evaluate("document.querySelector('.plain').open = true")
    started.settle()
    assert started.evaluate("document.documentElement.scrollWidth") <= 380
    assert started.evaluate(SPILLS) == []
    assert started.problems() == []


def test_printing_opens_the_rows_of_a_short_list(page):
    page.click("#search")
    page.type("id-11")
    shown = len(page.evaluate(IDS))
    assert 0 < shown < 50
    page.evaluate("window.openedInPrint = 0")
    page.evaluate(f"addEventListener('beforeprint', () => {{ window.openedInPrint = {OPENED}; }})")
    assert page.pdf().startswith(b"%PDF")
    assert page.evaluate("window.openedInPrint") == shown
    assert page.evaluate(OPENED) == 0


def test_without_javascript_the_summary_is_shown(started, pages):
    started.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        started.call("Page.navigate", url=(Path(pages[0]) / "full.html").as_uri())
        started.wait("document.readyState === 'complete'")
        text = started.evaluate("document.body.innerText")
    finally:
        started.call("Emulation.setScriptExecutionDisabled", value=False)
    assert "rows are flagged" in text
    assert "needs JavaScript" in text
    assert "Sort by" not in text
    assert "Dark mode" not in text


def test_no_payload_acts_in_an_opened_sorted_searched_and_printed_page(started, tmp_path):
    x = make_rows(200, len(PAYLOADS))
    frame = pandas.DataFrame(x, columns=PAYLOADS)
    detector = DiffInt(**{**QUICK, "epochs": 1}, false_positive_rate=0.05).fit(frame)
    anomalies = 7 * x[: len(PAYLOADS)]
    scores = detector.anomaly_score(pandas.DataFrame(anomalies, columns=PAYLOADS))
    scored = ScoredTable(PAYLOADS[6], scores, anomalies, PAYLOADS)
    page = tmp_path / "<img src=x onerror=fired=1>.html"
    page.write_text(build_report(detector, scored, created=MOMENT), encoding="utf-8")
    started.resize(1280)
    started.open(page)
    elements = "[...new Set([...document.querySelectorAll('*')].map((e) => e.localName))]"
    before = set(started.evaluate(elements))
    started.click("#all")
    assert started.evaluate(OPENED) == len(PAYLOADS)
    for key in ("id", "score", "p", "reason"):
        started.click(f"[data-key={key}]")
    for text in ("<script>", "onerror", "' onmouseover='"):
        started.click("#search")
        started.evaluate("document.querySelector('#search').select()")
        started.type(text)
        assert started.evaluate(IDS)
    started.pdf()
    drawn = {"ol", "div", "strong", "details", "summary", "h4"}  # in the opened rows
    assert set(started.evaluate(elements)) <= before | drawn
    handlers = "[...document.querySelectorAll('*')].flatMap((e) => e.getAttributeNames())"
    assert not [name for name in started.evaluate(handlers) if name.startswith("on")]
    assert started.evaluate("typeof fired") == "undefined"
    assert started.evaluate("document.title").endswith(f"– {PAYLOADS[6]}")
    assert started.problems() == []


def test_the_policy_stops_what_should_ever_become_markup(page):
    page.evaluate(
        """document.body.insertAdjacentHTML("beforeend",
          "<p id=planted style='color: rgb(1, 2, 3)'>x</p><img src=x onerror='fired = 1'>"
          + "<button id=handler onclick='fired = 2'>y</button>"
          + "<a id=link href='javascript:fired = 3'>z</a><img src='https://example.invalid/i.png'>")"""
    )
    page.click("#handler")
    page.click("#link")
    page.settle()
    assert page.evaluate("typeof fired") == "undefined"
    color = "getComputedStyle(document.querySelector('#planted')).color"
    assert page.evaluate(color) != "rgb(1, 2, 3)"
    assert page.problems()  # each is reported in the console
