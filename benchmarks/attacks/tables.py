"""Give the command hostile tables, and look at how it refuses them.

    python benchmarks/attacks/tables.py [--count 1000] [--seed 0]

Every table is given to `fit`, `score`, `explain` or `report`, in a forked process with limits on
memory and time. The command must end with exit code 0, or with 2 and one line that begins with
"diffint: "; without a traceback or a crash. A refused table must not change the old output, and no
temporary file may be left.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import io
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

import numpy as np
import pandas
import sklearn.metrics  # noqa: F401
from hostile_tables import KINDS, LARGE_KINDS, Table

from diffint import DiffInt
from diffint.cli.app import main

OLD = b"the old content"
MEMORY = 3 * 2**30  # bytes of data of one process, with what Python and its libraries need
SECONDS = 60
LARGE_EVERY = 20
NAMES = (
    "accepted",
    "refused",
    "wrong exit codes",
    "crashes",
    "tracebacks",
    "not one line",
    "old output lost",
    "leftovers",
    "hangs",
)


def make_model(folder: Path) -> None:
    """Write m.diffint, a model of the columns a, b and c.

    Uses everything that the command uses, so that the forked processes find it loaded. Arrow is
    not used: its threads would not exist in them.
    """
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(rng.normal(size=(100, 3)), columns=list("abc"))
    detector = DiffInt(epochs=1, random_state=0, n_jobs=1, false_positive_rate=0.1)
    detector.fit(frame).save(folder / "m.diffint")
    detector.explain(frame).text(0)
    detector.nearest_normal(frame[:1])
    detector.report(frame, folder / "report.html")
    sys.argv = ["diffint", "info", str(folder / "m.diffint")]
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
        main()


def arguments(rng: random.Random, table: Table, folder: Path) -> list[str]:
    """A command for the table."""
    path = str(folder / f"table{table.suffix}")
    if rng.random() < 0.03:
        path = "-"
    model, output = str(folder.parent / "m.diffint"), str(folder / "out")
    named = ["--id", "id"] if rng.random() < 0.7 else []
    command = rng.choice(table.commands)
    if command == "fit":
        label = ["--label", "d"] if rng.random() < 0.3 else []
        chosen = ["fit", path, "-o", output, "--epochs", "1", *named, *label]
    elif command == "score":
        suffix = rng.choice([".csv", ".parquet", ".arrow", ".tsv.gz"])
        top = ["--top", "3"] if rng.random() < 0.3 else []
        chosen = ["score", model, path, "-o", output + suffix, *named, *top]
    elif command == "explain":
        rows = rng.choice([["--row", "2"], ["--top", "2"], ["--row-id", "r1"]])
        chosen = ["explain", model, path, *rows, *(["--id", "id"] if named else [])]
    else:
        chosen = ["report", model, path, "-o", output, *named]
    for option, values in table.options.items():
        chosen += [option, rng.choice(values)]
    return [*chosen, "--jobs", "1"]


def run_forked(chosen: list[str], table: Table, folder: Path) -> int | None:
    """Run the command on the table in a process of its own. → its wait status, None if it hung

    Its standard error goes to `folder`/err.
    """
    child = os.fork()
    if child == 0:
        try:
            path = folder / f"table{table.suffix}"
            table.write(path)
            os.dup2(os.open(path, os.O_RDONLY), 0)
            os.dup2(os.open(folder / "stdout", os.O_WRONLY | os.O_CREAT), 1)
            os.dup2(os.open(folder / "err", os.O_WRONLY | os.O_CREAT), 2)
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            sys.argv = ["diffint", *chosen]
            main()
        except SystemExit as stop:
            # The interpreter ends as usual, but not the caller's `finally` blocks.
            ctypes.pythonapi.Py_Exit(stop.code)
        except BaseException:
            traceback.print_exc()
        os._exit(99)
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def look_at(status: int | None, chosen: list[str], folder: Path, before: set[str]) -> list[str]:
    """What happened: names of the counts to add to."""
    if status is None:
        return ["hangs"]
    if os.WIFSIGNALED(status):
        return ["crashes"]
    code = os.WEXITSTATUS(status)
    said = (folder / "err").read_bytes().decode(errors="replace")
    found = [{0: "accepted", 2: "refused"}.get(code, "wrong exit codes")]
    if "Traceback" in said or "Fatal" in said:
        found.append("tracebacks")
    progress = ("Note: ", "diffint: fitting", "diffint: compiling", "diffint: ready")
    lines = [line for line in said.split("\n")[:-1] if not line.startswith(progress)]
    if code == 2 and not (len(lines) == 1 and lines[0].startswith("diffint: ")):
        found.append("not one line")
    output = Path(chosen[chosen.index("-o") + 1]) if "-o" in chosen else None
    if output and code and output.read_bytes() != OLD:
        found.append("old output lost")
    if set(os.listdir(folder)) - before - {"err", "stdout"}:
        found.append("leftovers")
    return found


def attack(count: int, seed: int, verbose: bool = False) -> dict[str, int]:
    """Try `count` tables. → how often each thing happened

    Only ``accepted`` and ``refused`` may be above 0.
    """
    counts = {"tried": 0, **dict.fromkeys(NAMES, 0)}
    base = Path(tempfile.mkdtemp())
    try:
        make_model(base)
        gc.freeze()  # a forked process would copy all memory to look through it
        for i in range(count):
            rng = random.Random(f"{seed} {i}")
            large = i % LARGE_EVERY == LARGE_EVERY - 1
            kind = rng.choice(LARGE_KINDS) if large else KINDS[i % len(KINDS)]
            table = kind(rng)
            folder = base / str(i)
            folder.mkdir()
            chosen = arguments(rng, table, folder)
            before = {f"table{table.suffix}"}
            if "-o" in chosen:
                output = Path(chosen[chosen.index("-o") + 1])
                output.write_bytes(OLD)
                before.add(output.name)
            started = time.monotonic()
            found = look_at(run_forked(chosen, table, folder), chosen, folder, before)
            counts["tried"] += 1
            for name in found:
                counts[name] += 1
            seconds = time.monotonic() - started
            if verbose and set(found) - {"accepted", "refused"}:
                print(f"{i} {kind.__name__} {found} {seconds:.1f} s:", *chosen)
                print((folder / "err").read_bytes().decode(errors="replace")[-1500:], flush=True)
            shutil.rmtree(folder)
    finally:
        shutil.rmtree(base)
    return counts


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(json.dumps(attack(options.count, options.seed, verbose=True), indent=2))
