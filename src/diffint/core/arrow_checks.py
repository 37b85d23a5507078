"""Whether Arrow data are sound: offsets, lengths, positions in dictionaries, bytes of texts.

Arrow believes them when it reads cells, so that a wrong one leads into other memory of the process.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from .errors import InputError


def check_arrow(data: Any) -> None:
    """Raise an error if a table, column or index of pyarrow or pandas has damaged Arrow data.

    Anything else has none.
    """
    for part in _parts(data):
        try:
            part.validate(full=True)
        except ValueError as error:  # ArrowInvalid is one
            raise InputError(
                f"the table has damaged Arrow data ({str(error)[:160]}); read or make it again"
            ) from None


def _parts(data: Any) -> Iterator[Any]:
    """The pyarrow arrays and tables in `data`."""
    pyarrow, pandas = sys.modules.get("pyarrow"), sys.modules.get("pandas")
    if pyarrow is None:
        return
    if isinstance(data, (pyarrow.Table, pyarrow.RecordBatch, pyarrow.Array, pyarrow.ChunkedArray)):
        yield data
    elif pandas is not None and isinstance(data, pandas.DataFrame):
        for j, kind in enumerate(data.dtypes.array):
            if not isinstance(kind, np.dtype):  # most columns: do not take them out of the frame
                yield from _parts(data.iloc[:, j])
        yield from _parts(data.index)
    elif pandas is not None and isinstance(data, pandas.MultiIndex):
        for level in data.levels:
            yield from _parts(level)
    elif pandas is not None and isinstance(data, (pandas.Series, pandas.Index)):
        kind = data.dtype  # pandas itself reads the values of categories when it makes them
        if isinstance(kind, pandas.ArrowDtype) or getattr(kind, "storage", None) == "pyarrow":
            yield data.array.__arrow_array__()
