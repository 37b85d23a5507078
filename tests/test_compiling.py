"""Compiled code is kept on disk, and never outlives the sources it was made of."""

import os
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
import diffint
assert diffint.__file__.startswith(sys.argv[1])
from diffint.intervals import fused
x = np.zeros((4, 2), dtype=np.float32)
print(float(fused.log_box_memberships(x, x[:3] - 1, x[:3] + 1, 0.1)[0, 0]))
"""


FIT = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from diffint import DiffInt
rows = np.random.default_rng(0).normal(size=(200, 5))
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


def run(copy, script=SCRIPT, **environment):
    done = subprocess.run(
        [sys.executable, "-c", script, str(copy.parent)],
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
    assert run(copy) == before
    # The code that the compiled loop calls lies in another file than the loop.
    called = copy / "intervals" / "product_tile.py"
    text = called.read_text()
    changed = text.replace("bits(0x3F800000)", "bits(0x3FA00000)")
    assert changed != text
    called.write_text(changed)
    assert run(copy) != before


def test_a_cache_on_a_full_disk_is_no_error(copy):
    # /dev/full refuses every write; a folder cannot be made of it, so numba falls back as well.
    assert run(copy, NUMBA_CACHE_DIR="/dev/full")


def test_code_just_compiled_and_code_read_from_disk_give_the_same_bits(copy):
    assert run(copy, FIT) == run(copy, FIT)
