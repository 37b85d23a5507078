"""The command's entry point: subcommands, error messages, exit codes and interrupts."""

from __future__ import annotations

import io
import os
import sys
import warnings
from typing import Annotated

import pyarrow
import typer

from ..core.formatting import printable
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


def _show_version(show: bool) -> None:
    if show:
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
    """Run the command; invalid input ends with one message and exit code 2.

    ``--debug`` anywhere on the command line shows the traceback instead.
    """
    debug = "--debug" in sys.argv
    sys.argv = [argument for argument in sys.argv if argument != "--debug"]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # for terminals that cannot show every character
    try:
        with handling_stop_signals(_stop), warnings.catch_warnings():
            warnings.showwarning = _print_once
            app()
    except BrokenPipeError:
        # The reader closed the pipe (`| head`). Discard what is left in the buffer.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0) from None
    except Stopped as stopped:
        print("diffint: interrupted; nothing was written", file=sys.stderr)
        raise SystemExit(stopped.exit_code) from None
    except (ValueError, OSError, RuntimeError, MemoryError, pyarrow.ArrowException) as error:
        if debug:
            raise
        print(f"diffint: {printable(_message(error), keep=_LINES)}", file=sys.stderr)
        raise SystemExit(2) from None


_LINES = "\n"  # messages of other libraries may have several lines
_printed: set[str] = set()


def _print_once(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning in one line, unless it was printed before."""
    text = str(message)
    if text not in _printed:
        _printed.add(text)
        print(f"Note: {printable(text, keep=_LINES)}.", file=sys.stderr)


def _stop(number: int, _frame: object) -> None:
    raise Stopped(number)


def _message(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return "out of memory; try fewer columns or rows"
    if isinstance(error, OSError) and error.strerror:
        path = f"{error.filename!r}: " if error.filename else ""
        return f"{path}{error.strerror}"
    return str(error)
