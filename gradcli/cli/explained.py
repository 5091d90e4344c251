"""What `gradcli run` tells of a script: a page after each backward, and after an error why, and what mends it."""

from __future__ import annotations

import io
import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from gradcli.cli.streams import flush, tell

if TYPE_CHECKING:
    from gradcli.pytorch.autograd import Call
    from gradcli.pytorch.session import Ending, Script
    from gradcli.pytorch.trace import Recorded

_WIDTH = 80


@dataclass(frozen=True)
class Wishes:
    """What is to be told."""

    quiet: bool = False
    every: bool = False
    lines: frozenset[int] = frozenset()
    steps: bool = False
    style: str = "table"
    output: str | None = None


@dataclass
class _Waiting:
    """A call that is being explained: what was recorded before it, and where it stands."""

    line: int
    code: str
    recorded: Recorded | None
    trouble: str = ""


class Explainer:
    """Listens to the calls of a script, and tells of them."""

    def __init__(self, script: Script, wishes: Wishes) -> None:
        self.script = script
        self.wishes = wishes
        self.seen: Counter[int] = Counter()
        self.waiting: _Waiting | None = None
        self.parts: list[tuple[str, str]] = []  # of a document: its kind, and its text
        self.out = sys.stdout
        self.printed = io.StringIO()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Listen while the script runs."""
        from gradcli.pytorch.autograd import Listeners
        from gradcli.pytorch.record import Recorder

        if self.wishes.quiet:
            yield
            return
        Recorder.explains = True
        Listeners.before, Listeners.done = self.begins, self.is_done
        if self.wishes.style == "json":
            sys.stdout = sys.stderr
        elif self.document:
            sys.stdout = self.printed
        try:
            yield
        finally:
            Recorder.explains = False
            Listeners.before = Listeners.done = None
            sys.stdout = self.out

    @property
    def document(self) -> bool:
        """Whether all becomes one document."""
        return self.wishes.style in ("latex", "markdown")

    # Calls

    def begins(self, call: Call) -> None:
        """Take down what was recorded, before the call frees it."""
        from gradcli.errors import InputError
        from gradcli.pytorch.session import source_line
        from gradcli.pytorch.trace import names_of, recorded, script_frame

        frame = script_frame()
        line = self._line(frame)
        self.seen[line] += 1
        self.waiting = None
        if self.wishes.lines and line not in self.wishes.lines:
            return
        if self.seen[line] > 1 and not (self.wishes.every or self.wishes.lines or self.wishes.style == "json"):
            return
        waiting = _Waiting(line, source_line(self.script, line), None)
        try:
            waiting.recorded = recorded(call.roots, names_of(frame), self.script.source, call.implicit)
        except InputError as error:
            waiting.trouble = error.message
        self.waiting = waiting

    def _line(self, frame: Any) -> int:
        """Return the line of the script itself, where the call stands in another file."""
        while frame is not None:
            if frame.f_code.co_filename == self.script.name:
                return int(frame.f_lineno)
            frame = frame.f_back
        return 0

    def is_done(self, call: Call) -> None:
        """Tell of a call that is done."""
        waiting = self.waiting
        if waiting is None:
            return
        from gradcli.cli.script_pages import page, row

        if self.wishes.style == "json":
            flush()
            if waiting.recorded is not None:
                print(json.dumps(row(call, waiting.recorded, waiting.line, waiting.code)), file=self.out, flush=True)
            return
        text = page(call, waiting.recorded, self.wishes, waiting.trouble)
        title = f"line {waiting.line}: {waiting.code}"
        if self.document:
            self._keep_printed()
            self.parts.append(("page", f"{title}\n{text}"))
            return
        click.echo(_framed(title, text))

    def _keep_printed(self) -> None:
        if self.printed.getvalue():
            self.parts.append(("output", self.printed.getvalue()))
            self.printed.seek(0)
            self.printed.truncate()

    # The end

    def lacking(self, error: Any) -> None:
        """Tell what gradcli's torch lacks."""
        from gradcli.pytorch.session import line_of, source_line

        sys.stdout.flush()
        line = line_of(error)
        hint = f"\n  {error.hint}" if error.hint else ""
        code = source_line(self.script, line)
        shown = f"\n  line {line}: {code}" if code else ""
        tell(f"error: gradcli's torch has no `{error.name}`{shown}{hint}")

    def ended(self, ending: Ending) -> None:
        """Tell how the script ended, where it did not end well, and write the document."""
        from gradcli.pytorch.session import traceback_text

        with_output = self.document and not self.wishes.quiet
        if with_output:
            self._keep_printed()
        flush()
        if ending.error is not None:
            sys.stderr.write(traceback_text(ending.error))
            if not self.wishes.quiet:
                from gradcli.cli.script_errors import why

                text = why(ending.error, self.script)
                if text:
                    tell(text)
        if not self.wishes.quiet and self.wishes.style == "table" and not self.wishes.every:
            for line, count in sorted(self.seen.items()):
                if count > 1 and not self.wishes.lines:
                    tell(
                        f"note: line {line} was reached {count - 1:,} more time{'s' * (count > 2)}; --all explains each"
                    )
        if with_output:
            self._write(_document(self.script, self.parts, self.wishes.style))

    def _write(self, text: str) -> None:
        if self.wishes.output is None:
            click.echo(text.rstrip("\n"))
        else:
            from gradcli.data.replacement import write_whole

            write_whole(self.wishes.output, text.encode())


def _framed(title: str, text: str) -> str:
    """Return a page between two lines, the upper one with its title."""
    width = _columns()
    head = f"── {title} "
    return f"{head}{'─' * max(2, width - len(head))}\n{text.rstrip()}\n{'─' * width}"


def _columns() -> int:
    import shutil

    return min(120, shutil.get_terminal_size((_WIDTH, 24)).columns)


def _document(script: Script, parts: list[tuple[str, str]], style: str) -> str:
    """Return a script, what it printed and its pages as one document."""
    fences = {"markdown": ("```{}\n{}\n```\n", "### {}\n"), "latex": (_VERBATIM, "\\subsection*{{{}}}\n")}
    fence, heading = fences[style]
    found = [fence.format("python", script.source.rstrip("\n"))]
    for kind, text in parts:
        if kind == "output":
            found.append(fence.format("text", text.rstrip("\n")))
        else:
            title, _, body = text.partition("\n")
            found += [
                heading.format(f"`{title}`" if style == "markdown" else _escaped(title)),
                body.rstrip("\n") + "\n",
            ]
    return "\n".join(found)


_VERBATIM = "% {}\n\\begin{{verbatim}}\n{}\n\\end{{verbatim}}\n"


def _escaped(text: str) -> str:
    for character in "\\{}$&#_%^~":
        text = text.replace(character, rf"\char{ord(character)}{{}}" if character in "\\^~{}" else f"\\{character}")
    return rf"\texttt{{{text}}}"
