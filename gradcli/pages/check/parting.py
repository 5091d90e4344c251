"""Single points at which a claim may part from the derivative that it equals elsewhere: those on borders of the claim.

A border is met where a denominator of the claim is 0, where two numbers that it compares are equal, and so on.  Points
of each border are found along lines: exactly where the function that is 0 there is linear along a line, else between
two points at which it has different signs, or where it is least.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import numpy as np

from gradcli.engine.rounding import UNIT
from gradcli.engine.wide import wide_values
from gradcli.graph.construct import broadcast
from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.kinds import holds
from gradcli.graph.names import element_names
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.rewrite import common_subexpressions, rewritten
from gradcli.notation.nodes import Notation
from gradcli.pages.check.borders import Border, borders, on_borders
from gradcli.pages.check.claim import Case, numbers, numbers_of, term_numbers, witness
from gradcli.pages.check.regions import Lines, Space, rounded, shortest, strangeness
from gradcli.pages.check.trials import Trials, compared
from gradcli.pages.results import Array, Named

_ELEMENTS = 100  # of the functions that are 0 on borders: each is a search
_LARGE = 20_000  # numbers that are computed at a point of a system that is too large to be searched
_BASES = 3  # points through which lines are taken
_MORE = 6  # of the points found, through which further lines are taken: there several borders may meet
_EXACT = 14  # steps of a search down to neighbouring floats
_EACH = 8  # points of each border
_MOST = 60  # points on borders that are tried
_DIGITS = (2, 3, 4, 6, 9, 12, 15)  # that a point is rounded to, if it stays on its border
_CANDIDATES = 3000  # points that may lie on borders
_MATRIX = 2  # axes of an array that is no vector
_INVERSES = ("inv", "solve")
_LAST = 1e-15  # relative change of the last digit or two
_FAINT = 1e-290  # what is smaller all around a point has underflowed
_BESIDE = 1e-5  # relative distance from a pole: so near, the square and the cube of what is 0 there are 0 by rounding
_NOUGHT = 1e-9  # of the usual size of an element, below which it is taken to be 0; and of numbers that are equal


@dataclass(frozen=True)
class Parting:
    """What was seen on the borders of a claim.

    `trials` are the points there at which the claim is not the derivative.  `unknown` is whether there may be others:
    the claim has borders on which no number decides.  `narrow` is whether the claim has no value at some points where
    it is assumed to be used nowhere: at a matrix without an inverse, and where a parameter that it divides by is 0.
    """

    trials: Trials | None = None
    unknown: bool = False
    narrow: bool = False
    search: _Search | None = None

    def where(self, at: Named) -> tuple[str, Sequence[str]]:
        """Return where the claim and the derivative part, such as `at x = 0`, and the inputs that are named.

        `at` is one of the points.
        """
        assert self.search is not None
        assert self.trials is not None
        return self.search.where(at, self.trials.points)


def all_on_borders(case: Case, wrong: Trials, powers: Mapping[str, int]) -> Parting | None:
    """Return the points at which a claim is wrong as exceptions, if all of them lie on borders; else None."""
    search = _Search.of(case, powers)
    if not search.mine or search.size > _ELEMENTS or search.cost > _LARGE:
        return None
    on = search.is_zero(search.space.flat(wrong.points)).any(axis=0).all()
    return Parting(wrong, search=search) if on else None


def parting(case: Case, known: Trials, powers: Mapping[str, int], tolerance: float, seed: int) -> Parting:
    """Return where a claim that is right at the `known` points is not on its borders.

    `powers` are the powers of ten of inputs that are not near 1.
    """
    search = _Search.of(case, powers)
    bases = known.chosen(np.flatnonzero(known.counted)[:_BASES]).points
    if not search.mine or not known.counted.any():
        return Parting()
    if search.size > _ELEMENTS or search.cost > _LARGE:
        return Parting(unknown=True)
    flat = search.found(bases)
    flat = flat[:, ~search.is_beside(flat)]
    if not flat.shape[1]:
        return Parting()
    trials, open_ = search.tried(flat, seed, tolerance)
    is_wrong = trials.wrong(tolerance)
    narrow = is_wrong & ~np.isfinite(trials.yours).all(axis=0) & ~search.is_zero(flat)[search.own_rows].any(axis=0)
    wrong = np.flatnonzero(is_wrong & ~narrow)
    return Parting(trials.chosen(wrong) if len(wrong) else None, bool(open_.any()), bool(narrow.any()), search)


@dataclass(frozen=True)
class _Search:
    """The borders of a claim and those of its system, in graphs that share their nodes, and the space of the inputs."""

    case: Case
    space: Space
    same: Mapping[Node, Node]
    mine: Sequence[Border]
    others: Sequence[Border]
    zeros: Sequence[Node]  # the functions that are 0 on the borders of the claim
    poles: Sequence[Node] = ()  # those that are 0 where the system is not finite

    @staticmethod
    def of(case: Case, powers: Mapping[str, int]) -> _Search:
        same = common_subexpressions(scheduled([case.yours, case.truth, case.base]))
        inputs = {x: case.kinds.get(n) == "positive" and len(x.shape) < _MATRIX for n, x in case.graph.inputs.items()}
        space = Space({name: x.shape for name, x in case.graph.inputs.items()}, powers, case.kinds)
        mine = borders([same[case.yours]], inputs)
        poles = _poles(same[case.base], inputs) if mine else set()
        if mine:
            mine = [b for b in mine if b.zero not in poles or b.on is not None]
        own = {b.node for b in mine}
        system = borders([same[case.truth], same[case.base]], inputs) if mine else []
        zeros = list(dict.fromkeys(b.zero for b in mine))
        return _Search(case, space, same, mine, [b for b in system if b.node not in own], zeros, tuple(poles))

    @property
    def size(self) -> int:
        """The number of elements whose zeros are looked for."""
        return sum(b.zero.size for b in self.mine)

    @cached_property
    def cost(self) -> int:
        """The number of values computed at a point."""
        case = self.case
        return sum(n.size for n in scheduled([*self.zeros, case.base, case.truth, case.yours]))

    @cached_property
    def values(self) -> Callable[[Named], Array]:
        """The function of points that returns the values of these functions, of shape (elements, points)."""
        of_each = numbers_of(self.case.graph, self.zeros)
        return lambda points: np.concatenate(of_each(points))

    def evaluate(self, points: Named) -> tuple[Array, Array]:
        """Return their signs and sizes."""
        values = self.values(points)
        return np.sign(values), np.abs(values)

    def found(self, bases: Named) -> Array:
        """Return points on the borders."""
        flat, zero, near = self._along_lines(self.space.flat(bases))
        equalities = sum(b.zero.size for b in self.mine if b.node.op in ("eq", "ne"))
        chosen = flat[:, self._plainest(flat, zero)[:_MORE]]
        missed = near[:, :_MORE] if not zero.any(axis=1).all() else near[:, :0]
        if missed.shape[1] or (equalities > 1 and chosen.shape[1]):
            further = np.concatenate([chosen, missed], axis=1) if equalities > 1 else missed
            more, more_zero, _ = self._along_lines(further)
        else:
            more, more_zero = self._on_borders(self._plain(chosen))
        flat, zero = np.concatenate([flat, more], axis=1), np.concatenate([zero, more_zero], axis=1)
        return np.asarray(flat[:, self._plainest(flat, zero)])

    def _along_lines(self, bases: Array) -> tuple[Array, Array, Array]:
        """Return points on the borders along lines through bases, what is 0 there, and points that are only near."""
        lines = Lines(self.evaluate, self.cost, self.space, bases)
        changed = (lines.states[:, 1:] != lines.states[:, :-1]).any(axis=0)
        line, low, high = lines.changes(np.flatnonzero((lines.line[1:] == lines.line[:-1]) & changed), _EXACT)
        least, at = lines.nearest()
        further, linear = _extended(lines)
        on = np.flatnonzero((lines.states == 0).any(axis=0))
        parts = ((lines.line[on], lines.t[on]), (line, low), (line, high), (least, at), (further, linear))
        flat = lines.flat(*map(np.concatenate, zip(*parts, strict=True)))
        near = lines.flat(least, at)
        short = [rounded(near, digits) for digits in _DIGITS[:4]]
        flat, zero = self._on_borders(np.concatenate([self._plain(bases), *short, flat], axis=1)[:, :_CANDIDATES])
        near = short[-1]
        return flat, zero, near[:, ~self.is_zero(near).any(axis=0)] if near.shape[1] else near

    def _on_borders(self, flat: Array) -> tuple[Array, Array]:
        """Return those of some points that lie on borders, with few digits, and which functions are 0 there."""
        flat = self.space.flat(self.space.points(flat))
        zero = self.is_zero(flat)
        on = zero.any(axis=0)
        flat, zero = flat[:, on], zero[:, on]
        without_tiny = np.where(np.abs(flat) < _NOUGHT * self.space.sizes[:, None], 0, flat)
        shorter = chain([without_tiny], (rounded(flat, digits) for digits in _DIGITS))
        flat = shortest(flat, shorter, lambda points: np.asarray((self.is_zero(points) | ~zero).all(axis=0)))
        return flat, self.is_zero(flat) if flat.shape[1] else zero

    def _plain(self, bases: Array) -> Array:
        """Return bases with one element, with one input, or with all, replaced by 0."""
        parts = [d != 0 for _, d in self.space.lines(np.ones(len(bases)))]
        return np.concatenate([np.where(moved[:, None], 0, bases) for moved in parts], axis=1)

    def is_zero(self, flat: Array) -> Array:
        """Return which of the functions are 0 at points, up to rounding: also that of an input's own digits."""
        points, values = self.space.points(flat), self.values(self.space.points(flat))
        signs = np.where(np.arange(len(flat)) % 2, 1, -1)[:, None]
        moved = [self.values(self.space.points(flat * (1 + side * _LAST * signs))) for side in (1, -1)]
        change = np.min([np.abs(m - values) for m in moved], axis=0)  # of a jump, that on one side is small
        terms = np.concatenate(term_numbers(self.case.graph, points, self.zeros))
        zero = np.asarray(np.abs(values) <= UNIT * terms + change)
        faint = np.flatnonzero((zero & (np.abs(values) < _FAINT) & (flat != 0).all(axis=0)).any(axis=0))
        if faint.size:  # exp(-800) is not 0, and is no more a little further
            zero[:, faint] &= self._changes(self.zeros, flat[:, faint]) >= _FAINT
        return zero

    def is_beside(self, flat: Array) -> Array:
        """Return which points lie beside a pole of the system: a denominator that is multiplied out vanishes there.

        (V + b)**2 is not 0 at b = -V + 1e-8, and V**2 + 2*V*b + b**2 is, in float64.
        """
        if not self.poles or not flat.shape[1]:
            return np.zeros(flat.shape[1], bool)
        points = self.space.points(flat)
        values = np.abs(np.concatenate(numbers(self.case.graph, points, self.poles)))
        terms = np.concatenate(term_numbers(self.case.graph, points, self.poles))
        return np.asarray(((values <= _BESIDE * terms) | (values <= self._changes(self.poles, flat))).any(axis=0))

    def _changes(self, nodes: Sequence[Node], flat: Array) -> Array:
        """Return how much values change where inputs move a little: any two of them to different sides, once."""
        at = numbers_of(self.case.graph, nodes)
        values = np.concatenate(at(self.space.points(flat)))
        result = np.zeros(values.shape)
        for bit in range(len(flat).bit_length()):
            signs = np.where(np.arange(len(flat)) >> bit & 1, 1, -1)[:, None]
            moved = np.concatenate(at(self.space.points(flat * (1 + _BESIDE * signs))))
            result = np.maximum(result, np.abs(moved - values))
        return result

    def _plainest(self, flat: Array, zero: Array) -> list[int]:
        """Return which points are tried: some of each border, of each set of borders that meet, the plainest first."""
        order = np.argsort(strangeness(self.space, flat), kind="stable").tolist()
        conditions = [b.node for b in self.mine if b.node.dtype == "bool"]
        states = np.concatenate([zero, *numbers(self.case.graph, self.space.points(flat), conditions)])
        counts = np.zeros((2, len(zero)), dtype=int)  # of points without a number 0, and with one
        kinds = (flat == 0).any(axis=0).astype(int).tolist()
        met: set[bytes] = set()
        result = []
        short = rounded(flat, _DIGITS[-2])
        for k in order:
            new = {short[:, k].tobytes(), states[:, k].tobytes()} - met
            if short[:, k].tobytes() in new and ((counts[kinds[k], zero[:, k]] < _EACH).any() or len(new) > 1):
                result.append(k)
                counts[kinds[k]] += zero[:, k]
                met |= new
        return result[:_MOST]

    def tried(self, flat: Array, seed: int, tolerance: float) -> tuple[Trials, Array]:
        """Return the trials at points on borders, and at which of them nothing is decided."""
        case, points = self.case, self.space.points(flat)
        every = [*self.mine, *self.others]
        truth_, yours_, base_ = (self.same[n] for n in (case.truth, case.yours, case.base))
        # A derivative without the values that are taken where its formula has none: of x**a, that at x = a = 0.
        formulas = rewritten(scheduled([truth_]), lambda n: broadcast(n.args[2], n.shape) if n.op == "corner" else n)
        nodes, masks = on_borders([formulas[truth_], yours_, base_], every)
        zeros = dict.fromkeys(b.zero for b in masks.values())
        ends = np.cumsum([z.size for z in zeros])[:-1]
        on_zero = dict(zip(zeros, np.split(replace(self, zeros=list(zeros)).is_zero(flat), ends), strict=True))
        on = [on_zero[b.zero] for b in masks.values()]
        inputs = {f"\0{k}": mask for k, mask in enumerate(masks)}
        marks = {n: np.reshape(a, (*inputs[n].shape, -1)).astype(float) for n, a in zip(inputs, on, strict=True)}
        graph = Graph.of({**case.graph.inputs, **inputs}, {})
        wide, lost = wide_values(graph, points | marks, nodes)
        truth, yours, base = (
            np.broadcast_to(wide[n], (*n.shape, flat.shape[1])).reshape(n.size, -1).astype(float) for n in nodes
        )
        differences = witness(case, points, seed)
        trials = compared(case, points, (truth, yours, base), differences, lost=lost)
        differs = (trials.errors > tolerance).any(axis=0)
        has_one = np.isfinite(base).all(axis=0) & differences.defined & ~differences.corner & holds(case.kinds, points)
        finite = np.isfinite(truth).all(axis=0)
        doubt = (differs & ~differences.agrees(yours)) | (~differs & finite & differences.contradicts(yours))
        return trials, has_one & ~trials.counted & doubt

    def where(self, at: Named, others: Named) -> tuple[str, Sequence[str]]:
        """Return where the claim parts from the derivative, and the inputs of points; `others` are all of these."""
        flat = self.space.flat({name: value[..., None] for name, value in at.items()})
        moved = flat + np.diag(np.where(flat == 0, self.space.sizes[:, None], 0.1 * np.abs(flat))[:, 0])
        depends = self.values(self.space.points(moved)) != self.values(self.space.points(flat))
        rows = np.flatnonzero(self.is_zero(flat)[:, 0])
        single = rows[depends[rows].sum(axis=1) == 1]
        if not single.size:
            return f"where {self._condition(self.owners[rows[0]])}", ()
        elements = np.unique(depends[single].argmax(axis=1))
        whole = self.space.flat(others)[elements]
        fixed = (np.abs(whole - whole[:, :1]) <= _NOUGHT * np.abs(whole[:, :1])).all(axis=1)
        named = elements[fixed] if fixed.any() else elements[:1]
        owners = [(n, e) for n, s in self.space.shapes.items() for e in (element_names(n, s) if s else [n])]
        points = [f"{owners[k][1]} = {flat[k, 0]:.6g}" for k in named.tolist()]
        more = "" if fixed.any() else " (and other points)"
        return f"at {', '.join(points)}{more}", [owners[k][0] for k in named.tolist()]

    @property
    def own_rows(self) -> Array:
        """Which elements of these functions depend on what the derivative is by, and are no matrix's determinant."""
        by = self.same.get(self.case.by, self.case.by)
        own = {z for z in self.zeros if by in scheduled([z])} - {b.zero for b in self.mine if b.node.op in _INVERSES}
        return np.concatenate([np.full(z.size, z in own) for z in self.zeros])

    @property
    def owners(self) -> list[Border]:
        """The first border of each element of the functions that are 0 on borders."""
        first = [next(b for b in self.mine if b.zero is zero) for zero in self.zeros]
        return [b for b in first for _ in range(b.zero.size)]

    def _condition(self, border: Border) -> str:
        """Return the equation of a border in the user's names."""
        graph = self.case.graph
        names = {self.same.get(n, n): name for name, n in [*graph.names.items(), *graph.inputs.items()]}
        notation = Notation(names, implicit=True)
        a, b = border.zero, None
        if border.zero.op == "sub" and border.node.args[:2] == border.zero.args:
            a, b = border.zero.args
        left, right = ("0" if n is None else names.get(n) or notation.name(n) for n in (a, b))
        return f"an element of {left} is {right}" if border.zero.shape else f"{left} = {right}"


def _poles(base: Node, inputs: Mapping[Node, bool]) -> set[Node]:
    """Return what is 0 where the system is not finite, so that no derivative exists there."""
    nodes = scheduled([base])
    if any(n.op in OPERATIONS and OPERATIONS[n.op].selects for n in nodes):
        return set()
    known = (b for b in borders([base], inputs) if b.on is None and b.node.op in ("div", "log", "pow"))
    return {b.zero for b in known if b.node.op != "pow" or b.node.args[1].is_constant}


def _extended(lines: Lines) -> tuple[Array, Array]:
    """Return lines, and where a function is 0 that is linear along them, maybe far away."""
    first = np.flatnonzero(np.diff(lines.line, prepend=-1))
    signed = lines.states * lines.distances
    a, b = signed[:, first], signed[:, first + 1]
    with np.errstate(all="ignore"):
        t = lines.t[first] - a * (lines.t[first + 1] - lines.t[first]) / (b - a)
    rows, columns = np.nonzero(np.isfinite(t))
    return lines.line[first][columns], t[rows, columns]
