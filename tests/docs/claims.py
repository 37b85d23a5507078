"""A claim: a sentence of a page, with figures from a results file in its place holders."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from string import Formatter

from .results import ROOT

_FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Claim:
    """page: from the repository's root; text: with a place holder for every figure."""

    page: str
    text: str
    values: tuple[object, ...]

    def parts(self) -> Iterator[tuple[str, bool]]:
        """The formatted text in parts: (part, whether it is a figure)."""
        values = iter(self.values)
        for literal, field, form, _ in Formatter().parse(self.text):
            if literal:
                yield " ".join(f"\0{literal}\0".split()).replace("\0", ""), False
            if field is not None:
                yield format(next(values), form or ""), True

    def written(self) -> str:
        """The sentence as it should stand in the page."""
        return " ".join("".join(part for part, _ in self.parts()).split())

    def figures_in(self, text: str) -> list[tuple[int, int]]:
        """Where the figures stand in the page's prose: (start, end)."""
        start = text.index(self.written())
        spans = []
        for part, is_figure in self.parts():
            if is_figure:
                spans.append((start, start + len(part)))
            start += len(part)
        return spans


def claim(page: str, text: str, *values: object) -> Claim:
    """A claim; text is formatted with the values."""
    return Claim(page, text, values)


def prose(page: str) -> str:
    """The text of a page without code blocks, with single spaces."""
    return " ".join(_FENCE.sub(" ", (ROOT / page).read_text()).split())
