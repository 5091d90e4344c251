"""What is being done, in a line on the terminal, once it has lasted for two seconds.

The line is on standard error, and disappears before anything is printed.  Nothing is written to a pipe or a file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock, Timer

PATIENCE = 2.0  # seconds without a line


class _Line:
    """The line, which a thread of its own writes: it shows even while the main thread computes."""

    def __init__(self) -> None:
        self.text = ""
        self._lock = Lock()
        self._timer: Timer | None = None
        self._width = 0  # of what is on the terminal
        self._process = 0

    def start(self) -> None:
        """Show the line in two seconds, unless it is hidden before."""
        self.hide()
        if sys.stderr is None or not sys.stderr.isatty():
            return
        self._process = os.getpid()
        self._timer = Timer(PATIENCE, self._show)
        self._timer.daemon = True
        self._timer.start()

    def change(self, text: str) -> None:
        """Say something else, at once where the line is shown."""
        self.text = text
        if self._width and self._process == os.getpid():
            with self._lock:
                self._write(text)

    def hide(self) -> None:
        """Remove the line, and show it no more.  A child process that was forked has none."""
        if self._timer is None or self._process != os.getpid():
            return
        with self._lock:
            self._timer.cancel()
            self._timer = None
            if self._width:
                self._write("")

    def _show(self) -> None:
        with self._lock:
            if self._timer is not None:
                self._write(self.text)

    def _write(self, text: str) -> None:
        """Write over what is on the terminal, past Python's buffer, on which a forked child could wait for ever."""
        line = f"{text} …" if text else ""
        blank = " " * (self._width - len(line)) + "\r" * (not text)
        with suppress(OSError, ValueError):  # a terminal that is closed
            os.write(sys.stderr.fileno(), f"\r{line}{blank}".encode(sys.stderr.encoding, "replace"))
        self._width = len(line)


_LINE = _Line()


@contextmanager
def lasting(text: str) -> Iterator[None]:
    """Show a text while what is inside lasts longer than two seconds, until something is printed."""
    _LINE.text = text
    _LINE.start()
    try:
        yield
    finally:
        _LINE.hide()


def doing(text: str) -> None:
    """Change what the line says is being done.

    >>> doing("drawing")  # writes nothing: nothing has lasted long
    """
    _LINE.change(text)


def before_output() -> None:
    """Remove the line, since something else is printed now."""
    _LINE.hide()
