"""Arrow and Parquet files with changed bytes: refused with one message, or read as they are."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from diffint import DiffInt, InputError
from diffint.tables.files.number_parsing import is_text
from diffint.tables.files.reading import open_table

from ..tables.damaged_arrow import wrong_dictionary, wrong_offset, wrong_position

N_ROWS = 120
ROWS = pa.table(
    {
        "a": np.random.default_rng(0).normal(size=N_ROWS),
        "b": np.random.default_rng(1).normal(size=N_ROWS),
        "city": np.resize(["Oslo", "Rome"], N_ROWS),
        "name": [f"id{i:05d}" for i in range(N_ROWS)],
        "odd": pa.array(np.arange(N_ROWS) == 3),
    }
)
DAMAGED = {
    "far": wrong_offset(N_ROWS, 2**31 - 1),
    "near": wrong_offset(N_ROWS),
    "dictionary": wrong_dictionary(N_ROWS),
    "position": wrong_position(N_ROWS),
}


def write(table, path, stream=False):
    """An Arrow file, without the checks of pyarrow's writers."""
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(path, table.schema) as writer:
        writer.write_table(table)
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.diffint"
    chosen = ROWS.select(["a", "b", "city"])
    DiffInt(epochs=2, n_units=8, n_members=2, random_state=0).fit(chosen).save(path)
    return path


COMMANDS = {
    "score ids": ("score {model} {table} -o {out} --id name", "name"),
    "score kept": ("score {model} {table} -o {out} --keep name", "name"),
    "score category": ("score {model} {table} -o {out}", "city"),
    "explain": ("explain {model} {table} --row-id id00003 --id name", "name"),
    "drift": ("drift {model} {table}", "city"),
    "drift by": ("drift {model} {table} --by name", "name"),
    "drift monitor": ("drift {model} {table} --monitor {out}", "city"),
    "fit": ("fit {table} -o {out} --ignore name,odd", "city"),
    "fit ids": ("fit {table} -o {out} --id name --ignore odd", "name"),
    "fit label": ("fit {table} -o {out} --label odd --ignore name", "odd"),
    "fit groups": ("fit {table} -o {out} --group name --ignore odd", "name"),
    "fit segments": ("fit {table} -o {out} --segment name --ignore odd", "name"),
    "find": ("find {table} -o {out} --id name --ignore odd", "name"),
    "report": ("report {model} {table} -o {out} --id name", "name"),
    "refresh": ("refresh {model} {table} -o {out}", "city"),
}


@pytest.mark.parametrize("damage", DAMAGED)
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_refuse_wrong_offsets_and_positions(run, model, tmp_path, command, damage):
    line, column = COMMANDS[command]
    place = ROWS.column_names.index(column)
    table = write(ROWS.set_column(place, column, DAMAGED[damage]), tmp_path / "t.feather")
    paths = {"model": model, "table": table, "out": tmp_path / "out"}
    done = run(*(part.format(**paths) for part in line.split()))
    assert done.code == 2, done
    assert done.err.startswith(f"diffint: {str(table)!r} cannot be read as Arrow (In column ")
    assert done.err.count("\n") == 1
    assert os.listdir(tmp_path) == ["t.feather"]


def test_text_that_is_not_utf8_in_files_that_are_not_text(run, model, tmp_path):
    """--encoding is no remedy for them."""
    characters = pa.array([b"\xff\xfe"] * N_ROWS, pa.binary())
    city = pa.Array.from_buffers(pa.string(), N_ROWS, characters.buffers())
    table = ROWS.set_column(2, "city", city)
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    write(table, tmp_path / "t.arrow", stream=True)
    for name, kind in (("t.parquet", "Parquet"), ("t.arrow", "Arrow")):
        done = run("score", model, tmp_path / name)
        assert (done.code, done.out) == (2, "")
        assert f"{name}' cannot be read as {kind} (" in done.err
        assert "--encoding" not in done.err


def test_names_that_are_not_utf8(run, model, tmp_path):
    path = write(ROWS, tmp_path / "t.arrow")
    path.write_bytes(path.read_bytes().replace(b"city", b"\xffity"))
    done = run("score", model, path)
    assert done.code == 2
    assert done.err.startswith(f"diffint: {str(path)!r} cannot be read as Arrow ('utf-8' codec")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wrong", [-1, 3, 200, 2**31 - 1])
def test_no_wrong_number_in_a_file_leads_out_of_it(tmp_path, stream, wrong):
    """Every four bytes in turn, those of the metadata too."""
    n = 8
    table = pa.table(
        {
            "text": [f"{i}" * i for i in range(n)],
            "category": pa.array(["a", "b"] * (n // 2)).dictionary_encode(),
            "large": pa.array([None, "x"] * (n // 2), pa.large_string()),
            "number": np.arange(n) / 8,
        }
    )
    path = write(table, tmp_path / "t.arrow", stream)
    content = path.read_bytes()
    n_read = n_refused = 0
    for at in range(0, len(content) - 3, 4):
        changed = content[:at] + wrong.to_bytes(4, "little", signed=True) + content[at + 4 :]
        path.write_bytes(changed)
        texts = []
        try:
            with open_table(str(path)) as file:
                for _, batch in file.batches(file.columns):
                    for name in file.columns:
                        cells = file.kept_if_possible(batch, name).to_pylist()
                        if is_text(batch.column(name).type):
                            texts += [cell for cell in cells if cell is not None]
        except InputError:
            n_refused += 1
        else:
            n_read += 1
            assert all(text.encode() in changed for text in texts), (at, texts)
    assert n_read > 20
    assert n_refused > 20
