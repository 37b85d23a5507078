"""Checks of single values that users pass in (indexes, counts, numbers, choices)."""

from __future__ import annotations

import math
import numbers
import os
from typing import Any

import numpy as np

from .errors import InputError
from .formatting import counted

_MOST_WORDS, _LONGEST_WORD = 1_000, 100


def check_index(value: object, count: int, thing: str, where: str) -> int:
    """An index into `count` things, from 0, or backwards from −1, as a number from 0."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise InputError(f"{thing}={value!r} must be a whole number")
    if not -count <= value < count:
        raise InputError(f"{thing}={value} does not exist; {counted(count, thing)} {where}")
    return int(value) % count


def check_count(value: object, things: str) -> int:
    """The number of things to show: a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise InputError(f"{value!r} {things} cannot be shown; give a whole number of at least 1")
    return int(value)


def check_whole(
    name: str, value: object, otherwise: str = "", at_least: int = 1, at_most: int | None = None
) -> int:
    """A whole number within the limits, as a Python int."""
    if (
        isinstance(value, bool)
        or not isinstance(value, numbers.Integral)
        or value < at_least
        or (at_most is not None and int(value) > at_most)
    ):
        requirement = f"of at least {at_least}"
        if at_most is not None:
            requirement = f"from {at_least} to {at_most:,}"
        alternative = f", or {otherwise}" if otherwise else ""
        raise InputError(
            f"{name}={repr(value)[:40]} must be a whole number {requirement}{alternative}"
        )
    return int(value)


def check_real(
    name: str,
    value: object,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    otherwise: str = "",
) -> float:
    """A finite number within the given limits, as a Python float."""
    requirement = "a finite number"
    if above is not None:
        requirement += f" above {above:g}"
    if at_least is not None:
        requirement += f" of at least {at_least:g}"
    if below is not None:
        requirement += f" and below {below:g}"
    try:
        is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        number = float(value) if is_number else math.nan  # type: ignore[arg-type]
    except OverflowError:
        number = math.inf
    if (
        not math.isfinite(number)
        or (above is not None and not number > above)
        or (at_least is not None and not number >= at_least)
        or (below is not None and not number < below)
    ):
        alternative = f", or {otherwise}" if otherwise else ""
        raise InputError(f"{name}={str(value)[:40]!s} must be {requirement}{alternative}")
    return number


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> str:
    """One of the choices, as a Python string."""
    if not isinstance(value, str) or value not in choices:
        raise InputError(f"{name}={value!r} is not one of {', '.join(map(repr, choices))}")
    return str(value)


def check_words(name: str, value: object) -> tuple[str, ...]:
    """Words in a list, each once, without spaces around them; an empty one is none."""
    words: list[Any] = list(value) if isinstance(value, list | tuple) else [None]
    if len(words) > _MOST_WORDS or not all(map(_is_word, words)):
        raise InputError(
            f"{name}={ascii(value)[:40]} must be a list of at most {_MOST_WORDS:,} texts, each of "
            f"at most {_LONGEST_WORD} characters"
        )
    return tuple(dict.fromkeys(str(word.strip()) for word in words if word.strip()))


def _is_word(word: object) -> bool:
    if not isinstance(word, str) or len(word) > _LONGEST_WORD:
        return False
    return word == word.encode(errors="replace").decode()  # else it is not valid Unicode


def resolve_jobs(n_jobs: object) -> int:
    """Number of threads by scikit-learn's convention: None is 1, −1 all cores, −2 all but one."""
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
        raise InputError(f"n_jobs={n_jobs!r} must be None, a positive number, or −1 for all cores")
    if n_jobs > 0:
        return int(n_jobs)
    try:
        available = len(os.sched_getaffinity(0))
    except AttributeError:  # not available on every system
        available = os.cpu_count() or 1
    return max(1, available + 1 + int(n_jobs))
