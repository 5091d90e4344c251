"""Points in each region of a system: on both sides of every condition and corner, so that no branch stays untried.

The conditions are those in the graphs of the system, of its derivative and of the claim: the derivative of a function
with a corner has one there.  Along straight lines, the points where a condition changes are found by bisection, and
those where it nearly does, as in a narrow window, by a search for the least distance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gradcli.graph.graph import scheduled
from gradcli.graph.kinds import of_kinds
from gradcli.graph.node import Node, compare
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.shapes import size_of
from gradcli.pages.check.claim import Case, numbers, numbers_of
from gradcli.pages.results import Array, Named

_CONDITIONS = 100  # elements of conditions that are looked at: each is a search
_JOINT = 6  # conditions of which every combination is looked for: 64 combinations
_PATTERNS = 12  # points that are added for such combinations: half as many as are drawn
_VALUES = 4  # of a step function: more differ in nothing that a derivative shows
_COORDINATES = 12  # along which lines are taken by each input's element: each is a line of 20 points
_BASES = 3  # points through which lines are taken: a border that is missed by three is rarely met
_WORK = 4_000_000  # numbers that are computed along the lines: more would keep the reader waiting
# Distances along a line, two for each power of ten, in both directions.
_GRID = np.array([m * 10.0**k for k in range(-3, 7) for m in (1, 3)])
_CELLS = 200  # that are searched at a time, of a small system: more would keep the reader waiting
_SEARCHED = 1_000_000  # numbers that are computed for one point in each of them: more would keep the reader waiting
_LARGE = 20_000  # numbers that are computed at a point of a system that is too large to be searched
_SECTIONS = 32  # of a cell, at a step of a search: one evaluation at as many points
_STEPS = 7  # of a search: a border is known to about ten digits then
_TRIES = 4  # of points in regions that have none yet which decides something
_ROUNDS = 3  # of dividing the lines where states change
_BESIDE = 1e-6  # relative distance at which a region goes on: a point in it lies on no border
_ORDERS = ("<", "<=", ">", ">=")
_CLOSE = 1e-9  # relative distance of points that are not separated: about what rounding makes


def visit_regions(case: Case, points: Named, powers: Mapping[str, int], counts: Callable[[Named], Array]) -> None:
    """Call `counts` with points in regions of the system that none of these points is in.

    It returns which of them decide something: where one does not, others are tried.  `powers` are the powers of ten of
    inputs that are not near 1.
    """
    nodes = [n for n in scheduled([case.base, case.truth, case.yours]) if _has_regions(n)]
    nodes += [side for n in scheduled([case.yours]) for side in _sides(n)]
    space = Space({name: x.shape for name, x in case.graph.inputs.items()}, powers, case.kinds)
    regions = _Regions(case, space, nodes)
    if not nodes or sum(n.size for n in nodes) > _CONDITIONS or regions.cost > _LARGE:
        return
    known = space.flat(points)
    states = regions.states(known)
    if _is_complete(states):
        return
    result = np.empty((len(known), 0))
    for _ in range(2 if len(states) > 1 else 1):  # from the new regions, lines lead to more
        more = regions.new(np.concatenate([result[:, :_BASES], known[:, :_BASES]], axis=1), states, counts)
        states = np.concatenate([states, regions.states(more)], axis=1)
        result = np.concatenate([result, more], axis=1)
        if not more.shape[1] or _is_complete(states):
            break


def _is_complete(states: Array) -> bool:
    """Return whether every condition has been seen true and false, and of few conditions every combination."""
    different, first = np.unique(states, axis=0, return_index=True)
    if (states.min(axis=1, initial=np.inf) == states.max(axis=1, initial=-np.inf)).any():
        return False
    return len(different) > _JOINT or np.unique(states[first], axis=1).shape[1] >= 2 ** len(different)


@dataclass(frozen=True)
class _Regions:
    """The regions into which conditions and step functions of a claim's graphs divide the inputs."""

    case: Case
    space: Space
    nodes: Sequence[Node]

    def states(self, flat: Array) -> Array:
        """Return the values of all conditions, of shape (elements, points)."""
        return self.evaluate(self.space.points(flat))[0]

    def evaluate(self, points: Named) -> tuple[Array, Array]:
        """Return the values of all conditions, and how far what is compared is from being equal.

        Both have the shape (elements, points).
        """
        values = self._values(points)
        differences = values[len(self.nodes) :]
        states = np.nan_to_num(np.concatenate(values[: len(self.nodes)]), nan=np.inf)  # where nan is a state as well
        return states, np.abs(np.concatenate(differences)) if differences else np.empty((0, states.shape[1]))

    @cached_property
    def _values(self) -> Callable[[Named], list[Array]]:
        compared = (n.args for n in self.nodes if n.dtype == "bool" and OPERATIONS[n.op].infix in _ORDERS)
        return numbers_of(self.case.graph, [*self.nodes, *(a - b for a, b in compared)])

    @cached_property
    def cost(self) -> int:
        """The number of values computed at a point, for the conditions and for the system."""
        return sum(n.size for n in scheduled([*self.nodes, self.case.base, self.case.truth, self.case.yours]))

    def new(self, bases: Array, known: Array, counts: Callable[[Named], Array]) -> Array:
        """Return points on lines through the bases that lie in regions with new states, and count."""
        lines = Lines(self.evaluate, self.cost, self.space, bases).divided()
        flat = lines.flat(*lines.between())
        base, truth = numbers(self.case.graph, self.space.points(flat), [self.case.base, self.case.truth])
        order = np.lexsort((strangeness(self.space, flat), ~truth.any(axis=0)))  # where all is 0, little is seen
        flat = flat[:, order[np.isfinite(np.concatenate([base, truth])).all(axis=0)[order]]]
        states, result = self.states(flat), flat[:, :0]
        for _ in range(_TRIES):
            chosen = _choice(states, known)
            if not chosen:
                break
            points = self._rounded(flat[:, chosen])
            good = counts(self.space.points(points))
            result = np.concatenate([result, points[:, good]], axis=1)
            known = np.concatenate([known, states[:, chosen][:, good]], axis=1)
            flat, states = np.delete(flat, chosen, axis=1), np.delete(states, chosen, axis=1)
            if good.all():
                break
        return result

    def _rounded(self, flat: Array) -> Array:
        """Return points with as few digits as leave them in their regions."""
        states = self.states(flat)

        def stay(shorter: Array) -> Array:
            around = [self.states(shorter * (1 + side)) for side in (0, _BESIDE, -_BESIDE)]
            return np.asarray(np.all([(s == states).all(axis=0) for s in around], axis=0))

        return shortest(flat, (rounded(flat, digits) for digits in range(2, 8)), stay)


def _is_step(node: Node) -> bool:
    return node.op in OPERATIONS and OPERATIONS[node.op].kind == "step"


def _has_regions(node: Node) -> bool:
    """Return whether a node is constant in each of several regions, and not different at their borders alone."""
    infix = OPERATIONS[node.op].infix if node.args else ""
    return _is_step(node) or infix in _ORDERS or (infix in ("==", "!=") and any(map(_is_step, node.args)))


def _sides(node: Node) -> Iterator[Node]:
    """Yield conditions that hold on one side of each corner of an elementwise operation: x > 0 for |x|.

    The derivative of the system has them already, and what is compared there alone.
    """
    row = OPERATIONS.get(node.op)
    if row is None or row.kind != "elementwise" or row.corner is None:
        return
    for n in scheduled([row.corner.at(node, *node.args)], node.args):
        if n.op == "eq" and not any(map(_is_step, n.args)):
            yield compare("gt", *n.args)


@dataclass(frozen=True)
class Space:
    """Inputs as one flat vector, and the size that each of its elements usually has."""

    shapes: Mapping[str, tuple[int, ...]]
    powers: Mapping[str, int]
    kinds: Mapping[str, str]

    def flat(self, points: Named) -> Array:
        """Return points as one array of shape (elements, points)."""
        return np.concatenate([points[n].reshape(size_of(s), -1) for n, s in self.shapes.items()])

    def points(self, flat: Array) -> Named:
        """Return the points of such an array, or those near them at which inputs are of their kinds."""
        ends = np.cumsum([size_of(s) for s in self.shapes.values()])[:-1]
        parts = zip(self.shapes.items(), np.split(flat, ends), strict=True)
        return of_kinds(self.kinds, {n: np.reshape(a, (*s, -1)) for (n, s), a in parts})

    @cached_property
    def sizes(self) -> Array:
        """The usual size of each element."""
        return np.concatenate([np.full(size_of(s), 10.0 ** self.powers.get(n, 0)) for n, s in self.shapes.items()])

    def lines(self, base: Array) -> Iterator[tuple[Array, Array]]:
        """Yield a point and a direction for each line through a base: along elements, along inputs, along all."""
        count = len(base)
        for k in range(min(count, _COORDINATES)):
            moved = np.arange(count) == k
            yield np.where(moved, 0, base), moved * self.sizes
        start = 0
        for shape in self.shapes.values():
            end = start + size_of(shape)
            moved = (np.arange(count) >= start) & (np.arange(count) < end)
            start = end
            if moved.sum() > 1:
                yield np.where(moved, 0, base), np.where(moved, base, 0)
        if len(self.shapes) > 1:
            yield np.zeros(count), base


class Lines:
    """Points on lines, sorted by their lines and along each, with the states and distances of the conditions there.

    `evaluate` returns states, and how far those of numbers are from a change, both of shape (elements, points); `cost`
    is the number of values that it computes at a point, and `cells` that of the parts of lines searched at a time.
    `starts` and `directions` are of shape (elements, lines).
    """

    def __init__(self, evaluate: Callable[[Named], tuple[Array, Array]], cost: int, space: Space, bases: Array) -> None:
        """Take the points of a grid on each line through the bases."""
        self.evaluate, self.space = evaluate, space
        self.cells = int(np.clip(_SEARCHED // cost, 1, _CELLS))
        lines = [line for base in bases.T for line in space.lines(base)]
        most = max(1, _WORK // (2 * len(_GRID) * cost))
        self.starts, self.directions = (np.stack(each, axis=1) for each in zip(*lines[:most], strict=True))
        grid, count = np.sort([*-_GRID, *_GRID]), len(lines[:most])
        self.line, self.t = np.repeat(np.arange(count), len(grid)), np.tile(grid, count)
        self.states, self.distances = self.at(self.line, self.t)

    def flat(self, line: Array, t: Array) -> Array:
        """Return the points at t on lines, of shape (elements, points)."""
        return np.asarray(self.starts[:, line] + t * self.directions[:, line])

    def at(self, line: Array, t: Array) -> tuple[Array, Array]:
        """Return the states and the distances at t on lines."""
        return self.evaluate(self.space.points(self.flat(line, t)))

    def insert(self, line: Array, t: Array) -> None:
        """Add points at t on lines."""
        states, distances = self.at(line, t)
        line, t = np.concatenate([self.line, line]), np.concatenate([self.t, t])
        order = np.lexsort((t, line))
        self.line, self.t = line[order], t[order]
        self.states = np.concatenate([self.states, states], axis=1)[:, order]
        self.distances = np.concatenate([self.distances, distances], axis=1)[:, order]

    @property
    def apart(self) -> Array:
        """Whether each point has a next one on its line, further than the neighbouring float; not of the last."""
        gap = np.diff(self.t) > _CLOSE * np.maximum(np.abs(self.t[1:]), np.abs(self.t[:-1]))
        return np.asarray(gap & (self.line[1:] == self.line[:-1]))

    def divided(self) -> Lines:
        """Insert the points at which conditions change or nearly do, until there are no others."""
        for _ in range(_ROUNDS):
            changed = self.apart & (self.states[:, 1:] != self.states[:, :-1]).any(axis=0)
            line, at = self.nearest()
            if len(changes := np.flatnonzero(changed)[: self.cells]):
                ends, low, high = self.changes(changes)
                line, at = np.concatenate([line, ends, ends]), np.concatenate([at, low, high])
            if not len(line):
                break
            self.insert(line, at)
        return self

    def changes(self, cells: Array, steps: int = _STEPS) -> tuple[Array, Array, Array]:
        """Return the lines, and the points on both sides of where the state that a cell begins with ends."""
        line, low, high, first = self.line[cells], self.t[cells], self.t[cells + 1], self.states[:, cells]
        share = np.arange(1, _SECTIONS)[:, None] / _SECTIONS
        for _ in range(steps):
            inner = low + share * (high - low)
            states = self.at(np.tile(line, len(share)), inner.reshape(-1))[0].reshape(len(first), *inner.shape)
            same = (states == first[:, None]).all(axis=0)
            kept = np.where(same.all(axis=0), len(share), same.argmin(axis=0))  # sections that the state lasts for
            width = (high - low) / _SECTIONS
            low, high = low + kept * width, low + (kept + 1) * width
        return line, low, high

    def nearest(self) -> tuple[Array, Array]:
        """Return lines, and points at which what is compared is nearest to being equal, on one side of it."""
        distances = np.nan_to_num(self.distances, nan=np.inf)
        inside = (self.line[2:] == self.line[:-2]) & self.apart[1:] & self.apart[:-1]
        least = (distances[:, 1:-1] < distances[:, :-2]) & (distances[:, 1:-1] <= distances[:, 2:])
        same = (self.states[:, 2:] == self.states[:, :-2]).all(axis=0)
        which, cells = np.nonzero(least & (inside & same)[None])
        which, cells = which[: self.cells], cells[: self.cells]
        line, low, high = self.line[cells], self.t[cells], self.t[cells + 2]
        share = np.arange(_SECTIONS + 1)[:, None] / _SECTIONS
        for _ in range(_STEPS if len(cells) else 0):
            inner = low + share * (high - low)
            values = self.at(np.tile(line, len(share)), inner.reshape(-1))[1].reshape(-1, *inner.shape)
            best = np.nan_to_num(values[which, :, np.arange(len(which))], nan=np.inf).argmin(axis=1)
            width = (high - low) / _SECTIONS
            low, high = low + np.maximum(best - 1, 0) * width, low + np.minimum(best + 1, _SECTIONS) * width
        return line, (low + high) / 2

    def between(self) -> tuple[Array, Array]:
        """Return lines and the midpoints between the known points, none of which lies on a border."""
        cells = np.flatnonzero(self.apart)
        return self.line[cells], (self.t[cells] + self.t[cells + 1]) / 2


def strangeness(space: Space, flat: Array) -> Array:
    """Return by how many powers of ten the numbers of each point differ from their usual sizes."""
    sizes = np.abs(flat) / space.sizes[:, None]
    return np.asarray(np.abs(np.log10(np.where(sizes == 0, 1, sizes))).max(axis=0))


def _choice(states: Array, known: Array) -> list[int]:
    """Return as few points as have every state of each condition, and of few conditions every combination."""
    chosen: list[int] = []
    had = [set(row.tolist()) for row in known]
    for row, values in zip(states, had, strict=True):
        for value in np.unique(row).tolist():
            if value not in values and len(values) < _VALUES:
                chosen.append(int(np.flatnonzero(row == value)[0]))
                for each, other in zip(had, states[:, chosen[-1]].tolist(), strict=True):
                    each.add(other)
    if len(np.unique(np.concatenate([known, states], axis=1), axis=0)) <= _JOINT:
        patterns = {tuple(s) for s in np.concatenate([known, states[:, chosen]], axis=1).T.tolist()}
        different, first = np.unique(states, axis=1, return_index=True)
        new = [
            k for pattern, k in zip(different.T.tolist(), first.tolist(), strict=True) if tuple(pattern) not in patterns
        ]
        chosen += sorted(new)[:_PATTERNS]
    return chosen


@np.errstate(all="ignore")
def rounded(flat: Array, digits: int) -> Array:
    """Return numbers with so many significant digits."""
    power = digits - 1 - np.floor(np.log10(np.where(flat == 0, 1, np.abs(flat))))
    result = np.round(flat * 10.0**power) / 10.0**power
    return np.asarray(np.where(np.isfinite(result), result, flat))


def shortest(flat: Array, shorter: Iterable[Array], stay: Callable[[Array], Array]) -> Array:
    """Return for each point the first of the shorter ones that is still what it was; the point itself for none."""
    result, pending = flat.copy(), np.ones(flat.shape[1], dtype=bool)
    for points in shorter:
        if not pending.any():
            break
        good = pending & stay(points)
        result[:, good] = points[:, good]
        pending &= ~good
    return result
