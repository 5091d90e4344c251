"""Explains the backwards of a script that runs under PyTorch: which of them have a page, and what is noted."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from gradcli.process.activity import lasting
from gradcli.process.tracebacks import text_of
from gradcli.pytorch.session import Script
from gradcli.realtorch.start import started_with_torch
from gradcli.record.record import CallSite, OptimizerStep, Record
from gradcli.script.shown import Printed, columns
from gradcli.text.wrapping import in_words, wrapped


@dataclass
class PyTorchExplainer:
    """Listens to a script under PyTorch, and shows a page for each backward line."""

    script: Script
    shown: Printed
    note: Callable[[str], None]
    style: str = "table"
    every: bool = False
    lines: frozenset[int] = frozenset()
    steps: bool = False
    round: int = 0
    only: Sequence[str] = ()
    unroll: bool = False  # rounds of loops are written out
    seen: Counter[CallSite] = field(default_factory=Counter)
    more: Mapping[CallSite, int | None] = field(default_factory=dict)  # how often lines ran that were not counted then

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Record the script's calls from its import of PyTorch on."""
        with started_with_torch(self._start):
            yield

    def _start(self, stack: ExitStack) -> None:
        from gradcli.realtorch.driver import Session
        from gradcli.realtorch.lines import Lines

        is_endless = self.every or self.style == "json"
        lines = None if is_endless else Lines(self.script.name, self.lines)
        explain_step = None if self.style == "json" else self._explain_step
        session = Session(self._wants, self._explain, lines, explain_step)
        self.seen, self.more = session.reached, session.updates.more
        stack.enter_context(session.running())

    def _wants(self, site: CallSite, times: int) -> bool:
        if self.lines and site.line not in self.lines:
            return False
        if self.round:
            return times == self.round
        return times == 1 or self.every or self.style == "json"

    def _explain(self, record: Record | Exception, site: CallSite, recorded: bool) -> None:
        """Show the page of a backward."""
        try:
            if isinstance(record, Exception):
                raise record
            with lasting(f"explaining line {site.line}"):
                text = self._text(record, recorded)
        except Exception as error:
            text = f"not explained: {_fault(error)}"
        if self.style == "json":
            self.shown.text(text)
        else:
            self.shown.page(self._title(site), text)

    def _explain_step(self, steps: Sequence[OptimizerStep], site: CallSite) -> None:
        """Show what an optimizer did with the gradients."""
        from gradcli.script.pages.steps import rules_lines

        try:
            first, *more = rules_lines(steps)
        except Exception as error:
            first, more = f"not explained: {_fault(error)}", []
        self.shown.words([f"{self._title(site).replace(': ', ', ', 1)}: {first}", *more])

    def _title(self, site: CallSite) -> str:
        where = "" if site.file == self.script.name else f" of {Path(site.file).name}"
        return f"line {site.line}{where}: {site.code}"

    def _text(self, record: Record, recorded: bool) -> str:
        from gradcli.report.render import Look, render_pages
        from gradcli.script.under_pytorch.page import page_of, row_of

        (backward,) = record.backwards
        if self.style == "json":
            return json.dumps(row_of(record, self.script))
        page = page_of(record, self.steps, self.only, self.script, self.unroll)
        if not recorded:
            line = backward.site.line
            page = page.with_notes(
                [f"note: met after the recording ended, so it has no formulas: --line {line} shows them"]
            )
        return render_pages([page], Look("table" if self.style == "html" else self.style)).rstrip("\n")

    def failed(self, error: BaseException, text: str) -> None:
        """Note what PyTorch's message means; `text` is the traceback that was printed."""
        from gradcli.process.tracebacks import line_of
        from gradcli.script.errors.under_pytorch import known_under_pytorch
        from gradcli.script.errors.why import why

        try:
            reason = why(error, self.script, known_under_pytorch())
        except Exception as fault:
            reason = f"not explained: {_fault(fault)}"
        if reason:
            self.note(reason)
        self.shown.failed(text + reason, line_of(error))

    def again(self) -> None:
        """Note which lines were reached again."""
        if self.round and max(self.seen.values(), default=0) < self.round:
            self.note(f"note: no line is reached {self.round:,} times")
        if self.every or self.style != "table":
            return
        sites = {site.line for site in self.seen}
        for line in sorted(self.lines - sites):
            known = (
                f"; there are calls at line{'s' * (len(sites) > 1)} {in_words([*map(str, sorted(sites))])}"
                if sites
                else ""
            )
            self.note(f"note: line {line} has no call to explain{known}")
        for line in sorted(sites):
            here = [site for site in self.seen if site.line == line]
            uncounted = [self.more[site] for site in here if site in self.more]
            count = sum(self.seen[site] - 1 for site in here) + sum(filter(None, uncounted))
            about = "at least " if None in uncounted else "about " if any(uncounted) else ""
            if count and (not self.lines or line in self.lines):
                times, it = ("time", "it") if count == 1 else ("times", "them")
                more = f"line {line}, {about}{count:,} more {times}; --all shows {it}"
                self.note("\n".join(wrapped(more, columns(), "  ")))


def _fault(error: Exception) -> str:
    """Return in words that an explanation failed."""
    if os.environ.get("GRADCLI_TRACEBACK"):
        raise error
    return f"a fault of gradcli's, please report it: {type(error).__name__}: {text_of(error)}"
