"""The backward sweep over what was recorded: from the last step to the first, each runs its pullback once.

The order is PyTorch's: the step that was recorded last comes first, and a leaf as soon as all of its gradient is there.
"""

from __future__ import annotations

import heapq
import linecache
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gradcli.graph.node import Node
from gradcli.pytorch import record
from gradcli.pytorch.dtypes import OF_NUMPY
from gradcli.pytorch.handles import check_returned
from gradcli.pytorch.messages import refusal, told, warn
from gradcli.pytorch.modes import Mode, set_grad_enabled
from gradcli.pytorch.record import Edge, Leaf, Line, Step, script_line

if TYPE_CHECKING:
    from gradcli.pytorch.tensor import Tensor


@dataclass(frozen=True)
class Change:
    """A gradient that a hook has changed: of which edge, by what, from what, and to what."""

    edge: Edge
    hook: Any
    before: Any
    after: Any


@dataclass
class Seen:
    """What explanations need of a sweep: changes by hooks, what own functions were given and passed, and a first nan.

    The last is the step whose local derivative, or an argument's value, was the first number that is not finite.
    """

    changes: list[Change] = field(default_factory=list)
    own: dict[Step, tuple[Any, Sequence[Any]]] = field(default_factory=dict)
    arose: Step | None = None

    def passed(self, step: Step, g: Any, passed: Sequence[Any]) -> None:
        """Take down what a step passed on."""
        if not hasattr(step, "recipe"):
            self.own[step] = g, passed
        if self.arose is None and _finite(g) and not all(map(_finite, passed)):
            self.arose = step


def _finite(g: Any) -> bool:
    if isinstance(g, dict):
        return all(map(_finite, g.values()))
    return g is None or record.finite(g if isinstance(g, np.ndarray) else g._a)


@dataclass
class Sweep:
    """One call of `backward` or `grad`: what it flows from, and what comes of it.

    `wanted` are the edges whose gradients are to be caught, in place of those of all leaves.
    """

    retain: bool
    create: bool
    wanted: dict[Edge, Any] | None = None
    leaves: list[tuple[Leaf, Any, Any, Any]] = field(default_factory=list)  # with .grad before, own, and after
    line: Line = field(default_factory=lambda: Line(0))
    seen: Seen | None = field(default_factory=lambda: Seen() if record.Recorder.explains else None)
    waiting: dict[Edge, int] = field(default_factory=dict)  # for each edge, how many steps are still to pass one on
    running: ClassVar[Sweep | None] = None

    def run(self, seeds: Sequence[tuple[Edge, Any]]) -> None:
        """Pass the gradients on, from edges with what flows into them."""
        waiting = self.waiting = dependencies(edge for edge, _ in seeds)
        only = None if self.wanted is None else _leading_to(waiting, self.wanted)
        pending: dict[Edge, Any] = {}
        heap: list[tuple[int, int, Step]] = []
        record.Recorder.swept = self.line = script_line()
        for edge, g in seeds:
            _add(pending, edge, g)
            if isinstance(edge, Step):
                heapq.heappush(heap, (-edge.seq, id(edge), edge))
        for edge in dict.fromkeys(edge for edge, _ in seeds):
            if isinstance(edge, Leaf) and not waiting[edge]:
                self.leaf(edge, pending.pop(edge))
        seen: set[Step] = set()
        while heap:
            _, _, step = heapq.heappop(heap)
            if step in seen:
                continue
            seen.add(step)
            g = pending.pop(step, None)
            if only is None or step in only or (self.wanted is not None and step in self.wanted):
                g = self.hooked(step, g)
            if self.wanted is not None and step in self.wanted:
                self.wanted[step] = g
            if only is not None and step not in only:
                self.pass_on(step, [None] * len(step.edges), waiting, pending, heap)
                continue
            self.pass_on(step, self.pull(step, g), waiting, pending, heap)

    def pass_on(self, step: Step, passed: Sequence[Any], waiting: Any, pending: Any, heap: Any) -> None:
        """Hand the contributions of a step on."""
        for edge, g in zip(step.edges, passed, strict=True):
            if edge is None:
                continue
            if g is not None:
                _add(pending, edge, g)
            waiting[edge] -= 1
            if isinstance(edge, Leaf):
                if not waiting[edge] and edge in pending:
                    self.leaf(edge, pending.pop(edge))
            else:
                heapq.heappush(heap, (-edge.seq, id(edge), edge))

    def hooked(self, step: Step, g: Any) -> Any:
        """Return the gradient of a tensor as its hooks leave it, kept where that is asked for."""
        if step._pres is not None and g is not None:
            g = self.called(step, g)
        if step.retained is not None and g is not None and (t := step.retained()) is not None:
            t._grad = self.retained(t._grad, as_tensor(g))
        return g

    def retained(self, before: Tensor | None, own: Tensor) -> Tensor:
        """Return what an intermediate keeps of a gradient: a copy, and the sum with what it had."""
        if before is None and self.create and own.requires_grad:
            return own.clone()  # type: ignore[attr-defined,no-any-return]
        with set_grad_enabled(self.create):
            return record.Make.tensor(own._a.copy()) if before is None else before + own  # type: ignore[no-any-return]

    def pull(self, step: Step, g: Any) -> Sequence[Any]:
        """Return what a step passes on to each of its edges."""
        if g is None:
            return [None] * len(step.edges)
        try:
            return self.passed(step, g)
        except Exception:
            if Mode.anomaly:
                _detected(step)
            raise

    def passed(self, step: Step, g: Any) -> Sequence[Any]:
        """Return what a step passes on for a gradient, after its hooks; nothing of what it needs may have changed."""
        if step.freed is not None:
            raise about(told("freed graph"), "second", step)
        if not step.is_own and (g.shape[:-1] if isinstance(g, np.ndarray) else g.shape) != step.shape:
            # Of a tensor that was turned in place where nothing was recorded.
            g = g.reshape(*step.shape, 1) if isinstance(g, np.ndarray) else g.reshape(step.shape)  # type: ignore[attr-defined]
        if step.checks:
            check_kept(step, step.checks)
        if step.name() == "torch::autograd::NotImplemented":
            raise about(f"derivative for aten::{step.recipe.op} is not implemented", "no derivative", step)
        passed: Sequence[Any] = step.passed(g, self.create)
        if self.create and not step.is_own:
            from gradcli.pytorch.twice import renamed

            passed = renamed(step, g, passed)
        if self.seen is not None:
            self.seen.passed(step, g, passed)
        if Mode.anomaly and Mode.check_nan:
            _check_nan(step, passed, self.seen)
        if step._posts:
            passed = self.called_after(step, passed, g)
        if not self.retain:
            step.free(self.line)
        return passed

    def called(self, edge: Edge, g: Any) -> Any:
        """Return a gradient as the hooks of an edge leave it: what one returns takes its place."""
        for hook in list(edge._pres or ()):
            before = g
            if (found := hook(as_tensor(g))) is not None:
                check_returned(hook, as_tensor(g), found)
                g = _like(g, found)
                self.changed(edge, hook, before, g)
        return g

    def called_after(self, step: Step, passed: Sequence[Any], g: Any) -> Sequence[Any]:
        """Return what a step passes on as its hooks leave it."""
        given = tuple(None if p is None else as_tensor(p) for p in passed)
        for hook in list(step._posts or ()):
            before = given
            if (found := hook(given, (as_tensor(g),))) is not None:
                if not isinstance(found, tuple):
                    raise TypeError(f"expected tuple, but hook returned '{type(found).__name__}'")
                if len(found) != len(before):
                    raise refusal("count of a hook's values", hook.__name__, len(found), len(before))
                given = found
                for edge, old, own in zip(step.edges, before, given, strict=False):
                    if edge is not None and old is not own:
                        self.changed(edge, hook, old, own)
        return [None if p is None else _like(g, p) for p in given]

    def changed(self, edge: Edge, hook: Any, before: Any, after: Any) -> None:
        """Take down what a hook did, for explanations."""
        if self.seen is not None:
            self.seen.changes.append(Change(edge, hook, as_tensor(before), as_tensor(after)))

    def leaf(self, leaf: Leaf, g: Any) -> None:
        """Add a gradient to what a leaf has in `.grad`, or catch it."""
        if self.wanted is not None and leaf not in self.wanted:
            return
        if leaf._pres is not None:
            g = self.called(leaf, g)
        if self.wanted is not None:
            self.wanted[leaf] = g
            return
        x = leaf.variable
        if not x._requires:  # a view that was made under no_grad: what flows into it is lost
            return
        own = as_tensor(g)
        before = x._grad
        kept = before._a.copy() if before is not None and record.Recorder.explains else None
        x._grad = accumulated(before, own, self.create)
        x._reached = self.line
        self.leaves.append((leaf, kept, own, x._grad))
        for hook in list(leaf._posts or ()):
            hook(x)


def check_kept(step: Step, checks: Any) -> None:
    """Refuse to go on where numbers that a step keeps are not what they were."""
    if step.freed is not None:
        raise about(told("freed graph"), "second", step)
    for memory, version, array, own, _ in checks:
        if memory.version != version:
            source = step if own is None else own._step
            raise about(changed_text(memory, version, array, source), "in place", step, memory, version)


def dependencies(roots: Any) -> dict[Edge, int]:
    """Return for each edge that gradients can reach how many steps pass one on to it."""
    counts: dict[Edge, int] = dict.fromkeys(roots, 0)
    stack = list(counts)
    while stack:
        edge = stack.pop()
        if isinstance(edge, Step):
            for other in edge.edges:
                if other is not None:
                    if other not in counts:
                        counts[other] = 0
                        stack.append(other)
                    counts[other] += 1
    return counts


def _leading_to(edges: dict[Edge, int], wanted: dict[Edge, Any]) -> set[Edge]:
    """Return the steps through which gradients reach wanted edges."""
    found: set[Edge] = set()
    for edge in sorted((e for e in edges if isinstance(e, Step)), key=lambda e: e.seq):
        if any(e in wanted or e in found for e in edge.edges if e is not None):
            found.add(edge)
    return found


def _add(pending: dict[Edge, Any], edge: Edge, g: Any) -> None:
    before = pending.get(edge)
    pending[edge] = g if before is None else before + g


def as_tensor(g: Any) -> Tensor:
    """Return a gradient as a tensor."""
    return record.Make.tensor(g) if isinstance(g, np.ndarray) else g


def _like(g: Any, found: Tensor) -> Any:
    return found._a if isinstance(g, np.ndarray) else found


def accumulated(before: Tensor | None, own: Tensor, create: bool) -> Tensor:
    """Return what `.grad` is after a gradient came: the gradient itself, or what was there, increased in place."""
    if before is None:
        if create and own.requires_grad:
            step = "torch::autograd::CopyBackwards"  # a copy, recorded: the gradient has a history
            return record.apply("copied", lambda n: Node("identity", (n,), n.shape), (own,), (), step)
        return record.Make.tensor(own._a.copy() if not own._a.flags.owndata or not own._a.flags.writeable else own._a)
    if create:
        return before + own
    before._a[...] = before._a + own._a
    before._memory.version += 1
    return before


def about(text: str, kind: str, *subjects: Any) -> RuntimeError:
    """Return an error that knows what it is about, for who explains it."""
    error = RuntimeError(text)
    error.kind, error.subjects = kind, subjects  # type: ignore[attr-defined]
    return error


def changed_text(memory: Any, version: int, array: Any, source: Edge | None) -> str:
    """Return PyTorch's words for numbers that a backward needs, and that are not what they were."""
    known = f", which is output 0 of {re.sub('Backward0?', '', source.name())}," if source else ""
    hint = (
        "enable anomaly detection to find the operation that failed to compute its gradient, with "
        "torch.autograd.set_detect_anomaly(True, check_nan=False)."
    )
    if Mode.anomaly:
        hint = (
            "the backtrace further above shows the operation that failed to compute its gradient. The variable in "
            "question was changed in there or anywhere later. Good luck!"
        )
    size = ", ".join(map(str, array.shape[:-1]))
    return (
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[torch.{OF_NUMPY[array.dtype].tensor} [{size}]]{known} is at version {memory.version}; expected version "
        f"{version} instead. Hint: {hint}"
    )


def _detected(step: Step) -> None:
    """Warn, as anomaly detection does, with the line of the operation."""
    line = step.line
    if not line.traced:
        warn("error detected, untraced", step.name())
        return
    code = linecache.getline(line.file, line).strip()
    name = line.code.co_name if line.code else ""
    warn("error detected", step.name(), f'\n  File "{line.file}", line {line}, in {name}\n    {code}' if name else "")


def _check_nan(step: Step, passed: Sequence[Any], seen: Seen | None) -> None:
    for i, p in enumerate(passed):
        a = None if p is None else p if isinstance(p, np.ndarray) else p._a
        if a is not None and np.isnan(a).any():
            arose = seen.arose if seen is not None and seen.arose is not None else step
            raise about(f"Function '{step.name()}' returned nan values in its {i}th output.", "nan", arose)
