"""`torch.autograd.Function`: operations with a custom backward."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np

from gradcli.pytorch.backward import check_kept
from gradcli.pytorch.calls import set_grad_fn_name
from gradcli.pytorch.dtypes import BY_NAME
from gradcli.pytorch.messages import missing_if, raise_if, torch_error, typename, warn
from gradcli.pytorch.modes import Mode, unrecorded
from gradcli.pytorch.operations import inplace
from gradcli.pytorch.operations.views import rebase
from gradcli.pytorch.origins import Maker, Origin
from gradcli.pytorch.record import Leaf, Recorder, Step, edge_of, script_line
from gradcli.pytorch.running import leading
from gradcli.pytorch.tensor import Tensor, alias, new, tangent_of


class Context:
    """The context of a custom function, `ctx`."""

    _function: type = object
    _kept: tuple[Any, ...] = ()
    _whole: tuple[int, ...] = ()
    _dirty: tuple[Any, ...] = ()
    _materialize = True
    _step: FunctionStep | None = None

    def __init__(self, function: type, needed: tuple[bool, ...]) -> None:
        self._function, self.needs_input_grad = function, needed

    def __getattr__(self, name: str) -> Any:
        raise torch_error("unknown attribute", f"{self._function.__name__}Backward", name)

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for the backward."""
        self._kept = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The saved tensors."""
        return self._kept if self._step is None else self._step.kept_tensors()

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """The name of old."""
        warn("old name of saved tensors")
        return self.saved_tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Mark outputs as not differentiable."""
        self._whole += tuple(map(id, tensors))

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Mark inputs that were changed in place."""
        self._dirty = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Set whether missing gradients are zeros."""
        self._materialize = value


FunctionCtx = Context  # as annotations have it


class FunctionStep(Step):
    """The step of a custom function."""

    is_custom = is_composed = True

    def __init__(self, cls: type, context: Context, args: Sequence[Any], edges: Any, outputs: list[Tensor]) -> None:
        super().__init__(edges)
        self.cls, self.context, self.called = cls, context, f"{cls.__name__}Backward"
        self.tensors = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
        self.outputs = [(y._a.shape, y._a.dtype) for y in outputs]
        self.shapes = [shape[:-1] for shape, _ in self.outputs]
        self.count = max(1, len(outputs))
        made = {id(y): k for k, y in enumerate(outputs) if not _holds(args, y) or _holds(context._dirty, y)}
        self._kept = _watched(context._kept, made, len(args))
        self.keeps = bool(self._kept)
        missing_if(Mode.hooks is not None and self.keeps, "saved_tensors_hooks around a Function")
        if Recorder.explains or Mode.anomaly:
            self.line = script_line()
        if Recorder.explains:
            self.operands = tuple(None if e is not None else x for e, x in zip(self.edges, args, strict=True))
            self.results = [y._a.copy() for y in outputs]

    def __getattr__(self, name: str) -> Any:
        if name == "recipe":  # which other steps have
            raise AttributeError(name)
        return getattr(self.context, name)

    def __repr__(self) -> str:
        name = self.name()
        return super().__repr__() if "::" in name else f"<torch.autograd.function.{name} object at {hex(id(self))}>"

    def order(self) -> Sequence[int]:
        return self.tensors

    def apply(self, *grads: Any) -> Any:
        """Call the backward by hand."""
        return self.cls.backward(self.context, *grads)  # type: ignore[attr-defined]

    def kept_tensors(self) -> tuple[Any, ...]:
        """Return the saved tensors; those that are results have this step as their history.

        Errors: PyTorch's, for what was freed, or changed in place since.
        """
        result = []
        for x, number, checks in self._kept:
            check_kept(self, checks)
            result.append(x if number is None else leading(x._a, (self, number)))
        return tuple(result)

    def grad_inputs(self, grads: Sequence[Any], create: bool) -> list[Any]:
        grad_outputs = [
            new(np.zeros(*like)) if g is None and self.context._materialize else g
            for g, like in zip(grads, self.outputs, strict=True)
        ]
        result = self.cls.backward(self.context, *grad_outputs)  # type: ignore[attr-defined]
        return self._checked(list(result) if isinstance(result, tuple) else [result], create)

    def _checked(self, grads: list[Any], create: bool) -> list[Any]:
        count = len(self.edges)
        while len(grads) > count and grads[-1] is None:
            grads.pop()
        raise_if(len(grads) != count, "count of a function's gradients", self.cls.__name__, count, len(grads))
        grad_inputs = [self._fitting(i, edge, g) for i, (edge, g) in enumerate(zip(self.edges, grads, strict=True))]
        return [g if g is None or create else new(g._a) for g in grad_inputs]

    def _fitting(self, i: int, edge: Any, g: Any) -> Any:
        """Return the gradient of an argument, in its shape and dtype."""
        raise_if(g is not None and i not in self.tensors, "gradient of no tensor", self.cls.__name__, i + 1)
        raise_if(g is not None and not isinstance(g, Tensor), "kind of a function's gradient", typename(g))
        if edge is None or g is None:
            return None
        fn, number = edge
        actual, shape = g.shape, tuple(fn.variable.shape if isinstance(fn, Leaf) else fn.shapes[number])
        fits = all(n in (1, m) for n, m in zip(shape[::-1], actual[::-1], strict=False)) and len(actual) >= len(shape)
        raise_if(not fits, "shape of a function's gradient", self.cls.__name__, i, list(actual), list(shape))
        g = g.sum_to_size(shape) if actual != shape else g
        if isinstance(fn, Leaf):
            return g.to(fn.variable.dtype)
        recipe = getattr(fn, "recipe", None)
        return g if recipe is None else g.to(BY_NAME[recipe.outputs[number].dtype])


def _watched(tensors: Sequence[Any], numbers: Mapping[int, int], count: int) -> list[tuple[Any, int | None, Any]]:
    """Return the saved tensors, each with the check for changes in place, and with its number if it is a result.

    `numbers` are those of the results, by their ids; `count` is how many arguments stand before them among the values
    of the step.  What is kept of a result has no history, which would be a cycle.
    """
    found: list[tuple[Any, int | None, Any]] = []
    for i, x in enumerate(tensors):
        raise_if(x is not None and not isinstance(x, Tensor), "no tensor to save", i, typename(x))
        number = numbers.get(id(x))
        source, position = (x, -1) if number is None else (None, count + number)
        checks = [(x._memory, x._memory.version, x._a, source, position)] if isinstance(x, Tensor) else []
        found.append((x if number is None else alias(x), number, checks))
    return found


class Function:
    """The base class of custom functions."""

    _backward_cls: type[FunctionStep]

    def __init_subclass__(cls) -> None:
        body = {"__slots__": (), "__module__": "torch.autograd.function"}
        cls._backward_cls = type(f"{cls.__name__}Backward", (FunctionStep,), body)

    def __init__(self, *_: Any) -> None:
        warn("function as an instance", type(self))

    def __call__(self, *_: Any) -> Any:
        """Raise PyTorch's error for functions of the old style."""
        raise torch_error("old function")

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the result; each function defines it."""
        raise torch_error("no forward")

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Return the gradients of the arguments; each function defines it."""
        raise torch_error("no backward")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Call the function, and record it."""
        missing_if(any(tangent_of(x) is not None for x in args), "torch.autograd.Function.jvp")
        needed = tuple(isinstance(x, Tensor) and x.requires_grad for x in args)
        is_recorded = Mode.grad and any(needed)
        if is_recorded:
            Recorder.listener.applies(cls, args, needed)
        edges = tuple(edge_of(x) if is_needed else None for x, is_needed in zip(args, needed, strict=True))
        with unrecorded(f"the forward of {cls.__name__}"):
            context, result = run_forward(cls, args, kwargs, needed)
        for x in context._dirty:
            x._memory.version += 1
        results = result if isinstance(result, tuple) else (result,)
        if is_recorded:
            context._step = _recorded(cls, context, args, [y for y in results if isinstance(y, Tensor)], edges)
        number = count()
        outputs = tuple(_output(y, next(number), context, args) if isinstance(y, Tensor) else y for y in results)
        return outputs if isinstance(result, tuple) else outputs[0]


def run_forward(cls: Any, args: Sequence[Any], kwargs: dict[str, Any], needed: tuple[bool, ...]) -> tuple[Context, Any]:
    """Run a function's forward in the current mode; return its context and its result."""
    context = Context(cls, needed)
    if not hasattr(cls, "setup_context"):
        return context, cls.forward(context, *args, **kwargs)
    result = cls.forward(*args, **kwargs)
    cls.setup_context(context, tuple(args), result)
    return context, result


def _recorded(cls: type[Function], context: Context, args: Sequence[Any], outputs: list[Tensor], edges: Any) -> Any:
    """Return the step of the outputs, with these edges."""
    for x in context._dirty:
        raise_if(x._base is None and x.is_leaf and x.requires_grad, "leaf marked dirty")
        raise_if(not _holds(outputs, x), "argument marked dirty that is no output")
    return cls._backward_cls(cls, context, args, edges, outputs)


def _output(y: Tensor, number: int, context: Context, args: Sequence[Any]) -> Tensor:
    """Return an output as scripts get it: a view, or an alias without a history, of an argument that is returned."""
    step, is_dirty, is_argument = context._step, _holds(context._dirty, y), _holds(args, y)
    is_recorded = step is not None and id(y) not in context._whole and y._a.dtype.kind == "f"
    result = y
    if is_argument and not is_recorded and y.requires_grad:
        result = alias(y)
    elif is_argument and not is_dirty:
        result = y.view_as(y) if y.numel() else y.clone()
    if step is not None and is_recorded:
        rebase(result, step, number)
        result._requires = False
    if result._base is not None and not is_dirty:
        is_single = step is None or len(step.outputs) == 1
        result._origin = Origin(Maker.FUNCTION if is_single else Maker.SEVERAL, context._function.__name__, number)
    elif result._base is not None and step is not None:
        _through_base(result)
    return result


def _holds(tensors: Sequence[Any], y: Tensor) -> bool:
    return any(x is y for x in tensors)


def _through_base(x: Tensor) -> None:
    """Record a function that changed a view in place in the history of the view's base."""
    inplace.check(x, recorded=True)
    result = alias(x)
    result._fn, x._fn, x._seen = x._fn, None, -1
    inplace.through_base(x, result)


def once_differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a backward one without a double backward."""

    @functools.wraps(function)
    def call(ctx: Any, *grads: Any) -> Any:
        with unrecorded("once_differentiable"):
            result = function(ctx, *grads)
        if not Mode.grad or not any(isinstance(g, Tensor) and g.requires_grad for g in grads):
            return result
        parts = result if isinstance(result, tuple) else (result,)
        marked = tuple(_marked(p) if isinstance(p, Tensor) else p for p in parts)
        return marked if isinstance(result, tuple) else marked[0]

    return call


def _marked(grad: Tensor) -> Any:
    return set_grad_fn_name(_WithoutDoubleBackward.apply(new(grad._a).requires_grad_()), "torch::autograd::Error")


class _WithoutDoubleBackward(Function):
    @staticmethod
    def forward(ctx: Any, grad: Tensor) -> Any:
        return grad.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise torch_error("twice through a function")


Function.__module__ = "torch.autograd.function"
