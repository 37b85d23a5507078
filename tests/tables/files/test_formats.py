"""The format of a table file, from its name or its first bytes."""

import pytest

from diffint import InputError
from diffint.tables.files.formats import Format, format_by_content, format_of


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.csv", Format("csv")),
        ("A.CSV", Format("csv")),
        ("a.b.tsv.gz", Format("tsv", "gzip")),
        ("a.csv.zst", Format("csv", "zstd")),
        ("a.pq", Format("parquet")),
        ("a.feather", Format("arrow")),
        ("a.xlsx", Format("xlsx")),
        ("a", Format("csv")),
        ("a.data", Format("csv")),
        ("a.gz", Format("csv", "gzip")),
    ],
)
def test_by_name(name, expected):
    assert format_of(name) == expected


def test_an_explicit_kind_overrides_the_name():
    assert format_of("a.csv", "parquet") == Format("parquet")
    with pytest.raises(InputError, match=r"csv, tsv, parquet, arrow.* or xlsx"):
        format_of("a.csv", "ods")


def test_by_content():
    named = Format("csv")
    assert format_by_content(b"PAR1..", named) == Format("parquet")
    assert format_by_content(b"ARROW1", named) == Format("arrow")
    assert format_by_content(b"PK\x03\x04", named) == Format("xlsx")
    assert format_by_content(b"\x1f\x8b\x08", Format("tsv")) == Format("tsv", "gzip")
    assert format_by_content(b"a,b\n1,2", Format("csv", "gzip")) == Format("csv")
