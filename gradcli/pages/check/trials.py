"""Points at which a claim is tried, and the numbers there: the right derivative's and the claim's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from gradcli.engine.rounding import UNIT, relative_errors
from gradcli.engine.wide import wide_values
from gradcli.graph.kinds import holds, of_kinds
from gradcli.pages.check.claim import Case, Witness, numbers, term_numbers, witness
from gradcli.pages.check.magnitudes import magnitudes
from gradcli.pages.check.regions import visit_regions
from gradcli.pages.results import Array, Named

_CANDIDATES = 400  # points that are drawn at a time: some twenty are enough of a system that is finite everywhere
_NUMBERS = 4_000_000  # that are computed at a time: 32 MB
MAX_WORK = 100_000_000  # numbers that are worked out at all random points: of large arrays, fewer points are tried
# Of the numbers that are drawn, in turn: most near 1, where functions differ most.
_SCALES = (1.0, 0.5, 2.0, 1.0, 0.3, 5.0)
_FAR = 5  # powers of 10 up to which numbers are drawn where nothing near is in the domain
_ROUNDS = 10  # of drawing, after which a domain is taken to be empty
_LARGE = 1e8  # times the usual size of the numbers: these leave no digits for a comparison
TOLERANCE = 1e-6  # the relative error of a claim that is right: its constants may be rounded to seven digits
_SURE = 1e-9  # the relative error of numbers that agree, however large the terms are that they are the sum of
_KEPT = 100  # wrong points, and right ones, that a diagnosis looks at: more show no more


@dataclass(frozen=True)
class Trials:
    """Points along the last axis, and the entries of the claim and of the derivative at each, flattened.

    `why` has the points that were not compared, by the reason: `corner`, `not finite`, `far`; `indices` number the
    points among all that are tried.  `narrow` is whether points were left out where only the claim is not finite.
    """

    points: Named
    truth: Array  # (entries, points)
    yours: Array
    terms: Array  # how large the terms are that both are the sums of; 0 where they agree without
    why: tuple[str, ...]
    indices: Array
    narrow: bool = False

    @cached_property
    def counted(self) -> Array:
        """At which points the comparison says something."""
        return np.array([not w for w in self.why], dtype=bool)

    @cached_property
    def errors(self) -> Array:
        """The relative error of each entry at each point; 0 where it is no more than rounding."""
        return relative_errors(self.yours, self.truth, UNIT * self.terms)

    def wrong(self, tolerance: float) -> Array:
        """Return at which of the counted points the claim is wrong.

        A tolerance above the default allows for rounded constants: it is of the terms that are added up, too.
        """
        errors = self.errors
        if tolerance > TOLERANCE:
            errors = np.where(np.abs(self.yours - self.truth) <= tolerance * self.terms, 0, errors)
        return np.asarray(self.counted & (errors.max(axis=0, initial=0) > tolerance))

    def at(self, point: int) -> Named:
        """Return one of the points."""
        return {name: value[..., point] for name, value in self.points.items()}

    def chosen(self, points: Array) -> Trials:
        """Return some of the points."""
        picked = {name: value[..., points] for name, value in self.points.items()}
        whys = tuple(self.why[k] for k in points)
        truth, yours, terms = (a[:, points] for a in (self.truth, self.yours, self.terms))
        return Trials(picked, truth, yours, terms, whys, self.indices[points])

    def followed_by(self, other: Trials) -> Trials:
        """Return these trials and others."""
        points = {name: np.concatenate([v, other.points[name]], axis=-1) for name, v in self.points.items()}
        pairs = ((self.truth, other.truth), (self.yours, other.yours), (self.terms, other.terms))
        truth, yours, terms = (np.concatenate(pair, axis=-1) for pair in pairs)
        return Trials(points, truth, yours, terms, self.why + other.why, np.concatenate([self.indices, other.indices]))


@dataclass
class Tally:
    """The numbers of points that were tried, compared and wrong, why others were not compared, and examples."""

    tolerance: float
    points: int = 0
    counted: int = 0
    wrong: int = 0
    why: Counter[str] = field(default_factory=Counter)
    kept: Trials | None = None
    narrow: bool = False

    def add(self, batch: Trials) -> Tally:
        """Add the trials at more points."""
        wrong = batch.wrong(self.tolerance)
        self.points += len(batch.why)
        self.narrow |= batch.narrow
        self.counted += int(batch.counted.sum())
        self.wrong += int(wrong.sum())
        self.why.update(w for w in batch.why if w)
        room = int(np.clip(_NUMBERS // (4 * max(1, len(batch.truth))), 1, _KEPT))
        before = np.zeros(0, dtype=bool) if self.kept is None else self.kept.wrong(self.tolerance)
        more = [
            np.flatnonzero(kind)[: max(0, room - had)]
            for kind, had in ((wrong, int(before.sum())), (batch.counted & ~wrong, int((~before).sum())))
        ]
        some = batch.chosen(np.sort(np.concatenate(more)))
        self.kept = some if self.kept is None else self.kept.followed_by(some)
        return self


def trials_at(case: Case, points: Named, seed: int, first: int = 0) -> Trials:
    """Return the trials at points that the user gave, the first of which has that number; cotangents are drawn."""
    count = next(iter(points.values())).shape[-1]
    missing = {name: x.shape for name, x in case.graph.inputs.items() if name not in points}
    whole = points | _draw(np.random.default_rng([seed, first]), missing, count)
    return tried(case, {name: whole[name] for name in case.graph.inputs}, seed, first)


def drawn(case: Case, count: int, seed: int, usual: Mapping[str, float] = MappingProxyType({})) -> Trials:
    """Return trials at random points, of both signs and several magnitudes, and at points in every other region.

    Where the system's constants, or the powers of ten of inputs that are known to be `usual`, tell that its inputs are
    far from 1, half of the points are of these magnitudes.
    """
    count = int(np.clip(MAX_WORK // (_ROUNDS * case.work), 1, count))
    powers = magnitudes(case.graph.inputs, [case.base], usual)
    random = np.random.default_rng(seed)
    units = [powers, {}] if powers else [{}]
    samples = [_sample(case, -(-count // len(units)), random, unit) for unit in units]
    some = [s for s in samples if s.inside] or samples[:1]
    names = case.graph.inputs
    joined = {name: np.concatenate([s.points[name] for s in some], axis=-1) for name in names}
    order = np.argsort(np.concatenate([np.arange(s.size) for s in some]), kind="stable")
    trials = tried(case, {name: value[..., order] for name, value in joined.items()}, seed)
    counted = np.flatnonzero(trials.counted)[:count]
    trials = trials.chosen(counted if len(counted) else np.arange(min(count, len(trials.why))))
    more: list[Trials] = []

    def counts(points: Named) -> Array:
        result = tried(case, points, seed)
        more.append(result.chosen(np.flatnonzero(result.counted)))
        return result.counted

    if len(counted):
        visit_regions(case, trials.points, powers, counts)
    for each in more:
        trials = trials.followed_by(each)
    return replace(trials, narrow=any(s.narrow for s in some))


class _Sample(NamedTuple):
    """Random points; whether they are inside of the domains of all, and whether that of the claim is narrower."""

    points: Named
    inside: bool
    narrow: bool

    @property
    def size(self) -> int:
        """The number of points."""
        return _count([self.points])


def _sample(case: Case, count: int, random: np.random.Generator, powers: Mapping[str, int]) -> _Sample:
    """Return up to twice as many random points as are wanted, within the domain of the system and of the claim.

    Points of the domain are found by drawing more than are wanted, and from farther away where nothing near is in it.
    Where the claim is finite nowhere, the domain is that of the system alone.
    """
    inputs = {name: x.shape for name, x in case.graph.inputs.items()}
    total = sum(x.size for x in case.graph.inputs.values()) + 2 * case.truth.size + 4 * case.base.size
    many = int(np.clip(_NUMBERS // max(1, total), count, _CANDIDATES))
    kept: list[Named] = []
    others: list[Named] = []
    narrow = False
    for tries in range(int(np.clip(MAX_WORK // (many * case.work), 1, _ROUNDS))):
        points = of_kinds(case.kinds, _draw(random, inputs, many, tries > 1, powers))
        truth, yours, base = numbers(case.graph, points, [case.truth, case.yours, case.base])
        fine, said = _moderate(np.concatenate([truth, base])), _moderate(yours)
        narrow |= tries < 2 and bool((fine & ~np.isfinite(yours).all(axis=0)).any())
        for result, chosen in ((kept, fine & said), (others, fine & ~said)):
            result.append({name: value[..., chosen] for name, value in points.items()})
        if _count(kept) >= 2 * count:
            break
    inside = _count(kept) > 0
    result = kept if inside else others
    joined = {name: np.concatenate([p[name] for p in result], axis=-1)[..., : 2 * count] for name in inputs}
    return _Sample(joined, inside, narrow and inside)


def _moderate(values: Array) -> Array:
    """Return at which points all values are finite, and not much larger than at most other points."""
    finite = np.isfinite(values).all(axis=0)
    sizes = np.abs(values).max(axis=0, initial=0)
    usual = np.median(sizes[finite]) if finite.any() else 0
    return np.asarray(finite & (sizes <= _LARGE * (usual or np.inf)))


def _count(batch: Iterable[Named]) -> int:
    return sum(next(iter(p.values())).shape[-1] for p in batch)


def _draw(
    random: np.random.Generator,
    inputs: Mapping[str, tuple[int, ...]],
    count: int,
    far: bool = False,
    powers: Mapping[str, int] = MappingProxyType({}),
) -> Named:
    """Return points whose numbers have two digits: all of one sign or of both, and of several magnitudes.

    If `far`, each input has a sign and a magnitude of its own.  `powers` are the powers of ten around which they lie.
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
        points[name] = _two_digits(np.where(values == 0, scale, values) * 10.0 ** powers.get(name, 0))
    return points


def _two_digits(values: Array) -> Array:
    """Return numbers, none of them 0, rounded to two digits: they read as they are.

    >>> _two_digits(np.array([0.123, -4567.0, 0.3]))
    array([ 1.2e-01, -4.6e+03,  3.0e-01])
    """
    digits = 1 - np.floor(np.log10(np.abs(values))).astype(int)
    result = np.empty_like(values)
    for decimals in np.unique(digits):
        chosen = digits == decimals
        result[chosen] = np.round(values[chosen], decimals)
    return result


def tried(case: Case, points: Named, seed: int, first: int = 0) -> Trials:
    """Return the claim and the derivative at points, and at which of them they can be compared."""
    truth, yours, base = numbers(case.graph, points, [case.truth, case.yours, case.base])
    lost = _widened(case, points, truth, yours)
    return compared(case, points, (truth, yours, base), witness(case, points, seed), first, lost)


def compared(
    case: Case,
    points: Named,
    values: tuple[Array, Array, Array],
    differences: Witness,
    first: int = 0,
    lost: Array | bool = False,
) -> Trials:
    """Return the trials at points where the derivative, the claim and what it is about have these values.

    A point does not count where the derivative may be at fault: where finite differences contradict it, and where an
    overflow or underflow was met (`lost`), unless they contradict the claim.
    """
    truth, yours, base = values
    finite = np.isfinite(base).all(axis=0) & np.isfinite(truth).all(axis=0)
    far = ~differences.agrees(truth)
    terms = np.zeros_like(truth)
    if (relative_errors(yours, truth, 0) > _SURE).any():
        terms = np.maximum(*term_numbers(case.graph, points, [case.truth, case.yours]))
        wrong = (relative_errors(yours, truth, UNIT * terms) > TOLERANCE).any(axis=0)
        far |= wrong & (differences.prefers(yours, truth) | (lost & differences.agrees(yours)))
    reasons = {"kind": ~holds(case.kinds, points), "not finite": ~finite, "corner": differences.corner, "far": far}
    why = np.select(list(reasons.values()), list(reasons), "")
    return Trials(points, truth, yours, terms, tuple(why.tolist()), first + np.arange(truth.shape[-1]))


def _widened(case: Case, points: Named, truth: Array, yours: Array) -> Array:
    """Compute anew, without limits of the exponent, what differs; return where an overflow or underflow remains."""
    some = np.flatnonzero((relative_errors(yours, truth, 0) > _SURE).any(axis=0))
    lost = np.zeros(truth.shape[-1], dtype=bool)
    if not some.size or some.size * case.work > _NUMBERS:
        return lost
    wide, lost[some] = wide_values(case.graph, {n: v[..., some] for n, v in points.items()}, [case.truth, case.yours])
    for values, node in ((truth, case.truth), (yours, case.yours)):
        values[:, some] = np.broadcast_to(wide[node], (*node.shape, some.size)).reshape(node.size, -1)
    return lost
