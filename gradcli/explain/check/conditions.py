"""Claims that are right in part: for one sign of an input, under a condition of the system's, for arrays of a kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from gradcli.engine.rounding import relative_errors
from gradcli.explain.check.evidence import Evidence
from gradcli.explain.results import Array, Named
from gradcli.graph.graph import scheduled
from gradcli.graph.kinds import is_mirrored
from gradcli.graph.node import Node
from gradcli.graph.shapes import Shape
from gradcli.wrapping import in_words

_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_OPPOSITE = {"lt": "gt", "le": "gt", "gt": "lt", "ge": "lt"}  # apart from the corner between both


def _good(e: Evidence) -> Array | None:
    """Return at which points, or entries, the claim is right; None if all or none, or only those of derivative 0."""
    good = np.asarray(relative_errors(e.yours, e.truth, e.rounding) <= e.tolerance)
    return good if e.truth[good].any() and not good.all() else None


def by_sign(e: Evidence) -> str:
    """Return a sentence that the claim, or each entry, is right for one sign of an input, or ""."""
    good = _good(e)
    if good is None:
        return ""
    for name, x in e.case.graph.inputs.items():
        values = e.points[name].reshape(-1, e.points[name].shape[-1])
        wholes = (np.asarray(each.all(axis=0)) for each in (good, values > 0, values < 0))
        said = _of_sign(e, name, np.asarray(e.truth.any(axis=0)), *wholes)
        if not said and x.shape and (entries := e.in_shape(x)) is not None:
            said = _of_sign(e, name, np.asarray(e.truth != 0), good, entries > 0, entries < 0)
        if said:
            return said
    return ""


def _of_sign(e: Evidence, name: str, nonzero: Array, right: Array, positive: Array, negative: Array) -> str:
    """Return a sentence that the claim is right for one sign of an input, or "".

    The arrays say of each point, or of each entry at each point, whether the derivative is `nonzero`, the claim is
    `right`, and the input is `positive` or `negative`.
    """
    for sign, other, inside, outside in (
        ("positive", "negative", positive, negative),
        ("negative", "positive", negative, positive),
    ):
        some = inside.any() and outside.any() and right[inside].all() and not right[outside].any()
        if some and _is_of(e, name, -1 if sign == "negative" else 1):
            there = "" if nonzero[outside].any() else f"; for {other} {name} the derivative is 0"
            return f"right only for {sign} {name}{there}"
    return ""


def _is_of(e: Evidence, name: str, sign: int) -> bool:
    """Return whether it is the sign of this input that counts: the others may have their other signs."""
    result = e.at({n: sign * np.abs(p) if n == name else -p for n, p in e.points.items()})
    defined = np.isfinite(result.truth).all(axis=0)
    result = result.at({n: p[..., defined] for n, p in result.points.items()})
    return result.right(result.yours)


def by_condition(e: Evidence) -> str:
    """Return a sentence that the claim is right where a condition of the system, or of its derivative, holds, or ""."""
    good = _good(e)
    if good is None:
        return ""
    for node in scheduled([e.case.base, e.case.truth]):
        opposite = _OPPOSITE.get(node.op)
        if opposite is None or (holds := e.in_shape(node)) is None:
            continue
        both: tuple[tuple[Node, Array], ...] = (node, holds > 0), (replace(node, op=opposite), holds == 0)
        for condition, inside in both:
            if inside.any() and not inside.all() and (np.array_equal(good, inside) or _whole(good, inside)):
                return f"right only where {e.write(_plain(condition))}"
    return ""


def _whole(good: Array, inside: Array) -> bool:
    """Return whether the claim is right as a whole exactly where a condition holds, which is one for all entries."""
    return bool(np.all(inside == inside[:1]) and np.array_equal(good.all(axis=0), inside[0]))


def _plain(condition: Node) -> Node:
    """Return a comparison with its number on the right."""
    a, b = condition.args
    swapped = a.is_constant and not b.is_constant
    return replace(condition, op=_MIRRORED[condition.op], args=(b, a)) if swapped else condition


def special(e: Evidence) -> str:
    """Return a sentence that the claim is right for inputs of a kind alone, such as symmetric matrices, or ""."""
    if names := right_where_symmetric(e):
        return f"right only where {said_symmetric(names)}"
    for name, x in e.case.graph.inputs.items():
        for what, project in _projections(name, x.shape):
            if _is_right(e.at(e.points | {name: project(e.points[name])})):
                return f"right only where {what}"
    return ""


def _is_right(e: Evidence) -> bool:
    """Return whether the claim is right at all points."""
    return bool(np.isfinite(e.truth).all()) and e.right(e.yours)


def right_where_symmetric(e: Evidence) -> Sequence[str]:
    """Return the square matrices that have to be symmetric for the claim to be right; none where that is not enough."""
    names = where_symmetric(e, lambda names: "right" if _is_right(names) else "")
    return names[0] if names else ()


def said_symmetric(names: Sequence[str]) -> str:
    """Return that matrices are symmetric, in words."""
    return f"{in_words(names)} {'are' if len(names) > 1 else 'is'} symmetric"


def of_symmetric(e: Evidence) -> str:
    """Return a sentence that the claim counts both elements of a symmetric matrix as one variable, or ""."""
    name = next((n for n, x in e.case.graph.inputs.items() if x is e.case.by), "")
    if len(e.shape) != 2 or not is_mirrored(e.case.kinds.get(name), e.shape):
        return ""
    truth = e.truth.reshape(*e.shape, -1)
    both = truth + truth.swapaxes(0, 1)
    diagonal = np.eye(len(truth))[..., None] * truth
    for yours, what in ((both - diagonal, "takes both as one variable"), (both / 2, "is the mean of both")):
        if e.equal(e.yours, yours.reshape(e.yours.shape)):
            return f"the derivative is with respect to {name}[0,1] and {name}[1,0] separately, and yours {what}"
    return ""


def where_symmetric(e: Evidence, said: Callable[[Evidence], str]) -> tuple[Sequence[str], str] | None:
    """Return an explanation of a claim that holds if some square matrices are symmetric, after the fewest of these.

    `said` explains evidence, or returns "" where it has no explanation.
    """
    square = (n for n, x in e.case.graph.inputs.items() if len(x.shape) == 2 and x.shape[0] == x.shape[1])
    wanted = [n for n in square if n not in e.case.kinds]
    if not wanted or not (result := said(e.at(_symmetric(e.points, wanted)))):
        return None
    for name in reversed(wanted):
        others = [n for n in wanted if n != name]
        if others and said(e.at(_symmetric(e.points, others))) == result:
            wanted = others
    return wanted, result


def _symmetric(points: Named, names: Sequence[str]) -> Named:
    """Return points at which these matrices are symmetric."""
    return points | {n: (points[n] + points[n].swapaxes(0, 1)) / 2 for n in names}


def _projections(name: str, shape: Shape) -> Iterator[tuple[str, Callable[[Array], Array]]]:
    if len(shape) >= 1:
        axis = len(shape) - 1
        rows = "each row of " if len(shape) > 1 else ""
        yield f"{rows}{name} sums to 1", lambda a: np.abs(a) / np.abs(a).sum(axis=axis, keepdims=True)
        yield f"norm({name}) = 1", lambda a: a / np.sqrt((a**2).sum(axis=tuple(range(len(shape))), keepdims=True))
