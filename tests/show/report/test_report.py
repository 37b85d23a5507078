"""The report agrees with the detector, and no text of a table becomes markup."""

from __future__ import annotations

import base64
import hashlib
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pandas
import pytest

from diffint import DiffInt, InputError
from diffint.core.formatting import number, percent, printable
from diffint.show.report import ScoredTable, build_report
from diffint.show.report.page import headline

from ...conftest import QUICK, make_rows
from .tables import MOMENT, PAYLOADS, data_of, report_on, scored_table, text_of

SCRIPT_TAG = "<script>alert(1)</script>"


class Outline(HTMLParser):
    """Tags and attributes of a page; checks that every element is closed."""

    EMPTY = ("meta", "link", "input", "path", "rect")

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        assert not self._open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), f"{tag} has {name}"
            if name == "id":
                self.ids.append(value)
            if name in ("href", "src"):
                self.links.append(value)
        if tag not in self.EMPTY:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag


@pytest.fixture(scope="module")
def rows_with_anomalies(rows):
    """The training rows and 30 anomalies."""
    anomalies = rows[:30].copy()
    anomalies[:, 2] *= np.linspace(1.5, 9.0, 30)
    return np.vstack([rows, anomalies])


@pytest.fixture(scope="module")
def html(fitted, rows_with_anomalies):
    return report_on(fitted, rows_with_anomalies)


def test_page_is_valid_and_loads_nothing(html):
    outline = Outline(html)
    assert len(outline.ids) == len(set(outline.ids))
    assert all(link.startswith("#") or link == "data:," for link in outline.links)
    assert {link[1:] for link in outline.links if link.startswith("#")} <= set(outline.ids)
    assert "http://" not in html.replace("http-equiv", "")
    assert "https://" not in html
    assert "innerHTML" not in html
    assert outline.tags.count("script") == 2


def test_number_of_flagged_rows(html, fitted, rows_with_anomalies):
    scores = fitted.anomaly_score(rows_with_anomalies)
    n_flagged = int((scores > -fitted.offset_).sum())
    text = text_of(html)
    assert f"{n_flagged} of 330 rows are flagged" in text
    assert f"above {number(-fitted.offset_)}" in text
    assert "At most 5 % of normal rows score higher" in text
    assert "about 16 normal rows would be flagged by chance" in text
    assert "2026-03-01 14:05 UTC" in text
    assert "some table.csv" in text
    assert len(data_of(html)["rows"]) == n_flagged


def test_rows_agree_with_the_explanation(html, fitted, rows_with_anomalies):
    scored, data = scored_table(fitted, rows_with_anomalies), data_of(html)
    why, nearest = fitted.explain(scored.rows), fitted.nearest_normal(scored.rows)
    frame = why.to_frame()
    for i, row in enumerate(data["rows"]):
        row_id, score, p_value, p_text, level, head, brief, reasons, *more = row
        bars, rest, cut, normal_if, kept = more
        assert (level <= data["slider"]["own"], brief, kept) == (True, why.brief(i, 1), [])
        assert row_id == scored.ids[i]
        assert (score, p_text) == (number(why.score[i]), number(why.p_value[i], 2))
        assert p_value == why.p_value[i]
        assert head.lower() == why.headline(i).removeprefix(f"Row {i}: ").lower()
        names = [data["names"][j] if j >= 0 else "" for j, _ in reasons]
        found = [name + text for name, (_, text) in zip(names, reasons, strict=True)]
        assert found == why.reasons(i, 3)
        lines = frame[frame.row == i]
        assert [data["names"][bar[0]] for bar in bars] == lines.feature.tolist()[: len(bars)]
        np.testing.assert_allclose(
            [bar[1] for bar in bars], lines.share.to_numpy()[: len(bars)], atol=5.1e-5
        )
        assert sum(bar[1] for bar in bars) + rest == pytest.approx(1, abs=1e-3)
        assert cut == pytest.approx(why.threshold / why.score[i], abs=1e-4)
        assert f"Row {i}{normal_if}" == nearest.text(i)


def test_learned_section_agrees_with_explain_global(html, fitted):
    learned, text = fitted.explain_global(), text_of(html)
    for line in learned.features_to_frame().itertuples():
        assert f"{line.feature} {line.importance:.2f}" in text
    for line in learned.to_frame(3, 4).itertuples():
        assert f"Pattern {line.unit} " in text
        j = learned.feature_names.index(line.feature)
        assert f"{line.feature} {learned.constraint_text(line.unit, j)}" in text
        assert f"Holds for {percent(line.coverage)}" in text
        assert percent(line.joint_coverage) in text


def test_training_section(html, fitted):
    text = text_of(html)
    assert "Trained on 300 rows" in text
    assert "5 features" in text
    for name, value in fitted.model_.config.to_dict().items():
        assert (
            f"{name} {value:g}" in text if isinstance(value, float) else f"{name} {value}" in text
        )


def test_the_page_says_what_the_score_of_this_model_is(html, rows):
    words = "how far the row is from the nearest kept training row", "A missing value counts"
    assert all(word in text_of(html) for word in words)
    plain = DiffInt(**{**QUICK, "epochs": 1}, kept_rows=0, missing="ignored").fit(rows)
    text = text_of(report_on(plain, rows))
    assert not any(word in text for word in words)
    assert "A missing value adds nothing." in text


def test_the_same_inputs_give_the_same_page(html, fitted, rows_with_anomalies):
    assert report_on(fitted, rows_with_anomalies) == html


def test_markup_in_names_ids_and_source_is_text(rows):
    names = [SCRIPT_TAG, '"><img src=x onerror=alert(1)>', "a & b", "{{ 7 * 7 }}", "</style><b>'"]
    frame = pandas.DataFrame(rows, columns=names)
    detector = DiffInt(**QUICK, false_positive_rate=0.05).fit(frame)
    anomalies = rows[:5] * 7
    scores = detector.anomaly_score(pandas.DataFrame(anomalies, columns=names))
    ids = (SCRIPT_TAG, "</script>", "<!--", "]]>", "\u2028")
    scored = ScoredTable(SCRIPT_TAG, scores, anomalies, ids)
    html = build_report(detector, scored, created=MOMENT)
    outline = Outline(html)
    assert outline.tags.count("script") == 2
    assert not {"img", "b"} & set(outline.tags)
    assert SCRIPT_TAG not in html
    data = data_of(html)
    assert data["names"] == names
    assert [row[0] for row in data["rows"]] == [*scored.ids[:-1], r"\u2028"]
    assert "{{ 7 * 7 }}" in text_of(html)


@pytest.mark.parametrize("shift", range(0, len(PAYLOADS), 5))
def test_no_payload_becomes_markup(rows, html, shift):
    names = [*PAYLOADS, *PAYLOADS][shift : shift + 5]
    frame = pandas.DataFrame(rows, columns=names)
    detector = DiffInt(**{**QUICK, "epochs": 1}, false_positive_rate=0.05).fit(frame)
    anomalies = np.tile(rows[:1], (len(PAYLOADS), 1)) * 7
    scores = detector.anomaly_score(pandas.DataFrame(anomalies, columns=names))
    source = PAYLOADS[shift]
    page = build_report(detector, ScoredTable(source, scores, anomalies, PAYLOADS), created=MOMENT)
    hostile, harmless = Outline(page), Outline(html)
    assert set(hostile.tags) == set(harmless.tags)
    assert set(hostile.links) == set(harmless.links)
    for tag in ("script", "style", "meta", "link", "title", "body"):
        assert hostile.tags.count(tag) == harmless.tags.count(tag)
    assert data_of(page)["names"] == [printable(name) for name in names]
    assert [row[0] for row in data_of(page)["rows"]] == [printable(name) for name in PAYLOADS]


def test_the_policy_allows_only_the_own_script_and_styles(html):
    policy = re.search('http-equiv="Content-Security-Policy" content="([^"]*)"', html)[1]
    own = {
        tag: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for tag, text in re.findall("<(script|style)>(.*?)</", html, re.DOTALL)
    }
    assert dict(part.split(" ", 1) for part in policy.split("; ")) == {
        "default-src": "'none'",
        "img-src": "data:",
        "style-src": f"'sha256-{own['style']}'",
        "script-src": f"'sha256-{own['script']}'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert " style=" not in html


def test_report_on_a_large_table_is_small():
    """A thousand rows take less than 2 MB; fewer are shown here, as explaining them takes time."""
    x = make_rows(10_000, 30, seed=1)
    detector = DiffInt(**{**QUICK, "epochs": 1}, false_positive_rate=0.05).fit(x[:2_000])
    scores = detector.anomaly_score(x)
    order = np.argsort(-scores, kind="stable")[:100]
    detector.false_positive_rate = 0.5
    scored = ScoredTable("large.csv", scores, x[order], tuple(f"record-{i:07}" for i in order))
    html = build_report(detector, scored, created=MOMENT)
    assert len(data_of(html)["rows"]) == 100
    assert len(html.encode()) < 100_000 + 100 * 1_900
    n_flagged = int((scores > -detector.offset_).sum())
    shown = f"Shown: 100 of {n_flagged:,} flagged rows, those with the highest scores."
    assert shown in text_of(html)


def test_nothing_flagged(fitted, rows):
    calm = rows[fitted.anomaly_score(rows) <= -fitted.offset_]
    html = report_on(fitted, calm)
    Outline(html)
    assert f"None of {len(calm)} rows is flagged" in text_of(html)
    assert "No row scores above the threshold" in text_of(html)
    assert data_of(html)["rows"] == []


def test_empty_table(fitted):
    html = build_report(
        fitted, ScoredTable("empty.csv", np.empty(0), np.empty((0, 5)), ()), created=MOMENT
    )
    assert "No rows were scored" in text_of(html)


@pytest.mark.parametrize(
    ("n_flagged", "n_rows", "words"),
    [
        (12, 355, "12 of 355 rows are flagged"),
        (1, 355, "1 of 355 rows is flagged"),
        (1, 1, "1 of 1 row is flagged"),
        (0, 1, "None of 1 row is flagged"),
        (2_000, 1_000_000, "2,000 of 1,000,000 rows are flagged"),
    ],
)
def test_headlines(n_flagged, n_rows, words):
    assert headline(n_flagged, n_rows) == words


def test_labels_add_only_one_sentence(fitted, rows_with_anomalies, html):
    labels = np.repeat([0, 1], [300, 30])
    with_labels = report_on(fitted, rows_with_anomalies, labels=labels)
    assert "AUROC" not in html
    assert "AUROC" in text_of(with_labels)
    assert "of 30 rows labelled as anomalies and" in text_of(with_labels)
    assert data_of(with_labels) == data_of(html)
    assert "AUROC" not in report_on(fitted, rows_with_anomalies, labels=np.zeros(330))


def test_one_feature():
    x = np.random.default_rng(0).normal(size=(200, 1))
    detector = DiffInt(**QUICK, false_positive_rate=0.05).fit(x)
    html = report_on(detector, np.vstack([x, [[50.0]]]))
    Outline(html)
    assert data_of(html)["rows"][0][0] == "201"


def test_missing_values_constants_and_empty_columns():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 6))
    x[rng.random(x.shape) < 0.2] = np.nan
    x[:, 1], x[:, 2], x[:, 3] = 7.0, np.nan, rng.integers(0, 3, 200)
    with pytest.warns(UserWarning, match="no value in the training rows"):
        detector = DiffInt(**QUICK, false_positive_rate=0.05).fit(x)
    new = x[:20].copy()
    new[:, 0], new[:5, 1], new[3] = 40.0, 8.0, np.nan
    html = report_on(detector, new)
    Outline(html)
    text = text_of(html)
    assert "Constant in training: x1" in text
    assert "nan" not in text.lower()
    assert "missing" in html


def test_huge_and_tiny_values():
    x = make_rows(200, 3) * np.array([1e-200, 1.0, 1e200])
    detector = DiffInt(**QUICK, false_positive_rate=0.05).fit(x)
    Outline(report_on(detector, np.vstack([x, 3 * x[:3]])))


def test_long_names_and_names_that_are_not_utf8(rows):
    names = [f"{'a very long name ' * 20}{i}" for i in range(5)]
    detector = DiffInt(**QUICK, false_positive_rate=0.05).fit(pandas.DataFrame(rows, columns=names))
    shown = scored_table(detector, rows * 1.2)
    ids = (*shown.ids[:-1], "a file that is not UTF-8: \udcff")
    html = build_report(
        detector, ScoredTable("\udcff.csv", shown.scores, shown.rows, ids), created=MOMENT
    )
    html.encode("utf-8")
    assert names[0] in html
    for row in data_of(html)["rows"]:
        for _, text in row[7]:  # what follows the name, which the page puts before it
            assert not text.startswith("a very long")


def test_optimistic_and_unreachable_thresholds_are_explained(rows):
    optimistic = DiffInt.paper(**{**QUICK, "n_members": 1}, false_positive_rate=0.05).fit(rows)
    assert "expect a larger share of new normal rows" in text_of(report_on(optimistic, rows * 1.2))
    assert "it is optimistic here" in text_of(report_on(optimistic, rows))
    few = DiffInt(**QUICK, false_positive_rate=0.001).fit(rows)
    assert "too few to guarantee" in text_of(report_on(few, rows * 1.2))


@pytest.mark.parametrize(
    "more",
    [
        {"ids": ("1",)},
        {"scores": np.zeros((2, 2))},
        {"labels": np.zeros(3)},
        {"scores": np.zeros(1), "labels": None},
    ],
)
def test_inconsistent_parts_raise(more):
    given = {"scores": np.zeros(2), "rows": np.zeros((2, 3)), "ids": ("1", "2")}
    with pytest.raises(InputError):
        ScoredTable("table.csv", **{**given, **more})


def test_importing_the_report_imports_nothing_heavy():
    code = (
        "import diffint.report, sys; "
        "assert not {'jinja2', 'matplotlib', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
