"""The arithmetic of vᵀJ: for each element of a leaf the sum of v_i·J_ij that makes its gradient."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.explain.backward.record import BackwardResult
from gradcli.explain.results import Array
from gradcli.explain.sections import Listed, Math, Product, Sum, Value
from gradcli.graph.jacobian import numbered
from gradcli.graph.node import Node

if TYPE_CHECKING:
    from gradcli.algebra.symbolic_jacobian import SymbolicJacobian

ELEMENTS = 6  # of a leaf whose arithmetic is written out, a line each: more push the result off the screen
_TERMS = 16  # in all of these sums together: more are longer than two lines


def products(result: BackwardResult, jacobian: Array | None, weights: Array, name: str) -> Iterator[Math]:
    """Yield vᵀJ for one leaf as a sum of products: in formulas without a point or for scalars, then in numbers."""
    symbolic, leaf = result.symbolic, result.leaves[name]
    if symbolic is None or leaf.size > ELEMENTS:
        return
    columns = numbered(result.leaves)[name]
    if jacobian is None or (len(symbolic.rows) == 1 and not leaf.shape):
        entries = [[symbolic.entries.get((i, j), 0.0) for i in range(len(weights))] for j in columns]
        yield from _written(leaf, [_terms(weights, column) for column in entries])
    if jacobian is not None:
        products = [_rows(symbolic, weights, j) for j in columns]
        yield from _written(
            leaf, [_terms(weights[i], jacobian[i, j].tolist()) for i, j in zip(products, columns, strict=True)]
        )


def _rows(symbolic: SymbolicJacobian, weights: Array, j: int) -> list[int]:
    """Return the rows i of J whose v_i is finite, or whose entry in column j is not structurally 0."""
    finite = np.isfinite(weights)
    return [i for i, is_finite in enumerate(finite) if is_finite or (i, j) in symbolic.entries]


def _terms(weights: Array, column: Sequence[Any]) -> list[Math]:
    """Return the terms v_i·J_ij of a column of J without those that are 0, but one; 0·inf is nan and stays."""
    pairs = list(zip(weights.tolist(), column, strict=True))
    shown = pairs if len(pairs) == 1 else [(weight, entry) for weight, entry in pairs if weight * entry != 0]
    return [Product((Value.of(weight), Value.of(entry))) for weight, entry in shown]


def _written(leaf: Node, elements: Sequence[list[Math]]) -> Iterator[Math]:
    """Yield the sums in the shape of the leaf, unless they have no term, or more than `_TERMS` together."""
    if sum(map(len, elements)) <= _TERMS and any(elements):
        yield _nested([Sum(tuple(terms)) if terms else "0" for terms in elements], leaf.shape)


def _nested(elements: Sequence[Math], shape: tuple[int, ...]) -> Math:
    if not shape:
        return elements[0]
    size = len(elements) // shape[0]
    return Listed(tuple(_nested(elements[k * size : (k + 1) * size], shape[1:]) for k in range(shape[0])))
