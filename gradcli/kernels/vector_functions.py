"""Functions as PyTorch's loops over elements have them: two vectors at a time, and what is left one by one.

Source: SLEEF's functions "SLEEF: A Portable Vectorized Library of C Standard Mathematical Functions" (2020),
which PyTorch calls for vectors; their pairs of float32 are float64 here.  One by one, functions are the C library's.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from gradcli.kernels.processor import VECTOR
from gradcli.kernels.rounding import Array, fused, wide

Kernel = Callable[..., Array]

LOG2_E = 1 / math.log(2)
LN2_HIGH, LN2_LOW = 0.693145751953125, -1.428606765330187e-06  # to be taken away, and to be added


def polynomial(x: Array, *coefficients: float) -> Array:
    """Return a polynomial, each term added with one rounding."""
    found = np.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        found = fused(found, x, x.dtype.type(c))
    return found


def exp(x: Array) -> Array:
    """Return powers of e as PyTorch's kernels have them, which compute more than an exp."""
    if x.dtype != np.float32:
        return _exp_of_double(np.clip(x, -1000, 710))
    x = np.clip(x, -104, 104)
    power = np.rint(x * np.float32(LOG2_E))
    rest = fused(power, np.float32(-LN2_HIGH), x)
    rest = fused(power, np.float32(LN2_LOW), rest)
    found = polynomial(rest, 1.98527618e-4, 1.39304355e-3, 8.33336078e-3, 4.16664854e-2, 1.66666672e-1, 0.5)
    found = np.float32(1) + fused(rest * rest, found, rest)
    return np.ldexp(found, np.nan_to_num(power).astype(np.int32))  # type: ignore[no-any-return]


def _exp_of_double(x: Array) -> Array:
    power = np.rint(x * LOG2_E)
    rest = fused(power, -0.693147180559662956511601805686950683593750, x)
    rest = fused(power, -0.28235290563031577122588448175013436025525412068e-12, rest)
    found = np.zeros(x.shape, np.longdouble)
    for c in _EXP_OF_DOUBLE:
        found = found * rest + c
    found = found.astype(np.float64)
    for last in (0.5, 1.0, 1.0):
        found = fused(found, rest, last)
    return np.ldexp(found, np.nan_to_num(power).astype(np.int32))


_EXP_OF_DOUBLE = (
    *(0.2081276378237164457e-8, 0.2511210703042288022e-7, 0.2755762628169491192e-6, 0.2755723402025388239e-5),
    *(0.2480158687479686264e-4, 0.1984126989855865850e-3, 0.1388888888914497797e-2, 0.8333333333314938210e-2),
    *(0.4166666666666602598e-1, 0.1666666666666669072e0),
)


def _exp_in_pairs(x: Array, less: float = 0.0) -> Array:
    """Return powers of e, less 0 or 1, with some digits more."""
    power = np.nan_to_num(np.rint(x * np.float32(LOG2_E)))
    rest = x.astype(np.float64) - power.astype(np.float64) * LN2_HIGH + power * np.float32(LN2_LOW)
    high = rest.astype(np.float32)
    found = polynomial(high, 0.1980960224e-3, 0.1394256484e-2, 0.8333456703e-2, 0.4166637361e-1)
    found = rest * (rest * found + 0.1666666567325592) + 0.5
    scale = np.ldexp(1.0, power.astype(np.int32))
    return scale * (rest + rest * rest * found) + (scale - less)


def _tanh(x: Array) -> Array:
    if x.dtype != np.float32:
        return wide(np.tanh, x)
    power = _exp_in_pairs(np.minimum(abs(x), np.float32(8.664339742)))
    found = ((power - 1 / power) / (power + 1 / power)).astype(np.float32)
    return np.copysign(np.where(abs(x) > 8.664339742, np.float32(1), found), x)


def _expm1(x: Array) -> Array:
    if x.dtype != np.float32:
        return wide(np.expm1, x)
    found = np.where(x == 0, x, _exp_in_pairs(np.clip(x, -104, 104), 1.0).astype(np.float32))
    return np.where(x < np.float32(-16.63553233), np.float32(-1), found)


def log1p(x: Array) -> Array:
    """Return log(1 + x) as PyTorch's kernels have it."""
    if x.dtype != np.float32:
        return wide(np.log1p, x)
    power = np.frexp((x + np.float32(1)) * np.float32(1 / 0.75))[1] - 1
    scale = np.ldexp(np.float32(1), -power)
    ordinary = (x > -1) & (x < np.inf) & (x != 0)
    return np.where(ordinary, _logarithm(power, fused(x, scale, scale - 1)), np.log1p(x))


def log(x: Array) -> Array:
    """Return logarithms of positive numbers as PyTorch's kernels have them, which compute more than a log."""
    if x.dtype != np.float32:
        return wide(np.log, x)
    power = np.frexp(x * np.float32(1 / 0.75))[1] - 1
    return _logarithm(power, np.ldexp(x, -power) - np.float32(1))


def _logarithm(power: Array, rest: Array) -> Array:
    """Return the logarithm of 2**power·(1 + rest)."""
    high = rest * (1 / (2 + rest))
    square, wider = high * high, rest.astype(np.float64)
    cubic = square * high * polynomial(square, 0.3027294874, 0.3996108174, 0.6666694880)
    return (LN2 * power + 2 * wider / (2 + wider) + cubic).astype(np.float32)


LN2 = float(np.float32(0.69314718246459960938)) + float(np.float32(-1.904654323148236017e-09))


@cache
def _of_library(name: str, kind: Any) -> Kernel:
    """Return a function of the C library; where there is none, NumPy's with more digits, rounded once."""
    own = ctypes.c_float if kind == np.float32 else ctypes.c_double
    try:
        function = getattr(ctypes.CDLL(None), name + ("f" if kind == np.float32 else ""))
    except (AttributeError, OSError, TypeError):
        return partial(wide, getattr(np, name))
    function.restype, function.argtypes = own, [own]
    return lambda x: np.fromiter(map(function, x.reshape(-1).tolist()), kind, x.size).reshape(x.shape)


def _one_by_one(name: str, x: Array) -> Array:
    return _of_library(name, x.dtype)(x)


# The functions that a loop calls: of whole vectors, and of what is left behind them.
Vectors = SimpleNamespace(exp=exp, expm1=_expm1, log1p=log1p, tanh=_tanh)
OneByOne = SimpleNamespace(**{n: partial(_one_by_one, n) for n in ("exp", "expm1", "log", "log1p", "tanh")})


def in_loop(kernel: Kernel, x: Array, *more: Any) -> Array:
    """Return what a kernel makes of elements and of others beside them, in the order in which the first lie in memory.

    The kernel is given the functions that it may call.  Elements that do not lie side by side are taken one by one.
    """
    axes = sorted(range(x.ndim), key=lambda i: -x.strides[i])
    ordered = x.transpose(axes)
    own = [np.broadcast_to(a, x.shape).transpose(axes).reshape(-1) for a in (x, *more)]
    whole = x.size - x.size % (2 * VECTOR // x.itemsize) if ordered.flags.c_contiguous else 0
    parts = [kernel(Vectors, *(a[:whole] for a in own))] if whole else []
    parts += [kernel(OneByOne, *(a[whole:] for a in own))] if whole < x.size or not whole else []
    return np.concatenate(parts).reshape(ordered.shape).transpose(np.argsort(axes))
