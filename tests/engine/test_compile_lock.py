"""One process compiles while others wait."""

import errno
import os
import subprocess
import sys
import threading

import pytest

from diffint.engine import compile_lock
from diffint.engine.code_folder import CodeFolder
from diffint.engine.compile_lock import compiling_alone
from diffint.tables import file_lock

from ..waiting import wait_until

HOLD = """
import sys
from pathlib import Path
from diffint.engine.code_folder import CodeFolder
from diffint.engine.compile_lock import compiling_alone
with compiling_alone(CodeFolder(Path(sys.argv[1])), lambda: False):
    print("locked", flush=True)
    sys.stdin.read()
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
            wait_until(lambda: len(calls) == 4)
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
        [sys.executable, "-c", HOLD, str(folder.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout.readline() == "locked\n"
        with compiling_alone(folder, never, process.kill):
            assert process.wait() < 0


def test_nobody_waits_for_code_that_is_there(folder):
    code = []
    with compiling_alone(folder, never):
        with compiling_alone(folder, lambda: True):
            pass
        with compiling_alone(folder, lambda: bool(code), lambda: code.append(1)):
            assert code


class Clock:
    """Takes the place of the time module; after a minute a file is added to the folder."""

    def __init__(self, folder):
        self.now, self._folder = 0.0, folder

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        if self.now < 60 <= self.now + seconds:
            self._folder.write("name", b"", b"")
            os.utime(self._folder.path, (2e9, 2e9))  # the real time may hardly have changed
        self.now += seconds


def test_nobody_waits_for_a_suspended_process(folder, monkeypatch):
    clock = Clock(folder)
    monkeypatch.setattr(compile_lock, "time", clock)
    with compiling_alone(folder, never):
        with compiling_alone(folder, never):
            assert 180 <= clock.now < 181  # two minutes after the last new file
        with compiling_alone(folder, never):
            assert clock.now < 181  # not again for the next kernel


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
        (reader, writer), (is_there, started) = os.pipe(), os.pipe()
        child = os.fork()
        if child == 0:
            os.write(started, b"x")
            os.read(reader, 1)  # until the parent has done its test
            os._exit(0)
        os.read(is_there, 1)
    told = []
    try:
        with compiling_alone(folder, lambda: bool(told), lambda: told.append("to wait")):
            assert not told
    finally:
        os.write(writer, b"x")
        os.waitpid(child, 0)
        for end in (reader, writer, is_there, started):
            os.close(end)
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
