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
from gradcli.pytorch.functions import edges_shown, grad_name
from gradcli.pytorch.messages import raise_if, torch_error
from gradcli.pytorch.modes import Mode
from gradcli.pytorch.origins import Maker, Origin
from gradcli.pytorch.recipes import Array, Pull, Recipe, recipe_for

Tensor = Any  # the class is defined above the record
_SEQUENCE = count()


class Make:
    """Constructors of tensors, which are set where the class of tensors is defined."""

    tensor: ClassVar[Callable[[Array], Tensor]]
    refreshed: ClassVar[Callable[[Tensor], None]]  # gives a view a new step where its memory was changed


class Memory:
    """The memory that tensors share (aliases): a count of its changes in place."""

    version = 0
    changed: tuple[int, str] | None = None  # the line of the last change, and what made it
    lines: Mapping[int, int] = MappingProxyType({})  # the version after the last change by each line


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
    pushed: ClassVar[Callable[[Any, Sequence[Any], Any, str], None]]  # gives a result its tangent
    inner: ClassVar[Callable[[Any], Any]]  # the edges within a product that PyTorch makes of several functions
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


class Edge:
    """A node of PyTorch's graph, a tensor's `grad_fn`: a step, or a leaf."""

    seq: int  # when it was recorded
    shape: tuple[int, ...]  # of a step's result
    edges: tuple[Edge | None, ...] = ()  # what the gradient flows on to
    retained: weakref.ref[Tensor] | None = None  # whose `.grad` keeps the gradient
    _pres: list[Callable[..., Any]] | None = None  # what sees the gradient before it goes on: hooks, in their order
    _nexts: list[Callable[..., Any]] | None = None  # and behind these, those of the step
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
        """The edges that scripts see in place of its own; none but for a product that PyTorch makes of several."""
        return ()

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The edges of its inputs."""
        edges = self.inner or [self.edges[i] if i < len(self.edges) else None for i in self.order()]
        return tuple((shown(e), getattr(e, "number", 0)) for e in edges)

    def __repr__(self) -> str:
        return f"<{self.name().rpartition('::')[2]} object at {hex(id(self))}>"

    @cached_property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for the script's own use."""
        return {}

    def __call__(self, *grads: Any) -> Any:
        """Return the gradients of the inputs for a gradient that a script passes, without calling hooks."""
        if len(grads) != 1:
            raise torch_error("count of gradients of a step", len(grads))
        return Recorder.called(self, *grads)

    def hooked(self, kind: str, hook: Callable[..., Any]) -> Handle:
        """Add a hook to those that are called before or after it."""
        if getattr(self, kind) is None:
            setattr(self, kind, [])
        return Handle(getattr(self, kind), hook)

    def register_prehook(self, hook: Callable[..., Any]) -> Handle:
        """Register a hook on the gradients, called before the step runs."""
        return self.hooked("_nexts", lambda g: _first(hook((g,))))

    def register_hook(self, hook: Callable[..., Any]) -> Handle:
        """Register a hook on the gradients of the inputs and of the result."""
        return self.hooked("_posts", hook)


def _first(grads: Any) -> Any:
    """Return the first of the gradients that a hook returns."""
    raise_if(grads is not None and not isinstance(grads, tuple), "kind of a hook's values", type(grads).__name__)
    return grads and grads[0]


class Leaf(Edge):
    """The edge of a leaf, whose gradient accumulates in its `.grad`."""

    seq = sys.maxsize

    def __init__(self, variable: Tensor) -> None:
        self.variable = variable

    def hooked(self, kind: str, hook: Callable[..., Any]) -> Handle:
        self.variable._leaf = lambda: self  # which lives as long as its tensor from now on
        return super().hooked(kind, hook)


class Step(Edge):
    """A recorded operation, with the arrays that it keeps for its backward."""

    is_custom = False  # whether it is of a custom function
    grad_inputs: Callable[[Any, bool], Sequence[Any]]  # the gradients of such a function's inputs
    called: str  # what PyTorch calls it
    recipe: Recipe
    pull: Pull
    kept: Any = ()  # the numbers of its inputs, and its result; None for those that it does not need
    # What must not have changed: memory, the version then, numbers, tensor (None: the result), its place in `kept`.
    checks: Any = ()
    packed: Mapping[int, Any] = {}  # what a hook has packed, by its index in `kept`: see `autograd.graph`
    keeps = False  # whether PyTorch keeps tensors for it, which a backward frees
    freed: int | None = None  # the line of the backward that freed it
    reached = False  # whether a backward has gone through it
    whole: Any  # of one of several outputs: the step that scripts see
    is_lane = False  # whether the output is an element of a `vmap`
    part_of: Any = None  # of a gradient in a double backward: that step of several outputs
    number: int
    # For explanations: its operands, the innermost module whose output it is, its line, its result with the version
    # that its memory had, and whether that is the first that is not finite.
    operands: tuple[Any, ...] | None = None
    module: Any = None
    line = Line(0)
    result: tuple[Array, Memory, int] | None = None
    arose = False

    def __init__(self, edges: tuple[Edge | None, ...]) -> None:
        self.edges, self.seq = edges, next(_SEQUENCE)

    def name(self) -> str:
        return self.called

    @cached_property
    def inner(self) -> Sequence[Edge | None]:
        return () if self.is_custom else Recorder.inner(self)

    def order(self) -> Sequence[int]:
        return edges_shown(self.recipe.op, self.called, len(self.edges))

    @property
    def value(self) -> Array | None:
        """The numbers of its result; None where nothing is explained, or a later change in place has replaced them."""
        if self.result is None:
            return None
        array, memory, version = self.result
        return array if memory.version == version else None

    def traced(self, g: Array, grads: Sequence[Any]) -> tuple[dict[Any, Array], dict[Node, Array]]:
        """Return the contributions and adjoints within its recipe, as `Pull.traced`; none where hooks have packed."""
        kept = self.kept or [None] * (len(self.edges) + 1)
        return ({}, {}) if self.packed else self.pull.traced([*kept, g], grads)

    def free(self, line: int) -> None:
        """Drop the arrays that it keeps."""
        if self.keeps:
            self.freed = line
        self.kept, self.checks, self.packed, self.result = (), (), {}, None


@cache
def _class(name: str) -> type:
    """Return the class of steps that scripts see under a name, and ask for what they keep."""
    return type(name, (Step,), {"__module__": "builtins", "__getattr__": _attribute})


def _attribute(step: Step, name: str) -> Any:
    if not name.startswith("_saved_"):
        raise torch_error("unknown attribute", type(step).__name__, name)
    return Recorder.saved(step, name)


def shown(edge: Any) -> Any:
    """Return a step as scripts see it: of a class with PyTorch's name for it, and one for all outputs."""
    edge = getattr(edge, "whole", edge)
    if type(edge) is Step:
        edge.__class__ = _class(edge.name().rpartition("::")[2])
    return edge


Edge.__name__ = Edge.__qualname__ = "Node"
Edge.__module__ = "torch.autograd.graph"
Leaf.__name__ = Leaf.__qualname__ = "AccumulateGrad"
Leaf.__module__ = "builtins"


def leading(a: Array, edge: Edge | None, is_custom: bool = False) -> Tensor:
    """Return a tensor with the history of an edge: the leaf itself for a leaf whose numbers these are."""
    if is_custom and isinstance(edge, Leaf):
        return edge.variable
    result = Make.tensor(a)
    if isinstance(edge, Step):
        result._fn = edge
    elif edge is not None:
        result._leaf, result._requires = (lambda: edge), True  # type: ignore[assignment,return-value]
    return result


def dependencies(roots: Iterable[Edge]) -> dict[Edge, int]:
    """Return the number of gradients that each reachable edge waits for."""
    counts: dict[Edge, int] = dict.fromkeys(roots, 0)
    stack = list(counts)
    while stack:
        for edge in stack.pop().edges:
            if edge is not None:
                if edge not in counts:
                    counts[edge] = 0
                    stack.append(edge)
                counts[edge] += 1
    return counts


def apply(
    op: str, build: Callable[..., Node], operands: Sequence[Any], settings: Any = (), name: str | None = None
) -> Tensor:
    """Return the result of an operation, recorded if one of its operands requires a gradient.

    `build` makes the node from nodes, for operands that are tensors, or arrays of one number; `settings` are what else
    it knows, and tell one call from another.
    """
    arrays = [x if isinstance(x, np.ndarray) else x._a for x in operands]
    recipe = recipe_for((op, settings, *[(a.shape, a.dtype) for a in arrays]), build, arrays)
    if recipe.is_view:
        out = mapped(Make.tensor(*recipe.program(arrays)), operands)
        _show(out, operands, recipe)
    else:
        with np.errstate(all="ignore"):
            (result,) = recipe.program(arrays)
        is_scattered = recipe.is_dense and not result.flags.c_contiguous
        out = mapped(Make.tensor(np.ascontiguousarray(result) if is_scattered else result), operands)
    if Mode.grad and not out._inference:
        active = tuple([i for i, x in enumerate(operands) if not isinstance(x, np.ndarray) and x.requires_grad])
        if active and out._a.dtype.kind == "f":
            record(out, name or grad_name(op), recipe, operands, active)
    if Mode.dual is not None:
        Recorder.pushed(out, operands, recipe, name or grad_name(op))
    if out._fn is not None:
        return out
    if Recorder.explains:
        Recorder.lost(out, operands, op)
    return out


def shown_by(
    array: Array, op: str, build: Callable[..., Node], x: Tensor, settings: Any, name: str | None = None
) -> Tensor:
    """Return the result of an operation as a view of its operand: an array that shows the operand's memory."""
    out = apply(op, build, (x,), settings, name)
    out._a = array
    _show(out, (x,), recipe_for((op, settings, (x._a.shape, x._a.dtype)), build, (x._a,)))
    return out


def mapped(out: Tensor, operands: Sequence[Any]) -> Tensor:
    """Return a result, which is an element of the outermost `vmap` of which one of its operands is."""
    if Mode.maps:
        out._map = min((x._map for x in operands if not isinstance(x, np.ndarray)), default=out._map)
    return out


def _show(out: Tensor, operands: Sequence[Any], recipe: Recipe) -> None:
    """Make a result a view of its operand, if they share memory."""
    (x,) = operands
    if out._a.size and not np.may_share_memory(out._a, x._a):
        return
    out._memory = x._memory
    out._inference = x._inference
    if x._inference:
        return
    out._base = x if x._base is None else x._base
    out._how = (recipe,) if x._base is None else (*x._how, recipe)
    out._seen = out._memory.version
    if not Mode.grad:
        out._origin = Origin(Maker.INFERENCE if Mode.inference else Maker.NO_GRAD)
    elif x._origin is not None:
        out._origin = x._origin.inner()


def record(out: Tensor, name: str, recipe: Recipe, operands: Sequence[Any], active: tuple[int, ...]) -> None:
    """Record the step of a result, given its operands, of which the active ones require gradients."""
    out._fn = step = Step(tuple([edge_of(x) if i in active else None for i, x in enumerate(operands)]))
    step.called, step.shape, step.recipe, step.pull = name, recipe.output.shape, recipe, recipe.pull(active)
    reads = step.pull.reads
    needed, step.keeps = step.pull.saved(name)
    if reads or needed:
        checks: list[Any] = []
        kept: list[Any] = [None] * (len(operands) + 1)
        for i in reads.union(needed):
            x = operands[i] if i < len(operands) else out
            a = x if isinstance(x, np.ndarray) else x._a
            if i in reads:  # a copy of what PyTorch's own rule does not read: a later change in place does no harm
                kept[i] = a if i in needed else a.copy("K")
            if i in needed and x is not a:
                raise_if(x._inference, "inference tensor saved")
                checks.append((x._memory, x._memory.version, a, None if x is out else x, i))
        step.checks, step.kept = checks, kept
    if Recorder.explains or Mode.anomaly:
        step.line = script_line()
        step.operands = tuple(None if e is not None else x for e, x in zip(step.edges, operands, strict=True))
        arrays = (x if isinstance(x, np.ndarray) else x._a for x in operands)
        step.arose = not finite(out._a) and all(map(finite, arrays))
    if Recorder.explains:
        step.result = out._a, out._memory, out._memory.version
    if Mode.hooks is not None and step.keeps:
        Mode.hooks.pack(step, out)


def finite(a: Array) -> bool:
    """Return whether all numbers of an array are finite."""
    return a.dtype.kind != "f" or bool(np.isfinite(a).all())


def edge_of(x: Tensor) -> Edge:
    """Return the edge of a tensor."""
    step = x._step
    if step is not None:
        return step
    leaf = x._leaf() if x._leaf is not None else None
    if leaf is None:
        leaf = Leaf(x)
        x._leaf = weakref.ref(leaf)
    return leaf
