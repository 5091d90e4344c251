"""Files and folders that are the old ones until they are the whole new ones."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from gradcli.data.mistakes import about_file, because, label
from gradcli.errors import InputError
from gradcli.files import is_read
from gradcli.process.platform import WINDOWS, is_device_name

_PREFIX, _SUFFIX = ".gradcli-", ".tmp"  # of the name until the end
_PAUSE = 0.2  # seconds before a second try
_LEFT_BEHIND = 86_400  # seconds after which what a process left that was killed is removed


@contextmanager
def replaced_file(path: str) -> Iterator[BinaryIO]:
    """Yield a file for writing and reading that replaces `path` at the end of the block; after an error it is removed.

    It has a hidden name in the same folder, and nobody else may read it until then.  An existing file keeps its mode;
    of a symbolic link, the file that it points to is replaced.

    Errors: `OSError` where it cannot be written or renamed.
    """
    target = Path(os.path.realpath(path))
    _remove_left_behind(target.parent)
    number, name = tempfile.mkstemp(_SUFFIX, _PREFIX, target.parent)
    os.close(number)
    file = open(name, "r+b")  # noqa: SIM115
    try:
        yield file
        file.flush()
        os.fsync(file.fileno())
        file.close()
        os.chmod(name, _mode(target, 0o666))
        _rename(name, target)
    finally:
        with suppress(OSError):  # on a full disk, what could not be written before cannot be on closing
            file.close()
        _remove(Path(name))


@contextmanager
def replaced_folder(target: Path) -> Iterator[Path]:
    """Yield a folder that is renamed to `target` at the end of the block; after an error it is removed.

    Errors: `OSError` where it cannot be made or renamed.
    """
    _remove_left_behind(target.parent)
    folder = Path(tempfile.mkdtemp(_SUFFIX, _PREFIX, target.parent))
    try:
        os.chmod(folder, _mode(target, 0o777))
        yield folder
        _rename(folder, target)
    finally:
        _remove(folder)


def _mode(target: Path, usual: int) -> int:
    """Return the mode of what is at a path, or that of what is made anew."""
    with suppress(FileNotFoundError):
        return stat.S_IMODE(target.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return usual & ~mask


def _rename(path: str | Path, target: Path) -> None:
    """Rename a file; another program, such as a virus scanner, may have the target open for a moment on Windows."""
    try:
        os.replace(path, target)
    except PermissionError:
        time.sleep(_PAUSE)
        os.replace(path, target)


def _remove_left_behind(folder: Path) -> None:
    """Remove what processes left that were killed; one that writes for so long without a change is none."""
    with suppress(OSError):
        for old in folder.glob(f"{_PREFIX}*{_SUFFIX}"):
            if old.lstat().st_mtime < time.time() - _LEFT_BEHIND:
                _remove(old)


def _remove(path: Path) -> None:
    """Remove a file or a folder if it is there; what cannot be removed now is removed by a later run."""
    with suppress(OSError):
        if path.is_dir():  # under another name, nobody writes there any more
            shutil.rmtree(path.rename(path.with_suffix(".gone")), ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


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
    with writing(path), replaced_file(path) as file:
        file.write(data)


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
        with replaced_folder(target) as folder:
            fill(folder)
            return sum(file.is_file() for file in folder.rglob("*"))
