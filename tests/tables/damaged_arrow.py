"""Arrow data with one wrong number, which lead out of their memory."""

import numpy as np
import pyarrow as pa


def wrong_offset(n_rows, value=None, row=60):
    """Texts (rows,), of which one begins 200 bytes too late, or at `value`."""
    texts = pa.array([f"id{i:05d}" for i in range(n_rows)])
    validity, offsets, characters = texts.buffers()
    wrong = np.frombuffer(offsets, np.int32).copy()
    wrong[row] = wrong[row] + 200 if value is None else value
    return pa.Array.from_buffers(
        pa.string(), n_rows, [validity, pa.py_buffer(wrong.tobytes()), characters]
    )


def wrong_dictionary(n_rows):
    """Positions (rows,) in a dictionary of damaged texts."""
    return pa.DictionaryArray.from_arrays(pa.array(np.arange(n_rows) % 80), wrong_offset(80))


def wrong_position(n_rows):
    """Positions (rows,) in a dictionary of two texts, of which one is 7."""
    positions = np.arange(n_rows) % 2
    positions[60] = 7
    return pa.DictionaryArray.from_arrays(pa.array(positions), pa.array(["a", "b"]), safe=False)
