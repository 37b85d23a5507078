"""A claim: a sentence of a page, with figures from a results file in its place holders.

A figure knows what it is of (`results.py`), and the sentence must say so, in words of `names.py`: a
figure that is moved to a sentence about something else no longer agrees with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from string import Formatter

from .names import is_named, stands_in_the_paragraph
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

    def not_said(self) -> list[str]:
        """What figures are of, by their files, and the page does not say where they stand.

        Words must be in the sentence itself, or in the head of its table and the text before it;
        what `stands_in_the_paragraph` may be anywhere in its paragraph, or in a heading above it.
        """
        near = around = self.written()
        for above, before, block in _blocks(self.page):
            if self.written() in block:
                near += "\n".join([block.split("|---")[0], before]) * block.startswith("|")
                around = "\n".join([near, *above, block])
                break
        words = {word for value in self.values for word in getattr(value, "of", ())}
        return sorted(
            word
            for word in words
            if not is_named(word, around if stands_in_the_paragraph(word) else near)
        )


def claim(page: str, text: str, *values: object) -> Claim:
    """A claim; text is formatted with the values."""
    return Claim(page, text, values)


@cache
def prose(page: str) -> str:
    """The text of a page without code blocks, with single spaces."""
    return " ".join(_FENCE.sub(" ", (ROOT / page).read_text()).split())


@cache
def _blocks(page: str) -> list[tuple[list[str], str, str]]:
    """The paragraphs and tables of a page: the headings above, the paragraph before, the text."""
    found, above, before = [], [], ""
    text = _FENCE.sub("", (ROOT / page).read_text())
    for block in (" ".join(part.split()) for part in re.split(r"\n\s*\n", text)):
        if block.startswith("#"):
            level = len(block) - len(block.lstrip("#"))
            above = [one for one in above if len(one) - len(one.lstrip("#")) < level] + [block]
        found.append((above, before, block))
        before = block
    return found
