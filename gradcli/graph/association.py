"""Whether forward and reverse mode may give different entries of J: where a slope that selects meets an infinite one.

A product of slopes is the same in any order, but 0 is selected whatever it replaces: of `where(x > 0, sqrt(x), 0)` at
0, reverse mode multiplies 0 by the infinite slope of the root, and forward mode selects 0 instead of that slope.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from gradcli.graph.graph import computed_from
from gradcli.graph.node import Exact, Node, is_const, leaf
from gradcli.graph.operation import no_slope
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.vjp import contributions_of, scale, slope


def order_matters(active: Iterable[Node]) -> bool:
    """Return whether among the slopes of these nodes are some that select, and some that may be infinite.

    >>> from gradcli.graph.construct import where
    >>> from gradcli.graph.node import elementwise
    >>> x = leaf()
    >>> root, chosen = elementwise("sqrt", x), where(elementwise("gt", x, leaf()), x, 1)
    >>> order_matters([root]), order_matters([root, chosen])
    (False, True)
    """
    known: dict[Hashable, tuple[bool, bool]] = {}
    selects = infinite = False
    for node in active:
        if not node.args or not OPERATIONS[node.op].passes_on:
            continue
        numbers = tuple(a.value if a.is_constant else None for a in node.args)
        key = (node.op, node.settings if OPERATIONS[node.op].broadcasts else None, numbers)
        if key not in known:
            known[key] = _kinds(node)
        selects, infinite = (a or b for a, b in zip((selects, infinite), known[key], strict=True))
        if selects and infinite:
            return True
    return False


def _kinds(node: Node) -> tuple[bool, bool]:
    """Return whether one of the slopes of a node selects, and whether one may be infinite."""
    row, g = OPERATIONS[node.op], leaf(node.shape)
    alone = node.with_args(tuple(a if a.is_constant else leaf(a.shape, a.dtype) for a in node.args))
    if row.broadcasts:
        ends = [
            scale(g, slope(alone, i), alone, i)
            for i, a in enumerate(alone.args)
            if not a.is_constant and row.slopes[i] is not no_slope
        ]
    else:
        ends = [*contributions_of(alone, g)]
    parts = computed_from({g, alone, *alone.args}, ends)
    selects = any(is_const(n, 0) for n in ends) or any(n.args and OPERATIONS[n.op].selects for n in parts)
    return selects, any(map(_may_be_infinite, parts))


def _may_be_infinite(node: Node) -> bool:
    """Return whether an operation is infinite at some finite arguments."""
    if node.op not in ("div", "pow"):
        return bool(node.args) and OPERATIONS[node.op].poles
    second = node.args[1].value
    return not isinstance(second, Exact) or not (second > 0 if node.op == "pow" else second != 0)
