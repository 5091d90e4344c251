"""A line of a script that is explained: its text, and the names of tensors there."""

from __future__ import annotations

import linecache
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from tokenize import COMMENT, TokenError, generate_tokens
from types import CodeType
from typing import Any, NamedTuple

from gradcli.errors import Notes
from gradcli.process.script import Script, statement_at
from gradcli.record.naming import Names
from gradcli.script.known import Known
from gradcli.script.system import Recorded
from gradcli.text.wrapping import in_words


def without_comment(line: str) -> str:
    """Return a line without its comment.

    >>> without_comment("y = '#' + f(x,  # the input")
    "y = '#' + f(x,"
    """
    with suppress(TokenError, SyntaxError):  # the line may be a part of a statement
        for token in generate_tokens(iter([line]).__next__):
            if token.type == COMMENT:
                return line[: token.start[1]].rstrip()
    return line


@dataclass
class Scene:
    """A line of a script, or of a file that it imports, and the names that hold there."""

    script: Script
    line: int
    names: Names

    def file(self, line: int) -> str:
        """Return the file of a line: that of the script, if the line has none."""
        return getattr(line, "file", "") or self.script.name

    def source(self, line: int) -> str:
        """Return a line, stripped, without its comment."""
        file = self.file(line)
        is_main = file == self.script.name
        result = self.script.line(line) if is_main else linecache.getline(file, line).strip()
        return without_comment(result)

    def number(self, line: int) -> str:
        """Return the number of a line, with its file where that is not the script: 5, or 5 of helper.py."""
        return f"{int(line)}{self._of_file(line)}"

    def where(self, line: int) -> str:
        """Return a line in words: line 5, or line 5 of helper.py."""
        return f"line {self.number(line)}"

    def _of_file(self, line: int) -> str:
        file = self.file(line)
        return "" if file == self.script.name else f" of {Path(file).name}"

    def code(self, line: int) -> str:
        """Return a line with its number, for the middle of a sentence: line 3, `y = x.exp()`, with the comma."""
        result = self.source(line)
        return f"{self.where(line)}, `{result}`," if result else self.where(line)

    def lines(self, lines: Iterable[int]) -> str:
        """Return several lines in words: lines 5 and 7."""
        ordered = sorted({(self.file(line), int(line)): line for line in lines}.items())
        if len(ordered) == 1 or len({file for (file, _), _ in ordered}) > 1:
            return " and ".join(self.where(line) for _, line in ordered)
        numbers = [str(number) for (_, number), _ in ordered]
        if len(numbers) > 2 and int(numbers[-1]) - int(numbers[0]) == len(numbers) - 1:
            numbers = [f"{numbers[0]} to {numbers[-1]}"]
        return f"lines {in_words(numbers)}{self._of_file(ordered[0][1])}"


class Site(NamedTuple):
    """A call in a script: its line, the instruction of the innermost frame, and how many calls it runs within."""

    line: int
    code: CodeType | None = None
    instruction: int = 0
    depth: int = 0

    @classmethod
    def of(cls, line: int, frame: Any, depth: int = 0) -> Site:
        """Return the call that a frame of the script runs, at a line of the script itself."""
        return cls(line) if frame is None else cls(line, frame.f_code, frame.f_lasti, depth)


@dataclass
class CallScene(Scene):
    """The line of a call that is explained, its steps, and the system in its record, or why that is empty."""

    recorded: Recorded = field(default_factory=Recorded)
    trouble: str = ""
    site: Any = Site(0)  # noqa: RUF009  # under PyTorch, that of the record
    steps: bool = False  # whether the tables of steps are asked for
    unroll: bool = False  # whether each round of a loop is written
    has_gradients: bool = True  # whether the page shows the gradients
    known: Known = field(default_factory=Known)
    told: set[str] = field(default_factory=set)  # the surprises that a page has told already
    altered: bool = False  # whether the gradients are not those of the recorded operations at the values of now
    notes: Notes = field(default_factory=Notes)

    @property
    def statement(self) -> str:
        """The statement of the call, of several on its line."""
        code, file = self.site.code, self.file(self.line)
        if not isinstance(code, CodeType) or code.co_filename != file:
            return without_comment(code) if isinstance(code, str) else self.source(self.line)
        row, _, column, _ = next(islice(code.co_positions(), self.site.instruction // 2, None))
        lines = self.script.source.splitlines() if file == self.script.name else linecache.getlines(file)
        return without_comment(statement_at(lines[self.line - 1], column if row == self.line else None))
