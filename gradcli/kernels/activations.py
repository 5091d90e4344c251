"""Activations and what they pass on, with the roundings of PyTorch's loops over elements.

Each kernel is given the functions that its loop calls, elements, and the numbers of its call.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from gradcli.kernels.rounding import Array, fused
from gradcli.kernels.vector_functions import Vectors

_SELU: dict[str, Any] = {"alpha": 1.6732632423543772, "scale": 1.0507009873554805}
_BETA, _KAPPA = math.sqrt(2 / math.pi), 0.044715


def sigmoid(f: Any, x: Array) -> Array:
    """Return 1/(1 + exp(-x)), rounded at each step."""
    return 1 / (1 + f.exp(-x))  # type: ignore[no-any-return]


def silu(f: Any, x: Array) -> Array:
    """Return x/(1 + exp(-x)), rounded at each step."""
    return x / (1 + f.exp(-x))  # type: ignore[no-any-return]


def _silu_passed(f: Any, x: Array, g: Array) -> Array:
    s = sigmoid(f, x)
    return g * s * fused(x, 1 - s, 1)


def _softplus(f: Any, x: Array, beta: float = 1, threshold: float = 20) -> Array:
    return np.where(x * beta > threshold, x, f.log1p(f.exp(x * beta)) / beta)


def _softplus_passed(f: Any, x: Array, g: Array, beta: float = 1, threshold: float = 20) -> Array:
    power = f.exp(x * beta)
    return np.where(x * beta > threshold, g, g * power / (power + 1))


def logsigmoid(f: Any, x: Array) -> Array:
    """Return the logarithm of a sigmoid, which is computed in vectors throughout."""
    return np.minimum(x, 0) - Vectors.log1p(Vectors.exp(-abs(x)))  # type: ignore[no-any-return]


def _logsigmoid_passed(f: Any, x: Array, g: Array) -> Array:
    power = Vectors.exp(-abs(x))
    share = power / (1 + power)
    return np.where(x < 0, 1 - share, share) * g  # type: ignore[no-any-return]


def _mish(f: Any, x: Array) -> Array:
    return x * f.tanh(f.log1p(f.exp(x)))  # type: ignore[no-any-return]


def _mish_passed(f: Any, x: Array, g: Array) -> Array:
    t = f.tanh(f.log1p(f.exp(x)))
    return g * fused(x * sigmoid(f, x), fused(-t, t, 1), t)


def _elu(f: Any, x: Array, alpha: float = 1, scale: float = 1, is_celu: bool = False) -> Array:
    below = f.expm1(x * (1 / alpha) if is_celu else x)
    return np.where(x < 0, below * (x.dtype.type(alpha) * x.dtype.type(scale)), x * scale)


def _elu_passed(f: Any, x: Array, g: Array, alpha: float = 1, scale: float = 1, is_celu: bool = False) -> Array:
    inner = 1 / alpha if is_celu else 1
    below = g * inner * (x.dtype.type(alpha) * x.dtype.type(scale)) * f.exp(x * inner)
    return np.where(x <= 0, below, g * scale)


def _gelu(f: Any, x: Array) -> Array:
    inner = _BETA * fused(x.dtype.type(_KAPPA), x * x * x, x)
    return 0.5 * x * (1 + f.tanh(inner))  # type: ignore[no-any-return]


def _gelu_passed(f: Any, x: Array, g: Array) -> Array:
    inner = _BETA * fused(x.dtype.type(_KAPPA), x * x * x, x)
    t = f.tanh(inner)
    slope = _BETA * fused(x.dtype.type(3) * x.dtype.type(_KAPPA), x * x, 1)
    return g * (0.5 * (1 + t) + 0.5 * x * fused(-t, t, 1) * slope)  # type: ignore[no-any-return]


def _hardswish(f: Any, x: Array) -> Array:
    return x * np.clip(x + 3, 0, 6) / 6  # type: ignore[no-any-return]


def _hardswish_passed(f: Any, x: Array, g: Array) -> Array:
    return np.where(x <= -3, 0, np.where(x < 3, g * (x / 3 + x.dtype.type(0.5)), g))


# What computes an activation, and what it passes on.
ACTIVATIONS: dict[str, tuple[Any, Any]] = {
    "silu": (silu, _silu_passed),
    "softplus": (_softplus, _softplus_passed),
    "logsigmoid": (logsigmoid, _logsigmoid_passed),
    "mish": (_mish, _mish_passed),
    "elu": (_elu, _elu_passed),
    "selu": (partial(_elu, **_SELU), partial(_elu_passed, **_SELU)),
    "celu": (partial(_elu, is_celu=True), partial(_elu_passed, is_celu=True)),
    "gelu": (_gelu, _gelu_passed),
    "hardswish": (_hardswish, _hardswish_passed),
}
