"""``diffint compare``: what is different between two model files."""

from __future__ import annotations

from typing import Annotated

import typer

from . import arguments
from .loading import load_detector
from .output import say, say_json


def compare(
    old: Annotated[str, typer.Argument(metavar="OLD", help="Model file.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="Model file to compare with it.")],
    as_json: arguments.Json = False,
) -> None:
    """Say what is different between two models: features, settings, threshold, ranges.

    The patterns are compared one by one if one model is a refresh of the other.

    Example: diffint compare payments.diffint march.diffint
    """
    found = load_detector(new).compare(load_detector(old))
    say_json(found.to_dict()) if as_json else say(found.text())
