"""Every figure in README and docs that a results file holds is the one of that file, and of what
the page says it is.

Where this fails, the results file is right and the text is to be mended. A new figure in README or
in the results of docs/benchmark.md needs a claim (or a line in NOT_RESULTS).
"""

from __future__ import annotations

import re

import pytest

from . import benchmark_claims, guide_claims
from .claims import Claim, prose
from .results import RESULTS, ROOT, percent, ranks_on, selected

CLAIMS = [*benchmark_claims.CLAIMS, *guide_claims.CLAIMS]

NOT_RESULTS = {
    "README.md": [
        "Python 3.11",
        '"z = 2.54, but 99 % of rows with x 4.57–4.72 (here 4.64) have 2.72–3 (from 507 training '
        'rows); 2.81 would fit"',
    ],
    "docs/benchmark.md": [
        "below 0.05",
        "PCA divides by a variance that is 0 or 1e-16, depending on rounding (with 0, every score "
        "is infinite and ROC-AUC is 0.5)",
    ],
}
FIGURE = re.compile(r"\d[\d,]*\.\d+|\d[\d,]*(?= ?%)|\d·10⁻")


@pytest.mark.parametrize(
    "one", CLAIMS, ids=[f"{one.page.removesuffix('.md')}-{i}" for i, one in enumerate(CLAIMS)]
)
def test_the_page_says_what_the_results_say(one: Claim) -> None:
    assert one.written() in prose(one.page), f"{one.page} does not say: {one.written()}"
    assert not one.not_said(), f"{one.page} does not say what this is of: {one.written()}"


@pytest.mark.parametrize(
    ("moved_to", "what"),
    [
        ("the 18 tables of the reporting half, fair regime, ten seeds: KNN {} by ROC-AUC", ""),
        ("the 18 tables of the reporting half, fair regime, ten seeds: LUNAR {} by ROC-AUC", "KNN"),
        ("the 18 tables of the reporting half, fair regime, ten seeds: KNN {} by AP", "roc_auc"),
        ("on 18 of all tables, fair regime, ten seeds: KNN {} by ROC-AUC", "report"),
        ("18 tables, reporting half, paper regime, ten seeds: KNN {} by ROC-AUC", "fair regime"),
        ("17 tables, reporting half, fair regime, ten seeds: KNN {} by ROC-AUC", "18 tables"),
        ("18 tables, reporting half, fair regime, three seeds: KNN {} by ROC-AUC", "10 seeds"),
    ],
)  # fmt: skip
def test_a_figure_in_a_sentence_about_something_else_is_refused(moved_to: str, what: str) -> None:
    figure = ranks_on(selected("lead/selection.csv", "adbench", "report"), "KNN")[0]
    assert Claim("README.md", moved_to, (figure,)).not_said() == ([what] if what else [])


def test_a_figure_of_a_page_of_results_is_of_its_row_and_column() -> None:
    figure = percent("explain_quality.md", "## Top-1", "KernelSHAP", "1 broken")
    said = "if a value contradicts the others KernelSHAP has {:.0f} %"
    assert Claim("README.md", said, (figure,)).not_said() == []
    moved = "if a value is out of range OutlierTree has {:.0f} %"
    assert Claim("README.md", moved, (figure,)).not_said() == ["1 broken", "KernelSHAP"]


@pytest.mark.parametrize("page", NOT_RESULTS)
def test_every_figure_is_checked_or_listed(page: str) -> None:
    text = prose(page)
    checked = [match.span() for match in re.finditer("`[^`]*`", text)]
    for one in CLAIMS:
        if one.page == page and one.written() in text:
            checked += one.figures_in(text)
    for phrase in NOT_RESULTS[page]:
        assert phrase in text, f"{page} does not say {phrase!r} any more: remove it from the list"
        checked.append((text.index(phrase), text.index(phrase) + len(phrase)))
    begin = text.index("## Results") if page == "docs/benchmark.md" else 0
    unchecked = [
        text[max(match.start() - 50, 0) : match.end() + 20]
        for match in FIGURE.finditer(text, begin)
        if not any(start <= match.start() < end for start, end in checked)
    ]
    assert not unchecked, f"no claim holds these figures of {page}: {unchecked}"


def test_pages_of_an_earlier_configuration_say_so_and_are_listed() -> None:
    text = (ROOT / "docs" / "recommended.md").read_text().split("Made before it")[1]
    listed = set(re.findall(r"\]\(results/([^)]*)\)", text))
    pages = {path.relative_to(RESULTS).as_posix(): path for path in RESULTS.rglob("*.md")}
    says_so = {name for name, path in pages.items() if "measured with an earlier configuration**"
               in path.read_text().split("\n\n")[1].lower()}  # fmt: skip
    assert says_so == listed
