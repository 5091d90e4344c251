"""Products of many factors, in which nothing overflows or underflows on the way.

Factors that could do so are taken apart into mantissas from 1/2 to 1 and exponents of 2 (by `frexp`): mantissas are
multiplied, exponents added, and only the result is a float64 again. So `1e200·0·1e200` is 0 in any order, and
`1e200·1e200·1e-300` is 1e100.
"""

from __future__ import annotations

import numpy as np

from gradcli.engine.functions import into
from gradcli.graph.array import Array
from gradcli.graph.construct import Axes, inverse
from gradcli.graph.operations.reductions import in_front
from gradcli.graph.shapes import size_of

_SAFE = 1000  # bits that a product may lose or gain without leaving the normal numbers
FAR = 2200  # an exponent that takes any mantissa out of range


def prod(axes: Axes, x: Array, out: Array | None = None) -> Array:
    """Return the product over the axes; the points are along the last one.

    >>> prod((0,), np.array([[1e200], [1e200], [1e-300]]))
    array([1.e+100])
    """
    factors = _flat(axes, x)
    if _is_tame(factors):
        return factors.prod(axis=0, out=out)
    return _number(*_product(*np.frexp(factors)), out)


def product_of_others(axes: Axes, x: Array, out: Array | None = None) -> Array:
    """Return for each element the product of all other elements along the axes.

    >>> product_of_others((0,), np.array([[0.0], [2.0], [3.0]]))[:, 0]
    array([6., 0., 0.])
    """
    factors = _flat(axes, x)
    result = _beside(factors) if _is_tame(factors) else _number(*_others(*np.frexp(factors)))
    order = in_front(axes, x.ndim)
    return into(out, result.reshape([x.shape[i] for i in order]).transpose(inverse(order)))


def _flat(axes: Axes, x: Array) -> Array:
    """Return the array with the axes in front, as a single one."""
    moved = x.transpose(in_front(axes, x.ndim))
    return moved.reshape(size_of(moved.shape[: len(axes)]), *moved.shape[len(axes) :])


def _is_tame(factors: Array) -> bool:
    """Return whether no product of some of the factors can leave the normal numbers, or they are complex.

    `frexp` takes no complex numbers; a complex step that overflows is not used.
    """
    if np.iscomplexobj(factors):
        return True
    sizes, most = np.abs(factors), 2.0 ** (_SAFE / max(1, len(factors)))
    return bool(sizes.size and sizes.max() <= most and sizes.min() * most >= 1)


def _number(mantissas: Array, exponents: Array, out: Array | None = None) -> Array:
    return np.asarray(np.ldexp(mantissas, np.clip(exponents, -FAR, FAR), out=out))


def _product(mantissas: Array, exponents: Array) -> tuple[Array, Array]:
    """Return the product over the first axis."""
    while len(mantissas) > _SAFE:
        parts = [slice(i, i + _SAFE) for i in range(0, len(mantissas), _SAFE)]
        mantissas, more = np.frexp(np.stack([mantissas[p].prod(axis=0) for p in parts]))
        exponents = np.stack([exponents[p].sum(axis=0) for p in parts]) + more
    return mantissas.prod(axis=0), exponents.sum(axis=0)


def _others(mantissas: Array, exponents: Array) -> tuple[Array, Array]:
    """Return for each element the product of all others along the first axis."""
    if len(mantissas) <= _SAFE:
        return _beside(mantissas), exponents.sum(axis=0) - exponents
    parts = [slice(i, i + _SAFE) for i in range(0, len(mantissas), _SAFE)]
    products = [_product(mantissas[p], exponents[p]) for p in parts]
    whole, more = np.frexp(np.stack([m for m, _ in products]))
    around, far = _others(whole, np.stack([e for _, e in products]) + more)
    around, more = np.frexp(around)  # each is multiplied by a number that may be as small
    result, added = np.empty_like(mantissas), np.empty_like(exponents)
    for k, p in enumerate(parts):
        result[p] = _beside(mantissas[p]) * around[k]
        added[p] = exponents[p].sum(axis=0) - exponents[p] + far[k] + more[k]
    result, more = np.frexp(result)
    return result, added + more


def _beside(factors: Array) -> Array:
    """Return for each element the product of those before it times that of those after it, along the first axis."""
    ones = np.ones_like(factors[:1])
    before, behind = (np.multiply.accumulate(np.concatenate([ones, rest])) for rest in (factors[:-1], factors[:0:-1]))
    return np.asarray(before * behind[::-1])
