"""How MKL adds the products of vectors on Intel's processors with AVX-512; `products` tells what takes this order.

Source: the numbers of PyTorch's products on such a processor, probed with large terms that cancel, as for `products`.
Terms but the first are added with one rounding, and a vector has 64 bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.kernels.chains import chain
from gradcli.kernels.rounding import Array, fused
from gradcli.kernels.sums import folded, in_order


def _vectors(a: Array) -> list[slice]:
    """Return where the vectors of terms are, of which the last one may not be full."""
    width = 64 // a.itemsize
    return [slice(k, k + width) for k in range(0, len(a), width)]


def _added(lanes: Array, a: Array, x: Array, vectors: list[slice]) -> Array:
    for v in vectors:
        some = lanes[: len(a[v])]
        if a.itemsize == 4:  # by way of float64, which has room for the product
            np.add(np.multiply(a[v], x[v], dtype=np.float64), some, out=some, casting="same_kind")
        else:
            some[...] = fused(a[v], x[v], some)
    return lanes


def _lanes(a: Array, x: Array, first: Any = 0, beside: int = 1) -> Array:
    """Return the sums of lanes, the first of which begins with what there is; pairs of vectors may go beside."""
    zeros = np.zeros((64 // a.itemsize, *np.broadcast(a[0], x[0]).shape), a.dtype)
    zeros[0] = first
    vectors = _vectors(a)
    if beside == 1:
        return _added(zeros, a, x, vectors)
    pairs = len(a) // len(zeros) // 2 * 2
    halves = [_added(zeros.copy(), a, x, vectors[i:pairs:2]) for i in (0, 1)]
    return _added(halves[0] + halves[1], a, x, vectors[pairs:])


def _in_pairs(lanes: Array) -> Any:
    """Return the sum of lanes, of which those beside one another are added first."""
    while len(lanes) > 1:
        lanes = lanes[::2] + lanes[1::2]
    return lanes[0]


def rows(a: Array, x: Array) -> Array:
    """Return the products of rows and a vector: of four rows at a time, and of each behind them."""
    a, x = np.ascontiguousarray(a.T), x[:, None]
    if a.itemsize == 8:
        lanes = _lanes(a, x, beside=2)
        return folded(lanes[:4]) + folded(lanes[4:])
    (count, all_rows), width = a.shape, 64 // a.itemsize
    fours, whole = all_rows - all_rows % 4, 1 + (count - 1) // width * width
    found = a[0] * x[0]
    for some in (slice(1, whole), slice(whole, count)):
        if fours and len(a[some]):
            found[:fours] = folded(_lanes(a[some, :fours], x[some], found[:fours]))
    for i in range(fours, all_rows if count > 1 else fours):
        found[i] += folded(_lanes(a[1:, i : i + 1], x[1:], beside=2 - (i - fours) % 2))[0]
    return found  # type: ignore[no-any-return]


def columns(a: Array, x: Array, first: Array | None) -> Array:
    """Return the products of a vector and columns, added to the first numbers: eight terms at a time of sixteens."""
    width = a.shape[1]
    first = first if first is None else np.full(width, first, a.dtype)
    whole = 0 if a.itemsize == 8 else width - width % 16
    parts = [_from(first, slice(whole, width), x, a[:, whole:])] if whole < width else []
    if whole:
        parts.insert(0, _from(first, slice(0, whole), *_of_eights(x, a[:, :whole])))
    return np.concatenate(parts) if len(parts) > 1 else parts[0]


def _from(first: Array | None, places: slice, x: Array, a: Array) -> Array:
    """Return the first numbers with the products of a vector and columns, each added with one rounding."""
    if first is not None:
        x, a = np.append(x.dtype.type(1), x), np.concatenate([first[None, places], a])
    return chain(x[None], a)[0]  # type: ignore[no-any-return]


def _of_eights(x: Array, a: Array) -> tuple[Array, Array]:
    """Return the factors and terms of a chain that stands for others: of each eight terms, some are added before."""
    whole = len(x) - len(x) % 8
    own, factors = a[:whole].reshape(-1, 8, a.shape[1]), x[:whole].reshape(-1, 8)
    exact = np.multiply(own, factors[..., None], dtype=np.float64).reshape(-1, 2, 2, 2, a.shape[1])
    pairs = (exact[:, :, 0] + exact[:, :, 1].astype(a.dtype)).astype(a.dtype)  # the first and the third of a half, …
    times, terms = np.empty((len(own), 4), a.dtype), np.empty((len(own), 4, a.shape[1]), a.dtype)
    times[:, :2], times[:, 2:], terms[:, :2] = factors[:, 6:3:-2], 1, own[:, 6:3:-2]
    terms[:, 2], terms[:, 3] = pairs[:, 1, 1], pairs[:, 0, 0] + pairs[:, 0, 1]
    return np.concatenate([times.reshape(-1), x[whole:]]), np.concatenate([terms.reshape(-1, a.shape[1]), a[whole:]])


def in_lanes(a: Array, b: Array, is_long: bool) -> Array:
    """Return the product of small matrices, of which the second lies column by column, or of few long rows."""
    terms, b = a.T[:, :, None], b[:, None]
    if is_long:
        lanes = _lanes(terms, b)
        return _in_pairs(in_order(lanes.reshape(-1, 4, *lanes.shape[1:])))  # type: ignore[no-any-return]
    found = np.empty((len(a), b.shape[2]), a.dtype)
    for i in (0, 1):  # vectors go beside one another in every other row
        found[i::2] = folded(_lanes(terms[:, i::2], b, beside=2 - i))
    return found


def dot(a: Array, x: Array) -> Any:
    """Return the product of two vectors: four vectors of terms beside one another, then two, then one."""
    vectors, full = _vectors(a), len(a) * a.itemsize // 64
    fours = full - full % 4
    own: list[list[slice]] = [[], [], [], []]
    for i, v in enumerate(vectors):
        own[0 if i == full else i % 4 if i < fours else (i - fours) % 2].append(v)
    sums = [_added(np.zeros(64 // a.itemsize, a.dtype), a, x, vs) for vs in own]
    lanes = _in_pairs(np.stack(sums))
    if a.itemsize == 8:
        return folded(lanes)
    lanes = lanes[:8] + lanes[8:]
    return _in_pairs(lanes[:4] + lanes[4:])
