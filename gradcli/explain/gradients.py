"""The section `grad`: the gradient of each leaf, with the arithmetic that leads to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradcli.explain import chain
from gradcli.explain.results import Array, BackwardPoint, BackwardResult
from gradcli.explain.sections import (
    Equations,
    Grad,
    Line,
    Listed,
    Math,
    Name,
    Partial,
    Product,
    Section,
    Sum,
    Text,
    Value,
)
from gradcli.explain.weights import flat
from gradcli.graph.names import bar
from gradcli.graph.node import Node

_ELEMENTS = 6  # of a leaf whose arithmetic is written out
_TERMS = 16  # the same, in all of its sums together


def gradients_section(result: BackwardResult, point: BackwardPoint) -> Section:
    """Return the gradients at a point after all calls, and those of retained intermediates."""
    arithmetic = _Arithmetic(result, point)
    lines = [Line((Grad(name), *arithmetic.sides(name), Value(point.grad[name])), (), True) for name in result.wrt]
    lines += [retained_line(result, point, name) for name in point.retained]
    blocks = [Equations(tuple(lines))]
    if point.retained:
        h = next(iter(point.retained))
        kept = (
            f"{h} is computed, and no leaf: PyTorch leaves {h}.grad None, unless {h}.retain_grad() keeps this adjoint,",
            f" ∂L/∂{h}. A hook on {h} sees the same.",
        )
        return Section("grad", (*blocks, Text(kept)))
    return Section("grad", tuple(blocks))


def retained_line(result: BackwardResult, point: BackwardPoint, name: str) -> Line:
    """Return the gradient of an intermediate: as a derivative, in formulas, and as a number."""
    formula = (
        (Value(point.adjoints[name]),) if name in point.adjoints and point.adjoints[name].size <= _ELEMENTS else ()
    )
    return Line((Grad(name), Partial("L", name), *formula, Value(point.retained[name])))


@dataclass(frozen=True)
class _Arithmetic:
    """What stands between a gradient's name and its value, for a single call."""

    result: BackwardResult
    point: BackwardPoint

    def sides(self, name: str) -> tuple[Math, ...]:
        """Return the products that make up the gradient of a leaf."""
        if len(self.point.calls) > 1:
            return ()
        if self.result.steps and not self.result.leaves[name].shape:
            return (Name(bar(name)),)
        formulas = tuple(self.formulas(name))
        return (*formulas, *self.products(name, along=len(formulas) > 1))

    def formulas(self, name: str) -> Iterator[Math]:
        """Yield the derivative of a scalar output, along the path that leads to it if there is one."""
        (output, y), *others = self.result.graph.outputs.items()
        leaf = self.result.leaves[name]
        v = self.point.calls[0].v[output]
        if others or y.shape:
            return
        names = self.result.graph.labels
        passes = chain.path(self.result.swept, leaf, y) or []
        along = chain.factors(passes, names)
        if not leaf.shape:
            yield Product(("v", Partial(output, name)))
        if along is not None:
            yield Product((Value(v), *along))
        if along is not None and self.point.trace is not None and (found := chain.numbers(passes, self.point.trace)):
            yield Product((Value(v), *found))

    def products(self, name: str, along: bool) -> Iterator[Math]:
        """Yield vᵀJ, element by element: in formulas for a scalar of a scalar, in numbers at a point."""
        symbolic, leaf = self.result.symbolic, self.result.leaves[name]
        if symbolic is None or leaf.size > _ELEMENTS:
            return
        weights = flat(self.point.calls[0].v)
        if (along and not leaf.shape) or (
            len(weights) == 1 and weights[0] == 1 and leaf.shape
        ):  # it stands there already
            return
        start = sum(self.result.leaves[n].size for n in self.result.wrt[: self.result.wrt.index(name)])
        columns = range(start, start + leaf.size)
        one = len(symbolic.rows) == 1 and not leaf.shape
        if self.point.jacobian is None or one:
            yield from self.array(leaf, [self.terms(j, None) for j in columns])
        if self.point.jacobian is not None:
            yield from self.array(leaf, [self.terms(j, self.point.jacobian) for j in columns])

    def terms(self, j: int, matrix: Array | None) -> list[Math]:
        """Return the products v_i·J_ij of a column, without those that are 0, unless there is only one."""
        assert self.result.symbolic is not None
        entries = self.result.symbolic.entries
        weights = flat(self.point.calls[0].v)
        found: list[Math] = []
        for i, weight in enumerate(weights):
            entry: Any = entries.get((i, j), 0) if matrix is None else matrix[i, j]
            nothing = not weight or not entry if matrix is None else _adds_nothing(weight, entry)
            if not nothing or len(weights) == 1:
                factor = np.asarray(entry, dtype=object) if matrix is None and entry else np.asarray(float(entry))
                found.append(Product((Value(np.asarray(weight)), Value(factor))))
        return found

    def array(self, leaf: Node, elements: Sequence[list[Math]]) -> Iterator[Math]:
        """Yield the sums in the shape of the leaf, if they are worth writing out."""
        if sum(map(len, elements)) <= _TERMS and any(elements):
            sums: list[Math] = [Sum(tuple(terms)) if terms else "0" for terms in elements]
            yield _nested(sums, leaf.shape)


def _adds_nothing(weight: float, entry: float) -> bool:
    return bool(np.isfinite(weight) and np.isfinite(entry) and not weight * entry)


def _nested(elements: Sequence[Math], shape: tuple[int, ...]) -> Math:
    if not shape:
        return elements[0]
    size = len(elements) // shape[0]
    return Listed(tuple(_nested(elements[k * size : (k + 1) * size], shape[1:]) for k in range(shape[0])))
