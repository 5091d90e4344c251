"""A progress line on the terminal, which shows what is being done when nothing was printed for two seconds.

The line is on standard error, disappears before anything is printed, and comes back if that was not the end.  Nothing
is written to a pipe or a file.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Lock, Thread

from gradcli.process.platform import is_terminal

PATIENCE = 2.0  # seconds without a line


class _Line:
    """The line, which a thread of its own writes: it shows even while the main thread computes."""

    def __init__(self) -> None:
        self.text = ""
        self._lock = Lock()
        self._ended: Event | None = None
        self._due = 0.0  # when it shows, if nothing is printed before
        self._width = 0  # of what is on the terminal
        self._process = 0

    def start(self) -> None:
        """Show the line in two seconds, unless something is printed before."""
        self.end()
        if not is_terminal(sys.stderr):
            return
        self._process = os.getpid()
        self._due = time.monotonic() + PATIENCE
        self._ended = Event()
        Thread(target=self._watch, args=(self._ended,), daemon=True).start()

    def change(self, text: str) -> None:
        """Change the text, at once if the line is shown."""
        self.text = text
        if self._width and self._process == os.getpid():
            with self._lock:
                self._write(text)

    def hide(self) -> None:
        """Remove the line: it comes back after two seconds, unless what is printed is for a program such as `less`.

        A child process that was forked has no line.
        """
        if self._ended is None or self._process != os.getpid():
            return
        if _is_read():
            self.end()
            return
        with self._lock:
            self._due = time.monotonic() + PATIENCE
            if self._width:
                self._write("")

    def end(self) -> None:
        """Remove the line, and show it no more."""
        if self._ended is None or self._process != os.getpid():
            return
        with self._lock:
            self._ended.set()
            self._ended = None
            if self._width:
                self._write("")

    def _watch(self, ended: Event) -> None:
        wait = PATIENCE
        while not ended.wait(wait):
            with self._lock:
                wait = self._due - time.monotonic()
                if wait > 0:
                    continue
                wait = PATIENCE
                if not self._width and not ended.is_set():
                    self._write(self.text)

    def _write(self, text: str) -> None:
        """Write over what is on the terminal, past Python's buffer, on which a forked child could wait for ever."""
        line = f"{text} …" if text else ""
        blank = " " * (self._width - len(line)) + "\r" * (not text)
        with suppress(OSError, ValueError):  # a terminal that is closed
            os.write(sys.stderr.fileno(), f"\r{line}{blank}".encode(sys.stderr.encoding, "replace"))
        self._width = len(line)


def _is_read() -> bool:
    """Return whether another program reads what is printed, which may show it on the same terminal."""
    try:
        return not sys.stdout.isatty() and not stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode)
    except (AttributeError, OSError, ValueError):  # closed, or replaced by an object that is not a file
        return False


_LINE = _Line()


@contextmanager
def lasting(text: str) -> Iterator[None]:
    """Show a text while the block runs, once nothing was printed for two seconds."""
    _LINE.text = text
    _LINE.start()
    try:
        yield
    finally:
        _LINE.end()


def doing(text: str) -> None:
    """Change what the line says is being done.

    >>> doing("drawing")  # writes nothing: nothing has lasted long
    """
    _LINE.change(text)


def before_output() -> None:
    """Remove the line, since something else is printed now; it comes back after two seconds without output."""
    _LINE.hide()


def before_others_print() -> None:
    """Remove the line for good, since other programs print from now on, and may stop in the middle of a line."""
    _LINE.end()
