"""Gradients that are to have gradients, as PyTorch computes them: by operations, each of which rounds and is recorded.

They are what the calculus gives, which `twice` records for all others, but for the last digits.
Source: PyTorch's derivatives.yaml, and FunctionsManual.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli.graph.construct import call, reduce
from gradcli.graph.node import Node
from gradcli.graph.operations.reductions import spread
from gradcli.kernels.operations import by_name
from gradcli.kernels.products import turned
from gradcli.pytorch.calls import called, named
from gradcli.pytorch.record import Make, Step, mapped, record
from gradcli.pytorch.tensor import Tensor

Formula = Callable[..., Any]


def _times(x: Any, number: float) -> Any:
    """Return a product with a number, which PyTorch's own code does not turn into a tensor."""
    return called(x * number, "MulBackward1")


def _plus(x: Any, number: float) -> Any:
    return called(x + number, "AddBackward1")


def _quotient(a: Any, b: Any, y: Any, g: Any) -> Any:
    slope = (a / b) / b
    return -g * slope


def _left(a: Any, b: Any, y: Any, g: Any) -> Any:
    """Return the gradient of the first of two matrices, turned if it lies turned: PyTorch saves a copy by that."""
    return (b @ g.t()).t() if turned(a._a[..., 0]) else g @ b.t()


def _right(a: Any, b: Any, y: Any, g: Any) -> Any:
    return (g.t() @ a).t() if turned(b._a[..., 0]) else a.t() @ g


def _softplus_twice(x: Any, g: Any, y: Any, again: Any, beta: float = 1, threshold: float = 20) -> Any:
    s = named("sigmoid", _times(x, beta))
    return _times(again * g * (1 - s) * s * (x * beta < threshold), beta)


def _log_softmax_twice(y: Any, g: Any, _: Any, again: Any, axis: int) -> Any:
    return -g.sum(axis, keepdim=True) * y.exp() * again


def _softmax_twice(y: Any, g: Any, _: Any, again: Any, axis: int) -> Any:
    summed, other = (y * g).sum(axis, keepdim=True), (y * again).sum(axis, keepdim=True)
    return g * again - summed * again - g * other


def _silu(x: Any, y: Any, g: Any) -> Any:
    s = x.sigmoid()
    return g * s * (1 + x * (1 - s))


# By operation, and by the place of the input.  They are given the inputs, the result, and its gradient.
FORMULAS: dict[str, dict[int, Formula]] = {
    "div": {0: lambda a, b, y, g: g / b, 1: _quotient},
    "mm": {0: _left, 1: _right},
    "addmm": {0: lambda c, a, b, y, g: g, 1: lambda c, *given: _left(*given), 2: lambda c, *given: _right(*given)},
    "reciprocal": {0: lambda x, y, g: -g * (y * y)},
    "sqrt": {0: lambda x, y, g: g / _times(y, 2)},
    "rsqrt": {0: lambda x, y, g: _times(g, -0.5) * y**3},
    "expm1": {0: lambda x, y, g: g * _plus(y, 1)},
    "log1p": {0: lambda x, y, g: g / _plus(x, 1)},
    "atan": {0: lambda x, y, g: g / _plus(x * x, 1)},
    "silu": {0: _silu},
    "tanh_backward": {0: lambda y, g, _, again: again * (_times(y, -2) * g)},
    "sigmoid_backward": {0: lambda y, g, _, again: again * g * _plus(_times(y, -2), 1)},
    "softplus_backward": {0: _softplus_twice},
    "softmax_backward": {0: _softmax_twice},
    "log_softmax_backward": {0: _log_softmax_twice},
}


# Gradients that are made of the result, as nodes of it and of the gradient that it is given.
OF_RESULT: dict[str, Callable[..., Node]] = {
    "tanh": lambda y, g: g * (1 - y * y),
    "sigmoid": lambda y, g: g * (1 - y) * y,
    "log_softmax": lambda y, g, axis: g - call("exp", y) * spread(reduce("sum", g, (axis,)), y.shape, (axis,)),
}


def passed(step: Step, given: Any) -> list[Any] | None:
    """Return what a step passes on, if there are formulas for it: tensors, which are recorded in grad mode.

    Of what is linear in a gradient, as the steps of gradients are, the step itself is the derivative.
    """
    formulas = FORMULAS.get("mm" if step.name() == "MmBackward0" else step.recipe.op)
    if formulas is None or len({n.dtype for n in step.recipe.inputs}) > 1:
        return None
    last = len(step.recipe.inputs) - 1 if step.recipe.op.endswith("_backward") else -1
    found: dict[int, Any] = {}
    for i in in_turn(step):
        out = _repeated(step, given) if i == last else formulas[i](*given, **by_name(step.recipe.settings))
        shape = step.recipe.inputs[i].shape
        found[i] = out if out.shape == shape else out.sum_to_size(shape)
    return [found[i] for i in step.pull.active]


def in_turn(step: Step) -> Sequence[int]:
    """Return the places of the inputs in the order in which PyTorch makes their gradients: by the parameters' names.

    The operations that make them are recorded in this order, in which their own gradients are added up.
    """
    active = step.pull.active
    if step.recipe.op == "addmm":  # `mat1`, `mat2`, `self`
        return sorted(active, key=lambda i: i or 3)
    if len(step.recipe.inputs) == 2 and step.name() not in _IN_ORDER:  # `other`, `mat2`, `exponent` before `self`
        return active[::-1]
    return active


_IN_ORDER = frozenset(("DotBackward0", "MvBackward0"))


def _repeated(step: Step, given: Any) -> Tensor:
    """Return what a step gives for another gradient."""
    operands = [*given[: len(step.recipe.inputs) - 1], given[-1]]
    out = mapped(Make.tensor(step.recipe.program([x._a for x in operands])[0]), operands)
    active = tuple(i for i, x in enumerate(operands) if x.requires_grad)
    if active:
        record(out, step.name(), step.recipe, operands, active)
    return out
