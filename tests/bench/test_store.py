from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diffint.bench.store import COLUMNS, Cell, Row, Store, frame_of, read_rows, write_rows
from diffint.core.errors import InputError

OK = Row("45_wine", "KNN", "fair", 0, "ok", roc_auc=0.75, average_precision=0.5, fit_seconds=0.25)
FAILED = Row("45_wine", "KNN", "paper", 0, "error", "ValueError: a, \"b\"\nand 'c'")


def test_rows_are_read_back_unchanged(tmp_path: Path) -> None:
    with Store(tmp_path / "r.csv") as store:
        store.add([OK, FAILED])
        assert set(store.rows) == {OK.cell, FAILED.cell}
    back = read_rows(tmp_path / "r.csv")
    assert back[0] == OK
    assert back[1].message == "ValueError: a, \"b\" and 'c'"  # on one line
    assert list(frame_of(back).columns) == list(COLUMNS)


@given(st.text(max_size=500))
def test_any_message_is_one_line(tmp_path_factory: pytest.TempPathFactory, message: str) -> None:
    path = tmp_path_factory.mktemp("store") / "r.csv"
    with Store(path) as store:
        store.add([Row("t", "m", "fair", 0, "error", message), OK])
    assert len(path.read_bytes().splitlines()) == 3
    assert [row.cell for row in read_rows(path)] == [Cell("t", "m", "fair", 0), OK.cell]


def test_write_rows_replaces_the_file(tmp_path: Path) -> None:
    write_rows(tmp_path / "r.csv", [OK, FAILED])
    write_rows(tmp_path / "r.csv", [OK])
    assert read_rows(tmp_path / "r.csv") == [OK]
    with Store(tmp_path / "r.csv") as store:
        assert list(store.rows) == [OK.cell]


def test_a_cell_has_one_row(tmp_path: Path) -> None:
    with Store(tmp_path / "r.csv") as store:
        store.add([OK])
        store.add([Row(*OK.cell, state="timeout"), FAILED])
    assert [row.state for row in read_rows(tmp_path / "r.csv")] == ["ok", "error"]


def test_failed_rows_can_be_repeated_and_the_last_row_counts(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    with Store(path) as store:
        store.add([OK, FAILED])
    with Store(path, lambda row: row.state == "error") as store:
        assert list(store.rows) == [OK.cell]
        better = Row(*FAILED.cell, state="ok", roc_auc=0.5, average_precision=0.25)
        store.add([better])
        assert store.rows[FAILED.cell] == better
    with Store(path) as store:
        assert store.rows == {OK.cell: OK, FAILED.cell: better}


@pytest.mark.parametrize("cut", [1, 10, 40])
def test_an_incomplete_last_line_is_removed(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "r.csv"
    with Store(path) as store:
        store.add([OK, FAILED])
    path.write_bytes(path.read_bytes()[:-cut])
    assert read_rows(path) == [OK]
    with Store(path) as store:
        assert list(store.rows) == [OK.cell]
        store.add([FAILED])
    assert [row.cell for row in read_rows(path)] == [OK.cell, FAILED.cell]


@pytest.mark.parametrize("kept", [0, 1, 30])
def test_an_incomplete_header_is_written_again(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "r.csv"
    Store(path)
    path.write_bytes(path.read_bytes()[:kept])
    with Store(path) as store:
        store.add([OK])
    assert read_rows(path) == [OK]


@pytest.mark.parametrize("content", ["a,b\n1,2\n", "x", "table,method\n"])
def test_other_files_raise_and_are_kept(tmp_path: Path, content: str) -> None:
    path = tmp_path / "other.csv"
    path.write_text(content)
    with pytest.raises(InputError, match="not a results file"):
        Store(path)
    assert path.read_text() == content


def test_invalid_lines_are_named(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    with Store(path) as store:
        store.add([OK])
    content = path.read_text()
    path.write_text(content.replace("0.750000", "high"))
    with pytest.raises(InputError, match=r"line 2.*high"):
        read_rows(path)
    path.write_text(content + "1,2\n")
    with pytest.raises(InputError, match=r"line 3: 2 values for \d+ columns"):
        read_rows(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ok", "weird", "state 'weird' is unknown"),
        ("fair", "unfair", "regime 'unfair'"),
        ("0.750000", "7.45", "between 0 and 1"),
        ("0.750000", "", "between 0 and 1"),
        ("fair,0,", "fair,,", "seed and seeds_together"),
    ],
)
def test_invalid_values_raise(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "r.csv"
    write_rows(path, [OK])
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(InputError, match=f"line 2: .*{message}"):
        read_rows(path)


@pytest.mark.parametrize("how", ["replaced", "removed", "cut short"])
def test_rows_are_not_lost_when_the_file_is_replaced(tmp_path: Path, how: str) -> None:
    path, other = tmp_path / "r.csv", tmp_path / "other.csv"
    with Store(path) as store:
        store.add([OK])
        if how == "replaced":
            write_rows(other, [OK])
            other.rename(path)
        elif how == "removed":
            path.unlink()
        else:
            path.write_bytes(path.read_bytes()[:-5])
        store.add([FAILED])
    cells = [row.cell for row in read_rows(path)]
    assert FAILED.cell in cells
    assert (OK.cell in cells) == (how == "replaced")


@pytest.mark.parametrize("again", ["ok", "error"])
@pytest.mark.parametrize("how", ["replaced", "rewritten shorter"])
def test_repeated_rows_are_not_lost_when_the_file_is_replaced(
    tmp_path: Path, how: str, again: str
) -> None:
    path, other = tmp_path / "r.csv", tmp_path / "other.csv"
    # The cell was ok once, too: a re-read must not bring back any of its old rows.
    old = [Row(*FAILED.cell, state="ok", roc_auc=0.9, average_precision=0.9), FAILED]
    more = [Row("45_wine", "KNN", "fair", seed, "timeout") for seed in range(1, 9)]
    write_rows(path, [OK, *old, *more])
    with Store(path, lambda row: row.state == "error") as store:
        if how == "replaced":  # as version control does
            write_rows(other, [OK, *old, *more])
            other.rename(path)
        else:
            write_rows(other, [OK, *old])
            path.write_bytes(other.read_bytes())
        store.refresh()
        assert FAILED.cell not in store.rows
        metric = 0.5 if again == "ok" else None
        new = Row(*FAILED.cell, again, roc_auc=metric, average_precision=metric)  # type: ignore[arg-type]
        store.add([new])
        assert store.rows[FAILED.cell] == new
        store.add([Row(*FAILED.cell, state="timeout")])  # it has its row now
    assert [row for row in read_rows(path) if row.cell == FAILED.cell][2:] == [new]


def test_a_run_that_fails_in_the_same_way_again_is_settled(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    write_rows(path, [FAILED])
    with Store(path, lambda row: row.state == "error") as store:
        write_rows(path, [FAILED])
        store.add([FAILED])
        assert FAILED.cell in store.rows
        write_rows(path, read_rows(path))
        store.add([OK])
        assert set(store.rows) == {FAILED.cell, OK.cell}
    assert [row.cell for row in read_rows(path)] == [FAILED.cell, FAILED.cell, OK.cell]


def test_a_link_opens_the_same_store(tmp_path: Path) -> None:
    (tmp_path / "link.csv").symlink_to(tmp_path / "r.csv")
    with Store(tmp_path / "link.csv") as store:
        store.add([OK])
    assert read_rows(tmp_path / "r.csv") == [OK]
    assert not (tmp_path / ".link.csv.lock").exists()


def test_invalid_paths(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder"):
        Store(tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        Store(tmp_path / "no" / "r.csv")
    with pytest.raises(InputError, match="cannot be read"):
        read_rows(tmp_path / "none.csv")


def test_claims_of_another_process_end_when_it_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    code = (
        "import sys; from diffint.bench.store import Store; s = Store(sys.argv[1]); "
        "print(s.claim('a'), flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert other.stdout is not None
    assert other.stdout.readline() == b"True\n"
    with Store(path) as store:
        assert not store.claim("a")
        assert store.claim("b")
        other.kill()
        other.wait()
        assert store.claim("a")
        store.release("a")


# --- Suites --------------------------------------------------------------------------------------


def without_suite(path: Path) -> bytes:
    """The content of a results file as it was before there were several suites."""
    lines = path.read_text().splitlines()
    return "".join(line.rpartition(",")[0] + "\n" for line in lines).encode()


def test_a_file_without_suites_is_read_and_continued(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    write_rows(path, [OK])
    path.write_bytes(without_suite(path))
    before = path.read_bytes()
    assert read_rows(path) == [OK]
    assert OK.suite == "adbench"
    with Store(path) as store:
        store.add([FAILED])
        store.refresh()
        assert set(store.rows) == {OK.cell, FAILED.cell}
    assert path.read_bytes().startswith(before)
    assert [row.cell for row in read_rows(path)] == [OK.cell, FAILED.cell]


@pytest.mark.parametrize("old", [False, True])
def test_rows_of_two_suites_are_not_mixed(tmp_path: Path, old: bool) -> None:
    path = tmp_path / "r.csv"
    write_rows(path, [OK])
    if old:
        path.write_bytes(without_suite(path))
    before = path.read_bytes()
    with pytest.raises(InputError, match="results of the suite adbench; write those of the suite"):
        Store(path, suite="macrodata")
    assert path.read_bytes() == before


def test_rows_of_another_suite_that_another_command_adds(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    with Store(path, suite="macrodata") as store, Store(path) as other:
        other.add([OK])
        with pytest.raises(InputError, match="has results of the suite adbench"):
            store.add([Row("t", "m", "fair", 0, "error", suite="macrodata")])
    assert read_rows(path) == [OK]
