"""A graph at one point, as one Python function: a statement an operation, with nothing between them.

`engine.compiled` serves many points.  Here a call of a small function is what counts, most of it NumPy's overhead:
arrays have no axis of points, operators are written as such, and where all is scalar, numbers are Python's own floats.
The recipes of PyTorch's operations are written by `statements`, too, for arrays with that axis.
"""

from __future__ import annotations

import builtins
import math
import types
from collections.abc import Callable, Sequence
from operator import methodcaller
from typing import Any

import numpy as np

from gradcli.engine.evaluate import constant
from gradcli.engine.lowering import lower
from gradcli.engine.numpy_target import LARGE, forward
from gradcli.graph.einsum import products
from gradcli.graph.graph import Graph, last_readers, scheduled
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
_OF_SCALARS = _OPERATORS.keys() | _SCALAR.keys()


class StraightLine:
    """A graph ready to be called with its inputs in order; it returns the outputs in order, as a tuple.

    Nothing is raised for 1/0 or log(0): the result is inf or nan.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf((2,))
    >>> StraightLine(Graph.of({"x": x}, {"y": 3 * x}))(np.array([1.0, 2.0]))
    (array([3., 6.]),)
    """

    def __init__(self, graph: Graph) -> None:
        self._lists = _lists(graph)
        nodes = self._lists[1]
        scalar = _OF_SCALARS.issuperset(n.op for n in nodes if n.args) and not any(n.shape for n in nodes)
        self._scalar: Run | None = _written(*self._lists, True) if scalar else None
        self._arrays: Run | None = None

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """Return the outputs; inputs are arrays of float64, or floats."""
        if self._scalar is not None:
            try:
                return self._scalar(*map(float, inputs))
            except (ArithmeticError, ValueError):  # what NumPy has inf or nan for
                pass
        if self._arrays is None:
            self._arrays = _written(*self._lists, False)
        with np.errstate(all="ignore"):
            return self._arrays(*inputs)


def in_place(graph: Graph) -> Callable[..., None]:
    """Return a graph as a function that changes arrays: an output overwrites the input of its name.

    Inputs are arrays, each of its dtype; where all operations are elementwise, of any shapes that broadcast.  NumPy
    warns of 1/0 as it is set to.

    >>> from gradcli.graph.node import leaf
    >>> x, a = leaf((2,)), np.array([1.0, 2.0])
    >>> in_place(Graph.of({"x": x}, {"x": 3 * x}))(a)
    >>> a
    array([3., 6.])
    """
    inputs, nodes, outputs = _lists(graph)
    changed = [graph.inputs[name] for name in graph.outputs]
    return _written(inputs, nodes, outputs, False, changed)


def _lists(graph: Graph) -> tuple[Sequence[Node], Sequence[Node], Sequence[Node]]:
    """Return the inputs, all nodes and the outputs of a graph, lowered."""
    small = optimise(graph)
    new = lower(small.nodes)
    inputs, outputs = list(small.inputs.values()), [new[y] for y in small.outputs.values()]
    return inputs, scheduled(outputs, inputs), outputs


def _written(
    inputs: Sequence[Node],
    nodes: Sequence[Node],
    outputs: Sequence[Node],
    scalar: bool,
    changed: Sequence[Node] | None = None,
) -> Callable[..., Any]:
    """Return the function, which returns the outputs, or writes them into inputs that are `changed`."""

    def known(node: Node) -> Any:
        value = constant(node)[..., 0]
        return value.item() if scalar or not node.shape else np.array(value)

    def expression(node: Node) -> str | Callable[..., Any]:
        return _OPERATORS.get(node.op) or (_SCALAR[node.op] if scalar else _of_arrays(node))

    names, lines, values = statements(inputs, nodes, outputs, known, expression)
    if changed is None:
        lines.append(f"return ({''.join(f'{names[y]}, ' for y in outputs)})")
    else:
        lines += [f"{names[x]}[...] = {names[y]}" for x, y in zip(changed, outputs, strict=True)]
    return function_of([names[n] for n in inputs], lines, values)


def statements(
    inputs: Sequence[Node],
    nodes: Sequence[Node],
    outputs: Sequence[Node],
    known: Callable[[Node], Any],
    expression: Callable[[Node], str | Callable[..., Any]],
) -> tuple[dict[Node, str], list[str], dict[str, Any]]:
    """Return the names of nodes, a statement for each operation, and the values of the other names in these.

    `known` returns the value of a constant, and `expression` the text of an operation, or the function that it calls.
    Names are numbered: they have nothing that the user wrote.
    """
    names = {n: f"x{k}" for k, n in enumerate(inputs)}
    values: dict[str, Any] = {}
    lines: list[str] = []
    last, free = last_readers(nodes, outputs), list[str]()  # a name whose value nothing reads any more is used again
    for node in nodes:
        if node in names:
            continue
        if node.is_constant:
            names[node] = f"t{len(names)}"
            values[names[node]] = known(node)
            continue
        args, text = [names[a] for a in node.args], expression(node)
        if not isinstance(text, str):
            values[f"f{len(values)}"], text = text, f"f{len(values)}({', '.join(args)})"
        free += [names[a] for a in last.get(node, ()) if a.args]
        names[node] = free.pop() if free else f"t{len(names)}"
        lines.append(f"{names[node]} = {text.format(*args)}")
    return names, lines, values


def function_of(parameters: Sequence[str], lines: Sequence[str], values: dict[str, Any]) -> Callable[..., Any]:
    """Return the function of these statements; `values` are those of names that are no parameters."""
    text = f"def run({', '.join(parameters)}):\n " + "\n ".join(lines)
    module = compile(text, "<straight line>", "exec")
    code = next(c for c in module.co_consts if isinstance(c, types.CodeType))
    return types.FunctionType(code, values | {"__builtins__": builtins})


def _of_arrays(node: Node) -> Callable[..., Any]:
    """Return the function of an operation, for arrays without an axis of points."""
    rule = _ARRAYS.get(node.op)
    if rule is not None and (own := rule(node, *node.settings)) is not None:
        return own
    function = forward(node)
    if OPERATIONS[node.op].broadcasts and isinstance(function, np.ufunc):
        return function
    return lambda *xs: np.asarray(function(*(np.asarray(x)[..., None] for x in xs)))[..., 0]


def _sum(node: Node, axes: tuple[int, ...]) -> Callable[..., Any]:
    if len(node.args[0].shape) > len(axes):
        return lambda x: np.add.reduce(x, axis=axes)
    return np.add.reduce if len(axes) == 1 else lambda x: np.add.reduce(x, axis=None)


def _einsum(node: Node, subscripts: str) -> Callable[..., Any]:
    by_blas = products(node) >= LARGE
    return lambda a, b: np.einsum(subscripts, a, b, optimize=by_blas)


# NumPy's functions of arrays without an axis of points, by operation; None where there is none.
_ARRAYS: dict[str, Callable[..., Callable[..., Any] | None]] = {
    "where": forward,
    "identity": forward,
    "cast": lambda node, dtype: methodcaller("astype", np.dtype(dtype)),
    "sum": _sum,
    "matmul": lambda node: np.matmul,
    "outer": lambda node: np.multiply.outer,
    "reshape": lambda node, shape: lambda x: np.reshape(x, shape),
    "transpose": lambda node, order: lambda x: x.transpose(order),
    "broadcast": lambda node, shape: lambda x: np.broadcast_to(x, shape),
    "index": lambda node, key: (lambda x: x[key]) if all(type(k) is int for k in key) else None,
    "einsum": _einsum,
}
