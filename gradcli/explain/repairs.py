"""Changes of one node of a claim, each of which may be the mistake in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from gradcli.graph.construct import reduce, swap
from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.node import Node, const, elementwise
from gradcli.graph.substitute import substituted

_MAX_NODES = 300  # of a claim that is mended
# Functions that are taken for each other.
_TAKEN = {
    "sin": "cos", "cos": "sin", "sinh": "cosh", "cosh": "sinh", "tan": "sec", "sec": "tan", "tanh": "sech",
    "sech": "tanh", "log": "exp", "exp": "log", "asin": "acos", "acos": "asin", "maximum": "minimum",
    "minimum": "maximum",
}  # fmt: skip
_SIGNS = {"add": "sub", "sub": "add"}


Changes = Iterator[tuple[str, Node]]
Write = Callable[[Node], str]


def repairs(claim: Node, graph: Graph, write: Write, likely: bool) -> Changes:
    """Yield claims in which one node is changed, each with what was wrong if it is right.

    The `likely` mistakes are in exponents, axes, transposes, inputs and indices, the others in functions, signs and
    constants.
    """
    nodes = scheduled([claim])
    if len(nodes) > _MAX_NODES:
        return
    kinds = (_exponents, _axes, _transposes, _inputs, _indices) if likely else (_functions, _terms, _signs, _constants)
    for kind in kinds:
        for node in nodes:
            for text, other in kind(node, graph, write):
                if other.shape == node.shape:
                    (whole,) = substituted([claim], {node: other})
                    yield text, whole


def _exponents(node: Node, graph: Graph, write: Write) -> Changes:
    if node.op == "pow" and node.args[1].op == "const":
        for step in (1, -1):
            other = node.args[0] ** (node.args[1] + step)
            yield f"an exponent off by one: {write(node)} should be {write(other)}", other


def _axes(node: Node, graph: Graph, write: Write) -> Changes:
    if node.op not in ("sum", "mean") or len(node.settings[0]) != 1:
        return
    (own,) = node.settings[0]
    for axis in range(len(node.args[0].shape)):
        if axis != own:
            text = f"summed over the wrong axis: over {own}, where it should be over {axis}"
            yield text, reduce(node.op, node.args[0], (axis,))


def _transposes(node: Node, graph: Graph, write: Write) -> Changes:
    if node.op == "transpose":
        yield f"transposed: {write(node)} should be {write(node.args[0])}", node.args[0]
    elif len(node.shape) == 2 and node.shape[0] == node.shape[1] and node.op in ("input", "matmul", "outer"):
        yield f"transposed: {write(node)} should be {write(swap(node))}", swap(node)
    if node.op == "matmul" and node.args[0].shape == node.args[1].shape == node.shape:
        other = replace(node, args=node.args[::-1])
        yield f"factors exchanged: {write(node)} should be {write(other)}", other


def _inputs(node: Node, graph: Graph, write: Write) -> Changes:
    if node.op == "input":
        name = next((n for n, x in graph.inputs.items() if x is node), "")
        for other_name, other in graph.inputs.items():
            if other is not node:
                yield f"inputs exchanged: {name} where {other_name} belongs", other


def _functions(node: Node, graph: Graph, write: Write) -> Changes:
    if node.op in _TAKEN:
        other = elementwise(_TAKEN[node.op], *node.args)
        yield f"{write(node)} should be {write(other)}", other


def _terms(node: Node, graph: Graph, write: Write) -> Changes:
    if node.op in _SIGNS:
        yield f"the sign of the term {write(node.args[1])}", replace(node, op=_SIGNS[node.op])


def _signs(node: Node, graph: Graph, write: Write) -> Changes:
    if node.args and node.dtype != "bool":
        yield f"the sign of {write(node)}", -node


def _constants(node: Node, graph: Graph, write: Write) -> Changes:
    if node.op == "const" and not node.shape and node.value is not None:
        for value in (1, 2, 3, 4, -1):
            if value != node.value:
                yield f"the constant {write(node)} should be {value}", const(value)


def _indices(node: Node, graph: Graph, write: Write) -> Changes:
    """Yield other elements of the same array."""
    if node.op != "index":
        return
    (key,) = node.settings
    x = node.args[0]
    for place, k in enumerate(key):
        if isinstance(k, int):
            for i in range(min(x.shape[place], 12)):
                if i != k:
                    other = replace(node, settings=((*key[:place], i, *key[place + 1 :]),))
                    yield f"indices exchanged: {write(node)} should be {write(other)}", other
