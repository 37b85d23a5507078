"""Every example runs on its own and prints its main results."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXPECTED_OUTPUT = {
    "payments.py": (
        "of 500 payments are flagged: 3 of the 3",
        "amount = 900, but no training row is above",
        "hour = 4, but no training row is below",
        "payments_today = 25, but no training row is above",
        "would be normal if",
    ),
    "sensors.py": (
        "healthy:",
        "most responsible: temperature",
        "flow meter sticks at 56:",
        "The drift is first flagged at reading",
        "pump.html",
    ),
    "clinic.py": (
        "of 212 malignant biopsies (",
        "Pattern ",
        "The proven lower bound of the score is above it",
        "1.5 times the largest known",
        "all flagged.",
        "all scores are identical",
    ),
}


@pytest.mark.parametrize("name", EXPECTED_OUTPUT)
def test_example_runs(name, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-W", "error", ROOT / "examples" / name],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    for text in EXPECTED_OUTPUT[name]:
        assert text in done.stdout
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {"sensors.py": {"pump.html"}, "clinic.py": {"benign.diffint"}}.get(
        name, set()
    )


def test_every_example_is_listed_and_tested():
    scripts = {path.name for path in (ROOT / "examples").glob("*.py")}
    page = (ROOT / "examples" / "README.md").read_text()
    assert scripts == set(EXPECTED_OUTPUT)
    assert all(f"({name})" in page for name in scripts)
