"""``diffint verify``: check the certificate of a region again, by independent code."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from ..core.errors import InputError
from . import arguments
from .certify import progress_line
from .loading import load_detector
from .output import say, say_json

_LARGEST = 1 << 30  # bytes of a certificate


def verify(
    certificate: Annotated[
        str, typer.Argument(metavar="CERTIFICATE", help="JSON file, written by `certify -o`.")
    ],
    model: arguments.Model,
    as_json: arguments.Json = False,
) -> None:
    """Check a certificate of a region again, by independent and slower code.

    Exit codes: 0 if everything that it claims is proven again, 1 if it is refused, with
    the reason, 2 if a file cannot be read.

    Example: diffint verify region.json payments.diffint
    """
    if os.path.isdir(certificate):
        raise IsADirectoryError(f"{certificate!r} is a folder; give a certificate")
    with open(certificate, "rb") as file:
        content = file.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise InputError(f"{certificate!r} is too large for a certificate")
    detector = load_detector(model)
    try:
        with progress_line("part", "left to check") as show:
            found = detector.verify(
                content, progress=lambda done, total, passed: show(total - done, passed)
            )
    except InputError as error:
        raise InputError(f"{certificate!r}: {error}") from None
    say_json(found.to_dict()) if as_json else say(found.text())
    if not found.confirmed:
        raise typer.Exit(1)
