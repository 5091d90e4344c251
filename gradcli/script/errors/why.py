"""The answer to an error, as lines: what happened, what fixes it, and where the guide has more."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from gradcli.guide.messages import find
from gradcli.pytorch.names import pytorch_names
from gradcli.pytorch.session import Script
from gradcli.script.errors import kinds
from gradcli.script.errors.failure import Answer, Failure
from gradcli.script.errors.source import Change
from gradcli.wrapping import TIED, page_width, wrapped

_MOST = 100  # columns


def why(error: BaseException, script: Script) -> str:
    """Return what happened, what fixes it, and where the guide has more; nothing where PyTorch's message says all."""
    none = re.search(r"'NoneType' object has no attribute '(\w+)'", str(error))
    no_gradient = none is not None and none[1] not in pytorch_names()["Tensor"]  # what is None is something else
    guide = None if no_gradient else find(str(error))
    lines = _written(*found) if (found := _found(error, script)) is not None else []
    return "\n".join([*lines, *([f"more: gradcli explain {guide.topic.name}"] if guide else [])])


def answer(error: BaseException, script: Script) -> Answer | None:
    """Return what is to be said of an error; None where that is nothing."""
    found = _found(error, script)
    return None if found is None else found[1]


def _found(error: BaseException | None, script: Script) -> tuple[Failure, Answer] | None:
    """Return where an error arose, or the one that it was made of, and the answer to it."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        at = Failure.of(error, script)
        if at is not None and (told := _answered(error, at)) is not None:
            return at, told
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return None


def _answered(error: BaseException, at: Failure) -> Answer | None:
    subjects: Any = getattr(error, "subjects", None)  # errors of ours that know them have a kind
    tell = None if subjects is None else getattr(kinds, error.kind.replace(" ", "_"), None)  # type: ignore[attr-defined]
    if tell is not None:
        return tell(at, *subjects)  # type: ignore[no-any-return]
    known = ((re.search(pattern, at.message, re.DOTALL), row) for pattern, row in _answers().items())
    return next((_told(at, row, *match.groups()) for match, row in known if match), None)


@cache
def _answers() -> dict[str, list[tuple[str, str]]]:
    """Return what answers errors that are known by their text alone: words and functions, by a pattern of the text."""
    found = {}
    for paragraph in Path(__file__).with_name("answers.txt").read_text("utf-8").split("\n\n"):
        pattern, _, rest = paragraph.strip().partition("\n")
        lines = re.split(r"\n(?=(?:why|fix|change|tell): )", rest)
        found[pattern] = [(k, v.replace("\n", " ")) for k, _, v in (line.partition(": ") for line in lines)]
    return found


def _told(at: Failure, row: Sequence[tuple[str, str]], *given: str) -> Answer | None:
    """Return the answer of a row, with the line, and the parts of the message, in it.

    Of several fixes it is the first that changes something, or else the last.
    """
    found: dict[str, str] = {}
    changes: list[Change] = []
    for word, text in row:
        if word == "tell":
            return _function(text)(at, *given)  # type: ignore[no-any-return]
        if word == "change":
            name, _, file = text.partition(" ")  # which of the texts it changes, or else whatever it needs
            changes = _function(name)(getattr(at, file) if file else at, *given)
            if changes:
                break
        else:
            found[word] = text.format(*given, line=at.code(at.line))
    return Answer(found["why"], found["fix"], changes)


def _function(path: str) -> Any:
    file, name = path.split(".")
    return getattr(import_module(f"gradcli.script.errors.{file}"), name)


def _written(at: Failure, told: Answer) -> list[str]:
    """Return the two as paragraphs, their lines broken, and the lines to change as they are to be."""
    lines = _filled(f"why: {told.reason}") + _filled(f"fix: {told.fix}{':' if told.changes else '.'}")
    for change in told.changes:
        head = f"     {at.lines(change.places())}: "
        first, *more = change.shown()
        lines += [head + first, *(" " * len(head) + line for line in more)]
    return lines


def _filled(words: str) -> list[str]:
    """Return a paragraph in lines; code is broken only where a line is too short for it."""
    tied = re.sub("`[^`]*`", lambda code: code[0].replace(" ", TIED), words)
    return wrapped(tied, min(_MOST, page_width()), "     ")
