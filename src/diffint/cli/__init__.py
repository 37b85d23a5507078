"""The command, one file per subcommand."""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

from ..version import __version__
from .demo import demo

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


app.command()(demo)


def main() -> None:
    """Run the command; bad input ends with one message and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without our signs shows others
    try:
        app()
    except (ValueError, OSError) as error:
        print(f"diffint: {error}", file=sys.stderr)
        raise SystemExit(2) from None
