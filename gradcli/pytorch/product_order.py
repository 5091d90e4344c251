"""Products of float32 matrices in PyTorch's order of addition, to the last digit.

Source: the numbers of PyTorch's products on a processor with AVX2 (its MKL), probed with large terms that cancel: which
terms are added before which depends on the sizes, on whether a factor is transposed, and on where a row begins in
memory, sixteen bytes being a vector of four.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_VECTOR = 4
_WIDE = (4, 12)  # rows and columns from which on each product is added with one rounding
_MOST = 1 << 16  # products that are worth an order


def product(a: Array, b: Array) -> Array:
    """Return the product of two arrays of float32, matrices or vectors, as NumPy's `matmul`."""
    if a.ndim == b.ndim == 1:
        return np.asarray(_dot(a * b))
    if a.ndim > 2 or b.ndim > 2 or a.size * b.size // max(a.shape[-1], 1) > _MOST or not a.size * b.size:
        return np.asarray(np.matmul(a, b))
    if b.ndim == 1:
        return _of_matrices(a, b[:, None])[:, 0]
    return _of_matrices(a[None], b)[0] if a.ndim == 1 else _of_matrices(a, b)


def turned(a: Array) -> bool:
    """Tell whether a matrix lies in memory column by column."""
    rows, columns = a.shape
    return rows > 1 and columns > 1 and a.strides[0] == a.itemsize and a.strides[1] >= rows * a.itemsize


def _of_matrices(a: Array, b: Array) -> Array:
    (rows, inner), columns = a.shape, b.shape[1]
    if inner == 1:
        return a * b  # type: ignore[no-any-return]
    if columns == 1 < rows and not turned(a):
        return _row_by_row(np.multiply(a.T, b, order="C"))[:, None]
    if rows == 1 < columns and turned(b):
        return _row_by_row(np.multiply(b, a.T, order="C"))[None]
    if rows >= _WIDE[0] and columns >= _WIDE[1]:
        return _rounded_once(a, b)
    # In this order in memory NumPy, too, adds the terms one after the other.
    terms = np.multiply(a.T[:, :, None], b[:, None, :], order="C")
    if rows == columns == 1:
        return _tail(terms)
    return _dots(terms) if turned(b) and not turned(a) and rows > 1 else _columns(terms)


def _rounded_once(a: Array, b: Array) -> Array:
    """Return a product whose every term is added without being rounded before."""
    left, right = a.astype(np.float64), b.astype(np.float64)
    found = (left[:, :1] * right[:1]).astype(np.float32)
    for k in range(1, a.shape[1]):
        found = (left[:, k : k + 1] * right[k : k + 1] + found).astype(np.float32)
    return found


def _in_order(terms: Array) -> Array:
    """Return the sum of terms, added one after the other."""
    if terms[0].size > 1:
        return np.add.reduce(terms, axis=0)  # type: ignore[no-any-return]
    return np.add.accumulate(terms, axis=0)[-1]  # type: ignore[no-any-return]


def _columns(terms: Array) -> Array:
    """Return sums of which a vector of columns is made at a time; those in front of a vector go by fours."""
    count, rows, columns = terms.shape
    found = _in_order(terms)
    if columns >= _VECTOR and count >= 2 * _VECTOR:
        for row in range(rows):
            front = -row * columns % _VECTOR
            if front and columns - front >= _VECTOR:
                found[row, :front] = _by_fours(terms[:, row, :front])
    return found


def _by_fours(terms: Array) -> Array:
    """Return sums of eight terms at a time: four one after the other, and then the sum of the next four."""
    found = np.zeros_like(terms[0])
    whole = len(terms) - len(terms) % (2 * _VECTOR)
    for k in range(0, whole, 2 * _VECTOR):
        found = _in_order(np.concatenate([found[None], terms[k : k + _VECTOR]]))
        found = found + _in_order(terms[k + _VECTOR : k + 2 * _VECTOR])
    return _in_order(np.concatenate([found[None], terms[whole:]]))


def _dots(terms: Array) -> Array:
    """Return sums along rows of both factors: four columns at a time in vectors of four, the others in two of them."""
    count, rows, columns = terms.shape
    found = np.empty((rows, columns), terms.dtype)
    whole = columns - columns % _VECTOR
    for front in range(_VECTOR):
        own = [row for row in range(rows) if -row * count % _VECTOR == front]
        if own:
            found[own, :whole] = _lanes(terms[:, own, :whole], min(front, count), _VECTOR)
            found[own, whole:] = _lanes(terms[:, own, whole:], min(front, count), 2 * _VECTOR)
    return found


def _lanes(terms: Array, front: int, width: int) -> Array:
    """Return sums in lanes: terms in front go into the first lane, those behind whole vectors to the sum of lanes."""
    whole = front + (len(terms) - front) // width * width
    if whole == front or not terms[0].size:
        return _in_order(np.ascontiguousarray(terms))
    lanes = terms[front:whole].reshape(-1, width, *terms.shape[1:])
    if front:
        lanes = lanes.copy()
        lanes[0, 0] += _in_order(terms[:front])
    found = folded(_in_order(lanes))
    return found if whole == len(terms) else _in_order(np.concatenate([found[None], terms[whole:]]))


def folded(lanes: Array) -> Array:
    """Return the sum of lanes: one half and the other, until one is left."""
    while len(lanes) > 1:
        lanes = lanes[: len(lanes) // 2] + lanes[len(lanes) // 2 :]
    return lanes[0]  # type: ignore[no-any-return]


def _row_by_row(terms: Array) -> Array:
    """Return the sums of a matrix times a vector: four rows at a time, then row by row."""
    count, rows = terms.shape
    whole = rows - rows % _VECTOR
    found = np.empty(rows, terms.dtype)
    found[:whole] = _lanes(terms[:, :whole], (count - 1) % _VECTOR + 1, _VECTOR)
    found[whole:] = _tail(terms[:, whole:])
    return found


def _tail(terms: Array) -> Array:
    return _lanes(terms, min(_VECTOR, len(terms)), 2 * _VECTOR)


def _dot(terms: Array) -> Any:
    """Return the sum of the products of two vectors: four vectors at a time, then two, then one, then the rest."""
    whole = len(terms) - len(terms) % (_VECTOR * _VECTOR)
    sums = np.zeros((1, _VECTOR, _VECTOR), terms.dtype)
    sums = np.add.reduce(np.concatenate([sums, terms[:whole].reshape(-1, _VECTOR, _VECTOR)]), axis=0)
    for width in (2, 1):
        if len(terms) - whole >= width * _VECTOR:
            sums[:width] += terms[whole : whole + width * _VECTOR].reshape(width, _VECTOR)
            whole += width * _VECTOR
    for term in terms[whole:]:
        sums[0, 0] += term
    return folded(np.add.reduce(sums, axis=0))
