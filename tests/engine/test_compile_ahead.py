"""The first fit on a machine: compiled in other processes, stopped at once, never an obstacle."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest

from diffint import DiffInt
from diffint.engine import compile_ahead
from diffint.engine.compile_ahead import FitKind, kernels_of_a_fit
from diffint.fit.progress import compiling_progress

KINDS = [
    FitKind(certified, by_difference, on_cpu=True)
    for certified in (False, True)
    for by_difference in (False, True)
]

# Prints what this process compiled itself, then the scores.
FIT = """
import sys, warnings
import numpy as np
from numba.core import event
from diffint import DiffInt
warnings.simplefilter("ignore")

class Listener(event.Listener):
    def on_start(self, happened):
        compiled.append(happened.data["dispatcher"].py_func.__name__)
    def on_end(self, happened):
        pass

compiled = []
event.register("numba:compile", Listener())
settings = {
    "certified": {"decoder": "certified"},
    "difference": {"scaling": "none"},
    "plain": {},
}[sys.argv[1]]
rows = np.random.default_rng(0).normal(size=(200, 5)) * 9
detector = DiffInt(
    random_state=0, n_units=20, hidden_width=16, epochs=5, verbose=1, n_jobs=2, **settings
).fit(rows)
print(",".join(compiled) or "nothing")
print(detector.model_.calibration.scores.tobytes().hex())
"""


def environment(cache, **more):
    return {**os.environ, "NUMBA_CACHE_DIR": str(cache), **more}


def fit(cache, kind="plain", script=FIT, **more):
    done = subprocess.run(
        [sys.executable, "-c", script, kind],
        capture_output=True,
        text=True,
        check=False,
        env=environment(cache, **more),
    )
    assert done.returncode == 0, done.stderr
    compiled, scores = done.stdout.split()
    return compiled, scores, done.stderr


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A folder for the cache, and what the first fit with it gave."""
    cache = tmp_path_factory.mktemp("cache")
    return cache, fit(cache)


def forget(cache, *names):
    """Take kernels out of the cache."""
    for name in names:
        files = [*cache.rglob(f"*.{name}-*.nb[ic]")]
        assert files
        for file in files:
            file.unlink()


def test_a_fit_finds_all_it_needs_in_the_cache(first):
    # The signatures that the other processes compile are those that a fit calls.
    cache, (compiled, scores, said) = first
    assert compiled == "nothing"
    assert [line.split()[0] for line in said.splitlines()] == ["compiling,", "compiled"]
    assert fit(cache) == ("nothing", scores, "")


@pytest.mark.parametrize("kind", ["certified", "difference"])
def test_so_does_a_fit_of_another_kind(first, kind):
    compiled, _, said = fit(first[0], kind)
    assert compiled == "nothing"
    assert said.startswith("compiling")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kernel_has_a_name_of_its_own(kind):
    kernels = kernels_of_a_fit(kind)
    assert len({kernel.name for kernel in kernels}) == len(kernels)
    assert len(kernels_of_a_fit(kind._replace(on_cpu=False))) < len(kernels)


def test_no_folder_for_the_cache(first):
    _, (_, scores, _) = first
    nowhere = "from numba.core import caching; caching.CacheImpl._locator_classes = []\n"
    compiled, same_scores, said = fit("", script=nowhere + FIT)
    assert "step_loop" in compiled
    assert same_scores == scores
    assert said == ""


def test_processes_that_fail(first):
    cache, (_, scores, _) = first
    forget(cache, "update", "count_inside")
    broken = FIT.replace(
        "compiled = []",
        "compiled = []; from diffint.engine import compile_ahead\n"
        "compile_ahead._START = 'raise OSError'",
    )
    compiled, same_scores, _ = fit(cache, script=broken)
    assert {"update", "count_inside"} <= set(compiled.split(","))
    assert same_scores == scores


def test_fits_at_the_same_time(first):
    cache, (_, scores, _) = first
    forget(cache, "update", "count_inside", "prepare")
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", FIT, "plain"],
            stdout=subprocess.PIPE,
            text=True,
            env=environment(cache),
        )
        for _ in range(3)
    ]
    results = [process.communicate(timeout=300)[0].split() for process in processes]
    assert [result[1] for result in results] == [scores] * 3


def test_a_daemonic_process_compiles_by_itself(monkeypatch):
    kernels = kernels_of_a_fit(KINDS[0])
    assert compile_ahead._processes_can_help(kernels)
    with monkeypatch.context() as patch:
        patch.setattr(compile_ahead.multiprocessing, "parent_process", lambda: object())
        assert not compile_ahead._processes_can_help(kernels)
    with monkeypatch.context() as patch:
        patch.setattr(compile_ahead.sys, "executable", "/usr/bin/uwsgi")
        assert not compile_ahead._processes_can_help(kernels)
    with monkeypatch.context() as patch:
        patch.setattr(compile_ahead.sys, "frozen", True, raising=False)
        assert not compile_ahead._processes_can_help(kernels)


def start_fit(cache):
    """A process that is compiling, and the processes that do it."""
    process = subprocess.Popen(
        [sys.executable, "-c", FIT, "plain"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(cache),
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while len(children := psutil.Process(process.pid).children()) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(2)  # let them get to work
    return process, children


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="signals of POSIX")
@pytest.mark.parametrize("number", ["SIGINT", "SIGKILL"])
def test_whoever_ends_the_fit_ends_the_compiling(tmp_path, number):
    process, children = start_fit(tmp_path)
    sent = time.monotonic()
    process.send_signal(getattr(signal, number))
    _, said = process.communicate(timeout=30)
    took = time.monotonic() - sent
    _, alive = psutil.wait_procs(children, timeout=5)
    assert not alive
    assert took < 5  # 0.2 s, on a machine that has nothing else to do
    if number == "SIGINT":
        assert "KeyboardInterrupt" in said


def test_lines_where_there_is_no_terminal(capsys):
    with compiling_progress(1) as (started, done):
        started(3)
        done(0.5)
    assert capsys.readouterr().err.startswith("compiling, once on this machine …\ncompiled in 0 s")
    with compiling_progress(1):
        pass  # nothing to compile
    with compiling_progress(0) as (started, done):
        started(3)
        done(1.0)
    assert capsys.readouterr().err == ""


def test_the_bar_counts_steps(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with compiling_progress(1) as (started, done):
        started(2)
        done(0.75)
    said = capsys.readouterr().err
    assert "compiling, once on this machine" in said
    assert "step 1/2" in said


def test_a_second_fit_looks_for_nothing(monkeypatch):
    rows = np.random.default_rng(0).normal(size=(60, 3))
    detector = DiffInt(n_units=16, hidden_width=16, epochs=2, n_jobs=1, random_state=0).fit(rows)
    monkeypatch.setattr(compile_ahead, "kernels_of_a_fit", None)
    detector.fit(rows)
