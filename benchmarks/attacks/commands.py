"""Stop the command with a signal at random moments, and look at what it leaves.

    python benchmarks/attacks/commands.py [--count 200] [--seed 0]

Every command runs as a process, beside an old output file, and is sent SIGINT, SIGTERM, SIGHUP or
SIGKILL at a moment drawn evenly from its usual duration. It must end soon, with the exit code of
the signal (or of a finished command), with at most one line about it; the old output must be
unchanged or completely replaced, and no other file may be left. SIGKILL, which no program can
handle, may leave a hidden temporary file.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas

from diffint import DiffInt

OLD = b"the old content"
ROWS = 20_000
LONGEST_FINISH = 1.0  # seconds for which a command that is about to end may go on
LONGEST_END = 10.0  # seconds from the signal to the end of the process
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
BEFORE_THE_COMMAND = ("diffint/__init__.py", "diffint/__main__.py", "diffint/cli/__init__.py")


def is_model(path: Path) -> bool:
    """Whether the file is a model that can be loaded."""
    try:
        DiffInt.load(path)
    except Exception:
        return False
    return True


def is_page(path: Path) -> bool:
    """Whether the file is a whole HTML page."""
    return path.read_text(errors="replace").rstrip().endswith("</html>")


def has_rows(n_rows: int) -> Callable[[Path], bool]:
    """A check that a CSV or Parquet file has this many rows."""

    def check(path: Path) -> bool:
        try:
            read = pandas.read_parquet if path.suffix == ".parquet" else pandas.read_csv
            return len(read(path)) == n_rows
        except Exception:
            return False

    return check


@dataclass(frozen=True)
class Command:
    """Arguments of the command, and its output files with a check of each."""

    arguments: tuple[str, ...]
    outputs: dict[str, Callable[[Path], bool]]
    weight: int = 1  # how often it is tried, relative to the others


COMMANDS = (
    Command(
        ("fit", "../few.csv", "-o", "new.diffint", "--epochs", "5", "--id", "id"),
        {"new.diffint": is_model},
        4,
    ),
    Command(("score", "../m.diffint", "../t.csv", "-o", "new.csv"), {"new.csv": has_rows(ROWS)}, 4),
    Command(
        ("score", "../m.diffint", "../t.csv", "-o", "new.parquet"),
        {"new.parquet": has_rows(ROWS)},
        2,
    ),
    Command(("score", "../m.diffint", "../t.csv"), {}, 2),
    Command(("explain", "../m.diffint", "../t.csv", "--top", "20"), {}, 2),
    Command(
        ("report", "../m.diffint", "../t.csv", "-o", "new.html", "--top", "50"),
        {"new.html": is_page},
        4,
    ),
    Command(("constraints", "../m.diffint"), {}),
    Command(("info", "../m.diffint"), {}),
    Command(
        ("demo", "--folder", "."),
        {"breast-cancer.diffint": is_model, "biopsies.csv": has_rows(355), "report.html": is_page},
        2,
    ),
)


def make_inputs(folder: Path) -> None:
    """Write the tables t.csv and few.csv, and the model m.diffint."""
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(rng.normal(size=(ROWS, 4)).round(4), columns=list("abcd"))
    frame.insert(0, "id", [f"r{i}" for i in range(ROWS)])
    frame.to_csv(folder / "t.csv", index=False)
    frame[:300].to_csv(folder / "few.csv", index=False)
    detector = DiffInt(epochs=5, n_units=40, random_state=0, false_positive_rate=0.02)
    detector.fit(frame[list("abcd")][:2000])
    detector.id_column_ = "id"
    detector.save(folder / "m.diffint")


def start(command: Command, folder: Path) -> subprocess.Popen[bytes]:
    """The command as a process in a folder with old outputs."""
    folder.mkdir()
    for name in command.outputs:
        (folder / name).write_bytes(OLD)
    return subprocess.Popen(
        [sys.executable, "-m", "diffint", *command.arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONFAULTHANDLER": "1"},
    )


def duration(command: Command, folder: Path) -> float:
    """The seconds of the command if nothing stops it."""
    started = time.perf_counter()
    process = start(command, folder)
    _, said = process.communicate()
    if process.returncode:
        raise SystemExit(f"{command.arguments} failed: {said.decode()}")
    return time.perf_counter() - started


def look_at(
    command: Command, folder: Path, code: int, said: str, number: signal.Signals
) -> list[str]:
    """What happened to a stopped process: names of the counts to add to."""
    found = []
    traces = [line for line in said.splitlines() if line.lstrip().startswith("File ")]
    own = [line for line in traces if "diffint/" in line]
    early = all(line.split('"')[1].endswith(BEFORE_THE_COMMAND) for line in own)
    stopped_codes = {128 + number, -number if early or number == signal.SIGKILL else 0}
    if code == 0:
        found.append("finished")
    elif number != signal.SIGKILL and code == -number:
        found.append("before the start")  # Python had not yet come to the command
    else:
        found.append("stopped")
    if code != 0 and code not in stopped_codes:
        found.append("wrong exit codes")
    # Notes and lines of progress may come before the line that says what happened.
    lines = [line for line in said.splitlines() if not line.startswith(PROGRESS)]
    if "Traceback" in said and found[0] != "before the start":
        found.append("tracebacks")
    elif found[0] == "stopped" and number != signal.SIGKILL and len(lines) != 1:
        found.append("not one line")
    listed = said.partition("already written")[2]
    for name, is_valid in command.outputs.items():
        path = folder / name
        replaced = path.exists() and path.read_bytes() != OLD
        if not path.exists() or (replaced and not is_valid(path)) or (code == 0 and not replaced):
            found.append("half-written")
        if (
            found[0] == "stopped"
            and number != signal.SIGKILL
            and replaced != (repr(name) in listed)
        ):
            found.append("untrue words")
    others = set(os.listdir(folder)) - set(command.outputs)
    hidden = {name for name in others if name.startswith(".")}
    if others - hidden or len(hidden) > (1 if number == signal.SIGKILL else 0):
        found.append("leftovers")
    return found


PROGRESS = (
    "Note: ",
    *(f"diffint: {word}" for word in ("fitting", "fitted", "compiling", "ready", "scor")),
)
NAMES = (
    "finished",
    "stopped",
    "before the start",
    "wrong exit codes",
    "not one line",
    "tracebacks",
    "untrue words",
    "half-written",
    "leftovers",
    "lost signals",
    "hangs",
)


def attack(count: int, seed: int, verbose: bool = False) -> dict[str, int]:
    """Stop `count` commands. → how often each thing happened

    Only ``finished``, ``stopped`` and ``before the start`` may be above 0.
    """
    # nohup and shells that start a program in the background have it ignore signals; commands would
    # inherit that.
    for number in SIGNALS:
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
    rng = random.Random(seed)
    counts = {"tried": 0, **dict.fromkeys(NAMES, 0)}
    with tempfile.TemporaryDirectory() as base:
        make_inputs(Path(base))
        durations: dict[int, float] = {}
        for i in range(count):
            k = rng.choices(range(len(COMMANDS)), [command.weight for command in COMMANDS])[0]
            command = COMMANDS[k]
            if k not in durations:
                durations[k] = duration(command, Path(base, f"timed{k}"))
            folder, number = Path(base, str(i)), rng.choice(SIGNALS)
            moment = rng.uniform(0, durations[k])
            started, process = time.perf_counter(), start(command, folder)
            sent = math.inf
            try:
                process.wait(moment)
                durations[k] = time.perf_counter() - started  # it was shorter than expected
            except subprocess.TimeoutExpired:
                process.send_signal(number)
                sent = time.perf_counter()
            counts["tried"] += 1
            try:
                _, said = process.communicate(timeout=LONGEST_END)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGABRT)  # shows where it hangs
                _, said = process.communicate()
                found = ["hangs"]
            else:
                found = look_at(command, folder, process.returncode, said.decode(), number)
                if process.returncode == 0 and time.perf_counter() - sent > LONGEST_FINISH:
                    found.append("lost signals")
            for name in found:
                counts[name] += 1
            if verbose and set(found) - {"finished", "stopped", "before the start"}:
                print(command.arguments[0], number.name, f"{moment:.3f} s", process.returncode)
                print(found, sorted(os.listdir(folder)), said.decode(), flush=True)
    return counts


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(json.dumps(attack(options.count, options.seed, verbose=True), indent=2))
