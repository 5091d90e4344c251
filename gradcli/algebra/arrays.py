"""SymPy as a target: the rule of each operation, for arrays of expressions.

Where SymPy has no algebra for an operation of a whole array, its elements stay unevaluated: `sort([a, b, c])[1]`, or
`inv([[a, b], [c, d]])[0, 1]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import sympy

from gradcli.algebra.functions import TableFunction, apply, extremum
from gradcli.engine.numpy_target import forward
from gradcli.graph.array import objects
from gradcli.graph.construct import swap
from gradcli.graph.matrices import SMALL, inv
from gradcli.graph.names import array_name
from gradcli.graph.node import Node, operand
from gradcli.graph.operations import JOINS, OPERATIONS
from gradcli.graph.shapes import Shape

Exprs = np.ndarray[Any, Any]  # of SymPy expressions
_MATRIX = 2  # axes
_OF_VECTORS: dict[str, Any] = {"axis": 0, "axes": (0,), "ties": "even"}  # settings where one axis is left


class ArrayElement(TableFunction):
    """An element of an operation on an array: its arguments are the array's elements, then the element's index.

    `shape` is the array's, `index_size` how many of the arguments are the index, and `settings` are the operation's.
    """

    shape: Shape
    index_size: int
    settings: tuple[Any, ...]

    @classmethod
    def eval(cls, *args: Any) -> Any:
        """Return None, so that the function stays as it is: the engine computes numbers."""
        return None

    def _eval_evalf(self, prec: int) -> Any:
        return None  # mpmath's `det` takes a matrix, not its elements

    def parts(self) -> tuple[Exprs, tuple[Any, ...]]:
        """Return the array's elements, and the element's index."""
        end = len(self.args) - self.index_size
        return objects(self.args[:end], self.shape), self.args[end:]


def _along(node: Node, x: Exprs) -> Exprs:
    """Return the formulas of a function of the elements along the axes that are its first setting."""
    first = node.settings[0]
    return _functions(node, x, first if isinstance(first, tuple) else (first,))


def _of_matrices(node: Node, x: Exprs) -> Exprs:
    return _functions(node, x, (len(x.shape) - 2, len(x.shape) - 1))


def _determinant(node: Node, x: Exprs) -> Exprs:
    """Return the formulas of a determinant: of small blocks along the diagonal, the product of theirs."""
    if (blocks := _blocks(x)) is None:
        return _of_matrices(node, x)
    return objects([sympy.Mul(*(_laplace(x[np.ix_(b, b)]) for b in blocks))], ())


def _inverse(node: Node, x: Exprs) -> Exprs:
    """Return the formulas of an inverse: of small blocks along the diagonal, theirs.

    That of a transpose is the transpose of the inverse.
    """
    (matrix,) = node.args
    if (blocks := _blocks(x)) is not None:
        result = np.full(x.shape, sympy.S.Zero, dtype=object)
        for b in blocks:
            block = x[np.ix_(b, b)]
            whole = _laplace(block)
            for i, j in np.ndindex(*block.shape):
                cofactor = _laplace(np.delete(np.delete(block, j, 0), i, 1))
                result[b[i], b[j]] = apply("div", (-1) ** (i + j) * cofactor, whole)
        return result
    before = operand(matrix, "transpose")
    if before is None or swap(before).settings != matrix.settings:
        return _of_matrices(node, x)
    return np.swapaxes(_of_matrices(inv(before), np.swapaxes(x, -1, -2)), -1, -2)


def _blocks(x: Exprs) -> list[list[int]] | None:
    """Return the indices of the blocks of a block-diagonal matrix; None where one is large, and for other arrays."""
    if x.ndim != _MATRIX:
        return None
    is_zero = np.array([e is sympy.S.Zero for e in x.flat]).reshape(x.shape)
    pending, blocks = set(range(len(x))), []
    while pending:
        block = {min(pending)}
        while more := {int(j) for i in block for j in np.flatnonzero(~(is_zero[i] & is_zero[:, i]))} - block:
            block |= more
        if len(block) > SMALL:
            return None
        pending -= block
        blocks.append(sorted(block))
    return blocks


def _laplace(x: Exprs) -> Any:
    """Return the determinant of a small matrix, expanded along its first row."""
    if not len(x):
        return sympy.S.One
    minors = (_laplace(np.delete(x[1:], j, 1)) for j in range(len(x)))
    return sympy.Add(*((-1) ** j * e * minor for j, (e, minor) in enumerate(zip(x[0], minors, strict=True))))


def _of_spectra(node: Node, x: Exprs) -> Exprs:
    """Return the formulas of eigenvalues, singular values and vectors, whose shape is another than the matrix's."""
    stack = len(x.shape) - 2
    result = np.empty(node.shape, dtype=object)
    for index in np.ndindex(*node.shape):
        array = x[index[:stack]] if stack else _whole(node.args[0], x)
        result[index] = _element(node, array, index[stack:])
    return result


def _functions(node: Node, x: Exprs, axes: Sequence[int], element: Callable[..., Any] | None = None) -> Exprs:
    """Return the formulas of an operation that takes the elements along some axes together."""
    element = element or _element
    rank = len(x.shape)
    others = [i for i in range(rank) if i not in axes]
    result = np.empty(node.shape, dtype=object)
    indices = [*np.ndindex(*(x.shape[i] for i in axes))] if node.shape == x.shape else [()]
    for outer in product(*(range(x.shape[i]) for i in others)):
        array = x[_key(rank, others, outer)] if others else _whole(node.args[0], x)
        for index in indices:
            key = _key(rank, [*others, *axes], [*outer, *index]) if index else outer
            result[key] = element(node, array, index)
    return result


def _whole(node: Node, x: Exprs) -> Exprs:
    """Return a leaf's name instead of all its elements."""
    first = next(iter(x.flat))
    if not node.is_leaf or not first.is_Symbol:
        return x
    return objects([sympy.Symbol(array_name(first.name))], ())


def _taken_along(node: Node, x: Exprs, order: Exprs) -> Exprs:
    """Return for each element i the sum over k of x[k] where order[i] is k."""
    return _reordered(node, x, order, lambda indices, i, k: (indices[i], k))


def _put_along(node: Node, x: Exprs, order: Exprs) -> Exprs:
    """Return for each element i the sum over k of x[k] where order[k] is i."""
    return _reordered(node, x, order, lambda indices, i, k: (indices[k], i))


def _reordered(node: Node, x: Exprs, order: Exprs, equal: Callable[..., tuple[Any, int]]) -> Exprs:
    """Return for each element i the sum over k of x[k] where the two values of `equal(order, i, k)` are equal.

    Terms that are 0 are left out, and where all x[k] are equal the order does not matter.
    """
    (axis,) = node.settings
    lines, orders = np.moveaxis(x, axis, -1), np.moveaxis(order, axis, -1)
    result = np.empty(lines.shape, dtype=object)
    for *outer, i in np.ndindex(*lines.shape):
        line, indices = lines[tuple(outer)], orders[tuple(outer)]
        if all(e == line[0] for e in line):
            result[(*outer, i)] = line[0]
            continue
        ends = [equal(indices, i, k) for k in range(len(line))]
        terms = [(apply("eq", index, sympy.Integer(j)), e) for (index, j), e in zip(ends, line, strict=True) if e != 0]
        result[(*outer, i)] = sympy.Add(*(apply("where", condition, e, sympy.S.Zero) for condition, e in terms))
    return np.moveaxis(result, -1, axis)


def _key(rank: int, axes: Sequence[int], indices: Sequence[int]) -> tuple[Any, ...]:
    """Return the index that has these integers along some axes, and slices along the others."""
    known = dict(zip(axes, indices, strict=True))
    return tuple(known.get(i, slice(None)) for i in range(rank))


def _element(node: Node, x: Exprs, index: tuple[int, ...]) -> Any:
    named = zip(OPERATIONS[node.op].settings, node.settings, strict=True)
    settings = tuple(_OF_VECTORS.get(name, value) for name, value in named)
    return _function(node.op, x.shape, len(index), settings)(*x.flat, *index)


def _mask(op: str, middle: bool = False) -> Callable[..., Exprs]:
    """Return the rule of a mask: `op` returns the index of the extremum or, in the `middle`, that of the median."""

    def is_at(node: Node, x: Exprs, index: tuple[int, ...]) -> Any:
        count = node.shape[node.settings[0]]
        if count == 1:
            return sympy.S.One
        key = [(count - 1) // 2] if middle else []
        settings = (0, False) if middle else (0,)
        return apply("eq", _function(op, x.shape, len(key), settings)(*x.flat, *key), sympy.Integer(index[0]))

    return lambda node, x: _functions(node, x, node.settings, is_at)


@cache
def _function(op: str, shape: Shape, count: int, settings: tuple[Any, ...]) -> Any:
    return type(op, (ArrayElement,), {"op": op, "shape": shape, "index_size": count, "settings": settings})


def _by_element(node: Node, *args: Exprs) -> Exprs:
    """Return the formulas of an elementwise operation, whose arguments broadcast."""
    flat = [(a if a.shape == node.shape else np.broadcast_to(a, node.shape)).ravel() for a in args]
    return objects([apply(node.op, *elements) for elements in zip(*flat, strict=True)], node.shape)


def _reduced(combine: Callable[..., Any]) -> Callable[..., Exprs]:
    """Return the rule of a reduction; `combine` makes one expression of many."""

    def rule(node: Node, x: Exprs) -> Exprs:
        return objects([combine(*column) for column in _columns(node, x)], node.shape)

    return rule


def _scanned(op: str) -> Callable[..., Exprs]:
    """Return the rule of a scan by an elementwise operation."""
    join = np.frompyfunc(lambda a, b: apply(op, a, b), 2, 1)
    return lambda node, x: np.asarray(join.accumulate(x, axis=node.settings[0], dtype=object))


def _columns(node: Node, x: Exprs) -> Exprs:
    """Return for each element of a reduction the elements that are reduced to it."""
    axes = node.settings[0]
    return np.moveaxis(x, axes, range(len(axes))).reshape(x.size // (node.size or 1), node.size).T


def _matmul(node: Node, a: Exprs, b: Exprs) -> Exprs:
    """Return the formulas of a product of matrices or vectors, or of stacks of them."""
    return objects(list(_products(a, b)), node.shape) if max(a.ndim, b.ndim) <= _MATRIX else _by_numpy(node, a, b)


def _products(a: Exprs, b: Exprs) -> Iterator[sympy.Expr]:
    """Yield the elements of a product of matrices or vectors; most factors in a derivative are 0."""
    rows = a if a.ndim > 1 else a[None]
    columns = b.T if b.ndim > 1 else b[None]
    for row in rows:
        read = [k for k, e in enumerate(row) if e is not sympy.S.Zero]
        for column in columns:
            yield sympy.Add(*(row[k] * column[k] for k in read if column[k] is not sympy.S.Zero))


def _by_numpy(node: Node, *args: Exprs) -> Exprs:
    """Return NumPy's result for arrays of expressions: it moves, adds and multiplies them as it does numbers."""
    result = forward(node)(*(a[..., None] for a in args))[..., 0]
    return objects([sympy.sympify(e) for e in np.ravel(result)], node.shape)


RULES: dict[str, Callable[..., Exprs]] = {
    **{op: _by_element if row.broadcasts else _by_numpy for op, row in OPERATIONS.items()},
    **{op: _scanned(name) for op, name in JOINS["scan"].items()},
    "sum": _reduced(sympy.Add),
    "prod": _reduced(sympy.Mul),
    **{op: _reduced(extremum(op)) for op in ("max", "min")},
    "matmul": _matmul,
    **dict.fromkeys(("sort", "argsort", "argmax", "argmin", "median"), _along),
    "argmax_mask": _mask("argmax"),
    "argmin_mask": _mask("argmin"),
    "argmedian_mask": _mask("argsort", middle=True),
    "det": _determinant,
    "inv": _inverse,
    **dict.fromkeys(("eigvalsh", "eigvecsh", "svdvals", "svd_u", "svd_vh"), _of_spectra),
    "take_along": _taken_along,
    "put_along": _put_along,
}
