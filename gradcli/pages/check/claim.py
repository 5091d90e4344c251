"""A claim as nodes: the derivative that it is about, and what it says that is; and finite differences, its witness."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from gradcli.engine.differences import Difference, along, is_analytic, refined, step_size
from gradcli.engine.evaluate import evaluator, values_of
from gradcli.engine.rounding import UNIT, term_sizes
from gradcli.graph.calls import opened
from gradcli.graph.einsum import products
from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.jacobian import jacobian
from gradcli.graph.names import element_name
from gradcli.graph.node import Exact, Node, const, leaf, operands, simplified
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.rewrite import substituted
from gradcli.graph.shapes import Shape
from gradcli.pages.results import Array, Named

_DIGITS = 4  # of a constant whose multiples are seen as such
_MULTIPLE = 60  # the largest number in a simple multiple


@dataclass(frozen=True)
class Case:
    """A claim as nodes: `yours` against `truth`, the derivative of `base` by `by`.

    `text` is the claim's left side and `said` its right side.  `graph` has the leaves as its inputs, and the cotangents
    of a pullback, whose names are the `cotangents`; `by` is one of them, or an intermediate.  `kinds` are those of
    inputs that are declared to be symmetric, positive and so on.  A claim about some entries of the derivative alone
    has their indices in it, flattened, as `entries`.  `left` are the name and the shape of each quantity on the left
    side, and the indices of its elements.
    """

    text: str
    said: str
    graph: Graph
    base: Node
    by: Node
    truth: Node
    yours: Node
    cotangents: tuple[str, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    entries: Array | None = None
    left: tuple[tuple[str, Shape, Array], ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the arguments of pickling: the graphs as one flat list, as `Graph` does."""
        nodes = {f"\0{part}": getattr(self, part) for part in _NODES}
        graph = self.graph
        whole = Graph.of(graph.inputs, {**graph.outputs, **nodes}, graph.names.values(), graph.names)
        rest = {name: getattr(self, name) for name in ("text", "said", "cotangents", "kinds", "entries", "left")}
        return _unpickled, (whole, rest)

    def opened(self) -> Case:
        """Return the case with the definitions of calls in their places: these have the conditions and the poles."""
        _, (whole, *rest) = self.__reduce__()
        new = opened(whole)
        return self if new is whole else _unpickled(new, *rest)

    @cached_property
    def cut(self) -> tuple[Node, Node]:
        """The base as a function of `by`, and the leaf that replaces `by` in it."""
        return cut(self.base, self.by)

    @cached_property
    def cells(self) -> tuple[Array, Array]:
        """The element of the base, and the variable among the `columns`, of each entry."""
        whole = np.arange(self.base.size * self.by.size) if self.entries is None else self.entries.reshape(-1)
        rows, columns = np.divmod(whole, max(1, self.by.size))
        return rows, np.searchsorted(self.columns, columns)

    @cached_property
    def columns(self) -> Array:
        """The indices into `by`, flattened, of the variables that the claim has entries for."""
        return np.arange(self.by.size) if self.entries is None else np.unique(self.entries % self.by.size)

    @property
    def is_block(self) -> bool:
        """Whether it is about all elements of the base, by each of some variables; a loop may take single entries."""
        rank = len(self.base.shape)
        return self.truth.shape[:rank] == self.base.shape and self.truth.size == self.base.size * self.width

    @cached_property
    def work(self) -> int:
        """About how much a point takes, as `operations_of` counts."""
        return operations_of([self.truth, self.yours, self.base])

    @property
    def width(self) -> int:
        """The number of variables in the claim."""
        return len(self.columns)

    def entry_name(self, entry: int) -> str:
        """Return the name of an entry: `[0,1]` of a whole derivative, "" of a scalar, else such as `dy[0]/dx[1]`."""
        shape = self.truth.shape
        if not shape:
            return ""
        key = _unravelled(entry, shape)
        if self.entries is None:
            return element_name("", key)
        named = [
            element_name(name, _unravelled(np.broadcast_to(index, shape)[key], own)) if own else name
            for name, own, index in self.left
        ]
        order = len(named) - 1
        return f"d{order if order > 1 else ''}{'/d'.join(named)}" if order else f"{named[0]}.grad"


def _unravelled(k: int, shape: Shape) -> tuple[int, ...]:
    return tuple(map(int, np.unravel_index(k, shape)))


def operations_of(nodes: Sequence[Node]) -> int:
    """Return an estimate of the work of the nodes at a point: one unit an element, or a product of a contraction.

    >>> from gradcli.graph.construct import matmul
    >>> from gradcli.graph.node import leaf
    >>> operations_of([matmul(leaf((3, 4)), leaf((4, 5)))])
    92
    """
    kinds = {n: OPERATIONS[n.op].kind if n.op in OPERATIONS else "" for n in scheduled(nodes)}
    of_matrices = {n: _of_matrices(n) for n, kind in kinds.items() if kind == "matrix"}
    return sum(products(n) if k == "contraction" else max(n.size, of_matrices.get(n, 0)) for n, k in kinds.items())


def _of_matrices(node: Node) -> int:
    """Return about how much the elimination, or the singular values, of a node's matrices takes.

    A multiplication there is quick: a sixteenth of what a number takes, and singular values take eight times as many.
    """
    return max(a.size for a in node.args) * node.args[0].shape[-1] // (2 if node.op == "cofactors" else 16)


_NODES = ("base", "by", "truth", "yours")


def _unpickled(whole: Graph, rest: Mapping[str, Any]) -> Case:
    outputs = {**whole.outputs}
    nodes: dict[str, Any] = {part: outputs.pop(f"\0{part}") for part in _NODES}
    return Case(graph=replace(whole, outputs=outputs), **nodes, **rest)


def named_constants(nodes: Iterable[Node], names: Mapping[str, Node]) -> dict[Node, tuple[str, Node, Node]]:
    """Return the numbers in nodes that have a name, or are a simple multiple of one: its name, leaf, and the multiple.

    Exponents are left out, and numbers of few digits have no multiples: 4 is not 2*n because n is 2.

    >>> mu = const(398600441800000)
    >>> [(name, n.op) for name, _, n in named_constants([const(-398600441800000) / leaf()], {"mu": mu}).values()]
    [('mu', 'neg')]
    """
    known = {n: (name, leaf()) for name, n in names.items() if isinstance(n.value, Exact) and not n.shape}
    schedule = scheduled(nodes)
    exponents = {a for n in schedule for a in operands(n, "pow")[1:]}
    result = {}
    for n in schedule:
        if n in known and n.value not in (0, 1) and n not in exponents:
            result[n] = (*known[n], known[n][1])
        elif isinstance(n.value, Exact) and not n.shape and n.value and n not in exponents and n not in known:
            for other, (name, symbol) in known.items():
                ratio = Fraction(n.value) / Fraction(other.value or 1)
                digits = len(f"{float(other.value or 0):.15g}".partition("e")[0].strip("-").replace(".", "").strip("0"))
                if digits >= _DIGITS and max(abs(ratio.numerator), ratio.denominator) <= _MULTIPLE:
                    result[n] = (name, symbol, simplified("mul", const(ratio), symbol))
                    break
    return result


def cut(base: Node, by: Node) -> tuple[Node, Node]:
    """Return `base` with a leaf in the place of `by`, and that leaf."""
    if by.is_leaf:
        return base, by
    stand_in = leaf(by.shape)
    return substituted([base], {by: stand_in})[0], stand_in


def derivative(graph: Graph, base: Node, by: Node) -> Node:
    """Return ∂base/∂by, of the shape of base followed by that of by, which is a leaf or an intermediate.

    >>> x = leaf()
    >>> h = 2 * x
    >>> derivative(Graph.of({"x": x}, {}), h**2, h)
    mul(const, mul), shape ()
    """
    y, x = cut(base, by)
    inputs = {**graph.inputs, "\0by": x}
    result = jacobian(Graph.of(inputs, {"": y}), ["\0by"]).outputs
    node = next(iter(result.values()), None) or const(0, (*base.shape, *by.shape))
    return node if x is by else substituted([node], {x: by})[0]


def numbers(graph: Graph, points: Named, nodes: Sequence[Node]) -> list[Array]:
    """Return the values of nodes at points as arrays of shape (elements, points)."""
    return numbers_of(graph, nodes)(points)


def numbers_of(graph: Graph, nodes: Sequence[Node]) -> Callable[[Named], list[Array]]:
    """Return the function of points that returns these values."""
    evaluate = evaluator(graph, nodes)

    def at(points: Named) -> list[Array]:
        count = next(iter(points.values())).shape[-1]
        result = evaluate(points)
        return [np.broadcast_to(result[n], (*n.shape, count)).reshape(n.size, count).astype(float) for n in nodes]

    return at


def term_numbers(graph: Graph, points: Named, nodes: Sequence[Node]) -> list[Array]:
    """Return the sums of the absolute terms of the nodes' values, as arrays of shape (elements, points)."""
    count = next(iter(points.values())).shape[-1]
    sizes = term_sizes(graph, points, nodes)
    return [np.broadcast_to(s, (*n.shape, count)).reshape(n.size, count) for n, s in zip(nodes, sizes, strict=True)]


_NUMBERS = 4_000_000  # that are computed for the differences of some points: 32 MB
_STEPS = 11  # points at which a difference evaluates the system
_SURE = 1e-6  # the relative error of a difference whose estimated error is 0
_DOUBTS = 10.0  # times the estimate of its error, which is rarely exceeded
_TRUSTED = 1e-3  # the relative error of a difference that decides nothing
_NEARER = 0.1  # times as far from one number as from another: it says that this one is right
_ROUNDED = 1e4  # times what rounding makes of a difference: no error, however small the difference is


def cost(case: Case) -> int:
    """Return how many numbers are worked out for the differences by every variable at a point."""
    return _STEPS * case.width * sum(n.size for n in scheduled([case.cut[0]]))


@dataclass(frozen=True)
class Witness:
    """Finite differences at points: by every variable, or once along a random direction where that is too much.

    Of a claim about single entries, such as the diagonal, they are by some of the variables where all are too many: a
    direction tells something of a row only if the claim has all entries of the row that count along it.  `directions`
    are of shape (variables, repeats, points).
    """

    case: Case
    points: Named
    directions: Array
    result: Difference

    @property
    def corner(self) -> Array:
        """At which points the base has a corner."""
        return np.asarray((self._by_point(self.result.corner) & self._told).any(axis=(0, 1)))

    @property
    def defined(self) -> Array:
        """At which points the base is finite on both sides, so that it may have a derivative."""
        return np.asarray((np.isfinite(self._by_point(self.result.error)) | ~self._told).all(axis=(0, 1)))

    def agrees(self, values: Array) -> Array:
        """Return at which points a derivative of these values agrees with the differences."""
        return np.asarray((self._agrees(values) | ~self._told).all(axis=(0, 1)))

    def contradicts(self, values: Array) -> Array:
        """Return at which points a difference that is trusted says that these are not the values of the derivative."""
        size = self._along(values, np.abs)
        off = ~self._agrees(values) & self._told
        return np.asarray((off & self._by_point(_trusted(self.result, size))).any(axis=(0, 1)))

    @np.errstate(all="ignore")
    def prefers(self, yours: Array, truth: Array) -> Array:
        """Return at which points a difference contradicts the derivative `truth`, and agrees with the claim `yours`."""
        off, other = (np.abs(self.result.value - self._along(v)) for v in (yours, truth))
        nearer = self._by_point(off < _NEARER * other) & self._agrees(yours) & self._told
        return np.asarray(nearer.any(axis=(0, 1)))

    def _agrees(self, values: Array) -> Array:
        expected, size = self._along(values), self._along(values, np.abs)
        result = _agree(self.result, expected, size)
        if not result.all():
            terms = term_numbers(self.case.graph, self.points, [self.case.truth])[0]
            result = _agree(self.result, expected, size, UNIT * self._along(terms, np.abs))
        return self._by_point(result)

    def _along(self, values: Array, of: Callable[[Array], Array] = np.asarray) -> Array:
        """Return the derivatives along the directions, of shape (elements of the base, repeats and points)."""
        size, count = self.case.base.size, values.shape[-1]
        parts = np.zeros((size, self.case.width, count))
        parts[self.case.cells] = of(values)
        return np.asarray(np.einsum("rcp,cdp->rdp", parts, of(self.directions)).reshape(size, -1))

    @cached_property
    def _told(self) -> Array:
        """Whether the claim has all entries that count, of shape (elements of the base, repeats, 1)."""
        missing = np.ones((self.case.base.size, self.case.width))
        missing[self.case.cells] = 0
        return np.asarray(missing @ np.abs(self.directions).max(axis=-1, initial=0) == 0)[..., None]

    def _by_point(self, values: Array) -> Array:
        return values.reshape(len(values), *self.directions.shape[1:])


def witness(case: Case, points: Named, seed: int) -> Witness:
    """Return finite differences at points: by every variable, or along a random direction that has a part of each."""
    count = next(iter(points.values())).shape[-1]
    if not count or not case.truth.size:
        none = np.zeros((case.base.size, count))
        return Witness(case, points, np.zeros((case.width, 1, count)), Difference(none, none, none, none, none > 0))
    random = np.random.default_rng(seed)
    if count * cost(case) <= _NUMBERS:
        directions: Array = np.repeat(np.eye(case.width)[:, :, None], count, axis=2)
    elif not case.is_block:
        some = random.permutation(case.width)[: max(1, _NUMBERS * case.width // (count * cost(case)))]
        directions = np.repeat(np.eye(case.width)[:, some, None], count, axis=2)
    else:
        signs = random.integers(0, 2, (case.width, 1, count))
        directions = (2.0 * signs - 1) * _variable_sizes(case, points)[:, None]
    repeated = {name: np.tile(value, directions.shape[1]) for name, value in points.items()}
    result = differences(case, repeated, directions.reshape(case.width, -1))
    return Witness(case, points, directions, result)


@np.errstate(all="ignore")
def _agree(measured: Difference, expected: Array, size: Array, rounding: Array | float = 0.0) -> Array:
    """Return where finite differences agree with `expected`, a sum of numbers of that size with that rounding error."""
    off = np.abs(measured.value - expected)
    near = off <= _SURE * size + _DOUBTS * measured.error + measured.rounding + rounding
    return np.asarray(near & _trusted(measured, size, rounding))


def _trusted(measured: Difference, size: Array, rounding: Array | float = 0.0) -> Array:
    """Return where differences decide something, of numbers of that size with that rounding error."""
    least = measured.rounding + rounding
    return np.asarray(measured.error <= np.maximum(_TRUSTED * np.maximum(size, measured.slope), _ROUNDED * least))


def _variable_sizes(case: Case, points: Named) -> Array:
    """Return the size of each variable of the claim at points: of one that is 0, that of the largest."""
    (at,) = numbers(case.graph, points, [case.by])
    whole = step_size(at, np.ones_like(at))
    at = np.abs(at[case.columns])
    return np.where(at > 0, at, whole)


def differences(case: Case, points: Named, directions: Array) -> Difference:
    """Return the differences of all elements of the base along a direction at each point.

    `directions` is of shape (variables of the claim, points).  Where the base is made of analytic functions alone, a
    complex step takes the place of the difference that it agrees with.
    """
    y, x = case.cut
    count = directions.shape[-1]
    (at,) = numbers(case.graph, points, [case.by])
    whole = np.zeros_like(at)
    whole[case.columns] = directions
    graph = Graph.of({**case.graph.inputs, "\0by": x}, {"": y})

    def function(moved: Array) -> Array:
        repeat = moved.shape[-1] // count
        others = {name: np.tile(value, repeat) for name, value in points.items()}
        result = values_of(graph, others | {"\0by": moved.reshape((*x.shape, -1))}, [y])[y]
        return np.asarray(np.broadcast_to(result, (*y.shape, moved.shape[-1])).reshape(y.size, -1))

    def terms() -> Array:
        return term_numbers(case.graph, points, [case.base])[0]

    result = along(function, at, whole, terms)
    return refined(function, result, at, whole) if is_analytic([y]) else result


def difference(case: Case, point: Named, entry: int) -> tuple[float, float]:
    """Return the difference of one entry of the claim at one point, and about how far it may be off."""
    row, variable = (int(each[entry]) for each in case.cells)
    direction = np.zeros((case.width, 1))
    direction[variable] = 1
    result = differences(case, {name: value[..., None] for name, value in point.items()}, direction)
    return float(result.value[row, 0]), float(result.error[row, 0])
