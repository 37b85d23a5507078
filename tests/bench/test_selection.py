from __future__ import annotations

from pathlib import Path

import pytest

from diffint.bench.selection import read_selection
from diffint.core.errors import InputError

LISTED = """suite,table,half
macrodata,oddbench__A,select
macrodata,oddbench__B,report
adbench,6_cardio,select
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "selection.csv"
    path.write_text(LISTED)
    return path


def test_all_tables_or_those_of_a_half(path: Path) -> None:
    assert read_selection(path).of("macrodata") == ["oddbench__A", "oddbench__B"]
    assert read_selection(path, "report").of("macrodata") == ["oddbench__B"]
    assert read_selection(path, "select").of("adbench") == ["6_cardio"]


def test_a_suite_without_tables_in_the_selection(path: Path) -> None:
    with pytest.raises(InputError, match=r"the half report of .* lists no tables of the suite adb"):
        read_selection(path, "report").of("adbench")


@pytest.mark.parametrize(
    ("content", "half", "message"),
    [
        (LISTED, "both", "--half 'both' is not in .*, which has report, select"),
        ("suite,table\nadbench,6_cardio\n", None, "has no column 'half'"),
        ("", None, "has no column 'suite', 'table', 'half'"),
        ("suite,table,half\n", "select", "which has none"),
    ],
)
def test_invalid_selections(path: Path, content: str, half: str | None, message: str) -> None:
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        read_selection(path, half)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    for name in ("binary.csv", "none.csv", "."):
        with pytest.raises(InputError, match="cannot be read"):
            read_selection(tmp_path / name)
