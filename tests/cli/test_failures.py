"""Invalid input: exit code 2, one message that says what, where and what to do, no lost files."""

import contextlib
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from ..waiting import LIMIT, wait_until
from .conftest import make_payments

FEATURES = ["age", "amount", "visits"]


def table(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


INVALID_TABLES = {
    "empty": ("", "is empty"),
    "header only": ("age,amount,visits\n", "a header but no rows"),
    "ragged": ("age,amount,visits\n1,2,3\n\n4,5\n", r"line 4 has 2 cells instead of 3"),
    "separator": ("age;amount;visits\n1;2;3\n", "--separator ';'"),
    "latin-1": ("age,amount,visits\n1,2,é\n".encode("latin-1"), "--encoding"),
    "binary": (bytes(range(256)) * 20, "utf-8|NUL"),
    "NUL": ("age,amount,visits\n1,2,\0003\n1,2,3\n", r"'visits'.*'\\x003' in line 2"),
    "columns": (",".join(f"c{i}" for i in range(100_000)) + "\n", "100,000 columns"),
    "duplicates": ("age,age,visits\n1,2,3\n", "more than one column called 'age'"),
    "text": ("age,amount,visits\n1,2,3\n1,2,many\n", "'visits'.*'many' in line 3"),
    "infinite": ("age,amount,visits\n1,2,3\n1,inf,3\n", "'amount'.*infinite.*line 3"),
}


@pytest.mark.parametrize("kind", INVALID_TABLES)
@pytest.mark.parametrize("command", ["fit", "score", "report"])
def test_invalid_tables(run, payments, tmp_path, kind, command):
    content, message = INVALID_TABLES[kind]
    path = table(tmp_path, "bad.csv", content)
    out = table(tmp_path, "out", "old")
    first = [path] if command == "fit" else [payments / "m.diffint", path]
    done = run(command, *first, "-o", out)
    assert done.code == 2
    assert done.err.startswith("diffint: ")
    assert done.err.count("\n") == 1
    assert "Traceback" not in done.err
    if not (kind == "separator" and command != "fit"):
        import re

        assert re.search(message, done.err), done.err
        assert "bad.csv" in done.err
    assert out.read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["bad.csv", "out"]


def test_every_kind_of_missing_value_and_stray_spaces(run, payments, tmp_path):
    cells = ["", " ", "NA", "n/a", "NaN", "null", "None", "?", "-"]
    lines = [f"{cell},2000,3" for cell in cells] + [" 40.5 ,\t2000,3", "true,2000,3"]
    path = table(tmp_path, "t.csv", "age,amount,visits\n" + "\n".join(lines) + "\n")
    done = run("score", payments / "m.diffint", path, "-o", tmp_path / "o.parquet")
    assert done.code == 0, done.err
    from diffint import DiffInt

    rows = pd.DataFrame({"age": [np.nan] * 9 + [40.5, 1.0], "amount": 2000.0, "visits": 3.0})
    expected = DiffInt.load(payments / "m.diffint").anomaly_score(rows)
    np.testing.assert_array_equal(pd.read_parquet(tmp_path / "o.parquet")["score"], expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("score", "{m}", "missing.csv"), "'missing.csv' does not exist"),
        (("score", "{m}", "{folder}"), "is a folder"),
        (("score", "missing.diffint", "{t}"), "no model file 'missing.diffint'"),
        (("score", "{t}", "{t}"), "is a table, not a model file; a model is made of it with: "),
        (("score", "{t}", "{m}"), "the model comes before the table: give '"),
        (("explain", "{t}", "{m}", "--top", "1"), "the model comes before the table"),
        (("report", "gone.csv", "{m}", "-o", "{new}"), "the model comes before the table"),
        (("score", "{m}", "{m}"), "is a model file, not a table"),
        (("fit", "{m}", "-o", "{new}"), "is a model file, not a table"),
        (("score", "{m}", "{xls}"), "an old Excel file (.xls) or has a password; open it in Excel"),
        (("score", "{m}", "{empty}"), "is empty; it needs a line of column names"),
        (("score", "{empty}", "{t}"), "is empty, not a model file"),
        (("score", "{m}", "{folder}"), "is a folder; give a file, such as '"),
        (("score", "{folder}", "{t}"), "is a folder; give a model file"),
        (("score", "{cut}f", "{t}"), "`diffint fit` writes one; did you mean '"),
        (("score", "{cut}", "{t}"), "damaged"),
        (("score", "{m}", "{lacks}"), "lacks a column that the model needs: 'visits'"),
        (("score", "{m}", "{t}", "--id", "unknown"), "'unknown'"),
        (("score", "{m}", "{t}", "-o", "{folder}/no/out.csv"), "does not exist; create it"),
        (("score", "{m}", "{t}", "-o", "{folder}"), "is a folder"),
        (("score", "{m}", "{t}", "--separator", "ab"), "single character"),
        (("score", "{m}", "{t}", "--encoding", "nonsense"), "not a known encoding"),
        (("score", "{m}", "{t}", "--format", "ods"), "not a table format"),
        (("score", "{m}", "{t}", "--fpr", "7"), "false_positive_rate"),
        (("fit", "{t}", "-o", "{new}", "--label", "unknown"), "--label names: 'unknown'"),
        (
            ("fit", "{t}", "-o", "{new}", "--label", "payment"),
            "label 'payment' is 000002 in line 4",
        ),
        (("fit", "{t}", "-o", "{new}", "--ignore", "unknown"), "--ignore names: 'unknown'"),
        (("fit", "{t}", "-o", "{folder}/no/m"), "does not exist; create it"),
        (("fit", "{t}", "-o", "{new}", "--preset", "best"), "recommended"),
        (("fit", "{t}", "-o", "{new}", "--device", "abacus"), "device"),
        (("fit", "{words}", "-o", "{new}", "--label", "fraud"), "'no' in line 2; it must be"),
        (("info", "{t}"), "not a model file"),
        (("nonsense",), "nonsense"),
    ],
)
def test_invalid_arguments(run, payments, tmp_path, arguments, message):
    model = (payments / "m.diffint").read_bytes()
    paths = {
        "m": payments / "m.diffint",
        "t": payments / "t.csv",
        "folder": tmp_path,
        "new": tmp_path / "new",
        "cut": table(tmp_path, "cut.diffint", model[: len(model) // 2]),
        "lacks": table(tmp_path, "lacks.csv", "age,amount\n1,2\n"),
        "xls": table(tmp_path, "old.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(99)),
        "empty": table(tmp_path, "empty.csv", ""),
        "words": table(tmp_path, "words.csv", "age,fraud\n1,no\n"),
    }
    before = sorted(os.listdir(tmp_path))
    done = run(*(str(a).format(**paths) for a in arguments))
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err
    assert sorted(os.listdir(tmp_path)) == before


def test_debug_shows_the_traceback(run):
    with pytest.raises(FileNotFoundError):
        run("info", "missing", "--debug")


def test_a_read_only_file_is_kept(run, payments, tmp_path, monkeypatch):
    out = table(tmp_path, "out.csv", "old")
    out.chmod(0o444)
    if os.access(out, os.W_OK):  # root may do anything
        real = os.access
        monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and real(path, mode))
    done = run("score", payments / "m.diffint", payments / "t.csv", "-o", out)
    assert done.code == 2
    assert "read-only" in done.err
    assert out.read_text() == "old"


FULL = "cannot be written: No space left on device; free some space, or write to another disk\n"


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
def test_a_full_disk(run, payments, kind):
    model, rows = payments / "m.diffint", payments / "t.csv"
    done = run("score", model, rows, "-o", "/dev/full", "--output-format", kind)
    assert (done.code, done.err) == (2, f"diffint: '/dev/full' {FULL}")


@pytest.mark.parametrize(
    "arguments", ["score m.diffint t.csv", "info m.diffint", "explain m.diffint t.csv --top 1"]
)
def test_standard_output_on_a_full_disk(payments, arguments):
    command = [sys.executable, "-m", "diffint", *arguments.split()]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, cwd=payments, check=False
        )
    assert done.returncode == 2
    assert done.stderr.endswith(f"diffint: standard output {FULL}")


def test_a_file_that_grows_too_large(payments, tmp_path):
    out = table(tmp_path, "out.csv.gz", "old")
    command = f"ulimit -f 1; {sys.executable} -m diffint score m.diffint t.csv -o {out}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, cwd=payments, check=False
    )
    assert done.returncode == 2
    assert f"diffint: '{out}' cannot be written: File too large; " in done.stderr
    assert "Traceback" not in done.stderr
    assert out.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.csv.gz"]


@pytest.mark.parametrize("command", ["score m.diffint t.csv", "explain m.diffint t.csv --top 1"])
def test_closed_standard_error(payments, command):
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m diffint {command} 2>&-"],
        capture_output=True,
        cwd=payments,
        check=False,
    )
    assert done.returncode == 0
    assert done.stdout


@pytest.mark.parametrize("above", [",,\n", "   \n", "\n"])
def test_line_numbers_below_a_blank_beginning(run, payments, tmp_path, above):
    path = table(tmp_path, "t.csv", f"{above}id,a,b\nx,zz,2\ny,1,2\nz,1,2\n")
    assert "in line 3" in run("fit", path, "-o", tmp_path / "m", "--id", "id").err


@pytest.mark.parametrize("stream", ["<&-", ">&-"])
def test_a_closed_standard_stream(payments, stream):
    rows = "-" if stream == "<&-" else "t.csv"
    command = f"{sys.executable} -m diffint score m.diffint {rows} {stream}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, cwd=payments, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("diffint: standard ")
    assert "is closed; give" in done.stderr


ODD_IDS = {
    "list": pa.array([[1, 2]] * 3),
    "struct": pa.array([{"x": 1}] * 3),
    "map": pa.array([[("k", 1)]] * 3, pa.map_(pa.string(), pa.int64())),
    "bytes": pa.array([b"\xff"] * 3),
    "far date": pa.array([2**62] * 3, pa.timestamp("s")),
}


def table_with_ids(folder, ids):
    path = folder / "t.arrow"
    rows = pa.table({"key": ids, **{name: [30.0, 1500.0, 3.0] for name in FEATURES}})
    with pa.ipc.new_file(str(path), rows.schema) as writer:
        writer.write_table(rows)
    return path


@pytest.mark.parametrize("kind", ODD_IDS)
@pytest.mark.parametrize("command", ["score", "report", "explain"])
def test_columns_that_cannot_be_ids(run, payments, tmp_path, kind, command):
    path, out = table_with_ids(tmp_path, ODD_IDS[kind]), table(tmp_path, "out.csv", "old")
    others = ("--top", 1) if command == "explain" else ("-o", out)
    done = run(command, payments / "m.diffint", path, "--id", "key", *others)
    assert done.code == 2
    assert f"{str(path)!r}: the column 'key' of type {str(ODD_IDS[kind].type)[:30]}" in done.err
    assert "cannot be used as ids; convert it to text or numbers" in done.err
    assert out.read_text() == "old"


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([b"a", b"b", b"c"]),
        pa.array([1, 2, 3], pa.duration("s")),
        pa.array([1, 2, 3], pa.timestamp("ms")),
        pa.array(["a", "b", None]).dictionary_encode(),
        pa.array([1, 2, 3]).cast(pa.decimal128(30, 2)),
        pa.array(["a", "b", "c"], pa.string_view()),
    ],
    ids=lambda ids: str(ids.type),
)
def test_columns_of_unusual_types_that_can_be_ids(run, payments, tmp_path, ids):
    path = table_with_ids(tmp_path, ids)
    for out in ("o.csv", "o.parquet", "o.arrow", "o.xlsx"):
        done = run("score", payments / "m.diffint", path, "--id", "key", "-o", tmp_path / out)
        assert done.code == 0
        assert done.err.startswith("diffint: scored 3 rows: ")


def test_columns_that_are_not_numeric(run, payments, tmp_path):
    path = tmp_path / "t.parquet"
    columns = {"age": pa.array([[1]] * 3), "amount": [1.0] * 3, "visits": [1.0] * 3}
    pa.parquet.write_table(pa.table(columns), path)
    done = run("score", payments / "m.diffint", path)
    assert done.code == 2
    assert "column 'age' has the type list<" in done.err
    assert "which is not a number; convert it to numbers" in done.err
    done = run("fit", path, "-o", tmp_path / "m")
    assert done.code == 2
    assert "1 column cannot be used: 'age' (type list<" in done.err
    assert "; leave it out with --ignore age\n" in done.err


def test_a_damaged_compressed_file_is_named(run, payments, tmp_path):
    whole = (payments / "t.csv.gz").read_bytes()
    for content in (whole[: len(whole) // 2], whole[:20] + b"damage" + whole[26:]):
        path = table(tmp_path, "t.csv.gz", content)
        done = run("score", payments / "m.diffint", path, "-o", tmp_path / "out.csv")
        assert done.code == 2
        assert f"{str(path)!r} cannot be read as CSV (" in done.err
        assert os.listdir(tmp_path) == ["t.csv.gz"]


@pytest.mark.parametrize("bad", ["r,1,2\n", '"' + "x" * 20_000_000 + '",1,oops,3\n'])
def test_a_large_malformed_file_does_not_abort_the_interpreter(tmp_path, bad):
    """Nothing may read ahead while the interpreter ends."""
    path = table(tmp_path, "large.csv", "id,a,b,c\n" + bad + "r,1,2,3\n" * 3_000_000)
    command = [sys.executable, "-m", "diffint", "fit", str(path), "-o", str(tmp_path / "m")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("diffint: ")
    assert done.stderr.count("\n") == 1
    assert "line 2" in done.stderr


def test_an_error_in_the_middle_of_a_file_keeps_the_old_output(run, payments, tmp_path):
    big = pd.concat([make_payments()] * 400)[FEATURES]
    text = big.to_csv(index=False) + "1,2,oops\n"
    path = table(tmp_path, "big.csv", text)
    out = table(tmp_path, "out.csv", "old")
    done = run("score", payments / "m.diffint", path, "-o", out)
    assert done.code == 2
    assert "has 'oops' in line 160,002" in done.err
    assert out.read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["big.csv", "out.csv"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_leaves_no_files(payments, tmp_path, number, code):
    command = [sys.executable, "-m", "diffint", "score", str(payments / "m.diffint")]
    with rows_without_end([*command, "-", "-o", str(tmp_path / "out.csv")]) as (process, _):
        wait_until(lambda: os.listdir(tmp_path))  # the output is being written
        process.send_signal(number)
        err = process.stderr.read()
    assert process.returncode == code
    assert err.endswith("diffint: interrupted; no file was written\n")
    assert os.listdir(tmp_path) == []


@contextlib.contextmanager
def rows_without_end(command, **options):
    """A process that reads rows of payments; what ends them and says how many there were."""
    end, count = threading.Event(), 0
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )
    header, _, rows = make_payments()[FEATURES].to_csv(index=False).partition("\n")

    def write():
        nonlocal count
        with contextlib.suppress(BrokenPipeError), process.stdin as pipe:
            pipe.write(f"{header}\n")
            while not end.is_set():
                pipe.write(rows)
                count += rows.count("\n")

    writer = threading.Thread(target=write)
    writer.start()

    def ended():
        end.set()
        writer.join()
        return count

    with process:
        try:
            yield process, ended
        finally:
            end.set()
            process.wait(LIMIT)
            writer.join()


def test_a_signal_that_is_ignored_stays_ignored(payments, tmp_path):
    """As with nohup, or in the background of a script."""
    command = f"trap '' HUP INT; exec {sys.executable} -m diffint score m.diffint - -o"
    shell = ["sh", "-c", f"{command} {tmp_path}/out.csv"]
    with rows_without_end(shell, cwd=payments) as (process, ended):
        wait_until(lambda: os.listdir(tmp_path))  # the output is being written
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGINT)
        n_rows = ended()
        err = process.stderr.read()
    assert process.returncode == 0
    assert f"diffint: scored {n_rows:,} rows: " in err
    assert len(pd.read_csv(tmp_path / "out.csv")) == n_rows


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("age;amount;visits\n30,5;1.234;2\n", ("--decimal", ","), "'1.234' in line 2"),
        ("age\tamount\tvisits\n1\t2\t3\n", (), "--separator '\\\\t'"),
        ("age,amount,visits\n30,x,2\n", (), "correct the cell"),
    ],
)
def test_more_invalid_text(run, payments, tmp_path, content, options, message):
    path = table(tmp_path, "bad.csv", content)
    done = run("score", payments / "m.diffint", path, *options)
    assert done.code == 2
    assert message.replace("\\\\", "\\") in done.err, done.err
    assert "--ignore" not in done.err


def test_output_names_without_a_table_format(run, payments, tmp_path):
    for name in ("o.ods", "o.xls", "o.xlsm", "o.parquet.gz"):
        done = run("score", payments / "m.diffint", payments / "t.csv", "-o", tmp_path / name)
        assert done.code == 2
        assert name in done.err
    done = run("fit", payments / "t.csv", "-o", "-")
    assert done.code == 2
    assert os.listdir(tmp_path) == []


def test_too_few_rows_are_warned_of_once(run, tmp_path):
    path = table(tmp_path, "few.csv", "a,b\n" + "".join(f"{i},{i % 3}\n" for i in range(12)))
    command = [sys.executable, "-m", "diffint", "fit", str(path), "-o", str(tmp_path / "m")]
    done = subprocess.run([*command, "--epochs", "2"], capture_output=True, text=True, check=True)
    assert done.stderr.count("too few for a false-positive rate of 0.01") == 1
    assert ".py:" not in done.stderr
    assert "1 % of normal rows" not in done.stdout
    assert "rows left out." in done.stdout
    assert run("fit", table(tmp_path, "one.csv", "a\n1\n"), "-o", tmp_path / "n").code == 2


@pytest.mark.parametrize(
    "command",
    [
        ("fit", "t.csv", "-o", "t.csv", "--id", "payment"),
        ("score", "m.diffint", "t.csv", "-o", "./t.csv"),
        ("score", "m.diffint", "t.csv", "-o", "m.diffint"),
        ("score", "m.diffint", "t.csv", "-o", "symlink.csv"),
        ("score", "m.diffint", "t.csv", "-o", "hard.csv"),
        ("score", "m.diffint", "symlink.csv", "-o", "hard.csv"),
        ("score", "m.diffint", "t.csv.gz", "-o", "t.csv.gz"),
        ("score", "m.diffint", "t.parquet", "-o", "t.parquet"),
        ("fit", "t.csv", "-o", "hard.csv", "--id", "payment"),
        ("report", "m.diffint", "t.csv", "-o", "t.csv"),
        ("report", "m.diffint", "t.csv", "-o", "m.diffint"),
        ("report", "m.diffint", "hard.csv", "-o", "symlink.csv"),
    ],
)
def test_an_input_is_never_overwritten(run, payments, command, monkeypatch):
    monkeypatch.chdir(payments)
    for module in ("score", "report"):  # refused before any work
        monkeypatch.setattr(f"diffint.cli.{module}.load_detector", None)
    if not os.path.exists("hard.csv"):
        os.link("t.csv", "hard.csv")
        os.symlink("t.csv", "symlink.csv")
    before = {path.name: path.read_bytes() for path in payments.iterdir() if path.is_file()}
    done = run(*command)
    assert done.code == 2
    assert "is also an input and would be overwritten" in done.err
    assert {p.name: p.read_bytes() for p in payments.iterdir() if p.is_file()} == before


@pytest.mark.parametrize("mode", ["rb", "ab"])
def test_redirected_files_are_inputs_and_outputs_too(payments, tmp_path, mode):
    table = tmp_path / "t.csv"
    table.write_bytes((payments / "t.csv").read_bytes())
    before = table.read_bytes()
    read, written = ("-", table) if mode == "rb" else (table, "-")
    command = [
        sys.executable,
        "-m",
        "diffint",
        "score",
        payments / "m.diffint",
        read,
        "-o",
        written,
    ]
    with open(table, mode) as file:
        redirected = {"stdin": file} if mode == "rb" else {"stdout": file}
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False, **redirected)
    assert done.returncode == 2
    assert "is also an input and would be overwritten" in done.stderr
    assert table.read_bytes() == before
