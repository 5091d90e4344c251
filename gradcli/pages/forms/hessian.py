"""The Hessian by one vector as a formula of matrices: H·u is linear in u, and what multiplies u in it is H."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gradcli.graph import hessian as second
from gradcli.graph.construct import from_diagonal, matmul
from gradcli.graph.graph import Graph, computed_from, scheduled
from gradcli.graph.node import Node, const, operand, operands
from gradcli.graph.rewrite import interpret
from gradcli.notation.nodes import written_size
from gradcli.pages.forms.rules import ArrayForms

_LONG = 14  # operations in a formula that says less than the entries: half a line
_PARTS = 300  # nodes of a product H·u whose formula is worked out: the work is their square


def hessian_form(graph: Graph, wrt: Sequence[str]) -> tuple[Node, Mapping[Node, str]] | None:
    """Return H as a node and the names in it; None where the leaves are not one vector or no short formula is known.

    >>> from gradcli.graph.node import leaf
    >>> from gradcli.notation.nodes import Notation
    >>> A, x = leaf((3, 3)), leaf((3,))
    >>> H, names = hessian_form(Graph.of({"A": A, "x": x}, {"y": matmul(x, matmul(A, x))}), ["x"])
    >>> Notation(names, implicit=True).expression(H)
    'A + A.T'
    """
    if len(wrt) != 1 or len(graph.inputs[wrt[0]].shape) != 1:
        return None
    doubled = second.hvp(graph, wrt)
    product, u = doubled.outputs[f"{wrt[0]}.hvp"], doubled.inputs[f"{wrt[0]}.u"]
    if len(scheduled([product])) > _PARTS:
        return None
    names = {x: name for name, x in graph.inputs.items()}
    form = ArrayForms({**names, u: "u"})(product)
    identity = from_diagonal(const(1, u.shape), u.shape * 2)
    coefficients: dict[Node, Node | None] = {u: identity}
    matrix = interpret(computed_from(coefficients, [form]), _coefficient, coefficients)[form]
    if matrix is None or matrix.shape != (u.size, u.size):
        return None
    matrix = ArrayForms(names)(matrix)
    return (matrix, names) if written_size(matrix, names) <= _LONG else None


def _coefficient(form: Node, parts: Sequence[Node | None]) -> Node | None:
    """Return the matrix M of a formula M @ u, from those of its arguments; None where it has no such form."""
    match form.op, parts:
        case "neg", [Node() as inner]:
            return Node("neg", (inner,), inner.shape)
        case "add" | "sub", [Node() as a, Node() as b] if a.shape == b.shape:
            return Node(form.op, (a, b), a.shape)
        case "mul", [None, Node() as inner] | [Node() as inner, None]:
            return _scaled(form.args[parts.index(None)], inner)
        case "div", [Node() as inner, None] if not form.args[1].shape:
            return Node("div", (inner, form.args[1]), inner.shape)
        case "matmul", [None, Node() as inner] if form.args[0].shape[1:] and len(form.args[0].shape) == 2:
            return _product(form.args[0], inner)
    return None


def _scaled(factor: Node, matrix: Node) -> Node | None:
    """Return the matrix of factor·(M @ u): a number times M, or M with its rows scaled by a vector."""
    if not factor.shape:
        return Node("mul", (factor, matrix), matrix.shape)
    if factor.shape != matrix.shape[:1]:
        return None
    if (diagonal := operand(matrix, "from_diagonal")) is not None:
        return from_diagonal(factor * diagonal, matrix.shape)
    return _product(from_diagonal(factor, factor.shape * 2), matrix)


def _product(a: Node, b: Node) -> Node:
    """Return a product of matrices without brackets: (A @ B) @ C for A and B @ C, and A for A and an identity."""
    diagonal = operand(b, "from_diagonal")
    if diagonal is not None and diagonal.value == 1:
        return a
    factors = operands(b, "matmul")
    return matmul(_product(a, factors[0]), factors[1]) if factors else matmul(a, b)
