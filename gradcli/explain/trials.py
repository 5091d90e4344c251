"""Points at which a claim is tried, and the numbers there: the right derivative's, the claim's, the differences'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gradcli.engine.differences import along
from gradcli.engine.evaluate import values_of
from gradcli.explain.results import Array, Named
from gradcli.graph.graph import Graph
from gradcli.graph.jacobian import jacobian
from gradcli.graph.node import Node, const, leaf
from gradcli.graph.substitute import substituted

_CANDIDATES = 400  # points that are drawn at a time
_NUMBERS = 4_000_000  # that are worked out at a time
_SCALES = (1.0, 0.5, 2.0, 1.0, 0.3, 5.0)
_FAR = 5  # powers of 10 up to which numbers are drawn where nothing near is in the domain
_ROUNDS = 10
_LARGE = 1e8  # numbers that leave no digits for a comparison
_TRUSTED = 1e-3  # how far finite differences may be off where they speak for anything


@dataclass(frozen=True)
class Case:
    """A claim as nodes: `yours` against `truth`, the derivative of `base` by `by`, of its entries at `key` alone.

    `text` is the claim's left side and `said` its right side.  `graph` has the leaves as its inputs, and the cotangents
    of a pullback; `by` is one of them, or an intermediate.
    """

    text: str
    said: str
    graph: Graph
    base: Node
    by: Node
    key: tuple[int | slice, ...]
    truth: Node
    yours: Node

    @cached_property
    def cut(self) -> tuple[Node, Node]:
        """The base as a function of `by`, whatever that is computed from, and the leaf that stands for it."""
        return cut(self.base, self.by)

    @cached_property
    def places(self) -> Array:
        """For each entry of the claim its place in the whole derivative, counted through base and by."""
        whole = np.arange(self.base.size * self.by.size).reshape((*self.base.shape, *self.by.shape))
        return np.asarray(whole[self.key]).reshape(-1)


def cut(base: Node, by: Node) -> tuple[Node, Node]:
    """Return what computes `base` from a leaf in the place of `by`, and that leaf."""
    if by.op == "input":
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
    found = jacobian(Graph.of(inputs, {"": y}), ["\0by"]).outputs
    node = next(iter(found.values()), None) or const(0, (*base.shape, *by.shape))
    return node if x is by else substituted([node], {x: by})[0]


@dataclass(frozen=True)
class Trials:
    """What was tried: the points, along the last axis, and for each the entries of both, flat.

    `counted` tells at which points the comparison says something; `why` at which not: `corner`, `not finite`, `far`.
    """

    points: Named
    truth: Array  # (entries, points)
    yours: Array
    counted: Array
    why: tuple[str, ...]

    @cached_property
    def errors(self) -> Array:
        """The error of each entry at each point, relative to numbers that are larger than 1."""
        with np.errstate(all="ignore"):
            scale = np.maximum(1, np.maximum(np.abs(self.truth), np.abs(self.yours)))
            error = np.abs(self.yours - self.truth) / scale
        same = (self.yours == self.truth) | (np.isnan(self.yours) & np.isnan(self.truth))
        return np.where(same, 0, np.nan_to_num(error, nan=np.inf))

    def at(self, point: int) -> Named:
        """Return one of the points."""
        return {name: value[..., point] for name, value in self.points.items()}

    def chosen(self, points: Array) -> Trials:
        """Return some of the points."""
        picked = {name: value[..., points] for name, value in self.points.items()}
        whys = tuple(self.why[k] for k in points)
        return Trials(picked, self.truth[:, points], self.yours[:, points], self.counted[points], whys)


def numbers(graph: Graph, points: Named, nodes: Sequence[Node]) -> list[Array]:
    """Return the values of nodes at points as arrays of shape (elements, points)."""
    count = next(iter(points.values())).shape[-1]
    found = values_of(graph, points, nodes)
    return [np.broadcast_to(found[n], (*n.shape, count)).reshape(n.size, count).astype(float) for n in nodes]


def given(case: Case, points: Sequence[Named], seed: int) -> Trials:
    """Return the trials at points that the user gave; cotangents are drawn."""
    missing = {name: x.shape for name, x in case.graph.inputs.items() if name not in points[0]}
    random = _draw(np.random.default_rng(seed), missing, len(points))
    own = {name: np.stack([p[name] for p in points], axis=-1) for name in points[0]}
    return _tried(case, {name: (own | random)[name] for name in case.graph.inputs})


def drawn(case: Case, count: int, seed: int) -> Trials:
    """Return trials at that many random points, of both signs and several magnitudes, within the domain of all.

    Points of the domain are found by drawing more than are wanted, and from farther away where nothing near is in it.
    """
    random = np.random.default_rng(seed)
    inputs = {name: x.shape for name, x in case.graph.inputs.items()}
    total = sum(x.size for x in case.graph.inputs.values()) + 2 * case.truth.size + 4 * case.base.size
    many = int(np.clip(_NUMBERS // max(1, total), count, _CANDIDATES))
    kept: list[Named] = []
    for tries in range(_ROUNDS):
        points = _draw(random, inputs, many, far=tries > 1)
        truth, yours, base = numbers(case.graph, points, [case.truth, case.yours, case.base])
        whole = np.concatenate([truth, yours, base])
        fine = np.isfinite(whole).all(axis=0) & (np.abs(whole).max(axis=0, initial=0) < _LARGE)
        kept.append({name: value[..., fine] for name, value in points.items()})
        if sum(next(iter(p.values())).shape[-1] for p in kept) >= 2 * count:
            break
    joined = {name: np.concatenate([p[name] for p in kept], axis=-1)[..., : 2 * count] for name in inputs}
    found = _tried(case, joined)
    some = np.flatnonzero(found.counted)[:count]
    return found.chosen(some if len(some) else np.arange(min(count, len(found.counted))))


def _draw(random: np.random.Generator, inputs: Mapping[str, tuple[int, ...]], count: int, far: bool = False) -> Named:
    """Return points whose numbers have two digits: all of one sign or of both, and of several magnitudes.

    If `far`, each input has a sign and a magnitude of its own.
    """
    scale = random.choice(_SCALES, size=count)
    style = random.integers(0, 4, size=count)
    points: Named = {}
    for name, shape in inputs.items():
        if far:
            scale = random.choice(_SCALES, size=count) * 10.0 ** random.integers(0, _FAR, size=count)
            style = random.integers(0, 4, size=count)
        values = random.normal(size=(*shape, count)) * scale
        values = np.where(style == 1, np.abs(values), values)
        values = np.where(style == 2, random.uniform(0, 1, size=values.shape), values)
        points[name] = _two_digits(np.where(values == 0, scale, values))
    return points


def _two_digits(values: Array) -> Array:
    unit = 10.0 ** (np.floor(np.log10(np.abs(values))) - 1)
    rounded = np.round(values / unit) * unit
    return np.array([float(f"{e:.2g}") for e in rounded.reshape(-1)]).reshape(values.shape)


def _tried(case: Case, points: Named) -> Trials:
    truth, yours, base = numbers(case.graph, points, [case.truth, case.yours, case.base])
    count = truth.shape[-1]
    if not count:
        return Trials(points, truth, yours, np.zeros(0, dtype=bool), ())
    finite = np.isfinite(base).all(axis=0) & np.isfinite(truth).all(axis=0)
    entry = np.arange(count) % max(1, len(case.places))
    value, error, corner = differences(case, points, entry)
    expected = truth[entry, np.arange(count)] if len(truth) else np.zeros(count)
    with np.errstate(all="ignore"):
        off = np.abs(value - expected) / np.maximum(1, np.abs(expected))
        trusted = off <= _TRUSTED + error / np.maximum(1, np.abs(expected))
    why = np.where(~finite, "not finite", np.where(corner, "corner", np.where(trusted, "", "far")))
    return Trials(points, truth, yours, why == "", tuple(why.tolist()))


def differences(case: Case, points: Named, entries: Array) -> tuple[Array, Array, Array]:
    """Return at each point the finite difference of one entry, its error, and whether the base has a corner there."""
    y, x = case.cut
    count = len(entries)
    place = case.places[entries]
    row, column = place // case.by.size, place % case.by.size
    (at,) = numbers(case.graph, points, [case.by])
    direction = np.zeros_like(at)
    direction[column, np.arange(count)] = 1
    inputs = {**case.graph.inputs, "\0by": x}
    graph = Graph.of(inputs, {"": y})

    def function(moved: Array) -> Array:
        repeat = moved.shape[-1] // count
        others = {name: np.tile(value, repeat) for name, value in points.items()}
        own = {"\0by": moved.reshape((*x.shape, -1))}
        found = values_of(graph, others | own, [y])[y]
        found = np.broadcast_to(found, (*y.shape, moved.shape[-1])).reshape(y.size, -1)
        return np.asarray(found[np.tile(row, repeat), np.arange(moved.shape[-1])])

    found = along(function, at, direction)
    return found.value, found.error, found.corner
