"""Explains the calls of a script while it runs: which of them have a page, and what is noted of lines that repeat."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gradcli.activity import lasting
from gradcli.errors import InputError
from gradcli.pytorch.record import Recorder, finite
from gradcli.script.drawing import Drawing
from gradcli.script.naming import names_of, script_frames
from gradcli.script.pages.gradients import not_finite
from gradcli.script.pages.sums import Sums
from gradcli.script.progress import Progress
from gradcli.script.recorded import recorded
from gradcli.script.scene import CallScene
from gradcli.script.shown import Printed, columns
from gradcli.script.system import Recorded
from gradcli.wrapping import in_words, wrapped

if TYPE_CHECKING:
    from gradcli.pytorch.backward import Call, Request
    from gradcli.pytorch.session import Script

_ROOM = 3000  # calls inside of calls


@dataclass
class Explainer:
    """Listens to the calls of a script, and explains them."""

    script: Script
    shown: Printed
    note: Callable[[str], None]
    style: str = "table"
    every: bool = False  # a line is explained each time
    lines: frozenset[int] = frozenset()  # that are explained; none: all
    steps: bool = False
    round: int = 0  # the time that a line is reached that is explained; 0: the first one
    drawing: Drawing | None = None  # of the first call that is explained
    progress: Progress = field(default_factory=Progress)
    seen: Counter[int] = field(default_factory=Counter)
    sums: Sums = field(default_factory=Sums)
    warned: set[int] = field(default_factory=set)
    waiting: dict[int, CallScene] = field(default_factory=dict)  # by the identity of the call that is running
    request: Any = None  # of the last call; its page covers all calls for it
    requests: dict[Request, tuple[Call, CallScene]] = field(default_factory=dict)  # without a result yet

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Listen while the script runs."""
        Recorder.explains, Recorder.stepped = True, self.stepped
        Recorder.before, Recorder.done, Recorder.answered = self.begins, self.is_done, self.is_answered
        try:
            yield
        finally:
            Recorder.explains, Recorder.stepped = False, None
            Recorder.before = Recorder.done = Recorder.answered = None

    def begins(self, call: Call) -> None:
        """Read the recorded graph, before the call frees it."""
        self.waiting.pop(id(call), None)  # of one that failed, and is gone
        frame, line = self._position()
        if self._is_covered(call) or not self._is_wanted(line):
            return
        call.explained = True
        scene = self._scene(frame, line)
        scene.reached = {id(x): x._reached for x in scene.names.tensors.values() if x._reached is not None}
        try:
            with _room():
                scene.recorded = recorded(call, scene.names, {self.script.name: self.script.source})
        except InputError as error:
            scene.trouble = error.message
        except Exception as error:  # the script goes on, whatever we cannot explain
            scene.trouble = _fault(error)
        self.waiting[id(call)] = scene

    def _position(self) -> tuple[Any, int]:
        """Return the frame that is running, and the line of the script itself, also for a frame of another file."""
        frames = [*script_frames()]
        line = next((f.f_lineno for f in frames if f.f_code.co_filename == self.script.name), 0)
        return next(iter(frames), None), line

    def _scene(self, frame: Any, line: int) -> CallScene:
        return CallScene(self.script, line, names_of(frame), steps=self.steps)

    def _is_covered(self, call: Call) -> bool:
        """Return whether a call is one of several for what a script asked for by name, and not the first of them."""
        before, self.request = self.request, call.request
        return self.style != "json" and call.request is not None and (call.request is before or not call.request.name)

    def _is_wanted(self, line: int) -> bool:
        """Count a line, and return whether it is explained this time."""
        self.seen[line] += 1
        if self.lines and line not in self.lines:
            return False
        if self.round:
            return self.seen[line] == self.round
        return self.seen[line] == 1 or self.every or self.style == "json"

    def is_done(self, call: Call) -> None:
        """Explain a call that is done."""
        scene = self.waiting.pop(id(call), None)
        if call.request is None:
            self.progress.add(scene.line if scene is not None else self._position()[1], call, scene)
        if scene is None:
            if self.sums.lines or self.sums.left:
                self.sums.again(self._position()[1], call)
            self._warn(call)
            return
        self.sums.first(scene, call)
        if call.request is not None and not _is_finite(call):
            self.warned.add(scene.line)  # its page covers the calls that follow
        if self.style == "json":
            self._show_row(call, scene)
        elif call.request is not None:
            self.requests[call.request] = call, scene
        else:
            self._show(call, scene)

    def is_answered(self, request: Request) -> None:
        """Explain the first of the calls for what a script asked for by name, which has its result now."""
        if request in self.requests:
            self._show(*self.requests.pop(request))

    def _show(self, call: Call, scene: CallScene) -> None:
        """Show the page of a call."""
        try:
            with _room(), lasting(f"explaining line {scene.line}"):
                text = self._page(call, scene)
        except Exception as error:
            scene.recorded, scene.trouble = Recorded(), _fault(error)
            text = f"not explained: {scene.trouble}"
            with suppress(Exception):
                text = self._page(call, scene)
        if self.drawing is not None:
            self.drawing.add(call, scene)
        self.shown.explained(call, scene, f"line {scene.line}: {scene.source(scene.line)}", text)

    def _show_row(self, call: Call, scene: CallScene) -> None:
        """Show a call as JSON; the first one at a line, or each with `every`, with its formulas."""
        from gradcli.script.pages.page import page
        from gradcli.script.pages.rows import explanation, row

        data = row(call, scene)
        if self.drawing is not None:
            self.drawing.add(call, scene)
        if self.seen[scene.line] == max(1, self.round) or self.every:
            with _room(), suppress(Exception):
                data |= explanation(page(call, scene))
        self.shown.text(json.dumps(data))
        self._warn(call)

    def _page(self, call: Call, scene: CallScene) -> str:
        from gradcli.report.render import Look, render_pages
        from gradcli.script.pages.page import page

        return render_pages([page(call, scene)], Look("table" if self.style == "html" else self.style)).rstrip("\n")

    def _warn(self, call: Call) -> None:
        """Warn of a gradient that is not finite, once a line, where no page is shown that does."""
        if _is_finite(call):
            return
        frame, line = self._position()
        if line not in self.warned:
            self.warned.add(line)
            times = f", reached {self.seen[line]:,} times" * (self.seen[line] > 1)
            for text in not_finite(call, self._scene(frame, line), f"line {line}{times}: "):
                self.note("\n".join(wrapped(text, columns(), "  ")))

    def stepped(self, optimizer: Any, done: Sequence[Any]) -> None:
        """Show what an optimizer did with the gradients."""
        if self.style == "json":
            return
        frame, line = self._position()
        if self._is_wanted(line):
            from gradcli.script.pages.steps import changed, left_out, step_lines

            scene = self._scene(frame, line)
            first, *more = step_lines(optimizer, done, scene)
            more = changed(done, scene, self.sums.left) + more
            more += left_out(scene.names.tensors, frame)
            self.shown.words([f"line {line}, {scene.source(line)}: {first}", *more])

    def failed(self, error: BaseException, text: str) -> None:
        """Note why the script failed, and what fixes it; `text` is the traceback that was printed."""
        from gradcli.script.errors.why import why
        from gradcli.tracebacks import line_of

        try:
            reason = why(error, self.script)
        except Exception as fault:
            reason = _fault(fault)
        if reason:
            self.note(reason)
        self.shown.failed(text + reason, line_of(error))

    def again(self) -> None:
        """Show how the loss went at lines that were reached again, and note which lines these are."""
        for line in sorted(self.seen) if self.style != "json" else ():
            if words := self.progress.words(line, columns()):
                self.shown.words(words)
        if self.round and max(self.seen.values(), default=0) < self.round:
            times = "; ".join(f"line {line}: {count:,}" for line, count in sorted(self.seen.items()))
            self.note(f"note: no line is reached {self.round:,} times" + (times and f" ({times})"))
        if self.every or self.style != "table":
            return
        for line in sorted(self.lines - self.seen.keys()):
            known = f"line{'s' * (len(self.seen) > 1)} {in_words([*map(str, sorted(self.seen))])}" if self.seen else ""
            self.note(f"note: line {line} has no call to explain" + (known and f"; there are calls at {known}"))
        for line, count in sorted(self.seen.items()):
            if count > 1 and (not self.lines or line in self.lines):
                sums = self.sums.words(line)
                times, it = ("time", "it") if count == 2 else ("times", "them")
                more = f"line {line}, {count - 1:,} more {times}; --all shows {it}"
                self.note("\n".join(wrapped(f"{more}: {sums}" if sums else more, columns(), "  ")))


def _is_finite(call: Call) -> bool:
    return all(finite(c.grad._a) for c in call.contributions)


@contextmanager
def _room() -> Iterator[None]:
    """Raise the recursion limit within a block, so that an explanation works however deep the script is."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(before + _ROOM)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _fault(error: Exception) -> str:
    """Return in words that an explanation failed."""
    if os.environ.get("GRADCLI_TRACEBACK"):
        raise error
    return f"a fault of gradcli's, please report it: {type(error).__name__}: {error}"
