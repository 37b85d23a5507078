"""The command itself: its subcommands, its errors, and what it does when it is interrupted."""

from __future__ import annotations

import io
import os
import sys
import warnings
from typing import Annotated

import pyarrow
import typer

from ..core.version import __version__
from . import bench
from .constraints import constraints
from .demo import demo
from .explain import explain
from .fit import fit
from .info import info
from .report import report
from .score import score
from .signals import Stopped, handling_stop_signals

app = typer.Typer(
    name="diffint",
    help="Interpretable anomaly detection for numerical tables.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"diffint {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Interpretable anomaly detection for numerical tables."""


for command in (fit, score, explain, constraints, info, report, demo):
    app.command()(command)
app.add_typer(bench.app, name="bench")


def main() -> None:
    """Run the command; bad input ends with one message and exit code 2.

    ``--debug`` anywhere shows where an error came from.
    """
    debug = "--debug" in sys.argv
    sys.argv = [argument for argument in sys.argv if argument != "--debug"]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without our signs shows others
    try:
        with handling_stop_signals(_stop), warnings.catch_warnings():
            warnings.showwarning = _note
            app()
    except BrokenPipeError:
        # Whoever read our output has seen enough. What is left in the buffer has no reader.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0) from None
    except Stopped as stopped:
        print("diffint: interrupted; nothing was written", file=sys.stderr)
        raise SystemExit(stopped.exit_code) from None
    except (ValueError, OSError, RuntimeError, MemoryError, pyarrow.ArrowException) as error:
        if debug:
            raise
        print(f"diffint: {_message(error)}", file=sys.stderr)
        raise SystemExit(2) from None


_noted: set[str] = set()


def _note(message: Warning | str, *_: object, **__: object) -> None:
    """A warning in a line, once."""
    text = str(message)
    if text not in _noted:
        _noted.add(text)
        print(f"Note: {text}.", file=sys.stderr)


def _stop(number: int, _frame: object) -> None:
    raise Stopped(number)


def _message(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return "out of memory; try fewer columns or rows"
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename!r}: " if error.filename else ""
        return f"{place}{error.strerror}"
    return str(error)
