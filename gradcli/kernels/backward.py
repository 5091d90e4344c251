"""What PyTorch's own rules pass on where the order of operations shows in the last digits.

The gradients are those of the vocabulary's rows; a rule here computes the same number with the roundings of PyTorch's
kernels.  Each is given the inputs, the result and its gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.graph.node import Node
from gradcli.kernels.activations import activation, sigmoid
from gradcli.kernels.convolutions import Convolution
from gradcli.kernels.nodes import wide
from gradcli.kernels.normalizations import Batch, Layer
from gradcli.kernels.processor import VECTOR
from gradcli.kernels.products import product, products_of_stacks, turned
from gradcli.kernels.rounding import fused
from gradcli.kernels.sums import in_lanes, sums
from gradcli.kernels.vector_functions import exp, in_loop

Array = np.ndarray[Any, Any]
Rule = Callable[..., Array]

RESULT = -1


class Own:
    """Rules by the place of the input, and what they read: inputs, and the result as `RESULT`."""

    def __init__(self, reads: Sequence[int], *rules: Rule | None) -> None:
        self.reads = reads
        self.rules = {i: rule for i, rule in enumerate(rules) if rule is not None}
        self.places = frozenset(self.rules)

    def passed(self, places: Sequence[int], arrays: Sequence[Any]) -> dict[int, Array]:
        """Return what is passed on to the inputs at these places."""
        return {i: self.rules[i](*arrays) for i in places}


class OwnTogether(Own):
    """One rule for several inputs."""

    def __init__(
        self, reads: Sequence[int], rule: Callable[..., dict[int, Array]], places: Sequence[int | None]
    ) -> None:
        super().__init__(reads)
        self.rule = rule
        self.places = frozenset(p for p in places if p is not None)

    def passed(self, places: Sequence[int], arrays: Sequence[Any]) -> dict[int, Array]:
        """Return what is passed on to all inputs."""
        return self.rule(*arrays)


def own_rules(op: str, settings: Any, inputs: Sequence[Node]) -> Own | None:
    """Return the rules of an operation on float32 or float64, or None where the graph's own do."""
    if inputs[0].dtype not in ("float32", "float64") or len({n.dtype for n in inputs}) > 1:
        return None
    shapes = [n.shape for n in inputs]
    if op in _RULES:
        return _RULES[op](settings, shapes)
    found = activation(op, settings, shapes)
    return None if found is None else Own((0,), found[1])


def _plain(reads: Sequence[int], *rules: Rule) -> Callable[..., Own]:
    own = Own(reads, *rules)
    return lambda settings, shapes: own


def _softsign(x: Array, y: Array, g: Array) -> Array:
    size = 1 + abs(x)
    return g / size + np.sign(x) * (-g * (x / size / size))  # type: ignore[no-any-return]


def _bell(x: Array) -> Array:
    return x.dtype.type(2 / math.sqrt(math.pi)) * wide(np.exp, -(x * x))  # type: ignore[no-any-return]


# By whether a rule reads what an operation was given, or its result: the other may change in place.
_OF_INPUT: dict[str, Callable[..., Array]] = {
    "acos": lambda x, y, g: g * -(1 / np.sqrt(1 - x * x)),
    "asin": lambda x, y, g: g * (1 / np.sqrt(1 - x * x)),
    "asinh": lambda x, y, g: g * (1 / np.sqrt(x * x + 1)),
    "erf": lambda x, y, g: _bell(x) * g,
    "erfc": lambda x, y, g: -_bell(x) * g,
    "hardsigmoid": lambda x, y, g: np.where(abs(x) < 3, g * x.dtype.type(np.float32(1 / 6)), 0),
    "log10": lambda x, y, g: g / (x * 2.3025850929940456),
    "log2": lambda x, y, g: g / (x * 0.6931471805599453),
    "softsign": _softsign,
    "tanhshrink": lambda x, y, g: g + -g * fused(-(t := wide(np.tanh, x)), t, 1),
}
_OF_RESULT: dict[str, Callable[..., Array]] = {
    "exp2": lambda x, y, g: g * y * math.log(2),
    "expm1": lambda x, y, g: g * (y + 1),
    "reciprocal": lambda x, y, g: -g * (y * y),
    "rsqrt": lambda x, y, g: -0.5 * g * (y * y * y),
    "sigmoid": lambda x, y, g: g * (1 - y) * y,
    "tanh": lambda x, y, g: g * fused(-y, y, 1),
}


def _share(how: str, shape: tuple[int, ...]) -> int:
    return math.prod(shape) if how == "mean" else 1


def _squares(settings: Any, shapes: Sequence[Any]) -> Own | None:
    if shapes[0] != shapes[1]:
        return None
    factor = 2 / math.prod(shapes[0]) if settings[0] == "mean" and math.prod(shapes[0]) else 2
    return Own((0, 1), lambda x, t, y, g: factor * (x - t) * g, lambda x, t, y, g: -(factor * (x - t) * g))


def _near(name: str) -> Callable[..., Own | None]:
    """Return what makes the rules of losses that are a square near 0 and a straight line beyond."""

    def make(settings: Any, shapes: Sequence[Any]) -> Own | None:
        if shapes[0] != shapes[1] or len(settings) != 2:
            return None
        share, beyond = 1 / max(1, _share(settings[0], shapes[0])), dict(settings[1]).get(name, 1.0)
        squared, line = (beyond, 1.0) if name == "beta" else (1.0, beyond)

        def rule(x: Array, t: Array, y: Array, g: Array) -> Array:
            far = x - t
            straight = np.copysign(share, far) * g * line
            return np.where(abs(far) >= beyond, straight, share * far * g / squared)

        return Own((0, 1), rule, lambda *arrays: -rule(*arrays))

    return make


def _crossed(settings: Any, shapes: Sequence[Any]) -> Own | None:
    count = _share(settings[0][3][1], shapes[0])
    rule = lambda p, t, y, g: g * (p - t) / np.maximum((1 - p) * p, 1e-12) / count  # noqa: E731
    return Own((0, 1), rule) if len(shapes) == 2 else None


def _crossed_logits(settings: Any, shapes: Sequence[Any]) -> Own | None:
    count = _share(settings[0], shapes[0])
    return Own((0, 1), lambda x, t, y, g: (in_loop(sigmoid, x) - t) * g / count) if len(shapes) == 2 else None


def _norm(settings: Any, shapes: Sequence[Any]) -> Own | None:
    axes, keepdim, p = settings

    def rule(x: Array, y: Array, g: Array) -> Array:
        size, passed = (a if keepdim else np.expand_dims(a, axes) for a in (y, g))
        return passed * np.divide(x, size, out=np.zeros_like(x), where=size != 0)

    return Own((0, RESULT), rule) if p == 2 else None


def _softmax(settings: Any, shapes: Sequence[Any]) -> Own | None:
    axis = _axis(settings)
    if axis is None:
        return None
    if axis == len(shapes[0]) - 1:
        return Own((RESULT,), lambda x, y, g: y * (g - _products_in_lanes(axis, g, y)))
    return Own((RESULT,), lambda x, y, g: y * (g - _rounded_once(axis, g, y)))


def _products_in_lanes(axis: int, a: Array, b: Array) -> Array:
    """Return sums of products along the last axis: of float64 each product is rounded."""
    return in_lanes(axis, a * b, VECTOR) if a.itemsize == 8 else in_lanes(axis, a, VECTOR, b)


def _rounded_once(axis: int, a: Array, b: Array) -> Array:
    """Return sums of products along an axis, each added with one rounding."""
    found = np.zeros_like(a.take([0], axis))
    for k in range(a.shape[axis]):
        found = fused(a.take([k], axis), b.take([k], axis), found)
    return found


def _log_softmax(settings: Any, shapes: Sequence[Any]) -> Own | None:
    axis = _axis(settings)
    return None if axis is None else Own((RESULT,), lambda x, y, g: fused(-exp(y), in_lanes(axis, g, VECTOR), g))


def _axis(settings: Any) -> int | None:
    """Return the axis that a function was given; a node of a gradient has other settings."""
    given = [*settings[0][1:], *(value for _, value in settings[1])] if len(settings) == 2 else []
    return given[0][1] if len(given) == 1 and isinstance(given[0][1], int) else None


def _quotient(settings: Any, shapes: Sequence[Any]) -> Own | None:
    if len(shapes) != 2 or shapes[0] != shapes[1]:
        return None
    return Own((1, RESULT), None, lambda a, b, y, g: -g * (y / b))


def _spread(name: str) -> Callable[..., Own | None]:
    def make(settings: Any, shapes: Sequence[Any]) -> Own | None:
        axes, keepdim, less = settings if len(settings) == 3 else ((), False, 1)
        count = math.prod(shapes[0][a] for a in axes)
        if count <= less:
            return None

        def rule(x: Array, y: Array, g: Array) -> Array:
            mean = np.expand_dims(sums(axes, x), axes) / count
            y, g = (a if keepdim else np.expand_dims(a, axes) for a in (y, g))
            g = np.where(y == 0, y, g / (y * 2)) if name == "std" else g
            return 2 / (count - less) * g * (x - mean)  # type: ignore[no-any-return]

        return Own((0, RESULT), rule)

    return make


def _prod(settings: Any, shapes: Sequence[Any]) -> Own:
    axes, keepdim = settings if len(settings) == 2 else (tuple(range(len(shapes[0]))), False)

    def rule(x: Array, y: Array, g: Array) -> Array:
        y, g = (a if keepdim else np.expand_dims(a, axes) for a in (y, g))
        return g * (y / x if x.all() else _others(axes, x))

    return Own((0, RESULT), rule)


def _others(axes: tuple[int, ...], x: Array) -> Array:
    """Return the product of all other numbers along axes."""
    first = np.moveaxis(x, axes, range(len(axes)))
    rows = first.reshape(math.prod(first.shape[: len(axes)]), -1)
    ones = np.ones_like(rows[:1])
    before, after = (np.cumprod(np.concatenate([ones, r[:-1]]), axis=0) for r in (rows, rows[::-1]))
    return np.moveaxis((before * after[::-1]).reshape(first.shape), range(len(axes)), axes)


def _product(settings: Any, shapes: Sequence[Any]) -> Own | None:
    """Return the rules of `mm`, and those of `addmm` for its factors: of a factor that lies turned, turned."""
    if len(shapes) < 2 or len(shapes[-1]) != len(shapes[-2]) or len(shapes[-1]) not in (2, 3):
        return None
    if len(shapes[-1]) == 3:
        return Own(
            (0, 1),
            lambda a, b, y, g: products_of_stacks(g[..., 0], b[..., 0].swapaxes(1, 2))[..., None],
            lambda a, b, y, g: products_of_stacks(a[..., 0].swapaxes(1, 2), g[..., 0])[..., None],
        )

    def left(*given: Array) -> Array:
        a, b, g = (m[..., 0] for m in (*given[-4:-2], given[-1]))
        return (product(b, g.T).T if turned(a) else product(g, b.T))[..., None]

    def right(*given: Array) -> Array:
        a, b, g = (m[..., 0] for m in (*given[-4:-2], given[-1]))
        return (product(g.T, a).T if turned(b) else product(a.T, g))[..., None]

    first = len(shapes) - 2
    return Own((first, first + 1), *[None] * first, left, right)


def _of_call(call: Batch | Layer | None) -> Own | None:
    """Return the rules of a normalization, which computes all that it passes on at once."""
    if call is None:
        return None
    more = (call.weight, getattr(call, "mean", None), getattr(call, "spread", None))
    return OwnTogether((0, *[p for p in more if p is not None]), call.backward, (0, call.weight, call.bias))


def _convolution(settings: Any, shapes: Sequence[Any]) -> Own | None:
    call = Convolution.of(settings, shapes)
    return None if call is None else OwnTogether((0, 1), call.backward, range(len(shapes)))


_RULES: dict[str, Callable[..., Own | None]] = {
    "conv1d": _convolution,
    "conv2d": _convolution,
    "batch_norm": lambda settings, shapes: _of_call(Batch.of(settings)),
    "layer_norm": lambda settings, shapes: _of_call(Layer.of(settings, shapes[0])),
    **{op: _plain((0,), rule) for op, rule in _OF_INPUT.items()},
    **{op: _plain((RESULT,), rule) for op, rule in _OF_RESULT.items()},
    "mse_loss": _squares,
    "smooth_l1_loss": _near("beta"),
    "huber_loss": _near("delta"),
    "binary_cross_entropy": _crossed,
    "binary_cross_entropy_with_logits": _crossed_logits,
    "norm": _norm,
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "div": _quotient,
    "prod": _prod,
    "std": _spread("std"),
    "var": _spread("var"),
    "matmul": _product,
    "addmm": _product,
}
