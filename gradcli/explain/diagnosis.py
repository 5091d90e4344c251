"""What is wrong with a claim: the first explanation that makes it right at every point where it was tried.

Numbers decide, at all points at once; formulas only give the words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import permutations

import numpy as np

from gradcli.explain.claim import Case, derivative, numbers
from gradcli.explain.proof import Proof, entry_name
from gradcli.explain.repairs import repairs
from gradcli.explain.results import Array, Named
from gradcli.explain.trials import Trials
from gradcli.graph.construct import reduce
from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.node import Node, const
from gradcli.graph.vjp import active_nodes, reverse
from gradcli.notation.nodes import Notation

_MAX_RANK = 4  # of arrays whose axes are tried in another order
_MAX_LINES = 60  # along an axis, to be tried in another order
_CANDIDATES = 200  # nodes that are tried as a factor
_LINEAR = ("add", "sub", "mul", "div", "neg", "identity", "sum", "mean", "index", "reshape", "broadcast", "stack")


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
        """Tell whether two arrays agree at every point."""
        with np.errstate(all="ignore"):
            scale = np.maximum(1e-3, np.maximum(np.abs(a), np.abs(b)))
            return bool(np.isfinite(a).all() and (np.abs(a - b) <= self.tolerance * scale).all())

    def right(self, yours: Array) -> bool:
        """Tell whether this is the right derivative."""
        return self.equal(yours, self.truth)

    def evaluate(self, *nodes: Node) -> list[Array]:
        """Return the values of nodes at the points, of shape (elements, points)."""
        return numbers(self.case.graph, self.points, nodes)

    def write(self, node: Node) -> str:
        """Return a node as the user might write it."""
        return self.notation.name(node)

    @cached_property
    def notation(self) -> Notation:
        """How nodes are written: in the names of the inputs."""
        return Notation({n: name for name, n in self.case.graph.inputs.items()}, times="*")

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the derivative."""
        return self.case.truth.shape

    def only(self, entry: int) -> Evidence:
        """Return the evidence of one entry alone."""
        rows = slice(entry, entry + 1)
        return Evidence(self.case, self.points, self.truth[rows], self.yours[rows], self.tolerance, self.proof, 0)


def diagnose(case: Case, trials: Trials, tolerance: float, proof: Proof, entry: int) -> str:
    """Return what is wrong with a claim, in words."""
    counted = trials.chosen(np.flatnonzero(trials.counted))
    evidence = Evidence(case, counted.points, counted.truth, counted.yours, max(tolerance, 1e-9), proof, entry)
    with np.errstate(all="ignore"):
        for explain in _EXPLANATIONS:
            if found := explain(evidence):
                return found
    if proof.difference:
        return f"it is yours + ({proof.difference})"
    return "it differs from the derivative"


def _transposed(e: Evidence) -> str:
    """Say that axes are exchanged."""
    shape = e.shape
    if not 1 < len(shape) <= _MAX_RANK:
        return ""
    truth = e.truth.reshape(*shape, -1)
    for order in permutations(range(len(shape))):
        turned = truth.transpose(*order, len(shape))
        if (
            order != tuple(range(len(shape)))
            and turned.shape == truth.shape
            and e.equal(turned.reshape(e.truth.shape), e.yours)
        ):
            return (
                "transposed: yours is its transpose"
                if len(shape) == 2
                else f"transposed: yours has its axes as {order}"
            )
    return ""


# Factors


def _factor(e: Evidence) -> str:
    """Say that a constant is the factor: the sign, a number, the size of an axis."""
    ratio = _ratio(e)
    if ratio is None:
        return ""
    if ratio == 0:
        return "yours is 0"
    if abs(ratio + 1) <= e.tolerance:
        return "the sign: yours is -1 times it"
    text = _number(ratio, e.tolerance)
    count = ratio if abs(ratio) > 1 else 1 / ratio
    sizes: dict[int, str] = {}
    for name, x in e.case.graph.inputs.items():
        sizes |= {n: f"{name} has {n} elements along axis {axis}" for axis, n in enumerate(x.shape) if n > 2}
        if len(x.shape) > 1:
            sizes.setdefault(x.size, f"{name} has {x.size} elements")
    near = next((n for n in sizes if abs(abs(count) - n) <= e.tolerance * n), None)
    if near is not None:
        return f"yours is {text} times it: off by 1/n? {sizes[near]}, and a mean divides by their number"
    return f"yours is {text} times it" if abs(ratio) > 1 else f"yours is {text} of it"


def _ratio(e: Evidence) -> float | None:
    """Return the number that yours is times the truth everywhere, if there is one."""
    some = np.abs(e.truth) > 1e-9
    if not some.any():
        return None
    ratios = e.yours[some] / e.truth[some]
    ratio = float(np.median(ratios))
    return ratio if e.equal(e.yours, ratio * e.truth) else None


def _number(value: float, tolerance: float) -> str:
    """Return a number as a simple fraction if it is near one.

    >>> _number(0.5, 1e-9), _number(-2.0, 1e-9), _number(3.14159265358979, 1e-9)
    ('1/2', '-2', '3.14159')
    """
    near = Fraction(value).limit_denominator(60)
    return str(near) if abs(float(near) - value) <= tolerance * max(1, abs(value)) else f"{value:.6g}"


def _inner(e: Evidence) -> str:
    """Say that the derivative of an inner function is forgotten, or there twice."""
    for u, slope in _inner_slopes(e):
        if e.right(e.yours * slope[1]):
            factor, inner = _once(e, slope[0]), e.write(u)
            forgotten = f"the derivative of the inner function is forgotten: times {factor}, the derivative of {inner}"
            return f"the sign: {forgotten}" if factor == "-1" else forgotten
        if slope[0].op != "const" and e.equal(e.yours, e.truth * slope[1]):
            return f"the derivative of the inner function {e.write(u)} is there once too often: {e.write(slope[0])}"
    return ""


def _inner_slopes(e: Evidence) -> Iterator[tuple[Node, tuple[Node, Array]]]:
    """Yield the arguments of functions that are functions of the variable, with their derivatives as factors."""
    by = e.case.by
    nodes = scheduled([e.case.base])
    if by not in nodes:
        return
    inner = dict.fromkeys(
        a
        for n in nodes
        for a in n.args
        if n.op not in _LINEAR and a.args and a is not by and a.shape in ((), by.shape) and a.dtype != "bool"
    )
    active = active_nodes(Graph(nodes, {}, {}), [by])
    for u in list(inner)[:_CANDIDATES]:
        if u not in active:
            continue
        total = reduce("sum", u, tuple(range(len(u.shape)))) if u.shape else u
        before = scheduled([total])
        adjoints = reverse(Graph(before, {}, {}), [(total, const(1))], active_nodes(Graph(before, {}, {}), [by]))[1]
        slope = adjoints.get(by)
        if (
            slope is not None
            and (spread := _spread(e, slope)) is not None
            and not e.equal(spread, np.ones_like(spread))
        ):
            yield u, (slope, spread)


def _once(e: Evidence, node: Node) -> str:
    """Return a factor as text, a constant array as its number."""
    return e.write(const(node.value)) if node.value is not None else e.write(node)


def _spread(e: Evidence, node: Node) -> Array | None:
    """Return a node's values as a factor of the claim's entries: a number, or an array of the variable's shape."""
    (found,) = e.evaluate(node)
    if found.shape[0] == 1:
        return np.broadcast_to(found, e.truth.shape)
    trailing = e.shape[len(e.shape) - len(node.shape) :]
    if trailing != node.shape:
        return None
    return np.broadcast_to(found.reshape(*node.shape, -1), (*e.shape, found.shape[-1])).reshape(len(e.truth), -1)


def _by_factor(e: Evidence) -> str:
    """Say by which quantity of the system the claim has to be multiplied or divided."""
    nodes = [n for n in scheduled([e.case.base]) if n.op != "const" and n.dtype != "bool"]
    for node in nodes[:_CANDIDATES]:
        factor = _spread(e, node) if node.shape in ((), e.case.by.shape) else None
        if factor is None:
            continue
        if e.right(e.yours * factor):
            return f"{_power(e, node)}: times {e.write(node)}"
        if e.equal(e.yours, e.truth * factor):
            return f"{_power(e, node)}: divided by {e.write(node)}"
        if e.right(e.yours * factor**2):
            return f"a factor is missing: times {e.write(node)}**2"
    return ""


def _power(e: Evidence, node: Node) -> str:
    """Return what a factor too few or too many is: of a variable or a power's base, an exponent that is off by one."""
    bases = {n.args[0] for n in scheduled([e.case.base, e.case.truth]) if n.op == "pow"}
    return "an exponent off by one" if node in bases or node.op == "input" else "a factor"


# Inputs and entries


def _exchanged(e: Evidence) -> str:
    """Say that the claim is about another input, or has two inputs exchanged."""
    case = e.case
    others = [(name, x) for name, x in case.graph.inputs.items() if x is not case.by and x.shape == case.by.shape]
    own = next((name for name, x in case.graph.inputs.items() if x is case.by), "")
    plain = case.truth.shape == (*case.base.shape, *case.by.shape)
    for name, x in others[:_CANDIDATES] if plain and own else ():
        (found,) = e.evaluate(derivative(case.graph, case.base, x))
        if e.equal(e.yours, found):
            return f"inputs exchanged: this is the derivative by {name}, not by {own}"
    names = list(case.graph.inputs)
    for i, a in enumerate(names[:12]):
        for b in names[i + 1 : 12]:
            if case.graph.inputs[a].shape == case.graph.inputs[b].shape:
                swapped = e.points | {a: e.points[b], b: e.points[a]}
                if e.right(numbers(case.graph, swapped, [case.yours])[0]):
                    return f"inputs exchanged: {a} and {b}"
    return ""


def _one_entry(e: Evidence) -> str:
    """Say that all entries but one are right, and what is wrong with that one."""
    if len(e.truth) < 2:
        return ""
    wrong = [k for k in range(len(e.truth)) if not e.equal(e.truth[k], e.yours[k])]
    if len(wrong) != 1 or len(e.truth) == 2:
        return ""
    alone = e.only(wrong[0])
    more = next((found for explain in (_factor, _sums) if (found := explain(alone))), "")
    return f"right but for the entry {entry_name(e.shape, wrong[0])}" + (f": {more}" if more else "")


def _permuted(e: Evidence) -> str:
    """Say that the slices along an axis stand in another order."""
    for axis, size in enumerate(e.shape):
        if not 1 < size <= _MAX_LINES:
            continue
        truth, yours = (np.moveaxis(a.reshape(*e.shape, -1), axis, 0).reshape(size, -1) for a in (e.truth, e.yours))
        order = [next((j for j in range(size) if e.equal(yours[i], truth[j])), -1) for i in range(size)]
        if sorted(order) == list(range(size)) and order != list(range(size)):
            moved = next(i for i, j in enumerate(order) if i != j)
            where = f" along axis {axis}" if len(e.shape) > 1 else ""
            return f"indices exchanged{where}: yours has at {moved} what belongs at {order[moved]}"
    return ""


# Right in part


def _by_sign(e: Evidence) -> str:
    """Say that the claim is right for one sign of an input: as a whole, or each entry for that of its own element."""
    errors = np.abs(e.yours - e.truth) / np.maximum(1, np.maximum(np.abs(e.truth), np.abs(e.yours)))
    good = errors <= e.tolerance
    if not good.any() or good.all():
        return ""
    for name, x in e.case.graph.inputs.items():
        values = e.points[name].reshape(-1, e.points[name].shape[-1])
        seen = [(good.all(axis=0), (values > 0).all(axis=0), (values < 0).all(axis=0))]
        if x.shape and (spread := _spread(e, x)) is not None:
            seen.append((good, spread > 0, spread < 0))
        for right, positive, negative in seen:
            for sign, inside, outside in (("positive", positive, negative), ("negative", negative, positive)):
                if inside.any() and outside.any() and right[inside].all() and not right[outside].any():
                    return f"right only for {sign} {name}"
    return ""


def _special(e: Evidence) -> str:
    """Say that the claim is right only for inputs of a kind."""
    for name, x in e.case.graph.inputs.items():
        for what, project in _projections(name, x.shape):
            points = e.points | {name: project(e.points[name])}
            truth, yours = numbers(e.case.graph, points, [e.case.truth, e.case.yours])
            if np.isfinite(truth).all() and e.equal(truth, yours):
                return f"right only where {what}"
    return ""


def _projections(name: str, shape: tuple[int, ...]) -> Iterator[tuple[str, Callable[[Array], Array]]]:
    if len(shape) == 2 and shape[0] == shape[1]:
        yield f"{name} is symmetric", lambda a: (a + a.swapaxes(0, 1)) / 2
    if len(shape) >= 1:
        axis = len(shape) - 1
        rows = "each row of " if len(shape) > 1 else ""
        yield f"{rows}{name} sums to 1", lambda a: np.abs(a) / np.abs(a).sum(axis=axis, keepdims=True)
        yield f"norm({name}) = 1", lambda a: a / np.sqrt((a**2).sum(axis=tuple(range(len(shape))), keepdims=True))


# Words from formulas, and repairs of the claim


def _likely(e: Evidence) -> str:
    """Say which one change of the claim, of those that are likely mistakes, makes it right."""
    return _repaired(e, True)


def _unlikely(e: Evidence) -> str:
    """Say which other change of the claim makes it right."""
    return _repaired(e, False)


def _repaired(e: Evidence, likely: bool) -> str:
    for text, node in repairs(e.case.yours, e.case.graph, e.write, likely):
        if e.right(e.evaluate(node)[0]):
            return text
    return ""


def _sums(e: Evidence) -> str:
    """Say which term of a sum is missing, too many, or wrong."""
    where = f"in {entry_name(e.shape, e.entry)} " if e.shape and len(e.truth) > 1 and e.proof.terms else ""
    return f"{where}{e.proof.terms}"


def _terms(e: Evidence) -> str:
    """Say which array is missing as a term, or is a term too many."""
    for sign, term in _added(e.case.yours):
        if e.right(e.yours - sign * e.evaluate(term)[0]):
            return f"too many: {'+' if sign > 0 else '-'} {e.write(term)}"
    nodes = dict.fromkeys(n for n in scheduled([e.case.base, e.case.truth]) if n.shape == e.shape and n.op != "const")
    for node in list(nodes)[-_CANDIDATES:]:
        (found,) = e.evaluate(node) if node.dtype != "bool" else (np.zeros_like(e.truth),)
        for sign in (1, -1):
            if found.any() and e.right(e.yours + sign * found):
                return f"missing: {'+' if sign > 0 else '-'} {e.write(node)}"
    return ""


def _added(node: Node) -> Iterator[tuple[int, Node]]:
    """Yield the terms of a sum as it is written, with their signs."""
    stack = [(1, node)]
    while stack:
        sign, n = stack.pop()
        if n.op in ("add", "sub") and all(a.shape == n.shape for a in n.args):
            stack += [(sign if n.op == "add" else -sign, n.args[1]), (sign, n.args[0])]
        elif n is not node:
            yield sign, n


_EXPLANATIONS: Sequence[Callable[[Evidence], str]] = (
    _transposed, _by_sign, _inner, _factor, _exchanged, _one_entry, _permuted, _likely, _special, _sums, _terms,
    _unlikely, _by_factor,
)  # fmt: skip
