"""Input tables (data frames, arrays, lists) as checked float matrices.

Cells may be missing (NaN, None, NA); infinities, text and anything else that is not a number
raise an error that names the column, the row and a remedy. Rows are counted from 0.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data

from ..core.arrow_checks import check_arrow
from ..core.constants import LARGEST_TRAINING_VALUE
from ..core.errors import InputError, InputTypeError
from ..core.formatting import listed, printable
from ..core.kinds import ONLY_NUMBERS, Kinds
from .categories import Values, codes, find_categories, new_texts
from .times import beyond_training, find_times, with_time_parts

Matrix = NDArray[np.floating[Any]]
_BLOCK_ROWS = 65_536


def read_table(estimator: Any, X: Any, *, reset: bool, kinds: Kinds = ONLY_NUMBERS) -> Matrix:
    """`X` as a float64 or float32 matrix of shape (rows, features), NaN marking missing cells.

    kinds: the columns that are not numbers; all others must be.

    With ``reset=True`` (fit) the feature names and count are recorded on the estimator; otherwise
    they are compared with those of the fit. Float64 and float32 arrays are not copied,
    so a memory-mapped table stays on disk.
    """
    matrix = _ready_matrix(estimator, X) if kinds.only_numbers and not reset else None
    if matrix is None:
        matrix = _checked_matrix(estimator, X, reset, kinds)
    _check_finite(matrix, kinds.features(feature_names(estimator)))
    return matrix


def _ready_matrix(estimator: Any, X: Any) -> Matrix | None:
    """`X` as a matrix where it obviously needs no check, None where it has to be looked at.

    Most calls pass rows just like those of the fit; all checks together take longer than scoring.
    """
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None:
        pandas = sys.modules.get("pandas")
        if (
            pandas is None
            or type(X) is not pandas.DataFrame
            or X.columns.tolist() != names.tolist()
        ):
            return None
        if not all(isinstance(kind, np.dtype) and kind.kind in "fiu" for kind in X.dtypes.array):
            return None
        X = X.to_numpy()
        if X.dtype.kind in "iu":
            X = X.astype(np.float64)
    elif type(X) is not np.ndarray:
        return None
    usable = X.ndim == 2 and X.shape[1] == estimator.n_features_in_ and len(X) > 0
    return X if usable and X.dtype in (np.float64, np.float32) else None


def _checked_matrix(estimator: Any, X: Any, reset: bool, kinds: Kinds) -> Matrix:
    """`X` after all checks, or an error that says what is wrong with it."""
    frame = as_pandas(X)
    if frame is not None:
        frame = _with_checked_names(frame, estimator, reset)
        try:
            validate_data(estimator, frame, reset=reset, skip_check_array=True)
        except ValueError as error:  # scikit-learn's message lists the names as they are
            raise InputError(printable(str(error), keep="\n")) from None
        expanded = with_time_parts(with_text_names(frame), kinds.times)
        values: Any = _frame_values(expanded, kinds.categories)
    elif not kinds.only_numbers:
        kind, names = "times", list(kinds.times)
        if not names:
            kind, names = "text", [feature_names(estimator)[j] for j in kinds.categories]
        raise InputError(
            f"the table has no column names, but the model needs {kind} in "
            f"{listed([repr(name) for name in names])}; pass a data frame"
        )
    else:
        values = _array_values(X)
    options = {
        "dtype": [np.float64, np.float32],
        "ensure_all_finite": False,
        "ensure_min_samples": 2 if reset else 1,
    }
    if frame is not None:
        matrix = check_array(values, estimator=estimator, input_name="X", **options)
    else:
        matrix = validate_data(estimator, values, reset=reset, **options)
    return np.asarray(matrix)


def find_kinds(X: Any, named: Sequence[str] | str) -> Kinds:
    """The columns of a training table that are not numbers; an array has none.

    named: the names of columns that are categories also if they have numbers or times, or "auto".
    """
    frame = as_pandas(X)
    others = [] if isinstance(named, str) else [str(name) for name in named]
    if frame is None:
        if others:
            raise InputError("categories are named, but the table has no column names")
        return ONLY_NUMBERS
    frame = with_text_names(frame)
    columns = list(frame.columns)
    unknown = [name for name in others if name not in columns]
    if unknown:
        raise InputError(f"categories names {listed(unknown)}, which the table does not have")
    times = find_times(frame, others)
    for name, time in times.items():
        if taken := [feature for feature in time.features(name) if feature in columns]:
            raise InputError(
                f"column {taken[0]!r} has the name of a feature that is made from the times in "
                f"column {name!r}; rename it"
            )
    expanded = with_time_parts(frame, times)
    return Kinds(times, find_categories(expanded, others))


def new_texts_of(
    X: Any, table: Matrix, kinds: Kinds, rows: Any = None
) -> dict[tuple[int, int], str]:
    """What cells have that the model has no value for, by row and column.

    Values of categories that it does not list, and the dates of times beyond the training times.

    table: (rows, features) what `read_table` made of `X`; rows: positions of the rows to look at,
    of which the result has the places; all by default
    """
    frame = None if kinds.only_numbers else as_pandas(X)
    if frame is None:
        return {}
    frame = with_text_names(frame)
    if rows is not None:
        frame, table = frame.iloc[rows], table[rows]
    expanded = with_time_parts(frame, kinds.times)
    found = new_texts(expanded, table, kinds.categories)
    for feature, texts in beyond_training(frame, kinds.times).items():
        j = expanded.columns.get_loc(feature)
        found |= {(i, j): text for i, text in texts.items()}
    return found


def unused_cells(X: Any, unused: Sequence[str], rows: Any) -> dict[str, list[str]]:
    """The cells of columns that the fit ignored, as texts, by column and row.

    unused: names of the columns; rows: positions of the rows
    """
    frame = as_pandas(X) if unused else None
    if frame is None:
        return {}
    frame = with_text_names(frame).iloc[rows]
    cells = {name: frame[name] for name in unused if name in frame.columns}
    return {
        name: [
            "" if missing else str(cell)
            for cell, missing in zip(column, column.isna(), strict=True)
        ]
        for name, column in cells.items()
        if column.notna().any()
    }


def training_matrix(frame: Any) -> Matrix:
    """A training table as the matrix that `DiffInt.fit` makes of it. → (rows, features)"""
    kinds = find_kinds(frame, "auto")
    return _frame_values(with_time_parts(frame, kinds.times), kinds.categories)


def read_rows(X: Any, names: Sequence[str], kinds: Kinds = ONLY_NUMBERS) -> Matrix:
    """`read_table` without an estimator, for features of these names; arrays go by position."""

    class Model(BaseEstimator):  # type: ignore[misc]
        """Its name appears in scikit-learn's messages."""

    model = Model()
    model.n_features_in_ = len(names)
    columns = getattr(X, "column_names", getattr(X, "columns", None))  # of pyarrow, of pandas
    unnamed = list(names) == default_names(len(names))
    if columns is not None and (not unnamed or list(columns) == list(names)):
        model.feature_names_in_ = np.array(names, dtype=object)
    return read_table(model, X, reset=False, kinds=kinds)


def feature_names(estimator: Any) -> list[str]:
    """The names of the fitted features; unnamed columns are ``x0, x1, …``."""
    named = getattr(estimator, "feature_names_in_", None)
    if named is not None:
        return [str(name) for name in named]
    return default_names(getattr(estimator, "n_features_in_", 0))


def default_names(n_features: int) -> list[str]:
    """``x0, x1, …``"""
    return [f"x{j}" for j in range(n_features)]


def as_pandas(X: Any) -> Any | None:
    """Any data frame as a pandas frame without damage; None if `X` is not a data frame."""
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(X, pandas.DataFrame):
        check_arrow(X)
        return X
    if not hasattr(type(X), "columns") and not hasattr(X, "__dataframe__"):
        return None
    import pyarrow

    try:
        if hasattr(X, "__arrow_c_stream__"):
            table = pyarrow.table(X)
        elif hasattr(X, "__dataframe__"):
            from pyarrow.interchange import from_dataframe

            table = from_dataframe(X)
        else:
            return None
        check_arrow(table)
        return table.to_pandas()
    except (pyarrow.ArrowException, NotImplementedError) as error:
        raise InputTypeError(
            f"the {type(X).__name__} has a column that cannot be read as numbers ({error}); "
            "convert or drop it"
        ) from error


def with_text_names(frame: Any) -> Any:
    """The frame with the names of its features: texts, and ``x0, x1, …`` for unnamed columns."""
    names = list(frame.columns)
    _check_unique_names(names)
    if all(isinstance(name, str) for name in names):
        return frame
    unnamed = names == list(range(len(names)))
    return frame.set_axis(default_names(len(names)) if unnamed else list(map(str, names)), axis=1)


def _with_checked_names(frame: Any, estimator: Any, reset: bool) -> Any:
    """The frame with column names that scikit-learn checks: strings, or none at all.

    Columns 0, 1, 2, … count as unnamed: pandas makes them from an array. Other names that are not
    strings are turned into strings, so that a change of their order is noticed later.
    """
    names = list(frame.columns)
    _check_unique_names(names)
    if all(isinstance(name, str) for name in names):
        return frame
    if names == list(range(len(names))):
        return frame
    if not reset and not hasattr(estimator, "feature_names_in_"):
        raise InputError(
            f"the columns are called {names[:5]}, but the detector was fitted on unnamed columns; "
            "pass them as an array, in the order of the fit"
        )
    return frame.set_axis([str(name) for name in names], axis=1)


def _check_unique_names(names: Sequence[Any]) -> None:
    seen: set[Any] = set()
    repeated = [name for name in names if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
    if repeated:
        names_text = ", ".join(repr(name) for name in dict.fromkeys(repeated))
        raise InputError(f"column names must be unique; repeated: {names_text}")


def _frame_values(frame: Any, categories: Mapping[int, Values]) -> Matrix:
    import pandas

    all_float32 = len(frame.columns) > 0 and all(str(t) == "float32" for t in frame.dtypes)
    values = np.empty(frame.shape, dtype=np.float32 if all_float32 else np.float64)
    for j, name in enumerate(frame.columns):
        column = frame.iloc[:, j]
        if j in categories:
            values[:, j] = codes(column, categories[j])
            continue
        kind = column.dtype
        if pandas.api.types.is_complex_dtype(kind):
            raise InputError(f"Complex data not supported: column {name!r} has complex numbers")
        numeric = pandas.api.types.is_numeric_dtype(kind) or pandas.api.types.is_bool_dtype(kind)
        if isinstance(kind, pandas.SparseDtype):
            raise InputTypeError(f"column {name!r} is sparse; use frame.sparse.to_dense() first")
        if pandas.api.types.is_datetime64_any_dtype(kind) and column.isna().all():
            values[:, j] = np.nan
        elif numeric:
            values[:, j] = column.to_numpy(dtype=values.dtype, na_value=np.nan)
        elif pandas.api.types.is_object_dtype(kind) or pandas.api.types.is_string_dtype(kind):
            values[:, j] = _numbers(column.to_numpy(dtype=object), name)
        else:
            raise InputTypeError(
                f"column {name!r} contains {kind} values, which are not numbers; "
                "convert it to numbers or drop it"
            )
    return values


def _array_values(X: Any) -> Any:
    """`X` as an array of numbers; scikit-learn checks its shape and sparsity later."""
    if isinstance(X, np.ma.MaskedArray):
        values = _array_values(np.ma.getdata(X))
        if values.dtype.kind == "c":
            return values
        return np.where(np.ma.getmaskarray(X), np.nan, values.astype(np.float64))
    if isinstance(X, (list, tuple)):
        try:
            X = np.asarray(X)
        except ValueError as error:
            raise InputError(f"the rows of X do not form a table: {error}") from error
        if X.dtype.kind in "US":  # NumPy turned a mix of numbers and text into text
            raise InputTypeError(_text_message(X))
    if not isinstance(X, np.ndarray):
        is_number = np.isscalar(X) and not isinstance(X, (str, bytes))
        if not (hasattr(X, "__array__") or hasattr(X, "toarray") or is_number):
            raise InputTypeError(
                f"X is a {type(X).__name__}; pass a DataFrame, a pyarrow table, a 2-D NumPy array "
                "or a list of rows"
            )
        return X
    if X.dtype.names is not None:
        raise InputTypeError("X is a structured array; pass pandas.DataFrame(X)")
    if X.dtype.kind in "US":
        raise InputTypeError(_text_message(X))
    if X.dtype.kind in "mM":
        raise InputTypeError(f"X contains {X.dtype} values; convert them to numbers first")
    if X.dtype == object and X.ndim == 1 and len(X):
        raise InputTypeError(
            f"the rows of X are {type(X[0]).__name__} objects (Expected 2D array, got 1D array "
            "instead); pass a DataFrame, a 2-D array or a list of rows"
        )
    if X.dtype == object and X.ndim == 2 and X.size:
        columns = [_numbers(X[:, j], f"x{j}") for j in range(X.shape[1])]
        return np.stack(columns, axis=1)
    return X


def _numbers(cells: NDArray[Any], name: Any) -> NDArray[np.float64]:
    """Cells of an object column as floats; None and NA become NaN, text raises an error."""
    values = np.empty(len(cells), dtype=np.float64)
    for i, cell in enumerate(cells):
        if isinstance(cell, (str, bytes)):
            raise InputTypeError(
                f"column {name!r} contains text (first {cell!r} at row {i}); "
                "convert it to numbers or drop the column"
            )
        try:
            values[i] = np.nan if _is_missing(cell) else float(cell)
        except (TypeError, ValueError, OverflowError) as error:
            raise InputTypeError(
                f"column {name!r} has {repr(cell)[:40]} at row {i}, which is not a usable number "
                f"({error}); convert it or drop the column"
            ) from error
    return values


def _is_missing(cell: Any) -> bool:
    return cell is None or type(cell).__name__ in ("NAType", "NaTType")


def _text_message(X: NDArray[Any]) -> str:
    for index, cell in np.ndenumerate(X):
        try:
            float(cell)
        except ValueError:
            where = f"row {index[0]}" + (f", column 'x{index[1]}'" if len(index) > 1 else "")
            return f"X contains text (first {str(cell)!r} at {where}); convert or drop it"
    return "X contains numbers written as text; convert it with X.astype(float)"


def check_training_values(
    matrix: Matrix, anomalies: NDArray[np.bool_], names: Sequence[str]
) -> None:
    """Raise an error if a row to train on has a value with which differences could overflow."""
    if matrix.dtype == np.float32:  # it has no such values
        return
    for start in range(0, len(matrix), _BLOCK_ROWS):
        block = np.abs(matrix[start : start + _BLOCK_ROWS])
        huge = (block > LARGEST_TRAINING_VALUE) & ~anomalies[start : start + _BLOCK_ROWS, None]
        if huge.any():
            row, j = np.argwhere(huge)[0]
            raise InputError(
                f"column {names[j]!r} has the value "
                f"{matrix[start + row, j]:.3g} (first at row {start + row}), beyond the largest "
                f"that can be trained on, ±{LARGEST_TRAINING_VALUE:g}; if it marks a missing "
                "value, replace it with NaN, else divide the column by a constant"
            )


def _check_finite(matrix: Matrix, names: Sequence[str]) -> None:
    for start in range(0, len(matrix), _BLOCK_ROWS):
        infinite = np.isinf(matrix[start : start + _BLOCK_ROWS])
        if infinite.any():
            j = int(np.flatnonzero(infinite.any(axis=0))[0])
            rows = np.flatnonzero(np.isinf(matrix[:, j]))
            raise InputError(
                f"Input X contains infinity: column {names[j]!r} has {len(rows)} infinite "
                f"value{'s' if len(rows) > 1 else ''} (first at row {rows[0]}); drop or cap them"
            )
