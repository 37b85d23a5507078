"""Named arrays and a text in one safetensors file, with a checksum over every byte of it.

    8 bytes   length of the header, little-endian
    header    JSON, filled up with spaces to a multiple of 8 bytes:
              {"__metadata__": {"diffint_format": "5", "diffint_checksum": …, "diffint_model": …},
               name: {"dtype": …, "shape": …, "data_offsets": …}, …}
    data      the arrays, one after the other

There is one way to write given arrays and a given text. The reader knows from the text which arrays
to expect; it writes the header that belongs to them and compares it with that of the file. So a
file has no other array, order, position or spelling than the expected one.

The checksum is the SHA-256 of the whole file with 64 zeros in place of its own digits. It detects
damage, not malice: anyone can compute it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..core.errors import ModelFileError
from ..tables.atomic_write import atomic_file

FORMAT_VERSION, OLDEST_VERSION = 6, 4  # that are written, and still read
_FORMAT_KEY, _CHECKSUM_KEY, _TEXT_KEY = "diffint_format", "diffint_checksum", "diffint_model"
_DTYPES = {"F64": "<f8", "I64": "<i8", "F32": "<f4", "BOOL": "|b1", "U8": "|u1"}
_LONGEST_HEADER = 2**20  # bytes; the number of arrays does not depend on the model
_NO_CHECKSUM = "0" * 64
_CHUNK = 2**20  # bytes read and hashed at a time

Array = NDArray[Any]
Shapes = Mapping[str, tuple[str, tuple[int, ...]]]
"""Type (a key of `_DTYPES`) and shape of every array."""


def write_arrays(
    path: str | os.PathLike[str], text: str, shapes: Shapes, parts: Mapping[str, Iterable[Array]]
) -> None:
    """Write a text and arrays; an existing file is replaced only when the new one is complete.

    parts: of every array, the pieces that follow each other along its first axis.
    """
    header = _header(FORMAT_VERSION, _NO_CHECKSUM, text, shapes)
    if len(header) > _LONGEST_HEADER:
        raise ModelFileError(
            f"the description of the model is longer than {_LONGEST_HEADER:,} bytes; shorten the "
            "name of the id column"
        )
    pieces = [
        np.ascontiguousarray(piece, dtype=_DTYPES[shapes[name][0]])
        for name in _order(shapes)
        for piece in parts[name]
        if piece.size
    ]
    digest = hashlib.sha256(_prefix(header))
    for piece in pieces:
        digest.update(piece.data)
    header = _header(FORMAT_VERSION, digest.hexdigest(), text, shapes)
    with atomic_file(path) as file:
        file.write(_prefix(header))
        for piece in pieces:
            file.write(piece.data)


def read_arrays(
    path: str | os.PathLike[str], expected: Callable[[str, int], tuple[Any, Shapes]]
) -> tuple[Any, dict[str, Array]]:
    """Read a file once, from the start to the end. Raises a `ModelFileError` if anything is wrong.

    expected: from the text and the version of the file to a result of the caller's and to the
    arrays that belong to the text.
    → that result, and the arrays. They share one block of memory of the size of the file.
    """
    with _open_file(Path(path)) as file:
        size = os.fstat(file.fileno()).st_size
        header = _read_header(file, size)
        version, checksum, text = _metadata(header)
        result, shapes = expected(text, version)
        _check_header(header, version, checksum, text, shapes)
        n_bytes = sum(_n_bytes(*kind) for kind in shapes.values())
        if size != 8 + len(header) + n_bytes:
            raise ModelFileError(
                f"the file has {size:,} bytes, but its description needs "
                f"{8 + len(header) + n_bytes:,}; it is incomplete or damaged"
            )
        digest = hashlib.sha256(_prefix(_header(version, _NO_CHECKSUM, text, shapes)))
        data = _read_data(file, n_bytes, digest)
    if digest.hexdigest() != checksum:
        raise ModelFileError(
            "the checksum is wrong: the file was damaged or changed after it was written; copy it "
            "again or fit the model again"
        )
    arrays, start = {}, 0
    for name in _order(shapes):
        kind, shape = shapes[name]
        stop = start + _n_bytes(kind, shape)
        part = data[start:stop]
        if kind == "BOOL" and part.max(initial=0) > 1:
            raise ModelFileError(f"the array {name!r} has values that are neither true nor false")
        dtype = np.dtype(_DTYPES[kind])
        arrays[name] = part.view(dtype).reshape(shape).astype(dtype.newbyteorder("="), copy=False)
        start = stop
    return result, arrays


# --- The header --------------------------------------------------------------------------------


def _order(shapes: Shapes) -> list[str]:
    """The names in the order of the file: large items first, so that each array is aligned."""
    return sorted(shapes, key=lambda name: (-np.dtype(_DTYPES[shapes[name][0]]).itemsize, name))


def _n_bytes(kind: str, shape: tuple[int, ...]) -> int:
    return math.prod(shape) * np.dtype(_DTYPES[kind]).itemsize


def _header(version: int, checksum: str, text: str, shapes: Shapes) -> bytes:
    """The only header for these values."""
    metadata = {_FORMAT_KEY: str(version), _CHECKSUM_KEY: checksum, _TEXT_KEY: text}
    entries: dict[str, Any] = {"__metadata__": metadata}
    start = 0
    for name in _order(shapes):
        kind, shape = shapes[name]
        stop = start + _n_bytes(kind, shape)
        entries[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [start, stop]}
        start = stop
    header = json.dumps(entries, separators=(",", ":")).encode("ascii")
    return header + b" " * (-len(header) % 8)


def _prefix(header: bytes) -> bytes:
    return len(header).to_bytes(8, "little") + header


def _metadata(header: bytes) -> tuple[int, str, str]:
    """The version, the checksum and the text."""
    try:
        metadata = json.loads(header)["__metadata__"]
        version = int(metadata[_FORMAT_KEY])
    except (KeyError, TypeError):
        raise ModelFileError("a safetensors file, but not a diffint model") from None
    except (ValueError, OverflowError, RecursionError):
        raise ModelFileError(_NOT_A_MODEL) from None
    if not OLDEST_VERSION <= version <= FORMAT_VERSION:
        remedy = "upgrade diffint to read it" if version > FORMAT_VERSION else "fit the model again"
        raise ModelFileError(
            f"the file has format version {str(version)[:20]}, which this diffint does not read "
            f"(it reads versions {OLDEST_VERSION} to {FORMAT_VERSION}); {remedy}"
        )
    checksum, text = metadata.get(_CHECKSUM_KEY), metadata.get(_TEXT_KEY)
    if not isinstance(checksum, str) or not isinstance(text, str):
        raise ModelFileError("the file has no checksum or no description of the model")
    return version, checksum, text


def _check_header(header: bytes, version: int, checksum: str, text: str, shapes: Shapes) -> None:
    """Raise an error that says what differs from the header that belongs to the text."""
    if header == _header(version, checksum, text, shapes):
        return
    present = json.loads(header)
    for name, (kind, shape) in shapes.items():
        if name not in present:
            raise ModelFileError(f"the array {name!r} is missing")
        entry = present[name] if isinstance(present[name], dict) else {}
        if (entry.get("dtype"), entry.get("shape")) != (kind, list(shape)):
            raise ModelFileError(
                f"the array {name!r} has type {str(entry.get('dtype'))[:20]} and shape "
                f"{str(entry.get('shape'))[:60]} instead of {kind} and {list(shape)}"
            )
    for name in present:
        if name not in shapes and name != "__metadata__":
            raise ModelFileError(f"the array {name[:60]!r} does not belong to a model")
    raise ModelFileError("the list of arrays is damaged")


# --- Reading -----------------------------------------------------------------------------------

_NOT_A_MODEL = (
    "not a model file, or damaged; model files are written by `diffint fit` and `DiffInt.save`"
)


def _open_file(path: Path) -> BinaryIO:
    """The file, opened without waiting for the other end of a pipe; only regular files."""
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder; give a model file")
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    file = os.fdopen(handle, "rb", buffering=0)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        file.close()
        raise ModelFileError("not a regular file; copy the model to one")
    return file


def _read_header(file: BinaryIO, size: int) -> bytes:
    length = int.from_bytes(file.read(8), "little") if size >= 8 else 0
    if length == 0 or length > size - 8:
        raise ModelFileError(_NOT_A_MODEL)
    if length > _LONGEST_HEADER:
        raise ModelFileError(
            f"the header has {length:,} bytes, more than the {_LONGEST_HEADER:,} of any model; "
            f"{_NOT_A_MODEL}"
        )
    header = np.empty(length, dtype=np.uint8)
    _fill(file, header)
    return header.tobytes()


def _read_data(file: BinaryIO, n_bytes: int, digest: Any) -> NDArray[np.uint8]:
    """The rest of the file, which has so many bytes. They are added to the digest as they come."""
    try:
        data = np.empty(n_bytes, dtype=np.uint8)
    except MemoryError:
        raise ModelFileError(f"the model needs {n_bytes:,} bytes of memory") from None
    for start in range(0, n_bytes, _CHUNK):
        chunk = data[start : start + _CHUNK]
        _fill(file, chunk)
        digest.update(chunk.data)
    return data


def _fill(file: BinaryIO, target: NDArray[np.uint8]) -> None:
    filled = 0
    while filled < len(target):
        count = file.readinto(target[filled:].data)  # type: ignore[attr-defined]
        if not count:
            raise ModelFileError("the file became shorter while it was read")
        filled += count
