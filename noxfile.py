"""Checks in separate environments: all Python versions (`make test-all`), packages (`make dist`).

`nox -s smoke` runs a tiny fit on every Python version instead of all tests.
"""

from __future__ import annotations

import os
import shutil
import tarfile
import zipfile
from pathlib import Path

import nox

ROOT = Path(__file__).parent
PYTHONS = nox.project.python_versions(nox.project.load_toml("pyproject.toml"))
# Files that no module imports, so a package could lack them unnoticed.
DATA_FILES = ("/py.typed", "/templates/page.html", "/templates/script.js", "/templates/style.css")

# Find the Python versions that pyenv has installed, whether activated or not.
for folder in Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser().glob("versions/*/bin"):
    os.environ["PATH"] += os.pathsep + str(folder)

nox.options.sessions = ["test"]
nox.options.error_on_missing_interpreters = False  # the summary lists missing versions


def constraints(python: str) -> list[str]:
    """Options that pin packages for a Python version: its own file if there is one."""
    own = ROOT / f"constraints-{python}.txt"
    return ["--constraint", str(own if own.exists() else ROOT / "constraints.txt")]


@nox.session(python=PYTHONS)
def test(session: nox.Session) -> None:
    """Run all tests; arguments after `--` go to pytest."""
    session.install(*constraints(str(session.python)), ".[test]")
    session.run("pytest", *session.posargs)


@nox.session(python=PYTHONS)
def smoke(session: nox.Session) -> None:
    """Import, fit, score, save, load and report, with only the required packages installed."""
    session.install(*constraints(str(session.python)), ".")
    _run_smoke(session)


@nox.session
@nox.parametrize("kind", ["wheel", "sdist"])
def dist(session: nox.Session, kind: str) -> None:
    """Install the package in dist/ into an empty environment and run the smoke test."""
    (artifact,) = (ROOT / "dist").glob({"wheel": "*.whl", "sdist": "*.tar.gz"}[kind])
    _check_contents(session, artifact)
    session.install("--constraint", str(ROOT / "constraints.txt"), str(artifact))
    _run_smoke(session)


def _run_smoke(session: nox.Session) -> None:
    folder = Path(session.create_tmp())
    shutil.copy(ROOT / "tests" / "smoke.py", folder)
    with session.chdir(folder):
        session.run("python", "smoke.py")


def _check_contents(session: nox.Session, artifact: Path) -> None:
    if artifact.suffix == ".whl":
        with zipfile.ZipFile(artifact) as wheel:
            names = wheel.namelist()
    else:
        with tarfile.open(artifact) as sdist:
            names = sdist.getnames()
    missing = [end for end in DATA_FILES if not any(name.endswith(end) for name in names)]
    if missing:
        session.error(f"{artifact.name} lacks {', '.join(missing)}")
    tests = [name for name in names if "tests" in Path(name).parts]
    if tests:  # tests need docs/ and benchmarks/, so they run only from a checkout
        session.error(f"{artifact.name} contains tests: {', '.join(tests[:3])}")
    session.log(f"{artifact.name}: {len(names)} files, {artifact.stat().st_size / 1e6:.1f} MB")
