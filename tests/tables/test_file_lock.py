"""Locks of files between processes and threads."""

import os
import subprocess
import sys
import threading
import time

import pytest

from diffint.core.errors import InputError
from diffint.tables import file_lock
from diffint.tables.file_lock import locked

HOLD = """
import sys
from diffint.tables.file_lock import locked
with locked(sys.argv[1]):
    print("locked", flush=True)
    sys.stdin.read()
"""


def test_another_process_waits_until_the_lock_is_free(tmp_path):
    path = tmp_path / "state.json"
    command = [sys.executable, "-c", HOLD, str(path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, env=environment) as process:
        assert process.stdout.readline() == b"locked\n"
        with pytest.raises(InputError, match="locked by another process"), locked(path, 0.1):
            pass
        process.kill()
    with locked(path):  # a process that is killed frees it
        pass
    assert not path.exists()


def test_threads_take_turns_also_by_a_link(tmp_path):
    path, inside, most = tmp_path / "state.json", [], []
    path.touch()
    (tmp_path / "link.json").symlink_to(path)

    def work(name):
        with locked(tmp_path / name):
            inside.append(name)
            most.append(len(inside))
            time.sleep(0.01)
            inside.pop()

    threads = [threading.Thread(target=work, args=(n,)) for n in ["state.json", "link.json"] * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 8


def test_an_error_frees_the_lock(tmp_path):
    with pytest.raises(ZeroDivisionError), locked(tmp_path / "state.json"):
        _ = 1 / 0
    with locked(tmp_path / "state.json", 0.0):
        pass


def test_where_files_cannot_be_locked(tmp_path, monkeypatch):
    monkeypatch.setattr(file_lock, "try_lock", lambda file: None)
    with pytest.raises(InputError, match="file system has no locks"), locked(tmp_path / "a"):
        pass
    with pytest.raises(FileNotFoundError, match="create it first"), locked(tmp_path / "no" / "a"):
        pass
