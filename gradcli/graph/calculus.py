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
    return lift(row.slopes[i](node, *node.args))


@cache
def sympy_function(op: str) -> Any:
    """Return SymPy's function for an operation of the table that has one."""
    import sympy
    from sympy.codegen import cfunctions

    name = ELEMENTWISE[op].sympy
    return getattr(cfunctions, name, None) if name in ("expm1", "log1p", "log2", "log10") else getattr(sympy, name)
