"""What a command shows, as plain data.  Arrays hold float64, or SymPy expressions where there is no point."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.graph.array import Array as Array
from gradcli.graph.array import Named as Named
from gradcli.graph.graph import Graph
from gradcli.graph.node import Node
from gradcli.graph.vjp import Sweep, differentiated

if TYPE_CHECKING:
    from gradcli.algebra.jacobian import SymbolicJacobian
    from gradcli.explain.sections import Text
    from gradcli.explain.trace import Trace

Row = list[tuple[str | tuple[str, ...], Array]]  # of CSV: each array with its name, or with one for each element


class Wanted(NamedTuple):
    """What is to be shown beside what a command is about."""

    retain: tuple[str, ...] = ()
    steps: bool = False
    page: bool = False  # what only pages show: formulas beside numbers, values of intermediates, corners
    jacobian: bool = False  # J beside a gradient, however large it is
    implicit: bool = False  # nobody gave a cotangent
    warn: bool = True  # of numbers that are not finite
    script: bool = False  # for a call in a script, which has PyTorch's lines itself, and no options of a command
    returned: bool = False  # the call is one of `grad`, which returns gradients: no .grad holds them

    @property
    def notes(self) -> bool:
        """Whether corners are noted: everywhere but at the points of a file."""
        return self.page or self.warn


class Measured(NamedTuple):
    """Numbers of a reverse pass that has run elsewhere, in a script say, without the last axis of a batch.

    Gradients by name, adjoints by node, contributions by node and position of the argument.  What is missing here is
    computed from the graph.
    """

    gradients: Mapping[str, Array] = MappingProxyType({})
    adjoints: Mapping[Node, Array] = MappingProxyType({})
    contributions: Mapping[tuple[Node, int], Array] = MappingProxyType({})


UNMEASURED = Measured()


def noted(notes: tuple[str | Text, ...]) -> dict[str, tuple[str | Text, ...]]:
    """Return the notes on a point under their name in JSON; nothing where there are none."""
    return {"notes": notes} if notes else {}


class Call(NamedTuple):
    """One `backward` call: its cotangent, its own vᵀJ, and what has accumulated in `.grad` after it."""

    v: Named
    own: Named
    grad: Named


@dataclass(frozen=True)
class BackwardPoint:
    """The gradients at one point; without a point, `at` and `value` are empty and the gradients are formulas."""

    at: Named
    value: Named
    intermediates: Named
    calls: tuple[Call, ...]
    retained: Named
    trace: Trace | None
    adjoints: Named = field(default_factory=dict)  # of the retained, as formulas
    jacobian: Array | None = None
    notes: tuple[
        str | Text, ...
    ] = ()  # on corners that the point lies on, and in JSON on gradients that are nan or None

    @property
    def grad(self) -> Named:
        """What has accumulated after the last call."""
        return self.calls[-1].grad


class JacobianPoint(NamedTuple):
    """The Jacobian at one point."""

    at: Named
    value: Named
    jacobian: Array
    trace: Trace | None = None  # of a call for each of the first rows
    notes: tuple[str, ...] = ()


class Style(NamedTuple):
    """How formulas are written: with decimals if the user wrote decimals; `taken` are the names that mean variables."""

    decimals: bool = False
    taken: frozenset[str] = frozenset()


PLAIN = Style()


@dataclass(frozen=True)
class Shown:
    """What every result knows of its system; `symbolic` is None where no formulas are shown."""

    graph: Graph
    wrt: tuple[str, ...]
    style: Style
    symbolic: SymbolicJacobian | None = field(default=None, kw_only=True)

    def formula(self, expr: Any) -> str:
        """Return an expression as gradcli reads it."""
        from gradcli.notation.formulas import code

        return code(expr, *self.style)

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
        result = {place: self.formula(entry) for place, entry in self.formulas.entries.items()}
        columns = range(len(self.formulas.columns))
        return [[result.get((i, j), "0") for j in columns] for i in range(len(self.formulas.rows))]


@dataclass(frozen=True)
class JacobianResult(Shown):
    """The result of `gradcli jacobian`; `trace` has the steps without a point."""

    points: tuple[JacobianPoint, ...] = ()
    trace: Trace | None = None

    def objects(self) -> Iterator[dict[str, Any]]:
        """Yield an object a point; a single one without a point."""
        common: dict[str, Any] = {"rows": self.formulas.rows, "columns": self.formulas.columns}
        common |= {"symbolic": self.texts(), **self.where_object}
        for p in self.points:
            yield common | {"at": p.at, "value": p.value, "jacobian": p.jacobian, **noted(p.notes)}
        if not self.points:
            yield common

    def rows(self) -> Iterator[Row]:
        """Yield a row a point: the point, the outputs, then `dy0/dx0`, …; without a point formulas."""
        names = tuple(f"d{r}/d{c}" for r in self.formulas.rows for c in self.formulas.columns)
        for p in self.points:
            yield [*p.at.items(), *p.value.items(), (names, p.jacobian)]
        if not self.points:
            yield [(names, np.array(self.texts())), *defined(self.where)]


@dataclass(frozen=True)
class BackwardResult(Shown):
    """The result of `gradcli backward`; `numeric` tells that it is at points."""

    swept: Sweep
    wanted: Wanted
    points: tuple[BackwardPoint, ...]
    numeric: bool

    @property
    def forgotten(self) -> list[str]:
        """The intermediates of which PyTorch keeps no gradient unless `retain_grad` is called."""
        graph = self.graph
        kept = {*graph.inputs.values(), *graph.outputs.values(), *(graph.names[name] for name in self.wanted.retain)}
        lost = differentiated(graph, self.wrt) - kept
        return [name for name, n in graph.names.items() if n in lost and "[" not in name]

    @cached_property
    def unreached(self) -> list[str]:
        """The intermediates in `retain` that no gradient arrives at: PyTorch leaves their `.grad` None."""
        reached = differentiated(self.graph, self.wrt) if self.wanted.retain else set()
        return [name for name in self.wanted.retain if self.graph.names[name] not in reached]

    def objects(self) -> Iterator[dict[str, Any]]:
        """Yield an object a point; without a point, one whose gradients are formulas."""
        for p in self.points:
            result: dict[str, Any] = {"at": p.at, "value": p.value} if self.numeric else {}
            result |= {"calls": [{"v": call.v, "grad": call.grad} for call in p.calls], "grad": p.grad}
            result |= {"retained": p.retained} if p.retained else {}
            if self.wanted.steps and p.trace is not None:
                from gradcli.explain.backward.steps import steps_objects

                result["steps"] = steps_objects(p.trace)
            result |= noted(p.notes)
            yield result if self.numeric else result | self.where_object

    def rows(self) -> Iterator[Row]:
        """Yield a row a point: the point, the outputs, `x0.grad`, …; without a point formulas."""
        for p in self.points:
            grads = [(f"{name}.grad", grad) for name, grad in (*p.grad.items(), *p.retained.items())]
            yield [*p.at.items(), *p.value.items(), *grads, *(() if self.numeric else defined(self.where))]


def defined(where: dict[str, str]) -> Row:
    """Return definitions as cells of CSV."""
    return [(name, np.array(text)) for name, text in where.items()]
