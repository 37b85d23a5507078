"""Compiled code is cached on disk, and compiled again after a change of its sources."""

import os
import platform
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numba
import numpy as np
import pytest
from benchmarks.attacks.kernel_cache import attack

import diffint
from diffint import DiffInt
from diffint.engine.code_folder import code_folder
from diffint.engine.compile_lock import compiling_alone
from diffint.engine.kernel_cache import compile_now, compiled, flush_tiny_numbers, set_float_mode

SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import diffint
assert diffint.__file__.startswith(sys.argv[1])
from diffint.engine.cpu import interval_layer as fused
x = np.zeros((4, 2), dtype=np.float32)
print(float(fused.log_box_memberships(x, x[:3] - 1, x[:3] + 1, 0.1)[0, 0]))
"""


FIT = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from diffint import DiffInt
from diffint.engine.compile_ahead import FitKind, kernels_of_a_fit
rows = np.random.default_rng(0).normal(size=(200, 5))
print(any(kernel.is_compiled for kernel in kernels_of_a_fit(FitKind(False, False, False, True))))
detector = DiffInt(random_state=0, n_units=20, hidden_width=16, epochs=20).fit(rows)
print(detector.anomaly_score(rows).tobytes().hex())
"""


@pytest.fixture
def copy(tmp_path):
    """A copy of the package without compiled code."""
    source = Path(diffint.__file__).parent
    target = tmp_path / "site" / "diffint"
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    return target


def run(copy, script=SCRIPT):
    done = subprocess.run(
        [sys.executable, "-c", script, str(copy.parent)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NUMBA_CACHE_DIR": str(copy.parent / "cache")},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_change_in_a_called_function_is_detected(copy):
    before = run(copy)
    files = {*copy.parent.rglob("*.code")}
    assert files
    assert run(copy) == before
    # The compiled loop calls a function in another file.
    called = copy / "engine" / "cpu" / "product_tile.py"
    text = called.read_text()
    changed = text.replace("bits(0x3F800000)", "bits(0x3FA00000)")
    assert changed != text
    called.write_text(changed)
    assert run(copy) != before
    assert {*copy.parent.rglob("*.code")} == files  # the old code was replaced


def test_without_compilation_there_is_one_clear_error(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("a,b\n" + "1,2\n3,5\n" * 20)
    done = subprocess.run(
        [sys.executable, "-m", "diffint", "fit", str(table), "-o", str(tmp_path / "model")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    )
    assert done.returncode == 2
    assert done.stderr.startswith("diffint: the environment variable NUMBA_DISABLE_JIT is set")
    assert done.stderr.count("\n") == 1
    assert [*tmp_path.iterdir()] == [table]


def test_compiled_and_cached_code_give_the_same_bits(copy):
    is_cached, scores = run(copy, FIT).split()
    assert is_cached == "False"
    assert run(copy, FIT).split() == ["True", scores]


def thirds(x):
    return x / 3


def test_code_that_another_process_compiles_is_only_loaded(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    waiting, other = compiled(thirds), compiled(thirds)
    with compiling_alone(code_folder(), lambda: False):  # as the other process
        thread = threading.Thread(target=waiting, args=(6.0,))
        thread.start()
        thread.join(0.3)
        assert not waiting.signatures
        compile_now(other, (numba.float64,))
        thread.join()
        assert waiting.stats.cache_hits
    assert waiting(6.0) == 2.0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_random_damage_never_changes_a_result():
    counts = attack(count=10, seed=0)
    assert counts.pop("tried") == counts.pop("right") == 10
    assert not any(counts.values())


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="needs x86")
def test_tiny_numbers_are_zero_only_between_the_two_calls():
    @compiled
    def halves(x, during, after):
        mode = flush_tiny_numbers()
        for i in range(x.shape[0]):
            during[i] = x[i] / 2
        set_float_mode(mode)
        for i in range(x.shape[0]):
            after[i] = x[i] / 2

    x = np.array([1e-40, -1e-40, 1e-38, 1.0], dtype=np.float32)
    during, after = np.empty_like(x), np.empty_like(x)
    halves(x, during, after)
    assert during.tolist() == [0.0, 0.0, 0.0, 0.5]
    assert after.tolist() == (x / 2).tolist() != during.tolist()


def test_a_fit_restores_the_float_mode():
    rows = np.random.default_rng(0).normal(size=(60, 3))
    DiffInt(n_units=16, hidden_width=16, epochs=2, n_jobs=1, random_state=0).fit(rows)
    assert np.float32(1e-40) / np.float32(2) > 0
