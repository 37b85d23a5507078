from __future__ import annotations

import multiprocessing
import os
import random
import signal
import subprocess
import sys
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
from diffint.bench.worker import Job, work

from ..waiting import LIMIT, wait_for_end, wait_until

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
    limits: Limits = Limits(LIMIT, 4.0),  # noqa: B008
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
        assert (row.time_limit, row.memory_limit_gb, row.seeds_together) == (LIMIT, 4.0, 1)
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
        "UsesMuchMemory",
        "Distance",
        tables=["wine"],
        limits=Limits(LIMIT, 1.0),
    )
    fair, paper = (rows[Cell("45_wine", "UsesMuchMemory", r, 0)] for r in ("fair", "paper"))  # type: ignore[arg-type]
    assert fair.state == "out of memory"
    assert "over the limit of 1 GB" in fair.message
    assert fair.peak_memory_mb is not None
    assert 1024 < fair.peak_memory_mb < 3000
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
from diffint.bench.process import WatchedProcess
from tests.bench.test_runner import run, Limits
enforce = WatchedProcess._enforce
def enforce_once_both_hang(process):
    log = Path({str(log)!r})
    if log.exists() and len(log.read_text().splitlines()) == 2:
        enforce(process)
WatchedProcess._enforce = enforce_once_both_hang
run(Path({str(folder)!r}), Path({str(tmp_path / "r.csv")!r}), "Hangs", "HangsScoring", seeds=(0, 1),
    regimes=("fair",), tables=["wine"], limits=Limits(1.0, 4.0))
"""
    # In a new process: the server of this one has already started, with its environment.
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=LIMIT)
    rows = {row.cell: row for row in read_rows(tmp_path / "r.csv")}
    # If the first seed times out, the table counts as missing and the second seed is not run.
    assert {cell.method for cell in rows} == {"Hangs", "HangsScoring"}
    assert {cell.seed for cell in rows} == {0}
    fitting, scoring = sorted(row.message for row in rows.values())
    assert fitting == "still fitting after 1 s"
    assert scoring == "still scoring after 1 s"
    assert {row.state for row in rows.values()} == {"timeout"}
    wait_for_end(int(log.read_text().split()[-1]))  # after the line of the fit


def test_runs_that_exceeded_a_lower_limit_are_repeated(folder: Path, tmp_path: Path) -> None:
    gate, output = tmp_path / "gate", tmp_path / "r.csv"
    code = f"""
import os
os.environ["PLUGIN_GATE"] = {str(gate)!r}
from pathlib import Path
from tests.bench.test_runner import LIMIT, Limits, read_rows, run
output = Path({str(output)!r})
for seconds, states in ((0.3, ["timeout"]), (0.2, ["timeout"]), (LIMIT, ["timeout", "ok"])):
    if seconds == LIMIT:
        Path({str(gate)!r}).touch()
    run(Path({str(folder)!r}), output, "Gated", regimes=("fair",), tables=["wine"],
        limits=Limits(seconds, 4.0))
    assert [row.state for row in read_rows(output)] == states
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=LIMIT)


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
        "LooksSlow",
        "Distance",
        regimes=("fair",),
        seeds=(0, 1, 2, 3),
        slow_after=LIMIT,
        slow_seeds=2,
    )
    counts = Counter(cell.method for cell in rows)
    assert counts == {"LooksSlow": 2 * 2, "Distance": 2 * 4}


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
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=LIMIT)
    assert [row.state for row in read_rows(tmp_path / "r.csv")] == ["ok"]
    wait_for_end(int(log.read_text().split()[0]))


def test_a_process_that_is_done_waits_until_its_children_are_found(folder: Path) -> None:
    job = Job("45_wine", folder / "45_wine.npz", "KNN", None, "all", (0,))
    context = multiprocessing.get_context("spawn")
    pipe, child_end = context.Pipe()
    process = context.Process(target=work, args=(job, child_end))
    process.start()
    child_end.close()
    kinds = [pipe.recv()[0] for _ in range(3)]
    assert kinds == ["fitting", "scoring", "done"]
    process.join(1.0)
    assert process.is_alive()
    pipe.close()
    process.join(LIMIT)
    assert process.exitcode == -signal.SIGKILL  # the runner has ended


def test_no_row_is_lost_when_the_server_dies(folder: Path, tmp_path: Path) -> None:
    rows = run(folder, tmp_path / "r.csv", "KillsServer", "Slow", "Distance", tables=["wine"])
    states = [(cell.method, row.state) for cell, row in rows.items()]
    each = [("KillsServer", "error"), ("Slow", "ok"), ("Distance", "ok")]
    assert Counter(states) == dict.fromkeys(each, 2)


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
import os, signal, sys
from pathlib import Path
from diffint.bench import runner
from diffint.bench.store import Store
from tests.bench.test_runner import run

def killed_at(owner, name, moment, before):
    "Kill this process before or after the call of this number."
    function, calls = getattr(owner, name), []
    def call(*arguments, **more):
        calls.append(1)
        if before and len(calls) == moment:
            os.kill(os.getpid(), signal.SIGKILL)
        result = function(*arguments, **more)
        if len(calls) == moment:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    setattr(owner, name, call)

if len(sys.argv) > 4:
    owner = {"add": Store, "wait": runner}[sys.argv[4]]
    killed_at(owner, sys.argv[4], int(sys.argv[5]), sys.argv[6] == "before")
run(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], "OnInliers", "Seeded", "ReturnsNaN",
    seeds=(0, 1, 2, 3, 4))
"""


def start(
    folder: Path, output: Path, log: Path, *killed: object, plugin: str = "Distance", **more: object
) -> subprocess.Popen[bytes]:
    """Run the small grid in a new process with its own process group.

    killed: the function at which the process kills itself, the number of the call, and before or
    after it; more: environment variables.
    """
    environment = {**os.environ, "PLUGIN_LOG": str(log)}
    environment |= {name: str(value) for name, value in more.items()}
    return subprocess.Popen(
        [sys.executable, "-c", GRID, str(folder), str(output), plugin, *map(str, killed)],
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
    assert start(folder, straight, log).wait(LIMIT) == 0
    moments = random.Random(7)
    for function in ("add", "wait") * 3:
        when = moments.choice(["before", "after"])
        # Only the runner is killed; its processes must end by themselves.
        process = start(folder, killed, log, function, moments.randrange(1, 6), when)
        assert process.wait(LIMIT) == -signal.SIGKILL
    assert start(folder, killed, log).wait(LIMIT) == 0
    assert reproducible(killed) == reproducible(straight)
    assert len(reproducible(straight)) == 2 * 4 * 2 * 5
    assert killed.read_bytes().count(b"\n") == 1 + len(reproducible(straight))


def test_no_process_outlives_a_killed_runner(folder: Path, tmp_path: Path) -> None:
    log, gate = tmp_path / "log", tmp_path / "gate"
    process = start(folder, tmp_path / "r.csv", log, plugin="Gated", PLUGIN_GATE=gate)
    wait_until(log.exists)
    family = psutil.Process(process.pid).children(recursive=True)
    assert len(family) >= 3  # tracker, server, a run
    process.kill()
    process.wait()
    wait_for_end(*(member.pid for member in family))


def test_two_commands_on_one_store_share_the_work(folder: Path, tmp_path: Path) -> None:
    straight, shared = tmp_path / "straight.csv", tmp_path / "shared.csv"
    logs = [tmp_path / name for name in ("alone", "first", "second")]
    assert start(folder, straight, logs[0], plugin="Together").wait(LIMIT) == 0
    both = [
        start(folder, shared, log, plugin="Together", PLUGIN_OTHER_LOG=other)
        for log, other in (logs[1:], logs[:0:-1])
    ]
    assert [process.wait(LIMIT) for process in both] == [0, 0]
    assert reproducible(shared) == reproducible(straight)
    assert shared.read_bytes().count(b"\n") == straight.read_bytes().count(b"\n")
    alone, first, second = (len(log.read_text().splitlines()) for log in logs)
    assert first + second == alone  # no fit was made twice
