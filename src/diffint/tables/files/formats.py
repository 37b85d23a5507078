"""Which kind of table a file holds, by its name or its first bytes."""

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
    b"\xff\xff\xff\xff": "arrow",  # a stream of it
}
_COMPRESSED: dict[bytes, Compression] = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
LONGEST_MARK = 6


@dataclass(frozen=True)
class Format:
    """A kind of table, and how it is compressed as a whole."""

    kind: Kind
    compression: Compression = None

    @property
    def is_text(self) -> bool:
        """Whether it is lines of text."""
        return self.kind in ("csv", "tsv")


def format_of(name: str, asked: str | None = None) -> Format:
    """The format that a file name, or else the one asked for, stands for; CSV for anything else."""
    suffixes = [suffix.lower() for suffix in Path(name).suffixes]
    compression = _COMPRESSIONS.get(suffixes[-1]) if suffixes else None
    if compression:
        suffixes.pop()
    if asked is not None:
        if asked not in _KINDS.values():
            raise InputError(
                f"{asked!r} is no kind of table; use csv, tsv, parquet or arrow (Feather)"
            )
        return Format(asked, compression)  # type: ignore[arg-type]
    return Format(_KINDS.get(suffixes[-1], "csv") if suffixes else "csv", compression)


def format_to_write(path: str, asked: str | None) -> Format:
    """The format of an output; a name that promises something else is refused."""
    form = format_of("" if path == "-" else path, asked)
    suffixes = [suffix.lower() for suffix in Path(path).suffixes if path != "-"]
    known = not suffixes or suffixes[-1] in {**_KINDS, **_COMPRESSIONS}
    if asked is None and not known:
        raise InputError(
            f"{path!r} ends in {suffixes[-1]!r}, which is no kind of table; use .csv, .tsv, "
            ".parquet or .feather, or say which with --output-format"
        )
    if form.compression and not form.is_text:
        raise InputError(
            f"{path!r}: only text is compressed as a whole; leave out {suffixes[-1]!r}"
        )
    return form


def format_by_content(first: bytes, otherwise: Format) -> Format:
    """The format that the first bytes of a file show, where they show one."""
    for mark, kind in _FIRST_BYTES.items():
        if first.startswith(mark):
            return Format(kind)
    for mark, compression in _COMPRESSED.items():
        if first.startswith(mark):
            return Format(otherwise.kind, compression)
    return Format(otherwise.kind)
