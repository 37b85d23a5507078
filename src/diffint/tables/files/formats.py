"""The format of a table file, from its name or its first bytes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ...core.errors import InputError

Kind = Literal["csv", "tsv", "parquet", "arrow", "xlsx"]
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
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
}
NAMES: dict[Kind, str] = {
    "csv": "CSV",
    "tsv": "TSV",
    "parquet": "Parquet",
    "arrow": "Arrow",
    "xlsx": "Excel",
}
_COMPRESSIONS: dict[str, Compression] = {".gz": "gzip", ".zst": "zstd"}
_FIRST_BYTES: dict[bytes, Kind] = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",  # the stream format
    b"PK\x03\x04": "xlsx",  # a zip archive
}
_OLD_EXCEL = b"\xd0\xcf\x11\xe0\xa1\xb1"
_MODEL = b'{"__metadata__":{"diffint_'  # after the eight bytes of a length
_COMPRESSED: dict[bytes, Compression] = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
LONGEST_MARK = 8 + len(_MODEL)


@dataclass(frozen=True)
class Format:
    """The kind of a table file, and the compression of the whole file."""

    kind: Kind
    compression: Compression = None

    @property
    def is_text(self) -> bool:
        """Whether the file is text (CSV, TSV)."""
        return self.kind in ("csv", "tsv")

    @property
    def has_types(self) -> bool:
        """Whether columns have types, and cells missing values: a file for programs, not people."""
        return self.kind in ("parquet", "arrow")


def format_of(name: str, kind: str | None = None) -> Format:
    """The format by `kind` if given, else by the file name; CSV for unknown names."""
    suffixes = [suffix.lower() for suffix in Path(name).suffixes]
    compression = _COMPRESSIONS.get(suffixes[-1]) if suffixes else None
    if compression:
        suffixes.pop()
    if kind is not None:
        if kind not in _KINDS.values():
            raise InputError(
                f"{kind!r} is not a table format; use csv, tsv, parquet, arrow (Feather) or xlsx"
            )
        return Format(kind, compression)  # type: ignore[arg-type]
    return Format(_KINDS.get(suffixes[-1], "csv") if suffixes else "csv", compression)


def has_table_name(name: str) -> bool:
    """Whether a file name ends like that of a table."""
    suffixes = [suffix.lower() for suffix in Path(name).suffixes]
    if suffixes and suffixes[-1] in _COMPRESSIONS:
        suffixes.pop()
    return bool(suffixes) and suffixes[-1] in _KINDS


def format_to_write(path: str, kind: str | None) -> Format:
    """The format of an output; raises an error for file names that do not match any format."""
    form = format_of("" if path == "-" else path, kind)
    suffixes = [suffix.lower() for suffix in Path(path).suffixes if path != "-"]
    known = not suffixes or suffixes[-1] in {**_KINDS, **_COMPRESSIONS}
    if suffixes and suffixes[-1] in (".xls", ".xlsm", ".xlsb"):  # Excel would not open it
        raise InputError(f"{path!r}: Excel tables are written as .xlsx; change the name")
    if kind is None and not known:
        raise InputError(
            f"{path!r} ends in {suffixes[-1]!r}, which is not a table format; use .csv, .tsv, "
            ".xlsx, .parquet or .feather, or set the format with --output-format"
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


def check_is_a_table(first: bytes, name: str) -> None:
    """Raise an error if the first bytes of a file are those of a file that is mistaken for a table.

    name: of the file, as it appears in messages.
    """
    if is_model(first):
        raise InputError(f"{name} is a model file, not a table; give the table to read")
    if first.startswith(_OLD_EXCEL):
        raise InputError(
            f"{name} is an old Excel file (.xls) or has a password; open it in Excel or "
            "LibreOffice and save it as .xlsx or .csv, without a password"
        )


def is_model(first: bytes) -> bool:
    """Whether the first `LONGEST_MARK` bytes are those of a model file."""
    return first[8:].startswith(_MODEL)
