"""The record of one trace: the values of the inputs, the branches that were taken, and the lines of the nodes."""

from __future__ import annotations

import ast
import linecache
import opcode
import os
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import islice
from pathlib import Path
from threading import local
from types import CodeType, FrameType, TracebackType
from typing import Any, NamedTuple

import numpy as np

from gradcli.errors import InputError, Source, Span
from gradcli.graph.array import Array
from gradcli.graph.node import Node

MAX_NODES = 500_000  # of one trace: a loop that never ends is an error, and not all of the memory
_OURS = (str(Path(__file__).parents[1]), "<frozen", sysconfig.get_path("stdlib") + os.sep)
NUMPY = str(Path(np.__file__).parent)
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
        self.watched: Any = None  # the local variables of the function that is traced

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
                f"the function makes more than {MAX_NODES:,} operations",
                hint="does a loop in it never end?  An operation on whole arrays takes the place of many",
            )
        if self.lines and node not in self.written and (frame := _users_frame()) is not None:
            self.written[node] = frame.f_code.co_filename, frame.f_lineno
            if self.watched is not None:
                self.watched.look(frame)

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


def _users_frame() -> FrameType | None:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and not is_users(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def here() -> tuple[str, int] | None:
    """Return the file and the line of the user's that runs; None where there is none."""
    frame = _users_frame()
    return None if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def called() -> str:
    """Return the name of what the user's line calls, as it is written there; "" where it calls nothing."""
    frame = _users_frame()
    return "" if frame is None else _called_at(frame.f_code, frame.f_lasti)


class Place(NamedTuple):
    """Where in the user's code an exception arose: the file, the line, and what it calls.

    `raises` says that the line raises it itself, `elsewhere` that a library other than NumPy does.
    """

    file: str
    line: int
    called: str
    raises: bool
    elsewhere: bool


def place_of(traceback: TracebackType | None) -> Place | None:
    """Return where in the user's code an exception arose."""
    found = None
    file = ""
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if is_users(traceback.tb_frame.f_code.co_filename):
            found = traceback
        traceback = traceback.tb_next
    if found is None:
        return None
    code, at = found.tb_frame.f_code, found.tb_lasti
    elsewhere = not is_users(file) and not file.startswith((_OURS[0], NUMPY))
    raises = found.tb_next is None and code.co_code[at] == opcode.opmap["RAISE_VARARGS"]
    return Place(code.co_filename, found.tb_lineno, _called_at(code, at), raises, elsewhere)


def _called_at(code: CodeType, at: int) -> str:
    """Return what an instruction calls, or the element that it assigns to, as it is written."""
    line, last, start, end = next(islice(code.co_positions(), at // 2, None), (None,) * 4)
    if line is None or last is None or start is None or end is None:
        return ""
    lines = [text.encode() for text in linecache.getlines(code.co_filename)[line - 1 : last]]
    if not lines:
        return ""
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    try:
        written = ast.parse(b"(" + b"".join(lines) + b"\n)", mode="eval").body
    except SyntaxError:
        return ""
    written = written.func if isinstance(written, ast.Call) else written
    return ast.unparse(written) if isinstance(written, ast.Name | ast.Attribute | ast.Subscript) else ""


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
