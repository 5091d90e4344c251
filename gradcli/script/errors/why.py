"""The answer to an error, as lines: what happened, what mends it, and where the guide has more."""

from __future__ import annotations

import re

from gradcli.guide.messages import find
from gradcli.pytorch.session import Script
from gradcli.script.errors.failure import Answer, Failure
from gradcli.script.errors.kinds import BY_KIND
from gradcli.script.errors.messages import BY_TEXT
from gradcli.wrapping import TIED, page_width, wrapped

_MOST = 100  # columns


def why(error: BaseException, script: Script) -> str:
    """Return what happened, what mends it, and where the guide has more; nothing where PyTorch's message says all."""
    guide = find(str(error))
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
    kind = getattr(error, "kind", None)
    if kind in BY_KIND:
        return BY_KIND[kind](at, *error.subjects)  # type: ignore[attr-defined]
    known = ((re.search(part, at.message, re.DOTALL), tell) for part, tell in BY_TEXT.items())
    return next((tell(at, *match.groups()) for match, tell in known if match), None)


def _written(at: Failure, told: Answer) -> list[str]:
    """Return the two as paragraphs, their lines broken, and the lines to change as they are to be."""
    lines = _filled(f"why:  {told.reason}") + _filled(f"mend: {told.mend}{':' if told.changes else '.'}")
    for change in told.changes:
        head = f"      {at.lines(change.places())}: "
        first, *more = change.shown()
        lines += [head + first, *(" " * len(head) + line for line in more)]
    return lines


def _filled(words: str) -> list[str]:
    """Return a paragraph in lines; code is broken only where a line is too short for it."""
    tied = re.sub("`[^`]*`", lambda code: code[0].replace(" ", TIED), words)
    return wrapped(tied, min(_MOST, page_width()), "      ")
