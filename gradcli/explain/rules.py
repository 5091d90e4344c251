"""The VJP rule of a node as formulas: a local derivative ∂t/∂x = 2*x, or W̄ += x.T @ t̄.

A rule is written in its own node's adjoint, the node and its arguments: it is the table's, applied to nodes that stand
for them, so that no simplification has mixed in what other nodes are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from gradcli.explain.sections import Added, Equal, Formula, Math, Name, Partial, Words, quantity
from gradcli.graph.names import indexed_name
from gradcli.graph.node import Node, leaf, operand
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.vjp import Pass, textbook_slope
from gradcli.notation.nodes import Notation
from gradcli.notation.text import subscript

# Rules that say less in formulas than in words.
_WORDS = {
    "max": "where {} is largest",
    "min": "where {} is smallest",
    "median": "where {} is the median",
    "prod": "times the product of the others",
}


def rule(p: Pass, names: Mapping[Node, str], adjoint: str, to: str, adds: bool) -> Formula:
    """Return the local derivative of an elementwise node, or the contribution of a structural one, as a formula.

    `names` are those of the graph's nodes, `adjoint` and `to` those of the adjoints of the node and of the argument;
    `adds` is whether the argument gets more contributions than this one.
    """
    if p.slope is not None:
        return slopes([p], names)
    pulled = _pulled(p.node)
    contribution = pulled.contributions[p.position]
    # Only the names that the rule reads: a stack of 5,000 numbers has 5,000 arguments, and a rule for each.
    called = {n: names.get(pulled.originals[n]) for n in _read(contribution) if n in pulled.originals}
    known = {n: name for n, name in called.items() if name is not None}
    known |= {pulled.node: names[p.node], pulled.g: adjoint}
    return _contribution(pulled.node, contribution, known, (names[p.argument], to), adjoint, "+=" if adds else "=")


class _Pulled(NamedTuple):
    """A node whose arguments are leaves, the names of these, and its contribution for an adjoint g."""

    node: Node
    originals: Mapping[Node, Node]
    g: Node
    contributions: Sequence[Node]


@lru_cache(maxsize=1)  # rules of one node follow each other
def _pulled(node: Node) -> _Pulled:
    alone, arguments = _with_leaves(node)
    row = OPERATIONS[alone.op]
    assert row.pullback is not None  # or it would pass nothing on
    g = leaf(alone.shape)
    originals = dict(zip(arguments, node.args, strict=True))
    return _Pulled(alone, originals, g, row.pullback(g, alone, *alone.settings, *alone.args))


def _read(node: Node) -> set[Node]:
    """Return a node and all that it is computed from."""
    result, waiting = {node}, [node]
    while waiting:
        new = {*waiting.pop().args} - result
        result |= new
        waiting += new
    return result


def slopes(passes: Sequence[Pass], names: Mapping[Node, str]) -> Formula:
    """Return the local derivative of an elementwise node by an argument that it reads once or more: x + x of x*x."""
    alone, known = standing_in(passes[0].node, names)
    first, *more = (textbook_slope(alone, p.position) for p in passes)
    slope, node, argument = sum(more, first), names[passes[0].node], names[passes[0].argument]
    text = Notation(known, implicit=True).name(slope)
    number = slope.value if isinstance(slope.value, int | Decimal) else None
    return Formula(
        f"∂{node}/∂{argument} = {text}", Equal((Partial(node, argument, local=True), quantity(slope, known))), number
    )


def standing_in(node: Node, names: Mapping[Node, str]) -> tuple[Node, dict[Node, str]]:
    """Return a copy of a node whose arguments are leaves, and the names of the copy and the leaves."""
    alone, arguments = _with_leaves(node)
    return alone, {alone: names[node]} | {s: names[a] for s, a in zip(arguments, node.args, strict=True) if a in names}


def _with_leaves(node: Node) -> tuple[Node, list[Node]]:
    """Return a copy of a node whose arguments are leaves and constants, and these arguments."""
    arguments = [a if a.is_constant else leaf(a.shape, a.dtype) for a in node.args]
    return node.with_args(tuple(arguments)), arguments


def _contribution(
    node: Node, contribution: Node, known: Mapping[Node, str], names: tuple[str, str], adjoint: str, equals: str
) -> Formula:
    argument, left = names
    if (
        part := operand(contribution, "scatter")
    ) is not None:  # of an index: only the elements that were read get something
        left = indexed_name(left, subscript(node.settings[0], node.args[0].shape))
        contribution = part
    before, _, after = _WORDS.get(node.op, "").partition("{}")
    if before:
        text = f"{adjoint} {before}{argument if after else ''}{after}"
        what: Math = Words((Name(adjoint), f" {before}", *([Name(argument)] if after else []), after))
    else:
        text, what = Notation(known, implicit=True).name(contribution), quantity(contribution, known)
    return Formula(f"{left} {equals} {text}", Added(Name(left), what) if equals == "+=" else Equal((Name(left), what)))
