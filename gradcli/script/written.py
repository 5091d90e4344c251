"""Expressions of a page that are written as in the script: operands without a history, and calls."""

from __future__ import annotations

import ast
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from inspect import signature
from typing import Any, NamedTuple

import numpy as np

from gradcli.engine.evaluate import at_point
from gradcli.errors import InputError, Source, Span
from gradcli.graph.graph import Graph
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS
from gradcli.lang.builder import build
from gradcli.lang.expressions import read_expression
from gradcli.notation.nodes import Notation, readable_names, written_size
from gradcli.pytorch.calls import exact
from gradcli.vocabulary import FUNCTIONS

Array = np.ndarray[Any, Any]
Meaning = Callable[..., Node | None]  # the node of a name, and of a computed one where it is compared

_EXACT = 1_000  # numbers that are converted by their decimals: a million would take a second
_MANY = 4  # operations of what is rather written as its call
_WHOLE = 2**53  # below, a float that is an integer is exact
_CLOSE = 1e-5  # of float32 numbers: no record is kept of what has no history, so it is computed again, in float64


def shortest(value: Any) -> Any:
    """Return a number as its shortest decimal, as it was typed (`repr`)."""
    result = float(str(value)) if isinstance(value, np.float32) else value.item()
    whole = isinstance(result, float) and result.is_integer() and abs(result) < _WHOLE and str(result) != "-0.0"
    return int(result) if whole else result


def decimal(array: Array) -> Array:
    """Return float32 numbers as the decimals that they were typed as, in float64; many of them as they are.

    >>> decimal(np.array([0.1], np.float32))
    array([0.1])
    """
    if array.dtype == np.float32 and array.size <= _EXACT:
        return np.array([float(str(v)) for v in array.reshape(-1)]).reshape(array.shape)
    return array.astype(float)


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


class CallOf(NamedTuple):
    """The call that a step records: a function, its settings, and its operands."""

    function: str
    settings: Any
    operands: Sequence[Node]

    def typed(self, operands: Sequence[str]) -> str:
        """Return the call of a function of the vocabulary as it is typed; what is the default is left out.

        >>> call = CallOf("one_hot", (("input", ("operand", 0)), ("num_classes", ("setting", 3))), ())
        >>> call.typed(["t"])
        'one_hot(t, 3)'
        """
        parameters = signature(FUNCTIONS[self.function]).parameters.values()
        settings = dict(self.settings)
        options = [
            (p, settings[p.name])
            for p in parameters
            if p.name in settings and not _is_default(settings[p.name], p.default)
        ]
        parts = [
            _typed(v, operands) if p.default is p.empty else f"{p.name}={_typed(v, operands, True)}" for p, v in options
        ]
        return f"{self.function}({', '.join(parts)})"

    @property
    def can_be_typed(self) -> bool:
        """Whether it is a call of a function of the vocabulary with the same names of operands."""
        if self.function not in FUNCTIONS or not _is_arguments(self.settings):
            return False
        known = signature(FUNCTIONS[self.function]).parameters
        return all(name in known or kind != "operand" for name, (kind, *_) in self.settings)


def _is_default(encoded: Sequence[Any], default: Any) -> bool:
    """Return whether an argument is the default, or that for each axis."""
    kind, *_, value = encoded
    if kind == "list":
        return all(_is_default(one, default) for one in value)
    known = default.value if isinstance(default, Node) else default
    return bool(kind != "operand" and (exact(value) if kind == "number" else value) == known)


def _typed(options: Sequence[Any], operands: Sequence[str], one_for_all: bool = False) -> str:
    kind, *_, value = options
    if kind == "list":
        parts = [_typed(one, operands) for one in value]
        if one_for_all and len({*parts}) == 1:
            return parts[0]
        return f"({', '.join(parts)}{',' * (len(parts) == 1)})"
    return operands[value] if kind == "operand" else repr(value)


def with_numbers(settings: Any, numbers: Sequence[Array]) -> Any:
    """Return the settings of a call of the vocabulary with its numbers in their positions."""
    return tuple((name, _filled(e, numbers)) for name, e in settings) if _is_arguments(settings) else settings


def _is_arguments(settings: Any) -> bool:
    """Return whether settings are the arguments of a call of the vocabulary: names, and each value with its kind."""
    pairs = isinstance(settings, tuple) and settings and all(isinstance(e, tuple) and len(e) == 2 for e in settings)
    return bool(pairs) and all(isinstance(name, str) and isinstance(value, tuple) for name, value in settings)


def _filled(encoded: Any, numbers: Sequence[Array]) -> Any:
    kind, value = encoded
    if kind == "list":
        return kind, tuple(_filled(e, numbers) for e in value)
    return (kind, shortest(numbers[value].reshape(-1)[0])) if kind == "number" else encoded


def spans_of_calls(graph: Graph, calls: Mapping[Node, CallOf]) -> dict[Node, Span]:
    """Return how nodes with a name are written that are such calls, or have them within.

    The calls are in the order in which they were recorded.  What is too deep to read as a whole is left as it is.
    """
    names = dict(readable_names(graph))
    if len(names) > len(graph.labels):
        return {}
    result: dict[Node, str] = {}
    for node, call in calls.items():
        if (written := _written(node, call, names)) is not None:
            result[node] = written
            names.setdefault(node, written)
    if len(names) > len(graph.labels):
        writer = Notation(names)
        result = {n: writer.expression(n) for n in graph.labels if n.args} | result
    return {n: Span(Source(text), 0, len(text)) for n, text in result.items() if n in graph.labels}


def _written(node: Node, call: CallOf, names: dict[Node, str]) -> str | None:
    """Return a call as it is typed, where its definition is much longer."""
    writer = Notation(names)
    size = written_size(node, ChainMap(dict.fromkeys(call.operands, ""), names))
    if not call.can_be_typed or size < _MANY or OPERATIONS[node.op].kind == "call":
        return None
    return call.typed([writer.name(n) for n in call.operands])
