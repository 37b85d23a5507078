"""``diffint certify``: what a model says about every row of a region, proven."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer

from ..core.errors import InputError
from ..tables.atomic_write import check_not_an_input, check_writable
from . import arguments
from .loading import load_detector
from .output import say, say_json

UNDECIDED = 3  # exit code
_REGION = "Region"
_PAUSE = 1.0  # seconds between two lines of progress that is not on a terminal


def certify(
    model: arguments.Model,
    at_least: Annotated[
        list[str] | None,
        typer.Option(
            "--at-least",
            metavar="NAME=NUMBER",
            help="Rows with at least this value.",
            rich_help_panel=_REGION,
        ),
    ] = None,
    at_most: Annotated[
        list[str] | None,
        typer.Option(
            "--at-most",
            metavar="NAME=NUMBER",
            help="Rows with at most this value.",
            rich_help_panel=_REGION,
        ),
    ] = None,
    equal: Annotated[
        list[str] | None,
        typer.Option(
            "--equal",
            metavar="NAME=VALUE",
            help="Rows with this number, or this value of a category.",
            rich_help_panel=_REGION,
        ),
    ] = None,
    missing: Annotated[
        list[str] | None,
        typer.Option(
            "--missing",
            metavar="NAME",
            help="Feature that may be missing; all others have a value.",
            rich_help_panel=_REGION,
        ),
    ] = None,
    splits: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="How many parts may be split to decide the region. Default: 32, or any number "
            "with --seconds.",
        ),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(metavar="S", help="How long that may take.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", metavar="CERTIFICATE", help="JSON file for `diffint verify`."
        ),
    ] = None,
    fpr: arguments.Rate = None,
    as_json: arguments.Json = False,
) -> None:
    """Prove that all rows of a region are flagged, or none, or show one of each.

    Exit codes: 0 if the region is decided, 3 if it is not, 2 for wrong input.

    Example: diffint certify payments.diffint --at-least amount=5000 -o region.json
    """
    if output is not None:
        if output == "-":
            raise InputError("to write a certificate to standard output, use --json")
        check_not_an_input(output, model)
        check_writable(output)  # before the work, to fail early
    detector = load_detector(model, fpr=fpr)
    names, categories = detector.model_.feature_names, detector.model_.categories
    values_of = {names[j]: values for j, values in categories.items()}
    lower = _ends("--at-least", at_least, names, {})
    upper = _ends("--at-most", at_most, names, {})
    for name, value in _ends("--equal", equal, names, values_of).items():
        if name in lower or name in upper:
            raise InputError(f"{name!r} has an end beside --equal; give only one of them")
        lower[name] = upper[name] = value
    for option, ends in (("--at-least", lower), ("--at-most", upper)):
        for name in ends:
            if name in values_of and not isinstance(ends[name], str):
                raise InputError(
                    f"{option} names the category {name!r}, whose values have no order; use --equal"
                )
    if splits is None:
        splits = 32 if seconds is None else 1_000_000
    with progress_line("part", "not decided") as show:
        certificate = detector.certify_region(
            lower,
            upper,
            splits=splits,
            seconds=seconds,
            missing=missing or (),
            progress=lambda _splits, left, passed: show(left, passed),
        )
    if output is not None:
        certificate.save(output)
    if as_json:
        say_json(certificate.to_dict())
    else:
        say(certificate.text())
        if output is not None:
            say(f"Certificate: {output}")
    if certificate.verdict == "undecided":
        raise typer.Exit(UNDECIDED)


@contextmanager
def progress_line(thing: str, state: str) -> Iterator[Callable[[int, float], None]]:
    """A function that shows how many things are left, and seconds, on standard error.

    One line on a terminal, which is erased at the end; else a line now and then.
    """
    stream = sys.stderr
    terminal = stream is not None and stream.isatty()
    shown, last = False, time.monotonic()

    def show(left: int, passed: float) -> None:
        nonlocal shown, last
        now = time.monotonic()
        if stream is None or now - last < (0.1 if terminal else _PAUSE):
            return
        shown, last = True, now
        plural = "" if left == 1 else "s"
        text = f"diffint: {left:,} {thing}{plural} {state}, {passed:.0f} s"
        print(f"\r\033[K{text}" if terminal else text, end="" if terminal else "\n", file=stream)
        stream.flush()

    try:
        yield show
    finally:
        if terminal and shown:
            print("\r\033[K", end="", file=stream, flush=True)


def _ends(
    option: str,
    given: Sequence[str] | None,
    names: Sequence[str],
    values_of: Mapping[str, Sequence[str]],
) -> dict[str, float | str]:
    """The ends that an option gives, by feature."""
    ends: dict[str, float | str] = {}
    for text in given or ():
        # Names may contain "=": the longest one that fits.
        fitting = [name for name in names if text.startswith(f"{name}=")]
        if not fitting:
            if "=" not in text:
                raise InputError(f"{option} {text!r} has no value; write NAME=VALUE")
            from ..certify.region_ends import features_like  # needs pandas, which starts slowly

            unknown = text.split("=", 1)[0]
            raise InputError(
                f"{option} names {unknown!r}, which is not a feature; "
                f"{features_like(unknown, names)}"
            )
        name = max(fitting, key=len)
        value = text[len(name) + 1 :]
        if name in ends:
            raise InputError(f"{option} names {name!r} twice; give it one value")
        if name in values_of:
            if value not in values_of[name]:
                shown = ", ".join(repr(known) for known in values_of[name][:8])
                raise InputError(
                    f"category {name!r} has no value {value!r}; its values are {shown}"
                    + ("…" if len(values_of[name]) > 8 else "")
                )
            ends[name] = value
            continue
        try:
            ends[name] = float(value)
        except ValueError:
            raise InputError(f"{option} {name}: {value!r} is not a number") from None
        if not math.isfinite(float(value)):
            raise InputError(f"{option} {name}: leave out an end that is not finite")
    return ends
