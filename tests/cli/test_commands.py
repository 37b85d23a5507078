"""The commands on valid input: fit, score, explain, constraints, info, report."""

import io
import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet
import pytest

from diffint import DiffInt

from ..conftest import QUICK
from .conftest import make_payments

FEATURES = ["age", "amount", "visits"]


def library_scores(folder):
    return DiffInt.load(folder / "m.diffint").anomaly_score(make_payments()[FEATURES])


def assert_rounded(scores, folder):
    """The library's scores to six digits, and no more digits than that."""
    np.testing.assert_allclose(scores, library_scores(folder), rtol=5.1e-6)
    assert all(len(f"{score:.15g}".replace(".", "").lstrip("0")) <= 6 for score in scores)


class TestFit:
    @pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
    def test_fit_with_groups(self, run, tmp_path, name):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"])
        frame["patient"] = np.repeat(np.arange(25), 8)
        frame.to_csv(tmp_path / "t.csv", index=False)
        frame.to_parquet(tmp_path / "t.parquet")
        done = run(
            *("fit", tmp_path / name, "-o", tmp_path / "m", "--group", "patient"),
            *("--fpr", 0.1, "--epochs", 2),
        )
        assert done.code == 0
        assert "of 3 features" in done.out
        assert "Not used: 'patient' (--group)." in done.out
        calibration = json.loads(run("info", tmp_path / "m", "--json").out)["calibration"]
        assert calibration["rows"] == 8 * calibration["groups"] == 8 * 25
        assert "200 scores in 25 groups" in run("info", tmp_path / "m").out
        # The groups are not needed to score.
        frame.drop(columns="patient").to_csv(tmp_path / "new.csv", index=False)
        assert run("score", tmp_path / "m", tmp_path / "new.csv").code == 0

    def test_accuracy_is_not_measured_on_copies(self, run, tmp_path):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(rng.normal(size=(60, 6))).add_prefix("c")
        frame["y"] = (rng.random(60) < 0.3).astype(int)  # noise, which nothing can predict
        frame = pd.concat([frame] * 6).sample(frac=1, random_state=0)
        frame.to_csv(tmp_path / "t.csv", index=False)
        done = run("fit", tmp_path / "t.csv", "-o", tmp_path / "m", "--label", "y", "--epochs", 40)
        assert float(done.out.split("AUROC ")[1][:5]) < 0.8

    def test_bad_groups(self, run, tmp_path):
        (tmp_path / "t.csv").write_text("a,b,g,y\n1,2,x,0\n2,3,,0\n3,4,z,1\n")
        pd.DataFrame({"a": [1.0, 2.0], "g": [[1], [2]]}).to_parquet(tmp_path / "t.parquet")

        def fit(name, *options):
            done = run("fit", tmp_path / name, "-o", tmp_path / "m", *options)
            assert done.code == 2
            return done.err

        assert "the group 'g' is missing in line 3" in fit("t.csv", "--group", "g")
        assert "--group names: 'h'" in fit("t.csv", "--group", "h")
        both = fit("t.csv", "--group", "y", "--label", "y")
        assert "'y' cannot be both the label and the group column" in both
        assert "the column 'g' of type list" in fit("t.parquet", "--group", "g")

    def test_fit_with_labels(self, run, payments, tmp_path):
        done = run(
            *("fit", payments / "t.csv", "-o", tmp_path / "m", "--label", "fraud"),
            *("--id", "payment", "--fpr", 0.05, "--epochs", 10),
        )
        assert done.code == 0, done.err
        assert "Learned from 380 rows of 3 features in " in done.out
        assert "Left out 20 known anomalies." in done.out
        assert "Not used: 'payment' (--id) and 'fraud' (the label)." in done.out
        assert "On 80 rows held out (4 anomalies), with a fit without them: AUROC 0.9" in (
            done.out.replace("AUROC 1.0", "AUROC 0.9")
        )
        assert "at most 5 % of normal rows are (measured, not proven)" in done.out
        detector = DiffInt.load(tmp_path / "m")
        assert list(detector.feature_names_in_) == FEATURES
        assert detector.false_positive_rate == 0.05
        assert detector.model_.config.epochs == 10
        assert detector.id_column_ == "payment"

    def test_the_command_fits_the_same_model_as_the_library(self, run, payments, tmp_path):
        ignored = ("--ignore", "payment", "--ignore", "fraud")
        settings = ("--epochs", 5, "--seed", 3, "--decoder", "certified", "--preset", "paper")
        run("fit", payments / "t.parquet", "-o", tmp_path / "m", *ignored, *settings)
        frame = make_payments()[FEATURES]
        detector = DiffInt.paper(random_state=3, epochs=5, decoder="certified").fit(frame)
        np.testing.assert_array_equal(
            DiffInt.load(tmp_path / "m").anomaly_score(frame), detector.anomaly_score(frame)
        )


class TestScore:
    @pytest.mark.parametrize(
        "name", ["t.csv", "t.csv.gz", "t.tsv.zst", "t.parquet", "t.feather", "reversed.csv"]
    )
    def test_scores_equal_the_librarys_in_every_format(self, run, payments, tmp_path, name):
        done = run("score", payments / "m.diffint", payments / name, "-o", tmp_path / "o.parquet")
        assert done.code == 0, done.err
        result = pd.read_parquet(tmp_path / "o.parquet")
        assert list(result.columns) == ["payment", "score", "p_value", "flagged", "reasons"]
        np.testing.assert_array_equal(result["score"], library_scores(payments))
        assert list(result["payment"].astype(str).str.zfill(6)) == list(make_payments()["payment"])
        assert result["reasons"].notna().equals(result["flagged"])

    def test_decimal_commas(self, run, payments):
        done = run("score", payments / "m.diffint", payments / "german.csv", "--decimal", ",")
        assert_rounded(pd.read_csv(io.StringIO(done.out))["score"], payments)

    @pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet", "t.feather"])
    def test_standard_input(self, run, payments, name):
        content = (payments / name).read_bytes()
        done = run("score", payments / "m.diffint", "-", stdin=content)
        assert done.code == 0, done.err
        assert_rounded(pd.read_csv(io.StringIO(done.out))["score"], payments)

    @pytest.mark.parametrize("name", ["o.csv", "o.tsv", "o.csv.gz", "o.csv.zst", "o.feather"])
    def test_output_formats(self, run, payments, tmp_path, name):
        out = tmp_path / name
        run("score", payments / "m.diffint", payments / "t.csv", "-o", out)
        if name.endswith(".feather"):
            result = pyarrow.feather.read_feather(out)
            np.testing.assert_array_equal(result["score"], library_scores(payments))
        else:
            with pyarrow.input_stream(out) as file:  # decompresses by the name
                separator = "\t" if "tsv" in name else ","
                result = pd.read_csv(file, sep=separator, dtype={"payment": str})
            assert_rounded(result["score"], payments)
        assert list(result["payment"]) == list(make_payments()["payment"])  # with leading zeros

    def test_top_and_flagged_only(self, run, payments):
        command = ("score", payments / "m.diffint", payments / "t.csv")
        everything = pd.read_csv(io.StringIO(run(*command).out), dtype={"payment": str})
        top = pd.read_csv(io.StringIO(run(*command, "--top", 7).out), dtype={"payment": str})
        expected = everything.sort_values("score", ascending=False, kind="stable").head(7)
        assert list(top["payment"]) == list(expected["payment"])
        assert top["reasons"].notna().all()
        flagged = pd.read_csv(
            io.StringIO(run(*command, "--flagged-only").out), dtype={"payment": str}
        )
        assert list(flagged["payment"]) == list(everything[everything["flagged"]]["payment"])
        bare = run(*command, "--no-reasons").out.splitlines()[0]
        assert "reasons" not in bare

    def test_rows_are_numbered_from_one_without_ids(self, run, payments, tmp_path):
        make_payments()[FEATURES].to_csv(tmp_path / "t.csv", index=False)
        done = run("score", payments / "m.diffint", tmp_path / "t.csv")
        assert list(pd.read_csv(io.StringIO(done.out))["row"]) == list(range(1, 401))

    def test_reasons_name_the_cause(self, run, payments):
        done = run("score", payments / "m.diffint", payments / "t.csv", "--flagged-only")
        frame = pd.read_csv(io.StringIO(done.out), dtype={"payment": str}).set_index("payment")
        truth = make_payments().set_index("payment")["fraud"]
        caught = frame.loc[frame.index.intersection(truth[truth == 1].index), "reasons"]
        assert len(caught) >= 15
        assert caught.str.contains("amount").all()
        one = r"\w+ = [\d,.]+, (not [\d,.]+|(smallest|largest) in training [\d,.]+)"
        assert caught.str.match(one).all()

    def test_a_closed_pipe_ends_quietly(self, payments, tmp_path):
        big = pd.concat([make_payments()] * 300)
        big.to_csv(tmp_path / "big.csv", index=False)
        script = (
            f"{sys.executable} -m diffint score {payments / 'm.diffint'} {tmp_path / 'big.csv'}"
        )
        done = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {script} | head -1"],
            capture_output=True,
            text=True,
            check=False,
        )
        lines = done.stderr.splitlines()
        assert all(line.startswith("diffint: scoring ") for line in lines)  # on long work only
        assert done.stdout.count("\n") == 1
        assert done.returncode == 0

    @pytest.mark.parametrize(
        "arguments", ["info m.diffint", "explain m.diffint new.csv --top 9", "score --help"]
    )
    def test_a_pipe_that_is_closed_from_the_beginning(self, payments, arguments):
        reader, writer = os.pipe()
        os.close(reader)
        command = [sys.executable, "-m", "diffint", *arguments.split()]
        with os.fdopen(writer, "wb") as pipe:
            done = subprocess.run(
                command, stdout=pipe, stderr=subprocess.PIPE, cwd=payments, check=False
            )
        assert (done.returncode, done.stderr) == (0, b"")


class TestUnusualTables:
    def test_empty_lines_of_a_single_column_are_missing_values(self, run, tmp_path):
        (tmp_path / "one.csv").write_text("a\n" + "\n".join(map(str, range(30))) + "\n\n5\n")
        run("fit", tmp_path / "one.csv", "-o", tmp_path / "m", "--epochs", 2)
        done = run("score", tmp_path / "m", tmp_path / "one.csv", "--no-reasons")
        result = pd.read_csv(io.StringIO(done.out))
        assert list(result["row"]) == list(range(1, 33))
        assert result["score"][30] > result["score"][:30].quantile(0.9)  # no training row misses it

    def test_quoted_line_breaks_anywhere(self, run, payments, tmp_path):
        lines = ['"no\nte",age,amount,visits']
        note = "9,1,2,3\n" * 20
        lines += [f'"first\n{note}and",30,1500,{i % 5}' for i in range(30_000)]  # over one block
        (tmp_path / "q.csv").write_text("\n\n" + "\n".join(lines) + "\n")
        done = run(
            "score", payments / "m.diffint", tmp_path / "q.csv", "-o", tmp_path / "o.parquet"
        )
        assert done.code == 0, done.err
        assert len(pd.read_parquet(tmp_path / "o.parquet")) == 30_000

    def test_ids_of_any_type(self, run, payments, tmp_path):
        frame = make_payments()[FEATURES].head(20)
        columns = {name: pyarrow.array(frame[name]) for name in FEATURES}
        kinds = {
            "large": pyarrow.array([2**63 + i for i in range(20)], pyarrow.uint64()),
            "codes": pyarrow.array([f"c{i % 3}" for i in range(20)]).dictionary_encode(),
            "when": pyarrow.array(range(20), pyarrow.timestamp("ns", "UTC")),
        }
        pyarrow.feather.write_feather(pyarrow.table({**columns, **kinds}), tmp_path / "t.feather")
        for name, ids in kinds.items():
            out = tmp_path / f"{name}.parquet"
            arguments = (payments / "m.diffint", tmp_path / "t.feather", "-o", out, "--id", name)
            done = run("score", *arguments, "--top", 20)
            assert done.code == 0, done.err
            written = sorted(map(str, pyarrow.parquet.read_table(out)[name].to_pylist()))
            assert written == sorted(map(str, ids.to_pylist()))

    def test_arrow_streams_and_other_formats_on_standard_output(self, payments, tmp_path):
        sink = pyarrow.BufferOutputStream()
        table = pyarrow.Table.from_pandas(make_payments()[FEATURES])
        with pyarrow.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        (tmp_path / "s.arrows").write_bytes(sink.getvalue().to_pybytes())
        command = [sys.executable, "-m", "diffint", "score", str(payments / "m.diffint")]
        command += [str(tmp_path / "s.arrows"), "--output-format", "parquet"]
        done = subprocess.run(command, capture_output=True, check=True)
        result = pd.read_parquet(io.BytesIO(done.stdout))
        np.testing.assert_array_equal(result["score"], library_scores(payments))

    def test_an_id_column_with_the_name_of_an_output(self, run, payments, tmp_path):
        make_payments().rename(columns={"payment": "score"}).to_csv(tmp_path / "t.csv", index=False)
        done = run("score", payments / "m.diffint", tmp_path / "t.csv", "--id", "score")
        assert done.code == 2
        assert "rename it" in done.err


class TestExplain:
    def test_names_keep_their_case_and_an_id_gives_all_its_rows(self, run, tmp_path):
        frame = make_payments().rename(columns={"amount": "Amount EUR"})
        frame.loc[[0, 390], "payment"] = "twice"
        frame.to_csv(tmp_path / "t.csv", index=False)
        options = ("--label", "fraud", "--id", "payment", "--epochs", 20)
        run("fit", tmp_path / "t.csv", "-o", tmp_path / "m", *options)
        command = ("explain", tmp_path / "m", tmp_path / "t.csv")
        assert "It would be normal if Amount EUR" in run(*command, "--top", 1).out
        assert run(*command, "--row-id", "twice").out.count("Row twice: ") == 2
        loose = run(*command, "--row", 9, "--fpr", 0.9).out
        assert "above the threshold" in loose

    def test_by_row_by_id_and_top(self, run, payments):
        command = ("explain", payments / "m.diffint", payments / "t.csv")
        by_row = run(*command, "--row", 8)
        by_id = run(*command, "--row-id", "000007")
        assert by_row.code == by_id.code == 0
        assert by_row.out == by_id.out
        assert by_row.out.startswith("Row 000007: score ")
        top = run(*command, "--top", 2, "--reasons", 1).out
        assert top.count("Row ") == 2
        assert top.count("  1. amount = ") == 2
        assert top.count("It would be normal if") == 2
        assert "  2. " not in top

    def test_the_id_option_names_a_column_in_every_command(self, run, payments, tmp_path):
        frame = make_payments().rename(columns={"payment": "number"})
        frame.to_csv(tmp_path / "t.csv", index=False)
        model, table = payments / "m.diffint", tmp_path / "t.csv"
        done = run("explain", model, table, "--id", "number", "--row-id", "000007")
        assert done.out.startswith("Row 000007: score ")
        assert run("score", model, table, "--id", "number").out.startswith('"number","score"')
        assert run("report", model, table, "--id", "number", "-o", tmp_path / "r.html").code == 0
        without = run("explain", model, table, "--row-id", "000007")
        assert without.code == 2
        assert "name it with --id COL" in without.err
        assert run("explain", model, table, "--id-column", "number", "--top", 1).code == 2

    def test_json(self, run, payments):
        done = run("explain", payments / "m.diffint", payments / "t.csv", "--top", 3, "--json")
        rows = json.loads(done.out)
        scores = library_scores(payments)
        assert [row["score"] for row in rows] == sorted(scores)[::-1][:3]
        reason, part = rows[0]["reasons"][0], rows[0]["parts"][0]
        known = {"feature", "value", "lower", "upper", "share"}
        assert known | {"kind", "expected", "conditions", "support", "coverage"} == set(reason)
        assert known | {"side", "distance"} == set(part)
        assert reason["feature"] == part["feature"] == "amount"
        assert rows[0]["flagged"] is True

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ((), "one of --row N, --row-id ID and --top N"),
            (("--row", 1, "--top", 2), "one of --row N, --row-id ID and --top N"),
            (("--row", 401), "there is no row 401"),
            (("--row-id", "unknown"), "has the id 'unknown'"),
            (("--id", "000007"), "did you mean --row-id '000007'?"),
            (("--row", 0), "--row"),
        ],
    )
    def test_rows_that_do_not_exist(self, run, payments, options, message):
        done = run("explain", payments / "m.diffint", payments / "t.csv", *options)
        assert done.code == 2
        assert message in done.err


class TestModelCommands:
    def test_constraints(self, run, payments):
        done = run("constraints", payments / "m.diffint", "--patterns", 2, "--each", 2)
        detector = DiffInt.load(payments / "m.diffint")
        assert done.out.rstrip() == detector.explain_global().text(10, 2, 2)
        shown = json.loads(run("constraints", payments / "m.diffint", "--json").out)
        assert shown["features"][0]["feature"] in FEATURES
        assert {"lower", "upper", "coverage"} <= set(shown["constraints"][0])

    def test_fit_and_info_say_how_many_training_rows_are_stored(self, run, tmp_path):
        table = tmp_path / "table.csv"
        numbers = np.random.default_rng(0).normal(size=(60, 2)).round(3)
        pd.DataFrame(numbers, columns=["a", "b"]).to_csv(table, index=False)
        model = tmp_path / "m.diffint"
        fitted = run("fit", table, "-o", model, "--epochs", "2")
        assert "stores 5 × 48 training rows and 60 calibration rows; --kept-rows 0" in " ".join(
            (fitted.out + fitted.err).split()
        )
        assert "stores      5 × 48 training rows and 60 calibration rows" in run("info", model).out
        run("fit", table, "-o", model, "--epochs", "2", "--kept-rows", "0")
        assert "stores      no training rows" in run("info", model).out

    def test_info(self, run, payments):
        done = run("info", payments / "m.diffint")
        assert "380 rows of 3 features" in done.out
        assert "20 known anomalies" in done.out
        shown = json.loads(run("info", payments / "m.diffint", "--json").out)
        assert shown["features"] == FEATURES
        assert shown["settings"]["n_units"] == 40

    def test_help_has_an_example_for_every_command(self, run):
        for command in ("fit", "score", "explain", "constraints", "info", "report", "demo"):
            done = run(command, "--help")
            assert done.code == 0
            assert f"Example: diffint {command} " in " ".join(done.out.split())


def test_report(run, payments, tmp_path):
    out = tmp_path / "r.html"
    done = run("report", payments / "m.diffint", payments / "t.parquet", "-o", out, "--top", 5)
    assert done.code == 0, done.err
    flagged = int((library_scores(payments) > -DiffInt.load(payments / "m.diffint").offset_).sum())
    assert f"{flagged} rows flagged." in done.err
    page = out.read_text()
    assert f"{flagged} of 400 rows are flagged" in page
    assert f"Shown: 5 of {flagged} flagged rows, those with the highest scores." in page
    worst = make_payments()["payment"][int(np.argmax(library_scores(payments)))]
    assert worst in page


def test_help_and_version_import_no_heavy_library():
    """scikit-learn and numba take seconds to import; a fit needs them, `--help` does not."""
    script = (
        "import sys, diffint.cli.app; heavy = {'sklearn', 'numba', 'scipy', 'pandas', 'torch'};"
        "print(*heavy & set(sys.modules)); print(diffint.DiffInt().get_params()['n_units'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "\n200\n"


def test_formulas_in_ids_are_escaped_in_csv_only(run, payments, tmp_path):
    table = make_payments().head(20)
    table["payment"] = ["=HYPERLINK()", "-12", "+4.5", "@a", "+a", *table["payment"][5:]]
    table.to_parquet(tmp_path / "t.parquet")
    model, ids = payments / "m.diffint", table["payment"].tolist()
    escaped = ["'=HYPERLINK()", "-12", "+4.5", "'@a", "'+a", *ids[5:]]
    for output, more, expected in (
        ("s.csv", [], escaped),
        ("s.tsv", [], escaped),
        ("s.csv", ["--no-escape-formulas"], ids),
        ("s.parquet", [], ids),
        ("s.feather", [], ids),
    ):
        path = tmp_path / output
        assert run("score", model, tmp_path / "t.parquet", "-o", path, *more).code == 0
        read = {
            "s.csv": lambda path: pd.read_csv(path, dtype=str),
            "s.tsv": lambda path: pd.read_csv(path, dtype=str, sep="\t"),
            "s.parquet": pd.read_parquet,
            "s.feather": pd.read_feather,
        }[output](path)
        assert read["payment"].tolist() == expected
    printed = run("score", model, tmp_path / "t.parquet").out
    assert pd.read_csv(io.StringIO(printed), dtype=str)["payment"].tolist() == escaped


def test_formulas_in_names_are_escaped_in_reasons(run, payments, tmp_path):
    frame = make_payments()[["age", "amount"]].set_axis(["=age", "@amount"], axis=1)
    frame.iloc[0] *= 50
    frame.to_csv(tmp_path / "t.csv", index=False)
    detector = DiffInt(**QUICK).fit(frame[1:])
    detector.save(tmp_path / "m.diffint")
    for more in ([], ["--no-escape-formulas"]):
        output = tmp_path / "s.csv"
        run("score", tmp_path / "m.diffint", tmp_path / "t.csv", "-o", output, "--top", 1, *more)
        assert pd.read_csv(output)["reasons"][0][:2] in ("'=", "'@")


def test_long_work_is_announced_without_a_terminal(run, payments, monkeypatch):
    make_payments()[:399].to_csv(payments / "new.csv", index=False)
    command = ("score", payments / "m.diffint", payments / "new.csv", "--flagged-only")
    assert run(*command).err.count("\n") == 1
    monkeypatch.setattr("diffint.cli.streaming._LONG", 0.0)
    first, last = run(*command).err.splitlines()
    assert first.startswith(f"diffint: scoring '{payments / 'new.csv'}', 399 rows in ")
    assert last.startswith("diffint: scored 399 rows: ")
