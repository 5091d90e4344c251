"""Chains: products whose terms are added one after the other, each with one rounding, as a BLAS adds them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from gradcli.kernels.rounding import Array
from gradcli.kernels.sums import products_in_order

_HEIGHT, _WIDTH = 12, 192  # of the parts that a BLAS is given, and their margin
_EDGE = 8
_TERMS = 2048  # which a BLAS adds before it writes anything
_ONE_THREAD = 1 << 18  # products that a BLAS does not share out


def chain(a: Array, b: Array) -> Array:
    """Return a product whose terms are added one after the other, each with one rounding."""
    if not adds_in_order(a.dtype):
        return _one_by_one(a, b)
    found = _in_blas(a[:, :_TERMS], b[:_TERMS])
    for k in range(_TERMS, len(b), _TERMS):  # what there is comes first
        first = np.eye(len(a), dtype=a.dtype)
        more = np.concatenate([first, a[:, k : k + _TERMS]], axis=1), np.concatenate([found, b[k : k + _TERMS]])
        found = _in_blas(*more)
    return found


def _in_blas(a: Array, b: Array) -> Array:
    """Return NumPy's product of matrices, whose BLAS adds the terms one after the other, each with one rounding.

    It does so in one thread, hence a part at a time.
    """
    (rows, inner), columns = a.shape, b.shape[1]
    width = min(max(_ONE_THREAD // (_HEIGHT * inner) // _EDGE - 2, 1) * _EDGE, _WIDTH)
    height = max(_ONE_THREAD // (inner * (min(columns, width) + 3 * _EDGE)) // _HEIGHT, 1) * _HEIGHT
    if rows <= height and columns <= width:
        return _inside(a, b).copy()
    found = np.empty((rows, columns), a.dtype)
    for i in range(0, columns, width):
        for j in range(0, rows, height):
            found[j : j + height, i : i + width] = _inside(a[j : j + height], b[:, i : i + width])
    return found


def _inside(a: Array, b: Array) -> Array:
    """Return a product that is made inside of a larger one: a BLAS adds otherwise where a matrix ends."""
    (rows, inner), columns = a.shape, b.shape[1]
    left = np.zeros((-(-rows // _HEIGHT) * _HEIGHT, inner), a.dtype)
    right = np.zeros((inner, -(-columns // _EDGE) * _EDGE + 2 * _EDGE), b.dtype)
    left[:rows], right[:, _EDGE : _EDGE + columns] = a, b
    return np.matmul(left, right)[:rows, _EDGE : _EDGE + columns]  # type: ignore[no-any-return]


@cache
def adds_in_order(dtype: Any) -> bool:
    """Tell whether the BLAS of this machine is known to add like that: of Intel's and AMD's processors, that is."""
    a = np.sin(np.arange(26 * 40.0)).astype(dtype).reshape(26, 40)
    b = np.cos(np.arange(40 * 33.0)).astype(dtype).reshape(40, 33)
    return bool((_in_blas(a, b) == _one_by_one(a, b)).all())


def _one_by_one(a: Array, b: Array) -> Array:
    """Return a product whose every term is added with one rounding."""
    return products_in_order(a.T[:, :, None], b[:, None])  # type: ignore[no-any-return]
