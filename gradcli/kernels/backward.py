"""What PyTorch's own rules pass on where the order of operations shows in the last digits.

The gradients are those of the vocabulary's rows; a rule here computes the same number with the roundings of PyTorch's
kernels.  Each is given the inputs, the result and its gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gradcli.graph.node import Node
from gradcli.kernels.activations import activation, sigmoid
from gradcli.kernels.forward import Shapes, layer_of, reduction
from gradcli.kernels.processor import VECTOR
from gradcli.kernels.products import product, products_of_stacks, turned
from gradcli.kernels.rounding import fused
from gradcli.kernels.settings import given
from gradcli.kernels.sums import products_in_order, sum_along, sums
from gradcli.kernels.vector_functions import exp, in_loop

Array = np.ndarray[Any, Any]
Rule = Callable[..., Array]

RESULT = -1


@dataclass(frozen=True)
class Own:
    """What an operation reads, of inputs and the `RESULT`, to pass on to inputs at some places, and what that is."""

    reads: Collection[int]
    places: Collection[int]
    passed: Callable[[Sequence[int], Sequence[Any]], dict[int, Array]]


def own_rules(op: str, settings: Any, inputs: Sequence[Node]) -> Own | None:
    """Return the rules of an operation on float32 or float64, or None where the graph's own do."""
    if inputs[0].dtype not in ("float32", "float64") or len({n.dtype for n in inputs}) > 1:
        return None
    shapes = [n.shape for n in inputs]
    if op in _RULES:
        return _RULES[op](settings, shapes)
    if layer := layer_of(op, settings, shapes):
        reads, places = ([i for i in own if i is not None] for own in (layer.reads, layer.passes))
        return Own(reads, places, lambda places, arrays: layer.backward(*arrays))
    if found := activation(op, settings, len(shapes)):
        return _own((0,), {0: lambda x, y, g: found[1](x, g)})
    return None


def _own(reads: Collection[int], rules: dict[int, Rule]) -> Own:
    """Return rules for inputs by their places."""
    return Own(reads, rules, lambda places, arrays: {i: rules[i](*arrays) for i in places})


def _softsign(x: Array, y: Array, g: Array) -> Array:
    size = 1 + abs(x)
    return g / size + np.sign(x) * (-g * (x / size / size))  # type: ignore[no-any-return]


def _loss(each: Rule, signs: Sequence[int], settings: Any, shapes: Shapes) -> Own | None:
    """Return the rules of a loss of elements, their targets, and of how many there is a mean: by places their signs."""
    if len(shapes) != 2 or shapes[0] != shapes[1]:
        return None
    count = max(1, math.prod(shapes[0])) if reduction(settings) == "mean" else 1
    return _own((0, 1), {i: lambda x, t, y, g, s=s: s * each(x, t, g, count) for i, s in enumerate(signs)})


def _near(name: str, settings: Any, shapes: Shapes) -> Own | None:
    """Return the rules of a loss that is a square near 0 and a straight line beyond."""
    beyond = dict(settings[1])[name]
    squared, line = (beyond, 1) if name == "beta" else (1, beyond)

    def each(x: Array, t: Array, g: Array, count: int) -> Array:
        far = x - t
        return np.where(abs(far) >= beyond, np.copysign(1 / count, far) * g * line, 1 / count * far * g / squared)

    return _loss(each, (1, -1), settings, shapes)


def _axis(settings: Any) -> int | None:
    """Return the axis that a function was given; a node of a gradient has other settings."""
    by_place, by_name = given(settings) or ([], {})
    found = [*by_place, *by_name.values()]
    return found[0] if len(found) == 1 and isinstance(found[0], int) else None


def _softmax(settings: Any, shapes: Shapes) -> Own | None:
    axis = _axis(settings)
    if axis is None:
        return None

    def total(a: Array, b: Array) -> Any:  # of float64 each product is rounded, and of columns none is
        if axis < a.ndim - 2:
            return np.expand_dims(products_in_order(np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0)), axis)
        return sum_along(axis, a * b, VECTOR) if a.itemsize == 8 else sum_along(axis, a, VECTOR, b)

    return _own((RESULT,), {0: lambda x, y, g: y * (g - total(g, y))})


def _log_softmax(settings: Any, shapes: Shapes) -> Own | None:
    axis = _axis(settings)
    rule = lambda x, y, g: fused(-exp(y), sum_along(axis, g, VECTOR), g)  # type: ignore[arg-type]  # noqa: E731
    return None if axis is None else _own((RESULT,), {0: rule})


def _quotient(settings: Any, shapes: Shapes) -> Own | None:
    is_plain = len(shapes) == 2 and shapes[0] == shapes[1]
    return _own((1, RESULT), {1: lambda a, b, y, g: -g * (y / b)}) if is_plain else None


def _spread(root: bool, settings: Any, shapes: Shapes) -> Own | None:
    """Return the rule of a variance or its root."""
    axes, keepdim, less = settings if len(settings) == 3 else ((), False, 1)
    count = math.prod(shapes[0][a] for a in axes)

    def rule(x: Array, y: Array, g: Array) -> Array:
        mean = np.expand_dims(sums(axes, x), axes) / count
        y, g = (a if keepdim else np.expand_dims(a, axes) for a in (y, g))
        g = np.where(y == 0, y, g / (y * 2)) if root else g
        return 2 / (count - less) * g * (x - mean)  # type: ignore[no-any-return]

    return _own((0, RESULT), {0: rule}) if count > less else None


def _product(settings: Any, shapes: Shapes) -> Own | None:
    """Return the rules of `mm`, and those of `addmm` for its factors: of a factor that lies turned, turned."""
    if len(shapes) < 2 or len(shapes[-1]) != len(shapes[-2]) or len(shapes[-1]) not in (2, 3):
        return None
    is_stack, first = len(shapes[-1]) == 3, len(shapes) - 2

    def left(*given: Array) -> Array:
        a, b, g = (m[..., 0] for m in (*given[-4:-2], given[-1]))
        if is_stack:
            return products_of_stacks(g, b.swapaxes(1, 2))[..., None]
        return (product(b, g.T).T if turned(a) else product(g, b.T))[..., None]

    def right(*given: Array) -> Array:
        a, b, g = (m[..., 0] for m in (*given[-4:-2], given[-1]))
        if is_stack:
            return products_of_stacks(a.swapaxes(1, 2), g)[..., None]
        return (product(g.T, a).T if turned(b) else product(a.T, g))[..., None]

    return _own((first, first + 1), {first: left, first + 1: right})


def _elementwise(read: int, rule: Rule) -> Callable[[Any, Shapes], Own]:
    return lambda settings, shapes: _own((read,), {0: rule})


_RULES: dict[str, Callable[[Any, Shapes], Own | None]] = {
    "acos": _elementwise(0, lambda x, y, g: g * -(1 / np.sqrt(1 - x * x))),
    "asin": _elementwise(0, lambda x, y, g: g * (1 / np.sqrt(1 - x * x))),
    "log10": _elementwise(0, lambda x, y, g: g / (x * 2.3025850929940456)),
    "log2": _elementwise(0, lambda x, y, g: g / (x * 0.6931471805599453)),
    "softsign": _elementwise(0, _softsign),
    "exp2": _elementwise(RESULT, lambda x, y, g: g * y * math.log(2)),
    "expm1": _elementwise(RESULT, lambda x, y, g: g * (y + 1)),
    "reciprocal": _elementwise(RESULT, lambda x, y, g: -g * (y * y)),
    "rsqrt": _elementwise(RESULT, lambda x, y, g: -0.5 * g * (y * y * y)),
    "sigmoid": _elementwise(RESULT, lambda x, y, g: g * (1 - y) * y),
    "tanh": _elementwise(RESULT, lambda x, y, g: g * fused(-y, y, 1)),
    "mse_loss": partial(_loss, lambda x, t, g, n: 2 / n * (x - t) * g, (1, -1)),
    "smooth_l1_loss": partial(_near, "beta"),
    "huber_loss": partial(_near, "delta"),
    "binary_cross_entropy": partial(_loss, lambda p, t, g, n: g * (p - t) / np.maximum((1 - p) * p, 1e-12) / n, (1,)),
    "binary_cross_entropy_with_logits": partial(_loss, lambda x, t, g, n: (in_loop(sigmoid, x) - t) * g / n, (1,)),
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "div": _quotient,
    "std": partial(_spread, True),
    "var": partial(_spread, False),
    "matmul": _product,
    "addmm": _product,
}
