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
from gradcli.process.platform import WINDOWS, is_device_name

_PAUSE = 0.2  # seconds before a second try
_LEFT_BEHIND = 86_400  # seconds after which a file counts as left behind


class Hidden:
    """A file or a folder under a hidden name beside its target, to which `commit` renames it.

    What a process leaves that is killed is removed by a later run to the same target, when it is a day old: until then
    the process may be alive.
    """

    def __init__(self, target: Path, make: Callable[[Path], object]) -> None:
        """Make the file or the folder.

        Errors: `OSError` where there cannot be one.
        """
        self.target = target
        prefix = f".gradcli-{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:12]}-"
        with suppress(OSError):
            for old in target.parent.glob(f"{prefix}*"):
                if old.lstat().st_mtime < time.time() - _LEFT_BEHIND:
                    _remove(old)
        self.path = target.with_name(f"{prefix}{secrets.token_hex(6)}.tmp")
        make(self.path)

    def commit(self) -> None:
        """Rename it to its target.

        Errors: `OSError` where another program keeps it from that; a virus scanner may do so for a moment.
        """
        try:
            os.replace(self.path, self.target)
        except PermissionError:
            time.sleep(_PAUSE)
            os.replace(self.path, self.target)

    def discard(self) -> None:
        """Remove it, if it is still there."""
        with suppress(OSError):  # what cannot be removed now is removed by another run
            _remove(self.path)


def _remove(path: Path) -> None:
    if path.is_dir():  # under another name, nobody writes there any more
        shutil.rmtree(path.rename(path.with_suffix(".gone")), ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


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
