"""PyTorch's operations that the vocabulary of formulas does not have, defined in nodes: a line each.

A function of nodes is applied element by element, its operands promoted and broadcast; its parameters have PyTorch's
names.  The value and the gradient at a corner are PyTorch's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from functools import partial

import numpy as np

from gradcli.graph.construct import call, equal, where
from gradcli.graph.dtypes import FLOATING
from gradcli.graph.node import Node, compare, const
from gradcli.pytorch.messages import raise_if

Build = Callable[..., Node]


_gt, _ge, _lt, _le, _both = (partial(compare, op) for op in ("gt", "ge", "lt", "le", "and"))


def _nan(x: Node) -> Node:
    return compare("ne", x, x)


def _nothing(x: Node) -> Node:
    """Return 0 with the sign of a number, of `nan` and `inf` nan; no gradient flows to it."""
    return call("detach", x) * _ZERO


_ZERO, _ONE, _TWO, _THREE, _SIX, _TWENTY = map(const, (0, 1, 2, 3, 6, 20))
_HALF, _MINUS = const(Decimal("0.5")), const(-1)
_NAN = const(math.nan)
_DEGREES, _LN2 = (const(Decimal(repr(n))) for n in (180.0 / math.pi, math.log(2)))
_PI = const("pi")


ELEMENTWISE: dict[str, Build] = {
    "addcmul": lambda input, tensor1, tensor2, value=_ONE: input + value * tensor1 * tensor2,
    "addcdiv": lambda input, tensor1, tensor2, value=_ONE: input + value * (tensor1 / tensor2),
    "clamp": lambda input, min=None, max=None: _clamped(input, min, max),
    "clip": lambda input, min=None, max=None: _clamped(input, min, max),
    "clamp_min": lambda input, min: where(_lt(input, min), min, input),
    "clamp_max": lambda input, max: where(_gt(input, max), max, input),
    "copysign": lambda input, other: where(_is_negative(other), -call("abs", input), call("abs", input)),
    "deg2rad": lambda input: input / _DEGREES,
    "rad2deg": lambda input: input * _DEGREES,
    "fmax": lambda input, other: where(compare("or", _ge(input, other), _nan(other)), input, other),
    "maximum": lambda input, other: call("maximum", input, other),
    "minimum": lambda input, other: call("minimum", input, other),
    "fmin": lambda input, other: where(compare("or", _le(input, other), _nan(other)), input, other),
    "hardshrink": lambda input, lambd=_HALF: where(_both(_ge(input, -lambd), _le(input, lambd)), _ZERO, input),
    "hardsigmoid": lambda input: _within_3(
        input, (input + _THREE) / _SIX, call("detach", _hardtanh(input + _THREE, _ZERO, _SIX) / _SIX)
    ),
    "hardswish": lambda input: _within_3(
        input, input * (input + _THREE) / _SIX, where(_gt(input, _ZERO), input, _nothing(input))
    ),
    "ldexp": lambda input, other: input * call("pow", _TWO, other),
    "logit": lambda input, eps=None: _logit(input, eps),
    "logaddexp2": lambda input, other: call("logaddexp", input * _LN2, other * _LN2) / _LN2,
    "nan_to_num": lambda input, nan=_ZERO, posinf=None, neginf=None: _finite(input, nan, posinf, neginf),
    "prelu_kernel": lambda input, weight: where(_gt(input, _ZERO), input, weight * input),
    "hardtanh": lambda input, min_val=_MINUS, max_val=_ONE: _hardtanh(input, min_val, max_val),
    "relu6": lambda input: _hardtanh(input, _ZERO, _SIX),
    "reciprocal": lambda input: _ONE / input,
    "rsqrt": lambda input: _ONE / call("sqrt", input),
    "sign": lambda input: call("identity" if input.dtype == "bool" else "sign", input),
    "sgn": lambda input: call("identity" if input.dtype == "bool" else "sign", input),
    "sinc": lambda input: _sinc(where(equal(input, 0), _ZERO, input * _PI)),
    "softshrink": lambda input, lambd=_HALF: where(
        _gt(input, lambd), input - lambd, where(_lt(input, -lambd), input + lambd, _nothing(input))
    ),
    "softplus": lambda input, beta=_ONE, threshold=_TWENTY: where(
        _gt(input * beta, threshold), input, call("softplus", input * beta) / beta
    ),
    "threshold": lambda input, threshold, value: where(_le(input, threshold), value, input),
    "xlogy": lambda input, other: _xlogy(input, other),
}


def _is_negative(x: Node) -> Node:
    return compare("or", _lt(x, _ZERO), _lt(_ONE / x, _ZERO))  # as -0 is


def _clamped(x: Node, low: Node | None, high: Node | None) -> Node:
    raise_if(low is None and high is None, "no bound")
    if x.dtype in FLOATING:
        return call("clamp", x, const(-math.inf) if low is None else low, const(math.inf) if high is None else high)
    x = x if low is None else call("maximum", x, low)
    return x if high is None else call("minimum", x, high)


def _within_3(x: Node, inside: Node, outside: Node) -> Node:
    return where(_both(_gt(x, -_THREE), _lt(x, _THREE)), inside, outside)


def _hardtanh(x: Node, low: Node, high: Node) -> Node:
    return call("hardtanh", x, low, high) if x.dtype in FLOATING else call("clamp", x, low, high)


def _logit(x: Node, eps: Node | None) -> Node:
    inner = x if eps is None else call("clamp", x, eps, _ONE - eps)
    result = call("log", inner / (_ONE - inner))
    inside = _both(_ge(x, _ZERO), _le(x, _ONE))
    return result if eps is not None else result * where(inside, _ONE, _NAN)


def _xlogy(x: Node, y: Node) -> Node:
    is_zero = equal(x, 0)
    none = _both(is_zero, compare("or", _le(y, _ZERO), compare("eq", y, const(math.inf))))
    result = x * call("log", y)
    return where(none, _ZERO, where(is_zero, result - call("detach", result), result))  # 0, and not -0


def _sinc(x: Node) -> Node:
    inner = where(equal(x, 0), _ONE, x)
    return where(equal(x, 0), _ONE, call("sin", inner) / inner)


def _finite(x: Node, nan: Node | None, posinf: Node | None, neginf: Node | None) -> Node:
    if x.dtype not in FLOATING:
        return Node("identity", (x,), x.shape)
    most = const(Decimal(repr(float(np.finfo(x.dtype).max))))
    x = where(_nan(x), _ZERO if nan is None else nan, x)
    x = where(compare("eq", x, const(math.inf)), most if posinf is None else posinf, x)
    return where(compare("eq", x, const(-math.inf)), -most if neginf is None else neginf, x)
