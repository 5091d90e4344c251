"""Standard output and standard error, which may be full, closed, or not there at all."""

from __future__ import annotations

import codecs
import contextlib
import errno
import io
import os
import sys

import click


def hold_closed() -> None:
    """Give a stream that was closed (`>&-`) a descriptor that cannot be written.

    Otherwise a file that is opened later would get it, and what is printed then.  To print results is an error.
    """
    while (descriptor := os.open(os.devnull, os.O_RDONLY)) <= 2:
        pass
    os.close(descriptor)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115


def hold_every_character() -> None:
    """Let what is printed hold signs such as ∂ in every encoding, as a page has them in the midst of a script's lines.

    ASCII stands where none is set, and is taken for UTF-8, as Python does in most such places; in an encoding that was
    chosen, `?` stands for what it lacks.
    """
    if not isinstance(sys.stdout, io.TextIOWrapper):
        return
    name = codecs.lookup(sys.stdout.encoding).name
    if name == "ascii":
        sys.stdout.reconfigure(encoding="utf-8", errors=sys.stdout.errors)
    elif not name.startswith("utf"):
        sys.stdout.reconfigure(errors="replace")


def tell(text: str) -> None:
    """Print a note or an error to standard error; where that is full or closed, there is nobody to tell."""
    with contextlib.suppress(OSError):
        click.echo(text, err=True)


def flush() -> None:
    """Print what is still buffered."""
    if sys.stdout is not None:
        sys.stdout.flush()


def discard() -> None:
    """Send what is still buffered nowhere: Python would try to write it once more at its end, and complain."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def why_not_printed(error: OSError) -> str:
    """Return in words why standard output cannot be written.

    >>> why_not_printed(OSError(28, "No space left on device"))
    'no space left on device'
    """
    from gradcli.files import reason

    return "standard output is closed" if error.errno == errno.EBADF else reason(error)
