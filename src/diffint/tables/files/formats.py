"""The format of a table file, from its name or its first bytes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ...core.errors import InputError

Kind = Literal["csv", "tsv", "parquet", "arrow"]
Compression = Literal["gzip", "zstd"] | None

_KINDS: dict[str, Kind] = {
    ".csv": "csv",
    ".txt": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
_COMPRESSIONS: dict[str, Compression] = {".gz": "gzip", ".zst": "zstd"}
_FIRST_BYTES: dict[bytes, Kind] = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",  # the stream format
}
_COMPRESSED: dict[bytes, Compression] = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
LONGEST_MARK = 6


@dataclass(frozen=True)
class Format:
    """The kind of a table file, and the compression of the whole file."""

    kind: Kind
    compression: Compression = None

    @property
    def is_text(self) -> bool:
        """Whether the file is text (CSV, TSV)."""
        return self.kind in ("csv", "tsv")


def format_of(name: str, kind: str | None = None) -> Format:
    """The format by `kind` if given, else by the file name; CSV for unknown names."""
    suffixes = [suffix.lower() for suffix in Path(name).suffixes]
    compression = _COMPRESSIONS.get(suffixes[-1]) if suffixes else None
    if compression:
        suffixes.pop()
    if kind is not None:
        if kind not in _KINDS.values():
            raise InputError(
                f"{kind!r} is not a table format; use csv, tsv, parquet or arrow (Feather)"
            )
        return Format(kind, compression)  # type: ignore[arg-type]
    return Format(_KINDS.get(suffixes[-1], "csv") if suffixes else "csv", compression)


def format_to_write(path: str, kind: str | None) -> Format:
    """The format of an output; raises an error for file names that do not match any format."""
    form = format_of("" if path == "-" else path, kind)
    suffixes = [suffix.lower() for suffix in Path(path).suffixes if path != "-"]
    known = not suffixes or suffixes[-1] in {**_KINDS, **_COMPRESSIONS}
    if kind is None and not known:
        raise InputError(
            f"{path!r} ends in {suffixes[-1]!r}, which is not a table format; use .csv, .tsv, "
            ".parquet or .feather, or set the format with --output-format"
        )
    if form.compression and not form.is_text:
        raise InputError(
            f"{path!r}: only CSV and TSV files can be compressed; leave out {suffixes[-1]!r}"
        )
    return form


def format_by_content(first: bytes, otherwise: Format) -> Format:
    """The format that the first bytes of a file show, else `otherwise` without compression."""
    for mark, kind in _FIRST_BYTES.items():
        if first.startswith(mark):
            return Format(kind)
    for mark, compression in _COMPRESSED.items():
        if first.startswith(mark):
            return Format(otherwise.kind, compression)
    return Format(otherwise.kind)
