"""The committed results: the report matches the rows. (tests/docs: the guides match the report.)"""

from __future__ import annotations

from pathlib import Path

import pandas
import pytest

from diffint.bench.baselines import METHODS
from diffint.bench.report import write_report
from diffint.bench.store import frame_of, read_rows

ROOT = Path(__file__).parents[2]
BENCH = ROOT / "docs" / "results" / "bench"


@pytest.fixture(scope="module")
def rows() -> pandas.DataFrame:
    return frame_of(read_rows(BENCH / "rows.csv"))


def test_the_report_matches_the_rows(rows: pandas.DataFrame, tmp_path: Path) -> None:
    written = write_report(rows, tmp_path)
    for path in written:
        committed = BENCH / path.relative_to(tmp_path)
        assert committed.exists(), f"{committed} is missing: run diffint bench report again"
        if path.suffix != ".svg":  # drawings depend on matplotlib's version
            assert path.read_text() == committed.read_text(), (
                f"{committed} does not match these rows"
            )
    assert not {p.name for p in BENCH.glob("*.md")} - {p.name for p in written} - {"agreement.md"}


def test_both_regimes_have_every_method_of_the_paper(rows: pandas.DataFrame) -> None:
    methods = {name for name, method in METHODS.items() if method.in_paper} | {"DiffInt", "KNN"}
    assert methods <= set(rows["method"]) <= set(METHODS)
    rows = rows[rows["method"].isin(methods)]
    cells = rows.groupby("regime")[["table", "method"]].apply(lambda c: len(c.drop_duplicates()))
    assert cells.to_dict() == {"paper": 36 * 25, "fair": 36 * 25}
    diffint = rows[rows["method"].isin(["DiffInt", "DiffInt-paper"])]
    assert (diffint["state"] == "ok").all()
    assert (diffint.groupby(["table", "method", "regime"]).size() == 10).all()
