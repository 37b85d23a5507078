"""Labelled tables: the embedded example, and ADBench tables from a folder."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError


class LabelledTable(NamedTuple):
    """x: (rows, features) float64; y: (rows,) 1 marks an anomaly; feature_names: (features,)"""

    x: NDArray[np.float64]
    y: NDArray[np.int64]
    feature_names: list[str]


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
    return {f.stem: f for f in sorted(files, key=lambda f: int(f.name.split("_")[0]))}


def read_adbench(path: str | Path) -> LabelledTable:
    """One ADBench table: an .npz file with X (rows, features) and y (rows,) of 0 and 1."""
    try:
        with np.load(path, allow_pickle=False) as data:
            x, y = np.asarray(data["X"], dtype=np.float64), np.asarray(data["y"]).ravel()
    except (OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{str(path)!r} is not a table with X and y ({error})") from None
    if x.ndim != 2 or x.size == 0 or len(x) != len(y):
        raise InputError(
            f"{str(path)!r}: X has shape {x.shape} and y has {len(y)} values; X must be (rows, "
            "features) and y must have one value per row"
        )
    if not np.isin(y, (0, 1)).all():
        values = ", ".join(str(value) for value in np.unique(y)[:5])
        raise InputError(f"{str(path)!r}: y contains {values}; it must be 0, or 1 for anomalies")
    return LabelledTable(x, y.astype(np.int64), [f"x{j}" for j in range(x.shape[1])])
