"""Changes of one node of a claim, each of which may be the mistake in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from gradcli.errors import InputError
from gradcli.graph.construct import reduce, reshape, swap
from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.names import ElementName
from gradcli.graph.node import Node, const, elementwise, is_const, operand, operands
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.rewrite import substituted
from gradcli.graph.shapes import Shape, broadcast_shapes

_MAX_NODES = 300  # of a claim whose repairs are tried: their number is its square
_FACTORED = 40  # nodes of a claim in which factors may be missing: their number is its third power
_INDICES = 12  # along an axis that are tried for another: a mistake is rarely farther off
_NAMED = 12  # quantities that are tried for each other: 132 pairs
# Functions that are taken for each other.
_TAKEN = {
    "sin": "cos", "cos": "sin", "sinh": "cosh", "cosh": "sinh", "tan": "sec", "sec": "tan", "tanh": "sech",
    "sech": "tanh", "log": "exp", "exp": "log", "asin": "acos", "acos": "asin", "maximum": "minimum",
    "minimum": "maximum",
}  # fmt: skip
_SIGNS = {"add": "sub", "sub": "add"}


Changes = Iterator[tuple[str, Node]]
Write = Callable[[Node], str]
Kind = Callable[[Node, Graph, Write], Changes]


def repairs(claim: Node, graph: Graph, system: Mapping[Node, bool], write: Write, kinds: Sequence[Kind]) -> Changes:
    """Yield claims in which one node is changed, everywhere or at one place, each with what was wrong if it is right.

    The `kinds` of changes are one of the lists below.  `system` are the nodes that the claim is about, and whether they
    depend on the variable.  What the claim calls by its name is one quantity, whatever it is made of.
    """
    called = {n for name, n in graph.names.items() if not isinstance(name, ElementName) and n is not claim}
    nodes = [n for n in scheduled([claim], called) if n not in called]
    if len(nodes) > (_FACTORED if kinds is FACTORS else _MAX_NODES):
        return
    read = dict.fromkeys(a for n in nodes for a in n.args if a in called)
    readers = _readers(nodes)
    for kind, node in product(kinds, (*nodes, *read)):
        of_node = readers.get(node, [])
        changes = [*kind(node, graph, write), *(_of_system(node, system, write) if kind is _functions else ())]
        for text, other in changes:
            if _fits(other, node, of_node):
                for changed in _changed(node, other, of_node):
                    yield text, substituted([claim], changed, called)[0]


def _readers(nodes: Iterable[Node]) -> dict[Node, list[Node]]:
    """Return for each argument the nodes that read it, each once."""
    result: dict[Node, list[Node]] = {}
    for node in nodes:
        for arg in dict.fromkeys(node.args):
            result.setdefault(arg, []).append(node)
    return result


def _changed(node: Node, other: Node, readers: Sequence[Node]) -> Iterator[Mapping[Node, Node]]:
    """Yield the substitutions that replace a node: everywhere, or for one of several readers."""
    yield {node: other}
    for reader in readers if len(readers) > 1 else ():
        yield {reader: reader.with_args(tuple(other if a is node else a for a in reader.args))}


def _fits(other: Node, node: Node, readers: Sequence[Node]) -> bool:
    """Return whether a node can take the place of another: its shape is the same, or broadcast to the same."""
    if other.shape == node.shape:
        return True
    for reader in readers:
        shapes = [other.shape if a is node else a.shape for a in reader.args]
        try:
            if not OPERATIONS[reader.op].broadcasts or broadcast_shapes(shapes) != reader.shape:
                return False
        except InputError:
            return False
    return bool(readers)


def _of_system(node: Node, system: Mapping[Node, bool], write: Write) -> Changes:
    """Yield the system's functions of a node, and the node times the slopes of these functions.

    Either may be missing.
    """
    for other in system:
        if len(other.args) == 1 and other.args[0] is node and OPERATIONS[other.op].broadcasts:
            yield f"a function is missing: {write(node)} should be {write(other)}", other
    for other in (n for n, depends in system.items() if depends and len(n.args) == 1 and n.shape == node.shape):
        if slopes := OPERATIONS[other.op].slopes:
            slope = slopes[0](other, other.args[0])
            if isinstance(slope, Node) and not slope.is_constant and slope.shape == node.shape:
                whole = slope if is_const(node, 1) else node * slope
                yield f"the derivative of {write(other)} is missing: {write(node)} should be {write(whole)}", whole


def _brackets(node: Node, graph: Graph, write: Write) -> Changes:
    """Yield the quotient that a/b*c was meant to be."""
    for position, quotient in enumerate(operands(node, "mul")):
        match operands(quotient, "div"):
            case above, below if quotient not in graph.names.values():
                other = above / (below * node.args[1 - position])
                yield f"brackets are missing: {write(node)} should be {write(other)}", other


def _exponents(node: Node, graph: Graph, write: Write) -> Changes:
    match operands(node, "pow"):
        case base, exponent if exponent.is_constant:
            for step in (1, -1):
                other = base ** (exponent + step)
                yield f"an exponent off by one: {write(node)} should be {write(other)}", other


def _axes(node: Node, graph: Graph, write: Write) -> Changes:
    """Yield the same operation along another axis."""
    if node.args and OPERATIONS[node.op].settings == ("axis",) and node.shape == node.args[0].shape:
        for axis in range(len(node.shape)):
            if axis != node.settings[0]:
                along = replace(node, settings=(axis,))
                yield f"the wrong axis: {write(node)} should be {write(along)}", along
    yield from _sums(node)


def _sums(node: Node) -> Changes:
    """Yield sums, and means, over another axis; one that keeps its axis is a sum in another shape."""
    inner = operand(node, "reshape") or node
    if inner.op not in ("sum", "mean") or len(inner.settings[0]) != 1:
        return
    (own,), (x,) = inner.settings[0], inner.args
    kept = node is not inner
    if kept and node.shape != _with_one(x.shape, own):
        return
    for axis in range(len(x.shape)):
        if axis != own:
            other = reduce(inner.op, x, (axis,))
            text = f"summed over the wrong axis: over {own}, where it should be over {axis}"
            yield text, reshape(other, _with_one(x.shape, axis)) if kept else other


def _with_one(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], 1, *shape[axis + 1 :])


def _transposes(node: Node, graph: Graph, write: Write) -> Changes:
    if (before := operand(node, "transpose")) is not None:
        yield f"transposed: {write(node)} should be {write(before)}", before
    elif len(node.shape) == 2 and node.shape[0] == node.shape[1]:
        yield f"transposed: {write(node)} should be {write(swap(node))}", swap(node)
    match operands(node, "matmul"):
        case a, b if a.shape == b.shape == node.shape:
            other = node.with_args((b, a))
            yield f"factors exchanged: {write(node)} should be {write(other)}", other


def _inputs(node: Node, graph: Graph, write: Write) -> Changes:
    """Yield a node of a named quantity replaced by the other named quantities of its shape."""
    named = [n for n in dict.fromkeys([*graph.inputs.values(), *graph.names.values()]) if not n.is_constant]
    if node not in named:
        return
    for other in [n for n in named if n is not node and n.shape == node.shape][:_NAMED]:
        exchanged = "inputs exchanged: " if node.is_leaf and other.is_leaf else ""
        yield f"{exchanged}{write(node)} should be {write(other)}", other


def _functions(node: Node, graph: Graph, write: Write) -> Changes:
    if len(node.args) == 1 and not OPERATIONS[node.op].infix and OPERATIONS[node.op].broadcasts:
        yield f"an extra function: {write(node)} should be {write(node.args[0])}", node.args[0]
    if (taken := _TAKEN.get(node.op)) is not None:
        other = elementwise(taken, *node.args)
        yield f"{write(node)} should be {write(other)}", other


def _terms(node: Node, graph: Graph, write: Write) -> Changes:
    if (opposite := _SIGNS.get(node.op)) is not None:
        yield f"the sign of the term {write(node.args[1])}", replace(node, op=opposite)


def _signs(node: Node, graph: Graph, write: Write) -> Changes:
    if node.args and node.dtype != "bool":
        yield f"the sign of {write(node)}", -node


def _constants(node: Node, graph: Graph, write: Write) -> Changes:
    if node.is_constant and not node.shape and node.value is not None:
        for value in (1, 2, 3, 4, -1):
            if value != node.value:
                yield f"the constant {write(node)} should be {value}", const(value)


def _indices(node: Node, graph: Graph, write: Write) -> Changes:
    """Yield other elements of the same array."""
    if (x := operand(node, "index")) is None:
        return
    (key,) = node.settings
    for position, k in enumerate(key):
        if isinstance(k, int):
            for i in range(min(x.shape[position], _INDICES)):
                if i != k:
                    other = replace(node, settings=((*key[:position], i, *key[position + 1 :]),))
                    yield f"indices exchanged: {write(node)} should be {write(other)}", other


_EXCHANGED: Mapping[str, Callable[[Node, Node], Sequence[Node]]] = {
    "mul": lambda a, b: (a / b, b / a),
    "div": lambda a, b: (a * b,),
}


def _products(node: Node, graph: Graph, write: Write) -> Changes:
    """Yield the quotients for a product, and the product for a quotient."""
    exchanged = _EXCHANGED.get(node.op)
    for other in exchanged(*node.args) if exchanged is not None else ():
        yield f"{write(node)} should be {write(other)}", other


def _too_many(node: Node, graph: Graph, write: Write) -> Changes:
    """Yield a product or quotient with a factor less."""
    for other in operands(node, "mul") or operands(node, "div")[:1]:
        yield f"an extra factor: {write(node)} should be {write(other)}", other


def _squares(node: Node, graph: Graph, write: Write) -> Changes:
    """Yield the square of a quantity that has a name, or of an element of it."""
    whole = operand(node, "index") or node
    if any(n is whole for n in (*graph.inputs.values(), *graph.names.values())):
        yield f"an exponent is missing: {write(node)} should be {write(node**2)}", node**2


def _missing(node: Node, graph: Graph, write: Write) -> Changes:
    """Yield a node with an input as a factor or divisor more."""
    inputs = [x for x in graph.inputs.values() if not x.shape and x is not node]
    for x in inputs[:_NAMED] if node.dtype != "bool" else ():
        for other in (node * x, node / x):
            yield f"a factor is missing: {write(node)} should be {write(other)}", other


LIKELY: Sequence[Kind] = (_brackets, _exponents, _axes, _transposes, _inputs, _indices)
UNLIKELY: Sequence[Kind] = (_functions, _terms, _signs, _constants, _products)
FACTORS: Sequence[Kind] = (_squares, _too_many, _missing)
