"""Derivatives of Python functions on NumPy arrays, as functions: `grad`, `value_and_grad`, `jacobian`, `hessian`.

Each call traces the function anew, so that branches and the globals that it reads are those of the call.  The plan of
its operations is kept for the next call with the same operations.  `compile` traces once for each shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import update_wrapper
from typing import Any

import numpy as np

from gradcli.engine.straight_line import StraightLine
from gradcli.errors import InputError
from gradcli.graph.array import Weights
from gradcli.graph.construct import concatenate, reshape, total
from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.hessian import gradient
from gradcli.graph.jacobian import jacobian as _jacobian
from gradcli.graph.node import Node, const, leaf
from gradcli.graph.rewrite import substituted
from gradcli.pyfunc.functions.arguments import number
from gradcli.pyfunc.tape import Tape, running
from gradcli.pyfunc.trace import Function, bound, parameters_of, recorded
from gradcli.pyfunc.trace import trace as _trace
from gradcli.pyfunc.tracer import Tracer, is_number, leaves, lift, mapped, traced

Which = int | str | Sequence[int | str]
_KEPT = 64  # plans of a function


def trace(function: Function) -> Callable[..., Graph]:
    """Return a function that returns the system that a call computes: its graph, with the names of local variables.

    Errors: `InputError` for what cannot be traced, with its line.

    >>> def f(x, k=2.0):
    ...     h = x * k
    ...     return h**2
    >>> graph = trace(f)(x=3.0)
    >>> graph, list(graph.names)
    (Graph of 5 nodes, from x; k to f, ['h', 'f'])
    """

    def call(*args: Any, **named: Any) -> Graph:
        return _trace(function, bound(function, args, named), name_of(function)).graph

    update_wrapper(call, function)
    return call


def name_of(function: Function) -> str:
    """Return the name of a function, and `f` where it is not an identifier, as of a lambda."""
    name = getattr(function, "__name__", "f")
    return name if name.isidentifier() else "f"


def grad(function: Function, wrt: Which = 0) -> Derivative:
    """Return a function of the same arguments whose value is the gradient of a scalar function.

    `wrt` is the position or the name of the argument to differentiate by, or several.  The gradient has the form of
    the argument: an array, a number, or a list, tuple, dictionary or dataclass of them.

    Errors: `InputError` for a result that is not a scalar, and for what cannot be traced.

    >>> grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    array([2., 4.])
    >>> grad(lambda x, y: x * np.sin(y), "x")(3.0, 0.0)
    np.float64(0.0)
    """
    return Derivative(function, wrt, "grad")


def value_and_grad(function: Function, wrt: Which = 0) -> Derivative:
    """Return a function whose value is that of a scalar function and its gradient, as a pair (see `grad`).

    >>> value_and_grad(lambda x: x**3)(2.0)
    (np.float64(8.0), np.float64(12.0))
    """
    return Derivative(function, wrt, "value_and_grad")


def jacobian(function: Function, wrt: Which = 0) -> Derivative:
    """Return a function whose value is the Jacobian, of the result's shape followed by the argument's.

    A list of numbers counts as an array.  Of a dictionary, or of arrays of different shapes, the value has the form of
    the result, with the Jacobian of each array in its place.

    >>> jacobian(lambda x: np.array([x[0] * x[1], x[0]]))(np.array([2.0, 3.0]))
    array([[3., 2.],
           [1., 0.]])
    """
    return Derivative(function, wrt, "jacobian")


def hessian(function: Function, wrt: int | str = 0) -> Derivative:
    """Return a function whose value is the matrix of second derivatives of a scalar function.

    >>> hessian(lambda x: x[0] ** 2 * x[1])(np.array([2.0, 3.0]))
    array([[6., 4.],
           [4., 0.]])
    """
    return Derivative(function, wrt, "hessian")


def elementwise_grad(function: Function, wrt: Which = 0) -> Derivative:
    """Return a function whose value is the derivative of each element by the element at the same index.

    It is the gradient of the sum; each element of the result depends on that element alone.

    >>> elementwise_grad(np.sin)(np.array([0.0, np.pi])).round(6)
    array([ 1., -1.])
    """
    return Derivative(function, wrt, "elementwise_grad")


class Derivative:
    """A derivative of a function, as a function of the same arguments."""

    def __init__(self, function: Function, wrt: Which, kind: str) -> None:
        if not callable(function):
            raise TypeError(f"`{kind}` is of a Python function; `compile` has the gradients of a text")
        update_wrapper(self, function)
        self.function, self.kind = function, kind
        self.several = isinstance(wrt, tuple | list)
        self.wrt: tuple[Any, ...] = tuple(wrt) if isinstance(wrt, tuple | list) else (wrt,)
        self._plans: dict[Any, StraightLine] = {}

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Return the derivative at these arguments."""
        call = _Call(self, args, named)
        if call.outer is not None:
            return call.shaped(call.within(call.outer))
        nodes = scheduled([call.y], call.inputs)
        key, constants = _structure(nodes, call.inputs)
        run = self._plans.get(key)
        if run is None:
            if len(self._plans) >= _KEPT:
                self._plans.pop(next(iter(self._plans)))
            run = self._plans[key] = _plan(self.kind, call, constants)
        return call.shaped(run(*call.values, *(_numbers(c) for c in constants)))


class _Call:
    """One call of a derivative: the function traced with its arguments, those of `wrt` as inputs."""

    def __init__(self, derivative: Derivative, args: Sequence[Any], named: Mapping[str, Any]) -> None:
        self.inputs: list[Node] = []
        self.values: list[Any] = []
        self.originals: list[Any] = []
        self._derivative = derivative
        self._trees: list[Any] = []
        self.outer = running()
        positional, keyed = list(args), dict(named)
        for which in derivative.wrt:
            position: Any = which
            arguments: Any = positional
            if isinstance(which, str) and which in keyed:
                arguments = keyed
            elif isinstance(which, str):
                position = _position(derivative.function, which)
            elif not -len(args) <= which < len(args):
                raise TypeError(f"there is no argument {which} to differentiate with respect to")
            self._trees.append(arguments[position])
            arguments[position] = mapped(arguments[position], "", self._entered)
        if not self.inputs:
            raise TypeError("the argument to differentiate by is neither a number nor an array of them")
        self.tape = Tape(parent=self.outer)
        self.tape.inputs = dict(zip(self.inputs, self.values, strict=True))
        self.result = recorded(self.tape, derivative.function, positional, keyed)
        self.y = result_node(self.result, derivative.kind)

    def _entered(self, _: str, value: Any) -> Tracer:
        plain = value._value if type(value) is Tracer else value
        if plain is not None:
            plain = np.array(plain, float) if isinstance(plain, np.ndarray) else np.float64(plain)
        variable = leaf(value.shape if plain is None else plain.shape)
        self.inputs.append(variable)
        self.values.append(plain)
        self.originals.append(value)
        return Tracer(plain.copy() if isinstance(plain, np.ndarray) else plain, variable)

    def within(self, outer: Tape) -> list[Any]:
        """Return the results as tracers of the trace that this call is a part of."""
        nodes = derived(self._derivative.kind, self.inputs, self.y)
        meant = {variable: lift(x) for variable, x in zip(self.inputs, self.originals, strict=True)}
        conditions = self.tape.conditions
        new = substituted([*nodes, *(c.node for c in conditions)], meant)
        outer.conditions += [c._replace(node=n) for c, n in zip(conditions, new[len(nodes) :], strict=True)]
        known = outer.known
        read = [n for n in scheduled(new[: len(nodes)]) if n.is_leaf]
        values: Sequence[Any] = [None] * len(nodes)
        if all(known.get(n) is not None for n in read):
            graph = Graph.of(
                {str(k): n for k, n in enumerate(read)}, {str(k): n for k, n in enumerate(new[: len(nodes)])}
            )
            values = StraightLine(graph)(*(known[n] for n in read))
        return [
            traced(n, None if v is None else np.array(v) if n.shape else np.float64(v))
            for n, v in zip(new, values, strict=False)
        ]

    def shaped(self, results: Sequence[Any]) -> Any:
        """Return the results in the form of the arguments, behind the value if that is wanted."""
        return in_form(results, self._trees, self._derivative, self.result)


def _position(function: Function, name: str) -> int:
    names = list(parameters_of(function))
    if name not in names:
        raise TypeError(f"there is no parameter `{name}` to differentiate with respect to")
    return names.index(name)


def owned(x: Any) -> Any:
    """Return a result as an array that owns its data, or as a NumPy scalar."""
    if type(x) is np.ndarray:
        return x if x.flags.owndata and x.flags.writeable and x.shape else np.array(x) if x.shape else x[()]
    return x if type(x) is Tracer else np.float64(x)


def _numbers(node: Node) -> Any:
    value = node.settings[0]
    if isinstance(value, Weights):
        return np.asarray(value.array, float).reshape(node.shape)
    return np.full(node.shape, float(value)) if node.shape else float(value)


def result_node(result: Any, kind: str) -> Node:
    """Return the node of what is differentiated: of several arrays, all their elements.

    Errors: `InputError` for a result that is not a number, and for an array where the gradient of a scalar is wanted.
    """
    if (array := _array(result)) is None and kind == "jacobian" and (parts := [lift(x) for _, x in leaves(result)]):
        return concatenate([reshape(x, (x.size,)) for x in parts], 0)
    if array is None:
        raise InputError(f"the function returns a {type(result).__name__}, not a number to differentiate")
    y = number(array)
    if kind in ("grad", "value_and_grad", "hessian") and y.size != 1:
        message = f"a gradient is that of a scalar, and the function returns an array of shape {y.shape}"
        raise InputError(message, hint="take its sum, or `jacobian`")
    return y


def _array(result: Any) -> Any:
    """Return a result that is an array, or a list of numbers and arrays that NumPy makes an array; None for another."""
    if is_number(result):
        return result
    if type(result) not in (list, tuple) or not result:
        return None
    parts = [_array(part) for part in result]
    is_even = all(part is not None for part in parts) and len(set(map(_shape, parts))) == 1
    return result if is_even else None


def _shape(x: Any) -> tuple[int, ...]:
    return (len(x), *_shape(x[0])) if type(x) in (list, tuple) else np.shape(x)


def _structure(nodes: Sequence[Node], inputs: Sequence[Node]) -> tuple[Any, list[Node]]:
    """Return a key that is equal for traces of the same operations, and the constants in which they may differ."""
    index: dict[Node, int] = {}
    exponents = {n.args[1] for n in nodes if n.op == "pow"}
    constants: list[Node] = []
    key: list[Any] = [len(inputs)]
    for k, n in enumerate(nodes):
        index[n] = k
        if n.is_constant and n not in exponents and isinstance(n.settings[0], Weights | Decimal):
            constants.append(n)
            key.append(n.shape)
        elif n.is_constant:
            key.append((n.settings, type(n.settings[0]), n.shape, n.dtype))
        else:
            key.append((n.op, tuple([index[a] for a in n.args]), n.settings, n.shape))
    return tuple(key), constants


def _plan(kind: str, call: _Call, constants: Sequence[Node]) -> StraightLine:
    """Return the function that computes a derivative from the inputs and the constants."""
    leaves_of = {c: leaf(c.shape) for c in constants}
    (y,) = substituted([call.y], leaves_of)
    return straight_line([*call.inputs, *leaves_of.values()], derived(kind, call.inputs, y))


def straight_line(inputs: Sequence[Node], outputs: Sequence[Node]) -> StraightLine:
    """Return the function that computes nodes from the values of others, both in order."""
    first, last = ({str(k): n for k, n in enumerate(nodes)} for nodes in (inputs, outputs))
    return StraightLine(Graph.of(first, last))


def derived(kind: str, inputs: Sequence[Node], y: Node) -> list[Node]:
    """Return the nodes of a derivative: the value if it is wanted, then one for each input."""
    names = {str(k): n for k, n in enumerate(inputs)}
    if kind == "elementwise_grad":
        y = total(y)
    graph = Graph.of(names, {"y": y})
    if kind == "jacobian":
        blocks = _jacobian(graph).outputs
        return [blocks.get(f"dy/d{n}") or const(0, (*y.shape, *x.shape)) for n, x in names.items()]
    swept = gradient(graph)
    if kind == "hessian":
        blocks = _jacobian(swept).outputs
        return [blocks.get(f"d{n}/d{n}") or const(0, x.shape * 2) for n, x in names.items()]
    return [*([y] if kind == "value_and_grad" else []), *swept.outputs.values()]


def in_form(results: Sequence[Any], trees: Sequence[Any], derivative: Derivative, y: Any) -> Any:
    """Return results in the structure of the arguments `trees`, after the value where the derivative returns it.

    Where the function's result `y` is a structure of arrays, so is its Jacobian, with such a structure for each array.
    """
    if derivative.kind == "jacobian" and _array(y) is None:
        start = 0

        def rows(_: str, part: Any) -> Any:
            nonlocal start
            shape = np.shape(part)
            first, start = start, start + math.prod(shape)
            blocks = [np.reshape(r[first:start], (*shape, *np.shape(r)[1:])) for r in results]
            return in_form(blocks, trees, derivative, part)

        return mapped(y, "", rows)
    rest = iter(results)
    value = owned(next(rest)) if derivative.kind == "value_and_grad" else None
    built = [mapped(tree, "", lambda *_: owned(next(rest))) for tree in trees]
    whole = tuple(built) if derivative.several else built[0]
    return (value, whole) if derivative.kind == "value_and_grad" else whole
