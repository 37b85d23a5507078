"""Fingerprints of a table's values, to recognise the table that a model was trained on."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ROWS = 1_000  # at each end of the table


class Fingerprint:
    """A SHA-256 of the first and the last thousand rows and of the number of rows and columns.

    Rows are added in parts of any size, so that a file can be read in batches.
    """

    def __init__(self) -> None:
        self._n_rows = 0
        self._first: list[NDArray[np.float64]] = []
        self._last: NDArray[np.float64] | None = None

    def add(self, rows: NDArray[Any]) -> None:
        """Add the next rows of the table. (rows, features)"""
        missing = _ROWS - self._n_rows
        if missing > 0:
            self._first.append(np.array(rows[:missing], dtype=np.float64))
        tail = rows[-_ROWS:]
        if self._last is not None and len(tail) < _ROWS:
            tail = np.concatenate([self._last, tail])[-_ROWS:]
        self._last = np.array(tail, dtype=np.float64)
        self._n_rows += len(rows)

    def hexdigest(self) -> str:
        """The fingerprint of all rows added so far, as 64 hexadecimal digits."""
        parts = [*self._first, *([] if self._last is None else [self._last])]
        n_columns = parts[0].shape[1] if parts else 0
        digest = hashlib.sha256(f"{self._n_rows},{n_columns}".encode())
        for part in parts:
            digest.update(_bytes(part))
        return digest.hexdigest()


def fingerprint(table: NDArray[Any]) -> str:
    """The fingerprint of a whole table. (rows, features)"""
    whole = Fingerprint()
    whole.add(table)
    return whole.hexdigest()


def full_fingerprint(table: NDArray[Any]) -> str:
    """A SHA-256 of all rows of a table (rows, features), not only of those at its ends."""
    digest = hashlib.sha256(",".join(map(str, table.shape)).encode())
    for start in range(0, len(table), _ROWS):
        digest.update(_bytes(table[start : start + _ROWS]))
    return digest.hexdigest()


def _bytes(rows: NDArray[Any]) -> bytes:
    """The cells of rows, the same for the same values on every processor."""
    # Adding 0 turns −0 into 0; NaNs can have different bits, processors different orders.
    same = np.where(np.isnan(rows), np.nan, rows) + 0.0
    return np.ascontiguousarray(same, dtype="<f8").tobytes()
