"""One process compiles while others wait."""

import errno
import os
import subprocess
import sys
import threading
import time

import pytest

from diffint.engine import compile_lock
from diffint.engine.code_folder import CodeFolder
from diffint.engine.compile_lock import compiling_alone
from diffint.tables import file_lock

HOLD = """
import sys, time
from pathlib import Path
from diffint.engine.code_folder import CodeFolder
from diffint.engine.compile_lock import compiling_alone
with compiling_alone(CodeFolder(Path(sys.argv[1])), lambda: False):
    print("locked", flush=True)
    time.sleep(300)
"""


@pytest.fixture
def folder(tmp_path):
    return CodeFolder(tmp_path / "folder")


def never():
    return False


def test_the_others_wait(folder):
    inside, most, calls = [], [], []

    def enter():
        with compiling_alone(folder, never, lambda: calls.append(1)):
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.05)
            inside.pop()

    threads = [threading.Thread(target=enter) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 5
    assert len(calls) == 4


def test_a_process_that_is_killed_frees_the_lock(folder):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder.path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "locked\n"
    threading.Timer(0.3, process.kill).start()
    started = time.monotonic()
    with compiling_alone(folder, never):
        assert time.monotonic() - started > 0.2
        assert process.wait() != 0


def test_nobody_waits_for_code_that_is_there(folder):
    code = []
    with compiling_alone(folder, never):
        with compiling_alone(folder, lambda: True):
            pass
        threading.Timer(0.2, code.append, [1]).start()
        with compiling_alone(folder, lambda: bool(code)):
            assert code


def test_nobody_waits_for_a_suspended_process(folder, monkeypatch):
    monkeypatch.setattr(compile_lock, "_PATIENCE_S", 0.5)
    with compiling_alone(folder, never):
        threading.Timer(0.3, folder.write, ["name", b"", b""]).start()
        started = time.monotonic()
        with compiling_alone(folder, never):
            assert 0.7 < time.monotonic() - started < 5  # 0.5 s after the last new file
        started = time.monotonic()
        with compiling_alone(folder, never):
            assert time.monotonic() - started < 0.4  # not again for the next kernel


@pytest.mark.skipif(os.name == "nt", reason="uses flock")
def test_where_locks_are_not_supported(folder, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(file_lock.fcntl, "flock", refuse)
    with compiling_alone(folder, never), compiling_alone(folder, never):
        pass
    assert not compile_lock._open_locks


def test_where_no_lock_can_be_created(folder):
    folder.path.mkdir()
    (folder.path / "lock").mkdir()
    with compiling_alone(folder, never), compiling_alone(folder, never):
        pass


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_does_not_keep_the_lock(folder):
    with compiling_alone(folder, never):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.read(reader, 1)  # until the parent has done its test
            os._exit(0)
    try:
        started = time.monotonic()
        with compiling_alone(folder, never):
            assert time.monotonic() - started < 1
    finally:
        os.write(writer, b"x")
        os.waitpid(child, 0)
    assert not compile_lock._open_locks


def test_an_error_frees_the_lock(folder):
    with pytest.raises(KeyboardInterrupt), compiling_alone(folder, never):
        raise KeyboardInterrupt

    def interrupt():
        raise KeyboardInterrupt

    with (
        compiling_alone(folder, never),
        pytest.raises(KeyboardInterrupt),
        compiling_alone(folder, never, interrupt),
    ):
        pass
    assert not compile_lock._open_locks
