"""What runs in environments of its own: other Pythons (`make test-all`), packages (`make dist`).

`nox -s smoke` is the quick form of the first: a tiny fit on every Python instead of all tests.
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
# Files that nothing imports and that are therefore easily left out of a package.
DATA_FILES = ("/py.typed", "/templates/page.html", "/templates/script.js", "/templates/style.css")

# Pythons that pyenv holds are here, switched on or not.
for folder in Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser().glob("versions/*/bin"):
    os.environ["PATH"] += os.pathsep + str(folder)

nox.options.sessions = ["test"]
nox.options.error_on_missing_interpreters = False  # the summary names those that are absent


def constraints(python: str) -> list[str]:
    """The pins for a Python: a file of its own where there is one, else the common one."""
    own = ROOT / f"constraints-{python}.txt"
    return ["--constraint", str(own if own.exists() else ROOT / "constraints.txt")]


@nox.session(python=PYTHONS)
def test(session: nox.Session) -> None:
    """All tests; arguments after `--` go to pytest."""
    session.install(*constraints(str(session.python)), ".[test]")
    session.run("pytest", *session.posargs)


@nox.session(python=PYTHONS)
def smoke(session: nox.Session) -> None:
    """Import, fit, score, save, load and report, with what the package itself requires."""
    session.install(*constraints(str(session.python)), ".")
    _run_smoke(session)


@nox.session
@nox.parametrize("kind", ["wheel", "sdist"])
def dist(session: nox.Session, kind: str) -> None:
    """Install what `python -m build` left in dist/ into an empty environment and try it."""
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
    if tests:  # they need the docs and the benchmarks too, and are run from a checkout
        session.error(f"{artifact.name} holds tests: {', '.join(tests[:3])}")
    session.log(f"{artifact.name}: {len(names)} files, {artifact.stat().st_size / 1e6:.1f} MB")
