"""The folder that keeps compiled code on disk.

What is read from here is executed. So the folder belongs to one user, nothing is read that other
users could have written, and every file has a checksum of its content. A file that cannot be used,
for whatever reason, counts as absent: its code is compiled again and the file replaced.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
import stat
import sys
import tempfile
import time
from pathlib import Path

from numba import config

from ..core.errors import CacheWarning, warn

_PACKAGE = Path(__file__).parents[1]
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_CHECKSUM_SIZE = 32
_LARGEST_FILE = 1 << 28  # far above any function's code
_LEFTOVERS_AFTER_S = 3600.0
_READ = os.O_RDONLY | getattr(os, "O_BINARY", 0)
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_LOCK = os.O_RDWR | os.O_CREAT
# A link is not followed, and opening a pipe does not wait for its writer.
_SAFELY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_TEMPORARY = ".tmp"


def code_folder() -> CodeFolder:
    """The folder of this installation: in NUMBA_CACHE_DIR, or else in the user's cache folder."""
    base = Path(config.CACHE_DIR) if config.CACHE_DIR else _user_cache()
    installation = hashlib.sha256(os.fsencode(_PACKAGE)).hexdigest()[:16]
    return CodeFolder(base / "diffint" / installation)


def _user_cache() -> Path:
    """The folder for caches of this user, as usual on this system."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser(r"~\AppData\Local")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME", "")
        if not os.path.isabs(base):
            base = os.path.expanduser("~/.cache")
    if not os.path.isabs(base):  # the user has no home folder
        base = os.path.join(tempfile.gettempdir(), f"cache-{_user()}")
    return Path(base)


class CodeFolder:
    """Files of compiled code, each of which is complete and unchanged, or counts as absent."""

    def __init__(self, path: Path) -> None:
        self.path = Path(os.path.realpath(path))  # links could be changed after they were checked

    def read(self, name: str, origin: bytes) -> bytes | None:
        """The content of a file, or None if there is none that can be used.

        origin: what the content was made from; a file of another origin is not used.
        """
        if not self._is_safe():
            return None
        try:
            with os.fdopen(os.open(self.path / name, _READ | _SAFELY), "rb") as file:
                found = os.fstat(file.fileno())
                if not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST_FILE:
                    return None
                if problem := _problem_of_ours(found):
                    self._warn_of_others(self.path / name, problem)
                    return None
                stored = file.read()
        except OSError:
            return None
        checksum, content = stored[:_CHECKSUM_SIZE], stored[_CHECKSUM_SIZE:]
        return content if checksum == _checksum(origin, content) else None

    def write(self, name: str, origin: bytes, content: bytes) -> None:
        """Write a file that only this user can read, or warn once that nothing can be kept."""
        try:
            if self._is_safe():
                self._create()
                self._replace(name, _checksum(origin, content) + content)
        except OSError as error:
            if self.read(name, origin) is None:  # else another process has written it
                _not_writable.add(self.path)
                _warn_once(
                    f"compiled code cannot be kept in {str(self.path)!r} "
                    f"({error.strerror or error}), so it is compiled again in every process; make "
                    "the folder writable, or set NUMBA_CACHE_DIR to another folder"
                )

    @property
    def is_writable(self) -> bool:
        """Whether files can be written here, as far as that is known without writing one."""
        if self.path in _not_writable:
            return False
        with contextlib.suppress(OSError):
            if self._is_safe():
                self._create()
                return os.access(self.path, os.W_OK | os.X_OK)
        return False

    def open_lock(self) -> int | None:
        """Descriptor of the file that processes lock while they compile; None if not possible."""
        if not self.is_writable:
            return None
        with contextlib.suppress(OSError):
            return os.open(self.path / "lock", _LOCK | _SAFELY, 0o600)
        return None

    @property
    def changed_at(self) -> int:
        """When a file was last added, in nanoseconds of the file system's clock."""
        with contextlib.suppress(OSError):
            return self.path.stat().st_mtime_ns
        return 0

    def remove_leftovers(self) -> None:
        """Remove the incomplete files of processes that were killed."""
        for file in self.path.glob(f"*{_TEMPORARY}"):
            with contextlib.suppress(OSError):
                if time.time() - file.lstat().st_mtime > _LEFTOVERS_AFTER_S:
                    file.unlink()

    def _replace(self, name: str, content: bytes) -> None:
        target = self.path / name
        temporary = self.path / f"{name}.{secrets.token_hex(6)}{_TEMPORARY}"
        try:
            with os.fdopen(os.open(temporary, _WRITE, 0o600), "wb") as file:
                file.write(content)
            if target.is_dir() and not target.is_symlink():
                shutil.rmtree(target)
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise

    def _create(self) -> None:
        """Create the folder, and those above it, for this user alone."""
        for place in (*reversed(self.path.parents), self.path):
            if not place.exists():
                place.mkdir(0o700, exist_ok=True)

    def _is_safe(self) -> bool:
        """Whether only this user and root can change what is here; warns once if not."""
        if os.name == "nt":
            return True  # a user's folders are private, and modes have no meaning
        # From the top: once a folder is known to be safe, nobody else can exchange what is in it.
        for place in (*reversed(self.path.parents), self.path):
            try:
                found = place.lstat()
            except OSError:
                return True  # there is nothing to read
            if not stat.S_ISDIR(found.st_mode) and not stat.S_ISLNK(found.st_mode):
                return True  # nothing can be in it
            is_ours = place == self.path
            problem = _problem_of_ours(found) if is_ours else _problem_above(found)
            if problem:
                self._warn_of_others(place, problem)
                return False
        return True

    def _warn_of_others(self, place: Path, problem: str) -> None:
        subject = "it" if place == self.path else repr(str(place))
        _warn_once(
            f"compiled code in {str(self.path)!r} is not used, because {subject} {problem}: other "
            "users could change what runs as you; correct its owner or mode, or set "
            "NUMBA_CACHE_DIR to a folder that only you can write"
        )


def _problem_of_ours(found: os.stat_result) -> str | None:
    """Why others could change a file or folder that we create, or None."""
    if os.name == "nt":
        return None
    if stat.S_ISLNK(found.st_mode):  # made after links were resolved
        return "is a link"
    if found.st_uid not in (0, _user()):
        return f"belongs to user {found.st_uid}"
    if found.st_mode & _OTHERS_WRITE:
        return f"is writable by others (mode {stat.S_IMODE(found.st_mode):o})"
    return None


def _problem_above(found: os.stat_result) -> str | None:
    """Why others could exchange a folder in this one, or None."""
    if stat.S_ISLNK(found.st_mode):
        return "is a link"
    # In a container root may appear as "nobody", who then also owns the root folder.
    if found.st_uid not in (0, _user(), os.stat("/").st_uid):
        return f"belongs to user {found.st_uid}"
    if found.st_mode & stat.S_ISVTX:  # as /tmp: only the owner of an entry can exchange it
        return None
    writable = found.st_mode & _OTHERS_WRITE
    # Many systems give every user a group of their own, and let it write the user's files.
    if writable == stat.S_IWGRP and _is_private_group(found.st_gid):
        return None
    return f"is writable by others (mode {stat.S_IMODE(found.st_mode):o})" if writable else None


def _is_private_group(number: int) -> bool:
    """Whether a group is this user's own: it has the user's name and no other members."""
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(_user()), grp.getgrgid(number)
    except KeyError:
        return False
    same = user.pw_gid == number and group.gr_name == user.pw_name
    return same and set(group.gr_mem) <= {user.pw_name}


def _user() -> int:
    return os.geteuid() if hasattr(os, "geteuid") else 0


def _checksum(origin: bytes, content: bytes) -> bytes:
    digest = hashlib.blake2b(digest_size=_CHECKSUM_SIZE)
    digest.update(len(origin).to_bytes(8, "little"))
    digest.update(origin)
    digest.update(content)
    return digest.digest()


# In this process:
_warned: set[str] = set()
_not_writable: set[Path] = set()  # a full disk, for example


def _warn_once(message: str) -> None:
    """Warn, once in this process: other kernels meet the same problem."""
    if not _warned:
        _warned.add(message)
        warn(message, CacheWarning)
