"""What explains a script line by line as it runs: which calls have a page, and what is noted of the others."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from gradcli.pages.sections import Page
from gradcli.process.script import Script
from gradcli.process.tracebacks import line_of, text_of
from gradcli.record.naming import Names
from gradcli.record.record import Left
from gradcli.script.drawing import Drawing
from gradcli.script.known import Known
from gradcli.script.progress import Progress, Sums
from gradcli.script.scene import CallScene
from gradcli.script.shown import Printed, columns
from gradcli.text.wrapping import in_words, wrapped


@dataclass
class LineExplainer:
    """Explains the calls of a script, which are counted by their sites, under the emulation or under PyTorch."""

    script: Script
    shown: Printed
    note: Callable[[str], None]
    style: str = "table"
    every: bool = False  # a line is explained each time
    lines: frozenset[int] = frozenset()  # that are explained; none: all
    steps: bool = False
    round: int = 0  # the time that a line is reached that is explained; 0: the first one
    only: Sequence[str] = ()  # the sections of a page that are shown; none: all
    unroll: bool = False  # rounds of loops are written out
    drawing: Drawing | None = None  # of the first call that is explained
    seen: Counter[Any] = field(default_factory=Counter)
    uncounted: set[Any] = field(default_factory=set)  # the sites that were not counted to the end
    told: set[str] = field(default_factory=set)  # the surprises on pages
    progress: Progress = field(default_factory=Progress)
    sums: Sums = field(default_factory=Sums)

    def count(self, site: Any, loss: float | None, norm: float, left: Sequence[Left], scene: CallScene | None) -> None:
        """Count what a call has left in each `.grad`: with a `loss`, the norm of what it has added, too.

        `scene` is known where the call is explained.
        """
        if loss is not None:
            self.progress.add(site, loss, norm, scene)
        if scene is not None:
            self.sums.first(scene, left)
        elif self.sums.left:
            self.sums.again(site, left)

    def wants(self, site: Any, times: int) -> bool:
        """Return whether a call is explained the time that it is reached."""
        if self.lines and site.line not in self.lines:
            return False
        if self.round:
            return times == self.round
        return times == 1 or self.every or self.style == "json"

    def scene(self, line: int, names: Names, site: Any) -> CallScene:
        """Return the scene of a call at a line."""
        unroll = self.unroll or self.style == "json"  # whose objects have the rounds, and the loop beside them
        return CallScene(self.script, line, names, site=site, steps=self.steps, unroll=unroll, told=self.told)

    def text_of(self, scene: CallScene, page: Callable[[], Page]) -> str:
        """Return the page of a call in the style; in JSON its object, with its formulas where it is the first."""
        if self.style == "json":
            from gradcli.script.pages.rows import explanation, row

            more: dict[str, Any] = {}
            if self.every or self.seen[scene.site] == max(1, self.round):
                with suppress(Exception):
                    more = explanation(page(), scene)
            return json.dumps(row(scene) | more)
        from gradcli.report.render import Look, render_pages

        return render_pages([page()], Look(self.style)).rstrip("\n")

    def show(self, scene: CallScene, title: str, text: str) -> None:
        """Show the page of a call, or its object."""
        if self.style == "json":
            self.shown.text(text)
        else:
            self.shown.explained(scene, title, text)

    def draw(self, scene: CallScene) -> None:
        """Draw a call, if it is the first one."""
        if self.drawing is not None:
            self.drawing.add(scene)

    def show_step(self, head: str, lines: Callable[[], Sequence[str]]) -> None:
        """Show what an optimizer did with the gradients; the script goes on, whatever we cannot explain."""
        try:
            first, *more = lines()
        except Exception as error:
            first, more = f"not explained: {fault_text(error)}", []
        self.shown.words([f"{head}: {first}", *more])

    def reason(self, error: BaseException, knows: Callable[..., Known]) -> str:
        """Return why the script failed, and what fixes it; "" where PyTorch's message says it all."""
        from gradcli.script.errors.why import why

        try:
            return why(error, self.script, knows)
        except Exception as fault:
            return fault_text(fault)

    def tell(self, error: BaseException, text: str, reason: str) -> None:
        """Note why the script failed, behind the traceback that was printed."""
        if reason:
            self.note(reason)
        self.shown.failed(text + reason, line_of(error))

    def again(self) -> None:
        """Show how the loss went at lines that were reached again; note these, and which have no call to explain."""
        for site in sorted(self.seen, key=lambda site: site.line) if self.style != "json" else ():
            if words := self.progress.words(site, self.seen[site], columns()):
                self.shown.words(words)
        lines: dict[int, list[Any]] = {}
        for site in self.seen:
            lines.setdefault(site.line, []).append(site)
        if self.round and max(self.seen.values(), default=0) < self.round:
            times = "; ".join(f"line {line}: {max(self.seen[s] for s in lines[line]):,}" for line in sorted(lines))
            self.note(f"note: no line is reached {self.round:,} times" + (times and f" ({times})"))
        if self.every or self.style != "table":
            return
        for line in sorted(self.lines - lines.keys()):
            known = f"line{'s' * (len(lines) > 1)} {in_words([*map(str, sorted(lines))])}" if lines else ""
            self.note(f"note: line {line} has no call to explain" + (known and f"; there are calls at {known}"))
        for line in sorted(lines):
            count = sum(self.seen[site] - 1 for site in lines[line])
            if count and (not self.lines or line in self.lines):
                about = "at least " * (not self.uncounted.isdisjoint(lines[line]))
                times, it = ("time", "it") if count == 1 else ("times", "them")
                more = f"line {line}, {about}{count:,} more {times}; --all shows {it}"
                remark = "; ".join(dict.fromkeys(filter(None, map(self.sums.words, lines[line]))))
                self.note("\n".join(wrapped(f"{more}: {remark}" if remark else more, columns(), "  ")))


def fault_text(error: Exception) -> str:
    """Return in words that an explanation failed."""
    if os.environ.get("GRADCLI_TRACEBACK"):
        raise error
    return f"a fault of gradcli's, please report it: {type(error).__name__}: {text_of(error)}"
