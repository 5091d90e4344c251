"""What is wrong with a claim: the first explanation that makes it right at every point where it was tried.

Numbers decide, at all points at once; formulas only give the words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations

import numpy as np

from gradcli.explain.claim import Case, derivative, numbers
from gradcli.explain.conditions import by_condition, by_sign, special
from gradcli.explain.evidence import Evidence, number
from gradcli.explain.proof import Proof, entry_name
from gradcli.explain.repairs import repairs
from gradcli.explain.results import Array
from gradcli.explain.terms import of_arrays, products, terms
from gradcli.explain.trials import Trials
from gradcli.graph.construct import reduce
from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.node import Node, const
from gradcli.graph.vjp import active_nodes, reverse

_MAX_RANK = 4  # of arrays whose axes are tried in another order
_MAX_LINES = 60  # along an axis, to be tried in another order
_CANDIDATES = 200  # nodes that are tried as a factor
_LINEAR = ("add", "sub", "mul", "div", "neg", "identity", "sum", "mean", "index", "reshape", "broadcast", "stack")


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


def _not_finite(e: Evidence) -> str:
    """Say that the claim is not finite where the derivative is."""
    bad = ~np.isfinite(e.yours).all(axis=0)
    if not bad.any():
        return ""
    return "yours is not finite" if bad.all() else "yours is not finite everywhere that the derivative is"


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
    ratio = e.ratio()
    if ratio is None:
        return ""
    if ratio == 0:
        return "yours is 0"
    if abs(ratio + 1) <= e.tolerance:
        return "the sign: yours is -1 times it"
    text = number(ratio, e.tolerance)
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
        if slope is not None and (spread := e.spread(slope)) is not None and not e.equal(spread, np.ones_like(spread)):
            yield u, (slope, spread)


def _once(e: Evidence, node: Node) -> str:
    """Return a factor as text, a constant array as its number."""
    return e.write(const(node.value)) if node.value is not None else e.write(node)


def _by_factor(e: Evidence) -> str:
    """Say by which quantity of the system the claim has to be multiplied or divided."""
    nodes = [n for n in scheduled([e.case.base]) if n.op != "const" and n.dtype != "bool"]
    for node in nodes[:_CANDIDATES]:
        factor = e.spread(node) if node.shape in ((), e.case.by.shape) else None
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


# Words from formulas, and repairs of the claim


def _likely(e: Evidence) -> str:
    """Say which one change of the claim, of those that are likely mistakes, makes it right."""
    return _repaired(e, True)


def _unlikely(e: Evidence) -> str:
    """Say which other change of the claim makes it right."""
    return _repaired(e, False)


def _repaired(e: Evidence, likely: bool) -> str:
    for text, node in repairs(e.case.yours, e.case.graph, scheduled([e.case.base]), e.write, likely):
        if e.right(e.evaluate(node)[0]):
            return text
    return ""


def _sums(e: Evidence) -> str:
    """Say which term of a sum is missing, too many, or wrong."""
    where = f"in {entry_name(e.shape, e.entry)} " if e.shape and len(e.truth) > 1 and e.proof.terms else ""
    return f"{where}{e.proof.terms}"


_EXPLANATIONS: Sequence[Callable[[Evidence], str]] = (
    _not_finite, _transposed, by_sign, by_condition, _inner, _factor, _exchanged, _one_entry, _permuted, _likely,
    special, of_arrays, _sums, terms, _unlikely, _by_factor, products,
)  # fmt: skip
