"""What `gradcli run` prints beside what a script prints: its pages, how it ended, and the document."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from gradcli.cli.streams import flush, tell

if TYPE_CHECKING:
    from gradcli.pytorch.session import Ending, Script
    from gradcli.script.check import Calls
    from gradcli.script.document import Document
    from gradcli.script.teller import Teller, Wishes

_MOST = 120  # columns of a page


class Printed:
    """Prints to standard output, in its place among what the script prints, or keeps what is for a file."""

    def __init__(self, alone: bool, keeps: bool) -> None:
        self.out = sys.stdout
        self.stream = sys.stderr if alone else sys.stdout  # what the script prints to
        self.kept: list[str] | None = [] if keeps else None

    def page(self, title: str, text: str) -> None:
        """Show a page between two lines, the upper one with its title."""
        width = _columns()
        title = title if len(title) <= width - 8 else title[: width - 9].rstrip() + "…"
        head = f"── {title} "
        self.text(f"{head}{'─' * max(2, width - len(head))}\n{text.rstrip()}\n{'─' * width}")

    def words(self, lines: Sequence[str]) -> None:
        """Show a few lines; those behind the first are indented."""
        from gradcli.wrapping import wrapped

        told = [lines[0], *(f"  {text}" for text in lines[1:])]
        self.text("\n".join(part for text in told for part in wrapped(text, _columns(), "    ")))

    def text(self, text: str) -> None:
        """Show a text."""
        flush()
        if self.kept is not None:
            self.kept.append(text)
        else:
            click.echo(text, file=self.out)
            self.out.flush()

    def whole(self) -> str:
        """Return what was kept."""
        return "\n".join(self.kept or ())


class Explainer:
    """Tells of a script while it runs, and of its end."""

    def __init__(self, script: Script, wishes: Wishes, output: str | None, quiet: bool, checks: bool) -> None:
        self.script, self.style, self.output, self.quiet = script, wishes.style, output, quiet or checks
        self.teller: Teller | None = None
        self.calls: Calls | None = None
        alone = self.style == "json" and (checks or not quiet)
        self.shown: Printed | Document = Printed(alone, output is not None)
        if output is not None:
            from gradcli.data.replacement import check_target

            check_target(output)
        if checks:
            from gradcli.script.check import Calls

            self.calls = Calls()
        elif not quiet:
            from gradcli.script.teller import Teller

            if self.style in ("markdown", "latex"):
                from gradcli.script.document import Document

                self.shown = Document(script.source, self.style)
            self.teller = Teller(script, wishes, self.shown, _warn)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Listen while the script runs."""
        before, sys.stdout = sys.stdout, self.shown.stream
        listens = self.calls or self.teller
        try:
            if listens is None:
                yield
            else:
                with listens.listening():
                    yield
        finally:
            sys.stdout = before

    def again(self) -> None:
        """Tell of the lines that were reached again."""
        flush()
        for text in self.teller.again() if self.teller is not None else ():
            tell(text)

    def lacking(self, error: Any) -> None:
        """Tell what gradcli's torch lacks."""
        from gradcli.pytorch.session import line_of, source_line

        flush()
        line = line_of(error)
        hint = f"\n  {error.hint}" if error.hint else ""
        code = source_line(self.script, line)
        shown = f"\n  line {line}: {code}" if code else ""
        tell(f"error: gradcli's torch has no `{error.name}`{shown}{hint}")

    def ended(self, ending: Ending) -> bool:
        """Tell how the script ended, and write the document; return whether an own function is found to be wrong."""
        flush()
        if ending.error is not None:
            self._failed(ending.error, ending.hook)
        self.again()
        wrong = self.calls is not None and self._verdicts(self.calls)
        if not self.quiet or self.shown.whole():
            self._write(self.shown.whole().rstrip("\n"))
        return wrong

    def _failed(self, error: BaseException, hook: Any) -> None:
        """Show the traceback, then why, and what mends it."""
        from gradcli.pytorch.session import traceback_text

        text = traceback_text(error)
        if hook is None:
            sys.stderr.write(text)
        else:  # the script shows errors itself
            hook(type(error), error, error.__traceback__)
        if self.quiet:
            return
        from gradcli.script.errors.why import why
        from gradcli.script.teller import fault

        try:
            told = why(error, self.script)
        except Exception as own:
            told = fault(own)
        if told:
            tell(told)
        if not isinstance(self.shown, Printed):
            self.shown.words([text + told])

    def _verdicts(self, calls: Calls) -> bool:
        from gradcli.explain.check_page import check_page
        from gradcli.report.data_lines import json_lines
        from gradcli.report.render import Look, render_pages

        result = calls.result()
        if not result.verdicts:
            tell("note: the script calls no autograd.Function, so that there is nothing to check")
        elif self.style == "json":
            self.shown.text("\n".join(json_lines(result)))
        else:
            self.shown.text(render_pages([check_page(result)], Look(self.style)).rstrip("\n"))
        return not result.right

    def _write(self, text: str) -> None:
        if self.output is not None:
            from gradcli.data.replacement import write_whole

            write_whole(self.output, (text + "\n").encode())
        elif not isinstance(self.shown, Printed):
            click.echo(text)


def _warn(text: str) -> None:
    from gradcli.wrapping import wrapped

    flush()
    tell("\n".join(wrapped(text, _columns(), "  ")))


def _columns() -> int:
    from gradcli.wrapping import page_width

    return min(_MOST, page_width())
