"""The committed pages are those of the committed rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from diffint.studies.overview import overview_page
from diffint.studies.page import claims_table
from diffint.studies.registry import NAMES, study_named
from diffint.studies.row_file import FULL, read_rows
from diffint.studies.run import run_study
from diffint.studies.study import Setup

from .tiny import STUDY

DOCS = Path(__file__).parents[2] / "docs"
RESULTS = DOCS / "results" / "studies"
MEASURED = [name for name in NAMES if (RESULTS / f"{name}.csv").exists()]


def test_the_overview_is_that_of_the_committed_rows():
    assert (DOCS / "studies.md").read_text() == overview_page(RESULTS, "results/studies")


@pytest.mark.parametrize("name", MEASURED)
def test_a_page_is_that_of_its_rows(name):
    study = study_named(name)
    rows = list(read_rows(RESULTS / f"{name}.csv", study).values())
    assert {row["run"] for row in rows} == {FULL}
    findings, page = study.report(rows), (RESULTS / f"{name}.md").read_text()
    assert claims_table(findings.claims) in page
    assert findings.text.strip() in page
    assert f"diffint study {name}" in page
    assert (RESULTS / f"{name}.svg").stat().st_size > 1000


def test_a_bound_that_no_score_can_violate_is_called_vacuous():
    study = study_named("certify")
    rows = list(read_rows(RESULTS / "certify.csv", study).values())

    def verdict():
        claims = study.report(rows).claims
        return next(c.verdict for c in claims if "free decoder" in c.statement)

    assert verdict() == "vacuous"
    free = next(row for row in rows if row["decoder"] == "free")
    free["bound"] = [0.01, *free["bound"][1:]]
    assert verdict() == "holds"


def test_every_result_file_belongs_to_a_study():
    names = {path.stem for path in RESULTS.iterdir() if not path.name.startswith(".")}
    assert names <= set(NAMES)


def test_studies_without_rows_or_with_quick_ones_are_not_measured_yet(
    tiny_study, tables, tmp_path, monkeypatch
):
    monkeypatch.setattr("diffint.studies.overview.NAMES", ("tiny",))
    monkeypatch.setattr("diffint.studies.overview.study_named", lambda name: STUDY)
    assert "Not measured yet: tiny." in overview_page(tmp_path, "x")
    run_study(STUDY, Setup(tables, quick=True), tmp_path)
    assert "Not measured yet: tiny." in overview_page(tmp_path / "quick", "x")
    run_study(STUDY, Setup(tables), tmp_path)
    page = overview_page(tmp_path, "x")
    assert "Not measured yet" not in page
    first = (
        "| [tiny](x/tiny.md) (2 tables, 3 seeds) | tab:tiny | it is 8.57 | 8.57 | 8.57 | **Holds**"
    )
    assert first in page
