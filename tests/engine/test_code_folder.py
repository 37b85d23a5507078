"""Compiled code on disk: damaged files, files that others could write, and concurrent writers.

A new dispatcher of the same function stands for a new process.
"""

import os
import pickle
import stat
import threading
import warnings
from pathlib import Path

import numba
import pytest

from diffint import CacheWarning
from diffint.engine import code_folder as module
from diffint.engine.code_folder import CodeFolder, _user_cache, code_folder
from diffint.engine.kernel_cache import compiled

posix = pytest.mark.skipif(os.name == "nt", reason="needs POSIX permissions")


def double(x):
    return 2 * x


def negative(x):
    return -x


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The folder of compiled code, new and with the code of `double` and `negative`."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "_warned", set())
    monkeypatch.setattr(module, "_not_writable", set())
    assert use(double) == "compiled"
    assert use(negative) == "compiled"
    return code_folder().path


def use(function):
    """Call a function, as the first one in a new process; how it got its code."""
    dispatcher = compiled(function)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert dispatcher(21) == function(21)
    if caught:
        assert [note.category for note in caught] == [CacheWarning]
        assert caught[0].filename == __file__
        return str(caught[0].message)
    return "loaded" if dispatcher.stats.cache_hits else "compiled"


def file_of(folder, function):
    (file,) = folder.glob(f"*.{function.__name__}-*.code")
    return file


def other_content(file):
    """A valid file whose content is something else."""
    dispatcher = compiled(double)
    name, origin = dispatcher._cache._file((numba.int64,), dispatcher.targetctx)
    assert name == file.name
    CodeFolder(file.parent).write(name, origin, pickle.dumps({"not": ["code"]}))


def flip(file, position):
    content = bytearray(file.read_bytes())
    content[position] ^= 1
    file.write_bytes(content)


def replace_by(make):
    def damage(file):
        file.unlink()
        make(file)

    return damage


def folder_with_a_file(file):
    file.mkdir()
    (file / "file").write_text("text")


def huge(file):
    with open(file, "wb") as sparse:
        sparse.truncate(1 << 40)


DAMAGE = {
    "removed": Path.unlink,
    "empty": lambda file: file.write_bytes(b""),
    "in the checksum": lambda file: flip(file, 5),
    "in the content": lambda file: flip(file, 500),
    "in the last byte": lambda file: flip(file, -1),
    "one byte": lambda file: file.write_bytes(b"\x80"),
    "half": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
    "longer": lambda file: file.write_bytes(file.read_bytes() + b"\0"),
    "random": lambda file: file.write_bytes(os.urandom(5000)),
    "a pickle": lambda file: file.write_bytes(pickle.dumps([1, 2])),
    "other content": other_content,
    "other function": lambda file: file.write_bytes(file_of(file.parent, negative).read_bytes()),
    "unreadable": lambda file: (flip(file, 500), file.chmod(0)),
    "a folder": replace_by(Path.mkdir),
    "a folder with a file": replace_by(folder_with_a_file),
    "a link to itself": replace_by(lambda file: file.symlink_to(file)),
    "a pipe": replace_by(lambda file: os.mkfifo(file)),
    "huge": replace_by(huge),
}


@posix
@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_file_is_compiled_again_and_replaced(folder, kind):
    assert use(double) == "loaded"
    DAMAGE[kind](file_of(folder, double))
    assert use(double) == "compiled"
    assert use(double) == "loaded"
    assert use(negative) == "loaded"


@posix
def test_only_the_user_can_read_what_is_kept(tmp_path, monkeypatch):
    previous = os.umask(0)
    try:
        monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "new" / "cache"))
        use(double)
    finally:
        os.umask(previous)
    for place in (tmp_path / "new").rglob("*"):
        mode = stat.S_IMODE(place.stat().st_mode)
        assert mode == (0o700 if place.is_dir() else 0o600)


@posix
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o1777, 0o702])
def test_a_folder_that_others_can_write_is_not_used(folder, mode):
    before = {file: file.stat().st_mtime_ns for file in folder.iterdir()}
    folder.chmod(mode)
    note = use(double)
    assert str(folder) in note
    assert f"writable by others (mode {mode:o})" in note
    assert "set NUMBA_CACHE_DIR to a folder that only you can write" in note
    assert use(double) == "compiled"  # without another note
    assert {file: file.stat().st_mtime_ns for file in folder.iterdir()} == before
    folder.chmod(0o700)
    assert use(double) == "loaded"


@posix
@pytest.mark.parametrize("mode", [0o666, 0o620, 0o602])
def test_a_file_that_others_can_write_is_replaced(folder, mode):
    file = file_of(folder, double)
    file.chmod(mode)
    note = use(double)
    assert str(file) in note
    assert f"writable by others (mode {mode:o})" in note
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert use(double) == "loaded"


@posix
@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_folder_above_that_others_can_write(folder, level):
    above = folder.parents[level]
    above.chmod(0o777)
    assert f"{str(above)!r} is writable by others" in use(double)
    above.chmod(0o1777)  # as /tmp: nobody else can exchange our folder
    assert use(double) == "loaded"


@posix
def test_nothing_is_created_where_others_can_write(tmp_path, monkeypatch):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "shared"))
    assert f"{str(tmp_path / 'shared')!r} is writable by others" in use(double)
    assert not [*(tmp_path / "shared").iterdir()]


@posix
def test_a_group_of_the_user_alone_may_write_above(folder, monkeypatch):
    folder.parent.chmod(0o770)
    monkeypatch.setattr(module, "_is_private_group", lambda _group: True)
    assert use(double) == "loaded"
    monkeypatch.setattr(module, "_is_private_group", lambda _group: False)
    assert "writable by others" in use(double)


@posix
def test_what_belongs_to_another_user_is_not_used(folder, monkeypatch):
    monkeypatch.setattr(module, "_user", lambda: os.geteuid() + 1)
    if os.geteuid() == 0:
        assert use(double) == "loaded"  # everyone trusts root
        os.chown(file_of(folder, double), 12345, -1)
        assert "belongs to user 12345" in use(double)
        assert use(double) == "loaded"  # it was replaced
        os.chown(folder, 12345, -1)
        assert use(double) == "compiled"
        os.chown(folder, 0, -1)
        assert use(double) == "loaded"
        os.chown(folder.parent, 12345, -1)
        assert use(double) == "compiled"
    else:
        assert f"belongs to user {os.geteuid()}" in use(double)


@posix
def test_links_are_followed_only_to_a_safe_folder(folder, tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to(tmp_path / "cache")
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "link"))
    assert use(double) == "loaded"
    (tmp_path / "cache").chmod(0o777)
    assert str(folder) in use(double)
    # A link to a file is not followed: its target may be in a folder that others can write.
    (tmp_path / "cache").chmod(0o700)
    file = file_of(folder, double)
    file.rename(tmp_path / "moved")
    file.symlink_to(tmp_path / "moved")
    assert use(double) == "compiled"
    assert not file.is_symlink()


@posix
def test_a_full_disk(folder):
    import resource

    file_of(folder, double).unlink()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        note = use(double)
        assert use(double) == "compiled"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert f"cannot be kept in {str(folder)!r} (File too large)" in note
    assert not [*folder.glob("*.tmp")]
    assert use(double) == "compiled"
    assert use(double) == "loaded"


def test_a_file_in_place_of_the_folder(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "file"))
    assert "cannot be kept" in use(double)
    assert use(double) == "compiled"


def test_readers_see_complete_files_only(tmp_path):
    folder = CodeFolder(tmp_path / "concurrent")
    contents = [bytes([i]) * 300_000 for i in range(8)]
    folder.write("name", b"origin", contents[0])
    seen = []

    def write(content):
        for _ in range(20):
            folder.write("name", b"origin", content)
            seen.append(folder.read("name", b"origin"))

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 160
    assert all(content in contents for content in seen)
    assert [file.name for file in folder.path.iterdir()] == ["name"]


def test_files_of_killed_processes_are_removed(folder):
    old, new = folder / "a.code.1.tmp", folder / "b.code.2.tmp"
    for file in (old, new):
        file.write_bytes(b"half")
    os.utime(old, (1, 1))
    file_of(folder, double).unlink()
    assert use(double) == "compiled"
    assert not old.exists()
    assert new.exists()  # its process may still be writing


@pytest.mark.skipif(os.name == "nt" or os.uname().sysname == "Darwin", reason="other folders there")
def test_the_users_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    for value in ("", "relative"):  # the standard says to ignore these
        monkeypatch.setenv("XDG_CACHE_HOME", value)
        assert _user_cache() == tmp_path / ".cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    assert _user_cache() == tmp_path / "caches"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # no home folder
    assert _user_cache().is_absolute()
