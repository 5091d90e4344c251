"""The numbers that a diagnosis reads: the derivative's and the claim's, at all points that count."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import islice
from typing import TypeVar

import numpy as np

from gradcli.engine.rounding import UNIT, relative_errors
from gradcli.explain.check.claim import Case, numbers, term_numbers
from gradcli.explain.check.proof import Proof
from gradcli.explain.results import Array, Named
from gradcli.graph.construct import index
from gradcli.graph.graph import scheduled
from gradcli.graph.kinds import of_kinds
from gradcli.graph.names import ElementName
from gradcli.graph.node import Node
from gradcli.notation.nodes import Notation, written_size

_READABLE = 120  # operations of an expression that is written: more are longer than a few lines
_DENOMINATOR = 60  # of a fraction that a number is taken to be: larger ones are near any number
_DIGITS = 1e3  # times its rounding: a number of which some digits are known
_WORK = 1_000_000  # nodes that are computed for the candidates of an explanation: more would keep the reader waiting
# Powers of numbers that are simple fractions of units, and how those numbers are written.
_FORMS = (
    (1, 1.0, "{}"), (2, 1.0, "sqrt({})"), (1, math.pi, "{}*pi"), (1, 1 / math.pi, "{}/pi"),
    (1, math.log(10), "{}*log(10)"), (1, 1 / math.log(10), "{}/log(10)"),
    (1, math.log(2), "{}*log(2)"), (1, 1 / math.log(2), "{}/log(2)"),
)  # fmt: skip

Tried = TypeVar("Tried")


@dataclass(frozen=True)
class Evidence:
    """The numbers of a claim at the points that count."""

    case: Case
    points: Named
    truth: Array  # (entries, points)
    yours: Array
    tolerance: float
    proof: Proof
    entry: int

    def equal(self, a: Array, b: Array) -> bool:
        """Return whether two arrays, of values at all points or at the first ones, agree at each of them."""
        rounding = self.rounding[: a.shape[-1]]
        return bool(np.isfinite(a).all() and (relative_errors(a, b, rounding) <= self.tolerance).all())

    @cached_property
    def rounding(self) -> Array:
        """The largest rounding error of the entries, at each point."""
        terms = term_numbers(self.case.graph, self.points, [self.case.truth, self.case.yours])
        return np.asarray(UNIT * np.concatenate(terms).max(axis=0, initial=0))

    def right(self, yours: Array) -> bool:
        """Return whether this is the right derivative."""
        return self.equal(yours, self.truth)

    def evaluate(self, *nodes: Node) -> list[Array]:
        """Return the values of nodes at the points, of shape (elements, points)."""
        return numbers(self.case.graph, self.points, nodes)

    def some(self, candidates: Iterable[Tried]) -> Iterator[Tried]:
        """Return as many candidates as there is time to try: fewer of a large system, each of which takes long."""
        return islice(candidates, max(1, _WORK // self._size))

    @cached_property
    def _size(self) -> int:
        return len(scheduled([self.case.truth, self.case.yours]))

    def write(self, node: Node) -> str:
        """Return a node as the user might write it; of what nobody would read, that there is something."""
        names = self.notation.names
        return self.notation.name(node) if node in names or written_size(node, names) <= _READABLE else "…"

    @cached_property
    def notation(self) -> Notation:
        """The notation of nodes, with the user's names."""
        graph = self.case.graph
        named = {n: name for name, n in graph.names.items() if n.args and not isinstance(name, ElementName)}
        return Notation(named | {n: name for name, n in graph.inputs.items()}, implicit=True)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the derivative."""
        return self.case.truth.shape

    def part(self, key: tuple[int | range, ...]) -> Evidence:
        """Return the evidence of the entries at a key alone."""
        rows = np.arange(len(self.truth)).reshape(self.shape)
        for axis, k in reversed(list(enumerate(key))):
            rows = np.take(rows, np.asarray(k), axis)
        rows = rows.reshape(-1)
        case = replace(self.case, truth=index(self.case.truth, key), yours=index(self.case.yours, key))
        proof = self.proof if len(rows) == 1 else Proof()  # it is of one entry
        return Evidence(case, self.points, self.truth[rows], self.yours[rows], self.tolerance, proof, 0)

    def at(self, points: Named) -> Evidence:
        """Return the evidence at other points, or those near them at which inputs are of their kinds."""
        points = of_kinds(self.case.kinds, points)
        truth, yours = numbers(self.case.graph, points, [self.case.truth, self.case.yours])
        return Evidence(self.case, points, truth, yours, self.tolerance, Proof(), self.entry)

    def ratio(self) -> float | None:
        """Return the number that yours is times the truth everywhere, if there is one."""
        return self.quotient(self.yours, self.truth)

    def quotient(self, a: Array, b: Array) -> float | None:
        """Return the number that `a` is times `b` at every point, or at each of the first ones, if there is one."""
        some = np.abs(b) > _DIGITS * self.rounding[: b.shape[-1]]
        if not some.any():
            return None
        ratio = float(np.median(a[some] / b[some]))
        return ratio if self.equal(a, ratio * b) else None

    def in_shape(self, node: Node) -> Array | None:
        """Return a node's values as a factor of the claim's entries: a number, or an array of the variable's shape."""
        (result,) = self.evaluate(node)
        if result.shape[0] == 1:
            return np.broadcast_to(result, self.truth.shape)
        trailing = self.shape[len(self.shape) - len(node.shape) :]
        if trailing != node.shape:
            return None
        return np.broadcast_to(result.reshape(*node.shape, -1), (*self.shape, result.shape[-1])).reshape(
            len(self.truth), -1
        )


def number(value: float, tolerance: float) -> str:
    """Return a number as it is best written.

    >>> number(0.5, 1e-9), number(-(2**0.5), 1e-9), number(2 * math.pi, 1e-9), number(1.23456789, 1e-9)
    ('1/2', '-sqrt(2)', '2*pi', '1.23457')
    """
    result = exact(value, tolerance)
    return f"{value:.6g}" if result is None else result


def fraction(value: float, tolerance: float) -> Fraction | None:
    """Return the fraction with a small denominator that a number is near, other than 0."""
    near = Fraction(value).limit_denominator(_DENOMINATOR)
    return near if near and abs(float(near) - value) <= tolerance * max(1, abs(value)) else None


def exact(value: float, tolerance: float) -> str | None:
    """Return a number as a simple fraction, a root of one, or one times π or a logarithm, if it is near one."""
    for power, unit, form in _FORMS:
        if near := fraction(abs(value) ** power / unit, tolerance):
            text = form.format(near).removeprefix("1*")
            return f"-{text}" if value < 0 else text
    return None
