"""The derivation of a claim: its derivative edge by edge, and what slips in it make of the result.

The derivative is linear in each local derivative.  One reverse and one forward pass for an entry give the adjoint and
the tangent at each edge; a slip there changes the entry by (wrong - right contribution)·tangent.  Two slips on one path
add the change that the one makes in that of the other, for which its change is passed on as an adjoint.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gradcli.engine.evaluate import evaluator, number
from gradcli.engine.rounding import UNIT
from gradcli.graph.construct import sum_to, where
from gradcli.graph.graph import Graph, computed_from, scheduled
from gradcli.graph.jvp import forward
from gradcli.graph.names import array_name
from gradcli.graph.node import Node, const, leaf
from gradcli.graph.rewrite import structure, substituted
from gradcli.graph.vjp import Pass, active_nodes, reverse
from gradcli.pages.check.claim import Case, named_constants, numbers
from gradcli.pages.check.slips import Quantities, edits, wrong_slopes
from gradcli.pages.check.trials import Trials
from gradcli.pages.results import Array, Named

_MOST = 6_000  # slips of a large system: those nearest to the output
_NUMBERS = 10_000_000  # that are computed for slips: fewer of large arrays are tried
_POINTS = 5  # at which slips are looked for; they are confirmed at others
_ENTRIES = 3  # at each of these points
_FRESH = 6  # at each of the other points
_GROUPS = 200  # of slips at equal places that are tried
_PAIRED = 200  # slips that are tried in pairs: 20,000 pairs
_TRIED = 6  # candidates that are confirmed at other points
_CLOSE = 1e-6  # of the difference between claim and derivative, which is what a slip has to explain
_LAST = 1e-13  # of their numbers, the last digits of which differ
_TINY = 1e-3  # times the derivative: a claim below that everywhere is compared by its own size
_EACH = 0.01  # how much more surprising a slip at more places is
_BRANCH = 0.2  # how much less surprising it is that one branch of a function is taken for all of it
SELECTS = ("where", "relu", "abs", "leaky_relu", "maximum", "minimum")
_PART = 0.1  # how much more surprising a slip within a local derivative is


class _Change(NamedTuple):
    """A formula with a slip: what is written for it, and the part of it that was changed, and what stands there."""

    kind: str
    cost: float
    whole: Node
    part: Node
    value: Node
    local: bool = True  # the formula is the local derivative of an elementwise operation, not a contribution


@dataclass(frozen=True, eq=False)
class Slip:
    """A slip at an edge: `wrong` is passed on in the place of its contribution, and `direct` straight to the variable.

    `wrote` stands in the place of `right`: of the local derivative of an elementwise operation, else of a part of the
    contribution.  `part` is what was changed in it; slips with equal `keys` are one slip at all equal places.
    """

    edge: Pass
    kind: str
    cost: float
    wrong: Node
    right: Node | None = None
    wrote: Node | None = None
    direct: Node | None = None
    keys: tuple[tuple[Any, ...], ...] = ()

    @property
    def is_factor(self) -> bool:
        """Whether it may be seen as a factor of the whole: it is one, or of an operation on arrays, such as a mean."""
        return self.kind in ("constant", "size") or self.edge.slope is None


class Derivation:
    """The derivation of a claim; what is called by a name, a constant too, is a quantity in it."""

    def __init__(self, case: Case) -> None:
        self.case = case
        named: dict[str, Node] = {**case.graph.names, **case.graph.inputs}
        constants = named_constants([case.base, *named.values()], named)
        self.constants = {symbol: named[name] for name, symbol, _ in constants.values()}
        known = {n: multiple for n, (_, _, multiple) in constants.items()}
        known |= {} if case.by.is_leaf else {case.by: leaf(case.by.shape)}
        self.y, *new = substituted([case.base, *named.values()], known)
        self.x = known.get(case.by, case.by)
        self.nodes = scheduled([self.y], [self.x])
        self.seeds = [case.graph.inputs[name] for name in case.cotangents]  # the incoming gradients
        self.cotangent, self.tangent = leaf(self.y.shape), leaf(self.x.shape)
        within = set(self.nodes)
        kept = {name: n for name, n in zip(named, new, strict=True) if n in within or n.is_leaf}
        self.quantities = Quantities(self.nodes, kept, frozenset(self.constants))
        graph = Graph(self.nodes, {}, {})
        self.active = active_nodes(graph, [self.x])
        # What is added to the adjoint of each node: 0, but where the change of a slip is passed on.
        self.added = {n: leaf(n.shape) for n in self.nodes if n in self.active and n is not self.y}
        self.passes, _ = reverse(graph, [*self.added.items(), (self.y, self.cotangent)], self.active)
        self.tangents, _ = forward(self.nodes, {self.x: self.tangent})
        self.slips: list[Slip] = []

    def slips_of(self, columns: int) -> Sequence[Slip]:
        """Return the slips at each edge, none twice, from the output to the variable; fewer for many columns."""
        result = self.slips
        room = _NUMBERS // columns
        for edge in self.passes:
            seen = set()
            for slip in self._at(edge):
                if (key := (structure(slip.wrong), slip.direct is None)) not in seen:
                    seen.add(key)
                    result.append(slip)
                    room -= slip.wrong.size + 3 * edge.node.size
            if room < 0 or len(result) > _MOST:
                break
        return result

    def _at(self, edge: Pass) -> Iterator[Slip]:
        """Yield the slips at an edge."""
        node, position, _, slope, right = edge
        name, path = self._places.get(node, ("", ()))
        place = ((array_name(name), path) if name else node, node.op, position)  # of a loop's, the same in each round
        none = const(0, right.shape)
        branches = len({p.position for p in self.passes if p.node is node}) > 1
        others = (("as", node, a) for a in node.args if a is not edge.argument)
        dropped = (("path left out", place), *others)
        yield Slip(edge, "path left out", 1.0 if branches else 1.3, none, slope, const(0), keys=dropped)
        has_sign = slope is not None and (slope.op == "neg" or slope.value == -1)  # which is lost there
        cost = 1.0 if has_sign else 1.05 if slope is not None and slope.value == 1 else 1.1
        minus = None if slope is None else -slope
        yield Slip(edge, "sign", cost, -right, slope, minus, keys=(("sign", place),))
        for k in (2, *dict.fromkeys(s for s in (*right.shape, right.size, node.size) if s > 2)):
            for factor in (const(k), 1 / const(k)):
                wrote = None if slope is None else factor * slope
                kind = "constant" if k == 2 else "size"
                yield Slip(edge, kind, 1.4, right * factor, factor, wrote, keys=((kind, place, factor.value),))
        if right.shape == self.x.shape and edge.argument is not self.x:
            yield Slip(edge, "chain left out", 1.2, none, slope, slope, right, (("chain left out", place),))
        count: dict[str, int] = {}
        for c in self._changes(edge):
            wrong, was, wrote = (c.whole, c.part, c.value)
            if c.local and slope is not None:
                product = edge.adjoint * c.whole
                if product.shape != node.shape:
                    continue
                wrong, was, wrote = sum_to(product, right.shape), slope, c.whole
            count[c.kind] = count.get(c.kind, 0) + 1
            keys: list[tuple[Any, ...]] = [(c.kind, place, count[c.kind])]
            if c.part is not slope or slope in (node, *node.args):
                keys += [(c.kind, structure(c.part), c.value)]
                keys += [("as", c.part, c.value)] if c.value in c.part.args else []
            if c.kind != "value":
                keys += [(c.kind, node.op, position, count[c.kind])]
            if c.kind == "left out":
                keys += [("as", node, edge.argument)]
            if c.kind.startswith("index") and c.value.op in ("index", "scatter"):
                is_index, last = c.value.op == "index", c.value.settings[-1]  # of a scatter, that of its pullback
                keys += [("indexed", c.value.args[0] if is_index else edge.argument, last if is_index else last[0])]
            yield Slip(edge, c.kind, c.cost, wrong, was, wrote, keys=tuple(keys))

    def _changes(self, edge: Pass) -> Iterator[_Change]:
        """Yield the slips in a local derivative, and in the contribution of an operation on arrays."""
        node, position, adjoint, slope, right = edge
        if slope is not None:
            for kind, new, cost in wrong_slopes(node, position, slope):
                yield _Change(kind, cost, new, slope, new)
            yield from self._within(slope, {node, *node.args}, adjoint)
            if right.shape != node.shape:  # a sum over what it broadcasts
                for n in computed_from({adjoint, slope, *node.args}, [right]):
                    for kind, new, cost in edits(n) if n.op in ("sum", "reshape") else ():
                        yield _Change(kind, cost, _put(right, {n: new}), n, new, local=False)
            return
        if node.op == "softmax":  # as if its Jacobian were diagonal
            diagonal = adjoint * (node * (const(1, node.shape) - node))
            yield _Change("diagonal", 1.2, diagonal, right, diagonal)
        yield from self._within(right, {node, adjoint, *node.args}, adjoint)

    def _within(self, whole: Node, known: set[Node], adjoint: Node) -> Iterator[_Change]:
        """Yield the slips in a formula, which is written in terms of the known nodes, and in their values."""
        inner = computed_from(known, [whole])
        for n in reversed(inner):
            for kind, new, cost in edits(n) if n.args else ():
                yield _Change(kind, cost + _PART * (n is not whole), _put(whole, {n: new}, known), n, new)
        for value in dict.fromkeys([a for n in inner for a in n.args if a in known] + [whole] * (whole in known)):
            if value is adjoint or value.is_constant:
                continue
            others = self.quantities.names.keys() - {value}
            for part in self.quantities.parts(value):
                for kind, new, cost in self.quantities.edits(part):
                    if new.shape == part.shape:
                        changed = _put(value, {part: new}, others)
                        result = _put(whole, {value: changed}, known - {value})
                        yield _Change(kind, cost + _PART * (part is not value), result, part, new)

    @cached_property
    def _places(self) -> dict[Node, tuple[str, tuple[int, ...]]]:
        """The name of the statement that each node stands in, and the positions that lead to it from there."""
        result: dict[Node, tuple[str, tuple[int, ...]]] = {}
        for top, name in self.quantities.names.items():
            pending: list[tuple[Node, tuple[int, ...]]] = [(top, ())]
            while pending:
                node, path = pending.pop()
                if node not in result and (node is top or node not in self.quantities.names):
                    result[node] = (name, path)
                    pending += [(a, (*path, i)) for i, a in enumerate(node.args)]
        return result

    def statement(self, node: Node) -> str:
        """Return the name of the statement that a node stands in, or ""."""
        return self._places.get(node, ("", ()))[0]

    def groups(self) -> list[list[Slip]]:
        """Return the slips that are equal at several edges."""
        by_key: dict[Hashable, dict[Pass, Slip]] = {}
        for slip in self.slips:
            for key in slip.keys:
                by_key.setdefault(key, {}).setdefault(slip.edge, slip)
        groups = {frozenset(g.values()): list(g.values()) for g in by_key.values() if len(g) > 1}
        return sorted(groups.values(), key=lambda g: sum(s.cost for s in g) / len(g))

    def varied(self, groups: Sequence[Sequence[Slip]]) -> tuple[list[Node], list[Node]]:
        """Return the terms of the derivative with the slips of each group whose switch is above 0, and the switches."""
        switches = [leaf() for _ in groups]
        here: dict[Pass, list[tuple[Node, Slip]]] = {}
        for switch, group in zip(switches, groups, strict=True):
            for slip in group:
                here.setdefault(slip.edge, []).append((switch > const(0), slip))
        adjoints = {self.y: self.cotangent}
        pending: dict[Node, list[Node]] = {n: [v] for n, v in self.added.items()}
        straight: list[Node] = []
        changed: set[Node] = set()
        for edge in self.passes:
            node, contribution = edge.node, edge.contribution
            if node not in adjoints:
                adjoints[node] = _total(pending[node]) if node in changed else edge.adjoint
            if node in changed or edge in here:
                changed.add(edge.argument)
                meant = {edge.adjoint: adjoints[node]}
                contribution = _put(contribution, meant, self.nodes)
                for on, slip in here.get(edge, ()):
                    contribution = where(on, _put(slip.wrong, meant, self.nodes), contribution)
                    if slip.direct is not None:
                        straight.append(where(on, _put(slip.direct, meant, self.nodes), const(0)))
            pending[edge.argument].append(contribution)
        return [_total(pending[self.x]), *straight], switches


def _put(whole: Node, meant: Mapping[Node, Node], kept: Iterable[Node] = ()) -> Node:
    (result,) = substituted([whole], meant, kept)
    return result


def _total(terms: Sequence[Node]) -> Node:
    return sum(terms[1:], terms[0])


class Sample:
    """Entries of a derivation at points: a column each, with the numbers of the claim and of the derivative there."""

    def __init__(self, derivation: Derivation, trials: Trials, points: Array, entries: int, seed: int) -> None:
        """Take some points, and so many entries: the one with the largest error and others at random."""
        d, case = derivation, derivation.case
        self.derivation = d
        random = np.random.default_rng(seed)
        rows, columns = case.cells
        chosen: list[tuple[int, int]] = []
        for k in points.tolist():
            some = [int(trials.errors[:, k].argmax()), *random.permutation(len(rows)).tolist()]
            chosen += [(k, e) for e in dict.fromkeys(some[:entries])]
        point, entry = np.array(chosen).T
        self.count = len(point)
        yours, self.truth, terms = (a[entry, point] for a in (trials.yours, trials.truth, trials.terms))
        self.yours, self.gap = yours, yours - self.truth
        self.allowed = _CLOSE * np.abs(self.gap) + UNIT * terms + _LAST * (np.abs(yours) + np.abs(self.truth))
        self.points: Named = {name: v[..., point] for name, v in trials.points.items()}
        self.cotangent, self.tangent = np.zeros((d.y.size, self.count)), np.zeros((d.x.size, self.count))
        self.cotangent[rows[entry], range(self.count)] = 1
        self.tangent[case.columns[columns[entry]], range(self.count)] = 1
        self.by = numbers(case.graph, self.points, [case.by])[0].reshape(*case.by.shape, -1)
        self.along: dict[Node, Array] = {}  # the tangents
        self.values: dict[Node, Array] = {}

    @np.errstate(all="ignore")
    def evaluate(
        self, nodes: Iterable[Node], repeats: int = 1, more: Mapping[Node, Array] | None = None, seeded: bool = True
    ) -> dict[Node, Array]:
        """Return the values of nodes, flattened, in all columns, which are repeated."""
        d, nodes = self.derivation, [*nodes]
        given = {
            **{d.case.graph.inputs[name]: v for name, v in self.points.items()},
            d.x: self.by, d.cotangent: self.cotangent.reshape(*d.y.shape, -1) * seeded,
            d.tangent: self.tangent.reshape(*d.x.shape, -1),
        }  # fmt: skip
        values = {n: np.tile(v, repeats) for n, v in given.items()}
        values |= {symbol: np.array([number(n.value or 0)]) for symbol, n in d.constants.items()}
        values |= {leaf_: np.zeros((*n.shape, 1)) for n, leaf_ in d.added.items()} | dict(more or {})
        inputs = {f"{k}": n for k, n in enumerate(values)}
        result = evaluator(Graph.of(inputs, {}), nodes)({name: values[n] for name, n in inputs.items()})
        size = self.count * repeats
        return {n: np.broadcast_to(result[n], (*n.shape, size)).reshape(n.size, size) for n in nodes}

    def fits(self, change: Array) -> Array:
        """Return which changes, of shape (…, columns), make the derivative the claim."""
        known = np.isfinite(change)
        good = (np.abs(change - self.gap) <= self.allowed) | ~known
        differs = np.abs(self.gap) > self.allowed
        return np.asarray(good.all(axis=-1) & (2 * (known & differs).sum(axis=-1) >= differs.sum()))

    def of_each(self, slips: Sequence[Slip]) -> Array:
        """Return the change that each slip makes."""
        arguments = dict.fromkeys(slip.edge.argument for slip in slips)
        tangents = self.evaluate(self.derivation.tangents[a] for a in arguments)
        self.along = {a: tangents[self.derivation.tangents[a]] for a in arguments}
        self.values = self.evaluate(_nodes_of(slips))
        return self._changes(slips, self.values, 1)

    def of_pairs(self, slips: Sequence[Slip]) -> Array:
        """Return for each slip, and each other, the change in what the one makes that the other's change makes."""
        added: dict[Node, Array] = {}
        count = len(slips)
        for k, slip in enumerate(slips):
            node = slip.edge.argument
            if node in self.derivation.added:
                whole = added.setdefault(self.derivation.added[node], np.zeros((*node.shape, count * self.count)))
                change = self.values[slip.wrong] - self.values[slip.edge.contribution]
                whole[..., k * self.count : (k + 1) * self.count] = change.reshape(*node.shape, -1)
        values = self.evaluate(_nodes_of(slips), count, added, seeded=False)
        return np.asarray(self._changes(slips, values, count).reshape(count, count, self.count))

    @np.errstate(all="ignore")
    def _changes(self, slips: Sequence[Slip], values: Mapping[Node, Array], repeats: int) -> Array:
        result = np.empty((len(slips), repeats * self.count))
        tangent = np.tile(self.tangent, repeats)
        for k, slip in enumerate(slips):
            along = np.tile(self.along[slip.edge.argument], repeats)
            result[k] = ((values[slip.wrong] - values[slip.edge.contribution]) * along).sum(axis=0)
            if slip.direct is not None:
                result[k] += (values[slip.direct] * tangent).sum(axis=0)
        return result

    @np.errstate(all="ignore")
    def of_groups(self, groups: Sequence[Sequence[Slip]]) -> Array:
        """Return the derivative with the slips of each group."""
        terms, switches = self.derivation.varied(groups)
        on = np.repeat(np.eye(len(groups)), self.count, axis=1)
        values = self.evaluate(terms, len(groups), dict(zip(switches, on, strict=True)))
        tangent = np.tile(self.tangent, len(groups))
        return np.asarray(sum((values[n] * tangent).sum(axis=0) for n in terms)).reshape(len(groups), -1)

    def confirms(self, slips: Sequence[Slip]) -> bool:
        """Return whether the derivative with these slips is the claim."""
        (result,) = self.of_groups([slips])
        tiny = (np.abs(self.yours) < _TINY * np.abs(self.truth)).all()  # any other tiny derivative would fit as well
        equal = np.abs(result - self.yours) <= _TINY * np.abs(self.yours)
        return bool(self.fits(result - self.truth)) and bool(not tiny or equal.all())


def _nodes_of(slips: Iterable[Slip]) -> dict[Node, None]:
    """Return the nodes that are evaluated for slips."""
    return dict.fromkeys(
        n for slip in slips for n in (slip.wrong, slip.edge.contribution, slip.direct) if n is not None
    )


def _surprise(slips: Sequence[Slip]) -> float:
    """Return how surprising slips at several places are: least where one branch is taken for the whole."""
    branch = any(key[0] == "as" and key[1].op in SELECTS for key in slips[0].keys) and taken(slips) is not None
    return sum(slip.cost for slip in slips) / len(slips) + _EACH * len(slips) - _BRANCH * branch


def taken(slips: Sequence[Slip]) -> tuple[Node, Node] | None:
    """Return the node that slips take for one of its arguments, and that, if this is what they have in common."""
    shared = set.intersection(*(set(slip.keys) for slip in slips))
    pairs = [key[1:] for key in shared if key[0] == "as" and (len(slips) > 1 or key[1].op in SELECTS)]
    return pairs[0] if pairs else None


class Search:
    """The search for the least surprising slips that make the derivative the claim: one, at equal places, or two."""

    def __init__(self, case: Case, trials: Trials, tolerance: float) -> None:
        self.derivation = Derivation(case)
        counted = np.flatnonzero(trials.counted)
        wrong = trials.wrong(tolerance)[counted]
        first = counted[wrong][: max(1, min(_POINTS - 1, wrong.sum() // 2))]
        first = np.concatenate([first, counted[~wrong][: _POINTS - len(first)]])
        others = np.setdiff1d(counted, first)
        self.sample = Sample(self.derivation, trials, first, _ENTRIES, 1)
        self.fresh = Sample(self.derivation, trials, others if len(others) else first, _FRESH, 2)
        self.slips = sorted(self.derivation.slips_of(self.sample.count), key=lambda slip: slip.cost)
        self.changes = self.sample.of_each(self.slips) if self.slips else np.empty((0, self.sample.count))

    def single(self) -> list[Slip]:
        """Return one slip, at one place or at all equal ones, or none."""
        groups = self.derivation.groups()[:_GROUPS]
        together = self.sample.of_groups(groups) - self.sample.truth if groups else np.empty((0, self.sample.count))
        some = [[self.slips[k]] for k in np.flatnonzero(self.sample.fits(self.changes))]
        some += [groups[k] for k in np.flatnonzero(self.sample.fits(together))]
        return self._first(sorted(some, key=_surprise))

    def double(self) -> list[Slip]:
        """Return two slips, or none."""
        first: dict[Hashable, int] = {}
        for k, slip in enumerate(self.slips):
            change = self.changes[k]
            if (np.abs(np.nan_to_num(change, posinf=0, neginf=0)) > self.sample.allowed).any():
                first.setdefault((slip.edge, tuple(float(f"{v:.9g}") for v in change)), k)
        chosen = list(first.values())[:_PAIRED]
        if not chosen:
            return []
        slips, alone = [self.slips[k] for k in chosen], self.changes[chosen]
        inner = self.sample.of_pairs(slips)
        with np.errstate(invalid="ignore"):
            fits = self.sample.fits(alone[:, None] + alone[None] + inner + inner.swapaxes(0, 1))
        pairs = [[slips[a], slips[b]] for a, b in zip(*np.nonzero(np.triu(fits, 1)), strict=True)]
        pairs = [pair for pair in pairs if pair[0].edge is not pair[1].edge]
        return self._first(sorted(pairs, key=lambda pair: pair[0].cost + pair[1].cost))

    def _first(self, candidates: Sequence[list[Slip]]) -> list[Slip]:
        """Return the first of the candidates that is one at fresh points too."""
        return next((some for some in candidates[:_TRIED] if self.fresh.confirms(some)), [])
