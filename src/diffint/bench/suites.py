"""The suites: sets of tables on which detectors are compared.

A new suite is one entry of `SUITES`; the grid, the runner and the report ask the suite.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from ..core.errors import InputError
from ..tables.datasets import (
    adbench_files,
    labelled_files,
    macrodata_files,
    read_adbench,
    read_labelled,
    read_macrodata,
)
from .protocol import REGIMES, Regime, TrainsOn, Trial, chosen_tables, fixed_trial, make_trial

Table = TypeVar("Table")


@dataclass(frozen=True)
class Suite(Generic[Table]):
    """A set of tables, and how detectors are compared on it.

    name: used on the command line and in results files.
    regimes: which of the regimes it has.
    files: the table files in a folder, by table name.
    choose: the full names of tables from what a user lists (nothing: all) and the available names.
    read: a table from its file; raises an error if it is invalid.
    trial: the split of a table for a seed, with the given rows to train on.
    in_paper: whether the paper reports on these tables, with scale groups and its own numbers.
    takes_label: whether `read` has a parameter `label`, the name of the column with the labels.

    All functions are importable, as a suite is sent to the processes of the runs.
    """

    name: str
    regimes: tuple[Regime, ...]
    files: Callable[[str | Path], dict[str, Path]]
    choose: Callable[[Iterable[str], Iterable[str]], list[str]]
    read: Callable[..., Table]
    trial: Callable[[Table, int, TrainsOn], Trial]
    in_paper: bool = False
    takes_label: bool = False

    def find(
        self, folder: str | Path, names: Iterable[str] = ()
    ) -> tuple[dict[str, Path], list[str]]:
        """The files of tables by name, small ones first, and the names of those that are missing.

        names: as for `choose`. Raises an error if none of them exists.
        """
        files = self.files(folder)
        wanted = self.choose(names, files)
        found = {name: files[name] for name in wanted if name in files}
        if not found:
            raise InputError(
                f"none of the tables {', '.join(wanted[:5])}{' …' if len(wanted) > 5 else ''} is "
                f"in {str(folder)!r}; it has {', '.join(list(files)[:3])}"
            )
        return found, [name for name in wanted if name not in files]

    def chosen_regimes(self, regime: str | None) -> tuple[Regime, ...]:
        """The regime of this name, or all of them for None."""
        if regime is not None and regime not in REGIMES:
            raise InputError(f"--regime {regime!r} is not one of {', '.join(REGIMES)}")
        chosen = tuple(one for one in self.regimes if regime in (None, one))
        if not chosen:
            raise InputError(
                f"--regime {regime!r}: the suite {self.name} has only the regime "
                f"{', '.join(self.regimes)}, as its training rows are all normal"
            )
        return chosen


def named_tables(names: Iterable[str], available: Iterable[str]) -> list[str]:
    """The available tables of these names in the order of `available`, without names all of them.

    Raises an error for a name that is not available.
    """
    available = list(available)
    by_lower = {name.lower(): name for name in available}
    chosen = set()
    for one in names:
        if one not in available and one.lower() not in by_lower:
            close = difflib.get_close_matches(one.lower(), by_lower, 3, 0.4) or list(by_lower)[:3]
            raise InputError(
                f"no table is called {one!r}; there {'are' if len(available) > 1 else 'is'} "
                f"{len(available)}, such as {', '.join(by_lower[name] for name in close)}"
            )
        chosen.add(one if one in available else by_lower[one.lower()])
    return [name for name in available if name in chosen or not chosen]


ADBENCH = Suite(
    "adbench", REGIMES, adbench_files, chosen_tables, read_adbench, make_trial, in_paper=True
)
MACRODATA = Suite(
    "macrodata", ("fair",), macrodata_files, named_tables, read_macrodata, fixed_trial
)
FOLDER = Suite(
    "folder", REGIMES, labelled_files, named_tables, read_labelled, make_trial, takes_label=True
)
SUITES: dict[str, Suite[Any]] = {suite.name: suite for suite in (ADBENCH, MACRODATA, FOLDER)}


def chosen_suite(name: str, label: str | None = None) -> Suite[Any]:
    """The suite of this name; label: the column with the labels, None for the default."""
    if name not in SUITES:
        raise InputError(f"--suite {name!r} is not one of {', '.join(SUITES)}")
    suite = SUITES[name]
    if label is None:
        return suite
    if not suite.takes_label:
        with_label = [one.name for one in SUITES.values() if one.takes_label]
        raise InputError(
            f"--label is only for --suite {', '.join(with_label)}; the tables of the suite "
            f"{name} have their labels in a fixed place"
        )
    return replace(suite, read=partial(suite.read, label=label))
