"""Files that are written completely or not at all, whatever happens in between."""

import errno
import os
from pathlib import Path

import pytest

from diffint import InputError
from diffint.core.errors import InputTypeError
from diffint.tables.atomic_write import (
    OutputFile,
    atomic_file,
    atomic_write,
    listing_written_files,
    remove_unfinished,
)


class Interrupt(BaseException):
    """As raised by a stop signal."""


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"old")
    return path


@pytest.mark.parametrize(
    "step", ["open", "fdopen", "fsync", "fstat", "chmod", "replace", "after replace"]
)
def test_an_interrupt_at_any_step_leaves_the_old_or_the_new_file(old, monkeypatch, step):
    name = step.removeprefix("after ")
    original = getattr(os, name)

    def interrupted(*arguments, **options):
        if name in ("open", "replace") and (step != "replace"):
            original(*arguments, **options)  # done, but the next line is not reached
        raise Interrupt

    with listing_written_files() as written:
        with monkeypatch.context() as patched:
            patched.setattr(os, name, interrupted)
            with pytest.raises(Interrupt):
                atomic_write(old, b"new")
        replaced = step == "after replace"
        assert old.read_bytes() == (b"new" if replaced else b"old")
        assert written.names() == ([str(old)] if replaced else [])
    assert os.listdir(old.parent) == ["out"]


def test_an_interrupted_clean_up_can_be_completed(old, monkeypatch):
    """A signal may arrive before the line that removes the temporary file."""

    def fail(*_, **__):
        raise Interrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", fail)
        patched.setattr(Path, "unlink", fail)
        with pytest.raises(Interrupt):
            atomic_write(old, b"new")
    assert len(os.listdir(old.parent)) == 2
    remove_unfinished()
    assert os.listdir(old.parent) == ["out"]
    assert old.read_bytes() == b"old"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
def test_errors_name_the_file():
    with pytest.raises(OSError, match=r"'/dev/full' cannot be written: No space.*free some space"):
        atomic_write("/dev/full", b"new")


def test_nothing_is_written_after_an_error(old):
    """Libraries write the rest of their buffers when they clean up."""

    class Full:
        calls = 0

        def write(self, data):
            self.calls += 1
            raise OSError(errno.ENOSPC, "No space left on device")

    full = Full()
    output = OutputFile(full, "it")
    with pytest.raises(OSError, match="it cannot be written"):
        output.write(b"1")
    output.write(b"2")
    assert full.calls == 1
    with atomic_file(old) as file:
        file.write(b"new")
    file.write(b"late")
    assert old.read_bytes() == b"new"


def test_a_file_that_accepts_a_part_at_a_time():
    class Slow:
        content = b""

        def write(self, data):
            self.content += bytes(data[:3])
            return min(3, len(data))

    slow = Slow()
    assert OutputFile(slow, "it").write(b"12345678") == 8
    assert slow.content == b"12345678"


def test_what_cannot_be_the_name_of_a_file(tmp_path):
    for path in (None, 5, b"out"):
        with pytest.raises(InputTypeError, match="must be the name of a file to write to"):
            atomic_write(path, b"new")
    with pytest.raises(InputError, match="cannot be the name of a file: embedded null"):
        atomic_write("\0out", b"new")
    with pytest.raises(OSError, match="cannot be written: File name too long"):
        atomic_write(tmp_path / ("x" * 300), b"new")
