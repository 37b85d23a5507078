"""Recognise the rows that a model was trained on among others."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.model import FittedModel
from .fingerprint import Fingerprint

_BLOCK_ROWS = 65_536
_SHARE = 0.5  # of the training table that is found, or of the rows that are from it
_MANY = 3.0  # times as many as by chance
_FEWEST = 20  # rows that can be recognised


class TrainingTableSearch:
    """Whether rows are from the table that a model was trained on.

    The whole table is recognised by its fingerprint; parts of it, and tables with other rows
    besides, by the rows of it that the model stores. Rows are added in parts of any size.
    """

    def __init__(self, model: FittedModel) -> None:
        self._training, self._seen, self._n_rows = model.training, Fingerprint(), 0
        stored, copies = np.unique(_keys(model.calibration.sample), return_counts=True)
        self._n_stored = int(copies.sum())
        self._single = stored[copies == 1]
        self._found = np.zeros(len(self._single), dtype=np.int64)

    def add(self, rows: NDArray[Any]) -> None:
        """Add the next rows. (rows, features)"""
        self._seen.add(rows)
        self._n_rows += len(rows)
        if not len(self._single):
            return
        for start in range(0, len(rows), _BLOCK_ROWS):
            keys = _keys(rows[start : start + _BLOCK_ROWS])
            at = np.minimum(np.searchsorted(self._single, keys), len(self._single) - 1)
            np.add.at(self._found, at[self._single[at] == keys], 1)

    @property
    def found_all(self) -> bool:
        """Whether the rows are the training table."""
        return self._seen.hexdigest() == self._training.fingerprint

    @property
    def found(self) -> bool:
        """Whether the rows are the training table, contain most of it, or are mostly from it."""
        if self.found_all:
            return True
        n_found = int((self._found == 1).sum())
        # Where new rows equal stored ones by chance, as in a table of a few categories, at most
        # 1/e of the stored rows are found exactly once.
        if n_found >= _SHARE * max(self._n_stored, _FEWEST):
            return True
        # New rows equal stored ones by chance as often as stored rows equal each other.
        n_copied = self._n_stored - len(self._single)
        by_chance = self._n_rows * (n_copied + 3) / max(self._n_stored, 1)
        from_it = self._n_rows * self._n_stored / max(self._training.n_rows, 1)
        return n_found >= max(_SHARE * from_it, _MANY * by_chance)


def _keys(rows: NDArray[Any]) -> NDArray[np.uint64]:
    """A number for each row, equal for equal rows, and for others hardly ever. (rows,)"""
    with np.errstate(over="ignore"):
        rough = np.asarray(rows, dtype=np.float32)  # as a table may have been read in float32
    same = np.where(np.isnan(rough), np.float32(np.nan), rough) + np.float32(0.0)
    bits = np.ascontiguousarray(same).view(np.uint32).astype(np.uint64)
    factors = np.random.default_rng(0).integers(2**64, size=(bits.shape[1],), dtype=np.uint64)
    keys = np.zeros(len(bits), dtype=np.uint64)
    for j in range(bits.shape[1]):
        keys += bits[:, j] * (factors[j] | np.uint64(1))
        keys ^= keys >> np.uint64(29)
    return keys
