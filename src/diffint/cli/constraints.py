"""``diffint constraints``: show what a model learned."""

from __future__ import annotations

from typing import Annotated

import typer

from . import arguments
from .loading import load_detector
from .output import records, say, say_json


def constraints(
    model: arguments.Model,
    features: Annotated[int, typer.Option(metavar="N", min=1, help="Features to list.")] = 10,
    patterns: Annotated[int, typer.Option(metavar="N", min=1, help="Patterns to show.")] = 5,
    each: Annotated[
        int, typer.Option(metavar="N", min=1, help="Ranges to show for each pattern.")
    ] = 3,
    as_json: arguments.Json = False,
) -> None:
    """Show what a model learned: the important features and the ranges of its patterns.

    Example: diffint constraints payments.diffint --patterns 3
    """
    learned = load_detector(model).explain_global()
    if not as_json:
        say(learned.text(features, patterns, each))
        return
    importance = learned.features_to_frame().head(features)
    shown = learned.to_frame(patterns, each)
    say_json({"features": records(importance), "constraints": records(shown)})
