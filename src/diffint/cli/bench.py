"""``diffint bench``: run detectors on many tables, and report the comparison."""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from ..core.errors import InputError
from ..core.formatting import counted, listed
from .output import say
from .progress import progress_bar
from .signals import Stopped

app = typer.Typer(help="Compare detectors on many tables.", no_args_is_help=True)


@app.command()
def run(
    data: Annotated[
        Path, typer.Option("--data", metavar="DIR", help="Folder of the suite's tables.")
    ],
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", metavar="RESULTS", help="CSV file to which results are appended."
        ),
    ],
    suite: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Kind of tables: adbench (NN_name.npz), macrodata (npz with a fixed split), or "
            "folder: your own, npz with X and y or Parquet with a label column.",
        ),
    ] = "adbench",
    label: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="With --suite folder: the column of Parquet files with 1 (or true) for "
            "anomalies. Default: label.",
        ),
    ] = None,
    methods: Annotated[
        str, typer.Option(metavar="NAMES", help="Methods, comma-separated. Default: all installed.")
    ] = "",
    plugin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]MODULE:FACTORY",
            help="Your own detector: an object with fit(X) and anomaly_score(X) or "
            "decision_function(X). Repeatable. Other methods run only if --methods lists them.",
        ),
    ] = None,
    tables: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Tables, comma-separated; of adbench also groups (small, medium, large, high). "
            "Default: all.",
        ),
    ] = "",
    seeds: Annotated[
        str, typer.Option(metavar="LIST", help="Seeds, such as 0-9 or 0,1,2.")
    ] = "0-9",
    regime: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Regime: paper or fair (macrodata: fair only). Default: both."
        ),
    ] = None,
    jobs: Annotated[
        int, typer.Option(metavar="N", help="Parallel runs, one core each; -1 for all cores.")
    ] = -1,
    time_limit: Annotated[
        float, typer.Option(metavar="S", help="Seconds for a fit, and for its scoring.")
    ] = 120.0,
    memory_limit: Annotated[
        float, typer.Option(metavar="GB", help="Resident memory of one run.")
    ] = 8.0,
    slow_after: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            help="If the first seed of a method takes longer than this on a table, run only "
            "--slow-seeds seeds there.",
        ),
    ] = None,
    slow_seeds: Annotated[int, typer.Option(metavar="N", help="See --slow-after.")] = 3,
    retry: Annotated[
        str,
        typer.Option(
            metavar="STATES",
            help="Repeat runs that ended in these states, comma-separated: timeout, out of memory, "
            "error.",
        ),
    ] = "",
    device: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Where DiffInt trains: auto, cpu or cuda. A GPU trains all seeds of a table at "
            "once.",
        ),
    ] = "auto",
) -> None:
    """Run every method on every table, and add the results to a file.

    Each run has its own process with limits on time and memory. After an
    interrupt, the same command continues where it stopped. Two commands with
    the same output share the work.

    Example: diffint bench run --data adbench --tables small --methods KNN,DiffInt -o results.csv
    """
    needs(("psutil", "psutil"))
    from ..bench.baselines import (
        DIFFINT_METHODS,
        absent_methods,
        chosen_methods,
        not_installed,
    )
    from ..bench.grid import Grid, Limits, limit_was_raised
    from ..bench.protocol import read_seeds
    from ..bench.runner import run_grid
    from ..bench.store import STATES, Row, Store
    from ..bench.suites import chosen_suite
    from ..core.checks import resolve_jobs

    used_suite = chosen_suite(suite, label)
    regimes = used_suite.chosen_regimes(regime)
    chosen = chosen_methods(names(methods), plugin or [])
    if any(name not in DIFFINT_METHODS and not method.plugin for name, method in chosen.items()):
        needs(("pyod", "pyod"), ("torch", "torch"))
    retried = [state for state in STATES if state in names(retry)]
    unknown = [state for state in names(retry) if state not in retried or state == "ok"]
    if unknown:
        raise InputError(f"--retry {unknown[0]!r} is not one of {', '.join(STATES[1:])}")
    if jobs == 0 or jobs < -1:
        raise InputError(f"--jobs {jobs} must be a positive number of runs, or -1 for one per core")
    jobs = resolve_jobs(jobs)
    for option, value in (
        ("--time-limit", time_limit),
        ("--memory-limit", memory_limit),
        ("--slow-seeds", slow_seeds),
        ("--slow-after", 1.0 if slow_after is None else slow_after),
    ):
        if not value > 0:
            raise InputError(f"{option} {value:g} must be above 0")
    files, absent = used_suite.find(data, names(tables))
    for path in files.values():
        used_suite.read(path)  # an invalid table raises an error before any run
    grid = Grid(
        tables=files,
        methods=chosen,
        regimes=regimes,
        seeds=read_seeds(seeds),
        slow_after=slow_after,
        slow_seeds=slow_seeds,
        device=_device(device, any(name in DIFFINT_METHODS for name in chosen)),
        suite=used_suite,
    )
    limits = Limits(time_limit, memory_limit)

    def forget(row: Row) -> bool:
        return row.state in retried or limit_was_raised(row, limits)

    with Store(output, forget, used_suite.name) as store:
        if absent:
            say(f"Not in {data}: {listed(absent)}.", err=True)
        if not names(methods) and not plugin and absent_methods():
            say(f"Left out: {not_installed(absent_methods())}.", err=True)
        before = len(store.rows)
        try:
            with progress_bar() as show:
                run_grid(grid, store, jobs, limits, show)
        except Stopped as stopped:
            say(
                f"diffint: interrupted; {counted(len(store.rows), 'row')} in {output}; "
                "run the same command to continue",
                err=True,
            )
            raise SystemExit(stopped.exit_code) from None
        requested = {cell for one in grid.runs() for cell in one.cells}
        rows = [row for cell, row in store.rows.items() if cell in requested]
    states = Counter(row.state for row in rows)
    say(
        f"{counted(len(store.rows) - before, 'new row')} in {output}; requested rows: "
        + ", ".join(f"{n} {state}" for state, n in states.most_common())
        + "."
    )
    failed = Counter((row.method, row.state, row.message) for row in rows if row.state != "ok")
    for (method, state, message), n in failed.most_common(_MOST_FAILURES):
        say(f"  {method}, {state}: {message} ({counted(n, 'row')})")
    if len(failed) > _MOST_FAILURES:
        say(f"  and {len(failed) - _MOST_FAILURES} more; see {output}")


@app.command()
def report(
    results: Annotated[
        list[Path],
        typer.Argument(metavar="RESULTS...", help="Files written by `bench run`."),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="Folder to write into.")
    ],
    tables: Annotated[
        str, typer.Option(metavar="NAMES", help="Only these tables or groups, comma-separated.")
    ] = "",
    methods: Annotated[
        str, typer.Option(metavar="NAMES", help="Only these methods, comma-separated.")
    ] = "",
    selection: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Only the tables listed in this CSV file with the columns suite, table and half.",
        ),
    ] = None,
    half: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of the selection, only the tables of this half."),
    ] = None,
) -> None:
    """Rank the methods: write tables, tests and diagrams from result rows.

    Several files of one suite are read as one, to compare your detector with
    other results.

    Example: diffint bench report docs/results/bench/rows.csv mine.csv -o ranking
    """
    from ..bench.report import write_report
    from ..bench.selection import read_selection
    from ..bench.store import frame_of, read_rows

    if output.exists() and not output.is_dir():
        raise InputError(f"{str(output)!r} is a file; give a folder with -o")
    rows = frame_of([row for path in results for row in read_rows(path)])
    if half is not None and selection is None:
        raise InputError("--half needs --selection, the file that lists the tables of each half")
    written = write_report(
        rows,
        output,
        tables=names(tables),
        methods=names(methods),
        selection=None if selection is None else read_selection(selection, half),
        inputs=[*results, *([] if selection is None else [selection])],
    )
    say(f"{counted(len(written), 'file')} in {output}; start with {output / 'README.md'}")


_MOST_FAILURES = 10  # listed at the end of a run


def names(text: str) -> list[str]:
    """The names in a comma-separated text."""
    return [part.strip() for part in text.split(",") if part.strip()]


def needs(*packages: tuple[str, str]) -> None:
    """Raise an error if a package is not installed. packages: (module, project) names"""
    missing = [project for module, project in packages if importlib.util.find_spec(module) is None]
    if missing:
        raise InputError(
            f"the benchmark needs {listed(missing)}; install with pip install 'diffint-ad[bench]'"
        )


def _device(device: str, used: bool) -> str:
    from ..engine.devices import resolve_device

    return resolve_device(device, float("inf")) if used else "cpu"
