"""The record of one trace: the values of the inputs, the branches that were taken, and the lines of the nodes."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import local
from types import FrameType, TracebackType
from typing import Any, NamedTuple

from gradcli.errors import InputError, Source, Span
from gradcli.graph.array import Array
from gradcli.graph.node import Node

MAX_NODES = 2_000_000  # of one trace: a loop that never ends is an error, and not all of the memory
_OURS = (str(Path(__file__).parents[1]), "<frozen")
_LIBRARIES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


class Condition(NamedTuple):
    """A value that decided what was traced: the node, its value then, and the line that read it."""

    node: Node
    value: Array
    file: str
    line: int


class Tape:
    """One trace: its conditions, and the nodes' lines if `lines` are wanted."""

    def __init__(self, lines: bool = False, parent: Tape | None = None) -> None:
        self.lines = lines
        self.inputs: dict[Node, Any] = {}
        self._parent = parent
        self.conditions: list[Condition] = []
        self.written: dict[Node, tuple[str, int]] = {}
        self.constants: dict[int, tuple[Any, Node]] = {}  # by the identity of a large array, kept alive
        self.count = 0

    @property
    def known(self) -> dict[Node, Any]:
        """The values of the inputs, those of the traces around it among them."""
        return {**(self._parent.known if self._parent is not None else {}), **self.inputs}

    def made(self, node: Node) -> None:
        """Count a node, and note its line.

        Errors: `InputError` where there are too many.
        """
        self.count += 1
        if self.count > MAX_NODES:
            raise InputError(
                f"the function makes more than {MAX_NODES:,} operations", hint="does a loop in it never end?"
            )
        if self.lines and node not in self.written and (line := here()) is not None:
            self.written[node] = line

    def decided(self, node: Node, value: Array) -> None:
        """Note that a value decides what is traced."""
        self.conditions.append(Condition(node, value, *(here() or ("", 0))))


class _Running(local):
    """The tape of the trace that runs in this thread."""

    tape: Tape | None = None


_RUNNING = _Running()


def running() -> Tape | None:
    """Return the tape of the innermost trace in this thread, None where there is none."""
    return _RUNNING.tape


@contextmanager
def recording(tape: Tape) -> Iterator[Tape]:
    """Record on this tape."""
    before, _RUNNING.tape = _RUNNING.tape, tape
    try:
        yield tape
    finally:
        _RUNNING.tape = before


class aside:
    """Pause the recording, so that values are computed, within a block."""

    __slots__ = ("before",)

    def __enter__(self) -> None:
        self.before, _RUNNING.tape = _RUNNING.tape, None

    def __exit__(self, *_: object) -> None:
        _RUNNING.tape = self.before


@cache
def is_users(file: str) -> bool:
    """Return whether a file of a frame is the user's, and none of gradcli's or of a library such as NumPy."""
    return not file.startswith(_OURS) and not any(folder in file for folder in _LIBRARIES)


def here() -> tuple[str, int] | None:
    """Return the file and the line of the user's that runs; None where there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return None


def line_of(traceback: TracebackType | None) -> tuple[str, int] | None:
    """Return the file and the line of the user's at which an exception arose."""
    line = None
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        line = (file, traceback.tb_lineno) if is_users(file) else line
        traceback = traceback.tb_next
    return line


def span_of(file: str, line: int) -> Span | None:
    """Return a line of a file, without the space around it; None where the file cannot be read."""
    lines = linecache.getlines(file)
    if not 0 < line <= len(lines):
        return None
    start = sum(map(len, lines[: line - 1]))
    first = lines[line - 1]
    return Span(
        Source("".join(lines), Path(file).name, is_python=True),
        start + len(first) - len(first.lstrip()),
        start + len(first.rstrip()),
    )
