"""How mistakes in a file are told: its name, a text out of it, and what the system or a library says of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gradcli.errors import InputError
from gradcli.files import reason

_SHOWN = 40  # characters of a file's text, or of its path, in a message


def printable(text: str) -> str:
    r"""Return a text without the characters that a terminal obeys.

    >>> printable("a\x1b[2J")
    'a�[2J'
    """
    return "".join(c if c.isprintable() else "�" for c in text)


def quoted(text: str) -> str:
    """Return a text out of a file as a message shows it: its first 40 characters.

    >>> quoted("one")
    '`one`'
    >>> quoted("1" * 41) == "`" + "1" * 40 + "…`"
    True
    """
    return f"`{printable(text[:_SHOWN])}{'…' * (len(text) > _SHOWN)}`"


def label(path: str) -> str:
    """Return the name of a file of points in messages: of a long path, the end.

    >>> label("p.csv"), label("-")
    ('`p.csv`', 'standard input')
    >>> label("long/" * 100 + "p.csv")
    '`…long/long/long/long/long/long/long/p.csv`'
    """
    if path == "-":
        return "standard input"
    return f"`{'…' * (len(path) > _SHOWN)}{printable(path[-_SHOWN:])}`"


def because(error: Exception) -> str:
    """Return in words why a file cannot be read or written."""
    return printable(reason(error))


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Tell whatever goes wrong in reading the file of that label as a mistake in it.

    Libraries have errors of many kinds for broken files.

    >>> with reading("`p.npz`"):
    ...     raise EOFError("no more")
    Traceback (most recent call last):
    gradcli.errors.InputError: `p.npz` cannot be read: no more
    """
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:
        raise InputError(f"{name} cannot be read: {because(error)}") from None


def needs_pyarrow(name: str) -> InputError:
    """Return what to tell where a Parquet file is asked for, and pyarrow is not installed."""
    return InputError(f"{name} needs pyarrow: pip install 'gradcli[batch]'")


def no_points(name: str) -> InputError:
    """Return what to tell of a file without points."""
    return InputError(f"{name} holds no points")
