"""The operations that PyTorch computes, or whose gradients it computes, with roundings of their own.

What they give is what the graph's nodes give, and what they pass on is what the vocabulary's rows pass on, but for the
last digits.  Arrays have a last axis of one element, that of points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gradcli.graph.node import Node
from gradcli.kernels.activations import ACTIVATIONS, logsigmoid, sigmoid
from gradcli.kernels.convolutions import Convolution
from gradcli.kernels.mkl import sqrt
from gradcli.kernels.moments import variance
from gradcli.kernels.normalizations import Batch, Layer
from gradcli.kernels.powers import power
from gradcli.kernels.processor import VECTOR
from gradcli.kernels.products import product, sum_with_product, turned
from gradcli.kernels.rounding import Array, fused, lerp
from gradcli.kernels.sums import in_order, products_in_order, sum_along, sums
from gradcli.kernels.vector_functions import OneByOne, exp, in_loop

Kernel = Callable[..., Array]
Shapes = Sequence[tuple[int, ...]]

RESULT = -1


class Given(tuple[tuple[str, Any], ...]):
    """What a function was given, by its parameters' names: each with its kind, and its value last."""


class Kernels(NamedTuple):
    """What computes an operation, and what it passes on to inputs at some places; nothing where the graph tells.

    For the places that are asked for, `passed` returns what computes what it passes on, given the inputs, the result
    and its gradient, of which it reads inputs, and the `RESULT`.
    """

    forward: Kernel | None = None
    reads: Collection[int] = ()
    places: Collection[int] = ()
    passed: Callable[[Sequence[int]], Callable[[Sequence[Any]], list[Array]]] = lambda places: lambda arrays: []


def kernels(op: str, settings: Any, inputs: Sequence[Node]) -> Kernels:
    """Return what computes an operation on float32 or float64, and what it passes on."""
    make = _OPERATIONS.get(op) if inputs[0].dtype in ("float32", "float64") else None
    return make(settings, [n.shape for n in inputs]) if make else Kernels()


def _ruled(reads: Collection[int], rules: dict[int, Kernel], forward: Kernel | None = None) -> Kernels:
    """Return kernels with a rule for each input by its place."""

    def passed(places: Sequence[int]) -> Callable[[Sequence[Any]], list[Array]]:
        wanted = [rules[i] for i in places]
        return lambda arrays: [rule(*arrays) for rule in wanted]

    return Kernels(forward, reads, rules, passed)


def by_name(settings: Any) -> dict[str, Any]:
    """Return what a call was given behind its first operand, by name: numbers, and the places of operands.

    >>> by_name(Given([("x", ("operand", 0)), ("weight", ("operand", 1)), ("stride", ("list", (("setting", 2),)))]))
    {'weight': 1, 'stride': (2,)}
    """
    return {k: _value(e) for k, e in settings[1:]} if isinstance(settings, Given) else {}


def _value(encoded: Any) -> Any:
    return tuple(_value(e) for e in encoded[1]) if encoded[0] == "list" else encoded[-1]


# Element by element


def _elementwise(read: int, rule: Kernel) -> Callable[[Any, Shapes], Kernels]:
    return lambda settings, shapes: _ruled((read,), {0: rule})


def _activation(op: str, settings: Any, shapes: Shapes) -> Kernels:
    if len(shapes) > 1 or (op == "gelu" and settings != "tanh"):
        return Kernels()
    forward, passed = (partial(in_loop, partial(k, **by_name(settings))) for k in ACTIVATIONS[op])
    return _ruled((0,), {0: lambda x, y, g: passed(x, g)}, forward)


def _power(settings: Any, shapes: Shapes) -> Kernels:
    """Return a power by a number, and what it passes on, which is another."""
    if not isinstance(settings, tuple) or len(settings) != 3:
        return Kernels()
    exponent = float(settings[-1])

    def passed(x: Array, y: Array, g: Array) -> Array:
        return g.astype(x.dtype, copy=False) * (x.dtype.type(exponent) * power(x, exponent - 1))  # type: ignore[no-any-return]

    return _ruled((0,), {0: passed} if exponent else {}, partial(power, exponent=exponent))


def _scaled(sign: int, settings: Any, shapes: Shapes) -> Kernels:
    """Return a sum or a difference whose second operand is multiplied by a number, with one rounding."""
    if not isinstance(settings, tuple):
        return Kernels()
    return Kernels(lambda a, b: fused(a.dtype.type(sign * float(settings[-1])), b.astype(a.dtype), a))


def _with_number(
    name: str, kernel: Kernel, passed: dict[int, Callable[..., Array]], settings: Any, shapes: Shapes
) -> Kernels:
    """Return what computes with operands and a number behind them, 1 unless it is given; it may be an operand.

    It passes on, in the shape of all operands, what is told for them and the number.
    """
    kind, *_, value = dict(settings).get(name, ("number", 1))
    number = [] if kind == "operand" else [value]

    def own(a: Array, *others: Array) -> list[Array]:
        return [a, *(x.astype(a.dtype, copy=False) for x in others)]

    def forward(a: Array, *others: Array) -> Array:
        return kernel(*own(a, *others), *map(a.dtype.type, number))

    alike = len(set(shapes)) == 1 and number
    rules: dict[int, Kernel] = {
        i: lambda *arrays, rule=rule: rule(arrays[-1], *own(*arrays[:-2]), value) for i, rule in passed.items() if alike
    }
    return _ruled(range(len(shapes)), rules, forward)


def _quotient(settings: Any, shapes: Shapes) -> Kernels:
    return _ruled((1, RESULT), {1: lambda a, b, y, g: -g * (y / b)}) if shapes[0] == shapes[1] else Kernels()


def _softsign(x: Array, y: Array, g: Array) -> Array:
    size = 1 + abs(x)
    return g / size + np.sign(x) * (-g * (x / size / size))  # type: ignore[no-any-return]


# Along axes


def _softmax(settings: Any, shapes: Shapes, is_log: bool = False) -> Kernels:
    axis = by_name(settings)["axis"]

    def passed(x: Array, y: Array, g: Array) -> Any:
        if is_log:
            return fused(-exp(y), sum_along(axis, g, VECTOR), g)
        if axis < y.ndim - 2:  # each product is added with one rounding
            total = products_in_order(np.moveaxis(g, axis, 0), np.moveaxis(y, axis, 0))
            return y * (g - np.expand_dims(total, axis))
        return y * (g - (sum_along(axis, g * y, VECTOR) if y.itemsize == 8 else sum_along(axis, g, VECTOR, y)))

    return _ruled((RESULT,), {0: passed})


def _spread(is_root: bool, settings: Any, shapes: Shapes) -> Kernels:
    """Return a variance or its root."""
    axes, keepdim, less = settings
    count = math.prod(shapes[0][a] for a in axes)
    if count <= less:
        return Kernels()

    def spread(x: Array) -> Array:
        found = variance(axes, less, x)
        found = (np.sqrt(found) if is_root else found).astype(x.dtype)
        return np.expand_dims(found, axes) if keepdim else found

    def passed(x: Array, y: Array, g: Array) -> Array:
        mean = np.expand_dims(sums(axes, x), axes) / count
        y, g = (a if keepdim else np.expand_dims(a, axes) for a in (y, g))
        g = np.where(y == 0, y, g / (y * 2)) if is_root else g
        return 2 / (count - less) * g * (x - mean)  # type: ignore[no-any-return]

    return _ruled((0, RESULT), {0: passed}, spread if math.prod(shapes[0]) else None)


def _norm(settings: Any, shapes: Shapes) -> Kernels:
    """Return the rule of a norm: no gradient flows where it is 0."""
    axes, keepdim, p = settings
    if p != 2:
        return Kernels()

    def passed(x: Array, y: Array, g: Array) -> Array:
        y, g = (a if keepdim else np.expand_dims(a, axes) for a in (y, g))
        return g * np.divide(x, y, out=np.zeros_like(x), where=y != 0)

    return _ruled((0, RESULT), {0: passed})


# Products and layers


def _product(settings: Any, shapes: Shapes) -> Kernels:
    """Return `addmm`, and the rules of it, `mm` and `bmm` for the factors: of a factor that lies turned, turned.

    The rows of a stack that is multiplied by one matrix are those of one, too.
    """
    *added, a_shape, b_shape = shapes
    is_one = len(a_shape) > 2 == len(b_shape)
    if not is_one and (len(a_shape) != len(b_shape) or len(a_shape) not in (2, 3) or a_shape[:-2] != b_shape[:-2]):
        return Kernels()
    if 0 in (*a_shape, *b_shape):
        return Kernels()

    def taken(given: Sequence[Array]) -> tuple[Array, Array, Array]:
        a, b, g = (m[..., 0] for m in (*given[-4:-2], given[-1]))
        return (a.reshape(-1, a.shape[-1]), b, g.reshape(-1, *b.shape[1:])) if is_one else (a, b, g)

    def left(*given: Array) -> Array:
        a, b, g = taken(given)
        found = product(b, g.T).T if turned(a) else product(g, b.swapaxes(-1, -2))
        return (found.reshape(a_shape) if is_one else found)[..., None]

    def right(*given: Array) -> Array:
        a, b, g = taken(given)
        return (product(g.T, a).T if turned(b) else product(a.swapaxes(-1, -2), g))[..., None]

    first = len(added)
    return _ruled((first, first + 1), {first: left, first + 1: right}, _addmm if added else None)


def _addmm(*given: Array) -> Array:
    return sum_with_product(*(m[..., 0] for m in given))[..., None]


def _layer(kind: Callable[..., Batch | Layer | Convolution], settings: Any, shapes: Shapes) -> Kernels:
    """Return a layer that knows what it computes and passes on, but for padding by name."""
    given = by_name(settings)
    if isinstance(given.get("padding"), str) or not math.prod(shapes[0]):
        return Kernels()
    layer = kind(given, shapes)
    reads, passes = ([i for i in own if i is not None] for own in (layer.reads, layer.passes))

    def passed(places: Sequence[int], arrays: Sequence[Any]) -> list[Array]:
        found = layer.backward(*arrays)
        return [found[i] for i in places]

    return Kernels(layer.forward, reads, passes, lambda places: partial(passed, places))


# Losses


def _loss(each: Kernel | None, slope: Kernel, is_even: bool, settings: Any, shapes: Shapes) -> Kernels:
    """Return a loss that a function gives for each element and its target, if one does, and its rules.

    They are a slope, given elements, targets, the gradient, and of how many there is a mean; that of the targets is
    the opposite where the loss is of differences, and even.
    """
    if len(shapes) != 2 or shapes[0] != shapes[1]:
        return Kernels()
    how = by_name(settings).get("reduction", settings[0])
    count = max(1, math.prod(shapes[0])) if how == "mean" else 1
    rules: dict[int, Kernel] = {0: lambda x, t, y, g: slope(x, t, g, count)}
    if is_even:
        rules[1] = lambda x, t, y, g: -slope(x, t, g, count)

    def loss(x: Array, t: Array) -> Array:
        one = each(x, t)  # type: ignore[misc]
        found = one if how == "none" else sums(tuple(range(x.ndim - 1)), one)
        return found / x.dtype.type(x.size) if how == "mean" else found

    return _ruled((0, 1), rules, loss if each else None)


def _near(name: str, settings: Any, shapes: Shapes) -> Kernels:
    """Return the rules of a loss that is a square near 0 and a straight line beyond."""
    beyond = dict(settings[1])[name]
    squared, line = (beyond, 1) if name == "beta" else (1, beyond)

    def slope(x: Array, t: Array, g: Array, count: int) -> Array:
        far = x - t
        return np.where(abs(far) >= beyond, np.copysign(1 / count, far) * g * line, 1 / count * far * g / squared)

    return _loss(None, slope, True, settings, shapes)


def _squared(x: Array, t: Array) -> Array:
    return (x - t.astype(x.dtype, copy=False)) ** 2  # type: ignore[no-any-return]  # targets may be whole numbers


def _of_probabilities(p: Array, y: Array) -> Array:
    log, log_rest = np.maximum(OneByOne.log(p), -100), np.maximum(OneByOne.log1p(-p), -100)
    return (y - 1) * log_rest - y * log  # type: ignore[no-any-return]


def _classes(settings: Any, shapes: Shapes) -> Kernels:
    """Return the loss of classes: of logarithms of probabilities, as many samples in rows."""
    if settings[0] == "none" or len(shapes[0]) != 2 or not shapes[0][0]:
        return Kernels()
    how, total, _, ignored = settings

    def loss(x: Array, target: Array, *weight: Array) -> Array:
        places = np.flatnonzero(target[:, 0] != ignored)
        terms = -x[places, target[places, 0].astype(int), 0]
        for w in weight:  # of each sample's class
            terms = terms * w[places, 0]
        found = _in_chunks(terms)
        return np.asarray(found / x.dtype.type(total) if how == "mean" else found, x.dtype).reshape(1)

    return Kernels(loss)


def _in_chunks(terms: Array) -> Any:
    """Return the sum of terms after the first, sixteen of them, and of sixteen such sums; and the first."""
    found: Any = 0
    rest = terms[1:]
    while len(rest):
        whole = len(rest) - len(rest) % 16
        found = found + (in_order(rest[whole:]) if whole < len(rest) else 0)
        rest = in_order(rest[:whole].reshape(-1, 16).T)
    return found + terms[0] if len(terms) else found


_OPERATIONS: dict[str, Callable[[Any, Shapes], Kernels]] = {
    **{op: partial(_activation, op) for op in ACTIVATIONS},
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
    "sqrt": lambda settings, shapes: Kernels(sqrt),
    "pow": _power,
    "add": partial(_scaled, 1),
    "sub": partial(_scaled, -1),
    "addcmul": partial(
        _with_number,
        "value",
        lambda a, b, c, v: fused(v * b, c, a),
        {1: lambda g, a, b, c, v: g * (c * v), 2: lambda g, a, b, c, v: g * (b * v)},
    ),
    "addcdiv": partial(
        _with_number,
        "value",
        lambda a, b, c, v: a + v * b / c,
        {1: lambda g, a, b, c, v: g * (v / c), 2: lambda g, a, b, c, v: -g * (v * b / (c * c))},
    ),
    "lerp": partial(_with_number, "weight", lerp, {0: lambda g, a, b, w: g * (1 - w), 1: lambda g, a, b, w: g * w}),
    "div": _quotient,
    "norm": _norm,
    "softmax": _softmax,
    "log_softmax": partial(_softmax, is_log=True),
    "std": partial(_spread, True),
    "var": partial(_spread, False),
    "matmul": _product,
    "addmm": _product,
    "batch_norm": partial(_layer, Batch),
    "layer_norm": partial(_layer, Layer),
    "conv1d": partial(_layer, Convolution),
    "conv2d": partial(_layer, Convolution),
    "mse_loss": partial(_loss, _squared, lambda x, t, g, n: 2 / n * (x - t) * g, True),
    "smooth_l1_loss": partial(_near, "beta"),
    "huber_loss": partial(_near, "delta"),
    "binary_cross_entropy": partial(
        _loss, _of_probabilities, lambda p, t, g, n: g * (p - t) / np.maximum((1 - p) * p, 1e-12) / n, False
    ),
    "binary_cross_entropy_with_logits": partial(
        _loss,
        lambda x, t: (1 - t) * x - logsigmoid(None, x),
        lambda x, t, g, n: (in_loop(sigmoid, x) - t) * g / n,
        False,
    ),
    "nll_loss": _classes,
}
