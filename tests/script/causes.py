"""Broken scripts with their causes: an error, or a gradient that is not what was meant, without a word of PyTorch's.

Behind each script stands a part of the sentence that gradcli says of it, and what holds once the lines of its fix are
changed, and those that end with `  # fix: …`, whose fix is a sentence; nothing where no line says it.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from broken import HEAD

from gradcli.process.script import Script
from gradcli.pytorch.session import run
from gradcli.script.errors import warnings
from gradcli.script.errors.failure import Answer
from gradcli.script.errors.source import Change, changed
from gradcli.script.errors.why import answer
from gradcli.script.explainer import Explainer, knows
from gradcli.script.shown import Printed
from tests.comparison import titled

HERE = Path(__file__).parent


class Cause(NamedTuple):
    """A script, a part of what is said of it, and what holds of the fixed script alone; "" where no line fixes it."""

    text: str
    why: str
    right: str

    def fixed(self) -> str:
        """Return the script with the fixes that are said in words: what stands behind `  # fix: ` in a line."""
        return re.sub(r"^( *).*  # fix: (.*)$", r"\1\2", self.text, flags=re.MULTILINE)

    def checked(self, text: str) -> str:
        """Return a form of the script that fails if it is not right."""
        return f"{text}assert {self.right or 'True'}\n"


def read(name: str) -> dict[str, Cause]:
    """Return the scripts of a file."""
    return {title: _cause(text) for title, text in titled(HERE / name).items()}


def _cause(text: str) -> Cause:
    code, why, right = re.split(r"^# (?:why|right):", text, flags=re.MULTILINE)
    return Cause(HEAD + code, " ".join(why.replace("\n# ", " ").split()), right.strip())


COLLECTED = read("collected.txt")  # as collected_rule.txt says
CAUSES = read("causes.txt") | COLLECTED


class Told(NamedTuple):
    """What gradcli says of a script: its answers, the text of its pages and notes, and how the script ends."""

    answers: list[Answer]
    text: str
    error: BaseException | None

    @property
    def changes(self) -> list[Change]:
        """The lines that the fixes change."""
        return list(dict.fromkeys(change for a in self.answers for change in a.changes))

    def fixed(self, text: str) -> str:
        """Return the script with its fixes."""
        return changed(text, self.changes)


def told(text: str) -> Told:
    """Run a script, and return what is said of it on its pages, and of its error."""
    answers, notes = [], io.StringIO()
    script = Script(text, "script.py", None)
    with contextlib.redirect_stdout(notes), _collected(answers):
        explainer = Explainer(script, Printed(), notes.write)
        with explainer.listening():
            error = run(script).error
            if error is not None and (result := answer(error, script, knows)) is not None:
                answers.append(result)
        explainer.again()
    said = [f"{a.reason} {a.fix}" for a in answers]
    return Told(answers, " ".join([*said, *notes.getvalue().split()]), error)


@contextlib.contextmanager
def _collected(answers: list[Answer]) -> Iterator[None]:
    """Keep the answers of pages in a list within a block."""
    shown = warnings.fixed

    def fixed(result: Answer, scene: Any) -> Any:
        answers.append(result)
        return shown(result, scene)

    warnings.fixed = fixed
    try:
        yield
    finally:
        warnings.fixed = shown
