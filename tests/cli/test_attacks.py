"""Small versions of the attacks in benchmarks/attacks; each runs in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ATTACKS = Path(__file__).parents[2] / "benchmarks" / "attacks"
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's limits and signals")


def attack(name, count):
    command = [sys.executable, str(ATTACKS / f"{name}.py"), "--count", str(count), "--seed", "427"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout[done.stdout.rindex("{") :]), done.stdout


def test_hostile_tables_are_read_or_refused_with_one_line():
    counts, output = attack("tables", 60)
    expected = {"tried": 60, "accepted": counts["accepted"], "refused": counts["refused"]}
    assert {name: times for name, times in counts.items() if times} == expected, output
    assert counts["accepted"] + counts["refused"] == 60
    assert counts["accepted"] > 5


def test_commands_that_are_stopped_leave_whole_files():
    counts, output = attack("commands", 6)
    allowed = ("tried", "finished", "stopped", "before the start")
    assert not any(times for name, times in counts.items() if name not in allowed), output
    assert sum(counts[name] for name in allowed[1:]) == 6
