"""Which columns of a table the options choose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..core.errors import InputError
from ..core.formatting import listed
from ..tables.files.names import check_has_columns, split_names
from ..tables.files.reading import TableFile

_MANY = 10  # columns, above which a list of them is too long


def named_columns(file: TableFile, given: Sequence[str] | None, option: str) -> list[str]:
    """The columns that an option names, in several values or separated by commas.

    Raises an error for those that the table lacks.
    """
    names = [name for text in given or () for name in split_names(text, file.columns)]
    check_columns(file, names, f"{option} names")
    return list(dict.fromkeys(names))


def check_columns(table: TableFile, names: Sequence[str], needed_by: str) -> None:
    """Raise an error if a table lacks columns; needed_by: e.g. ``the model needs``."""
    check_has_columns(table.name, table.columns, names, needed_by, table.hint())


class Choice(NamedTuple):
    """Columns to learn from; those of them that are named as categories; others, with the reason.

    unused: columns that are not learned from
    """

    features: list[str]
    categories: list[str]
    unused: dict[str, str]


def choose_features(
    file: TableFile,
    columns: Sequence[str] | None,
    ignore: Sequence[str] | None,
    categories: Sequence[str] | None,
    others: dict[str, str],
) -> Choice:
    """Which columns are used; columns, ignore, categories: values of these options.

    others: columns with another use, and which.
    """
    if columns and ignore:
        raise InputError("use either --columns or --ignore, not both")
    unused = dict.fromkeys(named_columns(file, ignore, "--ignore"), "--ignore") | others
    chosen = named_columns(file, columns, "--columns") if columns else file.columns
    both = [name for name in chosen if columns and name in others]
    if both:
        raise InputError(
            f"{both[0]!r} cannot be both a feature (--columns) and {others[both[0]]}; name it once"
        )
    features = [column for column in file.columns if column in chosen and column not in unused]
    if not features:
        raise InputError(f"{file.name} has no column left to learn from")
    named = named_columns(file, categories, "--categories")
    for name in named:
        if name not in features:
            other = unused.get(name, "left out by --columns")
            raise InputError(
                f"{name!r} cannot be both a category (--categories) and {other}; name it once"
            )
    return Choice(features, named, unused)


def unused_columns(unused: dict[str, str]) -> str:
    """``'payment' (--id) and 'cut', 'color' (not numeric)``; unused: the reason for each column"""
    parts = []
    for reason in dict.fromkeys(unused.values()):
        names = [repr(name) for name, why in unused.items() if why == reason]
        more = [f"{len(names) - _MANY:,} more"] if len(names) > _MANY else []
        parts.append(f"{', '.join(names[:_MANY] + more)} ({reason})")
    return listed(parts)
