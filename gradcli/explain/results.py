"""The base of all results.  Their arrays hold float64 at a point, SymPy expressions without one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.explain.style import Style
from gradcli.graph.array import Array as Array
from gradcli.graph.array import Named as Named
from gradcli.graph.graph import Graph
from gradcli.graph.node import Node

if TYPE_CHECKING:
    from gradcli.algebra.symbolic_jacobian import SymbolicJacobian
    from gradcli.explain.sections import Text

Row = list[tuple[str | tuple[str, ...], Array]]  # of CSV: each array with its name, or with one for each element


class Wanted(NamedTuple):
    """The extras of a result, beside the numbers of its command: steps, notes, a page."""

    retain: tuple[str, ...] = ()
    steps: bool = False
    page: bool = False  # what only pages show: formulas beside numbers, values of intermediates, corners
    jacobian: bool = False  # J beside a gradient, however large it is
    implicit: bool = False  # nobody gave a cotangent
    warn: bool = True  # of numbers that are not finite
    script: bool = False  # for a call in a script, which has PyTorch's lines itself, and no options of a command
    letters: bool = False  # formulas in the letters of the cotangents, beside their numbers
    returned: bool = False  # the call is one of `grad`, which returns gradients: no .grad holds them
    reached: frozenset[str] = frozenset()  # leaves that a gradient arrived at in a script's call, were it 0
    same: frozenset[str] = frozenset()  # inputs and seeds (`y.v`, `x.u`) with one value at all points
    block: bool = False  # what is a point is a block of points: arrays have an added last axis, of its length or 1

    @property
    def notes(self) -> bool:
        """Whether corners are noted: everywhere but at the points of a file."""
        return self.page or self.warn


class Measured(NamedTuple):
    """Numbers of a forward and a reverse pass that have run elsewhere, in a script say, without a batch axis.

    Gradients by name, adjoints by node, contributions by node and position of the argument, values by node; J or H as
    the `matrix` over all elements; the `products` J·u by the outputs, or H·u by the leaves.  What is missing here is
    computed from the graph, and from these.
    """

    gradients: Mapping[str, Array] = MappingProxyType({})
    adjoints: Mapping[Node, Array] = MappingProxyType({})
    contributions: Mapping[tuple[Node, int], Array] = MappingProxyType({})
    values: Mapping[Node, Array] = MappingProxyType({})
    matrix: Array | None = None
    products: Named | None = None


UNMEASURED = Measured()


def noted(notes: tuple[str | Text, ...]) -> dict[str, tuple[str | Text, ...]]:
    """Return the notes on a point under their name in JSON; nothing where there are none."""
    return {"notes": notes} if notes else {}


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
