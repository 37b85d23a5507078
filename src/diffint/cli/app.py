"""The command's entry point: subcommands, error messages, exit codes and interrupts."""

from __future__ import annotations

import contextlib
import io
import os
import select
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, TextIO

import pyarrow
import typer

from ..core import unchanged_random  # noqa: F401
from ..core.errors import IdentifierWarning
from ..core.formatting import listed, printable
from ..core.version import __version__
from ..tables.atomic_write import (
    FULL,
    WrittenFiles,
    error_of_writing,
    errors_that_name,
    listing_written_files,
    remove_unfinished,
)
from ..tables.files.names import option_value
from . import NOTHING_WRITTEN, bench
from .certify import certify
from .compare import compare
from .constraints import constraints
from .demo import demo
from .drift import drift
from .explain import explain
from .export import export
from .find import find
from .fit import fit
from .info import info
from .refresh import refresh
from .report import report
from .score import score
from .signals import StopOnSignal, Stopped, handling_stop_signals
from .study import study
from .verify import verify

app = typer.Typer(
    name="diffint",
    help="Interpretable anomaly detection for tables.",
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
    """Interpretable anomaly detection for tables."""


_COMMANDS = (
    *(fit, find, score, explain, drift, refresh, compare, constraints, certify, verify),
    *(info, report, export, demo, study),
)
for command in _COMMANDS:
    app.command()(command)
app.add_typer(bench.app, name="bench")


def main(work_is_done: Callable[[int], None] = lambda exit_code: None) -> None:
    """Run the command; invalid input ends with one message and exit code 2.

    ``--debug`` anywhere on the command line shows the traceback instead. work_is_done: called with
    the exit code while stop signals are still handled here.
    """
    debug = "--debug" in sys.argv
    sys.argv = [argument for argument in sys.argv if argument != "--debug"]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # for terminals that cannot show every character
    stop = StopOnSignal(lambda: _give_up(written), lambda: written.is_done())
    with (
        listing_written_files() as written,
        _watching_standard_output() as its_reader_is_gone,
        handling_stop_signals(stop),
        warnings.catch_warnings(),
    ):
        _printed.clear()
        warnings.showwarning = _print_once
        try:
            stop.start()
            code = _run()
        except (Exception, Stopped) as error:
            stop.finish()
            if stop.received is not None:  # any error may be a consequence of it
                code = 128 + stop.received
                _say(_interrupted(written.names()))
            elif isinstance(error, BrokenPipeError) and its_reader_is_gone():
                code = 0  # the reader has seen enough (`| head`)
            elif debug or not isinstance(error, _EXPECTED):
                raise
            else:
                code = 2
                _say(f"diffint: {_message(error)}")
        finally:
            stop.finish()
            if stop.received is not None:
                remove_unfinished()
            _flush_or_discard(sys.stdout)
            _flush_or_discard(sys.stderr)
        work_is_done(code)
    raise SystemExit(code)


_EXPECTED = (ValueError, OSError, RuntimeError, MemoryError, pyarrow.ArrowException)


def _run() -> int:
    """Run the command as far as Typer goes. → exit code"""
    try:
        app()
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # Typer's own exit code for it is 1
            raise ended.__context__ from None
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    if sys.stdout is not None:
        with errors_that_name("standard output"):
            sys.stdout.flush()  # while an error can still be reported
    return code


@contextmanager
def _watching_standard_output() -> Iterator[Callable[[], bool]]:
    """Whether standard output is a pipe that is closed at the other end; True if unknown.

    It may be redirected in between: Rich does so when the pipe is closed.
    """
    try:
        copy = os.dup(sys.stdout.fileno())
        poll = select.poll()
        poll.register(copy, select.POLLOUT)
    except (AttributeError, OSError, ValueError):  # no standard output, or a system without poll
        yield lambda: True
        return
    try:
        gone = select.POLLERR | select.POLLHUP
        yield lambda: any(event & gone for _, event in poll.poll(0))
    finally:
        os.close(copy)


def _say(text: str) -> None:
    """Print a line to standard error, if there is one."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            print(printable(text, keep=_LINES), file=sys.stderr, flush=True)


def _flush_or_discard(stream: TextIO | None) -> None:
    """Flush; what cannot be written is discarded, so that Python does not try again at its end."""
    if stream is None:
        return
    try:
        stream.flush()
    except (OSError, ValueError):
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _give_up(written: WrittenFiles) -> None:
    """What is left to do when the clean-up after an interrupt takes too long."""
    remove_unfinished()
    with contextlib.suppress(OSError):  # not printed: the signal may have interrupted a print
        os.write(2, f"{_interrupted(written.names())}\n".encode())


def _interrupted(written: list[str]) -> str:
    if not written:
        return NOTHING_WRITTEN
    return f"diffint: interrupted; already written: {listed([repr(name) for name in written])}"


_LINES = "\n"  # messages of other libraries may have several lines
_printed: set[str] = set()


def _print_once(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning in one line, unless it was printed before."""
    text = str(message)
    if isinstance(message, IdentifierWarning):
        one, every = option_value(message.columns[:1]), option_value(message.columns)
        text = f"{message.problem}; use --id {one} if it has the ids of the rows, "
        text += f"else leave {'it' if one == every else 'them'} out with --ignore {every}"
    if text not in _printed:
        _printed.add(text)
        _say(f"Note: {text}.")


def _message(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return "out of memory; try fewer columns or rows"
    if isinstance(error, OSError) and error.errno in FULL and not error.filename:
        return str(error_of_writing("standard output", error))  # files are named where written
    if isinstance(error, OSError) and error.strerror:
        path = f"{error.filename!r}: " if error.filename else ""
        return f"{path}{error.strerror}"
    return str(error)
