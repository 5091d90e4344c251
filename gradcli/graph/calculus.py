"""The local derivative of an elementwise operation, as nodes.

Where the table states no slope, SymPy is asked for it once (`diff`), and the answer is turned into nodes.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

from gradcli.graph.elementwise import ELEMENTWISE, call
from gradcli.graph.node import Node, const, lift

if TYPE_CHECKING:
    import sympy


def slope(node: Node, i: int) -> Node:
    """Return ∂node/∂(i-th argument) for an elementwise node, as a node of a shape that broadcasts to its own.

    Source: SymPy's `diff`, or the table's stated slope, which at corners follows PyTorch 2.13.

    >>> from gradcli.graph.node import leaf
    >>> slope(call("sin", leaf("x")), 0)
    cos(x), shape ()
    """
    row = ELEMENTWISE[node.op]
    if row.constant:
        return const(0)
    if row.slopes:
        return lift(row.slopes[i](node, *node.args))
    derivative, symbols, itself = _ask_sympy(node.op)
    known = dict(zip(symbols, node.args, strict=True)) | {itself: node}
    return _to_node(derivative[i], known)


@cache
def sympy_function(op: str) -> Any:
    """Return SymPy's function for an operation of the table that has one."""
    import sympy
    from sympy.codegen import cfunctions

    name = ELEMENTWISE[op].sympy
    return getattr(cfunctions, name, None) if name in ("expm1", "log1p", "log2", "log10") else getattr(sympy, name)


@cache
def _ask_sympy(op: str) -> tuple[list[sympy.Expr], list[sympy.Symbol], sympy.Expr]:
    import sympy

    symbols = [sympy.Dummy(f"a{i}", real=True) for i in range(ELEMENTWISE[op].arity)]
    function = sympy_function(op)(*symbols)
    return [sympy.diff(function, s) for s in symbols], symbols, function


def _to_node(expr: Any, known: dict[Any, Node]) -> Node:
    """Turn a small SymPy expression into nodes; `known` maps expressions to the nodes that hold them."""
    if expr in known:
        return known[expr]
    if expr.is_Rational:
        return const(int(expr) if expr.q == 1 else Fraction(expr.p, expr.q))
    if expr.is_Add or expr.is_Mul:
        return _combine(expr, known)
    if expr.is_Pow and abs(expr.exp) == _half():
        root = known.get(expr.base ** _half()) or call("sqrt", _to_node(expr.base, known))
        return root if expr.exp > 0 else 1 / root
    if expr.is_Pow and expr.exp.is_negative:
        return 1 / _to_node(expr.base**-expr.exp, known)
    if expr.is_Pow:
        return _to_node(expr.base, known) ** _to_node(expr.exp, known)
    if expr.is_NumberSymbol:
        return const(str(expr))
    return call(_op_of(expr.func), *(_to_node(a, known) for a in expr.args))


def _combine(expr: Any, known: dict[Any, Node]) -> Node:
    """Turn a sum or a product into nodes, with divisions and subtractions where a reader expects them."""
    if expr.is_Add:
        terms = sorted(expr.args, key=lambda t: bool(t.could_extract_minus_sign()))
        result = _to_node(terms[0], known)
        for term in terms[1:]:
            minus = term.could_extract_minus_sign()
            result = result - _to_node(-term, known) if minus else result + _to_node(term, known)
        return result
    numerator, denominator = expr.as_numer_denom()
    if denominator != 1:
        return _to_node(numerator, known) / _to_node(denominator, known)
    result = const(1)
    for factor in expr.as_ordered_factors():
        result = result * _to_node(factor, known)
    return result


@cache
def _half() -> Any:
    import sympy

    return sympy.Rational(1, 2)


@cache
def _op_of(function: Any) -> str:
    """Return the table's name for a SymPy function."""
    if function.__name__ == "polygamma":
        return "polygamma"
    return next(op for op, row in ELEMENTWISE.items() if row.sympy and sympy_function(op) is function)
