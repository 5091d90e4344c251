"""Terms of a claim: those that are missing, too many, of the wrong sign or size, as whole arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np

from gradcli.explain.check.evidence import Evidence, exact, fraction
from gradcli.explain.forms.matrix_form import number_and_rest
from gradcli.explain.results import Array
from gradcli.graph.construct import matmul, swap
from gradcli.graph.graph import scheduled
from gradcli.graph.node import Node
from gradcli.graph.operation import Precedence
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.shapes import Shape
from gradcli.notation.numbers import array_text

_LOOSE = (Precedence.SUM, Precedence.SIGN)  # whose terms need brackets as factors
_CANDIDATES = 200  # nodes that are tried as a term: each is evaluated at all points
_FACTORS = 48  # nodes that are tried as a factor of a term: pairs of them are multiplied
_ELEMENTS = 400  # of such a factor: a matrix of 20 by 20
_LENGTH = 160  # characters of a term that is shown: two lines
_LOOK = 4  # points at which most products are seen to be different, before all points are computed

Multiply = Callable[[Array, Array], Array]


def of_arrays(e: Evidence) -> str:
    """Return a sentence on a wrong term that is a whole array, or ""."""
    return (terms(e) or products(e)) if e.shape else ""


def terms(e: Evidence) -> str:
    """Return a sentence on a term that is too many, missing, or has a wrong sign or factor, or ""."""
    return _wrong_term(e) or _missing_term(e)


def _wrong_term(e: Evidence) -> str:
    for sign, term in e.some(_added(e.case.yours)):
        (result,) = e.evaluate(term)
        rest = e.yours - sign * result
        if e.right(rest):
            return f"extra term: {'+' if sign > 0 else '-'} {e.write(term)}"
        if (ratio := e.quotient(e.truth - rest, sign * result)) is not None and (text := exact(ratio, e.tolerance)):
            written = e.write(term)
            is_sign = fraction(ratio, e.tolerance) == -1
            return f"the sign of the term {written}" if is_sign else f"the term {written} should be {text} times that"
        if term.is_constant and (text := _constant(e, sign * (e.truth - rest))):
            return f"the term {e.write(term)} should be {text}"
    return ""


def _constant(e: Evidence, values: Array) -> str:
    """Return numbers that are the same at all points as an array of simple ones; "" where they are not.

    Simple numbers are 0, and those that `exact` knows.
    """
    if values.shape[-1] < 2 or not e.equal(values, np.broadcast_to(values[:, :1], values.shape)):
        return ""
    size = np.abs(values[:, 0]).max()
    texts = ["0" if abs(v) <= e.tolerance * size else exact(v, e.tolerance) for v in values[:, 0].tolist()]
    return array_text(np.array(texts, dtype=object).reshape(e.shape), str) if all(texts) else ""


def _missing_term(e: Evidence) -> str:
    missing = e.truth - e.yours
    number = e.quotient(missing, np.ones_like(missing))
    if number is not None and (text := exact(abs(number), e.tolerance)):
        return f"the constant {text} is missing" if number > 0 else f"the constant {text} does not belong here"
    nodes = dict.fromkeys(n for n in scheduled([e.case.base, e.case.truth]) if n.shape == e.shape and not n.is_constant)
    for node in e.some(list(nodes)[-_CANDIDATES:]):
        (result,) = e.evaluate(node) if node.dtype != "bool" else (np.zeros_like(e.truth),)
        for sign in (1, -1):
            if result.any() and e.right(e.yours + sign * result):
                return _missing(sign, node, e)
    return ""


def _missing(ratio: float, node: Node, e: Evidence) -> str:
    """Return a sentence on a missing term, a number times a node, which names it where it is short and may be typed."""
    from gradcli.explain.forms.gradients import is_readable  # where no term is missing, start-up does not need it

    if is_readable(node, e.notation.names) and len(term := _signed(ratio, node, e)) <= _LENGTH:
        return f"missing: {term}"
    return "a term is missing, and the rest is right"


def _signed(ratio: float, node: Node, e: Evidence) -> str:
    """Return a number that `exact` knows times a node as a term with its sign."""
    number, rest = number_and_rest(node, e.notation.names)
    rational = fraction(abs(ratio), e.tolerance)
    if rational is not None:
        factors = [str(abs(Fraction(number) * rational))]
    else:  # a root, or one with π
        factors = [str(abs(number)), str(exact(abs(ratio), e.tolerance))]
    minus = (number < 0) != (ratio < 0)
    written = e.write(rest)
    if rest.args and OPERATIONS[rest.op].precedence in _LOOSE and rest not in e.notation.names:
        written = f"({written})"
    kept = [f for f in (*factors, written) if f != "1"]
    return f"{'-' if minus else '+'} {'*'.join(kept) or '1'}"


def _added(node: Node) -> Iterator[tuple[int, Node]]:
    """Yield the terms of a sum as it is written, with their signs."""
    stack = [(1, node)]
    while stack:
        sign, n = stack.pop()
        row = OPERATIONS[n.op] if n.args else None
        if row and row.precedence is Precedence.SUM and all(a.shape == n.shape for a in n.args):
            stack += [(-sign if row.infix == "-" else sign, n.args[1]), (sign, n.args[0])]
        elif n is not node:
            yield sign, n


def products(e: Evidence) -> str:
    """Return a sentence that a number times the product of two quantities is missing, or ""."""
    nodes = scheduled([e.case.yours, e.case.base, e.case.truth])
    some = [n for n in nodes if not n.is_constant and n.dtype != "bool" and n.size <= _ELEMENTS and len(n.shape) <= 2]
    some = some[:_FACTORS]
    missing = (e.truth - e.yours).reshape(*e.shape, -1)
    values = [v.reshape(*n.shape, -1) for n, v in zip(some, e.evaluate(*some), strict=True)]
    for a, left in zip(some, values, strict=True):
        for b, right in zip(some, values, strict=True):
            for make, multiply in _PRODUCTS:
                if (a is b and multiply is np.true_divide) or _shape(multiply, left, right) != e.shape:
                    continue
                looked = multiply(left[..., :_LOOK], right[..., :_LOOK])
                if e.quotient(missing[..., :_LOOK], looked) is None:
                    continue
                ratio = e.quotient(missing, multiply(left, right))
                if ratio is not None and exact(ratio, e.tolerance):
                    return _missing(ratio, make(a, b), e)
    return ""


def _shape(multiply: Multiply, left: Array, right: Array) -> Shape | None:
    """Return the shape of a product at a point; None where there is none."""
    try:
        return tuple(multiply(left[..., :1], right[..., :1]).shape[:-1])
    except ValueError:
        return None


def _contracted(left: Array, right: Array) -> Array:
    """Return `left @ right` of vectors and matrices at each point."""
    if min(left.ndim, right.ndim) < len(("element", "point")):
        raise ValueError
    rows, columns = "i" * (left.ndim - 2), "j" * (right.ndim - 2)
    return np.asarray(np.einsum(f"{rows}kp,k{columns}p->{rows}{columns}p", left, right))


def _swapped(x: Array) -> Array:
    if x.ndim != len(("row", "column", "point")):
        raise ValueError
    return x.swapaxes(0, 1)


_PRODUCTS: Sequence[tuple[Callable[[Node, Node], Node], Multiply]] = (
    (lambda a, b: a * b, np.multiply),
    (lambda a, b: a / b, np.true_divide),
    (matmul, _contracted),
    (lambda a, b: matmul(swap(a), b), lambda a, b: _contracted(_swapped(a), b)),
    (lambda a, b: matmul(a, swap(b)), lambda a, b: _contracted(a, _swapped(b))),
)
