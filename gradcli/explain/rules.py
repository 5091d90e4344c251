"""How a node passes its adjoint on, as a reader would write it: ∂t/∂x = 2*x, or W̄ += x.T @ t̄.

A rule is written in its own node's adjoint, the node and its arguments: it is the table's, applied to nodes that stand
for them, so that no simplification has mixed in what other nodes are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gradcli.graph.names import bar, latex_index, latex_name
from gradcli.graph.node import Node, leaf, lift
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.vjp import Pass
from gradcli.notation.nodes import LatexNotation, Notation, subscript

# Rules that say less in formulas than in words.
_WORDS = {
    "max": "where {} is largest",
    "min": "where {} is smallest",
    "median": "where {} is the median",
    "prod": "times the product of the others",
}


class Rule(NamedTuple):
    """A rule as text in the language of gradcli, and as LaTeX."""

    text: str
    latex: str


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
        return _slope(lift(row.slopes[p.position](node, *stand_ins)), known, names[p.node], names[p.argument])
    assert row.pullback is not None  # or it would pass nothing on
    g = leaf(node.shape)
    passed = row.pullback(g, node, *node.settings, *stand_ins)[p.position]
    return _contribution(p.node, passed, known | {g: adjoint}, names[p.argument], adjoint, "+=" if adds else "=")


def _slope(slope: Node, known: Mapping[Node, str], node: str, argument: str) -> Rule:
    left = rf"\frac{{\partial {latex_name(node)}}}{{\partial {latex_name(argument)}}}"
    text = Notation(known, times="*", implicit=True).name(slope)
    return Rule(f"∂{node}/∂{argument} = {text}", f"{left} = {LatexNotation(known, implicit=True).name(slope)}")


def _contribution(
    node: Node, passed: Node, known: Mapping[Node, str], argument: str, adjoint: str, equals: str
) -> Rule:
    sign = r"\mathrel{+}=" if equals == "+=" else "="
    left, left_latex = bar(argument), latex_name(bar(argument))
    if passed.op == "scatter":  # of an index: only the elements that were read get something
        key = subscript(node.settings[0])
        left, left_latex = f"{left}[{key}]", latex_index(left_latex, key)
        passed = passed.args[0]
    words = _WORDS.get(node.op)
    if words:
        return Rule(
            f"{left} {equals} {adjoint} {words.format(argument)}",
            rf"{left_latex} {sign} {latex_name(adjoint)} \text{{ {words.format(rf'${latex_name(argument)}$')}}}",
        )
    text = Notation(known, times="*", implicit=True).name(passed)
    latex = LatexNotation(known, implicit=True).name(passed)
    return Rule(f"{left} {equals} {text}", f"{left_latex} {sign} {latex}")
