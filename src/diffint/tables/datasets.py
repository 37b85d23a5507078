"""Labelled tables: the embedded example, and folders of tables (ADBench, macrOData, a user's)."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError
from ..core.formatting import counted, listed

_PARQUET_ENDINGS = (".parquet", ".pq")
_NOT_AN_ARRAY_FILE = (OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile)


class LabelledTable(NamedTuple):
    """x: (rows, features) float64; y: (rows,) 1 marks an anomaly; feature_names: (features,)"""

    x: NDArray[np.float64]
    y: NDArray[np.int64]
    feature_names: list[str]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.x)


class SplitTable(NamedTuple):
    """A table with a fixed split.

    train: (train rows, features) float64, normal rows only; test: (test rows, features) float64;
    test_labels: (test rows,) 1 marks an anomaly; feature_names: (features,)
    """

    train: NDArray[np.float64]
    test: NDArray[np.float64]
    test_labels: NDArray[np.int64]
    feature_names: list[str]

    @property
    def n_rows(self) -> int:
        """Number of rows of both parts."""
        return len(self.train) + len(self.test)


def breast_cancer() -> LabelledTable:
    """The embedded example: 569 biopsies × 30 measurements; malignant ones are the anomalies."""
    from sklearn.datasets import load_breast_cancer

    data: Any = load_breast_cancer()
    return LabelledTable(data.data, 1 - data.target, [str(name) for name in data.feature_names])


def adbench_files(folder: str | Path) -> dict[str, Path]:
    """The ADBench tables of a folder by name ('31_satimage-2'), in order of their numbers."""
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{str(folder)!r} is not a folder of ADBench tables (files NN_name.npz)")
    files = [f for f in folder.glob("*.npz") if re.match(r"\d+_", f.name)]
    if not files:
        raise InputError(
            f"{str(folder)!r} has no ADBench tables (files NN_name.npz); other tables need another "
            "--suite"
        )
    return {f.stem: f for f in sorted(files, key=lambda f: int(f.name.split("_")[0]))}


def read_adbench(path: str | Path) -> LabelledTable:
    """One ADBench table: an .npz file with X (rows, features) and y (rows,) of 0 and 1."""
    try:
        with np.load(path, allow_pickle=False) as data:
            x, y = np.asarray(data["X"], dtype=np.float64), np.asarray(data["y"]).ravel()
    except _NOT_AN_ARRAY_FILE as error:
        raise InputError(f"{str(path)!r} is not a table with X and y ({error})") from None
    if x.ndim != 2 or x.size == 0 or len(x) != len(y):
        raise InputError(
            f"{str(path)!r}: X has shape {x.shape} and y has {len(y)} values; X must be (rows, "
            "features) and y must have one value per row"
        )
    _check_zeros_and_ones(path, "y", y)
    return LabelledTable(x, y.astype(np.int64), [f"x{j}" for j in range(x.shape[1])])


def macrodata_files(folder: str | Path) -> dict[str, Path]:
    """The macrOData tables of a folder by name ('oddbench__BugSeverity'), smallest first."""
    return _files_by_name(folder, (".npz",), "macrOData tables")


def read_macrodata(path: str | Path) -> SplitTable:
    """One macrOData table: an .npz file with train, test, test_labels and feature_names."""
    try:
        with np.load(path, allow_pickle=False) as data:
            train, test = (np.asarray(data[n], dtype=np.float64) for n in ("train", "test"))
            labels = np.asarray(data["test_labels"]).ravel()
            names = [str(name) for name in np.asarray(data["feature_names"]).ravel()]
    except _NOT_AN_ARRAY_FILE as error:
        raise InputError(
            f"{str(path)!r} is not a table with train, test, test_labels and feature_names "
            f"({error})"
        ) from None
    shapes = train.shape, test.shape, labels.shape, (len(names),)
    expected = (len(train), len(names)), (len(test), len(names)), (len(test),), (len(names),)
    if shapes != expected or train.size == 0 or test.size == 0:
        raise InputError(
            f"{str(path)!r}: train has shape {train.shape}, test {test.shape}, test_labels "
            f"{labels.shape}, feature_names {(len(names),)}; train and test must be (rows, "
            "features), with one label per test row and one name per feature"
        )
    _check_zeros_and_ones(path, "test_labels", labels)
    _check_both_kinds(path, "test_labels", labels)
    for part in (train, test):
        _check_no_infinity(path, part, names)
    return SplitTable(train, test, labels.astype(np.int64), names)


def labelled_files(folder: str | Path) -> dict[str, Path]:
    """A user's tables of a folder by name, smallest first: .npz and Parquet files."""
    return _files_by_name(folder, (".npz", *_PARQUET_ENDINGS), "tables")


def read_labelled(path: str | Path, label: str = "label") -> LabelledTable:
    """A user's table: an .npz file with X and y, or a Parquet file with a label column.

    Cells may be missing (NaN). All columns are numbers; there are anomalies and inliers.
    """
    path = Path(path)
    is_parquet = path.suffix.lower() in _PARQUET_ENDINGS
    table = _read_parquet(path, label) if is_parquet else read_adbench(path)
    _check_both_kinds(path, label if is_parquet else "y", table.y)
    _check_no_infinity(path, table.x, table.feature_names)
    return table


def _read_parquet(path: Path, label: str) -> LabelledTable:
    from .files.number_parsing import is_text
    from .files.reading import ReadingOptions, open_table

    parts, labels = [], []
    with open_table(str(path), ReadingOptions(kind="parquet")) as file:
        if label not in file.columns:
            raise InputError(
                f"{file.name} has no label column {label!r}; it has "
                f"{listed([repr(name) for name in file.columns[:5]])}"
                f"{', …' if len(file.columns) > 5 else ''}; name the column with --label"
            )
        features = [name for name in file.columns if name != label]
        if not features:
            raise InputError(f"{file.name} has no column besides the label {label!r}")
        for first, batch in file.batches(file.columns):
            texts = [name for name in features if is_text(batch.schema.field(name).type)]
            if texts:
                raise InputError(
                    f"{file.name}: column {texts[0]!r} is text, but the benchmark takes only "
                    "numbers; convert the column to numbers or drop it"
                )
            parts.append(file.numbers(batch, features, first))
            labels.append(file.anomalies(batch, label, first))
    return LabelledTable(np.concatenate(parts), np.concatenate(labels).astype(np.int64), features)


def _files_by_name(folder: str | Path, endings: Sequence[str], what: str) -> dict[str, Path]:
    """The files with these endings, by their names without the ending; smallest first."""
    folder = Path(folder)
    shown = ", ".join(endings)
    if not folder.is_dir():
        raise InputError(f"{str(folder)!r} is not a folder of {what} ({shown} files)")
    files: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() not in endings or path.name.startswith(".") or not path.is_file():
            continue
        if path.stem in files:
            raise InputError(
                f"{str(folder)!r} has two tables called {path.stem!r}, "
                f"{files[path.stem].name!r} and {path.name!r}; rename one"
            )
        files[path.stem] = path
    if not files:
        raise InputError(f"{str(folder)!r} has no {what} ({shown} files)")
    return dict(sorted(files.items(), key=lambda item: (item[1].stat().st_size, item[0])))


def _check_zeros_and_ones(path: str | Path, name: str, labels: NDArray[Any]) -> None:
    if not np.isin(labels, (0, 1)).all():
        values = ", ".join(str(value) for value in np.unique(labels)[:5])
        raise InputError(
            f"{str(path)!r}: {name} contains {values}; it must be 0, or 1 for anomalies"
        )


def _check_both_kinds(path: str | Path, name: str, labels: NDArray[Any]) -> None:
    n_anomalies = int((labels == 1).sum())
    if n_anomalies in (0, len(labels)):
        kind = "only anomalies" if n_anomalies else "no anomalies"
        raise InputError(
            f"{str(path)!r}: {name} marks {kind} in {counted(len(labels), 'row')}; detectors can "
            "only be compared on both kinds of rows"
        )


def _check_no_infinity(path: str | Path, x: NDArray[np.float64], names: Sequence[str]) -> None:
    infinite = np.isinf(x)
    if infinite.any():
        row, column = np.argwhere(infinite)[0]
        raise InputError(
            f"{str(path)!r}: column {names[column]!r} has an infinite number in row {row + 1:,}; "
            "replace it, with NaN if the value is missing"
        )
