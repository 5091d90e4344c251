"""An error in a script: where it arose, and the answer to it."""

from __future__ import annotations

import ast
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from gradcli.process.script import Script
from gradcli.process.tracebacks import text_of
from gradcli.record.naming import Names, is_tensor, names_of, script_frames
from gradcli.record.record import Operation, Quantity
from gradcli.script.errors.source import Change, Edit, Text, text_at
from gradcli.script.errors.syntax import N, Position, called, end, parts, start
from gradcli.script.known import Known, Line, line_at, line_of
from gradcli.script.scene import CallScene, Scene

Knows = Callable[[BaseException | None, Names], Known]  # what is known of named tensors, and of an error


def is_module(x: Any) -> bool:
    """Return whether an object is a module."""
    return hasattr(type(x), "named_parameters")


def dtype_of(x: Any) -> str:
    """Return the name of the dtype of a tensor or an array: float64."""
    return str(getattr(x, "dtype", "")).removeprefix("torch.")


def is_whole(x: Any) -> bool:
    """Return whether an object is a tensor of integers."""
    return is_tensor(x) and not x.is_floating_point()


def message_of(error: BaseException) -> str:
    """Return the text of an error; of an `assert`, which may have none, with its class before it."""
    return "AssertionError: " * isinstance(error, AssertionError) + text_of(error)


@dataclass(frozen=True)
class Answer:
    """The reason of an error, in a sentence; its fix, the lines to change, and a topic of the guide."""

    reason: str
    fix: str
    changes: Sequence[Change] = ()
    topic: str = ""


@dataclass
class Failure(Scene):
    """The position of an error and its message; `begin` and `end` are those of the expression, where they are known."""

    frame: Any
    message: str
    begin: Position
    end: Position
    places: Sequence[tuple[Any, Line]] = ()  # the frames and lines of the user's that led there, the outermost first
    known: Known = field(default_factory=Known)
    frames: Sequence[Any] = ()  # all that led there, those of the library too, the innermost last

    @classmethod
    def of(cls, error: BaseException, script: Script, knows: Knows) -> Failure | None:
        """Return where an error arose: the innermost line in a file of the user's."""
        result, tb, places = None, error.__traceback__, []
        frames = [frame for frame, _ in traceback.walk_tb(tb)]
        for (frame, number), entry in zip(traceback.walk_tb(tb), traceback.extract_tb(tb), strict=False):
            file = frame.f_code.co_filename
            module = frame.f_globals.get("__name__", "")
            beside = script.folder is not None and file.startswith(script.folder) and "site-packages" not in file
            if file == script.name or (beside and not module.startswith("gradcli.")):
                result, line, span = frame, line_of(file, number), entry
                places.append((frame, line))
        if result is None:
            return None
        begin, end = (span.lineno or 0, span.colno or 0), (span.end_lineno or line, span.end_colno or sys.maxsize)
        names = names_of(result)
        return cls(script, line, names, result, message_of(error), begin, end, places, knows(error, names), frames)

    def scope(self, function: str) -> Mapping[str, Any]:
        """Return the local variables of the innermost function of a name in which it arose."""
        frames = [frame for frame in self.frames if frame.f_code.co_name == function]
        return frames[-1].f_locals if frames else {}

    @classmethod
    def here(cls, scene: CallScene, line: int) -> Failure:
        """Return a line that is running, which does not fail, as the position of an error."""
        frame, ends = next(script_frames()), ((line, 0), (line, sys.maxsize))
        return cls(scene.script, line, scene.names, frame, "", *ends, known=scene.known)

    def answer(self, reason: str, fix: str, edits: Sequence[Edit] = (), topic: str = "") -> Answer:
        """Return the answer whose fix is some edits of the file in which it arose."""
        return Answer(reason, fix, self.text.edited(edits), topic)

    def quantity(self, q: int | Quantity) -> Quantity:
        """Return a quantity of the record, or one that stands for a tensor."""
        return self.known.record.quantities[q] if isinstance(q, int) else q

    def called_name(self, q: int | Quantity | None, otherwise: str) -> str:
        """Return the script's name of a quantity."""
        return (q is not None and self.quantity(q).name) or otherwise

    def operation(self, number: int) -> Operation:
        """Return an operation of the record."""
        return self.known.record.operations[number]

    def code_of(self, operation: Operation) -> str:
        """Return the line of an operation, for the middle of a sentence."""
        return self.code(line_at(operation.site))

    @property
    def callers(self) -> Iterator[Failure]:
        """The calls that led here, the innermost first."""
        for frame, line in reversed(self.places[:-1]):
            yield replace(self, line=line, names=names_of(frame), frame=frame, places=())

    def value(self, node: ast.AST | None) -> Any:
        """Return the value of an expression that only looks something up; None of another one."""
        match node:
            case ast.Name():
                return self.frame.f_locals.get(node.id, self.frame.f_globals.get(node.id))
            case ast.Constant():
                return node.value
            case ast.Attribute() | ast.Subscript():
                owner = self.value(node.value)
                with suppress(Exception), warnings.catch_warnings(action="ignore"):  # that no leaf keeps a gradient
                    if isinstance(node, ast.Attribute):
                        return getattr(owner, node.attr)
                    return owner[self.value(node.slice)]
        return None

    def failed_parts(self, *kinds: type[N]) -> list[N]:
        """Return the parts of some kinds of the expression that failed, in the statement at the line."""
        return [n for n in parts(self.text.statement, *kinds) if self.begin <= start(n) and end(n) <= self.end]

    def failed_calls(self, *names: str, least: int = 0) -> list[ast.Call]:
        """Return the calls in the expression that failed with so many arguments, and one of some names, if any."""
        result = [c for c in self.failed_parts(ast.Call) if len(c.args) >= least]
        return [c for c in result if not names or called(c) in names]

    @cached_property
    def text(self) -> Text:
        """The text of the file in which it arose, at that line."""
        return self.text_at(self.line)

    def text_at(self, line: int) -> Text:
        """Return the text of the file of a line, at the line."""
        return text_at(self, line)

    @property
    def main(self) -> Text:
        """The text of the script itself."""
        return Text(self.script.name, self.script.source)
