"""The answer to an error, as lines: what happened, what fixes it, and where the guide has more."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from gradcli.process.script import Script
from gradcli.pytorch.tables import pytorch_names
from gradcli.record.naming import Names
from gradcli.script.errors import fixes
from gradcli.script.errors.failure import Answer, Failure, Knows, is_module, message_of
from gradcli.script.errors.source import Change
from gradcli.script.errors.under_pytorch import facts
from gradcli.text.wrapping import TIED, page_width, wrapped

_MOST = 100  # columns


def why(error: BaseException, script: Script, knows: Knows) -> str:
    """Return the cause of an error, its fix, and the guide's topic; "" where PyTorch's message says it all.

    `knows` gives what is known of the tensors with names, and of an error: its key among PyTorch's messages.
    """
    topics: list[str] = []
    lines: list[str] = []
    for at, row, answered in _answered(error, script, knows):
        topics.append(row.topic)
        if answered is not None:
            topics.insert(0, answered.topic)
            lines = _written(at, answered)
            break
    topic = next(filter(None, topics), "")
    return "\n".join([*lines, *([f"more: gradcli explain {topic}"] if topic and not _is_of_none(error) else [])])


def answer(error: BaseException, script: Script, knows: Knows) -> Answer | None:
    """Return the explanation of an error, or None."""
    return next((answered for *_, answered in _answered(error, script, knows) if answered is not None), None)


def _answered(error: BaseException, script: Script, knows: Knows) -> Iterator[tuple[Failure, Row, Answer | None]]:
    """Yield where an error arose, and those that caused it, each with its row and the answer to it."""
    for e in _chain(error):
        is_known = knows(e, Names()).key in _rows("error") or any(re.search(p, message_of(e)) for p in _rows("text"))
        at = Failure.of(e, script, knows) if is_known else None
        row, facts = _row(at) if at is not None else (None, ())
        if at is not None and row is not None:
            yield at, row, _filled_in(at, row, *facts)


def _is_of_none(error: BaseException) -> bool:
    """Return whether an attribute is missing of a None that is not a gradient, as tensors have no such attribute."""
    of_none = isinstance(error, AttributeError) and error.name is not None and error.obj is None
    return of_none and error.name not in pytorch_names()["Tensor"]  # type: ignore[attr-defined]


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, and those that caused it."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


class Row(NamedTuple):
    """The answer to an error: sentences, edits and functions, each with what it is for; and the guide's topic.

    A `why` and a `fix` are sentences.  A `change` is a function that returns lines of the script, an `edit` that of
    `fixes.of_call`, and a `resize` the sizes of a layer, as `fixes.resized` takes them.  A `tell` returns the answer.
    """

    parts: Sequence[tuple[str, str]]
    topic: str


def _row(at: Failure) -> tuple[Row | None, Sequence[Any]]:
    """Return the row of an error, and the facts that its functions take."""
    if at.known.key and not at.known.is_live:
        row = _rows("error").get(at.known.key)
        return row, at.known.facts if row is not None else ()
    found = ((re.search(pattern, at.message), row) for pattern, row in _rows("text").items())
    of_python = next(((row, match.groups()) for match, row in found if match), (None, ()))
    if not at.known.is_live:
        return of_python
    is_asserted = at.message.startswith("AssertionError")  # by PyTorch, where its message is known
    row = _rows("error").get(at.known.key)
    if row is None or (of_python[0] is not None and not is_asserted):
        return of_python
    known = facts(at)
    texts = [part for part in row.parts if "gradcli" not in part[1]]  # which tells of the emulation
    return (Row((), row.topic), ()) if known is None else (Row(texts, row.topic), known)


@cache
def _rows(kind: str) -> dict[str, Row]:
    """Return the rows of `answers.txt` of a kind, for errors of gradcli's `torch`, or for those that Python raises.

    An `error` has a key of `messages.txt`, a `text` a pattern, as what Python raises has no key.
    """
    result: dict[str, Row] = {}
    for paragraph in Path(__file__).with_name("answers.txt").read_text("utf-8").strip().split("\n\n"):
        lines = re.split(r"\n(?=(?:error|why|fix|change|edit|resize|tell|more): )", paragraph)
        parts = [(word, text.replace("\n", " ")) for word, _, text in (line.partition(": ") for line in lines)]
        row = [part for part in parts if part[0] not in ("error", "text", "more")]
        topic = next((text for word, text in parts if word == "more"), "")
        for key in [text for word, text in parts if word == kind]:
            known = result.get(key, Row((), ""))
            result[key] = Row([*known.parts, *row], known.topic or topic)
    return result


def _filled_in(at: Failure, row: Row, *facts: Any) -> Answer | None:
    """Return the answer of a row, with the line and the facts of the error in it.

    Its fix is the first whose change alters the script, or else the last.
    """
    result: dict[str, str] = {}
    changes: Sequence[Change] = ()
    for word, text in row.parts:
        if word == "tell":
            if (answer := _function(text)(at, *facts)) is not None:
                return answer  # type: ignore[no-any-return]
        elif word in _CHANGES:
            if changes := _CHANGES[word](at, text, facts):
                break
        else:
            try:
                shown = [tuple(f) if isinstance(f, list | tuple) else f for f in facts]
                result[word] = text.format(*shown, line=at.code(at.line), layer=_layer(at))
            except IndexError:  # a message that does not have all facts
                return None
    return Answer(result["why"], result["fix"], changes) if {"why", "fix"} <= {*result} else None


def _changed(at: Failure, text: str, facts: Sequence[Any]) -> Sequence[Change]:
    """Return the changes of a function, of the text of the file, where the row names that, or else of the failure."""
    name, _, file = text.partition(" ")
    return _function(name)(getattr(at, file) if file else at)  # type: ignore[no-any-return]


def _resized(at: Failure, text: str, facts: Sequence[Any]) -> Sequence[Change]:
    kinds, size, new = text.format(*facts).split()
    return fixes.resized(at, kinds.split(","), (int(size),), (int(new),))


_CHANGES: Mapping[str, Callable[[Failure, str, Sequence[Any]], Sequence[Change]]] = {
    "change": _changed,
    "edit": lambda at, text, facts: fixes.of_call(at, text),
    "resize": _resized,
}


def _layer(at: Failure) -> str:
    """Return the script's name of the layer that failed."""
    return next((at.text.of(c.func) for c in at.failed_calls() if is_module(at.value(c.func))), "this layer")


def _function(path: str) -> Any:
    file, name = path.split(".")
    return getattr(import_module(f"gradcli.script.errors.{file}"), name)


def _written(at: Failure, answered: Answer) -> list[str]:
    """Return the two as paragraphs, their lines broken, and the lines to change as they are to be."""
    lines = _filled(f"why: {answered.reason}")
    lines += _filled(f"fix: {answered.fix}{':' if answered.changes else '.'}") if answered.fix else []
    for change in answered.changes:
        head = f"     {at.lines(change.places())}: "
        first, *more = change.shown()
        lines += [head + first, *(" " * len(head) + line for line in more)]
    return lines


def _filled(words: str) -> list[str]:
    """Return a paragraph in lines; code is broken only where a line is too short for it."""
    tied = re.sub("`[^`]*`", lambda code: code[0].replace(" ", TIED), words)
    return wrapped(tied, min(_MOST, page_width()), "     ")
