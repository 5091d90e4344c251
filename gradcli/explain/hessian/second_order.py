"""The result of `gradcli hessian`: the second derivatives of a scalar, or their product H·u with a tangent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.engine.numeric_jacobian import NumericJacobian
from gradcli.errors import InputError, Notes
from gradcli.explain.columns import Columns, hessian_columns
from gradcli.explain.corners import Corners
from gradcli.explain.evaluation import Values, evaluated, seeded
from gradcli.explain.origin import not_finite_entry, warn_of_values
from gradcli.explain.protocol import first_not_finite, tangent_of, without_seeds
from gradcli.explain.results import UNMEASURED, Array, Measured, Named, Row, Shown, Wanted, noted
from gradcli.explain.shared import MAX_FORMULAS, check_entries, formulas_of, style_of
from gradcli.graph import hessian as second
from gradcli.graph.graph import Graph
from gradcli.graph.jacobian import entries
from gradcli.graph.names import all_elements
from gradcli.graph.node import Node

if TYPE_CHECKING:
    from gradcli.algebra.symbolic_jacobian import SymbolicJacobian


@dataclass(frozen=True)
class HessianPoint:
    """The gradient and the Hessian at a point, each over the elements of the leaves in order."""

    at: Named
    value: Named
    gradient: Array
    hessian: Array
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class HessianResult(Shown):
    """The result of `gradcli hessian`; `symbolic` has the lower half of H, and its columns as rows."""

    output: str = "y"
    points: tuple[HessianPoint, ...] = ()

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The elements of the leaves."""
        return all_elements(self.leaves)

    def texts(self) -> list[list[str]]:
        """Return the entries as formulas, row after row; H is symmetric."""
        lower = super().texts()
        return [[lower[max(i, j)][min(i, j)] for j in range(len(lower))] for i in range(len(lower))]

    def objects(self) -> Iterator[dict[str, Any]]:
        """Yield an object a point; a single one without a point."""
        common: dict[str, Any] = {"columns": self.columns}
        if self.symbolic is not None:
            common |= {"symbolic": self.texts(), **self.where_object}
        for p in self.points:
            yield common | {
                "at": p.at,
                "value": p.value,
                "gradient": p.gradient,
                "hessian": p.hessian,
                **noted(p.notes),
            }
        if not self.points:
            yield common

    def rows(self) -> Iterator[Row]:
        """Yield a row a point: the point, the output, then `d2y/dx0/dx1` for each entry; without a point formulas."""
        names = tuple(f"d2{self.output}/d{a}/d{b}" for a, b in product(self.columns, repeat=2))
        for p in self.points:
            yield [*p.at.items(), *p.value.items(), (names, p.hessian)]
        if not self.points and self.symbolic is not None:
            yield [(names, np.array(self.texts()))]


@dataclass(frozen=True)
class HvpPoint:
    """H·u at a point, in the shapes of the leaves."""

    at: Named
    value: Named
    u: Named
    hvp: Named
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class HvpResult(Shown):
    """The result of `gradcli hessian --u`."""

    points: tuple[HvpPoint, ...] = ()

    def objects(self) -> Iterator[dict[str, Any]]:
        """Yield an object a point."""
        for p in self.points:
            yield {"at": p.at, "value": p.value, "u": p.u, "hvp": p.hvp, **noted(p.notes)}

    def rows(self) -> Iterator[Row]:
        """Yield a row a point."""
        for p in self.points:
            yield [*p.at.items(), *p.value.items(), *((f"{name}.hvp", value) for name, value in p.hvp.items())]


def lower_half(graph: Graph, wrt: Sequence[str], optional: bool) -> SymbolicJacobian | None:
    """Return the lower half of H in formulas; if `optional`, None where they would take minutes.

    Errors: `InputError` there otherwise.
    """
    from gradcli.algebra.symbolic_jacobian import symbolic_entries

    slopes = second.gradient(graph, wrt)
    leaves = {name: slopes.inputs[name] for name in wrt}

    def lower() -> dict[tuple[int, int], Node]:
        return {(i, j): node for (i, j), node in entries(slopes, wrt).items() if i >= j}

    with suppress(*[InputError] * optional):
        if (count := formulas_of(slopes)) > MAX_FORMULAS // 10:
            raise InputError(
                f"the formulas of {count:,} elements are too many to compute",
                hint="reduce the shapes, or give a point with --at to compute H in numbers",
            )
        return symbolic_entries(slopes, leaves, leaves, lower).worked_out()
    return None


@np.errstate(all="ignore")
def hessian(
    graph: Graph,
    wrt: Sequence[str],
    points: Sequence[Named],
    notes: Notes,
    wanted: Wanted,
    written: Callable[[Graph, Sequence[str], bool], SymbolicJacobian | None] = lower_half,
    measured: Measured = UNMEASURED,
) -> HessianResult:
    """Return the Hessian of the scalar output with respect to the leaves `wrt`, as `written` and at each point.

    At points, formulas are left out where they would take minutes.  What was `measured`, at one point, is not computed.

    Errors: `InputError` when there is more than one scalar output, or H would have more than a million entries.
    """
    output, _ = second.scalar_output(graph)
    slopes = second.gradient(graph, wrt)
    check_entries(slopes, wrt, "choose some inputs with --wrt; --u gives H·u without H", "Hessian")
    symbolic = written(graph, wrt, bool(points))
    result = []
    numeric = NumericJacobian(slopes, wrt) if points and measured.matrix is None else None
    corners = Corners(graph, wanted.notes)
    nodes = [*graph.outputs.values(), *slopes.outputs.values(), *corners.nodes]
    nodes += [] if numeric is None else numeric.blocks
    computed = evaluated(slopes.inputs, points, nodes, wanted.same, wanted.block, measured.values)
    for at, values in zip(points, computed, strict=True):
        whole = measured.matrix if numeric is None else numeric.matrix(values, wanted.block)
        assert whole is not None
        value = {name: values[y] for name, y in graph.outputs.items()}
        own = Notes()
        if wanted.warn:
            warn_of_values(graph, at, value, own)
            if not np.isfinite(whole).all():
                own.add("warning", "H is not finite: " + not_finite_entry(slopes, wrt, at, whole, output))
        gradient = _elements([*slopes.outputs.values()], values)
        on_values = corners.note(values, own, notes, wanted.page)
        result.append(HessianPoint(at, value, gradient, mirrored(whole), on_values))
    return HessianResult(graph, tuple(wrt), style_of(graph), output, tuple(result), symbolic=symbolic)


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
    lower = _lower(len(matrix)).reshape(*matrix.shape[:2], *[1] * (matrix.ndim - 2))
    return np.where(lower, matrix, matrix.swapaxes(0, 1))


@lru_cache(maxsize=1)
def _lower(n: int) -> Array:
    return np.tri(n, dtype=bool)


def hvp(
    graph: Graph,
    wrt: Sequence[str],
    points: Sequence[Named],
    directions: Sequence[Named],
    notes: Notes,
    wanted: Wanted,
    measured: Measured = UNMEASURED,
) -> HvpResult:
    """Return H·u at each point; `directions[p]` are the tangents of the leaves `wrt` at point p.

    What was `measured`, at one point, is not computed.

    Errors: `InputError` when there is more than one scalar output.
    """
    doubled = second.hvp(graph, wrt)
    corners = Corners(graph, wanted.notes)
    nodes = [*graph.outputs.values(), *corners.nodes]
    nodes += doubled.outputs.values() if measured.products is None else ()
    columns = [at | seeded("u", u) for at, u in zip(points, directions, strict=True)]
    result = []
    computed = evaluated(doubled.inputs, columns, nodes, wanted.same, wanted.block, measured.values)
    for at, u, values in zip(points, directions, computed, strict=True):
        value = {name: values[y] for name, y in graph.outputs.items()}
        products = measured.products or {name: values[doubled.outputs[f"{name}.hvp"]] for name in wrt}
        own = Notes()
        if wanted.warn:
            warn_of_values(graph, at, value, own)
            for name, of_leaf in products.items():
                if not np.isfinite(of_leaf).all():
                    own.add("warning", f"{name}.hvp is not finite: a second derivative is not finite")
        on_values = corners.note(values, own, notes, wanted.page)
        result.append(HvpPoint(at, value, u, products, on_values))
    return HvpResult(graph, tuple(wrt), style_of(graph), tuple(result))


_lower_half = cache(lower_half)  # the same for all blocks of points


@dataclass(frozen=True)
class Hessian:
    """H of the only output, a scalar.

    Errors: `InputError` for more than a million entries, and when there is more than one scalar output.
    """

    graph: Graph
    wrt: tuple[str, ...]
    wanted: Wanted
    plural = "Hessians"

    @property
    def seeds(self) -> Named:
        """Nothing: H has no seeds."""
        return {}

    def columns(self) -> Columns:
        """Return the entries of H."""
        output, _ = second.scalar_output(self.graph)
        slopes = second.gradient(self.graph, self.wrt)
        check_entries(slopes, self.wrt, "choose some inputs with --wrt; --u gives H·u without H", "Hessian")
        return hessian_columns(output, slopes, self.wrt)

    def result(self, points: Sequence[Named], notes: Notes) -> HessianResult:
        """Return H in formulas, and at each point."""
        return hessian(self.graph, self.wrt, points, notes, self.wanted, _lower_half)

    def origin(self, point: Named, results: Named) -> str:
        """Return which entry is not finite."""
        return first_not_finite(results)


@dataclass(frozen=True)
class HessianProduct:
    """H·u; `u` is None where points hold their tangents (`x.u`).

    Errors: `InputError` when there is more than one scalar output.
    """

    graph: Graph
    wrt: Sequence[str]
    u: Named | None
    wanted: Wanted
    plural = "products H·u"

    @property
    def seeds(self) -> Named:
        """The tangents."""
        return seeded("u", self.u or {})

    def columns(self) -> Columns:
        """Return the products."""
        return Columns(second.hvp(self.graph, self.wrt))

    def result(self, points: Sequence[Named], notes: Notes) -> HvpResult:
        """Return H·u at each point."""
        tangents = [self.u if self.u and not self.wanted.block else tangent_of(p, self.wrt) for p in points]
        return hvp(self.graph, self.wrt, without_seeds(self.graph, points), tangents, notes, self.wanted)

    def origin(self, point: Named, results: Named) -> str:
        """Return which product is not finite."""
        return first_not_finite(results)
