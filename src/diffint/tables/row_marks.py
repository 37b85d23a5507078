"""What users give beside a table, one value per row: known anomalies, groups and segments."""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.arrow_checks import check_arrow
from ..core.errors import InputError, InputTypeError, InputWarning, warn
from ..core.formatting import counted, listed, shown_name
from .categories import distinct_texts
from .frames import as_pandas

NEW_SEGMENT = -1  # the code of a segment that the training rows do not have
_MOST_NAMED = 5
_WHOLE = re.compile(r"-?\d+\.0+")
_MIDNIGHT = re.compile(r"(?<=^\d{4}-\d{2}-\d{2})[ T]00:00(:00(\.0+)?)?$")


def read_anomalies(anomalies: Any, n_rows: int, index: Any = None) -> NDArray[np.bool_]:
    """The mask of known anomalies, shape (rows,), from booleans or zeros and ones.

    index: the index of a pandas table; a mask with a different index raises an error.
    """
    if anomalies is None:
        return np.zeros(n_rows, dtype=bool)
    _check_labels("anomalies", anomalies, n_rows, index)
    try:
        mask = np.asarray(anomalies)
        if mask.dtype == object:
            if any(isinstance(cell, (str, bytes)) for cell in mask.ravel()):
                raise ValueError("text")
            mask = mask.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("anomalies must be True/False or 0/1, one per row") from error
    if mask.shape != (n_rows,):
        raise InputError(
            f"anomalies has shape {mask.shape}, but the table has {n_rows} rows; "
            "pass one True/False (or 0/1) per row"
        )
    if mask.dtype != bool:
        numeric = mask.dtype.kind in "iuf"
        wrong = np.flatnonzero((mask != 0) & (mask != 1)) if numeric else np.arange(n_rows)
        if len(wrong):
            raise InputError(
                f"anomalies must be True/False or 0/1; row {wrong[0]} has {mask[wrong[0]]}"
            )
        mask = mask.astype(bool)
    if n_rows - int(mask.sum()) < 2:
        raise InputError(
            f"anomalies marks {int(mask.sum())} of {n_rows} rows, which leaves fewer than 2 rows "
            "to train on; 1 marks an anomaly, 0 a normal row"
        )
    return mask


def read_groups(groups: Any, n_rows: int, index: Any = None) -> NDArray[np.intp] | None:
    """A number for the group of each row, shape (rows,), from labels of any type; None stays None.

    index: the index of a pandas table; labels with a different index raise an error.
    """
    if groups is None:
        return None
    import pandas

    _check_labels("groups", groups, n_rows, index)
    if isinstance(groups, str):
        raise InputTypeError(
            f"groups is the text {groups!r}; pass the column itself, with one label per row"
        )
    try:
        labels = pandas.Series(groups if hasattr(groups, "__len__") else list(groups))
        codes = pandas.factorize(labels)[0]
    except (TypeError, ValueError, NotImplementedError) as error:
        raise InputTypeError(f"groups must have one label per row ({error})") from error
    if codes.shape != (n_rows,):
        raise InputError(
            f"groups has {codes.size} labels, but the table has {n_rows} rows; pass one per row"
        )
    missing = np.flatnonzero(codes < 0)
    if len(missing):
        raise InputError(
            f"groups has no label for {counted(len(missing), 'row')}, the first of them row "
            f"{missing[0]}; give every row a label (one of its own if it belongs to no group)"
        )
    return np.asarray(codes, dtype=np.intp)


def _check_labels(name: str, labels: Any, n_rows: int, index: Any) -> None:
    """Raise an error for damaged labels, and for those that belong to another index."""
    check_arrow(labels)
    check_arrow(index)
    own: Any = getattr(labels, "index", None)
    both = hasattr(own, "equals") and hasattr(index, "equals")
    if both and len(own) == n_rows and not own.equals(index):
        raise InputError(
            f"{name} and the table have different indexes; align them, or pass "
            f"{name}.to_numpy() if the order is right"
        )


class Segments(NamedTuple):
    """The segments of training rows.

    codes: (rows,) places in `names`; column: the column of the table that they are from, None if
    they were given beside it.
    """

    codes: NDArray[np.int64]
    names: tuple[str, ...]
    column: str | None


def read_segments(X: Any, segments: Any) -> tuple[Any, Segments | None]:
    """The table without its column of segments, and the segments of its rows.

    segments: the name of a column, which is then no feature, or one label per row; None for none.
    """
    if segments is None:
        return X, None
    table, labels, column = X, segments, None
    frame = as_pandas(X)
    named = isinstance(segments, str) or (frame is not None and _is_column(frame, segments))
    if named:
        if frame is None or not _is_column(frame, segments):
            raise InputError(
                f"segments={segments!r} is not a column of the table; give the name of a column "
                "of a data frame, or one label per row"
            )
        table, labels = frame.drop(columns=[segments]), _column(frame, segments)
        column = str(segments)
    n_rows = len(frame) if frame is not None else len(X)
    _check_labels("segments", labels, n_rows, getattr(X, "index", None))
    places, texts = _labels(labels, n_rows)
    missing = np.flatnonzero(places < 0)
    if len(missing):
        raise InputError(
            f"segments has no label for {counted(len(missing), 'row')}, the first of them row "
            f"{missing[0]}; give every row a label"
        )
    name = getattr(labels, "name", None)
    if not named and name is not None:
        # Other labels than those in the column of this name, such as ranges of a number, are not
        # to be taken from it later.
        if frame is None or not _is_column(frame, name):
            column = str(name)
        else:
            there, others = _labels(_column(frame, name), n_rows)
            same = (there >= 0).all() and (others[there] == texts[places]).all()
            column = str(name) if same else None
    names, sorted_places = np.unique(texts[places].astype(str), return_inverse=True)
    return table, Segments(sorted_places.ravel(), tuple(names.tolist()), column)


def _is_column(frame: Any, name: Any) -> bool:
    return isinstance(name, Hashable) and name in frame.columns


def _column(frame: Any, name: Any) -> Any:
    """A column of a frame; raises an error if it has several of this name."""
    column = frame[name]
    if column.ndim != 1:
        raise InputError(f"the table has several columns {name!r}; rename them")
    return column


def segment_codes(
    X: Any, segments: Any, names: tuple[str, ...], column: str | None
) -> NDArray[np.int64]:
    """The segments of new rows as places in `names`, −1 for those that are not there. → (rows,)

    segments: one label per row; None to take them from the column of the table. Warns of new ones.
    """
    frame = as_pandas(X)
    named = [] if frame is None else [name for name in frame.columns if str(name) == column]
    if segments is None:
        if column is None or not named:
            place = "" if column is None else f", or a table with the column {column!r}"
            raise InputError(
                f"the model has a threshold for each segment: pass segments=, one label per row"
                f"{place}"
            )
        segments = _column(frame, named[0])
    elif isinstance(segments, str):
        raise InputTypeError(
            f"segments is the text {segments!r}; pass one label per row, or a table with the "
            "column that the model was fitted with"
        )
    n_rows = len(frame) if frame is not None else len(X)
    _check_labels("segments", segments, n_rows, getattr(X, "index", None))
    codes, new = known_segments(segments, n_rows, names)
    warn_of_new_segments(int((codes == NEW_SEGMENT).sum()), new)
    return codes


def known_segments(
    labels: Any, n_rows: int, names: tuple[str, ...]
) -> tuple[NDArray[np.int64], list[str]]:
    """The places of labels (rows,) in `names`, −1 for those that are not there; the new ones."""
    places, texts = _labels(labels, n_rows)
    known = {name: code for code, name in enumerate(names)}
    codes = np.array([*(known.get(str(text), NEW_SEGMENT) for text in texts), NEW_SEGMENT])
    new = [str(text) for text in texts if str(text) not in known]
    return np.asarray(codes[places], dtype=np.int64), new


def without_segments(X: Any, column: str | None, features: list[str]) -> Any:
    """A table without the column of segments, unless that is a feature too."""
    if column is None or column in features:
        return X
    frame = as_pandas(X)
    if frame is None:
        return X
    return frame.drop(columns=[name for name in frame.columns if str(name) == column])


def warn_of_new_segments(count: int, new: list[str]) -> None:
    """Warn if rows belong to no segment of the training rows. count: of rows; new: the segments"""
    if count:
        shown = [shown_name(name) for name in new[:_MOST_NAMED]] or ["no label"]
        shown += [f"{len(new) - _MOST_NAMED:,} more"] if len(new) > _MOST_NAMED else []
        warn(
            f"{counted(count, 'row')} {'is' if count == 1 else 'are'} of segments that the "
            f"training rows do not have ({listed(shown)}); they are compared with all calibration "
            "rows, and their false-positive rate is not known",
            InputWarning,
        )


def _labels(labels: Any, n_rows: int) -> tuple[NDArray[np.int64], NDArray[np.object_]]:
    """The place of each label among the different texts, −1 if it is missing, and these texts."""
    import pandas

    try:
        column = pandas.Series(labels if hasattr(labels, "__len__") else list(labels))
        places, texts = distinct_texts(column)
    except (TypeError, ValueError, NotImplementedError) as error:
        raise InputTypeError(f"segments must have one label per row ({error})") from error
    if places.shape != (n_rows,):
        raise InputError(
            f"segments has {places.size} labels, but the table has {n_rows} rows; pass one per row"
        )
    # Equal texts again after they are written alike, as other files write them otherwise.
    alike = np.array([_written_alike(text) for text in texts], dtype=object)
    again, different = pandas.factorize(alike)
    places = np.append(again, -1)[places]
    return np.asarray(places, dtype=np.int64), np.asarray(different, dtype=object)


def _written_alike(label: str) -> str:
    """A label without what depends on the kind of file: ``1.0``, ``True``, ``2024-01-01 00:00``."""
    if label in ("True", "TRUE", "False", "FALSE"):
        return label.lower()
    label = _MIDNIGHT.sub("", label)
    return label.split(".")[0] if _WHOLE.fullmatch(label) else label
