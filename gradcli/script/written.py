"""Operands without a history, which a page writes as the script does."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from copy import deepcopy
from decimal import Decimal
from typing import Any

import numpy as np

from gradcli.engine.evaluate import at_point
from gradcli.errors import InputError, Source
from gradcli.graph.graph import Graph
from gradcli.graph.node import Node
from gradcli.lang.builder import build
from gradcli.lang.expressions import read_expression

Array = np.ndarray[Any, Any]
Meaning = Callable[..., Node | None]  # the node of a name, and of a computed one where it is compared

_WHOLE = 2**53  # below, a float that is an integer is exact
_CLOSE = 1e-5  # of float32 numbers: no record is kept of what has no history, so it is computed again, in float64


def exact(value: Any) -> int | Decimal | float:
    """Return a number as the value of a constant: its shortest decimal, as it was typed (`repr`).

    >>> exact(np.float32(0.1)), exact(np.float64(3)), exact(np.float64("inf"))
    (Decimal('0.1'), 3, inf)
    """
    number = float(str(value)) if isinstance(value, np.float32) else value.item()
    if isinstance(number, int) or (number.is_integer() and abs(number) < _WHOLE and str(number) != "-0.0"):
        return int(number)
    return Decimal(repr(number)) if np.isfinite(number) else number


class _WithoutTorch(ast.NodeTransformer):
    """Writes exp for torch.exp."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Return the name alone of an attribute of `torch`."""
        if isinstance(node.value, ast.Name) and node.value.id == "torch":
            return ast.Name(node.attr, node.ctx)
        self.generic_visit(node)
        return node


def node_of(expression: ast.expr, meaning: Meaning) -> Node | None:
    """Return the node of an expression that is a formula of the script's names; None where it is none."""
    inside = [n for c in ast.walk(expression) if isinstance(c, ast.Compare) for n in ast.walk(c)]
    names = {n.id: n in inside for n in ast.walk(expression) if isinstance(n, ast.Name) and n.id != "torch"}
    scope = {name: node for name, compared in names.items() if (node := meaning(name, compared)) is not None}
    try:
        return build(read_expression(Source(ast.unparse(_WithoutTorch().visit(deepcopy(expression))))), scope)
    except InputError:
        return None


def gives(node: Node, inputs: Mapping[str, Node], at: Mapping[str, Array], expected: Array) -> bool:
    """Return whether a node has these values at the point: the tensor of a name may have changed since.

    >>> from gradcli.graph.node import leaf
    >>> x, three = leaf(()), np.array(3.0)
    >>> [gives(x * x, {"x": x}, {"x": three}, np.array(value)) for value in (9.0, 8.0)]
    [True, False]
    """
    if node.shape != expected.shape:
        return False
    known = {name: n for name, n in inputs.items() if name in at}
    graph = Graph.of(known, {"": node})
    result = at_point(graph, {name: at[name] for name in known}, [node])[node]
    return bool(np.allclose(result, expected, rtol=_CLOSE, atol=_CLOSE, equal_nan=True))
