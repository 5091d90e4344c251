"""Explains the calls of a script while it runs: which of them have a page, and what is noted of lines that repeat."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from gradcli.errors import InputError
from gradcli.pages.sections import Block, Code
from gradcli.pytorch.driver import Heard, Session
from gradcli.record.naming import Names, names_of, script_frames
from gradcli.script.errors.warnings import not_finite, warned
from gradcli.script.known import Known
from gradcli.script.line_explainer import LineExplainer, fault_text
from gradcli.script.recorded import MAX_STEPS, check_size, recorded
from gradcli.script.scene import CallScene, Site
from gradcli.script.shown import columns
from gradcli.script.system import Recorded
from gradcli.text.wrapping import wrapped

_ROOM = 3000  # calls inside of calls


@dataclass
class Explainer(LineExplainer):
    """Hears of the calls of a script on gradcli's `torch`, and explains them."""

    warned: set[Site] = field(default_factory=set)
    request: Any = None  # of the last call; its page covers all calls for it
    held: list[Callable[[], None]] = field(default_factory=list)  # what is shown behind the call that they run within
    requests: dict[Any, Heard] = field(default_factory=dict)  # without a result yet

    def listening(self) -> AbstractContextManager[None]:
        """Listen within a block."""
        return Session(self).listening()

    def begins(self, call: Heard) -> None:
        """Hold what is recorded behind a call that is explained, before the call frees it."""
        frame, site = self._position(call.depth)
        before, self.request = self.request, call.request
        # One of several calls for what a script asked for by name, and not the first of them.
        is_covered = call.request is not None and (call.request is before or not call.request.name)
        is_nothing = not call.has_roots  # torch.autograd.backward([])
        if (is_covered and (self.style != "json" or call.depth)) or is_nothing or not self._explains_now(site):
            return
        call.kept = scene = self.scene(site.line, names_of(frame), site)
        with _room():
            call.hold(scene.names)

    def _read(self, call: Heard, scene: CallScene) -> None:
        """Read the system of a call that is done from its record."""
        try:
            with _room():
                count, (record, live) = call.operations, call.record(MAX_STEPS)
                scene.recorded = Recorded(record, record.backwards[0])
                scene.known = Known(record, live)
                check_size(count)
                scene.recorded = recorded(record, record.backwards[0], {self.script.name: self.script.source})
        except InputError as error:
            scene.trouble = error.message
        except Exception as error:  # the script goes on, whatever we cannot explain
            scene.trouble = fault_text(error)

    def _position(self, depth: int = 0) -> tuple[Any, Site]:
        """Return the frame that is running, and the call with the line of the script, also for a frame elsewhere."""
        frames = [*script_frames()]
        line = next((f.f_lineno for f in frames if f.f_code.co_filename == self.script.name), 0)
        frame = next(iter(frames), None)
        return frame, Site.of(line, frame, depth)

    def _explains_now(self, site: Site) -> bool:
        """Count a call, and return whether it is explained this time."""
        self.seen[site] += 1
        return self.wants(site, self.seen[site])

    def is_done(self, call: Heard) -> None:
        """Explain a call that is done."""
        scene: CallScene | None = call.kept
        if scene is not None:
            self._read(call, scene)
        loss = call.loss if call.request is None else None
        norm = math.nan if loss is None else call.norm
        self.count(scene.site if scene is not None else self._position(call.depth)[1], loss, norm, call.left, scene)
        if scene is None:
            if not math.isfinite(norm):
                self._warn(call)
            return
        if call.request is not None and not call.is_finite:
            self.warned.add(scene.site)  # its page covers the calls that follow
        if call.request is not None and self.style != "json":
            self.requests[call.request] = call
        else:
            self._show(call, scene)

    def is_answered(self, request: Any, answer: Any) -> None:
        """Explain the first of the calls for what a script asked for by name, which has its result now."""
        if request in self.requests:
            call = self.requests.pop(request)
            scene: CallScene = call.kept
            scene.recorded.call = replace(scene.recorded.call, answer=answer)
            self._show(call, scene)

    def _show(self, call: Heard, scene: CallScene) -> None:
        """Show the page of a call, or its object in JSON."""
        try:
            with _room():
                text = self._text(call, scene)
        except Exception as error:
            scene.recorded = Recorded(scene.recorded.record, scene.recorded.call)
            scene.trouble = fault_text(error)
            text = f"not explained: {scene.trouble}"
            with suppress(Exception):
                text = self._text(call, scene)
        self.draw(scene)
        title = f"line {scene.line}: {scene.statement}"
        self._in_order(call, partial(self.show, scene, title, text))
        if self.style == "json":
            self._warn(call)

    def _in_order(self, call: Heard, show: Callable[[], None]) -> None:
        """Show a call, and behind it those that ran within it."""
        if call.depth:
            self.held.append(show)
            return
        held, self.held = self.held, []
        for each in (show, *held):
            each()

    def _text(self, call: Heard, scene: CallScene) -> str:
        from gradcli.script.pages.page import page

        only = () if self.style == "json" else self.only
        return self.text_of(scene, lambda: page(scene, warned(scene, call.hooks), only))

    def _warn(self, call: Heard) -> None:
        """Warn of a gradient that is not finite, once a line, where no page is shown that does."""
        if call.is_finite:
            return
        frame, site = self._position(call.depth)
        if site not in self.warned:
            self.warned.add(site)
            times = f", reached {self.seen[site]:,} times" * (self.seen[site] > 1)
            scene = self.scene(site.line, names_of(frame), site)
            call.hold(scene.names)
            scene.known = Known(*call.record())
            for block in not_finite(scene, f"line {site.line}{times}: "):
                self.note("\n".join(_lines(block)))

    def stepped(self, optimizer: Any, changes: Sequence[Any]) -> None:
        """Show what an optimizer did with the gradients."""
        if self.style == "json":
            return
        frame, site = self._position()
        if self._explains_now(site):
            from gradcli.pytorch.optim.stepped import stepped
            from gradcli.script.pages.steps import step_lines

            scene = self.scene(site.line, names_of(frame), site)
            head = f"line {site.line}, {scene.statement}"
            self.show_step(head, lambda: step_lines(stepped(optimizer, changes, scene.names, self.sums.left), scene))

    def failed(self, error: BaseException, text: str) -> None:
        """Note why the script failed, and what fixes it; `text` is the traceback that was printed."""
        for show in self.held:
            show()
        self.tell(error, text, self.reason(error, knows))


def _lines(block: Block) -> list[str]:
    """Return a sentence, or the lines of a fix, as lines."""
    if isinstance(block, Code):
        return [f"  {block.caption}: {block.lines[0]}", *(f"    {line}" for line in block.lines[1:])]
    return wrapped("".join(map(str, getattr(block, "parts", ()))), columns(), "  ")


class _Ended(Known):
    """What is known of a script on gradcli's `torch` at an error: most errors are told without the record."""

    def __init__(self, error: BaseException | None, names: Names) -> None:
        from gradcli.pytorch.messages import facts_of

        self.error, self.names = error, names
        known = None if error is None else facts_of(error)
        self.key = "" if known is None else known.key
        if known is not None and not known.about:
            self.facts = known.values

    def __getattr__(self, name: str) -> Any:
        """Write the record when it is first read, or what else is not known without it."""
        if name not in ("record", "quantities", "facts"):
            raise AttributeError(name)
        from gradcli.pytorch.failing import ended

        self.record, self.quantities, facts = ended(self.error, self.names)
        self.__dict__.setdefault("facts", facts)
        return self.__dict__[name]


def knows(error: BaseException | None, names: Names) -> Known:
    """Return what is known of tensors with names on gradcli's `torch`, and of an error."""
    return _Ended(error, names)


@contextmanager
def _room() -> Iterator[None]:
    """Raise the recursion limit within a block, so that an explanation works however deep the script is."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(before + _ROOM)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
