"""What `gradcli run` tells of a script: a page after each backward, and after an error why, and what mends it."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from gradcli.cli.streams import flush, tell
from gradcli.script.sums import Sums

if TYPE_CHECKING:
    from gradcli.cli.script_document import Document
    from gradcli.pytorch.backward import Call
    from gradcli.pytorch.session import Ending, Script
    from gradcli.script.check import Calls
    from gradcli.script.told import Told

_WIDTH = 80
_ROOM = 3000  # calls inside of calls
_PRINTED = 10**7  # characters in a document


@dataclass(frozen=True)
class Wishes:
    """What is to be told."""

    quiet: bool = False
    every: bool = False
    lines: frozenset[int] = frozenset()
    steps: bool = False
    style: str = "table"
    output: str | None = None
    check: bool = False


class _Kept(io.StringIO):
    """What a script prints, for a document: an endless one is cut off."""

    def __init__(self) -> None:
        super().__init__()
        self.left = _PRINTED

    def write(self, text: str) -> int:
        """Keep a text, as far as there is room."""
        if self.left > 0:
            super().write(text[: self.left] if len(text) <= self.left else f"{text[: self.left]}\n… and more …\n")
            self.left -= len(text)
        return len(text)

    def taken(self) -> str:
        """Return what was printed since."""
        text = self.getvalue()
        self.seek(0)
        self.truncate()
        return text


class Explainer:
    """Listens to the calls of a script, and tells of them."""

    def __init__(self, script: Script, wishes: Wishes) -> None:
        self.script = script
        self.wishes = wishes
        self.seen: Counter[int] = Counter()
        self.sums = Sums()
        self.warned: set[int] = set()
        self.waiting: dict[int, Told] = {}  # by the identity of the call that is running
        self.document: Document | None = None
        self.out = sys.stdout
        self.printed = _Kept()
        self.calls: Calls | None = None
        self.kept: list[str] = []  # for --output, of what goes to standard output otherwise

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Listen while the script runs."""
        from gradcli.pytorch.record import Recorder

        if self.wishes.check:
            with self._checking():
                yield
            return
        if self.wishes.quiet:
            yield
            return
        Recorder.explains, Recorder.stepped = True, self.stepped
        Recorder.before, Recorder.done = self.begins, self.is_done
        if self.wishes.style == "json":
            sys.stdout = sys.stderr
        elif self.wishes.style != "table":
            from gradcli.cli.script_document import Document

            self.document = Document(self.script, self.wishes.style)
            sys.stdout = self.printed
        try:
            yield
        finally:
            Recorder.explains, Recorder.stepped = False, None
            Recorder.before = Recorder.done = None
            sys.stdout = self.out

    @contextmanager
    def _checking(self) -> Iterator[None]:
        """Take down the calls of own functions while the script runs."""
        from gradcli.pytorch.record import Recorder
        from gradcli.script.check import Calls

        self.calls = Calls()
        Recorder.applied = self.calls.add
        if self.wishes.style == "json":
            sys.stdout = sys.stderr
        try:
            yield
        finally:
            Recorder.applied = None
            sys.stdout = self.out

    # Calls

    def begins(self, call: Call) -> None:
        """Take down what was recorded, before the call frees it."""
        from gradcli.errors import InputError
        from gradcli.script.calls import spans_of_calls
        from gradcli.script.naming import names_of, script_frame
        from gradcli.script.told import Told
        from gradcli.script.trace import recorded

        self.waiting.pop(id(call), None)  # of one that failed, and is gone
        frame = script_frame()
        line = self._line(frame)
        if not self._is_wanted(line):
            return
        told = Told(self.script, line, names_of(frame), steps=self.wishes.steps)
        told.reached = {id(x): x._reached for x in told.names.tensors.values() if x._reached is not None}
        try:
            with room():
                told.recorded = system = recorded(call, told.names, self.script.source)
                system.graph = replace(system.graph, spans=spans_of_calls(system.graph, system.calls))
        except InputError as error:
            told.trouble = error.message
        except Exception as error:  # the script goes on, whatever we cannot explain
            told.trouble = fault(error)
        self.waiting[id(call)] = told

    def _is_wanted(self, line: int) -> bool:
        """Count a line, and tell whether it is to be explained this time."""
        self.seen[line] += 1
        if self.wishes.lines and line not in self.wishes.lines:
            return False
        return self.seen[line] == 1 or self.wishes.every or self.wishes.style == "json"

    def _line(self, frame: Any) -> int:
        """Return the line of the script itself, where the call stands in another file."""
        while frame is not None:
            if frame.f_code.co_filename == self.script.name:
                return int(frame.f_lineno)
            frame = frame.f_back
        return 0

    def is_done(self, call: Call) -> None:
        """Tell of a call that is done."""
        from gradcli.script.naming import script_frame
        from gradcli.script.pages import page
        from gradcli.script.rows import row

        told = self.waiting.pop(id(call), None)
        if told is None:
            if self.sums.lines:
                self.sums.again(self._line(script_frame()), call)
            self._warn(call)
            return
        self.sums.first(told, call)
        if self.wishes.style == "json":
            self._print(json.dumps(row(call, told)))
            self._warn(call)
            return
        from gradcli.report.render import Look, render_pages

        try:
            with room():
                text = render_pages([page(call, told)], Look(self.wishes.style))
        except Exception as error:
            told.recorded, told.trouble = None, fault(error)
            text = render_pages([page(call, told)], Look(self.wishes.style))
        self._show(told.line, [text.rstrip("\n")])

    def _warn(self, call: Call) -> None:
        """Warn of a gradient that is not finite, once a line, where no page is shown that does."""
        import numpy as np

        from gradcli.script.gradients import not_finite
        from gradcli.script.naming import names_of, script_frame
        from gradcli.script.told import Told
        from gradcli.wrapping import wrapped

        if all(np.isfinite(own._a).all() for _, _, own, _ in call.leaves):
            return
        frame = script_frame()
        line = self._line(frame)
        if line not in self.warned:
            self.warned.add(line)
            times = f", reached {self.seen[line]:,} times" * (self.seen[line] > 1)
            flush()
            for text in not_finite(call, Told(self.script, line, names_of(frame))):
                tell("\n".join(wrapped(f"warning: line {line}{times}: {text}", _columns(), "  ")))

    def stepped(self, optimizer: Any, done: Sequence[Any]) -> None:
        """Tell what an optimizer did with the gradients."""
        from gradcli.script.naming import names_of, script_frame

        if self.wishes.style == "json":
            return
        frame = script_frame()
        line = self._line(frame)
        if self._is_wanted(line):
            from gradcli.script.steps import left_out, optimizers_of, step_lines

            names = names_of(frame)
            lines = step_lines(optimizer, done, lambda p: names.get(id(p), "p"))
            lines += left_out(names.tensors, optimizers_of(frame))
            self._show(line, lines, brief=True)

    def _show(self, line: int, lines: Sequence[str], brief: bool = False) -> None:
        """Show a page below its line, or a few lines behind it."""
        from gradcli.script.places import code_at

        code = code_at(self.script, line)
        if self.document is not None:
            self._keep_printed()
            if brief:
                self.document.words("\n".join([f"line {line}, {code}: {lines[0]}", *lines[1:]]))
            else:
                self.document.page(f"line {line}: {code}", "\n".join(lines))
        elif brief:
            from gradcli.wrapping import wrapped

            told = [f"line {line}, {code}: {lines[0]}", *(f"  {text}" for text in lines[1:])]
            self._print("\n".join(part for text in told for part in wrapped(text, _columns(), "    ")))
        else:
            self._print(_framed(f"line {line}: {code}", "\n".join(lines)))

    def _print(self, text: str) -> None:
        """Print to standard output, in its place among what the script prints, or keep it for the file."""
        flush()
        if self.wishes.output is not None:
            self.kept.append(text)
        else:
            click.echo(text, file=self.out)
            self.out.flush()

    def _keep_printed(self) -> None:
        if self.document is not None:
            self.document.output(self.printed.taken())

    # The end

    def check(self) -> None:
        """Refuse a file that cannot be written, before the script runs."""
        if self.wishes.output is not None:
            from gradcli.data.replacement import check_target

            check_target(self.wishes.output)

    def interrupted(self) -> None:
        """Tell of what was reached until the script was interrupted."""
        flush()
        self.again()

    def lacking(self, error: Any) -> None:
        """Tell what gradcli's torch lacks."""
        from gradcli.pytorch.session import line_of, source_line

        flush()
        line = line_of(error)
        hint = f"\n  {error.hint}" if error.hint else ""
        code = source_line(self.script, line)
        shown = f"\n  line {line}: {code}" if code else ""
        tell(f"error: gradcli's torch has no `{error.name}`{shown}{hint}")

    def ended(self, ending: Ending) -> None:
        """Tell how the script ended, where it did not end well, and write the document."""
        from gradcli.pytorch.session import traceback_text

        flush()
        if ending.error is not None:
            text = traceback_text(ending.error)
            if ending.hook is None:
                sys.stderr.write(text)
            else:  # the script shows errors itself
                ending.hook(type(ending.error), ending.error, ending.error.__traceback__)
            if not self.wishes.quiet:
                from gradcli.script.errors import why

                try:
                    told = why(ending.error, self.script)
                except Exception as error:
                    told = fault(error)
                if told:
                    tell(told)
                self._keep_printed()
                if self.document is not None:
                    self.document.words(text + told)
        self.again()
        self._write()

    def verdicts(self) -> bool:
        """Tell what was found of the script's own functions; return whether one is not right."""
        from gradcli.explain.check_page import check_page
        from gradcli.report.data_lines import json_lines
        from gradcli.report.render import Look, render_pages

        assert self.calls is not None
        result = self.calls.result()
        if not result.verdicts:
            tell("note: the script calls no autograd.Function, so that there is nothing to check")
        elif self.wishes.style == "json":
            self._print("\n".join(json_lines(result)))
        else:
            self._print(render_pages([check_page(result)], Look(self.wishes.style)).rstrip("\n"))
        self._write()
        return not result.right

    def again(self) -> None:
        """Tell which lines were reached again."""
        if self.wishes.quiet or self.wishes.every or self.wishes.style != "table":
            return
        for line in sorted(self.wishes.lines - self.seen.keys()):
            there = f"; at {_listed(sorted(self.seen))} something is" if self.seen else ""
            tell(f"note: nothing at line {line} is explained{there}")
        for line, count in sorted(self.seen.items()):
            if count > 1 and (not self.wishes.lines or line in self.wishes.lines):
                sums = self.sums.words(line)
                more = f"line {line}, {count - 1:,} more time{'s' * (count > 2)}; --all shows them"
                tell(f"{more}: {sums}" if sums else more)

    def _write(self) -> None:
        """Write the document, or what was kept for a file."""
        if self.wishes.quiet and not self.kept:
            return
        self._keep_printed()
        text = self.document.whole() if self.document is not None else "\n".join(self.kept)
        if self.wishes.output is not None:
            from gradcli.data.replacement import write_whole

            write_whole(self.wishes.output, (text.rstrip("\n") + "\n").encode())
        elif self.document is not None:
            click.echo(text.rstrip("\n"))


@contextmanager
def room() -> Iterator[None]:
    """Let an explanation recurse, however deep the script is, and whatever limit it has set."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(before + _ROOM)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _listed(lines: Sequence[int]) -> str:
    if len(lines) == 1:
        return f"line {lines[0]}"
    return f"lines {', '.join(map(str, lines[:-1]))} and {lines[-1]}"


def fault(error: Exception) -> str:
    """Return in words that an explanation failed."""
    if os.environ.get("GRADCLI_TRACEBACK"):
        raise error
    return f"a fault of gradcli's, please report it: {type(error).__name__}: {error}"


def _framed(title: str, text: str) -> str:
    """Return a page between two lines, the upper one with its title."""
    width = _columns()
    title = title if len(title) <= width - 8 else title[: width - 9].rstrip() + "…"
    head = f"── {title} "
    return f"{head}{'─' * max(2, width - len(head))}\n{text.rstrip()}\n{'─' * width}"


def _columns() -> int:
    return min(120, shutil.get_terminal_size((_WIDTH, 24)).columns)
