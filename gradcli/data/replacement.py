"""A file that takes the place of another one whole, or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from gradcli.data.mistakes import because, label
from gradcli.errors import InputError


class Replacement:
    """What is written to `file` takes the place of `path` on `commit`, and is gone on `discard`.

    It has a hidden name in the same folder until then. An existing file keeps its mode; of a symbolic link, the file
    that it points to is replaced.
    """

    def __init__(self, path: str) -> None:
        """Open the file for writing and reading.

        Errors: `OSError` where there cannot be one.
        """
        self.target = Path(os.path.realpath(path))
        self._temporary = self.target.with_name(f".gradcli-{secrets.token_hex(6)}.tmp")
        self.file: BinaryIO = self._temporary.open("x+b")

    def commit(self) -> None:
        """Put the file in its place, once it is on the disk."""
        self.file.flush()
        os.fsync(self.file.fileno())
        with suppress(FileNotFoundError):
            os.chmod(self._temporary, stat.S_IMODE(self.target.stat().st_mode))
        self.file.close()
        os.replace(self._temporary, self.target)

    def discard(self) -> None:
        """Remove the file."""
        with suppress(OSError):  # what could not be written before cannot be on closing
            self.file.close()
        self._temporary.unlink(missing_ok=True)


def check_target(path: str) -> None:
    """Refuse a path at which no file can be put.

    >>> check_target("/")
    Traceback (most recent call last):
    gradcli.errors.InputError: `/` cannot be written: it is a folder
    """
    if "\0" in path:
        raise cannot_write(path, "a name has no NUL characters")
    target = Path(os.path.realpath(path))
    with writing(path):
        if target.is_dir():
            raise cannot_write(path, "it is a folder")
        if not target.parent.is_dir():
            raise cannot_write(path, "its folder is not there")
        if target.is_symlink() or (target.exists() and not target.is_file()):  # a link to itself is still one
            raise cannot_write(path, "it is no regular file")
        if target.exists() and not os.access(target, os.W_OK):
            raise cannot_write(path, "permission denied")


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Tell what the system says against writing a file as a mistake.

    >>> with writing("p.csv"):
    ...     raise OSError(28, "No space left on device")
    Traceback (most recent call last):
    gradcli.errors.InputError: `p.csv` cannot be written: no space left on device
    """
    try:
        yield
    except OSError as error:
        raise cannot_write(path, because(error)) from None


def cannot_write(path: str, why: str) -> InputError:
    """Return what to tell of a file that cannot be written."""
    return InputError(f"{label(path)} cannot be written: {why}")
