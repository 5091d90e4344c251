"""Elementwise operators: a line each, where the vocabulary has the function."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np

from gradcli.errors import InputError
from gradcli.graph.array import Array
from gradcli.graph.construct import call, equal, where
from gradcli.graph.node import Node, compare, const
from gradcli.onnx.register import add, operator
from gradcli.onnx.values import Value, lift, number

_UNARY: dict[str, Any] = {  # operator: function, and NumPy's where integers may be its argument
    "Abs": ("abs", np.abs), "Neg": ("neg", np.negative), "Sign": ("sign", np.sign), "Not": ("not", np.logical_not),
    "Ceil": ("ceil", None), "Floor": ("floor", None), "Round": ("round", None),
    "Exp": ("exp", None), "Log": ("log", None), "Sqrt": ("sqrt", np.sqrt), "Erf": ("erf", None),
    "Sin": ("sin", None), "Cos": ("cos", None), "Tan": ("tan", None),
    "Asin": ("asin", None), "Acos": ("acos", None), "Atan": ("atan", None),
    "Sinh": ("sinh", None), "Cosh": ("cosh", None), "Tanh": ("tanh", None),
    "Asinh": ("asinh", None), "Acosh": ("acosh", None), "Atanh": ("atanh", None),
    "Relu": ("relu", None), "Sigmoid": ("sigmoid", None), "Softplus": ("softplus", None),
    "Softsign": ("softsign", None), "Mish": ("mish", None),
}  # fmt: skip
_BINARY: dict[str, Any] = {
    "Add": ("add", np.add), "Sub": ("sub", np.subtract), "Mul": ("mul", np.multiply), "Pow": ("pow", np.power),
    "Less": ("lt", np.less), "Greater": ("gt", np.greater), "LessOrEqual": ("le", np.less_equal),
    "GreaterOrEqual": ("ge", np.greater_equal), "Equal": ("eq", np.equal), "And": ("and", np.logical_and),
    "Or": ("or", np.logical_or), "PRelu": ("leaky_relu", None),
}  # fmt: skip
_CONDITIONS = {"lt", "gt", "le", "ge", "eq", "and", "or", "not"}


def _call(op: str, *x: Node) -> Node:
    return compare(op, *x) if op in _CONDITIONS else call(op, *x)


for _name, (_op, _fold) in _UNARY.items():
    _one = partial(_call, _op)

    def _unary(x: Node, *, _build: Callable[..., Node] = _one) -> Node:
        return _build(x)

    add(_unary, _name, fold=_fold)

for _name, (_op, _fold) in _BINARY.items():
    _two = partial(_call, _op)

    def _binary(a: Node, b: Node, *, axis: int = -1, broadcast: int = 0, _build: Callable[..., Node] = _two) -> Node:
        return _build(a, b)

    add(_binary, _name, fold=_fold)


def _divided(a: Array, b: Array, **_: Any) -> Array:
    if a.dtype.kind not in "iu":
        return np.asarray(a / b)
    if not np.all(b):
        raise InputError("this is an integer division by 0")
    return np.asarray(np.where((a % b != 0) & ((a < 0) != (b < 0)), a // b + 1, a // b), a.dtype)


@operator("Div", fold=_divided)
def _div(a: Node, b: Node) -> Node:
    return call("div", a, b)


@operator("Mod", fold=lambda a, b, fmod=0: np.fmod(a, b) if fmod else np.mod(a, b))
def _mod(a: Node, b: Node, *, fmod: int = 0) -> Node:
    return call("fmod" if fmod else "mod", a, b)


@operator("Reciprocal")
def _reciprocal(x: Node) -> Node:
    return 1 / x


@operator("Xor", fold=np.logical_xor)
def _xor(a: Node, b: Node) -> Node:
    return compare("and", compare("or", a, b), compare("not", compare("and", a, b)))


@operator("Identity", fold=lambda x: x)
def _identity(x: Value) -> Value:
    return x


@operator("Dropout")
def _dropout(x: Value, ratio: Array | None = None, training: Array | None = None, **_: Any) -> tuple[Value, Array]:
    if training is not None and bool(training):
        raise InputError("`Dropout` in training mode is random", hint="export the model for inference")
    return x, np.ones(x.shape, bool)


# Several arguments


def _several(op: str, *x: Value) -> Value:
    return reduce(lambda a, b: call(op, lift(a), lift(b)), x[1:], x[0])


add(partial(_several, "maximum"), "Max", fold=lambda *x: reduce(np.maximum, x))
add(partial(_several, "minimum"), "Min", fold=lambda *x: reduce(np.minimum, x))
add(partial(_several, "add"), "Sum", fold=lambda *x: reduce(np.add, x))


@operator("Mean")
def _mean(*x: Node) -> Node:
    return lift(_several("add", *x)) / len(x)


@operator("Where", fold=np.where)
def _where(condition: Node, a: Node, b: Node) -> Node:
    return where(condition, a, b)


@operator("Clip", since=11, fold=lambda x, low=None, high=None: np.clip(x, low, high))
def _clip(x: Node, low: Node | None = None, high: Node | None = None) -> Node:
    return _between(x, low, high)


def _between(x: Node, low: Node | None, high: Node | None) -> Node:
    if low is None and high is None:
        return x
    if low is not None and high is not None and not (low.is_constant and high.is_constant):
        return call("minimum", call("maximum", x, low), high)
    return call("clamp", x, const(-math.inf) if low is None else low, const(math.inf) if high is None else high)


@operator("Clip")
def _clip_old(x: Node, *, min: float = -math.inf, max: float = math.inf) -> Node:
    return _between(x, number(min) if min > -3e38 else None, number(max) if max < 3e38 else None)


@operator("IsNaN", fold=np.isnan)
def _isnan(x: Node) -> Node:
    return compare("ne", x, x)


@operator("IsInf", fold=lambda x, **_: np.isinf(x))
def _isinf(x: Node, *, detect_negative: int = 1, detect_positive: int = 1) -> Node:
    above, below = equal(x, const(math.inf)), equal(x, const(-math.inf))
    if detect_negative and detect_positive:
        return above | below
    return above if detect_positive else below if detect_negative else compare("ne", equal(x, x), equal(x, x))


# Activations, with their parameters


@operator("LeakyRelu")
def _leaky_relu(x: Node, *, alpha: float = 0.01) -> Node:
    return call("leaky_relu", x, number(alpha))


@operator("Elu")
def _elu(x: Node, *, alpha: float = 1.0) -> Node:
    return call("elu", x, number(alpha))


@operator("Celu")
def _celu(x: Node, *, alpha: float = 1.0) -> Node:
    return call("celu", x, number(alpha))


@operator("Selu")
def _selu(x: Node, *, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875) -> Node:
    return number(gamma) * call("elu", x, number(alpha))


@operator("HardSigmoid")
def _hard_sigmoid(x: Node, *, alpha: float = 0.2, beta: float = 0.5) -> Node:
    return call("hardtanh", number(alpha) * x + number(beta), 0, 1)


@operator("HardSwish")
def _hard_swish(x: Node) -> Node:
    return x * call("hardtanh", x / 6 + const(1) / 2, 0, 1)


@operator("ThresholdedRelu")
def _thresholded_relu(x: Node, *, alpha: float = 1.0) -> Node:
    return where(x > number(alpha), x, 0)


@operator("Shrink")
def _shrink(x: Node, *, lambd: float = 0.5, bias: float = 0.0) -> Node:
    return where(x < number(-lambd), x + number(bias), where(x > number(lambd), x - number(bias), 0))


@operator("Gelu")
def _gelu(x: Node, *, approximate: str = "none") -> Node:
    if approximate == "none":
        return call("gelu", x)
    inner = call("sqrt", 2 / const("pi")) * (x + number(0.044715) * x**3)
    return x / 2 * (1 + call("tanh", inner))


@operator("Swish")
def _swish(x: Node, *, alpha: float = 1.0) -> Node:
    return call("silu", x) if alpha == 1 else x * call("sigmoid", number(alpha) * x)


# Integers alone

_SHIFTS = {"LEFT": np.left_shift, "RIGHT": np.right_shift}


@operator("BitShift")
def _bit_shift(a: Array, b: Array, *, direction: str) -> Array:
    return np.asarray(_SHIFTS[direction](a, b))


def _bitwise(op: Any) -> Any:
    def build(*x: Array) -> Array:
        return np.asarray(op(*x))

    return build


for _name, _op in {"And": np.bitwise_and, "Or": np.bitwise_or, "Xor": np.bitwise_xor, "Not": np.bitwise_not}.items():
    add(_bitwise(_op), f"Bitwise{_name}")
