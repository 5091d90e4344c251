"""Errors of files: the name of the file, the text of a cell, and the reason of the system or of a library."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gradcli.errors import InputError
from gradcli.files import note_read, printable, reason

_SHOWN = 40  # characters of a file's text, or of its path, in a message


def quoted(text: str) -> str:
    """Return a text out of a file as a message shows it: its first 40 characters.

    >>> quoted("one")
    '`one`'
    >>> quoted("1" * 41) == "`" + "1" * 40 + "…`"
    True
    """
    return f"`{printable(text[:_SHOWN])}{'…' * (len(text) > _SHOWN)}`"


class Label(str):
    """The name of a file in messages, with its path in the command line where the name is the whole path."""

    path: str | None

    def __new__(cls, name: str, path: str | None = None) -> Label:
        """Return the name of the file at that path; None for standard input, and for a name that is not the path."""
        error = super().__new__(cls, name)
        error.path = path
        return error


def about_file(name: str, said: str, hint: str | None = None) -> InputError:
    """Return an error that says something of a file; of a position in the file, where its name goes on.

    >>> about_file(label("p.csv"), "is empty").text
    'p.csv'
    """
    return InputError(f"{name} {said}", hint=hint, text=path_of(name))


def path_of(name: str) -> str | None:
    """Return the path of the file that has this name in messages; None for a position in a file, or an unknown path."""
    return name.path if isinstance(name, Label) else None


def label(path: str) -> Label:
    """Return the name of a file of points in messages: of a long path, the end.

    >>> label("p.csv"), label("-")
    ('`p.csv`', 'standard input')
    >>> label("long/" * 100 + "p.csv")
    '`…long/long/long/long/long/long/long/p.csv`'
    """
    if path == "-":
        return Label("standard input")
    shown = f"{'…' * (len(path) > _SHOWN)}{printable(path[-_SHOWN:])}"
    return Label(f"`{shown}`", path if shown == path else None)


def because(error: Exception) -> str:
    """Return in words why a file cannot be read or written.

    The system's and pyarrow's messages are shown; those of Python's exceptions mean nothing to the user.

    >>> because(OSError(28, "No space left on device")), because(EOFError()), because(KeyError("descr"))
    ('no space left on device', 'it ends early', 'it is damaged')
    """
    if isinstance(error, OSError) or type(error).__module__.startswith("pyarrow"):
        return printable(reason(error))
    return "it ends early" if isinstance(error, EOFError) else "it is damaged"


def unknown_ending(path: str, hint: str) -> InputError:
    """Return the error of a file whose extension says no format."""
    return about_file(label(path), "has an unknown file extension", hint)


def unreadable(name: str, why: str) -> InputError:
    """Return the error of a file that cannot be read."""
    return about_file(name, f"cannot be read: {why}")


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Raise exceptions of the system and of libraries as an `InputError` about the file of that label.

    Libraries have errors of many kinds for broken files.

    >>> with reading("`p.npz`"):
    ...     raise EOFError
    Traceback (most recent call last):
    gradcli.errors.InputError: `p.npz` cannot be read: it ends early
    """
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:
        beyond = isinstance(error, OSError) and error.errno == errno.EINVAL  # a position before the file
        raise unreadable(name, "it is damaged" if beyond else because(error)) from None


def check_regular(path: str | Path) -> None:
    """Check that a path is a regular file before it is opened: opening a pipe may block for ever.

    Errors: `InputError`, also for a file that is not there.

    >>> check_regular("/dev/null")
    Traceback (most recent call last):
    gradcli.errors.InputError: `/dev/null` is a device, not a file
      CSV and JSON Lines are read from pipes and devices
    """
    name = label(str(path))
    with reading(name):
        mode = os.stat(path).st_mode
    note_read(path)
    if stat.S_ISDIR(mode):
        raise about_file(name, "is a folder, not a file")
    if not stat.S_ISREG(mode):
        kind = "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
        raise about_file(name, f"is {kind}, not a file", "CSV and JSON Lines are read from pipes and devices")


def needs_pyarrow(name: str) -> InputError:
    """Return the error of a Parquet file without pyarrow."""
    return InputError(f"{name} needs pyarrow: pip install 'gradcli[batch]'")
