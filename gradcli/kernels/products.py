"""Products of matrices in PyTorch's order of addition, to the last digit.

Source: the numbers of PyTorch's products on a processor with AVX2 (its MKL), probed with large terms that cancel: which
terms are added before which depends on the sizes, on whether a factor is transposed, and on where a row begins in
memory, sixteen bytes being a vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from gradcli.kernels import intel
from gradcli.kernels.chains import adds_in_order, chain
from gradcli.kernels.processor import IS_INTEL, Threads
from gradcli.kernels.rounding import Array, fused
from gradcli.kernels.sums import folded, in_lanes, in_order

_ROWS, _COLUMNS = 4, 12  # from which on each product is added with one rounding
_BLOCK = 192  # terms of float32 that are added one after the other, where each is added with one rounding
_MOST = 1 << 20  # products that are worth an order
_SMALL = 400  # products of a stack's matrices that are added term by term


def product(a: Array, b: Array) -> Array:
    """Return the product of two arrays of float32 or float64: of matrices, vectors, or stacks of matrices.

    The terms are added to 0, so that there is no -0; where a matrix has one term an element, nothing is added.
    """
    found = _product(a, b)
    is_outer = a.ndim == b.ndim == 2 and a.shape[1] == 1 and min(len(a), b.shape[1]) > 1
    return found if is_outer else np.add(found, 0, out=found)


def _product(a: Array, b: Array) -> Array:
    if a.ndim == b.ndim == 1:
        return np.asarray(intel.dot(a, b) if IS_INTEL else _dot(a * b))
    if a.size * b.size and a.ndim == b.ndim == 3:
        return _of_stacks(a, b)
    if a.size * b.size and a.ndim > 2 >= b.ndim and a.flags.c_contiguous:  # the rows of all matrices are those of one
        return _product(a.reshape(-1, a.shape[-1]), b).reshape(*a.shape[:-1], *b.shape[1:])
    if a.ndim > 2 or b.ndim > 2 or not a.size * b.size:
        return np.asarray(np.matmul(a, b))
    if b.ndim == 1:
        return _of_matrices(a, b[:, None])[:, 0]
    return _of_matrices(a[None], b)[0] if a.ndim == 1 else _of_matrices(a, b)


def _of_stacks(a: Array, b: Array) -> Array:
    """Return the products of two stacks of matrices: each for itself, and small ones term by term."""
    if a[0].size * b.shape[2] < _SMALL:
        return in_order(np.moveaxis(a, 2, 0)[..., None] * b.swapaxes(0, 1)[:, :, None])
    own = (np.broadcast_to(m, (max(len(a), len(b)), *m.shape[1:])) for m in (a, b))
    return np.stack([_of_matrices(x, y) for x, y in zip(*own, strict=True)])


def sum_with_product(c: Array, a: Array, b: Array) -> Array:
    """Return c plus the product of two matrices: PyTorch has MKL add the terms to what is there."""
    rows, columns = len(a), b.shape[1]
    if IS_INTEL and a.size and b.size:
        return _of_intel(a, b, c)
    if not is_fused(a, b):
        return _product(a, b) + c
    if a.dtype == np.float32 and not _has_edges(a, b):
        return _fused(a, b, c)
    first = np.broadcast_to(c, (rows, columns)).astype(a.dtype)
    whole = rows - rows % _ROWS
    if a.dtype == np.float32:
        return np.concatenate([_fused(a[:whole], b, first[:whole]), _rows_behind(whole, a, b) + first[whole:]])
    found, columns = _product(a, b) + first, columns - columns % _COLUMNS
    if (first[1:] == first[:1]).all():  # a bias: the term in front of the others
        terms = np.concatenate([first[:1], b])[:, :columns]
        found[:whole, :columns] = chain(np.insert(a[:whole], 0, 1, axis=1), terms)
    return found  # type: ignore[no-any-return]


def turned(a: Array) -> bool:
    """Tell whether a matrix lies in memory column by column."""
    *stack, rows, columns = a.shape
    return not stack and rows > 1 and columns > 1 and a.strides[0] == a.itemsize and a.strides[1] >= rows * a.itemsize


def _of_matrices(a: Array, b: Array) -> Array:
    (rows, inner), columns = a.shape, b.shape[1]
    if inner == 1:
        return a * b
    if IS_INTEL:
        return _of_intel(a, b, None)
    if is_fused(a, b):
        return _fused_but_edges(a, b) if _has_edges(a, b) else _fused(a, b)
    return np.asarray(np.matmul(a, b)) if rows * inner * columns > _MOST else _rounded_first(a, b)


def is_fused(a: Array, b: Array) -> bool:
    """Tell whether each term of a product is added with one rounding, and this can be done."""
    (rows, inner), columns = a.shape, b.shape[1]
    is_wide = rows >= _ROWS and columns >= _COLUMNS and inner > 1
    return is_wide and (rows * inner * columns <= _MOST or adds_in_order(a.dtype))


def _has_edges(a: Array, b: Array) -> bool:
    """Tell whether rows behind whole fours are for themselves: of float64, and where several threads have few rows."""
    (rows, inner), columns = a.shape, b.shape[1]
    is_shared = Threads.count > 1 and rows <= _COLUMNS and (inner > 16 or (inner > 4 and columns > 16))
    return a.dtype == np.float64 or is_shared


# On processors of Intel's


def _of_intel(a: Array, b: Array, c: Array | None) -> Array:
    """Return a product as MKL makes it on Intel's processors, added to c."""
    (rows, inner), columns = a.shape, b.shape[1]
    if min(rows, columns) == 1:
        return _with_vector(a, b, c)
    if inner == 1:
        return fused(a, b, 0 if c is None else c)
    if turned(b) and not turned(a) and (is_long := _goes_in_lanes(rows, inner, columns, a.itemsize)) is not None:
        return _and(c, intel.in_lanes(a, b, is_long))
    if rows * inner * columns > _MOST and not adds_in_order(a.dtype):
        return _and(c, np.matmul(a, b))
    first, *rest = _blocks(inner)
    found = _and(c, chain(a[:, first], b[first]))
    for block in rest:
        found = found + chain(a[:, block], b[block])
    return found


def _and(c: Array | None, found: Array) -> Array:
    return found if c is None else found + c


def _with_vector(a: Array, b: Array, c: Array | None) -> Array:
    """Return the product of a matrix and a vector, which is a row or a column, added to c."""
    rows, columns = len(a), b.shape[1]
    is_row = rows == 1 < columns
    matrix, vector = (b.T, a[0]) if is_row else (a, b[:, 0])
    in_rows = turned(b) if is_row else not turned(a)
    if rows == columns:
        in_rows = a.itemsize not in (a.strides[0], b.strides[1])
    own = None if c is None else c.reshape(-1)
    found = _and(own, intel.rows(matrix, vector)) if in_rows else intel.columns(matrix.T, vector, own)
    return found.reshape(rows, columns)


@cache
def _goes_in_lanes(rows: int, inner: int, columns: int, size: int) -> bool | None:
    """Tell whether a product of matrices whose second lies turned goes in lanes, and whether in those of long rows."""
    is_long = size == 4 and rows < 16 and inner >= 24 * rows
    few = {2: 16, 3: 11}.get(columns, columns if inner <= columns < 12 else 0) if size == 4 else 4
    return is_long if is_long or rows < few else None


@cache
def _blocks(inner: int) -> Sequence[slice]:
    """Return the blocks of terms that are summed each for itself."""
    ends = [0]
    while (left := inner - ends[-1]) > 0:
        most = 2 * _BLOCK
        ends.append(ends[-1] + (left if left <= most else -(-left // 2) if left <= 2 * most else most))
    return [slice(i, j) for i, j in pairwise(ends)]


# Terms that are added without being rounded before


def _fused(a: Array, b: Array, found: Any = 0) -> Array:
    """Return a product of float32 and what it is added to, in blocks of terms."""
    count = a.shape[1]
    block = _BLOCK if count > 2 * _BLOCK or count <= _BLOCK else count // 2
    for k in range(0, count, block):
        found = found + chain(a[:, k : k + block], b[k : k + block])
    return found  # type: ignore[no-any-return]


def _fused_but_edges(a: Array, b: Array) -> Array:
    """Return a product where one rounding is for whole fours of rows, and of float64 for twelves of columns."""
    is_double, rows, columns = a.dtype == np.float64, len(a) - len(a) % _ROWS, b.shape[1]
    columns -= columns % _COLUMNS if is_double else 0
    found = np.empty((len(a), b.shape[1]), a.dtype)
    found[:rows, :columns] = (chain if is_double else _fused)(a[:rows], b[:, :columns])
    found[rows:, :columns] = _rows_behind(rows, a, b[:, :columns])
    if columns < b.shape[1]:
        found[:, columns:] = _rounded_first(a, b[:, columns:])
    return found


# Terms that are rounded before they are added


def _rounded_first(a: Array, b: Array) -> Array:
    """Return a product whose terms are rounded before they are added."""
    rows, columns = len(a), b.shape[1]
    if columns == 1 < rows and not turned(a):
        return _row_by_row(np.multiply(a.T, b, order="C"))[:, None]
    if rows == 1 < columns and turned(b):
        return _row_by_row(np.multiply(b, a.T, order="C"))[None]
    if rows == columns == 1:
        return (in_order if a.itemsize in (a.strides[0], b.strides[1]) else _tail)(a.T[:, :, None] * b[:, None, :])
    return _rows_behind(0, a, b)


def _rows_behind(first: int, a: Array, b: Array) -> Array:
    """Return the rows of a product from one on, whose terms are rounded before they are added."""
    if b.shape[1] < min(len(a), _vector(a)) and not turned(b):  # NumPy is quick along long rows
        return np.ascontiguousarray(in_order(np.multiply(b[:, :, None], a[first:].T[:, None, :], order="C")).T)
    terms = np.multiply(a[first:].T[:, :, None], b[:, None, :], order="C")
    return _dots(terms) if turned(b) and not turned(a) and len(a) > 1 else _columns(terms)


def _vector(terms: Array) -> int:
    """Return how many numbers sixteen bytes have."""
    return 16 // terms.itemsize


def _columns(terms: Array) -> Array:
    """Return sums of which a vector of columns is made at a time; those in front of a vector go by fours."""
    count, rows, columns = terms.shape
    vector = _vector(terms)
    found = in_order(terms)
    if columns >= vector and count >= 8:
        for start in range(min(vector, rows)):
            front = -start * columns % vector
            if front and columns - front >= vector:
                found[start::vector, :front] = _by_fours(terms[:, start::vector, :front])
    return found


def _by_fours(terms: Array) -> Array:
    """Return sums of eight terms at a time: four one after the other, and then the sum of the next four."""
    found = np.zeros_like(terms[0])
    whole = len(terms) - len(terms) % 8
    for k in range(0, whole, 8):
        found = in_order([found, *terms[k : k + 4]]) + in_order(terms[k + 4 : k + 8])
    return in_order([found, *terms[whole:]])


def _dots(terms: Array) -> Array:
    """Return sums along rows of both factors: four columns at a time in a vector, the others in vectors of eight."""
    count, rows, columns = terms.shape
    found, vector = np.empty((rows, columns), terms.dtype), _vector(terms)
    whole = columns - columns % 4
    for front in range(vector):
        own = [row for row in range(rows) if -row * count % vector == front]
        if own:
            found[own, :whole] = _lanes(terms[:, own, :whole], min(front, count), vector)
            found[own, whole:] = _lanes(terms[:, own, whole:], min(front, count), 8)
    return found


def _lanes(terms: Array, front: int, width: int, step: int = 1) -> Array:
    """Return sums in lanes: terms in front go into the first lane, those behind whole vectors to the sum of lanes.

    The terms are written over.  Of lanes that are several vectors, those of vectors beside one another are added first.
    """
    whole = front + (len(terms) - front) // max(width, step) * max(width, step)
    if whole == front or not terms[0].size:
        return in_order(np.ascontiguousarray(terms))
    if front:
        terms[front] += in_order(terms[:front])
    vectors = in_lanes(terms[front:whole], width)[0].reshape(-1, min(width, _vector(terms)), *terms.shape[1:])
    while len(vectors) > 1:
        vectors = vectors[::2] + vectors[1::2]
    found = folded(vectors[0]) + 0  # lanes begin with 0: there is no -0
    return in_order([found, *terms[whole:]]) if whole < len(terms) else found


def _row_by_row(terms: Array) -> Array:
    """Return the sums of a matrix times a vector: four rows at a time, then of two each in its way, then of one."""
    (count, rows), vector = terms.shape, _vector(terms)
    whole = rows - rows % 4
    found = [_lanes(terms[:, :whole], (count - 1) % vector + 1, vector)]
    widths = (2 * vector, vector, 8) if rows - whole > 1 else (8,)
    for row, width in zip(range(whole, rows), widths, strict=False):
        found.append(_tail(terms[:, row : row + 1], width))
    return np.concatenate(found)


def _tail(terms: Array, width: int = 8) -> Array:
    return _lanes(terms, min(_vector(terms), len(terms)), width, 8)


def _dot(terms: Array) -> Any:
    """Return the sum of the products of two vectors: four vectors at a time, then two, then one, then the rest."""
    vector = _vector(terms)
    sums, rest = in_lanes(np.concatenate([np.zeros(4 * vector, terms.dtype), terms]), 4 * vector)
    for width in (2 * vector, vector):
        if len(rest) >= width:
            sums[:width] += rest[:width]
            rest = rest[width:]
    sums[0] = in_order([sums[0], *rest])
    return folded(in_order(sums.reshape(4, vector)))
