from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import psutil
import pytest

from diffint.bench import runner
from diffint.bench.baselines import chosen_methods
from diffint.bench.grid import Grid, Limits, limit_was_raised
from diffint.bench.runner import Event, run_grid
from diffint.bench.store import Cell, Row, Store, read_rows
from diffint.bench.suites import ADBENCH

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two small synthetic tables with names of benchmark tables."""
    folder = tmp_path_factory.mktemp("tables")
    for number, name in enumerate(("45_wine", "14_glass")):
        rng = np.random.default_rng(number)
        y = (np.arange(120) % 6 == 0).astype(int)
        x = rng.normal(size=(120, 4)) + 2.0 * y[:, None] * rng.random((120, 4))
        np.savez(folder / f"{name}.npz", X=x, y=y)
    return folder


def run(
    folder: Path,
    output: Path,
    *plugins: str,
    methods: tuple[str, ...] = (),
    limits: Limits = Limits(20.0, 4.0),  # noqa: B008
    **grid: object,
) -> dict[Cell, Row]:
    """Run plugins and methods on the tables. → all rows of the store"""
    sources = [f"tests.bench.plugins:{name}" for name in plugins]
    settings = {"regimes": ("paper", "fair"), "seeds": (0,), "tables": (), **grid}
    tables, _ = ADBENCH.find(folder, settings.pop("tables"))  # type: ignore[arg-type]
    whole = Grid(tables, chosen_methods(methods, sources), **settings)  # type: ignore[arg-type]
    with Store(output, lambda row: limit_was_raised(row, limits)) as store:
        run_grid(whole, store, 2, limits)
    return {row.cell: row for row in read_rows(output)}


def test_rows_of_working_detectors(folder: Path, tmp_path: Path) -> None:
    rows = run(
        folder,
        tmp_path / "r.csv",
        "Distance",
        "forest",
        "Seeded",
        methods=("DiffInt",),
        seeds=(0, 1),
    )
    assert len(rows) == 2 * 4 * 2 * 2
    for row in rows.values():
        assert row.state == "ok", row
        assert row.roc_auc is not None
        assert row.average_precision is not None
        if row.method != "Seeded":
            assert row.roc_auc > 0.6, row  # high = anomalous, for every kind of score
        assert row.n_test == 48
        assert row.n_train is not None
        assert (row.n_train == 72) == (row.regime == "paper" and row.method != "DiffInt")
        assert row.peak_memory_mb is not None
        assert row.peak_memory_mb > 50
        assert "1 core" in row.processor
        assert "scikit-learn" in row.versions
        assert (row.time_limit, row.memory_limit_gb, row.seeds_together) == (20.0, 4.0, 1)
    one = Cell("45_wine", "Seeded", "fair", 0)
    assert rows[one].roc_auc != rows[one._replace(seed=1)].roc_auc
    assert rows[one].roc_auc == rows[one._replace(regime="paper")].roc_auc
    clean, all_ = (rows[Cell("45_wine", "Distance", r, 0)] for r in ("fair", "paper"))  # type: ignore[arg-type]
    assert clean.n_train is not None
    assert clean.n_train < 72
    assert clean.roc_auc != all_.roc_auc


@pytest.mark.parametrize(
    ("name", "state", "message"),
    [
        ("Crashes", "error", "died while fitting (SIGSEGV)"),
        ("Exits", "error", "died while fitting (exit code 3)"),
        ("RaisesMemoryError", "out of memory", "Unable to allocate"),
        ("ReturnsNaN", "error", "returned NaN for 3 of 48 rows"),
        ("WrongLength", "error", "returned scores of shape (47,) for 48 rows"),
        ("Raises", "error", "RuntimeError: this table, here, is not supported"),
        ("WithoutScore", "error", "WithoutScore has no score"),
        ("UnencodableMessage", "error", "RuntimeError: in the file"),
        ("WritesToPipe", "error", "its message cannot be read"),
        ("Killed", "out of memory", "died while fitting (SIGKILL), probably because"),
    ],
)
def test_failing_detectors_are_recorded_and_the_run_continues(
    folder: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    name: str,
    state: str,
    message: str,
) -> None:
    rows = run(folder, tmp_path / "r.csv", name, "Distance", regimes=("fair",))
    assert len(rows) == 4
    for row in rows.values():
        if row.method == "Distance":
            assert row.state == "ok"
        else:
            assert row.state == state
            assert message in row.message
            assert row.roc_auc is None
    assert "noise" not in "".join(capfd.readouterr())


def test_a_detector_that_uses_too_much_memory_is_stopped(folder: Path, tmp_path: Path) -> None:
    rows = run(
        folder,
        tmp_path / "r.csv",
        "UsesAllMemory",
        "Distance",
        tables=["wine"],
        limits=Limits(60.0, 1.0),
    )
    fair, paper = (rows[Cell("45_wine", "UsesAllMemory", r, 0)] for r in ("fair", "paper"))  # type: ignore[arg-type]
    assert fair.state == "out of memory"
    assert "over the limit of 1 GB" in fair.message
    assert fair.peak_memory_mb is not None
    assert 1024 < fair.peak_memory_mb < 4000
    assert paper.state == "out of memory"
    assert paper.message.startswith("not run; on the inliers alone")
    assert rows[Cell("45_wine", "Distance", "fair", 0)].state == "ok"


def test_detectors_that_hang_are_stopped_with_their_children(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    monkeypatch.setenv("PLUGIN_LOG", str(log))
    code = f"""
from pathlib import Path
from tests.bench.test_runner import run, Limits
run(Path({str(folder)!r}), Path({str(tmp_path / "r.csv")!r}), "Hangs", "HangsScoring", seeds=(0, 1),
    regimes=("fair",), tables=["wine"], limits=Limits(1.0, 4.0))
"""
    # In a new process: the server of this one has already started, with its environment.
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=120)
    rows = {row.cell: row for row in read_rows(tmp_path / "r.csv")}
    # If the first seed times out, the table counts as missing and the second seed is not run.
    assert {cell.method for cell in rows} == {"Hangs", "HangsScoring"}
    assert {cell.seed for cell in rows} == {0}
    fitting, scoring = sorted(row.message for row in rows.values())
    assert fitting == "still fitting after 1 s"
    assert scoring == "still scoring after 1 s"
    assert {row.state for row in rows.values()} == {"timeout"}
    pid = int(log.read_text().split()[-1])  # after the line of the fit
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == "zombie"


def test_runs_that_exceeded_a_lower_limit_are_repeated(folder: Path, tmp_path: Path) -> None:
    part = {"regimes": ("fair",), "tables": ["wine"]}
    for seconds, states in ((0.3, ["timeout"]), (0.2, ["timeout"]), (20.0, ["timeout", "ok"])):
        run(folder, tmp_path / "r.csv", "Slow", limits=Limits(seconds, 4.0), **part)  # type: ignore[arg-type]
        assert [row.state for row in read_rows(tmp_path / "r.csv")] == states


def test_runs_that_are_equal_in_both_regimes_run_once(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "r.csv"
    rows = run(folder, output, "OnInliers", regimes=("fair",))
    assert len(rows) == 2
    both = run(folder, output, "OnInliers", "Distance")
    for table in ("45_wine", "14_glass"):
        fair, paper = (both[Cell(table, "OnInliers", r, 0)] for r in ("fair", "paper"))  # type: ignore[arg-type]
        assert fair == rows[fair.cell]
        assert paper.fit_seconds == fair.fit_seconds
        assert paper.roc_auc == fair.roc_auc


def test_slow_methods_run_fewer_seeds(folder: Path, tmp_path: Path) -> None:
    rows = run(
        folder,
        tmp_path / "r.csv",
        "Slowish",
        "Distance",
        regimes=("fair",),
        seeds=(0, 1, 2, 3),
        slow_after=0.05,
        slow_seeds=2,
    )
    counts = Counter(cell.method for cell in rows)
    assert counts == {"Slowish": 2 * 2, "Distance": 2 * 4}


def test_children_outside_the_process_group_are_stopped(folder: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = f"""
import os
os.environ["PLUGIN_LOG"] = {str(log)!r}
from pathlib import Path
from tests.bench.test_runner import run
run(Path({str(folder)!r}), Path({str(tmp_path / "r.csv")!r}), "StartsSession", regimes=("fair",),
    tables=["wine"])
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=120)
    assert [row.state for row in read_rows(tmp_path / "r.csv")] == ["ok"]
    pid = int(log.read_text().split()[0])
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == "zombie"


def test_no_row_is_lost_when_the_server_dies(folder: Path, tmp_path: Path) -> None:
    rows = run(folder, tmp_path / "r.csv", "KillsServer", "Slowish", "Distance", seeds=(0, 1))
    states = {cell.method: row.state for cell, row in rows.items()}
    assert states == {"KillsServer": "error", "Slowish": "ok", "Distance": "ok"}
    assert len(rows) == 2 * 3 * 2 * 2


def test_progress_is_reported(folder: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(runner, "_DRAW_EVERY", 0.0)  # the runs end sooner than that
    events: list[Event] = []
    grid = Grid(
        ADBENCH.find(folder)[0],
        chosen_methods([], ["tests.bench.plugins:Slowish"]),
        ("fair",),
        (0, 1),
    )
    with Store(tmp_path / "r.csv") as store:
        run_grid(grid, store, 1, Limits(), events.append)
    assert events[-1].settled == events[-1].total == 4
    assert any(event.running == ["Slowish on 45_wine"] for event in events)
    assert any((event.seconds_left or 0) > 0 for event in events)
    settled = [event.settled for event in events]
    assert settled == sorted(settled)


GRID = """
import sys
from pathlib import Path
from tests.bench.test_runner import run
run(Path(sys.argv[1]), Path(sys.argv[2]), "Slowish", "OnInliers", "Seeded", "ReturnsNaN",
    seeds=(0, 1, 2, 3, 4))
"""


def start(folder: Path, output: Path, log: Path) -> subprocess.Popen[bytes]:
    """Run the small grid in a new process with its own process group."""
    environment = {**os.environ, "PLUGIN_LOG": str(log)}
    return subprocess.Popen(
        [sys.executable, "-c", GRID, str(folder), str(output)],
        cwd=ROOT,
        env=environment,
        start_new_session=True,
    )


def reproducible(path: Path) -> list[tuple[object, ...]]:
    """The parts of the rows that must be reproduced, sorted; times differ."""
    return sorted(
        (*row.cell, row.state, row.message, row.roc_auc, row.average_precision)
        for row in read_rows(path)
    )


def test_killed_again_and_again_and_resumed_gives_the_same_rows(
    folder: Path, tmp_path: Path
) -> None:
    straight, killed = tmp_path / "straight.csv", tmp_path / "killed.csv"
    log = tmp_path / "log"
    assert start(folder, straight, log).wait(120) == 0

    def n_lines() -> int:
        return killed.read_bytes().count(b"\n") if killed.exists() else 0

    moments, kills = random.Random(7), 0
    for _ in range(8):
        enough = n_lines() + moments.randrange(3)  # the first line is the header
        process = start(folder, killed, log)
        while process.poll() is None and n_lines() <= enough:
            time.sleep(0.01)
        time.sleep(moments.uniform(0.0, 0.1))
        kills += process.poll() is None
        process.send_signal(signal.SIGKILL)  # only the runner; its processes must end by themselves
        process.wait()
    assert kills >= 3  # otherwise the test has no effect
    assert start(folder, killed, log).wait(120) == 0
    assert reproducible(killed) == reproducible(straight)
    assert len(reproducible(straight)) == 2 * 4 * 2 * 5
    assert killed.read_bytes().count(b"\n") == 1 + len(reproducible(straight))


def test_no_process_outlives_a_killed_runner(folder: Path, tmp_path: Path) -> None:
    process = start(folder, tmp_path / "r.csv", tmp_path / "log")
    family: list[psutil.Process] = []
    until = time.monotonic() + 60
    while len(family) < 3 and time.monotonic() < until:  # tracker, server, a run
        family = psutil.Process(process.pid).children(recursive=True)
        time.sleep(0.02)
    process.kill()
    process.wait()
    _, alive = psutil.wait_procs(family, timeout=20)
    assert not alive


def test_two_commands_on_one_store_share_the_work(folder: Path, tmp_path: Path) -> None:
    straight, shared = tmp_path / "straight.csv", tmp_path / "shared.csv"
    logs = [tmp_path / name for name in ("alone", "first", "second")]
    assert start(folder, straight, logs[0]).wait(120) == 0
    both = [start(folder, shared, log) for log in logs[1:]]
    assert [process.wait(120) for process in both] == [0, 0]
    assert reproducible(shared) == reproducible(straight)
    assert shared.read_bytes().count(b"\n") == straight.read_bytes().count(b"\n")
    alone, first, second = (len(log.read_text().splitlines()) for log in logs)
    assert first + second == alone  # no fit was made twice
    assert first
    assert second
