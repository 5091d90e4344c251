"""Explains the backwards of a script that runs under PyTorch: which of them have a page, and what is noted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gradcli.pages.sections import Page
from gradcli.process.platform import join
from gradcli.realtorch.start import started_with_torch
from gradcli.record.naming import Names, names_of
from gradcli.record.record import CallSite, Left, Record, Stepped
from gradcli.script.known import Known, line_at
from gradcli.script.line_explainer import LineExplainer, fault_text
from gradcli.script.scene import CallScene, Scene, without_comment
from gradcli.script.system import Recorded

if TYPE_CHECKING:
    from gradcli.realtorch.driver import Session

_ENDED = "note: met after the recording ended, so some names and formulas are missing: --line {} shows them"


@dataclass
class PyTorchExplainer(LineExplainer):
    """Listens to a script under PyTorch, and shows a page for each backward line."""

    session: Session | None = None  # once the script has imported PyTorch
    last: CallScene | None = None  # of the call that is explained

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Record the script's calls from its import of PyTorch on."""
        with started_with_torch(self._start):
            yield

    def _start(self, stack: ExitStack) -> None:
        from gradcli.realtorch.driver import Session
        from gradcli.realtorch.sites import Lines

        is_endless = self.every or self.style == "json"
        lines = None if is_endless else Lines(self.script.name, self.lines)
        explain_step = None if self.style == "json" else self._explain_step
        session = Session(self.wants, self._explain, lines, explain_step, self._count)
        self.session, self.seen, self.uncounted = session, session.reached, session.uncounted
        session.keeps_all = self.drawing is not None
        stack.enter_context(session.running())

    def _explain(self, record: Record | Exception, site: CallSite, recorded: bool) -> None:
        """Show the page of a backward."""
        scene, title = self.scene(line_at(site), names_of(None).readable(), site), self._title(site)
        self.last = None
        try:
            if isinstance(record, Exception):
                raise record
            text = self._text(scene, record, recorded)
            self.last = scene if record.backwards[0].function == "backward" else None
        except Exception as error:
            scene.trouble = fault_text(error)
            text = f"not explained: {scene.trouble}"
        self.draw(scene)
        self.show(scene, title, text)

    def draw(self, scene: CallScene) -> None:
        """Draw a call, if it is the first one; of a long page, the system is read for that alone."""
        from gradcli.script.under_pytorch.page import read_system

        if self.drawing is not None and not self.drawing.text and not scene.trouble and not scene.recorded.wrt:
            try:
                read_system(scene)
                if scene.recorded.record.operations and not scene.recorded.wrt and not scene.trouble:
                    scene.trouble = "of numbers that are complex or not known, no system can be read"
            except Exception as error:  # the program goes on
                scene.trouble = fault_text(error)
        super().draw(scene)

    def _count(self, site: CallSite, loss: float | None, norm: float, left: Sequence[Left], explained: bool) -> None:
        """Count what a call has left in each `.grad`."""
        self.count(site, loss, norm, left, self.last if explained else None)
        self.last = None  # whose names keep tensors

    def _explain_step(self, step: Stepped, site: CallSite) -> None:
        """Show what an optimizer did with the gradients."""
        from gradcli.script.pages.steps import step_lines

        scene = Scene(self.script, site.line, names_of(None).readable())
        self.show_step(self._title(site).replace(": ", ", ", 1), lambda: step_lines(step, scene))

    def _title(self, site: CallSite) -> str:
        where = "" if site.file == self.script.name else f" of {Path(site.file).name}"
        return f"line {site.line}{where}: {without_comment(site.code)}"

    def _text(self, scene: CallScene, record: Record, recorded: bool) -> str:
        """Return the page of a record in the style."""
        from gradcli.script.under_pytorch.page import explained

        def page() -> Page:
            shown = explained(scene, () if is_json else self.only, is_live=True)
            return shown if recorded or is_json else shown.with_notes([_ENDED.format(int(scene.line))])

        assert self.session is not None
        is_json, (backward,) = self.style == "json", record.backwards
        scene.known, scene.recorded = Known(record, self.session.live), Recorded(record, backward)
        return self.text_of(scene, page)

    def failed(self, error: BaseException, text: str) -> None:
        """Note what PyTorch's message means; `text` is the traceback that was printed."""
        reason = self.reason(error, self._known)
        if "why: " not in reason:
            is_of_none = isinstance(error, AttributeError) and error.obj is None
            reason = "\n".join(filter(None, (reason, self._run_again() if reason or is_of_none else "")))
        self.tell(error, text, reason)

    def _run_again(self) -> str:
        """Return what records the round in which an error came, where the recording had ended; "" elsewhere."""
        session = self.session
        site = session.recording.last if session is not None and session.has_ended else None
        if session is None or site is None:
            return ""
        which = "--all" if site in self.uncounted else f"--round {session.reached[site] + 1}"
        script = join([self.script.name if self.script.folder is not None else "…", *self.script.arguments])
        again = f"gradcli run --torch --line {site.line} {which} {script}"
        return f"fix: the recording had ended before this; the reason comes with\n     {again}"

    def _known(self, error: BaseException | None, names: Names) -> Known:
        """Return what is known of an error: its message, and the record of the tensors with names at its line."""
        from gradcli.script.errors.under_pytorch import known_under_pytorch

        if self.session is None:
            return known_under_pytorch(error, names)
        from gradcli.realtorch.tensors import ended

        known = known_under_pytorch(error, names)
        failed = self.session.failure if known.key == "nan in a backward" else None
        record, quantities = failed or ended(self.session.recording, names)
        return replace(known, record=record, quantities=quantities, is_partial=self.session.has_ended)
