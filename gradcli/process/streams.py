"""Standard output and standard error, which may be full, closed, or not there at all."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
import sys
from collections.abc import Iterator
from threading import Timer

import click

from gradcli.process.platform import has_styles, is_terminal
from gradcli.text.plain import print_plainly, print_utf8

_PATIENCE = 2.0  # seconds


def hold_closed() -> None:
    """Open a descriptor that cannot be written for each standard stream that was closed (`>&-`).

    Otherwise a file that is opened later would get it, and what is printed then.  To print results is an error.
    """
    while (descriptor := os.open(os.devnull, os.O_RDONLY)) <= 2:
        pass
    os.close(descriptor)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115


def hold_every_character() -> None:
    """Prepare the streams for signs such as ∂ in every encoding: unencodable ones are spelled in ASCII.

    A file that a shell writes (`>`) is UTF-8, as all files are, unless an encoding was chosen.
    """
    if _is_file(sys.stdout) and not os.environ.get("PYTHONIOENCODING"):
        print_utf8()
    for stream in (sys.stdout, sys.stderr):
        print_plainly(stream)


def _is_file(stream: object) -> bool:
    try:
        return isinstance(stream, io.TextIOWrapper) and stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except OSError:
        return False


def print_error(text: str) -> None:
    """Print a note or an error to standard error, unless that is full or closed."""
    with contextlib.suppress(OSError):
        if has_styles(sys.stderr) and text.startswith("error"):
            from gradcli.text.painted import painted

            text = painted(text)
        click.echo(text, err=True)


@contextlib.contextmanager
def announced() -> Iterator[None]:
    """Print a line to a terminal's standard error where a block takes longer than two seconds."""
    timer = Timer(_PATIENCE, print_error, ("still computing; Ctrl-C ends it",))
    timer.daemon = True
    if is_terminal(sys.stderr):
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def flush() -> None:
    """Flush standard output."""
    if sys.stdout is not None and not sys.stdout.closed:
        sys.stdout.flush()


def discard() -> None:
    """Discard buffered output, so that Python does not fail to write it at exit."""
    if sys.stdout is not None and not sys.stdout.closed:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def why_not_printed(error: OSError) -> str:
    """Return in words why standard output cannot be written.

    >>> why_not_printed(OSError(28, "No space left on device"))
    'no space left on device'
    """
    from gradcli.files import reason

    return "standard output is closed" if error.errno == errno.EBADF else reason(error)
