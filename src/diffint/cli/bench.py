"""``diffint bench``: compare detectors on a folder of tables, and read the comparison out."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..core.errors import InputError
from ..core.formatting import counted, listed
from .signals import Stopped

if TYPE_CHECKING:
    from ..bench.runner import Event

app = typer.Typer(help="Compare detectors on the tables of the evaluation.", no_args_is_help=True)


@app.command()
def run(
    data: Annotated[
        Path, typer.Option("--data", metavar="DIR", help="Folder of tables, NN_name.npz.")
    ],
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", metavar="RESULTS", help="CSV file of result rows; added to."
        ),
    ],
    methods: Annotated[
        str, typer.Option(metavar="NAMES", help="Comma-separated; all if not given.")
    ] = "",
    plugin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]MODULE:FACTORY",
            help="A detector of your own: an object with fit(X) and anomaly_score(X) or "
            "decision_function(X). Repeatable; the others then run only if --methods names them.",
        ),
    ] = None,
    tables: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Comma-separated names or groups (small, medium, large, high); all 48 if not "
            "given.",
        ),
    ] = "",
    seeds: Annotated[str, typer.Option(metavar="LIST", help="Such as 0-9 or 0,1,2.")] = "0-9",
    regime: Annotated[
        str | None, typer.Option(metavar="NAME", help="paper or fair; both if not given.")
    ] = None,
    jobs: Annotated[
        int, typer.Option(metavar="N", help="Runs side by side, a core each; -1 for all.")
    ] = -1,
    time_limit: Annotated[
        float, typer.Option(metavar="S", help="Seconds for a fit, and again for its scoring.")
    ] = 120.0,
    memory_limit: Annotated[
        float, typer.Option(metavar="GB", help="Resident memory of a run.")
    ] = 8.0,
    slow_after: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            help="A method whose first seed takes longer than this on a table runs only "
            "--slow-seeds seeds there.",
        ),
    ] = None,
    slow_seeds: Annotated[int, typer.Option(metavar="N", help="See --slow-after.")] = 3,
    retry: Annotated[
        str,
        typer.Option(
            metavar="STATES",
            help="Run again what ended so, with another limit perhaps: comma-separated timeout, "
            "out of memory, error.",
        ),
    ] = "",
    device: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="auto, cpu or cuda: where DiffInt trains; on a GPU all seeds of a table at once.",
        ),
    ] = "auto",
) -> None:
    """Run every method on every table, and add the results to a file.

    Each run has a process of its own with limits on time and memory. Interrupt it whenever you
    like: the same command goes on where it stopped, and two at once share the work.

    Example: diffint bench run --data adbench --tables small --methods KNN,DiffInt -o results.csv
    """
    needs(("psutil", "psutil"))
    from ..bench.baselines import OURS, chosen_methods
    from ..bench.grid import Grid, Limits, outgrown
    from ..bench.protocol import REGIMES, find_tables, read_seeds
    from ..bench.runner import run_grid
    from ..bench.store import STATES, Row, Store
    from ..estimator import resolve_jobs
    from ..tables.datasets import read_adbench

    chosen = chosen_methods(names(methods), plugin or [])
    if any(name not in OURS and not method.plugin for name, method in chosen.items()):
        needs(("pyod", "pyod"), ("torch", "torch"))
    if regime is not None and regime not in REGIMES:
        raise InputError(f"--regime {regime!r} is not one of {', '.join(REGIMES)}")
    again = [state for state in STATES if state in names(retry)]
    strange = [state for state in names(retry) if state not in again or state == "ok"]
    if strange:
        raise InputError(f"--retry {strange[0]!r} is not one of {', '.join(STATES[1:])}")
    if jobs == 0 or jobs < -1:
        raise InputError(f"--jobs {jobs} must be a number of runs, or -1 for one on every core")
    jobs = resolve_jobs(jobs)
    for option, value in (
        ("--time-limit", time_limit),
        ("--memory-limit", memory_limit),
        ("--slow-seeds", slow_seeds),
        ("--slow-after", 1.0 if slow_after is None else slow_after),
    ):
        if not value > 0:
            raise InputError(f"{option} {value:g} must be above 0")
    files, absent = find_tables(data, names(tables))
    for path in files.values():
        read_adbench(path)  # a bad table is refused before anything is run
    grid = Grid(
        tables=files,
        methods=chosen,
        regimes=tuple(one for one in REGIMES if regime in (None, one)),
        seeds=read_seeds(seeds),
        slow_after=slow_after,
        slow_seeds=slow_seeds,
        device=_device(device, any(name in OURS for name in chosen)),
    )
    limits = Limits(time_limit, memory_limit)

    def forget(row: Row) -> bool:
        return row.state in again or outgrown(row, limits)

    with Store(output, forget) as store:
        if absent:
            typer.echo(f"Not in {data}: {listed(absent)}.", err=True)
        before = len(store.rows)
        try:
            with display() as tell:
                run_grid(grid, store, jobs, limits, tell)
        except Stopped as stopped:
            typer.echo(
                f"diffint: interrupted; {counted(len(store.rows), 'row')} in {output}, and the "
                "same command goes on from there",
                err=True,
            )
            raise SystemExit(stopped.exit_code) from None
        asked = {cell for one in grid.runs() for cell in one.cells}
        rows = [row for cell, row in store.rows.items() if cell in asked]
    states = Counter(row.state for row in rows)
    typer.echo(
        f"{counted(len(store.rows) - before, 'new row')} in {output}; of those asked for: "
        + ", ".join(f"{n} {state}" for state, n in states.most_common())
        + "."
    )
    failed = Counter((row.method, row.state, row.message) for row in rows if row.state != "ok")
    for (method, state, message), n in failed.most_common(_MOST_FAILURES):
        typer.echo(f"  {method}, {state}: {message} ({counted(n, 'row')})")
    if len(failed) > _MOST_FAILURES:
        typer.echo(f"  and {len(failed) - _MOST_FAILURES} other reasons; see {output}")


@app.command()
def report(
    results: Annotated[
        list[Path],
        typer.Argument(metavar="RESULTS...", help="Files that `bench run` wrote."),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="Folder to write into.")
    ],
    tables: Annotated[
        str, typer.Option(metavar="NAMES", help="Only these tables or groups; comma-separated.")
    ] = "",
    methods: Annotated[
        str, typer.Option(metavar="NAMES", help="Only these methods; comma-separated.")
    ] = "",
) -> None:
    """Rank the methods: tables, tests and diagrams from result rows.

    Several files are read as one, so that your own detector's rows can stand beside others'.

    Example: diffint bench report docs/results/bench/rows.csv mine.csv -o ranking
    """
    from ..bench.report import write_report
    from ..bench.store import frame_of, read_rows

    if output.exists() and not output.is_dir():
        raise InputError(f"{str(output)!r} is a file; -o names a folder to write into")
    rows = frame_of([row for path in results for row in read_rows(path)])
    written = write_report(rows, output, tables=names(tables), methods=names(methods))
    typer.echo(f"{counted(len(written), 'file')} in {output}; begin with {output / 'README.md'}")


_MOST_FAILURES = 10  # are told at the end of a run


def names(text: str) -> list[str]:
    """'a, b' as a list."""
    return [part.strip() for part in text.split(",") if part.strip()]


def needs(*packages: tuple[str, str]) -> None:
    """Refuse in a line what needs a package that is not installed."""
    missing = [project for module, project in packages if importlib.util.find_spec(module) is None]
    if missing:
        raise InputError(
            f"the evaluation needs {listed(missing)}; install it with "
            "pip install 'diffint-ad[bench]'"
        )


def _device(asked: str, used: bool) -> str:
    from ..engine.devices import resolve_device

    return resolve_device(asked, float("inf")) if used else "cpu"


@contextmanager
def display() -> Iterator[Callable[[Event], None]]:
    """What draws how far the runs are, with the time left; nothing where there is no terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda event: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn
    from rich.table import Column

    columns = (
        BarColumn(bar_width=24),
        TextColumn("{task.description}"),
        TextColumn("[dim]{task.fields[running]}", table_column=Column(no_wrap=True, ratio=1)),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, expand=True) as bar:
        task = bar.add_task("starting", total=None, running="")

        def draw(event: Event) -> None:
            shown = ", ".join(event.running[:2]) + (" …" if len(event.running) > 2 else "")
            bar.update(
                task,
                completed=event.settled,
                total=event.total,
                description=f"{event.settled:,} of {event.total:,} runs{_left(event)}",
                running=f"· {shown}" if shown else "",
            )

        yield draw


def _left(event: Event) -> str:
    if event.seconds_left is None:
        return ""
    minutes, seconds = divmod(int(event.seconds_left), 60)
    hours, minutes = divmod(minutes, 60)
    clock = f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
    return f", about {clock} left"
