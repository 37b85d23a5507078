"""Compiled code is kept on disk, and never outlives the sources it was made of."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import diffint

SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from diffint.compiled.forward import decode
from diffint.compiled import layout, linear
import diffint
assert diffint.__file__.startswith(sys.argv[1])
from numba import njit
from diffint.compiling import compiled
from diffint.intervals import fused
x = np.zeros((4, 2), dtype=np.float32)
print(float(fused.log_box_memberships(x, x[:3] - 1, x[:3] + 1, 0.1)[0, 0]))
print(sum(linear.multiply_add.stats.cache_hits.values()) >= 0)
"""


@pytest.fixture
def copy(tmp_path):
    """A copy of the package without compiled code."""
    source = Path(diffint.__file__).parent
    target = tmp_path / "site" / "diffint"
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    return target


def run(copy, **environment):
    import os

    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(copy.parent)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_change_in_a_called_function_is_noticed(copy):
    before = run(copy)
    assert list(copy.rglob("*.nbc"))
    kernel = copy / "intervals" / "cpu.py"
    text = kernel.read_text()
    assert "_MAX_RECIPROCAL = np.float32(1e8)" in text
    assert run(copy) == before
    # The function that is called by the compiled loop, not the loop itself.
    changed = text.replace(
        "return min((_ONE + v * p) * (_ONE + u * q)", "return min((_ONE + v * p) * np.float32(2)"
    )
    assert changed != text
    kernel.write_text(changed)
    assert run(copy) != before


def test_a_cache_on_a_full_disk_is_no_error(copy, tmp_path):
    # /dev/full refuses every write; a folder cannot be made of it, so numba falls back as well.
    assert run(copy, NUMBA_CACHE_DIR="/dev/full")
