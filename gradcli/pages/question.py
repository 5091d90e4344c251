"""What is asked of a system, and the one result that answers it: named values, or formulas, at each point, with notes.

A kind of question states the nodes that it wants, the seeds that they read, and the names of their values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from gradcli.errors import Notes
from gradcli.graph.graph import Graph
from gradcli.graph.node import Node
from gradcli.graph.vjp import Sweep, differentiated
from gradcli.pages.corners import Corners
from gradcli.pages.evaluation import Values, evaluated_runs, seeded
from gradcli.pages.not_finite import warn_of_values
from gradcli.pages.results import UNMEASURED, Array, Measured, Named, Row, Shown, Wanted, style_of, tangent_of

if TYPE_CHECKING:
    from gradcli.algebra.symbolic_jacobian import SymbolicJacobian
    from gradcli.pages.sections import Text
    from gradcli.pages.trace import Trace

NONE: Mapping[str, Any] = MappingProxyType({})


class Columns(NamedTuple):
    """A graph whose outputs are written to a file, and the names of the elements of those that have their own."""

    graph: Graph
    names: Mapping[str, Sequence[str]] = {}


class Call(NamedTuple):
    """One `backward` call: its cotangent, its own vᵀJ, and what has accumulated in `.grad` after it."""

    v: Named
    vjp: Named
    grad: Named


class Point(NamedTuple):
    """A point of a result: its inputs, the outputs, and the values that are asked for; without inputs, formulas.

    `values` are named as in JSON.  A page shows more: `named` intermediates, J or H as the `matrix`, the `calls` of
    `backward`, the `trace` of steps, and what one command alone has, by its name in `more`.
    """

    at: Named
    outputs: Named
    values: Mapping[str, Any]
    named: Mapping[str, Array] = NONE
    matrix: Array | None = None
    calls: tuple[Call, ...] = ()
    trace: Trace | None = None
    more: Mapping[str, Any] = NONE
    notes: tuple[str | Text, ...] = ()

    @property
    def grad(self) -> Named:
        """The gradients accumulated by all calls."""
        return self.calls[-1].grad

    @property
    def retained(self) -> Named:
        """The gradients of intermediates that are kept."""
        retained: Named = self.values.get("retained", {})
        return retained


@dataclass(frozen=True)
class Result(Shown):
    """The result of a question; without a point, it has one of formulas."""

    question: Question
    points: tuple[Point, ...]
    copied: Sequence[Mapping[str, Any]] = ()  # columns of a file of points, of each point

    @property
    def numeric(self) -> bool:
        """Whether the result is numbers at points."""
        return bool(self.points and self.points[0].at)

    @property
    def wanted(self) -> Wanted:
        """The extras beside the numbers."""
        return self.question.wanted

    def objects(self) -> Iterator[dict[str, Any]]:
        """Yield an object a point."""
        first = self.question.first(self)
        copied: Iterable[Mapping[str, Any]] = ({"keep": of_point} for of_point in self.copied)
        for p, keep in zip(self.points, copied if self.copied else repeat(NONE), strict=False):
            point = {"at": p.at, "value": p.outputs} if p.at else {}
            last = self.question.last(self, p)
            yield {**keep, **first, **point, **p.values, **last, **({"notes": p.notes} if p.notes else {})}

    def rows(self) -> Iterator[Row]:
        """Yield a row a point: names of arrays, whose elements are columns, with the arrays."""
        for p in self.points:
            yield [*p.at.items(), *p.outputs.items(), *self.question.cells(self, p)]


@dataclass(eq=False, repr=False)  # which starts sooner than a frozen one
class Question(ABC):
    """A system, and what is asked of it by the leaves `wrt`; what was `measured`, at one point, is not computed.

    The nodes of `columns` and those of a result are the same, so their numbers are, too.  `plural` is what the values
    are called in a warning.
    """

    graph: Graph
    wrt: Sequence[str]
    wanted: Wanted
    measured: Measured = field(default=UNMEASURED, kw_only=True)
    plural: ClassVar[str]
    seed: ClassVar[str] = ""  # the suffix of seeds that points may hold: `y.v`, `x.u`
    warns: ClassVar[bool] = True  # of outputs that are not finite

    # What a kind states

    @property
    def seeds(self) -> Named:
        """The cotangents and tangents with one value at all points, by their names as inputs; points hold others."""
        return {}

    @property
    def same(self) -> frozenset[str]:
        """The inputs with one value at all points, seeds among them."""
        return self.wanted.same | self.seeds.keys()

    @property
    def by(self) -> Sequence[str]:
        """The leaves whose derivatives are shown."""
        return self.wrt

    @property
    def inputs(self) -> Mapping[str, Node]:
        """The inputs of the nodes: those of the system, and seeds."""
        return self.graph.inputs

    @abstractmethod
    def columns(self) -> Columns:
        """Return the values as outputs of a graph, for a file: an engine of its own may compute them."""

    @abstractmethod
    def nodes(self) -> Iterable[Node]:
        """Return the nodes whose values are wanted at each point, beside the outputs."""

    def runs(self, k: int, point: Named) -> Sequence[Named]:
        """Return the seeds of each evaluation at a point, the k-th, which may hold them."""
        return [{}]

    @abstractmethod
    def answer(self, at: Named, outputs: Named, runs: Sequence[Named], values: Sequence[Values]) -> Point:
        """Return what is asked for at a point, given the seeds of each evaluation and the values of the nodes."""

    def weights(self, point: Named) -> Sequence[Named]:
        """Return the seeds by whose numbers formulas are written: with decimals, if there are some."""
        return self.runs(0, point)

    def formulas(self, numeric: bool, notes: Notes) -> SymbolicJacobian | None:
        """Return the formulas, or None where none are shown; `numeric` is whether there are points.

        Errors: `InputError` for what cannot be computed.
        """
        return None

    def in_formulas(self, formulas: SymbolicJacobian | None) -> Point:
        """Return what is asked for without a point."""
        return Point({}, {}, {})

    def warnings(self, p: Point) -> Iterator[tuple[str, str]]:
        """Yield warnings of values that are not finite at a point, each with its kind."""
        yield from ()

    def remarks(self, p: Point, notes: Notes) -> Iterable[str | Text]:
        """Return further notes on a point."""
        return ()

    def first(self, result: Result) -> Mapping[str, Any]:
        """Return what each object of JSON begins with."""
        return NONE

    def last(self, result: Result, p: Point) -> Mapping[str, Any]:
        """Return what an object of JSON ends with: without a point, the definitions of names in formulas."""
        return NONE if p.at else result.where_object

    @abstractmethod
    def cells(self, result: Result, p: Point) -> Row:
        """Return the columns of CSV behind those of the point and the outputs."""

    def origin(self, point: Named, values: Named) -> str:
        """Return where the first number of a point's values arose that is not finite."""
        name = next(name for name, value in values.items() if not np.isfinite(value).all())
        return f"`{name}` is not finite: a local derivative is not finite"

    # The one way to a result

    @np.errstate(all="ignore")  # inf and nan are results, with warnings of our own
    def result(self, points: Sequence[Named], notes: Notes) -> Result:
        """Return what is asked for at each point, or as formulas where there is none.

        Notes and warnings are added to `notes`.
        """
        numeric = bool(points)
        if numeric not in self._known:  # the same for all blocks of points
            self._known[numeric] = self.formulas(numeric, notes)
        formulas = self._known[numeric]
        answers = tuple(self._at(points, notes)) if points else (self.in_formulas(formulas),)
        style = style_of(self.graph, self.weights(points[0] if points else {}))
        return Result(self.graph, tuple(self.by), style, self, answers, symbolic=formulas)

    @cached_property
    def _known(self) -> dict[bool, SymbolicJacobian | None]:
        return {}

    def _at(self, points: Sequence[Named], notes: Notes) -> Iterator[Point]:
        """Yield what is asked for at each point: all of it is computed together, for all points at once."""
        nodes = [*self.graph.outputs.values(), *self.nodes(), *self._corners.nodes]
        of_graph = [{name: p[name] for name in self.graph.inputs} for p in points] if self.seed else points
        runs = [self.runs(k, point) for k, point in enumerate(points)]
        wanted, same, known = self.wanted, self.same, self.measured.values
        inputs = [at | self.measured.hooked for at in of_graph]
        computed = evaluated_runs(self.inputs, inputs, runs, nodes, same, wanted.block, known)
        for at, seeds, values in zip(of_graph, runs, computed, strict=True):
            outputs = {name: values[0][y] for name, y in self.graph.outputs.items()}
            p = self.answer(at, outputs, seeds, values)
            warnings = Notes()
            if wanted.warn and self.warns:
                warn_of_values(self.graph, at, outputs, warnings)
                for kind, text in self.warnings(p):
                    warnings.add(kind, text)
            found = [*(p.grad.values() if p.calls else ()), *([] if p.matrix is None else [p.matrix])]
            on_values = self._corners.note(values[0], found, warnings, notes, wanted.page)
            yield p._replace(notes=(*on_values, *self.remarks(p, notes)))

    @cached_property
    def _corners(self) -> Corners:
        return Corners(self.graph, self.wanted.notes)

    # What several kinds share

    @cached_property
    def swept(self) -> Sweep:
        """The reverse sweep, in which hooks replace adjoints as they did."""
        return self.measured.swept(self.graph, self.wrt, self.wanted.retain)

    @cached_property
    def hooks(self) -> dict[Node, str]:
        """The names of what hooks passed on."""
        return {self.swept.hooks[n]: hook.name for n, hook in self.measured.hooks.items()}

    @cached_property
    def unreached(self) -> list[str]:
        """The retained intermediates that no gradient arrives at: PyTorch leaves their `.grad` None."""
        reached = differentiated(self.graph, self.wrt) if self.wanted.retain else set()
        return [name for name in self.wanted.retain if self.graph.names[name] not in reached]


@dataclass(eq=False, repr=False)
class TangentProduct(Question):
    """A product with the tangents `u`, which are None where points hold them (`x.u`); `product` is its name."""

    u: Named | None
    seed = "u"
    product: ClassVar[str]

    @property
    def seeds(self) -> Named:
        """The tangents."""
        return seeded("u", self.u or {})

    @property
    def inputs(self) -> Mapping[str, Node]:
        """The leaves, and the tangents."""
        return self.columns().graph.inputs

    def nodes(self) -> Iterable[Node]:
        """Return the products."""
        return self.columns().graph.outputs.values() if self.measured.products is None else ()

    def products(self, values: Values) -> Named:
        """Return the products by the names of the outputs, or of the leaves."""
        nodes = {name.removesuffix(f".{self.product}"): n for name, n in self.columns().graph.outputs.items()}
        return self.measured.products or {name: values[n] for name, n in nodes.items()}

    def runs(self, k: int, point: Named) -> Sequence[Named]:
        """Return the tangents."""
        return [seeded("u", tangent_of(point, self.wrt) if self.u is None or self.wanted.block else self.u)]

    def weights(self, point: Named) -> Sequence[Named]:
        """Return the tangents."""
        return [self.u] if self.u else []

    def cells(self, result: Result, p: Point) -> Row:
        """Return the products."""
        return [(f"{name}.{self.product}", value) for name, value in p.values[self.product].items()]
