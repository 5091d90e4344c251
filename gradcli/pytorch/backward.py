"""The backward sweep over what was recorded: from the last step to the first, each runs its pullback once.

The order is PyTorch's: the step that was recorded last comes first, and a leaf as soon as all of its gradient is there.
"""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from gradcli.pytorch.calls import set_grad_fn_name
from gradcli.pytorch.chains import inputs_of, name_of, returning, saved_as
from gradcli.pytorch.double_backward import recorded_vjp
from gradcli.pytorch.dtypes import OF_NUMPY
from gradcli.pytorch.functions import fact, root_name
from gradcli.pytorch.messages import message, missing_if, raise_if, torch_error, warn
from gradcli.pytorch.modes import Mode, _Switch
from gradcli.pytorch.recipes import QUIET
from gradcli.pytorch.record import Edge, GradFn, Leaf, Line, Recorder, Step, dependencies, edge_of, finite, script_line
from gradcli.pytorch.running import leading
from gradcli.pytorch.tensor import Array, Tensor, new


class Change(NamedTuple):
    """A gradient that a hook has changed: its edge, the hook, and the gradient before and after.

    `step` is the step that the hook runs after; None for a hook that runs before the edge.
    """

    edge: Edge
    hook: Any
    before: Tensor
    after: Tensor
    step: Step | None = None


@dataclass(eq=False, repr=False)
class Contribution:
    """A gradient that a call adds to the `.grad` of a tensor, with that before and after.

    `before` is an array, which a later addition in place does not change; None where there was no `.grad`, and where
    nothing is explained.  `after` is None where the call returns its gradients.
    """

    tensor: Tensor
    grad: Any
    before: Any = None
    after: Any = None


class Pulled(NamedTuple):
    """One step of a call: the gradients of its results, and those of its inputs, before hooks."""

    step: Step
    grad_outputs: Sequence[Any]
    grad_inputs: Sequence[Any]


@dataclass(eq=False, repr=False)
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
    if outer is None and request.result:
        Recorder.listener.is_answered(request)


@dataclass(eq=False, repr=False)
class Call:
    """One call of `backward` or `grad`, with its record for explanations."""

    roots: list[tuple[Tensor, Tensor]]  # the outputs, each with its v
    inputs: list[Tensor] | None = None  # whose gradients are requested; None: all leaves
    returns: bool = False  # the gradients, and leaves each .grad as it is
    freed: bool = True
    create: bool = False  # gradients with a history
    implicit: bool = False  # the script gave no v
    request: Request | None = None
    contributions: list[Contribution] = field(default_factory=list)  # to what gradients are asked for
    retained: list[Contribution] = field(default_factory=list)  # to the other intermediates that keep their gradient
    depth: int = 0  # how many others it runs within
    line: Line = Step.line
    targets: dict[Edge, Any] = field(default_factory=dict)  # the edges of `inputs`, with what arrived there
    ends: frozenset[GradFn] = frozenset()  # steps that it does not go beyond
    within: list[Step] = field(default_factory=list)  # the steps of calls that it has freed
    changes: list[Change] = field(default_factory=list)
    failing: str = ""  # the function of a call whose gradient is nan, where anomalies are detected
    explained: bool = False  # whether the steps below are recorded
    pulled_steps: dict[Step, Pulled] = field(default_factory=dict)
    arose: list[Pulled] = field(default_factory=list)  # whose gradients are not finite, though that of its result is

    def run(self) -> None:
        """Run the sweep from the roots."""
        seeds = [(edge_of(y), v if self.create else new(v._a)) for y, v in self.roots]
        self.targets = {edge_of(x): None for x in self.inputs or ()}
        self.request, self.depth = Mode.request, 0 if Mode.running is None else Mode.running.depth + 1
        Recorder.listener.begins(self)
        Recorder.swept = self.line = script_line() if Recorder.explains else Line(0)
        before = Mode.grad, Mode.running
        Mode.grad, Mode.running = self.create, self
        try:
            with np.errstate(all="ignore"):
                self.sweep(seeds)
        finally:
            Mode.grad, Mode.running = before

    def sweep(self, seeds: Sequence[tuple[Edge, Any]]) -> None:
        """Visit each edge once its gradient is complete."""
        waiting = dependencies((fn for (fn, _), _ in seeds), self.ends)
        active = waiting if self.inputs is None else _leading_to(waiting, self.targets)
        pending: dict[GradFn, list[Any]] = {}
        for edge, g in seeds:
            self.add(pending, edge, g)
        number = count()
        ready = [(-fn.seq, next(number), fn) for fn in pending if not waiting[fn]]
        heapify(ready)
        while ready:
            fn = heappop(ready)[2]
            grad_inputs = self.visited(fn, pending.pop(fn, ()), fn in active)
            for read, g in zip(fn.edges, grad_inputs, strict=True) if fn not in self.ends else ():
                if read is None:
                    continue
                if g is not None:
                    self.add(pending, read, g)
                other = read[0]
                left = waiting[other] = waiting[other] - 1
                if not left:
                    heappush(ready, (-other.seq, next(number), other))
        for step in self.within:  # which a double backward also reaches by themselves
            step.free(self.line)

    def add(self, pending: dict[GradFn, list[Any]], edge: Edge, g: Any) -> None:
        """Accumulate a gradient at an edge."""
        fn, number = edge
        if (grads := pending.get(fn)) is None:
            if fn.count == 1:
                pending[fn] = [g]
                return
            grads = pending[fn] = [None] * fn.count
        if (before := grads[number]) is not None:
            g = before + g if self.create else new(before._a + g._a)
        grads[number] = g

    def visited(self, fn: GradFn, grads: Sequence[Any], is_active: bool) -> Sequence[Any]:
        """Return the gradients of a step's inputs for the complete ones of its results, which targets keep."""
        targets = [(fn, i) for i in range(fn.count) if (fn, i) in self.targets] if self.targets else ()
        if grads and (is_active or targets):
            arrived, grads = grads, self.hooked(fn, grads) if fn.pres or fn._nexts or fn.retained else grads
            for edge in targets:  # PyTorch's `grad` takes what also goes on before its hooks
                self.targets[edge] = (arrived if self.returns and is_active else grads)[edge[1]]
            if isinstance(fn, Leaf):
                self.accumulate(fn, grads[0])
                return ()
            if is_active and isinstance(fn, Step):
                try:
                    return self.pulled(fn, grads)
                except Exception:
                    if Mode.anomaly:
                        _detected(fn, self.failing or fn.name())
                    raise
        return [None] * len(fn.edges)

    def hooked(self, fn: GradFn, grads: Sequence[Any]) -> Sequence[Any]:
        """Return the gradients of a step's results as its hooks leave them; tensors keep those that are asked for."""
        result = list(grads)
        for i, hooks in fn.pres.items():
            for hook in hooks if grads[i] is not None else ():
                self.replace(fn, result, hook, lambda hook, i=i: {i: hook(result[i])})  # type: ignore[misc]
        for hook in fn._nexts or ():
            self.replace(fn, result, hook, lambda hook: _by_result(hook(tuple(result))))
        for i, kept in fn.retained.items():
            if (x := kept()) is not None and (g := result[i]) is not None:
                before = x._grad
                x._grad = g.clone() if before is None else before + g
                contributions = self.contributions if (fn, i) in self.targets and not self.returns else self.retained
                contributions.append(Contribution(x, g, None if before is None else before._a, x._grad))
        return result

    def replace(self, fn: GradFn, grads: list[Any], hook: Any, call: Callable[[Any], Mapping[int, Any]]) -> None:
        """Replace gradients by those that `call` returns of a hook, by the number of the result; record the changes."""
        before = [g if g is None or not Recorder.explains else new(g._a.copy("K")) for g in grads]
        versions = [g is not None and g._memory.version for g in grads]
        returned = call(hook)
        for i, g in enumerate(grads):
            if (changed := returned.get(i)) is not None:
                _check_returned(hook, g, changed)
                self.changes.append(Change((fn, i), hook, g, changed))
                grads[i] = changed if self.create else new(changed._a)
            elif g is not None and g._memory.version != versions[i]:
                self.changes.append(Change((fn, i), hook, before[i], g))

    def pulled(self, step: Step, grads: Sequence[Any]) -> Sequence[Any]:
        """Return the gradients of a step's inputs, after its hooks.

        Errors: PyTorch's, for a freed step, and for saved tensors that were changed in place.
        """
        check_kept(step, step.checks)
        step.reached = True
        if step.count == 1 and not step.is_composed and grads[0]._a.shape[:-1] != step.shapes[0]:
            grads = [grads[0].reshape(step.shapes[0])]  # of a tensor that was transposed in place under no_grad
        if missing := _without_derivative(step.called):
            if missing == _NOT_IMPLEMENTED:
                raise torch_error("no derivative", step.recipe.op)
            words = (missing, f"inplace version of {missing[:-1]}") if missing[-1] == "_" else (step.recipe.op, missing)
            raise torch_error("no derivative of its name", *words)
        if not step.is_composed and step.pull.lacks_derivative:
            raise torch_error("no derivative of its name", step.recipe.op, step.recipe.op)
        grad_inputs = _grad_inputs(step, grads, self.create)
        if self.explained:
            self.pulled_steps[step] = Pulled(step, grads, grad_inputs)
        if Recorder.explains and not all(map(_finite, grad_inputs)):
            if not self.arose:  # which operation was the first is seen before the steps are freed
                _ = [e.arose for e in dependencies(edge_of(y)[0] for y, _ in self.roots) if isinstance(e, Step)]
            self.arose += _arising(step, grads, grad_inputs)
        for i, p in enumerate(grad_inputs) if Mode.anomaly and Mode.check_nan else ():
            if p is not None and np.isnan(p._a).any():
                self.failing, position = returning(step.called, i)
                raise torch_error("nan in a backward", self.failing, position, about=(self, step))
        if step._posts:
            grad_inputs = self.hooked_after(step, grad_inputs, tuple(grads))
        if self.freed:
            step.free(self.line)
            self.within += step.steps()
        return grad_inputs

    def hooked_after(self, step: Step, grad_inputs: Sequence[Any], given: tuple[Any, ...]) -> Sequence[Any]:
        """Return the gradients of a step's inputs as its hooks leave them, which see those of PyTorch's function."""
        grads, forms = list(grad_inputs), inputs_of(step.called) or [(i, "") for i in range(len(grad_inputs))]
        for hook in list(step._posts or ()):
            passed = tuple(in_form(form, grads[k]) for k, form in forms)
            if (result := hook(passed, given)) is not None:
                raise_if(not isinstance(result, tuple), "kind of a hook's values", type(result).__name__)
                wrong = len(result) != len(passed)
                raise_if(wrong, "count of a hook's values", hook.__name__, len(result), len(passed))
                for (k, form), old, g in zip(forms, passed, result, strict=True):
                    if g is not old:
                        replaced = in_form(form, g, step.recipe.inputs[k].shape) if form else g
                        if (edge := step.edges[k]) is not None:
                            self.changes.append(Change(edge, hook, grads[k], replaced, step))
                        grads[k] = replaced
        return [p if p is None or self.create else new(p._a) for p in grads]

    def accumulate(self, leaf: Leaf, g: Any) -> None:
        """Add a gradient to the `.grad` of a leaf; that of a view that was created under no_grad is dropped."""
        x = leaf.variable
        if self.returns or not x._requires:
            return
        before = x._grad
        kept = before._a.copy() if before is not None and Recorder.explains else None
        if before is None and g.requires_grad and self.create:
            x._grad = set_grad_fn_name(g.clone(), "torch::autograd::CopyBackwards")
            x._grad._memory.version = 1  # PyTorch sets the numbers of a new tensor
        elif before is None:
            x._grad = new(g._a.copy())  # other leaves may have the same array
        elif self.create:
            x._grad = before + g
        else:
            before._memory.keep()
            before._a[...] = before._a + g._a
            before._memory.version += 1
        if Recorder.explains:
            x._reached = self.line
            self.contributions.append(Contribution(x, g, kept, x._grad))
        for hook in [*leaf._dones] if leaf._dones else ():
            if (result := hook(x)) is not None and result is not x:
                _check_returned(hook, g, result)
                raise torch_error("value of a hook behind the gradient")
        for hook in [*leaf._posts] if leaf._posts else ():
            hook((), (g,))


_NOT_IMPLEMENTED = "torch::autograd::NotImplemented"


@cache
def _without_derivative(text: str) -> str | None:
    """Return the name in PyTorch's error for a step that has no derivative there; None of one that has."""
    name = name_of(text)
    return name if name == _NOT_IMPLEMENTED else fact("no_derivative", name.removesuffix("Backward0"))


def in_form(form: str, g: Any, shape: Any = None) -> Any:
    """Return the gradient of an operand in the form in which a function reads it, or back, in the operand's shape."""
    if g is None or not form:
        return g
    return g.t() if form == "T" else g.reshape((-1, g.shape[-1]) if shape is None else shape)


def _by_result(grads: Any) -> Mapping[int, Any]:
    """Return the gradients that a hook of a step returns, by the number of the result."""
    raise_if(grads is not None and not isinstance(grads, tuple), "kind of a hook's values", type(grads).__name__)
    return dict(enumerate(grads or ()))


def _arrays(step: Step, grads: Sequence[Any]) -> list[Array]:
    """Return the gradients of a step's results, zeros for those of which none has arrived."""
    if step.count == 1:
        return [grads[0]._a]
    outputs = step.recipe.outputs
    return [np.zeros((*n.shape, 1), n.dtype) if g is None else g._a for n, g in zip(outputs, grads, strict=True)]


def _grad_inputs(step: Step, grads: Sequence[Any], create: bool) -> Sequence[Any]:
    return step.grad_inputs(grads, create) if step.is_composed else vjp(step, grads, create)


def vjp(step: Step, grads: Sequence[Any], create: bool) -> Sequence[Any]:
    """Return the gradient of each input of a step for those of its results; `create` records them."""
    result: list[Any] = [None] * len(step.edges)
    kept, residuals = step.reads(), step.residuals
    if step.packed:
        kept = unpacked(step, kept)
        residuals = _computed_again(step, kept)
    if create:
        is_leaf = not step.packed  # a leaf itself is what it keeps
        pairs = zip(kept, (*step.edges, *((step, i) for i in range(step.count))), strict=True)
        known = [None if a is None else leading(a, e, is_leaf) for a, e in pairs]
        for i, operand in enumerate(step.beside):
            if known[i] is None and operand is not None:
                memory, version, a = operand
                is_read = step.recipe.operands[i] in step.pull.read_twice
                what = f"a double backward through {step.name()}, whose operand was changed in place"
                missing_if(is_read and memory.version != version, what)
                known[i] = leading(a, step.edges[i], is_leaf)
        arrays = _arrays(step, grads)
        given = [new(a) if g is None else g for g, a in zip(grads, arrays, strict=True)]
        computed = step.pull.computed([*kept, *step.numbers, *residuals, *arrays], step.columns)
        grad_inputs: Any = recorded_vjp(step, [*known, *step.numbers, *given], computed)
    else:
        arrays = [*kept, *step.numbers, *residuals, *_arrays(step, grads)]
        grad_inputs = map(new, step.pull.computed(arrays, step.columns))
    for i, p in zip(step.pull.active, grad_inputs, strict=True):
        result[i] = p
    return result


def _computed_again(step: Step, kept: Sequence[Any]) -> Sequence[Any]:
    """Return the residuals of a step for the operands that hooks have unpacked."""
    if not step.residuals:
        return ()
    beside = [known and known[2] for known in step.beside]
    operands = [b if a is None else a for a, b in zip(kept, beside, strict=False)]
    return QUIET.run(step.recipe.forward.run, *operands, *step.numbers)[step.count :]


def unpacked(step: Step, kept: Sequence[Any]) -> list[Any]:
    """Return the arrays that a step reads in its backward, unpacked by hooks where these have packed them.

    Errors: `MissingError` where they unpack other numbers, and the step reads more than PyTorch keeps.
    """
    result = list(kept)
    for i, packed in step.packed.items():
        a, form = packed(None)._a, saved_as(step.called, i)
        result[i] = a.swapaxes(0, 1) if form == "T" else a.reshape((*step.recipe.inputs[i].shape, 1)) if form else a
    others = [a for i, a in enumerate(kept) if i not in step.packed]
    if any(a is not None and a.size > 1 for a in others):
        same = (a is b or b is None or np.array_equal(a, b, equal_nan=True) for a, b in zip(result, kept, strict=True))
        missing_if(not all(same), f"{step.name()} with hooks that unpack other numbers than were packed")
    return result


def called_by_script(fn: GradFn, *grads: Any) -> Any:
    """Return the gradients of a step's inputs, in PyTorch's order, for gradients that a script passes."""
    call = Call([], freed=False, create=Mode.grad)
    given = [g if Mode.grad else new(g._a) for g in grads]
    if not isinstance(fn, Step):
        return call.accumulate(fn, *given) or ()  # type: ignore[arg-type,func-returns-value]
    hooks, fn._posts = fn._posts, None
    try:
        grad_inputs = call.pulled(fn, given)
    finally:
        fn._posts = hooks
    forms = inputs_of(fn.called) or [(i, "") for i in fn.order()]
    shown = tuple(in_form(form, grad_inputs[i]) if i < len(grad_inputs) else None for i, form in forms)
    return shown[0] if len(shown) == 1 else shown


Recorder.called = called_by_script


def _check_returned(hook: Any, before: Any, result: Any) -> None:
    """Raise PyTorch's error if a hook returns something that cannot replace the gradient."""
    raise_if(not isinstance(result, type(before)), "kind of a hook's value", type(result).__name__)
    name = getattr(hook, "__name__", "<unknown>")
    raise_if(result.dtype != before.dtype, "dtype of a hook's value", name, before.type(), result.type())
    raise_if(result.shape != before.shape, "size of a hook's value", name)


def _arising(step: Step, grads: Sequence[Any], grad_inputs: Sequence[Any]) -> Iterator[Pulled]:
    """Yield a step whose slopes are not finite: so are its gradients, also where those of its results were finite."""
    if all(map(_finite, grads)):
        yield Pulled(step, grads, grad_inputs)
    elif not step.is_custom and not step.packed:
        arrays = _arrays(step, grads)
        some = [new(np.where(np.isfinite(a), a, 1).astype(a.dtype)) for a in arrays]
        slopes = _grad_inputs(step, some, False)
        bad = [~np.isfinite(p._a) for p in slopes if p is not None]
        if step.arose:  # the slopes at values that are not finite follow from these
            known = np.isfinite(arrays[0])
            bad = [b & known for b in bad if b.shape == known.shape]
        if any(b.any() for b in bad):
            yield Pulled(step, some, slopes)


def _finite(g: Any) -> bool:
    return g is None or finite(g._a)


def check_kept(step: Step, checks: Any) -> None:
    """Raise PyTorch's error if a step is freed, or a tensor that it keeps was changed in place."""
    if step.freed is not None:
        raise torch_error("freed graph", about=(step,))
    for memory, version, array, tensor, position in checks:
        if memory.version != version:
            source, sizes = step if tensor is None else tensor._step, array.shape[:-1]
            form = "" if step.is_custom or tensor is None else saved_as(step.called, position)
            sizes = sizes[::-1] if form == "T" else (math.prod(sizes[:-1]), sizes[-1]) if form else sizes
            number = position - len(step.edges) if tensor is None else tensor.output_nr
            known = f", which is output {number} of {root_name(source.name())}," if source else ""
            if len(sizes) == 1 and step.name() == "SqueezeBackward4":  # a row, of which PyTorch makes a matrix
                sizes, form = (1, *sizes), "View"
            if form:
                known = ", which is output 0 of AsStrided," * (tensor is not None and tensor.requires_grad)
            kind, size = OF_NUMPY[array.dtype].tensor, ", ".join(map(str, sizes))
            hint = message("changed while anomalies are detected" if Mode.anomaly else "how to detect anomalies")
            versions = memory.version, version
            raise torch_error("changed in place", kind, size, known, *versions, hint, about=(step, memory, version))


def _leading_to(counts: dict[GradFn, int], targets: dict[Edge, Any]) -> set[GradFn]:
    """Return the steps on the way to wanted edges."""
    result: set[GradFn] = set()
    for fn in sorted(counts, key=lambda fn: fn.seq):
        if any(e is not None and (e in targets or e[0] in result) for e in fn.edges):
            result.add(fn)
    return result


def _detected(step: Step, function: str) -> None:
    """Warn, as anomaly detection does, with the line of the operation."""
    line = step.line
    if not line.traced:
        warn("error detected, untraced", function)
        return
    code = linecache.getline(line.file, line).strip()
    name = line.code.co_name if line.code else ""
    warn("error detected", function, f'\n  File "{line.file}", line {line}, in {name}\n    {code}' if name else "")
