"""A graph at one point, as one Python function: a statement an operation, with nothing between them.

`engine.compiled` serves many points.  Here a call of a small function is what counts, most of it NumPy's overhead:
arrays have no axis of points, operators are written as such, and where all is scalar, numbers are Python's own floats.
"""

from __future__ import annotations

import builtins
import math
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.engine.evaluate import constant
from gradcli.engine.lowering import lower
from gradcli.engine.numpy_target import forward
from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.rewrite import optimise

Run = Callable[..., tuple[Any, ...]]

_CALLED = ("pow", "mod", "and", "or", "not")  # by Python's functions, or NumPy's, though they have a sign
_OPERATORS = {
    op: f"{{}} {row.infix} {{}}" if row.arity > 1 else f"{row.infix}{{}}"
    for op, row in OPERATIONS.items()
    if row.broadcasts and row.infix and op not in _CALLED
}
# Scalar operations that Python's own functions compute as NumPy does, where they raise nothing.
_SCALAR: dict[str, Callable[..., Any]] = {
    name: getattr(math, name)
    for name in ("sin", "cos", "tan", "exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "asin", "acos", "atan")
} | {name: getattr(math, name) for name in ("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "atan2", "erf", "erfc")}
_SCALAR |= {"abs": abs, "identity": lambda x: x, "where": lambda c, a, b: a if c else b, "pow": math.pow}
_SCALAR |= {"hypot": math.hypot, "not": lambda c: not c}
_SCALAR |= {"and": lambda a, b: a and b, "or": lambda a, b: a or b, "sign": lambda x: float((x > 0) - (x < 0))}
_PLAIN = frozenset(("elementwise", "step", "condition"))


class StraightLine:
    """A graph ready to be called with its inputs in order; it returns the outputs in order, as a tuple.

    Nothing is raised for 1/0 or log(0): the result is inf or nan.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf((2,))
    >>> StraightLine(Graph.of({"x": x}, {"y": 3 * x}))(np.array([1.0, 2.0]))
    (array([3., 6.]),)
    """

    def __init__(self, graph: Graph) -> None:
        small = optimise(graph)
        new = lower(small.nodes)
        self._inputs = list(small.inputs.values())
        self._outputs = [new[y] for y in small.outputs.values()]
        self._nodes = scheduled(self._outputs, self._inputs)
        scalar = all(not n.shape and (not n.args or n.op in _OPERATORS or n.op in _SCALAR) for n in self._nodes)
        self._scalar = _written(self._inputs, self._nodes, self._outputs, True) if scalar else None
        self._arrays: Run | None = None

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """Return the outputs; inputs are arrays of float64, or floats."""
        if self._scalar is not None:
            try:
                return self._scalar(*map(float, inputs))
            except (ArithmeticError, ValueError):  # what NumPy has inf or nan for
                pass
        if self._arrays is None:
            self._arrays = _written(self._inputs, self._nodes, self._outputs, False)
        with np.errstate(all="ignore"):
            return self._arrays(*inputs)


def _written(inputs: Sequence[Node], nodes: Sequence[Node], outputs: Sequence[Node], scalar: bool) -> Run:
    """Return the function; its text has names that are numbered, and nothing that the user wrote."""
    names = {n: f"x{k}" for k, n in enumerate(inputs)}
    known: dict[str, Any] = {}
    lines: list[str] = []
    for node in nodes:
        if node in names:
            continue
        name = names[node] = f"t{len(names)}"
        if node.is_constant:
            value = constant(node)[..., 0]
            known[name] = value.item() if scalar or not node.shape else np.array(value)
            continue
        args = [names[a] for a in node.args]
        lines.append(f" {name} = {_expression(node, args, name, known, scalar)}")
    lines.append(f" return ({''.join(f'{names[y]}, ' for y in outputs)})")
    text = f"def run({', '.join(names[n] for n in inputs)}):\n" + "\n".join(lines)
    module = compile(text, "<straight line>", "exec")
    code = next(c for c in module.co_consts if isinstance(c, types.CodeType))
    return types.FunctionType(code, known | {"__builtins__": builtins})


def _expression(node: Node, args: Sequence[str], name: str, known: dict[str, Any], scalar: bool) -> str:
    """Return the text of an operation; what it calls is in `known`."""
    if node.op in _OPERATORS:
        return _OPERATORS[node.op].format(*args)
    known[f"f_{name}"] = _SCALAR[node.op] if scalar else _of_arrays(node)
    return f"f_{name}({', '.join(args)})"


def _of_arrays(node: Node) -> Callable[..., Any]:
    """Return what computes an operation of arrays that have no axis of points."""
    kind = OPERATIONS[node.op].kind
    if kind in _PLAIN and (isinstance(forward(node), np.ufunc) or node.op in ("where", "identity")):
        return forward(node)
    s = node.settings
    match node.op:
        case "sum" if len(node.args[0].shape) == len(s[0]):
            return np.add.reduce if len(s[0]) == 1 else lambda x: np.add.reduce(x, axis=None)
        case "sum":
            return lambda x: np.add.reduce(x, axis=s[0])
        case "matmul":
            return np.matmul
        case "outer":
            return np.multiply.outer
        case "reshape":
            return lambda x: np.reshape(x, s[0])
        case "transpose":
            return lambda x: x.transpose(s[0])
        case "broadcast":
            return lambda x: np.broadcast_to(x, s[0])
        case "index" if all(type(k) is int for k in s[0]):
            return lambda x: x[s[0]]
        case "einsum":
            return lambda a, b: np.einsum(s[0], a, b)
    function = forward(node)
    return lambda *xs: np.asarray(function(*(np.asarray(x)[..., None] for x in xs)))[..., 0]
