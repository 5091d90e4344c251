"""The diagnosis of a wrong claim: the first explanation that makes it right at every point where it was tried.

Numbers decide, at all points at once; formulas only give the words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, permutations
from math import floor, log10

import numpy as np

from gradcli.explain.check.claim import Case, derivative
from gradcli.explain.check.conditions import (
    by_condition,
    by_sign,
    of_symmetric,
    right_where_symmetric,
    said_symmetric,
    special,
    where_symmetric,
)
from gradcli.explain.check.evidence import Evidence, number
from gradcli.explain.check.proof import Proof, entry_name
from gradcli.explain.check.repairs import FACTORS, LIKELY, UNLIKELY, Kind, repairs
from gradcli.explain.check.terms import of_arrays, products, terms
from gradcli.explain.check.trials import Trials
from gradcli.explain.results import Array
from gradcli.graph.construct import swap, total
from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.node import Node, const, operand
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.vjp import active_nodes, reverse
from gradcli.wrapping import in_words

_LEAST = 1e-9  # the tolerance of an explanation, whose numbers have rounded as well
_ROUNDED = 0.01  # how far a factor may be from 1 that comes of a constant rounded to two digits
_SHORT = 100  # characters of terms that are shown, and before other explanations are tried: a line
_MAX_RANK = 4  # of arrays whose axes are tried in another order: 24 orders
_MAX_LINES = 60  # along an axis, to be tried in another order: the work is their square
_MAX_INPUTS = 12  # that are tried in pairs: 66 pairs
_CANDIDATES = 200  # nodes that are tried as a factor: each is evaluated at all points


def diagnose(case: Case, trials: Trials, tolerance: float, proof: Proof, entry: int) -> str:
    """Return the diagnosis of a claim, in words."""
    counted = trials.chosen(np.flatnonzero(trials.counted))
    evidence = Evidence(case, counted.points, counted.truth, counted.yours, max(tolerance, _LEAST), proof, entry)
    with np.errstate(all="ignore"):
        if result := _explained(evidence):
            return _with_declaration(result, evidence)
        if result := _also_transposed(evidence):
            return result
        if words := where_symmetric(evidence, _explained):
            names, said = words
            return f"even where {said_symmetric(names)}: {said}"
    if 0 < len(proof.difference) <= _SHORT:
        where = f"in {entry_name(case.truth.shape, entry)} " if case.truth.size > 1 else ""
        return f"{where}the right value is yours {proof.difference}"
    return "it differs from the derivative"


def _with_declaration(explanation: str, e: Evidence) -> str:
    """Return the diagnosis, and the input lines of symmetric matrices with which the claim is right."""
    names = right_where_symmetric(e)
    if not names:
        return explanation
    lines = in_words([f"`input {name} symmetric = …`" for name in names])
    right = f"right only where {said_symmetric(names)}"
    return f"{right}: {lines}" if explanation == right else f"{explanation}; {right}: {lines}"


def _explained(e: Evidence) -> str:
    return next((result for explain in _EXPLANATIONS if (result := explain(e))), "")


def _not_finite(e: Evidence) -> str:
    """Return a sentence that the claim is not finite where the derivative is, or ""."""
    bad = ~np.isfinite(e.yours).all(axis=0)
    if not bad.any():
        return ""
    return "yours is not finite" if bad.all() else "yours is not finite at every point where the derivative is"


def _transposed(e: Evidence) -> str:
    """Return a sentence that axes are exchanged, or ""."""
    shape = e.shape
    if not 1 < len(shape) <= _MAX_RANK:
        return ""
    truth = e.truth.reshape(*shape, -1)
    _, *others = permutations(range(len(shape)))  # the first leaves all as it is
    for order in others:
        transposed = truth.transpose(*order, len(shape))
        if transposed.shape == truth.shape and e.equal(transposed.reshape(e.truth.shape), e.yours):
            what = "is its transpose" if len(shape) == 2 else f"has its axes in the order {order}"
            return f"transposed: yours {what}"
    return ""


def _also_transposed(e: Evidence) -> str:
    """Return the diagnosis of the transpose of a square claim that is transposed as well, or ""."""
    if len(e.shape) != 2 or e.shape[0] != e.shape[1]:
        return ""
    yours = e.yours.reshape(*e.shape, -1).swapaxes(0, 1).reshape(e.yours.shape)
    other = replace(e, case=replace(e.case, yours=swap(e.case.yours)), yours=yours, proof=Proof())
    factor = partial(_factor, counts=False)
    result = next((text for explain in (_cotangent, _inner, factor, _by_factor) if (text := explain(other))), "")
    return f"transposed; and {result}" if result else ""


# Factors


def _cotangent(e: Evidence) -> str:
    """Return a sentence that the cotangent is missing, or ""."""
    for name in e.case.cotangents:
        factor = e.in_shape(e.case.graph.inputs[name])
        if factor is not None and e.right(e.yours * factor):
            return f"the cotangent {name} is missing: multiply your result by {name}"
    return ""


def _factor(e: Evidence, counts: bool = True) -> str:
    """Return a sentence that a constant is the factor: the sign, a number, or, if it `counts`, the size of an axis."""
    ratio = e.ratio()
    if ratio is None:
        return ""
    if ratio == 0:
        return "yours is 0"
    if abs(ratio + 1) <= e.tolerance:
        return "the sign: yours is -1 times the right value"
    if abs(ratio - 1) < _ROUNDED:
        allowed = f"1e-{floor(-log10(abs(ratio - 1)))}"
        return f"yours is {ratio:.6g} times the right value: rounded? `--tolerance {allowed}` accepts it"
    text = number(ratio, e.tolerance)
    sentence = f"yours is {text} times the right value"
    counted = _counted(e, max(abs(ratio), 1 / abs(ratio))) if counts else ""
    if not counted:
        return sentence
    or_sum = ", or a sum over them is missing" if abs(ratio) < 1 else ""
    return f"{sentence}: off by 1/n? {counted}, and a mean divides by their number{or_sum}"


def _counted(e: Evidence, count: float) -> str:
    """Return which input or intermediate has so many elements, as a whole or along an axis; inputs come first."""
    sizes: dict[int, str] = {}
    for name, x in e.case.graph.inputs.items():
        sizes |= {n: f"{name} has {n} elements along axis {axis}" for axis, n in enumerate(x.shape) if n > 2}
        if len(x.shape) > 1:
            sizes.setdefault(x.size, f"{name} has {x.size} elements")
    for name, x in e.case.graph.names.items():
        if x.size > 2:
            sizes.setdefault(x.size, f"{name} has {x.size} elements")
    return next((said for n, said in sizes.items() if abs(count - n) <= e.tolerance * n), "")


def _inner(e: Evidence) -> str:
    """Return a sentence that the derivative of an inner function is missing, or there twice, or ""."""
    for u, slope, values in _inner_slopes(e):
        if e.right(e.yours * values):
            factor, inner = _once(e, slope), e.write(u)
            missing = f"the derivative of the inner function is missing: times {factor}, the derivative of {inner}"
            return f"the sign: {missing}" if factor == "-1" else missing
        if not slope.is_constant and e.equal(e.yours, e.truth * values):
            return f"the derivative of the inner function {e.write(u)} appears once too often: {e.write(slope)}"
    return ""


def _inner_slopes(e: Evidence) -> Iterator[tuple[Node, Node, Array]]:
    """Yield each inner function u(x) of the system, its derivative ∂u/∂x, and that at the points as factors."""
    by = e.case.by
    nodes = scheduled([e.case.base])
    read = dict.fromkeys(a for n in nodes for i, a in enumerate(n.args) if not _is_sum_or_factor(n, i))
    inner = [a for a in read if a.args and a is not by and a.shape in ((), by.shape) and a.dtype != "bool"]
    active = active_nodes(Graph(nodes, {}, {}), [by])
    for u in e.some([u for u in inner[:_CANDIDATES] if u in active]) if by in nodes else ():
        whole = total(u)
        before = Graph(scheduled([whole]), {}, {})
        slope = reverse(before, [(whole, const(1))], active_nodes(before, [by]))[1].get(by)
        if (
            slope is not None
            and (values := e.in_shape(slope)) is not None
            and not e.equal(values, np.ones_like(values))
        ):
            yield u, slope, values


def _is_sum_or_factor(node: Node, position: int) -> bool:
    """Return whether an argument has no derivative of its own to forget: it is moved, added up, or a factor."""
    row = OPERATIONS[node.op]
    return position in row.linear or row.move is not None


def _once(e: Evidence, node: Node) -> str:
    """Return a factor as text, a constant array as its number."""
    return e.write(const(node.value)) if node.value is not None else e.write(node)


def _by_factor(e: Evidence) -> str:
    """Return a sentence on by which quantity of the system the claim has to be multiplied or divided, or ""."""
    nodes = [n for n in scheduled([e.case.base]) if not n.is_constant and n.dtype != "bool"]
    for node in e.some(nodes[:_CANDIDATES]):
        factor = e.in_shape(node) if node.shape in ((), e.case.by.shape) else None
        if factor is None:
            continue
        for power in (1, 2):
            right = e.right(e.yours * factor**power)
            if right or e.equal(e.yours, e.truth * factor**power):
                off = "an exponent off by one: it" if power == 1 and _is_base(e, node) else "it"
                written = e.write(node if power == 1 else node**power)
                return f"{off} is yours {'times' if right else 'divided by'} {written}"
    return ""


def _is_base(e: Evidence, node: Node) -> bool:
    """Return whether a node has an exponent: it is a power's base, or a factor or divisor of the claim."""
    if any(operand(n, "pow") is node for n in scheduled([e.case.base, e.case.truth])):
        return True
    stack = [e.case.yours]
    while stack:
        factor = stack.pop()
        if factor is node:
            return True
        stack += factor.args if factor.op in ("mul", "div", "neg", "stack") else ()
    return False


# Inputs and entries


def _another(e: Evidence) -> str:
    """Return a sentence that the claim is the derivative by another input, or ""."""
    case = e.case
    others = [(name, x) for name, x in case.graph.inputs.items() if x is not case.by and x.shape == case.by.shape]
    variable = next((name for name, x in case.graph.inputs.items() if x is case.by), "")
    plain = case.truth.shape == (*case.base.shape, *case.by.shape)
    for name, x in others[:_CANDIDATES] if plain and variable else ():
        (result,) = e.evaluate(derivative(case.graph, case.base, x))
        if e.equal(e.yours, result):
            return f"inputs exchanged: this is the derivative with respect to {name}, not {variable}"
    return ""


def _exchanged(e: Evidence) -> str:
    """Return a sentence that the claim has two inputs exchanged, or ""."""
    inputs = list(e.case.graph.inputs.items())[:_MAX_INPUTS]
    for (a, x), (b, z) in combinations(inputs, 2):
        if x.shape == z.shape and e.right(e.at(e.points | {a: e.points[b], b: e.points[a]}).yours):
            return f"inputs exchanged: {a} and {b}"
    return ""


def _one_part(e: Evidence) -> str:
    """Return a sentence that one entry, or one row or column, is wrong, with its diagnosis, or ""."""
    if len(e.truth) < 3:
        return ""
    wrong = np.array([not e.equal(a, b) for a, b in zip(e.truth, e.yours, strict=True)]).reshape(e.shape)
    if wrong.sum() == 1:
        key = tuple(int(k) for k in np.argwhere(wrong)[0])
        return _right_but_for(e, f"the entry {entry_name(e.shape, e.entry)}", key)
    for axis, size in enumerate(e.shape):
        lines = np.flatnonzero(wrong.any(tuple(k for k in range(len(e.shape)) if k != axis)))
        if len(e.shape) > 1 and size > 1 and len(lines) == 1:
            entry = ",".join(str(lines[0]) if k == axis else ":" for k in range(len(e.shape)))
            return _right_but_for(e, f"[{entry}]", (*map(range, e.shape[:axis]), int(lines[0])))
    return ""


def _right_but_for(e: Evidence, what: str, key: tuple[int | range, ...]) -> str:
    part = e.part(key)
    factor = partial(_factor, counts=len(part.truth) > 1)  # one entry alone is not off by the size of an axis
    result = (explain(part) for explain in (factor, _permuted, _likely, _sums, of_arrays, _unlikely))
    more = next((text for text in result if text), "") or _plus(part)
    return f"right except for {what}" + (f": {more}" if more else "")


def _plus(e: Evidence) -> str:
    """Return by how much the one entry of a claim differs, if that is short, or ""."""
    difference = e.proof.difference
    return f"the right value is yours {difference}" if 0 < len(difference) <= _SHORT else ""


def _permuted(e: Evidence) -> str:
    """Return a sentence that the slices along an axis are permuted, or ""."""
    for axis, size in enumerate(e.shape):
        if not 1 < size <= _MAX_LINES:
            continue
        truth, yours = (
            np.moveaxis(a.reshape(*e.shape, -1), axis, 0).reshape(size, len(a) // size, -1) for a in (e.truth, e.yours)
        )
        order = [next((j for j in range(size) if e.equal(yours[i], truth[j])), -1) for i in range(size)]
        if sorted(order) == list(range(size)) and order != list(range(size)):
            moved = next(i for i, j in enumerate(order) if i != j)
            where = f" along axis {axis}" if len(e.shape) > 1 else ""
            return f"indices exchanged{where}: yours at {moved} is the right value at {order[moved]}"
    return ""


# Words from formulas, and repairs of the claim


def _likely(e: Evidence) -> str:
    """Return a sentence on which one change of the claim, of those that are likely mistakes, makes it right, or ""."""
    return _repaired(e, LIKELY)


def _unlikely(e: Evidence) -> str:
    """Return a sentence on which other change of the claim makes it right, or ""."""
    return _repaired(e, UNLIKELY)


def _factored(e: Evidence) -> str:
    """Return a sentence on which factor, somewhere in the claim, makes it right, or ""."""
    return _repaired(e, FACTORS)


def _repaired(e: Evidence, kinds: Sequence[Kind]) -> str:
    nodes = scheduled([e.case.base])
    active = active_nodes(Graph(nodes, {}, {}), [e.case.by])
    system = {n: n in active for n in nodes}
    for text, node in e.some(repairs(e.case.yours, e.case.graph, system, e.write, kinds)):
        if e.right(e.evaluate(node)[0]):
            return text
    return ""


def _short_sums(e: Evidence) -> str:
    """Return a sentence on which term of a sum is missing, too many, or wrong, if that is short, or ""."""
    return _sums(e) if len(e.proof.terms) <= _SHORT else ""


def _sums(e: Evidence) -> str:
    """Return a sentence on which terms of a sum are missing, too many, or wrong, or ""."""
    where = f"in {entry_name(e.shape, e.entry)} " if e.shape and len(e.truth) > 1 and e.proof.terms else ""
    return f"{where}{e.proof.terms}"


_EXPLANATIONS: Sequence[Callable[[Evidence], str]] = (
    _not_finite, _transposed, of_symmetric, by_sign, by_condition, _cotangent, _inner, _factor, _another, _one_part,
    _permuted, _likely, _exchanged, special, of_arrays, _short_sums, terms, _unlikely, _by_factor, products,
    _factored, _sums,
)  # fmt: skip
