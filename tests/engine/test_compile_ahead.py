"""The first fit on a machine: parallel compilation, its interruption and its failures."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from diffint import DiffInt
from diffint.engine import compile_ahead
from diffint.engine.code_folder import CodeFolder, code_folder
from diffint.engine.compile_ahead import FitKind, kernels_of_a_fit
from diffint.engine.compile_lock import compiling_alone

from ..waiting import LIMIT, wait_for_end, wait_until

KINDS = [
    FitKind(certified, normalised, by_difference, on_cpu=True)
    for certified, normalised in ((False, False), (True, False), (True, True))
    for by_difference in (False, True)
]

# Prints the functions that the process compiled itself, then the scores.
FIT = """
import sys, warnings
import numpy as np
from numba.core import event
from diffint import DiffInt
warnings.simplefilter("ignore")

class Listener(event.Listener):
    def on_start(self, event):
        compiled.append(event.data["dispatcher"].py_func.__name__)
    def on_end(self, event):
        pass

compiled = []
event.register("numba:compile", Listener())
settings = {
    "certified": {"decoder": "certified"},
    "spectral": {"decoder": "spectral"},
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
    """A cache folder and the result of the first fit that uses it."""
    cache = tmp_path_factory.mktemp("cache")
    return cache, fit(cache)


def remove_kernels(cache, *names):
    """Remove kernels from the cache."""
    for name in names:
        files = [*cache.rglob(f"*.{name}-*.code")]
        assert files
        for file in files:
            file.unlink()


def test_a_fit_finds_all_its_kernels_in_the_cache(first):
    # So the other processes compile for the argument types that a fit uses.
    cache, (compiled, scores, output) = first
    assert compiled == "nothing"
    assert [line.split()[1] for line in output.splitlines()] == [
        "fitting",
        "compiling,",
        "ready",
        "fitted",
    ]
    compiled, again, output = fit(cache)
    assert (compiled, again) == ("nothing", scores)
    assert "compiling" not in output


@pytest.mark.parametrize("kind", ["certified", "spectral", "difference"])
def test_a_fit_of_another_kind_finds_all_its_kernels(first, kind):
    compiled, _, output = fit(first[0], kind)
    assert compiled == "nothing"
    assert "compiling, once" in output


@pytest.mark.parametrize("kind", KINDS)
def test_kernel_names_are_unique(kind):
    kernels = kernels_of_a_fit(kind)
    assert len({kernel.name for kernel in kernels}) == len(kernels)
    assert len(kernels_of_a_fit(kind._replace(on_cpu=False))) < len(kernels)


def test_without_a_cache_folder(first):
    _, (_, scores, _) = first
    compiled, same_scores, output = fit("/dev/null", script=FIT.replace('"ignore"', '"default"'))
    assert "step_loop" in compiled
    assert same_scores == scores
    assert output.count("CacheWarning") == 1
    assert "cannot be kept in '/dev/null/diffint/" in output
    assert "Not a directory" in output
    assert "NUMBA_CACHE_DIR" in output


def test_failing_processes(first):
    cache, (_, scores, _) = first
    remove_kernels(cache, "update", "count_inside")
    broken = FIT.replace(
        "compiled = []",
        "compiled = []; from diffint.engine import compile_ahead\n"
        "compile_ahead._START = 'raise OSError'",
    )
    compiled, same_scores, _ = fit(cache, script=broken)
    assert {"update", "count_inside"} <= set(compiled.split(","))
    assert same_scores == scores


def test_of_concurrent_fits_one_compiles(first):
    cache, (_, scores, _) = first
    remove_kernels(cache, "update", "count_inside", "prepare")
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", FIT, "plain"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(cache),
        )
        for _ in range(4)
    ]
    results = [process.communicate(timeout=LIMIT) for process in processes]
    assert [result[0].split() for result in results] == [["nothing", scores]] * 4
    assert sum("compiling, once" in result[1] for result in results) == 1


def test_when_processes_cannot_be_started(monkeypatch):
    assert compile_ahead._processes_can_help()
    with monkeypatch.context() as patch:
        patch.setattr(compile_ahead.multiprocessing, "parent_process", lambda: object())
        assert not compile_ahead._processes_can_help()
    with monkeypatch.context() as patch:
        patch.setattr(compile_ahead.sys, "executable", "/usr/bin/uwsgi")
        assert not compile_ahead._processes_can_help()
    with monkeypatch.context() as patch:
        patch.setattr(compile_ahead.sys, "frozen", True, raising=False)
        assert not compile_ahead._processes_can_help()


# Every compiler process leaves its number, and compiles for ever.
COMPILES_FOR_EVER = """
from diffint.engine import compile_ahead
def compile(kernel):
    open(f"{folder}/{{os.getpid()}}", "w").close()
    while True:
        pass
compile_ahead.Kernel.compile = compile
"""


def start_fit(cache):
    """A process that fits, and its compiler processes."""
    numbers = cache / "numbers"
    numbers.mkdir()
    before = "serve(FitKind"
    change = COMPILES_FOR_EVER.format(folder=numbers)
    patch = f"compile_ahead._START = compile_ahead._START.replace({before!r}, {change + before!r})"
    script = FIT.replace(
        "compiled = []", f"compiled = []; from diffint.engine import compile_ahead; {patch}"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, "plain"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(cache),
        start_new_session=True,
    )
    wait_until(lambda: len(os.listdir(numbers)) == 2)
    return process, map(int, os.listdir(numbers))


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs POSIX signals")
@pytest.mark.parametrize("number", ["SIGINT", "SIGKILL"])
def test_ending_the_fit_ends_the_compiler_processes(tmp_path, number):
    process, children = start_fit(tmp_path)
    process.send_signal(getattr(signal, number))
    _, output = process.communicate(timeout=LIMIT)
    wait_for_end(*children)
    if number == "SIGINT":
        assert "KeyboardInterrupt" in output


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_process_that_waits_says_so_and_can_be_stopped(tmp_path, number):
    table = tmp_path / "table.csv"
    table.write_text("a,b\n" + "1,2\n3,5\n" * 20)
    folder = CodeFolder(tmp_path / code_folder().path.relative_to(code_folder().path.parents[1]))
    with compiling_alone(folder, lambda: False):  # as another process
        process = subprocess.Popen(
            [sys.executable, "-m", "diffint", "fit", str(table), "-o", str(tmp_path / "model")],
            stderr=subprocess.PIPE,
            text=True,
            env=environment(tmp_path),
        )
        assert any("another process is compiling; waiting" in line for line in process.stderr)
        process.send_signal(number)
        assert process.wait(LIMIT) == 128 + number
    assert "interrupted; no file was written" in process.stderr.read()
    assert not (tmp_path / "model").exists()


def test_a_second_fit_does_not_check_the_cache(monkeypatch):
    rows = np.random.default_rng(0).normal(size=(60, 3))
    detector = DiffInt(n_units=16, hidden_width=16, epochs=2, n_jobs=1, random_state=0).fit(rows)
    monkeypatch.setattr(compile_ahead, "kernels_of_a_fit", None)
    detector.fit(rows)
