"""Whether an installed diffint works: `python smoke.py` in the environment to be tried.

Run by `make dist` on the sdist and the wheel, and by `nox -s smoke`, from a folder without the
sources, so that what is imported is what was installed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import numpy as np

import diffint
from diffint import DiffInt
from diffint.report import ScoredTable, build_report


def main() -> None:
    """Raises at the first thing that does not work."""
    here = Path(diffint.__file__).parent
    assert diffint.__version__ == version("diffint-ad"), "the metadata has another version"
    shown = subprocess.run(
        [Path(sys.executable).parent / "diffint", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout.strip() == f"diffint {diffint.__version__}", shown.stdout
    assert files("diffint").joinpath("py.typed").is_file()

    rows = np.random.default_rng(0).normal(size=(200, 3))
    wild = np.array([[9.0, 0.0, 0.0]])
    detector = DiffInt(n_units=8, hidden_width=8, epochs=3, random_state=0, n_jobs=1).fit(rows)
    score = detector.anomaly_score(wild)
    assert score[0] > np.median(detector.anomaly_score(rows))
    page = build_report(detector, ScoredTable("smoke", score, wild, ("1",)))
    assert "<html" in page, "the report's templates are missing"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "smoke.diffint")
        detector.save(path)
        assert (DiffInt.load(path).anomaly_score(wild) == score).all()
    print(f"diffint {diffint.__version__} works on Python {sys.version.split()[0]} ({here})")


if __name__ == "__main__":
    main()
