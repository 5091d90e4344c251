"""Reading texts from files that may hold anything: too much, without an end, or bytes that are not text."""

from __future__ import annotations

import atexit
import codecs
import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from gradcli.errors import InputError

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


# What was read since the start, or since it was forgotten: an output that is one of these files would destroy it.
_READ: list[os.stat_result] = []


def program_text(data: bytes, name: str) -> str:
    """Return the text of a Python program, whose first lines may declare its encoding.

    Errors: `SyntaxError`, as Python has it when it reads a file; `compile` takes any bytes in a comment.
    """
    try:
        return importlib.util.decode_source(data)
    except (SyntaxError, UnicodeDecodeError, LookupError):
        if declared := re.match(rb"(?:[^\n]*\n)?[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", data):
            raise SyntaxError(f"encoding problem: {declared[1].decode()}") from None
        for number, line in enumerate(data.splitlines(), 1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                raise SyntaxError(
                    f"Non-UTF-8 code starting with '\\x{line[error.start]:02x}' in file {name} on line {number}, "
                    "but no encoding declared; see https://peps.python.org/pep-0263/ for details"
                ) from None
        raise  # never: what cannot be decoded has such a line


class UsersFolder:
    """The current folder of the user's code, which may change it; outside of it, paths are those of the command."""

    def __init__(self) -> None:
        self._theirs: str | None = None

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Go to the folder that the code went to, and come back."""
        ours = os.getcwd()
        if self._theirs is not None:
            _go(self._theirs)
        try:
            yield
        finally:
            with suppress(OSError):  # a folder that was removed
                theirs = os.getcwd()
                self._theirs = theirs if theirs != ours else None
            os.chdir(ours)

    def return_at_exit(self) -> None:
        """Go there before what the code registered for the end of the process runs."""
        if self._theirs is not None and self._theirs != os.getcwd():
            atexit.register(_go, self._theirs)


def _go(folder: str) -> None:
    """Go to a folder, unless it was removed."""
    with suppress(OSError):
        os.chdir(folder)


def note_read(file: str | Path | BinaryIO) -> None:
    """Remember that a file, which may be open, is read."""
    with suppress(OSError, ValueError):  # what cannot be read is reported elsewhere
        _READ.append(os.stat(file if isinstance(file, str | Path) else file.fileno()))


def forget_read() -> None:
    """Forget what was read: another command begins."""
    _READ.clear()


def is_read(path: str) -> bool:
    """Return whether a path is that of a file that was read, under whatever name."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return False
    return any(os.path.samestat(status, read) for read in _READ)


def read_path(path: str, limit: int) -> str:
    """Return the text of a file, of at most `limit` bytes.

    Errors: `InputError` for a file that is not there, is not UTF-8 text, or is longer.
    """
    try:
        with open(path, "rb") as file:
            note_read(file)
            return read_text(file, printable(path), limit)
    except (OSError, ValueError) as error:
        raise InputError(f"`{printable(path)}` cannot be read: {printable(reason(error))}", text=path) from None


def read_stdin(limit: int) -> str:
    """Return the text of standard input, of at most `limit` bytes."""
    return read_text(standard_input(), "standard input", limit)


def standard_input() -> BinaryIO:
    """Return standard input.

    Errors: `InputError` where it is closed.
    """
    if sys.stdin is None:
        raise InputError("standard input is closed", hint="give the name of a file")
    note_read(sys.stdin.buffer)
    return sys.stdin.buffer


def read_text(file: BinaryIO, name: str, limit: int) -> str:
    """Return the whole text of a file, of at most `limit` bytes: UTF-8, or UTF-16 as PowerShell 5 writes it with `>`.

    Errors: `InputError` for a longer file, and for one that is not such a text.
    """
    data = file.read(min(4096, limit))
    encoding = "utf-16" if data[:2] in _UTF16 else "utf-8-sig"
    if b"\0" in data and encoding != "utf-16":
        raise InputError(f"`{name}` is not a text: it has NUL bytes", text=name)
    data = read_bytes(file, name, limit, data)
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        kind = encoding.removesuffix("-sig").upper()
        raise InputError(
            f"`{name}` is not {kind} text (byte {error.start})", hint="save it as UTF-8", text=name
        ) from None


def read_bytes(file: BinaryIO, name: str, limit: int, head: bytes = b"") -> bytes:
    """Return all bytes of a file, which may be endless, after those in `head`, which are read already.

    Errors: `InputError` for one that is longer than `limit` bytes.
    """
    data = head + file.read(limit + 1 - len(head))
    if len(data) > limit:
        raise InputError(f"`{name}` is longer than {limit // 2**20} MiB", text=name)
    return data


def reason(error: Exception) -> str:
    """Return why a file cannot be read, in words, which begin with a small letter unless it is an abbreviation's.

    >>> reason(FileNotFoundError(2, "No such file or directory")), reason(ValueError("EOF: no header"))
    ('no such file or directory', 'EOF: no header')
    """
    text = getattr(error, "strerror", None) or str(error).partition("\n")[0]
    if not text:
        return type(error).__name__
    return text if text[1:2].isupper() or text[1:2] == "/" else text[0].lower() + text[1:]


def printable(text: str) -> str:
    r"""Return a text with a replacement character for control characters, which a terminal would obey.

    >>> printable("a\x1b[2J")
    'a�[2J'
    """
    return "".join(c if c.isprintable() else "�" for c in text)
