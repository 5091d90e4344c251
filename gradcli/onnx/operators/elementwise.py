"""Elementwise operators: a line each, where the vocabulary has the function."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np

from gradcli.errors import InputError
from gradcli.graph.array import Array
from gradcli.graph.construct import call, channels, equal, index, reshape, softmax, where
from gradcli.graph.node import Node, compare, const
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.shapes import broadcast_shapes
from gradcli.onnx.register import add, operator
from gradcli.onnx.values import Value, lift, number

# Operators that are operations: by their names on the rows, and those that are defined by others.
_OPERATORS = {row.spelling.get("onnx", ""): op for op, row in OPERATIONS.items() if row.broadcasts}
_OPERATORS |= {n: n.lower() for n in ("Relu", "Sigmoid", "Softsign", "Mish")} | {"PRelu": "leaky_relu"}


def _unary(op: str, x: Node) -> Node:
    return compare(op, x) if OPERATIONS[op].kind == "condition" else call(op, x)


def _binary(op: str, a: Node, b: Node) -> Node:
    return compare(op, a, b) if OPERATIONS[op].kind == "condition" else call(op, a, b)


def _aligned(build: Callable[..., Value], a: Value, b: Value, *, axis: int = -1, broadcast: int = 0) -> Value:
    """Compute with two arrays as in opsets before 7, where the axes of the second are those from `axis` on."""
    rest = len(a.shape) - axis - len(b.shape)
    other = lift(b)
    return build(lift(a), reshape(other, (*b.shape, *(1,) * rest)) if broadcast and axis >= 0 and rest > 0 else other)


for _name, _op in _OPERATORS.items():
    if _name.isalpha() and OPERATIONS[_op].arity == 1:
        add(partial(_unary, _op), _name)
    elif _name.isalpha() and _name not in ("Max", "Min"):  # which take several
        add(partial(_binary, _op), _name, since=7)
        add(partial(_aligned, partial(_binary, _op)), _name)


add(lambda x, slope: call("leaky_relu", x, channels(slope, x) if slope.size > 1 else slope), "PRelu")


@operator("Div", since=7)
def _div(a: Value, b: Value) -> Value:
    return call("div", lift(a), lift(b)) if isinstance(a, Node) or isinstance(b, Node) else _divided(a, b)


def _divided(a: Array, b: Array) -> Array:
    """Return a quotient; of integers it is rounded towards 0."""
    if a.dtype.kind not in "iu":
        return np.asarray(a / b)
    if not np.all(b):
        raise InputError("this is an integer division by 0")
    return np.asarray(np.where((a % b != 0) & ((a < 0) != (b < 0)), a // b + 1, a // b), a.dtype)


add(partial(_aligned, _div), "Div")


add(lambda a, b, *, fmod=0: call("fmod" if fmod else "mod", a, b), "Mod")


add(lambda x: 1 / x, "Reciprocal")


@operator("Xor", since=7)
def _xor(a: Node, b: Node) -> Node:
    return compare("and", compare("or", a, b), compare("not", compare("and", a, b)))


add(partial(_aligned, _xor), "Xor")


@operator("Identity", "ai.onnx.ml.ZipMap")
def _identity(x: Value, **_: Any) -> Value:
    return x


@operator("Dropout", since=7)
def _dropout(
    x: Value, ratio: Array | None = None, training: Array | None = None, *, is_test: int = 1, seed: int = 0
) -> tuple[Value, Array]:
    if (not is_test or (training is not None and bool(training))) and (ratio is None or bool(ratio)):
        raise InputError("`Dropout` in training mode is random", hint="export the model for inference")
    return x, np.ones(x.shape, bool)


add(partial(_dropout, is_test=0), "Dropout")


# Several arguments


def _several(op: str, *x: Node) -> Node:
    return reduce(partial(call, op), x)


add(partial(_several, "maximum"), "Max")
add(partial(_several, "minimum"), "Min")
add(partial(_several, "add"), "Sum")


add(lambda *x: _several("add", *x) / len(x), "Mean")


@operator("Where")
def _where(condition: Node, a: Node, b: Node) -> Node:
    return where(condition, _softmax_without(compare("not", condition), a), _softmax_without(condition, b))


def _softmax_without(condition: Node, y: Node) -> Node:
    """Return a softmax whose rows where a condition holds are those of zeros, since they are replaced.

    Attention replaces rows in which everything is masked, whose softmax is nan.  A gradient does not go through them,
    as in PyTorch's `scaled_dot_product_attention`; 0 times nan would be nan.
    """
    if y.op != "softmax":
        return y
    (x,), (axis,) = y.args, y.settings
    if condition.op == "ne" and condition.args == (y, y):  # one nan is a row of them
        first = tuple(range(1) if i == axis else range(n) for i, n in enumerate(y.shape))
        condition = compare("ne", *2 * (index(y, first),))
    behind = len(y.shape) - axis
    along = condition.shape[-behind] if len(condition.shape) >= behind else 1
    fits = along == 1 and broadcast_shapes([condition.shape, y.shape]) == y.shape
    return softmax("softmax", where(condition, 0, x), axis) if fits else y


@operator("Clip", since=11)
def _clip(x: Node, low: Node | None = None, high: Node | None = None) -> Node:
    if low is None and high is None:
        return x
    if low is not None and high is not None and not (low.is_constant and high.is_constant):
        return call("minimum", call("maximum", x, low), high)
    return call("clamp", x, const(-math.inf) if low is None else low, const(math.inf) if high is None else high)


@operator("Clip")
def _clip_old(x: Node, *, min: float = -math.inf, max: float = math.inf) -> Node:
    y: Node = _clip(x, number(min) if min > -3e38 else None, number(max) if max < 3e38 else None)
    return y


add(lambda x: compare("ne", x, x), "IsNaN")


@operator("IsInf")
def _isinf(x: Node, *, detect_negative: int = 1, detect_positive: int = 1) -> Node:
    above, below = equal(x, const(math.inf)), equal(x, const(-math.inf))
    if detect_negative and detect_positive:
        return above | below
    return above if detect_positive else below if detect_negative else compare("ne", equal(x, x), equal(x, x))


# Activations, with their parameters


add(lambda x, *, alpha=0.01: call("leaky_relu", x, number(alpha)), "LeakyRelu")


add(lambda x, *, alpha=1.0: call("elu", x, number(alpha)), "Elu")


add(lambda x, *, alpha=1.0: call("celu", x, number(alpha)), "Celu")


@operator("Selu")
def _selu(x: Node, *, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875) -> Node:
    return number(gamma) * call("elu", x, number(alpha))


add(lambda x, *, alpha=0.2, beta=0.5: call("hardtanh", number(alpha) * x + number(beta), 0, 1), "HardSigmoid")


add(lambda x, *, alpha=1.0: where(x > number(alpha), x, 0), "ThresholdedRelu")


@operator("Gelu")
def _gelu(x: Node, *, approximate: str = "none") -> Node:
    if approximate == "none":
        return call("gelu", x)
    inner = call("sqrt", 2 / const("pi")) * (x + number(0.044715) * x**3)
    return x / 2 * (1 + call("tanh", inner))


# Integers alone


@operator("BitShift")
def _bit_shift(a: Array, b: Array, *, direction: str) -> Array:
    return np.asarray({"LEFT": np.left_shift, "RIGHT": np.right_shift}[direction](a, b))


def _bitwise(op: Any, *x: Array) -> Array:
    return np.asarray(op(*x))


for _name in ("And", "Or", "Xor", "Not"):
    add(partial(_bitwise, getattr(np, f"bitwise_{_name.lower()}")), f"Bitwise{_name}")
