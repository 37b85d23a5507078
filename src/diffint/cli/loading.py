"""Load a model file given on the command line, and find the id column and those to keep."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from ..core.errors import InputError
from ..tables.files.formats import LONGEST_MARK, has_table_name, is_model
from ..tables.files.names import option_value
from ..tables.files.opening import similar_file
from ..tables.files.reading import TableFile
from .columns import named_columns

if TYPE_CHECKING:
    from ..estimator import DiffInt

MOST_COLUMNS_SHOWN = 10  # of those that a report shows without being asked


def load_detector(
    path: str,
    jobs: int = -1,
    fpr: float | None = None,
    table: str | None = None,
    accepted: str | None = None,
) -> DiffInt:
    """The detector in a model file; raises an error that says what is wrong with the file.

    fpr: replaces the model's false-positive rate; table: the other file of the command; accepted: a
    file of rows that are called normal.
    """
    from ..estimator import DiffInt

    _check_model_file(path, table)
    detector = DiffInt.load(path)
    detector.n_jobs = jobs
    if fpr is not None:
        detector.false_positive_rate = fpr
    if accepted is not None:
        from .streaming import accept_file

        accept_file(detector, accepted)
    return detector


def _check_model_file(path: str, table: str | None) -> None:
    """Raise an error if a path does not lead to a model file, but for example to a table."""
    if table is not None and _is_model(table) and not _is_model(path):
        raise InputError(f"the model comes before the table: give {table!r} first, then {path!r}")
    if not os.path.exists(path):
        raise FileNotFoundError(
            f"there is no model file {path!r}; `diffint fit` writes one{similar_file(path)}"
        )
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path!r} is a folder; give a model file")
    if os.path.isfile(path) and os.path.getsize(path) == 0:
        raise InputError(f"{path!r} is empty, not a model file")
    if has_table_name(path) and not _is_model(path):
        raise InputError(
            f"{path!r} is a table, not a model file; a model is made of it with: diffint fit "
            f"{option_value([path])} -o MODEL"
        )


def _is_model(path: str) -> bool:
    """Whether a file begins like a model file."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return is_model(file.read(LONGEST_MARK))


def id_column_of(detector: DiffInt, table: TableFile, given: str | None) -> str | None:
    """The column with the ids: the given one, else that of the fit if the table has it."""
    fitted = detector.id_column_
    return fitted if given is None and fitted in table.columns else given


def columns_to_show(table: TableFile, used: Collection[str], id_column: str | None) -> list[str]:
    """Columns that a report shows with each row unless others are named: those not used."""
    others = [name for name in table.columns if name not in used and name != id_column]
    return others[:MOST_COLUMNS_SHOWN]


def kept_columns(
    table: TableFile, given: Sequence[str] | None, id_column: str | None, written: Collection[str]
) -> list[str]:
    """The columns that ``--keep`` names, without that of the ids.

    written: names of the output's own columns, which they must not have.
    """
    keep = [name for name in named_columns(table, given, "--keep") if name != id_column]
    same = [name for name in [*keep, id_column] if name in written]
    if same:
        use = "id" if same[0] == id_column else "kept"
        raise InputError(
            f"the {use} column {same[0]!r} has the same name as a column of the output; rename it"
        )
    return keep
