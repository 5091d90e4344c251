"""The record: a step for each operation, with the values saved for its backward and its edges to earlier steps."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from itertools import count
from types import CodeType, MappingProxyType
from typing import Any, ClassVar

import numpy as np

from gradcli.pytorch.chains import inputs_of, name_of
from gradcli.pytorch.functions import edges_shown
from gradcli.pytorch.messages import missing_if, torch_error
from gradcli.pytorch.modes import Mode
from gradcli.pytorch.moments import Moment, moment
from gradcli.pytorch.recipes import QUIET, Array, Pull, Recipe, common_shape

Tensor = Any  # the class is defined above the record
SEQUENCE = count()


class Listener:
    """Who is told what a script does: this one does nothing."""

    explains: ClassVar[bool] = True  # whether lines, operands and values are kept

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Listen within a block."""
        before = Recorder.explains, Recorder.listener
        Recorder.explains, Recorder.listener = self.explains, self
        try:
            yield
        finally:
            Recorder.explains, Recorder.listener = before

    def begins(self, call: Any) -> None:
        """Hear of a call of `backward` or `grad` before it runs."""

    def is_done(self, call: Any) -> None:
        """Hear of such a call that is done."""

    def is_answered(self, request: Any) -> None:
        """Hear of a `Request` that has its result."""

    def stepped(self, optimizer: Any, changes: Sequence[Any]) -> None:
        """Hear of an optimizer's step."""

    def applies(self, function: type, args: tuple[Any, ...], needed: tuple[bool, ...]) -> None:
        """Hear of a custom function before it runs, and of which of its arguments require a gradient."""


class Recorder:
    """Whether lines, operands and values are kept for explanations, and who listens to the script."""

    explains = False
    listener = Listener()
    swept: ClassVar[Line | None] = None  # the line of the last backward
    # What is defined above the record, and set there: `backward`, `cuts` and `autograd.graph`.
    called: ClassVar[Callable[[Any, Any], Any]]  # the gradients of an edge's inputs, for a script that calls it
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
        return tuple((None, 0) if e is None else shown(e) for e in edges)

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
    is_composed = False  # whether `grad_inputs` gives the gradients of its inputs, and no `pull`
    grad_inputs: Callable[[Any, bool], Sequence[Any]]
    seen_as: Sequence[Edge] = ()  # what scripts see in the place of its results, where that are other steps
    called: str  # what PyTorch calls it: a name, or a chain of several functions
    shapes: Sequence[tuple[int, ...]]  # of its results
    recipe: Recipe
    pull: Pull
    columns: Any = ()  # the inputs that are column-major, where gradients have the layout of their inputs
    kept: Any = ()  # the values of its operands, and its results; None for those that it does not need
    numbers: Sequence[Any] = ()  # what it was computed of beside its operands: indices, positions, factors
    # What must not have changed: memory, the version then, numbers, tensor (None: a result), its place in `kept`.
    checks: Any = ()
    packed: Mapping[int, Any] = {}  # what unpacks that which a hook has packed, by its index in `kept`
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
        return kept if kept is self.kept or not self.kept else self._of_now(kept)

    def _of_now(self, kept: Sequence[Any]) -> Sequence[Any]:
        """Return what its backward reads, with the result of the operands of now where PyTorch saves no result."""
        saved, count = {i: a if x is None else x._a for _, _, a, x, i in self.checks}, len(self.edges)
        operands = [saved.get(i, a) for i, a in enumerate(kept[:count])]
        if count in saved or kept[count] is None or any(a is None for a in operands):
            return kept
        return [*kept[:count], *QUIET.run(self.recipe.program.run, *operands, *self.numbers)]

    def steps(self) -> Sequence[Step]:
        """Return the steps of a call that is computed in several."""
        return ()

    def free(self, line: int) -> None:
        """Drop the arrays that it keeps."""
        if self.keeps:
            self.freed = line
            if not Recorder.explains:
                self.numbers = ()
        self.kept = self.checks = self.residuals = self.beside = self.read = self.made = ()
        self.packed = {}


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


def shown(edge: Edge) -> Edge:
    """Return an edge as scripts see it: the step of a class with PyTorch's name for it."""
    fn, number = edge
    while isinstance(fn, Step) and fn.seen_as:
        fn, number = fn.seen_as[number]
    if type(fn) is Step:
        fn.__class__ = _class(fn.name().rpartition("::")[2])
    return fn, number


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


def dependencies(roots: Iterable[GradFn], ends: Container[GradFn] = ()) -> dict[GradFn, int]:
    """Return the number of gradients that each reachable step or leaf waits for; nothing is beyond those in `ends`."""
    counts: dict[GradFn, int] = dict.fromkeys(roots, 0)
    stack = list(counts)
    while stack:
        last = stack.pop()
        for edge in last.edges if last not in ends else ():
            if edge is not None:
                fn = edge[0]
                if fn in counts:
                    counts[fn] += 1
                else:
                    counts[fn] = 1
                    stack.append(fn)
    return counts


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
