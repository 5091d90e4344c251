"""The questions of `gradcli hessian`: the second derivatives of a scalar, and their product H·u with a tangent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.engine.numeric_jacobian import NumericJacobian
from gradcli.errors import InputError, Notes
from gradcli.graph import hessian as second
from gradcli.graph.construct import reshape, swap
from gradcli.graph.graph import Graph
from gradcli.graph.jacobian import entries, jacobian
from gradcli.graph.matrices import triangle
from gradcli.graph.names import all_elements
from gradcli.graph.node import Node
from gradcli.pages.evaluation import Values
from gradcli.pages.formulas import MAX_FORMULAS, check_entries, formula_count
from gradcli.pages.jacobian.question import blocks_of
from gradcli.pages.not_finite import not_finite_entry
from gradcli.pages.question import Columns, Point, Question, Result, TangentProduct
from gradcli.pages.results import Array, Named, Row, tangent_of

if TYPE_CHECKING:
    from gradcli.algebra.symbolic_jacobian import SymbolicJacobian

SHOWN = 20  # rows of a Hessian that a page shows


@dataclass(eq=False, repr=False)
class Hessian(Question):
    """H of the only output, a scalar: the gradient and H over the elements of the leaves in order.

    Errors: `InputError` for more than a million entries, and when there is more than one scalar output.
    """

    plural = "Hessians"

    @cached_property
    def output(self) -> str:
        """The name of the output."""
        return second.scalar_output(self.graph)[0]

    @cached_property
    def elements(self) -> tuple[str, ...]:
        """The elements of the leaves."""
        return all_elements(self.graph.leaves(self.wrt))

    @cached_property
    def _slopes(self) -> Graph:
        assert self.output
        slopes = second.gradient(self.graph, self.wrt)
        check_entries(slopes, self.wrt, "choose some inputs with --wrt; --u gives H·u without H", "Hessian")
        return slopes

    def columns(self) -> Columns:
        """Return the entries of H."""
        return hessian_columns(self.output, self._slopes, self.wrt)

    @property
    def inputs(self) -> Mapping[str, Node]:
        """The leaves."""
        return self._slopes.inputs

    @cached_property
    def _numeric(self) -> NumericJacobian:
        return NumericJacobian(self._slopes, self.wrt)

    def nodes(self) -> Iterator[Node]:
        """Yield the gradient, and the blocks of H."""
        yield from self._slopes.outputs.values()
        yield from self._numeric.blocks if self.measured.matrix is None else ()

    def answer(self, at: Named, outputs: Named, runs: Sequence[Named], values: Sequence[Values]) -> Point:
        """Return the gradient and H at a point."""
        (computed,), whole = values, self.measured.matrix
        if whole is None:
            whole = self._numeric.matrix(computed, self.wanted.block)
        gradient = _elements([*self._slopes.outputs.values()], computed)
        return Point(at, outputs, {"gradient": gradient, "hessian": mirrored(whole)}, matrix=whole)

    def warnings(self, p: Point) -> Iterator[tuple[str, str]]:
        """Yield a warning where H is not finite."""
        if p.matrix is not None and not np.isfinite(p.matrix).all():
            entry = not_finite_entry(self._slopes, self.wrt, p.at, p.matrix, self.output)
            yield "warning", f"H is not finite: {entry}"

    def formulas(self, numeric: bool, notes: Notes) -> SymbolicJacobian | None:
        """Return the lower half of H; at points, None where it would take minutes, and for a page of a large H."""
        hidden = self.wanted.page and sum(x.size for x in self._slopes.leaves(self.wrt).values()) > SHOWN
        return None if hidden else self._lower_half(numeric)

    def _lower_half(self, optional: bool) -> SymbolicJacobian | None:
        from gradcli.algebra.symbolic_jacobian import symbolic_entries
        from gradcli.notation.nodes import readable_names

        slopes = self._slopes
        leaves = slopes.leaves(self.wrt)

        def lower() -> dict[tuple[int, int], Node]:
            return {(i, j): node for (i, j), node in entries(slopes, self.wrt).items() if i >= j}

        with suppress(*[InputError] * optional):
            if (count := formula_count(slopes)) > MAX_FORMULAS // 10:
                raise InputError(
                    f"the formulas of {count:,} elements are too many to compute",
                    hint="reduce the shapes, or give a point with --at to compute H in numbers",
                )
            names = readable_names(self.graph).values()
            return symbolic_entries(slopes, leaves, leaves, lower, names).worked_out()
        return None

    def first(self, result: Result) -> dict[str, Any]:
        """Return the columns of H, and its formulas."""
        common: dict[str, Any] = {"columns": self.elements}
        return common if result.symbolic is None else common | {"symbolic": _texts(result), **result.where_object}

    def last(self, result: Result, p: Point) -> dict[str, Any]:
        """Return nothing: the definitions stand beside the formulas."""
        return {}

    def cells(self, result: Result, p: Point) -> Row:
        """Return `d2y/dx0/dx1` for each entry; without a point formulas."""
        names = tuple(f"d2{self.output}/d{a}/d{b}" for a, b in product(self.elements, repeat=2))
        return [(names, p.values["hessian"] if p.at else np.array(_texts(result)))]


def _texts(result: Result) -> list[list[str]]:
    """Return the entries as formulas, row after row; H is symmetric."""
    lower = result.texts()
    return [[lower[max(i, j)][min(i, j)] for j in range(len(lower))] for i in range(len(lower))]


def _elements(nodes: Sequence[Node], values: Values) -> Array:
    """Return the elements of some nodes as one vector; the last axis of a block of points stays."""
    parts = [values[n].reshape(n.size, *values[n].shape[len(n.shape) :]) for n in nodes]
    tail = max(part.shape[1:] for part in parts)
    return np.concatenate([np.broadcast_to(part, (len(part), *tail)) for part in parts])


def mirrored(matrix: Array) -> Array:
    """Return the symmetric matrix with this lower half, since rounding may differ above it; further axes stay.

    >>> mirrored(np.array([[1.0, 5.0], [2.0, 3.0]])).tolist()
    [[1.0, 2.0], [2.0, 3.0]]
    """
    lower = np.tri(len(matrix), dtype=bool).reshape(*matrix.shape[:2], *[1] * (matrix.ndim - 2))
    return np.where(lower, matrix, matrix.swapaxes(0, 1))


def hessian_columns(output: str, slopes: Graph, wrt: Sequence[str]) -> Columns:
    """Return H, a block for each pair of leaves: the Jacobian of `slopes`, the graph of the output's gradient.

    Its lower half is computed, and stands above the diagonal once more.

    >>> from gradcli.graph.node import leaf
    >>> x, w = leaf(), leaf()
    >>> slopes = Graph.of({"x": x, "w": w}, {"x": 2 * x * w, "w": x**2})
    >>> list(hessian_columns("y", slopes, ["x", "w"]).graph.outputs)
    ['d2y/dx/dx', 'd2y/dx/dw', 'd2y/dw/dx', 'd2y/dw/dw']
    """
    leaves = slopes.leaves(wrt)
    result = jacobian(slopes, wrt)
    blocks: dict[str, Node] = {}
    for (i, (above, y)), (j, (below, x)) in product(enumerate(leaves.items()), repeat=2):
        if i >= j and (block := result.outputs.get(f"d{above}/d{below}")) is not None:
            flat = reshape(block, (y.size, x.size))
            # A square block has its lower half on both sides.
            whole = flat if i > j or y.size == 1 else triangle("tril", flat, 0) + swap(triangle("tril", flat, -1))
            blocks[f"d{above}/d{below}"] = reshape(whole, (*y.shape, *x.shape))
            if i > j:
                blocks[f"d{below}/d{above}"] = reshape(swap(flat), (*x.shape, *y.shape))
    return blocks_of(Graph.of(result.inputs, blocks), leaves, leaves, f"d2{output}/d{{}}/d{{}}")


@dataclass(eq=False, repr=False)
class HessianProduct(TangentProduct):
    """H·u, in the shapes of the leaves.

    Errors: `InputError` when there is more than one scalar output.
    """

    plural = "products H·u"
    product = "hvp"

    def columns(self) -> Columns:
        """Return the products."""
        return self._columns

    @cached_property
    def _columns(self) -> Columns:
        return Columns(second.hvp(self.graph, self.wrt))

    def answer(self, at: Named, outputs: Named, runs: Sequence[Named], values: Sequence[Values]) -> Point:
        """Return H·u at a point."""
        return Point(at, outputs, {"u": tangent_of(runs[0], self.wrt), "hvp": self.products(values[0])})

    def warnings(self, p: Point) -> Iterator[tuple[str, str]]:
        """Yield a warning for each product that is not finite."""
        for name, value in p.values["hvp"].items():
            if not np.isfinite(value).all():
                yield "warning", f"{name}.hvp is not finite: a second derivative is not finite"
