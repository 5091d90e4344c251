"""Why a claim is wrong: the slips in the derivation that give it, what it is as a whole, or where it first differs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import floor, log10

import numpy as np

from gradcli.engine.rounding import UNIT, relative_errors
from gradcli.graph.graph import scheduled
from gradcli.graph.kinds import is_symmetric_matrix, of_kinds
from gradcli.notation.nodes import Notation, short_text
from gradcli.pages.check.claim import Case, derivative, numbers, term_numbers
from gradcli.pages.check.derivation import Search
from gradcli.pages.check.proof import Proof
from gradcli.pages.check.slip_text import LONGEST, Reason, SlipWriter
from gradcli.pages.check.trials import Trials
from gradcli.pages.results import Array, Named
from gradcli.text.wrapping import in_words

_CANDIDATES = 200  # nodes that are tried as a factor: each is evaluated at all points
_LEAST = 1e-9  # the tolerance of a reason, whose numbers have rounded as well
_ROUNDED = 0.01  # how far a factor may be from 1 that comes of a constant rounded to two digits
_DENOMINATOR = 60  # of a fraction that a number is taken to be: larger ones are near any number
_DIGITS = 1e3  # times its rounding: a number of which some digits are known
_PLAIN = 1.2  # how surprising a slip may be that is named where the claim is a number times the derivative
_LINE = 60  # characters of a derivative that is the whole reason, as nothing in the claim is near it
_FEW = 3  # entries of an array of which one alone is said to be wrong
# Powers of numbers that are simple fractions of units, and how those numbers are written.
_FORMS = (
    (1, 1.0, "{}"), (2, 1.0, "sqrt({})"), (1, math.pi, "{}*pi"), (1, 1 / math.pi, "{}/pi"),
    (1, math.log(10), "{}*log(10)"), (1, 1 / math.log(10), "{}/log(10)"),
    (1, math.log(2), "{}*log(2)"), (1, 1 / math.log(2), "{}/log(2)"),
)  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """A claim (`yours`) and the derivative (`truth`) at the points that count, as arrays of (entries, points)."""

    case: Case
    points: Named
    truth: Array
    yours: Array
    terms: Array
    tolerance: float

    def equal(self, a: Array, b: Array) -> bool:
        """Return whether arrays agree at each of the points."""
        rounding = UNIT * self.terms[..., : a.shape[-1]].max(axis=0, initial=0)
        return bool(np.isfinite(a).all() and (relative_errors(a, b, rounding) <= self.tolerance).all())

    @property
    def right(self) -> bool:
        """Whether the claim is right at these points."""
        return bool(np.isfinite(self.truth).all()) and self.equal(self.yours, self.truth)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the derivative."""
        return self.case.truth.shape

    def at(self, points: Named) -> Comparison:
        """Return the numbers at other points, or those near them at which inputs are of their kinds."""
        case, points = self.case, of_kinds(self.case.kinds, points)
        truth, yours = numbers(case.graph, points, [case.truth, case.yours])
        terms = np.maximum(*term_numbers(case.graph, points, [case.truth, case.yours]))
        return replace(self, points=points, truth=truth, yours=yours, terms=terms)

    @cached_property
    def ratio(self) -> float | None:
        """The number that the claim is times the derivative at every point, if there is one."""
        some = np.abs(self.truth) > _DIGITS * UNIT * self.terms
        if not some.any():
            return None
        ratio = float(np.median(self.yours[some] / self.truth[some]))
        steady = np.ptp(self.yours[some] / self.truth[some]) <= _ROUNDED * abs(ratio)
        return ratio if steady and self.equal(self.yours, ratio * self.truth) else None


def diagnose(case: Case, trials: Trials, tolerance: float, proof: Proof, entry: int) -> Reason:
    """Return why a claim is wrong."""
    finite = np.isfinite(trials.yours).all(axis=0)
    t = trials.chosen(np.flatnonzero(trials.counted & finite))
    c = Comparison(case, t.points, t.truth, t.yours, t.terms, max(tolerance, _LEAST))
    if not t.why:
        return Reason("yours is not finite")
    with np.errstate(all="ignore"):
        if c.right and not (finite | ~trials.counted).all():
            return Reason("yours is not finite at every point where the derivative is")
        symmetric = _inputs_to_be_symmetric(c)
        reason = _explained(c, t, bool(symmetric))
        base = short_text(case.base, case.graph.labels, _LINE) if reason.slips and _before(case) else ""
        if base and base not in reason.text:
            reason = replace(reason, text=f"{reason.text}; {_before(case)} is {base}")
        if symmetric:
            lines = [f"`input {name} symmetric = …`" for name in symmetric if name not in case.cotangents]
            are = "are" if len(symmetric) > 1 else "is"
            right = f"right only where {in_words(symmetric)} {are} symmetric" + (
                f": {in_words(lines)}" if lines else ""
            )
            return replace(reason, text=f"{reason.text}; {right}" if reason else right)
        return reason if reason else replace(reason, text=_difference(c, proof, entry))


def _explained(c: Comparison, trials: Trials, may_be_right: bool) -> Reason:
    """Return the least surprising of all reasons, if there is one; two slips of no claim that may be right."""
    if text := _whole(c):
        return Reason(text)
    search = Search(c.case, trials, c.tolerance)
    writer = SlipWriter(search.derivation)
    slips = search.single()
    one = writer.reason(slips) if slips else Reason("")
    if one and not (c.ratio and (slips[0].cost > _PLAIN or all(slip.is_factor for slip in slips))):
        return one
    if text := _ratio_reason(c) or _other_input(c) or _special(c):
        return Reason(text, one.slips)
    if slips or may_be_right:
        return one
    if text := _by_quantity(c):
        return Reason(text)
    slips = search.double()
    return writer.reason(slips) if slips else one


def _before(case: Case) -> str:
    """Return what a claim of a second or third derivative is the derivative of; "" for other claims."""
    order = re.match(r"d([23])\w*/d", case.text)
    return f"the {('first', 'second')[int(order[1]) - 2]} derivative" if order and not case.truth.shape else ""


def _whole(c: Comparison) -> str:
    """Return what the claim is of the derivative as a whole, or ""."""
    if c.ratio == 0:
        return "yours is 0"
    if c.ratio is not None and 0 < abs(c.ratio - 1) < _ROUNDED:
        allowed = f"1e-{floor(-log10(abs(c.ratio - 1)))}"
        return f"yours is {c.ratio:.6g} times the right value: rounded? `--tolerance {allowed}` accepts it"
    if _before(c.case) and c.equal(c.yours, numbers(c.case.graph, c.points, [c.case.base])[0].reshape(c.yours.shape)):
        return f"yours is {_before(c.case)}: differentiate it once more"
    if len(c.shape) != 2:
        return ""
    truth = c.truth.reshape(*c.shape, -1)
    transposed = truth.swapaxes(0, 1)
    if c.shape[0] == c.shape[1] and c.equal(c.yours, transposed.reshape(c.yours.shape)):
        return "transposed: yours is its transpose"
    name = next((name for name, x in c.case.graph.inputs.items() if x is c.case.by), "")
    if is_symmetric_matrix(c.case.kinds.get(name), c.shape):
        both = truth + transposed
        for yours, what in (
            (both - np.eye(len(truth))[..., None] * truth, "takes both as one variable"),
            (both / 2, "is the mean of both"),
        ):
            if c.equal(c.yours, yours.reshape(c.yours.shape)):
                return f"the derivative is with respect to {name}[0,1] and {name}[1,0] separately, and yours {what}"
    return ""


def _ratio_reason(c: Comparison) -> str:
    """Return that the claim is a constant times the derivative, and which array may have so many elements, or ""."""
    if c.ratio is None:
        return ""
    sentence = times_the_right_value(c.ratio, number(c.ratio, c.tolerance))
    elements = _array_of_size(c, max(abs(c.ratio), 1 / abs(c.ratio))) if len(c.truth) > 1 else ""
    or_sum = ", or a sum over them is missing" if abs(c.ratio) < 1 else ""
    return f"{sentence}: off by 1/n? {elements}, and a mean divides by their number{or_sum}" if elements else sentence


def times_the_right_value(ratio: float, text: str) -> str:
    """Return the sentence that what was claimed is a number, written as `text`, times what is right.

    >>> times_the_right_value(-3.0, "-3")
    'the sign and the factor: yours is -3 times the right value'
    """
    wrong = "the sign: " if text == "-1" else "the sign and the factor: " if ratio < 0 else ""
    return f"{wrong}yours is {text} times the right value"


def _array_of_size(c: Comparison, count: float) -> str:
    """Return which input or intermediate has so many elements, as a whole or along an axis; inputs come first."""
    inputs = c.case.graph.inputs.items()
    axes = [(name, *axis) for name, x in [*inputs][::-1] for axis in enumerate(x.shape)]
    sizes = [(size, f"{name} has {size} elements along axis {axis}") for name, axis, size in axes]
    sizes += [(x.size, f"{name} has {x.size} elements") for name, x in [*inputs, *c.case.graph.names.items()]]
    near = (text for size, text in sizes if size > 2 and abs(count - size) <= c.tolerance * size)
    return next(near, "")  # 2 is a factor of its own


def _other_input(c: Comparison) -> str:
    """Return a sentence that the claim is the derivative by another input, or ""."""
    case = c.case
    variable = next((name for name, x in case.graph.inputs.items() if x is case.by), "")
    if not variable or case.entries is not None:
        return ""
    for name, x in case.graph.inputs.items():
        if x is not case.by and x.shape == case.by.shape:
            (result,) = numbers(case.graph, c.points, [derivative(case.graph, case.base, x)])
            if c.equal(c.yours, result):
                return f"inputs exchanged: this is the derivative with respect to {name}, not {variable}"
    return ""


def _by_quantity(c: Comparison) -> str:
    """Return a sentence that a quantity of the system is missing as a factor or divisor of the whole, or ""."""
    nodes = [m for m in scheduled([c.case.base]) if not (m.is_constant or m.shape) and m.dtype != "bool"][:_CANDIDATES]
    names = {m: name for name, m in [*c.case.graph.names.items(), *c.case.graph.inputs.items()]}
    for node, values in zip(nodes, numbers(c.case.graph, c.points, nodes), strict=True):
        for power in (1, 2):
            right = c.equal(c.yours * values**power, c.truth)
            if right or c.equal(c.yours / values**power, c.truth):
                text = Notation(names, implicit=True).name(node if power == 1 else node**power)
                return f"the right value is yours {'times' if right else 'divided by'} {text}"
    return ""


def _special(c: Comparison) -> str:
    """Return a sentence that the claim is right for inputs of a kind alone, or ""."""
    for name, x in c.case.graph.inputs.items():
        for what, project in _projections(name, len(x.shape)):
            if c.at(c.points | {name: project(np.abs(c.points[name]))}).right:
                return f"right only where {what}"
    return ""


def _projections(name: str, rank: int) -> Iterator[tuple[str, Callable[[Array], Array]]]:
    yield f"{name} is positive", np.abs
    if rank:
        rows = "each row of " if rank > 1 else ""
        yield f"{rows}{name} sums to 1", lambda a: a / a.sum(axis=rank - 1, keepdims=True)
        yield f"norm({name}) = 1", lambda a: a / np.sqrt((a**2).sum(axis=tuple(range(rank)), keepdims=True))


def _inputs_to_be_symmetric(c: Comparison) -> Sequence[str]:
    """Return the fewest square matrices that have to be symmetric for the claim to be right, if that is enough."""
    shapes = {name: x.shape for name, x in c.case.graph.inputs.items() if name not in c.case.kinds}
    wanted = [name for name, shape in shapes.items() if len(shape) == 2 and shape[0] == shape[1]]
    if not wanted or not c.at(_symmetric(c.points, wanted)).right:
        return ()
    for name in reversed(wanted):
        others = [other for other in wanted if other != name]
        if others and c.at(_symmetric(c.points, others)).right:
            wanted = others
    return wanted


def _symmetric(points: Named, names: Sequence[str]) -> Named:
    """Return points at which these matrices are symmetric."""
    return points | {name: (points[name] + points[name].swapaxes(0, 1)) / 2 for name in names}


def _difference(c: Comparison, proof: Proof, entry: int) -> str:
    """Return which term of a sum is missing, too many or wrong, or by what the claim differs, or in which entry."""
    name = c.case.entry_name(entry)
    wrong = [k for k in range(len(c.truth)) if not c.equal(c.truth[k], c.yours[k])]
    only = len(c.truth) >= _FEW and len(wrong) == 1
    alone = f"right except for {'the entry ' * name.startswith('[')}{name}"
    where = f"{alone}: " if only else f"in {name} "
    missing = "yours is 0" if only and not c.yours[entry].any() else ""
    for text in (proof.terms, missing, proof.difference and f"the right value is yours {proof.difference}"):
        whole = text if len(c.truth) == 1 else where + text
        if text and len(whole) <= LONGEST:
            return whole
    if len(c.truth) == 1 or not wrong:
        short = 0 < len(proof.formula) <= _LINE
        return f"the derivative is {proof.formula}" if short else "yours differs from the derivative"
    return (
        alone if only else f"{len(wrong)} of {len(c.truth)} entries differ, the first is {c.case.entry_name(wrong[0])}"
    )


def number(value: float, tolerance: float) -> str:
    """Return a number as a simple fraction, a root of one, or one times π or a logarithm, if it is near one.

    >>> number(0.5, 1e-9), number(-(2**0.5), 1e-9), number(2 * math.pi, 1e-9), number(1.23456789, 1e-9)
    ('1/2', '-sqrt(2)', '2*pi', '1.23457')
    """
    for power, unit, form in _FORMS:
        size = abs(value) ** power / unit
        near = Fraction(size).limit_denominator(_DENOMINATOR)
        if near and abs(float(near) - size) <= tolerance * max(1, size):
            return "-" * (value < 0) + form.format(near).removeprefix("1*")
    return f"{value:.6g}"
