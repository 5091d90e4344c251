"""The arithmetic of vᵀJ: for each element of a leaf the sum of v_i·J_ij that makes its gradient."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.explain.results import Array, BackwardResult, Named
from gradcli.explain.sections import Listed, Math, Product, Sum, Value
from gradcli.explain.weights import flat
from gradcli.graph.node import Node

if TYPE_CHECKING:
    from gradcli.algebra.jacobian import SymbolicJacobian

ELEMENTS = 6  # of a leaf whose arithmetic is written out
_TERMS = 16  # the same, in all of its sums together


def products(result: BackwardResult, jacobian: Array | None, v: Named, name: str) -> Iterator[Math]:
    """Yield vᵀJ for one leaf, in formulas where they are all there is, or one product of scalars; then in numbers."""
    symbolic, leaf = result.symbolic, result.leaves[name]
    if symbolic is None or leaf.size > ELEMENTS:
        return
    columns = _columns(result, name)
    if jacobian is None or (len(symbolic.rows) == 1 and not leaf.shape):
        yield from _written(leaf, [_Formulas(symbolic, flat(v)).terms(j) for j in columns])
    if jacobian is not None:
        yield from _written(leaf, [_Numbers(jacobian, flat(v)).terms(j) for j in columns])


def _columns(result: BackwardResult, name: str) -> range:
    """Return the columns of J that belong to a leaf."""
    start = sum(result.leaves[n].size for n in result.wrt[: result.wrt.index(name)])
    return range(start, start + result.leaves[name].size)


@dataclass(frozen=True)
class _Formulas:
    """The terms of a column of J in formulas; those that are 0 are left out, unless there is only one."""

    symbolic: SymbolicJacobian
    weights: Array

    def terms(self, j: int) -> list[Math]:
        found = []
        for i, weight in enumerate(self.weights):
            entry: Any = self.symbolic.entries.get((i, j))
            if entry is not None and weight:
                found.append(_product(weight, np.asarray(entry, dtype=object)))
            elif len(self.weights) == 1:
                found.append(_product(weight, np.asarray(0.0)))
        return found


@dataclass(frozen=True)
class _Numbers:
    """The same in numbers: 0 times what is not finite is no 0."""

    jacobian: Array
    weights: Array

    def terms(self, j: int) -> list[Math]:
        found = []
        for weight, entry in zip(self.weights, self.jacobian[:, j], strict=True):
            nothing = np.isfinite(weight) and np.isfinite(entry) and not weight * entry
            if not nothing or len(self.weights) == 1:
                found.append(_product(weight, np.asarray(float(entry))))
        return found


def _product(weight: float, entry: Array) -> Math:
    return Product((Value.of(weight), Value(entry)))


def _written(leaf: Node, elements: Sequence[list[Math]]) -> Iterator[Math]:
    """Yield the sums in the shape of the leaf, if they are worth writing out."""
    if sum(map(len, elements)) <= _TERMS and any(elements):
        yield _nested([Sum(tuple(terms)) if terms else "0" for terms in elements], leaf.shape)


def _nested(elements: Sequence[Math], shape: tuple[int, ...]) -> Math:
    if not shape:
        return elements[0]
    size = len(elements) // shape[0]
    return Listed(tuple(_nested(elements[k * size : (k + 1) * size], shape[1:]) for k in range(shape[0])))
