"""How a node passes its adjoint on, as a reader would write it: ∂t/∂x = 2*x, or W̄ += x.T @ t̄.

A rule is written in its own node's adjoint, the node and its arguments: it is the table's, applied to nodes that stand
for them, so that no simplification has mixed in what other nodes are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gradcli.explain.sections import Added, Equal, Math, Name, Partial, Words, quantity
from gradcli.graph.names import bar
from gradcli.graph.node import Node, leaf
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


class Rule(NamedTuple):
    """A rule as text in the language of gradcli, and what it is made of for other notations."""

    text: str
    math: Math


def rule(p: Pass, names: Mapping[Node, str], adjoint: str, adds: bool) -> Rule:
    """Return the local derivative of an elementwise node, or what a structural one passes on.

    `names` are those of the graph's nodes, `adjoint` is that of the node's adjoint; `adds` tells that the argument gets
    more contributions than this one.
    """
    stand_ins = [a if a.op == "const" else leaf(a.shape, a.dtype) for a in p.node.args]
    node = Node(p.node.op, tuple(stand_ins), p.node.shape, p.node.settings, p.node.dtype)
    known = {node: names[p.node]} | {s: names[a] for s, a in zip(stand_ins, p.node.args, strict=True) if a in names}
    row = OPERATIONS[node.op]
    if row.broadcasts:
        return _slope(textbook_slope(node, p.position), known, names[p.node], names[p.argument])
    assert row.pullback is not None  # or it would pass nothing on
    g = leaf(node.shape)
    passed = row.pullback(g, node, *node.settings, *stand_ins)[p.position]
    return _contribution(p.node, passed, known | {g: adjoint}, names[p.argument], adjoint, "+=" if adds else "=")


def _slope(slope: Node, known: Mapping[Node, str], node: str, argument: str) -> Rule:
    text = Notation(known, times="*", implicit=True).name(slope)
    return Rule(f"∂{node}/∂{argument} = {text}", Equal((Partial(node, argument), quantity(slope, known))))


def _contribution(
    node: Node, passed: Node, known: Mapping[Node, str], argument: str, adjoint: str, equals: str
) -> Rule:
    left = bar(argument)
    if passed.op == "scatter":  # of an index: only the elements that were read get something
        left += f"[{subscript(node.settings[0], node.args[0].shape)}]"
        passed = passed.args[0]
    before, _, after = _WORDS.get(node.op, "").partition("{}")
    if before:
        text = f"{adjoint} {before}{argument if after else ''}{after}"
        what: Math = Words((Name(adjoint), f" {before}", *([Name(argument)] if after else []), after))
    else:
        text, what = Notation(known, times="*", implicit=True).name(passed), quantity(passed, known)
    return Rule(f"{left} {equals} {text}", Added(Name(left), what) if equals == "+=" else Equal((Name(left), what)))
