"""The answer to an error, as lines: what happened, what fixes it, and where the guide has more."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from gradcli.guide.messages import find
from gradcli.pytorch.messages import facts_of
from gradcli.pytorch.names import pytorch_names
from gradcli.pytorch.session import Script
from gradcli.script.errors.failure import Answer, Failure
from gradcli.script.errors.source import Change
from gradcli.wrapping import TIED, page_width, wrapped

_MOST = 100  # columns


def why(error: BaseException, script: Script) -> str:
    """Return what happened, what fixes it, and where the guide has more; nothing where PyTorch's message says all."""
    guide = None if _is_of_none(error) else find(str(error))
    lines = _written(*result) if (result := _answer_at(error, script)) is not None else []
    return "\n".join([*lines, *([f"more: gradcli explain {guide.topic.name}"] if guide else [])])


def _is_of_none(error: BaseException) -> bool:
    """Return whether an attribute is missing of a None that is not a gradient, as tensors have no such attribute."""
    of_none = isinstance(error, AttributeError) and error.name is not None and error.obj is None
    return of_none and error.name not in pytorch_names()["Tensor"]  # type: ignore[attr-defined]


def answer(error: BaseException, script: Script) -> Answer | None:
    """Return what is to be said of an error; None where that is nothing."""
    result = _answer_at(error, script)
    return None if result is None else result[1]


def _answer_at(error: BaseException | None, script: Script) -> tuple[Failure, Answer] | None:
    """Return where an error arose, or the one that caused it, and the answer to it."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        at = Failure.of(error, script)
        if at is not None and (answered := _answered(error, at)) is not None:
            return at, answered
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return None


def _answered(error: BaseException, at: Failure) -> Answer | None:
    facts = facts_of(error)
    if facts is not None:
        row = _answers().get(facts.key)
        return None if row is None else _filled_in(at, row, *(facts.about or facts.values))
    known = ((re.search(pattern, at.message), row) for pattern, row in _of_python().items())
    return next((_filled_in(at, row, *match.groups()) for match, row in known if match), None)


Row = Sequence[tuple[str, str]]  # words and functions, each with what it is for: why, fix, change, tell


@cache
def _answers() -> dict[str, Row]:
    """Return the answers to errors of gradcli's `torch`, by their keys in `messages.txt`."""
    return {key: row for kind, key, row in _table() if kind == "error"}


@cache
def _of_python() -> dict[str, Row]:
    """Return the answers to errors that Python raises, which have no key, by patterns of their texts."""
    return {pattern: row for kind, pattern, row in _table() if kind == "text"}


@cache
def _table() -> list[tuple[str, str, Row]]:
    """Return the rows of `answers.txt`: `error` with a key, or `text` with a pattern, and the answer."""
    result: list[tuple[str, str, Row]] = []
    for paragraph in Path(__file__).with_name("answers.txt").read_text("utf-8").strip().split("\n\n"):
        lines = re.split(r"\n(?=(?:error|why|fix|change|tell): )", paragraph)
        parts = [(word, text.replace("\n", " ")) for word, _, text in (line.partition(": ") for line in lines)]
        row = [part for part in parts if part[0] not in ("error", "text")]
        result += [(kind, text, row) for kind, text in parts if kind in ("error", "text")]
    return result


def _filled_in(at: Failure, row: Row, *facts: Any) -> Answer | None:
    """Return the answer of a row, with the line and the facts of the error in it.

    Of several fixes it is the first that changes something, or else the last.
    """
    result: dict[str, str] = {}
    changes: list[Change] = []
    for word, text in row:
        if word == "tell":
            return _function(text)(at, *facts)  # type: ignore[no-any-return]
        if word == "change":
            name, _, file = text.partition(" ")  # which of the texts it changes, or else whatever it needs
            changes = _function(name)(getattr(at, file) if file else at)
            if changes:
                break
        else:
            result[word] = text.format(*facts, line=at.code(at.line))
    return Answer(result["why"], result["fix"], changes)


def _function(path: str) -> Any:
    file, name = path.split(".")
    return getattr(import_module(f"gradcli.script.errors.{file}"), name)


def _written(at: Failure, answered: Answer) -> list[str]:
    """Return the two as paragraphs, their lines broken, and the lines to change as they are to be."""
    lines = _filled(f"why: {answered.reason}") + _filled(f"fix: {answered.fix}{':' if answered.changes else '.'}")
    for change in answered.changes:
        head = f"     {at.lines(change.places())}: "
        first, *more = change.shown()
        lines += [head + first, *(" " * len(head) + line for line in more)]
    return lines


def _filled(words: str) -> list[str]:
    """Return a paragraph in lines; code is broken only where a line is too short for it."""
    tied = re.sub("`[^`]*`", lambda code: code[0].replace(" ", TIED), words)
    return wrapped(tied, min(_MOST, page_width()), "     ")
