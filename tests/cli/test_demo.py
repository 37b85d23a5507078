import subprocess
import sys

import numpy as np

from diffint import DiffInt
from diffint.tables.datasets import breast_cancer


def run(*arguments, **options):
    command = [sys.executable, "-m", "diffint", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_demo(tmp_path):
    done = run("demo", "--folder", str(tmp_path / "out"), "--top", "5")
    assert done.returncode == 0, done.stderr
    # One line at the start and one at the end; between them, what takes so long on a new machine.
    words = [line.split()[1] for line in done.stderr.splitlines()]
    assert (words[0], words[-1]) == ("fitting", "fitted")
    assert set(words[1:-1]) <= {"compiling,", "another", "ready"}
    for expected in ("malignant", "AUROC 0.9", "worst area", "Model:", "diffint explain "):
        assert expected in done.stdout
    report = (tmp_path / "out" / "report.html").read_text()
    assert "rows are flagged" in report
    shown = done.stdout.partition("Model:")[0]
    assert max(len(line) for line in shown.splitlines()) <= 80
    assert "…" not in shown  # nothing cut off
    detector = DiffInt.load(tmp_path / "out" / "breast-cancer.diffint")
    table = breast_cancer()
    assert list(detector.feature_names_in_) == table.feature_names
    scores = detector.model_.calibration.scores
    assert np.isfinite(scores).all()


def test_demo_into_a_file_instead_of_a_folder(tmp_path):
    (tmp_path / "file").write_text("old")
    done = run("demo", "--folder", str(tmp_path / "file"))
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert (tmp_path / "file").read_text() == "old"


def test_version_and_help():
    from diffint import __version__

    assert run("--version").stdout.strip() == f"diffint {__version__}"
    assert "demo" in run("--help").stdout
    assert run("nonsense").returncode == 2
