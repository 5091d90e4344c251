"""The user's mistakes: each with its place in the text and a hint."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

from gradcli.text.wrapping import PIPE, cells, wrapped

# An error is read on a terminal: a longer line is shown as a window around the caret.
_MARGIN = 4  # columns beside an excerpt
_LONG = re.compile(r"`([^`]{40})[^`]{20,}`")
_MESSAGE = 2_000  # characters of a message, of a hint, or of a note


@dataclass(frozen=True, repr=False)
class Source:
    """A text the user gave, and where it came from (`None` for the command line).

    `is_python` says that it is a Python program, whose expressions are not formulas.
    """

    text: str
    label: str | None = None
    is_python: bool = False

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0] + [i + 1 for i, c in enumerate(self.text) if c == "\n"]

    def locate(self, offset: int) -> tuple[int, int]:
        """Return the line and column, from 0, of a character offset.

        >>> Source("a = 1\\nb = 2").locate(6)
        (1, 0)
        """
        line = bisect_right(self._line_starts, offset) - 1
        return line, offset - self._line_starts[line]


class Span(NamedTuple):
    """Characters `start` to `end` (exclusive) of a source."""

    source: Source
    start: int
    end: int

    @property
    def text(self) -> str:
        """The characters themselves."""
        return self.source.text[self.start : self.end]

    @property
    def line(self) -> str:
        r"""The characters on one line, without comments, and without a backslash that continued one.

        >>> Span(Source("y = (x  # the first\n + \\\n  2)"), 4, 30).line
        '(x + 2)'
        """
        return " ".join(re.sub(r"#[^\n]*", "", self.text).replace("\\", " ").split())

    @property
    def place(self) -> str:
        """The line of a file as the end of a sentence: ` (line 3 of net.grad)`; "" for the command line."""
        line, _ = self.source.locate(self.start)
        return f" (line {line + 1} of {self.source.label})" if self.source.label else ""


class Fix(NamedTuple):
    """A correction: what to type in place of a span of an argument, of a file, or of the whole command line."""

    span: Span
    text: str

    @property
    def corrected(self) -> str:
        """The whole text, corrected.

        >>> Fix(Span(Source("y = 2x"), 4, 6), "2*x").corrected
        'y = 2*x'
        """
        before = self.span.source.text
        return before[: self.span.start] + self.text + before[self.span.end :]


@dataclass(eq=False)
class InputError(Exception):
    """A mistake in what was asked: exit status 2, a caret, and a way out.

    `message` says what is wrong in one sentence, `hint` how to fix it, and `fix` is the correction itself where there
    is exactly one; without a hint, it is the hint.  `about` is the part of the system that is wrong: the caller who
    knows where that was written gives the error its position.  `key` names the kind of error and `facts` its values,
    for a caller that has a message of its own.  `options` are the options of the command line that it is about, and
    `text` is a text in the value of one of them, or a whole argument.
    """

    message: str
    span: Span | None = None
    hint: str | None = None
    about: Any = None
    fix: Fix | None = None
    key: str = ""
    facts: tuple[Any, ...] = ()
    options: tuple[str, ...] = ()
    text: str | None = None

    def __post_init__(self) -> None:
        if self.hint is None and self.fix is not None:
            self.hint = f"write `{self.fix.text}`"

    def __reduce__(self) -> tuple[type[InputError], tuple[Any, ...]]:
        # An exception is pickled by its `args`, which a dataclass leaves empty.
        shown = (self.message, self.span, self.hint, None, self.fix)
        return InputError, (*shown, self.key, self.facts, self.options, self.text)

    def at(self, span: Span | None) -> InputError:
        """Return the error, at `span` unless it has a position already."""
        if self.span is None:
            self.span = span
        return self

    def __str__(self) -> str:
        return self.render()

    def render(self, width: int | None = None, lead: str = "") -> str:
        """Return the message behind `lead`, the line with a caret under the span, and the hint, in lines of a width.

        >>> print(InputError("unknown function `sinn`", Span(Source("y = sinn(x)"), 4, 8)).render())
        unknown function `sinn`
          y = sinn(x)
              ^^^^
        """
        text = lead + brief(_LONG.sub(r"`\1…`", self.message))
        lines = text.split("\n") if width is None else in_lines(text, width)
        if self.span is not None:
            lines += _excerpt(self.span, (width or PIPE) - _MARGIN)
        if self.hint:
            hint = f"  {brief(self.hint)}"
            lines += hint.split("\n") if width is None else in_lines(hint, width)
        return "\n".join(lines)


def option_error(option: str, message: str, hint: str | None = None, text: str | None = None) -> InputError:
    """Return the error of an option of the command line; the caret is under `text` in its value, or under the option.

    >>> option_error("--v", "v is a letter", text="v").options
    ('--v',)
    """
    return InputError(message, hint=hint, options=(option,), text=text)


def brief(text: str) -> str:
    """Return a message that is not longer than a screen: names and shapes may be of any length."""
    return text if len(text) <= _MESSAGE else f"{text[:_MESSAGE]}…"


def in_lines(text: str, width: int) -> list[str]:
    """Return a message in lines, those that go on with four spaces in front."""
    return [part for line in text.split("\n") for part in wrapped(line, width, "    ")]


def _excerpt(span: Span, window: int) -> list[str]:
    """Return the line of a span and the carets below it."""
    number, column = span.source.locate(span.start)
    start = span.start - column
    end = span.source.text.find("\n", start)
    line = span.source.text[start : end if end >= 0 else None].rstrip("\r")
    width = max(1, min(span.end, start + len(line)) - span.start)
    if len(line) > window:
        cut = max(0, min(column - window // 2, len(line) - window))
        line = ("…" if cut else "") + line[cut : cut + window] + ("…" if cut + window < len(line) else "")
        column -= cut - (1 if cut else 0)
        width = min(width, window - min(column, window - 1))
    # Control characters would move the caret, or the reader's terminal.
    line = "".join(c if c.isprintable() else "�" for c in line.replace("\t", " "))
    label = span.source.label
    where = f"in {label}" if label and label.startswith("-") else f"{label}, line {number + 1}"
    head = [f"  {where}:"] if label else []
    return [*head, f"  {line}", f"  {' ' * cells(line[:column])}{'^' * width}"]


def did_you_mean(name: str, known: Iterable[str], prefix: str = "") -> str | None:
    """Return a hint with the known names nearest to `name`, if any is near, each with a prefix.

    >>> did_you_mean("sihn", ["sinh", "cosh"]), did_you_mean("R", ["q", "r"])
    ('did you mean `sinh`?', 'did you mean `r`?')
    """
    import difflib

    some = list(islice(known, 5000))
    near = [n for n in some if n.casefold() == name.casefold()]
    near = near[:2] or difflib.get_close_matches(name[:40], some, n=2, cutoff=0.6)
    return "did you mean " + " or ".join(f"`{prefix}{n}`" for n in near) + "?" if near else None


def nearest(name: str, known: Iterable[str], what: str) -> str | None:
    """Return a hint with the nearest known names, or with the first of them all, or None where there are none.

    >>> nearest("q", ["x0", "x1"], "inputs")
    'the inputs are x0, x1'
    """
    known = list(islice(known, 5000))
    if not known:
        return None
    listed = ", ".join(known[:8]) + (", …" if len(known) > 8 else "")
    return did_you_mean(name, known) or f"the {what} are {listed}"


def unknown_name(option: str, name: str, wrong: str, known: Iterable[str], what: str) -> InputError:
    """Return the error of an option with a name that is none of those known, and what is wrong with it."""
    return option_error(option, f"{option}: {wrong}", nearest(name, known, what), name)


@dataclass
class Notes:
    """Notes and warnings of a computation, in order and once each."""

    lines: list[str] = field(default_factory=list)

    def add(self, kind: str, text: str) -> None:
        """Add a line such as `note: …` or `warning: …`, unless it is there already."""
        line = f"{kind}: {brief(text)}"
        if line not in self.lines:
            self.lines.append(line)

    def extend(self, other: Notes) -> tuple[str, ...]:
        """Add the lines of other notes that are not there already; return all lines of the other notes."""
        self.lines += [line for line in other.lines if line not in self.lines]
        return tuple(other.lines)
