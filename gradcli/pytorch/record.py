"""The record: a step for each operation, with the values saved for its backward and its edges to earlier steps."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from itertools import count
from types import CodeType, MappingProxyType
from typing import Any, ClassVar

import numpy as np

from gradcli.graph.node import Node
from gradcli.pytorch.chains import inputs_of, name_of
from gradcli.pytorch.functions import edges_shown, grad_name
from gradcli.pytorch.layouts import is_column_major, like_operands
from gradcli.pytorch.messages import missing_if, raise_if, torch_error
from gradcli.pytorch.modes import Mode
from gradcli.pytorch.moments import Moment, moment
from gradcli.pytorch.origins import Maker, Origin
from gradcli.pytorch.recipes import QUIET, Array, Pull, Recipe, common_shape, recipe_for

Tensor = Any  # the class is defined above the record
SEQUENCE = count()


class Make:
    """Constructors of tensors, which are set where the class of tensors is defined."""

    tensor: ClassVar[Callable[[Array], Tensor]]
    refreshed: ClassVar[Callable[[Tensor], None]]  # gives a view a new step where its memory was changed


class Recorder:
    """Whether lines, operands and values are kept for explanations, and the callbacks of those who listen."""

    explains = False
    swept: ClassVar[Line | None] = None  # the line of the last backward
    before: ClassVar[Callable[[Any], None] | None] = None  # called with a call of `backward` or `grad` before it runs
    done: ClassVar[Callable[[Any], None] | None] = None  # and of one that is done
    answered: ClassVar[Callable[[Any], None] | None] = None  # called with a `Request` that has its result
    stepped: ClassVar[Callable[[Any, list[Any]], None] | None] = None  # called after an optimizer's step
    applied: ClassVar[Callable[[type, tuple[Any, ...], tuple[bool, ...]], None] | None] = None  # of a custom function
    # What is defined above the record, and set there: `backward`, `cuts` and `autograd.graph`.
    called: ClassVar[Callable[[Any, Any], Any]]  # the gradients of an edge's inputs, for a script that calls it
    lost: ClassVar[Callable[[Any, Sequence[Any], str], None]]  # notes a result that is not recorded
    pushed: ClassVar[Callable[[Any, Sequence[Any], Any, Any, str, Sequence[Any]], None]]  # gives a result its tangent
    inner: ClassVar[Callable[[Any], Any]]  # the edges within a call that PyTorch makes of several functions
    saved: ClassVar[Callable[[Any, str], Any]]  # what a step keeps, by PyTorch's name for it


class Line(int):
    """The number of a line of the script, or of a file that it imports, with its file and the call in the line."""

    file = ""
    call: tuple[int, int] = (0, 0)  # the frame and the instruction
    code: CodeType | None = None  # of the frame
    traced = False  # whether anomaly detection was on
    inside = False  # whether a module called the operation, and the script the module


def script_line() -> Line:
    """Return the line of the script that is running."""
    frame: Any = sys._getframe(1)
    inside = False
    while frame is not None and frame.f_globals.get("__name__", "").startswith("gradcli."):
        inside = inside or frame.f_code.co_name == "__call__"
        frame = frame.f_back
    if frame is None:
        return Line(0)
    result = Line(frame.f_lineno or 0)
    result.file, result.code = frame.f_code.co_filename, frame.f_code
    result.traced = Mode.anomaly
    result.call, result.inside = (id(frame), frame.f_lasti), inside
    return result


class Handle:
    """A hook that can be removed."""

    def __init__(self, hooks: Any, hook: Callable[..., Any], key: Any = None) -> None:
        self.hooks, self.hook, self.key = hooks, hook, key
        if key is None:
            hooks.append(hook)
        else:
            hooks[key] = hook

    def remove(self) -> None:
        """Remove the hook."""
        if self.key is not None:
            self.hooks.pop(self.key, None)
        elif self.hook in self.hooks:
            self.hooks.remove(self.hook)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


Handle.__name__ = Handle.__qualname__ = "RemovableHandle"
Handle.__module__ = "torch.utils.hooks"


class GradFn:
    """A node of PyTorch's graph, a tensor's `grad_fn`: a step, or a leaf."""

    seq: int  # when it was recorded
    count = 1  # of results, each of which has a gradient of its own
    edges: tuple[Edge | None, ...] = ()  # what the gradients flow on to
    retained: Mapping[int, weakref.ref[Tensor]] = MappingProxyType({})  # whose `.grad` keeps the gradient of a result
    # Hooks, in their order: those of each result see its gradient before it goes on, and behind them those of the step.
    pres: Mapping[int, list[Callable[..., Any]]] = MappingProxyType({})
    _nexts: list[Callable[..., Any]] | None = None
    _posts: list[Callable[..., Any]] | None = None
    _dones: list[Callable[..., Any]] | None = None  # of a leaf: what sees it once its `.grad` is there

    def name(self) -> str:
        """Return PyTorch's name."""
        return "torch::autograd::AccumulateGrad"

    def order(self) -> Sequence[int]:
        """Return which of its edges PyTorch shows, in its order."""
        return ()

    @cached_property
    def inner(self) -> Sequence[Edge | None]:
        """The edges that scripts see in place of its own; none but for a call that is several functions."""
        return ()

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The edges of its inputs."""
        edges = self.inner or [self.edges[i] if i < len(self.edges) else None for i in self.order()]
        return tuple((None, 0) if e is None else (shown(e[0]), e[1]) for e in edges)

    def __repr__(self) -> str:
        return f"<{self.name().rpartition('::')[2]} object at {hex(id(self))}>"

    @cached_property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for the script's own use."""
        return {}

    def __call__(self, *grads: Any) -> Any:
        """Return the gradients of the inputs for a gradient that a script passes, without calling hooks."""
        if isinstance(self, Step):
            self.check_shown("a call")
        if len(grads) != self.count:
            raise torch_error("count of gradients of a step", self.count, len(grads))
        return Recorder.called(self, *grads)

    def hooked(self, kind: str, hook: Callable[..., Any]) -> Handle:
        """Add a hook to those that are called before or after it."""
        if getattr(self, kind) is None:
            setattr(self, kind, [])
        return Handle(getattr(self, kind), hook)

    def hooked_result(self, number: int, hook: Callable[..., Any]) -> Handle:
        """Add a hook to those that see the gradient of a result."""
        self.pres = {number: [], **self.pres}
        return Handle(self.pres[number], hook)

    def register_prehook(self, hook: Callable[..., Any]) -> Handle:
        """Register a hook on the gradients of the results, called before the step runs."""
        return self.hooked("_nexts", hook)

    def register_hook(self, hook: Callable[..., Any]) -> Handle:
        """Register a hook on the gradients of the inputs and of the result."""
        return self.hooked("_posts", hook)


Edge = tuple[GradFn, int]  # a step and the number of one of its results, or a leaf and 0


class Leaf(GradFn):
    """The end of the graph at a leaf, whose gradient accumulates in its `.grad`."""

    seq = sys.maxsize

    def __init__(self, variable: Tensor) -> None:
        self.variable = variable

    def hooked(self, kind: str, hook: Callable[..., Any]) -> Handle:
        self.variable._leaf = lambda: self  # which lives as long as its tensor from now on
        return super().hooked(kind, hook)

    def hooked_result(self, number: int, hook: Callable[..., Any]) -> Handle:
        self.variable._leaf = lambda: self
        return super().hooked_result(number, hook)


class Step(GradFn):
    """A recorded operation, with the arrays that it keeps for its backward."""

    is_custom = False  # whether it is of a custom function
    grad_inputs: Callable[[Any, bool], Sequence[Any]]  # the gradients of such a function's inputs
    called: str  # what PyTorch calls it: a name, or a chain of several functions
    shapes: Sequence[tuple[int, ...]]  # of its results
    recipe: Recipe
    pull: Pull
    columns: Any = ()  # the inputs that are column-major, where gradients have the layout of their inputs
    kept: Any = ()  # the values of its operands, and its results; None for those that it does not need
    numbers: Sequence[Any] = ()  # what it was computed of beside its operands: indices, positions, factors
    # What must not have changed: memory, the version then, numbers, tensor (None: a result), its place in `kept`.
    checks: Any = ()
    packed: Mapping[int, Any] = {}  # what a hook has packed, by its index in `kept`: see `autograd.graph`
    residuals: Sequence[Array] = ()  # inner values of a call that its backward reads
    beside: Sequence[Any] = ()  # of such a call, what a double backward reads of the operands, with their versions
    keeps = False  # whether PyTorch keeps tensors for it, which a backward frees
    freed: int | None = None  # the line of the backward that freed it
    reached = False  # whether a backward has gone through it
    # For explanations: those of its operands that have no history, the innermost module whose output it is, its line,
    # the numbers that it read, and those of its results.
    operands: tuple[Any, ...] | None = None
    module: Any = None
    line = Line(0)
    read: Sequence[Moment] = ()
    made: Sequence[Moment] = ()

    def __init__(self, edges: tuple[Edge | None, ...]) -> None:
        self.edges, self.seq = edges, next(SEQUENCE)

    def name(self) -> str:
        return name_of(self.called)

    @cached_property
    def inner(self) -> Sequence[Edge | None]:
        return () if self.is_custom else Recorder.inner(self)

    def hooked(self, kind: str, hook: Callable[..., Any]) -> Handle:
        if kind == "_posts":
            self.check_shown("a hook")
        return super().hooked(kind, hook)

    def check_shown(self, what: str) -> None:
        """Check that the gradients of PyTorch's function are known: that of a loss of a softmax has others.

        Errors: `MissingError`.
        """
        is_within = bool(self.inner) and inputs_of(self.called) is None
        missing_if(is_within, f"{what} of {self.name()}, whose inputs are parts of the same call")

    def order(self) -> Sequence[int]:
        return edges_shown(self.recipe.op, self.called, len(self.edges))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of its first result."""
        return self.shapes[0]

    @cached_property
    def arose(self) -> bool:
        """Whether its result is the first that is not finite, of finite operands."""
        is_finite = all(finite(m.array) for m in self.made)
        return not is_finite and all(finite(m.array) for m in self.read)

    def reads(self) -> Sequence[Any]:
        """Return what its backward reads: as PyTorch's, the numbers that `.data =` has given an operand since.

        Errors: `RuntimeError` in PyTorch's words, for those of another shape.
        """
        kept = self.kept or [None] * (len(self.edges) + self.count)
        for _, _, a, x, i in self.checks:
            if x is not None and x._a is not a and kept[i] is a:
                kept = [*kept]
                kept[i] = _in_shape(x._a, a.shape)
        return kept

    def free(self, line: int) -> None:
        """Drop the arrays that it keeps."""
        if self.keeps:
            self.freed = line
            if not Recorder.explains:
                self.numbers = ()
        self.kept, self.checks, self.packed, self.read, self.made = (), (), {}, (), ()
        self.residuals, self.beside = (), ()


def _in_shape(a: Array, shape: tuple[int, ...]) -> Array:
    """Return an array in the shape that a backward reads it in."""
    if a.shape == shape:
        return a
    missing_if(common_shape((shape[:-1], a.shape[:-1])) != shape[:-1], "x.data = … of another shape before a backward")
    return np.broadcast_to(a, shape)


@cache
def _class(name: str) -> type:
    """Return the class of steps that scripts see under a name, and ask for what they keep."""
    return type(name, (Step,), {"__module__": "builtins", "__getattr__": _attribute})


def _attribute(step: Step, name: str) -> Any:
    if not name.startswith("_saved_"):
        raise torch_error("unknown attribute", type(step).__name__, name)
    return Recorder.saved(step, name)


def shown(fn: Any) -> Any:
    """Return a step as scripts see it: of a class with PyTorch's name for it."""
    if type(fn) is Step:
        fn.__class__ = _class(fn.name().rpartition("::")[2])
    return fn


GradFn.__name__ = GradFn.__qualname__ = "Node"
GradFn.__module__ = "torch.autograd.graph"
Leaf.__name__ = Leaf.__qualname__ = "AccumulateGrad"
Leaf.__module__ = "builtins"


def moment_of(edge: Edge | None) -> Moment | None:
    """Return the numbers of a step's result as it was made, or those of a leaf now; None where none are kept."""
    match edge:
        case Step() as step, number:
            return step.made[number] if step.made else None
        case Leaf() as leaf, _:
            return moment(leaf.variable)
    return None


def leading(a: Array, edge: Edge | None, is_custom: bool = False) -> Tensor:
    """Return a tensor with the history of an edge: the leaf itself for a leaf whose numbers these are."""
    fn, number = edge or (None, 0)
    if is_custom and isinstance(fn, Leaf):
        return fn.variable
    result = Make.tensor(a)
    if Recorder.explains and (known := moment_of(edge)) is not None and known.array is a:
        result._moment = weakref.ref(known)
    if isinstance(fn, Step):
        result._fn, result._output = fn, number
    elif fn is not None:
        result._leaf, result._requires = (lambda: fn), True  # type: ignore[assignment,return-value]
    return result


def dependencies(roots: Iterable[GradFn]) -> dict[GradFn, int]:
    """Return the number of gradients that each reachable step or leaf waits for."""
    counts: dict[GradFn, int] = dict.fromkeys(roots, 0)
    stack = list(counts)
    while stack:
        for edge in stack.pop().edges:
            if edge is not None:
                fn = edge[0]
                if fn not in counts:
                    counts[fn] = 0
                    stack.append(fn)
                counts[fn] += 1
    return counts


def apply(
    op: str,
    build: Callable[..., Node],
    operands: Sequence[Any],
    settings: Any = (),
    name: str | None = None,
    numbers: Sequence[Any] = (),
    shown: Array | None = None,
) -> Tensor:
    """Return the result of an operation, recorded if one of its operands requires a gradient.

    `build` makes the node from nodes: those of the operands, which are tensors, or arrays of one number, and those of
    `numbers`, which are indices, positions and factors.  `settings` are what else it knows, and tell one call from
    another.  A view may be `shown`, as an array that aliases the operand's memory.
    """
    arrays = [x if isinstance(x, np.ndarray) else x._a for x in operands]
    recipe = recipe_for(op, settings, build, arrays, numbers)
    return run(recipe, operands, name or grad_name(op), numbers, shown, arrays)


def run(
    recipe: Recipe,
    operands: Sequence[Any],
    name: str,
    numbers: Sequence[Any] = (),
    shown: Array | None = None,
    arrays: Sequence[Array] = (),
) -> Tensor:
    """Return the result of a recipe for operands and numbers, recorded under a name as `apply` does."""
    is_plain = Mode.is_plain and not Recorder.explains
    if not is_plain and Mode.tracer is not None:
        return Mode.tracer(recipe, operands, numbers)[0]
    if shown is not None:
        out = view_of(operands[0], shown, recipe, numbers)
    else:
        arrays = arrays or [x if isinstance(x, np.ndarray) else x._a for x in operands]
        if recipe.has_calls:
            return run_call(recipe, operands, name, numbers, arrays)[0]
        (result,) = QUIET.run(recipe.program, [*arrays, *numbers])
        if recipe.is_view:
            out = Make.tensor(result)
            if not result.size or np.may_share_memory(result, arrays[0]):
                _show(out, operands[0], recipe, numbers)
        else:
            result = like_operands(result, arrays) if recipe.is_elementwise else np.ascontiguousarray(result)
            out = Make.tensor(result)
    if is_plain:
        return _attach_history(out, recipe, operands, name, numbers)
    return noted_results((out,), recipe, operands, name, numbers)[0]


def run_call(
    recipe: Recipe, operands: Sequence[Any], name: str, numbers: Sequence[Any], arrays: Sequence[Array]
) -> tuple[Tensor, ...]:
    """Return the results of a call, and keep its residuals for a backward, if there may be one."""
    is_active = Mode.grad and any(not isinstance(x, np.ndarray) and x.requires_grad for x in operands)
    values = QUIET.run(recipe.forward if is_active else recipe.program, [*arrays, *numbers])
    count = len(recipe.outputs)
    outs = tuple(Make.tensor(np.ascontiguousarray(a)) for a in values[:count])
    noted_results(outs, recipe, operands, name, numbers)
    step = outs[0]._fn
    if len(values) > count and isinstance(step, Step):
        step.residuals = values[count:]
        step.beside = [None if isinstance(x, np.ndarray) else (x._memory, x._memory.version, x._a) for x in operands]
    return outs


def noted(out: Tensor, recipe: Recipe, operands: Sequence[Any], name: str, numbers: Sequence[Any] = ()) -> Tensor:
    """Return the result of a recipe, recorded if one of its operands requires a gradient."""
    if Mode.is_plain and not Recorder.explains:
        return _attach_history(out, recipe, operands, name, numbers)
    return noted_results((out,), recipe, operands, name, numbers)[0]


def _attach_history(out: Tensor, recipe: Recipe, operands: Sequence[Any], name: str, numbers: Sequence[Any]) -> Tensor:
    """Return a result with its step, where no mode and no explanation takes more: the way of what is called most."""
    if Mode.grad and not out._inference:
        active = tuple([i for i, x in enumerate(operands) if not isinstance(x, np.ndarray) and x.requires_grad])
        if active and out._a.dtype.kind == "f":
            make_step((out,), name, recipe, operands, active, numbers)
    return out


def noted_results(
    outs: tuple[Tensor, ...], recipe: Recipe, operands: Sequence[Any], name: str, numbers: Sequence[Any] = ()
) -> tuple[Tensor, ...]:
    """Return the results of a recipe, recorded as those of one step if one of its operands requires a gradient."""
    if Mode.tracer is not None:
        return Mode.tracer(recipe, operands, numbers)
    if Mode.maps:
        for out in outs:
            mapped(out, operands)
    if Mode.grad and not outs[0]._inference:
        active = tuple([i for i, x in enumerate(operands) if not isinstance(x, np.ndarray) and x.requires_grad])
        if active and outs[0]._a.dtype.kind == "f":
            record(outs, name, recipe, operands, active, numbers)
    if Mode.dual is not None:
        for out, node in zip(outs, recipe.outputs, strict=True):
            Recorder.pushed(out, operands, recipe, node, name, numbers)
    if Recorder.explains and outs[0]._fn is None:
        for out in outs:
            Recorder.lost(out, operands, recipe.op)
    return outs


def view_of(x: Tensor, array: Array, recipe: Recipe, numbers: Sequence[Any]) -> Tensor:
    """Return a view of a tensor: an array that shows its memory, as a recipe says."""
    out = Make.tensor(array)
    _show(out, x, recipe, numbers)
    return out


def mapped(out: Tensor, operands: Sequence[Any]) -> Tensor:
    """Return a result, which is an element of the outermost `vmap` of which one of its operands is."""
    if Mode.maps:
        out._map = min((x._map for x in operands if not isinstance(x, np.ndarray)), default=out._map)
    return out


def _show(out: Tensor, x: Tensor, recipe: Recipe, numbers: Sequence[Any]) -> None:
    """Make a result a view of its operand."""
    memory = out._memory = x._memory
    if x._inference or out._inference:
        out._inference = x._inference
        if x._inference:
            return
    if x._base is None:
        out._base, out._how = x, ((recipe, numbers),)
    else:
        out._base, out._how = x._base, (*x._how, (recipe, numbers))
    out._seen = memory.version
    if not Mode.grad:
        out._origin = Origin(Maker.INFERENCE if Mode.inference else Maker.NO_GRAD)
    elif x._origin is not None:
        out._origin = x._origin.inner()


def record(
    outs: Sequence[Tensor],
    name: str,
    recipe: Recipe,
    operands: Sequence[Any],
    active: tuple[int, ...],
    numbers: Sequence[Any] = (),
) -> None:
    """Record the step of results, given its operands, of which the active ones require gradients, and its numbers."""
    step = make_step(outs, name, recipe, operands, active, numbers)
    if Recorder.explains or Mode.anomaly:
        step.line = script_line()
        step.operands = tuple(None if e is not None else x for e, x in zip(step.edges, operands, strict=True))
        if Recorder.explains:
            step.read, step.made = tuple(map(moment, operands)), tuple(map(moment, outs))
    if Mode.hooks is not None and step.keeps:
        Mode.hooks.pack(step, outs)


def make_step(
    outs: Sequence[Tensor],
    name: str,
    recipe: Recipe,
    operands: Sequence[Any],
    active: tuple[int, ...],
    numbers: Sequence[Any],
) -> Step:
    """Return the step of results, which refer to it, with what a backward needs and nothing for explanations."""
    edges: list[Any] = [None] * len(operands)
    for i in active:
        edges[i] = edge_of(operands[i])
    step = Step(tuple(edges))
    outs[0]._fn = step
    pull = step.pull = recipe.pulls.get(active) or recipe.pull(active)
    step.called, step.shapes, step.recipe = name, recipe.shapes, recipe
    if len(outs) > 1:
        step.count = len(outs)
        for i, out in enumerate(outs):
            out._fn, out._output = step, i
    if numbers:
        step.numbers = numbers
    if pull.follow_inputs:
        step.columns = [i for i in active if is_column_major(operands[i]._a)]
    saved = pull.known.get(name) or pull.saved(name)
    step.keeps = saved.keeps
    if saved.kept:
        checks: list[Any] = []
        count = len(operands)
        kept: list[Any] = [None] * (count + len(outs))
        for i, is_read, is_needed in saved.kept:
            x = operands[i] if i < count else outs[i - count]
            a = x if isinstance(x, np.ndarray) else x._a
            if is_read:  # a copy of what PyTorch's own rule does not read: a later change in place does no harm
                kept[i] = a if is_needed else a.copy("K")
            if is_needed and x is not a:
                raise_if(x._inference, "inference tensor saved")
                checks.append((x._memory, x._memory.version, a, x if i < count else None, i))
        step.checks, step.kept = checks, kept
    return step


def finite(a: Array) -> bool:
    """Return whether all numbers of an array are finite."""
    if 0 in a.strides:  # an expanded array: each number once
        a = a[tuple(slice(None if step else 1) for step in a.strides)]
    # The sum of squares is one pass of BLAS; it may overflow where no number does.
    return a.dtype.kind != "f" or bool(np.isfinite(np.vdot(a, a)) or np.isfinite(a).all())


def edge_made(x: Tensor) -> Edge | None:
    """Return the edge of a tensor's step, of a view's as well where its memory has changed since; None of a leaf."""
    step = x._fn
    return None if step is None else (step, x._output if step.count > 1 else 0)


def edge_of(x: Tensor) -> Edge:
    """Return the edge of a tensor."""
    step = x._fn if x._base is None else x._step
    if step is not None:
        return step, x._output if step.count > 1 else 0
    leaf = x._leaf() if x._leaf is not None else None
    if leaf is None:
        leaf = Leaf(x)
        x._leaf = weakref.ref(leaf)
    return leaf, 0
