"""Functions of whole arrays, in formulas: those that SymPy has no algebra for stay as they were typed.

An element of their result is `sort([a, b, c])[1]`, or `inv([[a, b], [c, d]])[0, 1]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import sympy

from gradcli.algebra.functions import TableFunction, apply
from gradcli.graph.node import Node
from gradcli.graph.shapes import Shape

Exprs = np.ndarray[Any, Any]  # of SymPy expressions


class ArrayElement(TableFunction):
    """An element of what an operation makes of an array: its arguments are the array's elements, and then its place.

    `shape` is the array's, `place` how many of the arguments are the place, and `settings` what is typed behind them.
    """

    shape: Shape
    place: int
    settings: str

    @classmethod
    def eval(cls, *args: Any) -> Any:
        """Work out nothing: numbers are the engine's business."""
        return None

    def parts(self) -> tuple[Any, tuple[Any, ...]]:
        """Return the array's elements in lists, and the place."""
        end = len(self.args) - self.place
        elements = np.empty(self.shape, dtype=object)
        elements.reshape(-1)[:] = self.args[:end]
        return elements.tolist(), self.args[end:]


def _along(node: Node, x: Exprs) -> Exprs:
    """Return the formulas of a function of the elements along the axes that are its first setting."""
    first = node.settings[0]
    return _functions(node, x, first if isinstance(first, tuple) else (first,))


def _of_matrices(node: Node, x: Exprs) -> Exprs:
    return _functions(node, x, (len(x.shape) - 2, len(x.shape) - 1))


def _functions(node: Node, x: Exprs, axes: Sequence[int]) -> Exprs:
    """Return the formulas of an operation that takes the elements along some axes together."""
    rank = len(x.shape)
    others = [i for i in range(rank) if i not in axes]
    result = np.empty(node.shape, dtype=object)
    for outer in product(*(range(x.shape[i]) for i in others)):
        together = x[_key(rank, others, outer)]
        if node.shape == x.shape:
            for place in np.ndindex(*together.shape):
                result[_key(rank, [*others, *axes], [*outer, *place])] = _element(node, together, place)
        else:
            result[outer] = _element(node, together if node.op == "det" else together.reshape(-1), ())
    return result


def _take_along(node: Node, x: Exprs, order: Exprs) -> Exprs:
    return _sums(node, lambda i, k, places, line: (places[i], k, line[k]), x, order)


def _put_along(node: Node, x: Exprs, order: Exprs) -> Exprs:
    return _sums(node, lambda i, k, places, line: (places[k], i, line[k]), x, order)


def _sums(node: Node, term: Callable[..., tuple[Any, int, Any]], x: Exprs, order: Exprs) -> Exprs:
    """Return for each element the sum of what it may be: each term counts if its place has that number."""
    (axis,) = node.settings
    lines, places = np.moveaxis(x, axis, -1), np.moveaxis(order, axis, -1)
    result = np.empty(lines.shape, dtype=object)
    for *outer, i in np.ndindex(*lines.shape):
        along = places[tuple(outer)], lines[tuple(outer)]
        terms = (term(i, k, *along) for k in range(lines.shape[-1]))
        chosen = [apply("where", apply("eq", place, sympy.Integer(j)), e, sympy.S.Zero) for place, j, e in terms]
        result[(*outer, i)] = sympy.Add(*chosen)
    return np.moveaxis(result, -1, axis)


def _key(rank: int, axes: Sequence[int], places: Sequence[int]) -> tuple[Any, ...]:
    """Return the index that is a place along some axes, and all along the others."""
    known = dict(zip(axes, places, strict=True))
    return tuple(known.get(i, slice(None)) for i in range(rank))


def _element(node: Node, x: Exprs, place: tuple[int, ...]) -> Any:
    if node.op == "argmedian_mask":
        middle = _function("argsort", x.shape, 1, "")(*x, (len(x) - 1) // 2)
        return apply("eq", middle, sympy.Integer(place[0]))
    settings = ", descending=True" if node.op in ("sort", "argsort") and node.settings[1] else ""
    return _function(node.op, x.shape, len(place), settings)(*x.reshape(-1), *place)


@cache
def _function(op: str, shape: Shape, place: int, settings: str) -> Any:
    return type(op, (ArrayElement,), {"op": op, "shape": shape, "place": place, "settings": settings})


def nested(elements: Any, write: Any) -> Iterator[str]:
    """Yield the text of lists in lists, piece by piece; `write` writes an element."""
    if not isinstance(elements, list):
        yield write(elements)
        return
    yield "["
    for i, inner in enumerate(elements):
        yield ", " * (i > 0)
        yield from nested(inner, write)
    yield "]"


ARRAYS: dict[str, Callable[..., Exprs]] = {
    **dict.fromkeys(("sort", "argsort", "argmax", "argmin", "median", "argmedian_mask"), _along),
    **dict.fromkeys(("det", "inv"), _of_matrices),
    "take_along": _take_along,
    "put_along": _put_along,
}
