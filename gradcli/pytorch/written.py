"""What stands on a page as the script writes it: what nothing is recorded of, and losses of classes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np

from gradcli.engine.evaluate import values_of
from gradcli.errors import InputError, Source, Span
from gradcli.graph.construct import matmul
from gradcli.graph.graph import Graph
from gradcli.graph.node import Node, const
from gradcli.notation.nodes import Notation
from gradcli.pytorch.record import Line
from gradcli.vocabulary import FUNCTIONS

Array = np.ndarray[Any, Any]
Meaning = Callable[[str], Node | None]  # the node of a name

_OPERATORS: Mapping[type[ast.operator], Callable[[Node, Node], Node]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.Pow: lambda a, b: a**b,
    ast.MatMult: matmul,
}
_CLOSE = 1e-5  # of float32 numbers that were computed in another order


def operands_at(line: Line, source: str) -> Sequence[ast.expr]:
    """Return the expressions that the operation of a script's line has for operands.

    >>> line = Line(1)
    >>> line.code, line.call = compile("c * x ** 2", "script", "eval"), (0, 10)
    >>> [ast.unparse(e) for e in operands_at(line, "c * x ** 2")]
    ['x', '2']
    """
    if line.code is None:
        return ()
    place = next(islice(line.code.co_positions(), line.call[1] // 2, None), None)
    operation = _operations(source).get(place)
    if isinstance(operation, ast.BinOp):
        return operation.left, operation.right
    return operation.args if operation is not None else ()


@lru_cache(maxsize=1)
def _operations(source: str) -> dict[Any, ast.BinOp | ast.Call]:
    """Return a script's operations by where they stand: first and last line, first and last column."""
    found = (n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.BinOp | ast.Call))
    return {(n.lineno, n.end_lineno, n.col_offset, n.end_col_offset): n for n in found}


def node_of(expression: ast.expr, meaning: Meaning) -> Node | None:
    """Return the node of an expression of the script's names, numbers, operators and functions of the vocabulary."""
    match expression:
        case ast.Name(name):
            return meaning(name)
        case ast.Constant(int() | float() as number):
            return const(number)
        case ast.UnaryOp(ast.USub(), inner):
            own = node_of(inner, meaning)
            return None if own is None else -own
        case ast.BinOp(left, how, right) if type(how) in _OPERATORS:
            return _made(_OPERATORS[type(how)], (left, right), meaning)
        case ast.Call(ast.Attribute(ast.Name("torch"), name), args, []) if name in FUNCTIONS:
            return _made(FUNCTIONS[name], args, meaning)
        case ast.Call(ast.Attribute(inner, name), args, []) if name in FUNCTIONS:
            return _made(FUNCTIONS[name], (inner, *args), meaning)
    return None


def _made(make: Callable[..., Any], args: Any, meaning: Meaning) -> Node | None:
    own = [node_of(a, meaning) for a in args]
    if any(a is None for a in own):
        return None
    try:
        found = make(*own)
    except (InputError, TypeError):
        return None
    return found if isinstance(found, Node) else None


def gives(node: Node, inputs: Mapping[str, Node], at: Mapping[str, Array], wanted: Array) -> bool:
    """Tell whether a node has these values where the inputs have theirs: a name may have changed since.

    >>> from gradcli.graph.node import leaf
    >>> x, three = leaf(()), np.array(3.0)
    >>> [gives(x * x, {"x": x}, {"x": three}, np.array(value)) for value in (9.0, 8.0)]
    [True, False]
    """
    if node.shape != wanted.shape:
        return False
    known = {name: n for name, n in inputs.items() if name in at}
    graph = Graph.of(known, {"": node})
    found = values_of(graph, {name: at[name][..., None] for name in known}, [node])[node][..., 0]
    return bool(np.allclose(found, wanted, rtol=_CLOSE, atol=_CLOSE, equal_nan=True))


def spans_of_losses(losses: Mapping[Node, tuple[Any, Sequence[Node]]], names: Mapping[Node, str]) -> dict[Node, Span]:
    """Return losses of classes as calls, where all that these say is their operands: what they compute is longer.

    The settings of a loss are how it is reduced, by which number, and whether all samples count.
    """
    writer = Notation(names)
    found = {}
    for node, ((how, _, complete, _), operands) in losses.items():
        if how == "mean" and complete and len(operands) == 2:
            scores, target = operands
            softened = scores.op == "log_softmax" and scores not in names
            function, first = ("cross_entropy", scores.args[0]) if softened else ("nll_loss", scores)
            text = f"{function}({writer.name(first)}, {writer.name(target)})"
            found[node] = Span(Source(text), 0, len(text))
    return found
