"""What results are made of: what is wanted beside the numbers, the numbers that are known, and the style of formulas.

Arrays hold float64 at a point, SymPy expressions without one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from gradcli.graph.array import Array as Array
from gradcli.graph.array import Named as Named
from gradcli.graph.graph import Graph
from gradcli.graph.node import Node
from gradcli.graph.vjp import Sweep, sweep

if TYPE_CHECKING:
    from gradcli.algebra.symbolic_jacobian import SymbolicJacobian

_CALLS, _WEIGHTS = 100, 1_000  # that are searched for a decimal: nearly every system has one kind of number
Row = list[tuple[str | tuple[str, ...], Array]]  # of CSV: each array with its name, or with one for each element


class Style(NamedTuple):
    """The style of formulas: with decimals if the user wrote decimals; `taken` are the names of variables.

    `single` is the output and the input of a system that has one of each, both scalar: LaTeX writes dy/dx, not ∂y/∂x.
    """

    decimals: bool = False
    taken: frozenset[str] = frozenset()
    single: tuple[str, str] | None = None


PLAIN = Style()


def style_of(graph: Graph, calls: Sequence[Named] = ()) -> Style:
    """Return how formulas are written, by the numbers of the system and of the calls."""
    decimals = any(isinstance(n.value, Decimal) for n in graph.nodes if n.is_constant)
    numbers = (v for call in calls[:_CALLS] for v in call.values() if v.dtype != object)
    weights = (float(e) for v in numbers for e in v.reshape(-1)[:_WEIGHTS])
    decimals = decimals or any(w != round(w, 0) for w in weights if np.isfinite(w))
    return Style(decimals, frozenset(graph.labels.values()), _single(graph))


def _single(graph: Graph) -> tuple[str, str] | None:
    """Return the output and the input of a system with one of each, both scalar."""
    if len(graph.outputs) != 1 or len(graph.inputs) != 1:
        return None
    (y_name, y), (x_name, x) = *graph.outputs.items(), *graph.inputs.items()
    return None if y.shape or x.shape else (y_name, x_name)


class Answer(Protocol):
    """The answer to a question at some points: the record that every format reads."""

    def formula(self, expr: Any) -> str:
        """Return an expression as gradcli reads it."""

    def objects(self) -> Iterator[Mapping[str, Any]]:
        """Yield an object for each line of JSON."""

    def rows(self) -> Iterable[Row]:
        """Return the arrays of each row of CSV, with the names of their columns."""


def tangent_of(point: Named, wrt: Sequence[str]) -> Named:
    """Return the tangent that a point, or a block of points, holds.

    >>> tangent_of({"x": 3, "x.u": 1}, ["x"])
    {'x': 1}
    """
    return {name: point[f"{name}.u"] for name in wrt}


class Wanted(NamedTuple):
    """The extras of a result, beside the numbers of its command: steps, notes, a page."""

    retain: tuple[str, ...] = ()
    steps: bool = False
    unroll: bool = False  # each round of a loop is written
    page: bool = False  # what only pages show: formulas beside numbers, values of intermediates, corners
    jacobian: bool = False  # J beside a gradient, however large it is
    implicit: bool = False  # nobody gave a cotangent
    warn: bool = True  # of numbers that are not finite
    script: bool = False  # for a call in a script, which has PyTorch's lines itself, and no options of a command
    letters: bool = False  # formulas in the letters of the cotangents, beside their numbers
    returned: bool = False  # the call is one of `grad`, which returns gradients: no .grad holds them
    reached: frozenset[str] = frozenset()  # leaves that a gradient arrived at in a script's call, were it 0
    unwritten: frozenset[str] = frozenset()  # leaves whose gradients are numbers alone: loops are between
    same: frozenset[str] = frozenset()  # inputs and seeds (`y.v`, `x.u`) with one value at all points
    block: bool = False  # what is a point is a block of points: arrays have an added last axis, of its length or 1

    @property
    def notes(self) -> bool:
        """Whether corners are noted: everywhere but at the points of a file."""
        return self.page or self.warn


class Hook(NamedTuple):
    """What a hook has made of an adjoint: its name in formulas, such as hook(ȳ), and the numbers before and after."""

    name: str
    before: Array
    after: Array


class Measured(NamedTuple):
    """Numbers of a forward and a reverse pass that have run elsewhere, in a script say, without a batch axis.

    Gradients by name, adjoints by node, contributions by node and position of the argument, values by node; J or H as
    the `matrix` over all elements; the `products` J·u by the outputs, or H·u by the leaves; what is passed on in the
    place of adjoints, by node.  What is missing here is computed from the graph, and from these.
    """

    gradients: Mapping[str, Array] = MappingProxyType({})
    adjoints: Mapping[Node, Array] = MappingProxyType({})
    contributions: Mapping[tuple[Node, int], Array] = MappingProxyType({})
    values: Mapping[Node, Array] = MappingProxyType({})
    matrix: Array | None = None
    products: Named | None = None
    hooks: Mapping[Node, Hook] = MappingProxyType({})

    def swept(self, graph: Graph, wrt: Sequence[str], retain: Sequence[str] = ()) -> Sweep:
        """Return the reverse sweep in which hooks replace adjoints as they did."""
        return sweep(graph, wrt, retain, dict(zip(_names_of(self.hooks), self.hooks, strict=True)))

    @property
    def hooked(self) -> Named:
        """The inputs of such a sweep that hooks give."""
        return dict(zip(_names_of(self.hooks), (hook.after for hook in self.hooks.values()), strict=True))


def _names_of(hooks: Mapping[Node, Hook]) -> list[str]:
    return [f"\0hook{k}" for k in range(len(hooks))]


UNMEASURED = Measured()


@dataclass(frozen=True)
class Shown:
    """A result with its system; `symbolic` is the Jacobian in formulas, None where none are shown."""

    graph: Graph
    wrt: tuple[str, ...]
    style: Style
    symbolic: SymbolicJacobian | None = field(default=None, kw_only=True)

    def formula(self, expr: Any) -> str:
        """Return an expression as gradcli reads it."""
        from gradcli.notation.formulas import code

        return code(expr, self.style.decimals, self.style.taken)

    @property
    def formulas(self) -> SymbolicJacobian:
        """The symbolic Jacobian of a result that has one."""
        assert self.symbolic is not None
        return self.symbolic

    @cached_property
    def leaves(self) -> dict[str, Node]:
        """The leaves that gradients are taken by, in the order wanted."""
        return {name: self.graph.inputs[name] for name in self.wrt}

    @property
    def where(self) -> dict[str, str]:
        """The definitions of the intermediates that formulas mention."""
        return {} if self.symbolic is None else {name: self.formula(e) for name, e in self.symbolic.where.items()}

    @property
    def where_object(self) -> dict[str, dict[str, str]]:
        """The definitions under their name in JSON; nothing where there are none."""
        return {"where": where} if (where := self.where) else {}

    def texts(self) -> list[list[str]]:
        """Return the entries of J as formulas, row after row."""
        result = {index: self.formula(entry) for index, entry in self.formulas.entries.items()}
        columns = range(len(self.formulas.columns))
        return [[result.get((i, j), "0") for j in columns] for i in range(len(self.formulas.rows))]


def defined(where: dict[str, str]) -> Row:
    """Return definitions as cells of CSV."""
    return [(name, np.array(text)) for name, text in where.items()]
