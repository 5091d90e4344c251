"""Atomic replacement of a file or a folder."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from gradcli.data.mistakes import about_file, because, label
from gradcli.errors import InputError
from gradcli.files import is_read
from gradcli.process.platform import LOCKS, WINDOWS, computer, is_device_name, lock

_PREFIX = ".gradcli-"
_PAUSE = 0.2  # seconds before a second try
_LEFT_BEHIND = 86_400  # seconds after which, without locks, a file counts as left behind


class Hidden:
    """A file or a folder under a hidden name beside its target, to which `commit` renames it.

    Other runs leave it alone as long as this process lives, which holds a lock on it. What a process leaves that is
    killed is removed by the next run to the same target. It has to be on the same computer: one may not see the
    locks of another, on a folder that they share. Where there are no locks, it is left alone for a day.
    """

    def __init__(self, target: Path, make: Callable[[Path], object]) -> None:
        """Make the file or the folder.

        Errors: `OSError` where there cannot be one.
        """
        self.target = target
        prefix = f"{_PREFIX}{_key(target)}-"
        if not target.parent.name.startswith(_PREFIX):  # which is removed as a whole, and may have thousands of files
            _remove_left_behind(target.parent, prefix)
        self._lock: int | None = None
        while self._lock is None:
            self.path = target.with_name(f"{prefix}{secrets.token_hex(6)}.tmp")
            make(self.path)
            if not LOCKS:
                break
            self._lock = _held(self.path)

    def commit(self) -> None:
        """Rename it to its target.

        Errors: `OSError` where another program keeps it from that; a virus scanner may do so for a moment.
        """
        try:
            os.replace(self.path, self.target)
        except PermissionError:
            time.sleep(_PAUSE)
            os.replace(self.path, self.target)
        self._release()

    def discard(self) -> None:
        """Remove it, if it is still there."""
        with suppress(OSError):  # what cannot be removed now is removed by another run
            _remove(self.path)
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _key(target: Path) -> str:
    """Return a key of a target that differs between computers."""
    return hashlib.sha256(computer().encode() + os.fsencode(target.name)).hexdigest()[:12]


def _opened(path: Path) -> int:
    """Open a file or a folder so that it can be locked: on NFS, a file that is to be written."""
    return os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)


def _held(path: Path) -> int | None:
    """Lock a new file and return its descriptor; None if another run removed it before the lock."""
    try:
        descriptor = _opened(path)
    except FileNotFoundError:
        return None
    with suppress(OSError):  # some file systems have no locks: nothing is taken for left behind there
        lock(descriptor, wait=True)
    with suppress(FileNotFoundError):
        if os.path.samestat(os.stat(path), os.fstat(descriptor)):
            return descriptor
    os.close(descriptor)
    return None


def _remove_left_behind(folder: Path, prefix: str) -> None:
    """Remove what has such a name, and nobody holds; what cannot be removed stays."""
    with suppress(OSError):
        for name in [name for name in os.listdir(folder) if name.startswith(prefix)]:
            path = folder / name
            with suppress(OSError):
                facts = path.lstat()
                if stat.S_IFMT(facts.st_mode) in (stat.S_IFREG, stat.S_IFDIR):
                    _remove_unless_held(path, facts.st_mtime)


def _remove_unless_held(path: Path, changed: float) -> None:
    """Remove a file that no run has locked or, where there are no locks, one that is unchanged for a day.

    Errors: `OSError` where a run holds it.
    """
    if not LOCKS:
        if changed < time.time() - _LEFT_BEHIND:
            _remove(path)
        return
    descriptor = _opened(path)
    try:
        lock(descriptor, wait=False)
        _remove(path)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    with suppress(FileNotFoundError):
        if path.is_dir():  # under another name, nobody writes there any more
            shutil.rmtree(path.rename(path.with_suffix(".gone")), ignore_errors=True)
        else:
            path.unlink()


class Replacement:
    """A file for writing that replaces `path` on `commit`, and is removed on `discard`.

    It has a hidden name in the same folder until then. An existing file keeps its mode, and until then nobody else may
    read the new one; of a symbolic link, the file that it points to is replaced.
    """

    def __init__(self, path: str) -> None:
        """Open the file for writing and reading.

        Errors: `OSError` where there cannot be one.
        """
        self.target = Path(os.path.realpath(path))
        mode = 0o600 if self.target.exists() else 0o666
        self._hidden = Hidden(self.target, lambda new: new.touch(mode, exist_ok=False))
        self.file: BinaryIO = self._hidden.path.open("r+b")

    def commit(self) -> None:
        """Flush the file to the disk, and rename it to its target."""
        self.file.flush()
        os.fsync(self.file.fileno())
        with suppress(FileNotFoundError):
            os.chmod(self._hidden.path, stat.S_IMODE(self.target.stat().st_mode))
        self.file.close()
        self._hidden.commit()

    def discard(self) -> None:
        """Remove the file."""
        with suppress(OSError):  # what could not be written before cannot be on closing
            self.file.close()
        self._hidden.discard()


def check_target(path: str) -> None:
    """Check that a path can be written, and is not one of the files that were read.

    >>> check_target("/")
    Traceback (most recent call last):
    gradcli.errors.InputError: `/` cannot be written: it is a folder
    """
    if "\0" in path:
        raise cannot_write(path, "a name has no NUL characters")
    if is_device_name(path):
        raise cannot_write(path, "Windows has a device of this name")
    target = Path(os.path.realpath(path))
    with writing(path):
        if target.is_dir():
            raise cannot_write(path, "it is a folder")
        if not target.parent.is_dir():
            raise cannot_write(path, "its folder does not exist")
        # A link to itself is still one; that of a pipe without a name, `>(gzip)`, leads to no path.
        if target.is_symlink() or (os.path.exists(path) and not os.path.isfile(path)):
            raise cannot_write(path, "it is not a regular file")
        if target.exists() and not os.access(target, os.W_OK):
            raise cannot_write(path, "permission denied")
    if is_read(path):
        raise cannot_write(path, "this command reads it", "give the result a name of its own")


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Raise an `OSError` of writing a file as an `InputError` with the system's reason.

    >>> with writing("p.csv"):
    ...     raise OSError(28, "No space left on device")
    Traceback (most recent call last):
    gradcli.errors.InputError: `p.csv` cannot be written: no space left on device
    """
    try:
        yield
    except OSError as error:
        is_open = WINDOWS and isinstance(error, PermissionError)
        hint = "another program may have it open: close it there, or choose another name" if is_open else None
        raise cannot_write(path, because(error), hint) from None


def cannot_write(path: str, why: str, hint: str | None = None) -> InputError:
    """Return the error of a file that cannot be written."""
    return about_file(label(path), f"cannot be written: {why}", hint)


def write_whole(path: str, data: bytes) -> None:
    """Write a file that is the old one until it is the new one.

    Errors: `InputError` where it cannot be written.
    """
    check_target(path)
    with writing(path):
        replacement = Replacement(path)
        try:
            replacement.file.write(data)
            replacement.commit()
        except BaseException:
            replacement.discard()
            raise


def write_folder(path: str, fill: Callable[[Path], None]) -> int:
    """Write a folder that is not there until it is whole, and return how many files `fill` has put into it.

    Errors: `InputError` where it cannot be written, or where there is one that is not empty.
    """
    target = Path(os.path.realpath(path))
    with writing(path):
        if target.is_dir() and not any(target.iterdir()):
            target.rmdir()
        if target.exists():
            raise cannot_write(path, "it is there already", "name a folder that is not there, or is empty")
        if not target.parent.is_dir():
            raise cannot_write(path, "its folder does not exist")
        hidden = Hidden(target, Path.mkdir)
        try:
            fill(hidden.path)
            count = sum(file.is_file() for file in hidden.path.rglob("*"))
            hidden.commit()
        except BaseException:
            hidden.discard()
            raise
    return count
