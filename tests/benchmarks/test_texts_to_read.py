"""Texts for a reader: the errors are made as described, and the texts are of flagged rows."""

from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def _scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def test_an_error_is_in_one_column_and_of_its_kind():
    from texts_to_read import make_error, wines

    table, rng = wines(), np.random.default_rng(0)
    kinds = set()
    for _ in range(60):
        row = table.iloc[[5]].copy()
        column, kind = make_error(row, table, rng)
        if column is None:
            assert row.equals(table.iloc[[5]])
            continue
        kinds.add(kind)
        changed = row.iloc[0] != table.iloc[5]
        assert list(table.columns[changed]) == [column]
        if kind == "other unit":
            factor = np.log10(row[column].iloc[0] / table[column].iloc[5])
            assert abs(factor) == pytest.approx(round(abs(factor)))
        else:
            assert row[column].iloc[0] in table[column].to_numpy()
    assert kinds == {"other unit", "of another row"}


def test_texts_are_of_flagged_rows_with_the_wrong_column():
    from texts_to_read import planted_texts

    texts = list(planted_texts("biopsies", 4, np.random.default_rng(0)))
    assert len(texts) == 4
    for text in texts:
        assert text.text.startswith("1. ")
        assert len(text.wrong) == 1
        assert text.kind in ("other unit", "of another row")
    assert sum(text.wrong == set(text.named[:1]) for text in texts) >= 3
