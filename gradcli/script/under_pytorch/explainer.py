"""Explains the backwards of a script that runs under PyTorch: which of them have a page, and what is noted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from gradcli.process.activity import lasting
from gradcli.realtorch.start import started_with_torch
from gradcli.record.record import CallSite, OptimizerStep, Record
from gradcli.script.line_explainer import LineExplainer, fault_text


@dataclass
class PyTorchExplainer(LineExplainer):
    """Listens to a script under PyTorch, and shows a page for each backward line."""

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
        session = Session(self.wants, self._explain, lines, explain_step)
        self.seen, self.more = session.reached, session.updates.more
        stack.enter_context(session.running())

    def _explain(self, record: Record | Exception, site: CallSite, recorded: bool) -> None:
        """Show the page of a backward."""
        try:
            if isinstance(record, Exception):
                raise record
            with lasting(f"explaining line {site.line}"):
                text = self._text(record, recorded)
        except Exception as error:
            text = f"not explained: {fault_text(error)}"
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
            first, more = f"not explained: {fault_text(error)}", []
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
            reason = f"not explained: {fault_text(fault)}"
        if reason:
            self.note(reason)
        self.shown.failed(text + reason, line_of(error))

    def times(self, sites: Sequence[CallSite]) -> tuple[str, int]:
        """Return how often calls were reached again, with those that were not counted as they ran."""
        uncounted = [self.more[site] for site in sites if site in self.more]
        about = "at least " if None in uncounted else "about " if any(uncounted) else ""
        return about, super().times(sites)[1] + sum(filter(None, uncounted))
