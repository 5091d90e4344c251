"""The backward sweep over what was recorded: from the last step to the first, each runs its pullback once.

The order is PyTorch's: the step that was recorded last comes first, and a leaf as soon as all of its gradient is there.
"""

from __future__ import annotations

import heapq
import linecache
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

from gradcli.graph.node import Node
from gradcli.pytorch.calls import called
from gradcli.pytorch.double_backward import added, recorded_vjp
from gradcli.pytorch.dtypes import OF_NUMPY
from gradcli.pytorch.functions import fact, root_name
from gradcli.pytorch.messages import message, missing_if, raise_if, torch_error, warn
from gradcli.pytorch.modes import Mode, _Switch
from gradcli.pytorch.record import (
    Edge,
    Leaf,
    Line,
    Make,
    Recorder,
    Step,
    dependencies,
    edge_of,
    finite,
    leading,
    script_line,
)
from gradcli.pytorch.tensor import Tensor


@dataclass(frozen=True)
class Change:
    """A gradient that a hook has changed: its edge, the hook, and the gradient before and after.

    `step` is the step that the hook runs after; None for a hook that runs before the edge.
    """

    edge: Edge
    hook: Any
    before: Tensor
    after: Tensor
    step: Step | None = None


@dataclass(frozen=True, eq=False)
class Contribution:
    """A gradient that a call adds to the `.grad` of a tensor, with that before and after.

    `before` is an array, which a later addition in place does not change; None where there was no `.grad`, and where
    nothing is explained.  `after` is None where the call returns its gradients.
    """

    tensor: Tensor
    grad: Any
    before: Any = None
    after: Any = None


@dataclass(frozen=True, eq=False)
class Pulled:
    """One step of a call: the gradient of its result, and those of its inputs, before hooks.

    Of a call that is explained, also the contributions of the edges within its recipe, and the adjoints of its nodes.
    """

    step: Step
    grad_output: Any
    grad_inputs: Sequence[Any]
    contributions: Mapping[tuple[Node, int], Any] = field(default_factory=dict)
    adjoints: Mapping[Node, Any] = field(default_factory=dict)


@dataclass(eq=False)
class Request:
    """A derivative that takes several calls of `grad`, such as a Jacobian, by its name in the script; its tangents.

    `result` is set by what computes it: the blocks of J by the inputs, those of H by two of them, the products J·u by
    the outputs, or H·u by the inputs.
    """

    name: str
    u: Sequence[Tensor] = ()
    result: Sequence[Any] = ()


@contextmanager
def requested(request: Request) -> Iterator[Request]:
    """Mark the `grad` calls in a block as parts of a request, unless an outer block has one, and report its result."""
    outer = Mode.request
    with _Switch(request=outer or request):
        yield request
    if outer is None and request.result and Recorder.answered is not None:
        Recorder.answered(request)


@dataclass
class Call:
    """One call of `backward` or `grad`, with its record for explanations."""

    roots: list[tuple[Tensor, Tensor]]  # the outputs, each with its v
    inputs: list[Tensor] | None = None  # whose gradients are requested; None: all leaves
    returns: bool = False  # the gradients, and leaves each .grad as it is
    freed: bool = True
    create: bool = False  # gradients with a history
    implicit: bool = False  # the script gave no v
    request: Request | None = field(default_factory=lambda: Mode.request)
    contributions: list[Contribution] = field(default_factory=list)  # to what gradients are asked for
    retained: list[Contribution] = field(default_factory=list)  # to the other intermediates that keep their gradient
    line: Line = field(default_factory=lambda: Line(0))
    targets: dict[Edge, Any] = field(default_factory=dict)  # the edges of `inputs`, with what arrived there
    changes: list[Change] = field(default_factory=list)
    explained: bool = False  # whether the two below are recorded
    adjoints: dict[Edge, Any] = field(default_factory=dict)  # the gradient of each edge, before its hooks
    pulled_steps: dict[Step, Pulled] = field(default_factory=dict)
    arose: Pulled | None = None  # the first whose gradients are not finite, though that of its result is

    def run(self) -> None:
        """Run the sweep from the roots."""
        seeds = [(edge_of(y), v if self.create else Make.tensor(v._a)) for y, v in self.roots]
        self.targets = {edge_of(x): None for x in self.inputs or ()}
        if Recorder.before is not None:
            Recorder.before(self)
        Recorder.swept = self.line = script_line()
        with np.errstate(all="ignore"), _Switch(grad=self.create, chosen=self.inputs is not None):
            self.sweep(seeds)

    def sweep(self, seeds: Sequence[tuple[Edge, Any]]) -> None:
        """Visit each edge once its gradient is complete."""
        waiting = dependencies(edge for edge, _ in seeds)
        active = waiting if self.inputs is None else _leading_to(waiting, self.targets)
        pending: dict[Edge, Any] = {}
        for edge, g in seeds:
            self.add(pending, edge, g)
        number = count()
        ready = [(-edge.seq, next(number), edge) for edge in pending if not waiting[edge]]
        heapq.heapify(ready)
        while ready:
            edge = heapq.heappop(ready)[-1]
            grad_inputs = self.visited(edge, pending.pop(edge, None), edge in active)
            for other, g in zip(edge.edges, grad_inputs, strict=True):
                if other is None:
                    continue
                if g is not None:
                    self.add(pending, other, g)
                waiting[other] -= 1
                if not waiting[other]:
                    heapq.heappush(ready, (-other.seq, next(number), other))

    def add(self, pending: dict[Edge, Any], edge: Edge, g: Any) -> None:
        """Accumulate a gradient at an edge."""
        if (before := pending.get(edge)) is not None:
            g = added(before, g) if self.create or isinstance(g, dict) else Make.tensor(before._a + g._a)
        pending[edge] = g

    def visited(self, edge: Edge, g: Any, is_active: bool) -> Sequence[Any]:
        """Return the gradients of an edge's inputs for its complete gradient, which is kept where it is requested."""
        if self.explained and g is not None:
            self.adjoints[edge] = g
        if g is not None and (is_active or edge in self.targets):
            arrived, g = g, self.hooked(edge, g) if edge._pres or edge._nexts or edge.retained else g
            if edge in self.targets:  # PyTorch's `grad` takes what also goes on before its hooks
                self.targets[edge] = arrived if self.returns and is_active else g
            if isinstance(edge, Leaf):
                self.accumulate(edge, g)
            elif is_active and isinstance(edge, Step):
                try:
                    return self.pulled(edge, g)
                except Exception:
                    if Mode.anomaly:
                        _detected(edge)
                    raise
        return [None] * len(edge.edges)

    def hooked(self, edge: Edge, g: Any) -> Any:
        """Return a gradient as the hooks of an edge leave it; its tensor keeps it where that is asked for."""
        for hook in (*(edge._pres or ()), *(edge._nexts or ())):
            if (result := hook(g)) is not None:
                _check_returned(hook, g, result)
                self.changes.append(Change(edge, hook, g, result))
                g = result if self.create else Make.tensor(result._a)
        if edge.retained is not None and (x := edge.retained()) is not None:
            before = x._grad
            x._grad = g.clone() if before is None else before + g
            contributions = self.contributions if edge in self.targets and not self.returns else self.retained
            contributions.append(Contribution(x, g, None if before is None else before._a, x._grad))
        return g

    def pulled(self, step: Step, g: Any) -> Sequence[Any]:
        """Return the gradients of a step's inputs, after its hooks.

        Errors: PyTorch's, for a freed step, and for saved tensors that were changed in place.
        """
        check_kept(step, step.checks)
        step.reached = True
        if not step.is_custom and g._a.shape[:-1] != step.shape:
            g = g.reshape(step.shape)  # of a tensor that was transposed in place under no_grad
        name = step.name()
        if name == "torch::autograd::NotImplemented":
            raise torch_error("no derivative", step.recipe.op)
        if missing := fact("no_derivative", name.removesuffix("Backward0")):
            words = (missing, f"inplace version of {missing[:-1]}") if missing[-1] == "_" else (step.recipe.op, missing)
            raise torch_error("no derivative of its name", *words)
        grad_inputs = step.grad_inputs(g, self.create) if step.is_custom else vjp(step, g, self.create)
        if self.explained:
            within = step.traced(g._a, grad_inputs) if not step.is_custom else ()
            self.pulled_steps[step] = Pulled(step, g, grad_inputs, *within)
        if Recorder.explains and self.arose is None and _finite(g) and not all(map(_finite, grad_inputs)):
            self.arose = Pulled(step, g, grad_inputs)
        for i, p in enumerate(grad_inputs) if Mode.anomaly and Mode.check_nan else ():
            if p is not None and np.isnan(p._a).any():
                raise torch_error("nan in a backward", name, i, about=(self.arose.step if self.arose else step,))
        if step._posts:
            grad_inputs = self.hooked_after(step, grad_inputs, g)
        if self.freed:
            step.free(self.line)
        return grad_inputs

    def hooked_after(self, step: Step, grad_inputs: Sequence[Any], g: Any) -> Sequence[Any]:
        """Return the gradients of a step's inputs as its hooks leave them."""
        grads = tuple(grad_inputs)
        for hook in list(step._posts or ()):
            if (result := hook(grads, (g,))) is not None:
                raise_if(not isinstance(result, tuple), "kind of a hook's values", type(result).__name__)
                wrong = len(result) != len(grads)
                raise_if(wrong, "count of a hook's values", hook.__name__, len(result), len(grads))
                changed = zip(step.edges, grads, result, strict=True)
                self.changes += [Change(e, hook, a, b, step) for e, a, b in changed if e and a is not b]  # type: ignore[arg-type]
                grads = result
        return [p if p is None or self.create else Make.tensor(p._a) for p in grads]

    def accumulate(self, leaf: Leaf, g: Any) -> None:
        """Add a gradient to the `.grad` of a leaf; that of a view that was created under no_grad is dropped."""
        x = leaf.variable
        if self.returns or not x._requires:
            return
        before = x._grad
        kept = before._a.copy() if before is not None and Recorder.explains else None
        if before is None and g.requires_grad and self.create:
            x._grad = called(g.clone(), "torch::autograd::CopyBackwards")
        elif before is None:
            x._grad = Make.tensor(g._a.copy())  # other leaves may have the same array
        elif self.create:
            x._grad = before + g
        else:
            before._a[...] = before._a + g._a
            before._memory.version += 1
        x._reached = self.line
        self.contributions.append(Contribution(x, g, kept, x._grad))
        for hook in list(leaf._dones or ()):
            if (result := hook(x)) is not None and result is not x:
                _check_returned(hook, g, result)
                raise torch_error("value of a hook behind the gradient")
        for hook in list(leaf._posts or ()):
            hook((), (g,))


def vjp(step: Step, g: Any, create: bool) -> Sequence[Any]:
    """Return the gradient of each input of a step for a gradient `g` of its result; `create` records them."""
    result: list[Any] = [None] * len(step.edges)
    kept = step.kept or [*result, None]
    if step.packed:
        kept = unpacked(step, kept)
    if create:
        is_leaf = not step.packed  # a leaf itself is what it keeps
        pairs = zip(kept, (*step.edges, step), strict=True)
        grads: Any = recorded_vjp(step, [*(None if a is None else leading(a, e, is_leaf) for a, e in pairs), g])
    else:
        grads = map(Make.tensor, step.pull.program([*kept, g._a]))
    for i, p in zip(step.pull.active, grads, strict=True):
        result[i] = p
    return result


def unpacked(step: Step, kept: Sequence[Any]) -> list[Any]:
    """Return the arrays that a step reads in its backward, unpacked by hooks where these have packed them.

    Errors: `MissingError` where they unpack other numbers, and the step reads more than PyTorch keeps.
    """
    result = list(kept)
    for i, packed in step.packed.items():
        result[i] = packed.restored(None)._a
    others = [a for i, a in enumerate(kept) if i not in step.packed]
    if any(a is not None and a.size > 1 for a in others):
        same = (a is b or b is None or np.array_equal(a, b, equal_nan=True) for a, b in zip(result, kept, strict=True))
        missing_if(not all(same), f"{step.name()} with hooks that unpack other numbers than were packed")
    return result


def called_by_script(edge: Edge, g: Any) -> Any:
    """Return the gradients of an edge's inputs, in PyTorch's order, for a gradient that a script passes."""
    call, g = Call([], freed=False, create=Mode.grad), g if Mode.grad else Make.tensor(g._a)
    if not isinstance(edge, Step):
        return call.accumulate(edge, g) or ()  # type: ignore[arg-type,func-returns-value]
    hooks, edge._posts = edge._posts, None
    try:
        grad_inputs = call.pulled(edge, g)
    finally:
        edge._posts = hooks
    shown = tuple(grad_inputs[i] if i < len(grad_inputs) else None for i in edge.order())
    return shown[0] if len(shown) == 1 else shown


Recorder.called = called_by_script


def _check_returned(hook: Any, before: Any, result: Any) -> None:
    """Raise PyTorch's error if a hook returns something that cannot replace the gradient."""
    raise_if(not isinstance(result, type(before)), "kind of a hook's value", type(result).__name__)
    name = getattr(hook, "__name__", "<unknown>")
    raise_if(result.dtype != before.dtype, "dtype of a hook's value", name, before.type(), result.type())
    raise_if(result.shape != before.shape, "size of a hook's value", name)


def _finite(g: Any) -> bool:
    if isinstance(g, dict):
        return all(map(_finite, g.values()))
    return g is None or finite(g._a)


def check_kept(step: Step, checks: Any) -> None:
    """Raise PyTorch's error if a step is freed, or a tensor that it keeps was changed in place."""
    if step.freed is not None:
        raise torch_error("freed graph", about=(step,))
    for memory, version, array, tensor, _ in checks:
        if memory.version != version:
            source, sizes = step if tensor is None else tensor._step, array.shape[:-1]
            known = f", which is output 0 of {root_name(source.name())}," if source else ""
            if len(sizes) == 1 and step.name() == "SqueezeBackward4":  # a row, of which PyTorch makes a matrix
                sizes, known = (1, *sizes), ", which is output 0 of AsStrided," if source else ""
            kind, size = OF_NUMPY[array.dtype].tensor, ", ".join(map(str, sizes))
            hint = message("changed while anomalies are detected" if Mode.anomaly else "how to detect anomalies")
            versions = memory.version, version
            raise torch_error("changed in place", kind, size, known, *versions, hint, about=(step, memory, version))


def _leading_to(edges: dict[Edge, int], targets: dict[Edge, Any]) -> set[Edge]:
    """Return the steps on the way to wanted edges."""
    result: set[Edge] = set()
    for edge in sorted(edges, key=lambda e: e.seq):
        if any(e in targets or e in result for e in edge.edges):
            result.add(edge)
    return result


def _detected(step: Step) -> None:
    """Warn, as anomaly detection does, with the line of the operation."""
    line = step.line
    if not line.traced:
        warn("error detected, untraced", step.name())
        return
    code = linecache.getline(line.file, line).strip()
    name = line.code.co_name if line.code else ""
    warn("error detected", step.name(), f'\n  File "{line.file}", line {line}, in {name}\n    {code}' if name else "")
