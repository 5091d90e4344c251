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

    It does so inside of a matrix, hence a margin of zeros, and in one thread, hence a part at a time.
    """
    (rows, inner), columns = a.shape, b.shape[1]
    found = np.empty((rows, columns), a.dtype)
    left = np.zeros((-(-rows // _HEIGHT) * _HEIGHT, inner), a.dtype)
    left[:rows] = a
    width = min(max(_ONE_THREAD // (_HEIGHT * inner) // _EDGE - 2, 1) * _EDGE, _WIDTH)
    for i in range(0, columns, width):
        part = b[:, i : i + width]
        right = np.zeros((inner, -(-part.shape[1] // _EDGE) * _EDGE + 2 * _EDGE), b.dtype)
        right[:, _EDGE : _EDGE + part.shape[1]] = part
        height = max(_ONE_THREAD // right.size // _HEIGHT, 1) * _HEIGHT
        for j in range(0, rows, height):
            place = found[j : j + height, i : i + width]
            place[...] = np.matmul(left[j : j + height], right)[: len(place), _EDGE : _EDGE + part.shape[1]]
    return found


@cache
def adds_in_order(dtype: Any) -> bool:
    """Tell whether the BLAS of this machine is known to add like that: of Intel's and AMD's processors, that is."""
    a = np.sin(np.arange(26 * 40.0)).astype(dtype).reshape(26, 40)
    b = np.cos(np.arange(40 * 33.0)).astype(dtype).reshape(40, 33)
    return bool((_in_blas(a, b) == _one_by_one(a, b)).all())


def _one_by_one(a: Array, b: Array) -> Array:
    """Return a product whose every term is added with one rounding."""
    return products_in_order(a.T[:, :, None], b[:, None])  # type: ignore[no-any-return]
