"""Results in notebooks: what is shown, how much of it, and that nothing becomes markup."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pandas
import pytest

from diffint import DiffInt, find_anomalies

from ..conftest import QUICK, make_rows

NAMES = ["<script>alert(1)</script>", "a & b", '"><img src=x>', "Ω", "</table>"]


class Text(HTMLParser):
    """Tags and text of a fragment; every element is closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert not self._open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        assert {name for name, _ in attrs} <= {"style"}
        if tag != "br":
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.text += f"{data} "


@pytest.fixture(scope="module")
def detector():
    frame = pandas.DataFrame(make_rows(), columns=NAMES)
    return DiffInt(**QUICK, decoder="certified", false_positive_rate=0.05).fit(frame)


@pytest.fixture(scope="module")
def table():
    rows = make_rows()[:30]
    rows[:15, 2] *= np.linspace(2, 9, 15)
    index = [f"<b>P-{i}</b>" for i in range(30)]
    return pandas.DataFrame(rows, columns=NAMES, index=index)


def test_an_explanation_shows_the_highest_scores(detector, table):
    why = detector.explain(table)
    shown = Text(why._repr_html_())
    assert f"30 rows explained, {int(why.flagged.sum())} flagged" in shown.text
    highest = np.argsort(-why.score)[:10]
    for i in highest:
        assert why.reasons(i, 3)[0] in shown.text
        assert repr(table.index[i]) in shown.text
    assert "and 20 more" in shown.text
    assert shown.tags.count("tr") == 11
    assert " more" not in Text(detector.explain(table[:3])._repr_html_()).text


def test_the_other_results(detector, table):
    nearest = detector.nearest_normal(table)
    shown = Text(nearest._repr_html_())
    assert nearest.text(int(np.argmax(nearest.score))) in shown.text
    assert f"{int(nearest.flagged.sum())} flagged rows of 30 rows" in shown.text
    certificate = detector.certify(table)
    shown = Text(certificate._repr_html_())
    assert certificate.text(int(np.argmax(certificate.bound))).split("\n")[0] in shown.text
    region = detector.certify_region({"Ω": 0.0}, None)
    assert " ".join(region.text().split()) in " ".join(Text(region._repr_html_()).text.split())
    learned = detector.explain_global()
    shown = Text(learned._repr_html_())
    assert "Learned from 300 rows" in shown.text
    assert f"Pattern {learned.top_units()[0]}" in shown.text


def test_nothing_from_the_table_becomes_markup(detector, table):
    results = (
        detector.explain(table),
        detector.nearest_normal(table),
        detector.certify(table),
        detector.certify_region({NAMES[0]: 0.0}, None),
        detector.explain_global(),
    )
    allowed = {"div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "br"}
    for result in results:
        html = result._repr_html_()
        assert set(Text(html).tags) <= allowed
        assert "<script" not in html


def test_no_flagged_rows_and_no_rows(detector, table):
    calm = table[detector.predict(table) == 1]
    assert "0 flagged rows of" in Text(detector.nearest_normal(calm)._repr_html_()).text
    one = detector.explain(calm[:1])
    assert "1 row explained, 0 flagged" in Text(one._repr_html_()).text


def test_a_drift_shows_what_moved(detector, table):
    drift = detector.drift(table * 5)
    shown = Text(drift._repr_html_())
    assert drift.text() in shown.text
    assert drift.features[0] in shown.text
    assert "script" not in shown.tags


def test_a_search_shows_what_it_found(table):
    found = find_anomalies(table, **QUICK)
    shown = Text(found._repr_html_())
    assert found.text() in shown.text
    assert all(repr(table.index[i]) in shown.text for i in found.order[:10])
    assert shown.text.count("left out of training") == 1 + found.suspects[found.order[:10]].sum()
    assert "and 20 more" in shown.text
    assert "script" not in shown.tags
