"""What PyTorch computes in one operation and formulas have no name for, each in nodes: a line a function.

A function of nodes is applied element by element, its operands promoted and broadcast; its parameters have PyTorch's
names.  The value and the gradient at a corner are PyTorch's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

from gradcli.graph.construct import call, equal, where
from gradcli.graph.dtypes import FLOATING
from gradcli.graph.node import Node, compare, const

Build = Callable[..., Node]


def _gt(a: Any, b: Any) -> Node:
    return compare("gt", a, b)


def _both(a: Node, b: Node) -> Node:
    return compare("and", a, b)


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


def _inside(x: Node, low: Node, high: Node) -> Node:
    return _both(_gt(x, low), compare("lt", x, high))


ELEMENTWISE: dict[str, Build] = {
    "addcmul": lambda input, tensor1, tensor2, value=_ONE: input + value * tensor1 * tensor2,
    "addcdiv": lambda input, tensor1, tensor2, value=_ONE: input + value * (tensor1 / tensor2),
    "clamp": lambda input, min=None, max=None: _clamped(input, min, max),
    "clip": lambda input, min=None, max=None: _clamped(input, min, max),
    "clamp_min": lambda input, min: where(compare("lt", input, min), min, input),
    "clamp_max": lambda input, max: where(_gt(input, max), max, input),
    "copysign": lambda input, other: where(
        equal(compare("lt", input, _ZERO), compare("lt", other, _ZERO)), input, -input
    ),
    "deg2rad": lambda input: input / _DEGREES,
    "rad2deg": lambda input: input * _DEGREES,
    "exp2": lambda input: call("pow", _TWO, input),
    "fix": lambda input: call("trunc", input),
    "fmax": lambda input, other: where(compare("or", compare("ge", input, other), _nan(other)), input, other),
    "fmin": lambda input, other: where(compare("or", compare("le", input, other), _nan(other)), input, other),
    "hardshrink": lambda input, lambd=_HALF: where(
        _both(compare("ge", input, -lambd), compare("le", input, lambd)), _ZERO, input
    ),
    "hardsigmoid": lambda input: where(
        _inside(input, -_THREE, _THREE),
        (input + _THREE) / _SIX,
        where(_gt(input, _ZERO), _ONE, where(_nan(input), input, _ZERO)),
    ),
    "hardswish": lambda input: where(
        _inside(input, -_THREE, _THREE),
        input * (input + _THREE) / _SIX,
        where(_gt(input, _ZERO), input, _nothing(input)),
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
    "sign": lambda input: _signed(input),
    "sgn": lambda input: _signed(input),
    "sinc": lambda input: where(equal(input, 0), _ONE, call("sin", input * _PI) / (input * _PI)),
    "softshrink": lambda input, lambd=_HALF: where(
        _gt(input, lambd), input - lambd, where(compare("lt", input, -lambd), input + lambd, _nothing(input))
    ),
    "softplus": lambda input, beta=_ONE, threshold=_TWENTY: where(
        _gt(input * beta, threshold), input, call("softplus", input * beta) / beta
    ),
    "threshold": lambda input, threshold, value: where(compare("le", input, threshold), value, input),
    "xlogy": lambda input, other: where(
        _both(equal(input, 0), compare("eq", other, other)), _ZERO, input * call("log", other)
    ),
}

for _name, _made in ELEMENTWISE.items():
    _made.__name__ = _made.__qualname__ = _name  # which Python tells where an argument is missing


def _clamped(x: Node, low: Node | None, high: Node | None) -> Node:
    if low is None and high is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if low is not None and high is not None:
        return call("clamp", x, low, high)
    if low is not None:
        return call("clamp", x, low, const(math.inf)) if x.dtype in FLOATING else call("maximum", x, low)
    assert high is not None
    return call("clamp", x, const(-math.inf), high) if x.dtype in FLOATING else call("minimum", x, high)


def _hardtanh(x: Node, low: Node, high: Node) -> Node:
    return call("hardtanh", x, low, high) if x.dtype in FLOATING else call("clamp", x, low, high)


def _signed(x: Node) -> Node:
    return call("identity" if x.dtype == "bool" else "sign", x)


def _logit(x: Node, eps: Node | None) -> Node:
    inner = x if eps is None else call("clamp", x, eps, _ONE - eps)
    found = call("log", inner / (_ONE - inner))
    inside = _both(compare("ge", x, _ZERO), compare("le", x, _ONE))
    return found if eps is not None else found * where(inside, _ONE, _NAN)


def _finite(x: Node, nan: Node, posinf: Node | None, neginf: Node | None) -> Node:
    if x.dtype not in FLOATING:
        return Node("identity", (x,), x.shape)
    most = const(Decimal(repr(float(np.finfo(x.dtype).max))))
    x = where(_nan(x), nan, x)
    x = where(compare("eq", x, const(math.inf)), most if posinf is None else posinf, x)
    return where(compare("eq", x, const(-math.inf)), -most if neginf is None else neginf, x)
