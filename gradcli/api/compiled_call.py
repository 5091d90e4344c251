"""Functions and derivatives that are traced once for each shape of their arguments: `gradcli.compile`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import update_wrapper
from inspect import Parameter
from typing import Any, NamedTuple

import numpy as np

from gradcli.api.differentiate import Derivative, derived, in_form, name_of, owned, result_node, straight_line
from gradcli.engine.straight_line import StraightLine
from gradcli.errors import InputError, nearest
from gradcli.graph.construct import total
from gradcli.graph.graph import Graph
from gradcli.graph.hessian import gradient
from gradcli.graph.node import Node, leaf
from gradcli.pyfunc.trace import Function, bound, parameters_of, trace
from gradcli.pyfunc.tracer import is_number, leaves, mapped


class Evaluated(NamedTuple):
    """The values of the outputs and the gradients of the inputs, by their names."""

    values: dict[str, Any]
    gradients: dict[str, Any]


class _Ready(NamedTuple):
    """A plan for arguments of some shapes, under conditions: values that must be what they were."""

    run: StraightLine
    expected: tuple[Any, ...]
    shaped: Callable[[Sequence[Any]], Any]


class CompiledCall:
    """A function, or a derivative of one, traced once for arguments of the same shapes.

    What the function reads beside its arguments is what it was then.  Where it branches on values, each branch that is
    taken is traced once.  A function returns values and gradients (`Evaluated`), a derivative what it returns itself.
    Where the function has several results, or an array, `v` has their cotangents by name: `f`, or `f0` and `f1`, or the
    keys of a dictionary.
    """

    def __init__(self, function: Function | Derivative, wrt: Sequence[str] | None = None) -> None:
        self._derivative = function if isinstance(function, Derivative) else None
        self._function: Function = function.function if isinstance(function, Derivative) else function
        self._wrt = wrt
        parameters = parameters_of(self._function)
        self._tails = _defaults(parameters)
        self._takes_v = self._derivative is None and "v" not in parameters
        update_wrapper(self, self._function)
        self._ready: dict[Any, list[_Ready]] = {}

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Return the value of the function, or of the derivative, at these arguments."""
        v: Mapping[str, Any] | None = named.pop("v", None) if self._takes_v else None
        values: Sequence[Any] = args
        key: Any = None
        tail = self._tails.get(len(args)) if not named else None
        if tail is not None:
            key = tuple(
                [a.shape if type(a) is np.ndarray and a.dtype == np.float64 else _SIMPLE.get(type(a)) for a in args]
            )
            values = (*args, *tail)
        if key is None or None in key:
            key, values = self._described(args, named)
        if v is not None:
            key, values = (key, tuple(v)), [*values, *(np.asarray(w, float) for w in v.values())]
        for ready in self._ready.get(key, ()):
            results = ready.run(*values)
            if not ready.expected or all(np.array_equal(x, e) for x, e in zip(results, ready.expected, strict=False)):
                return ready.shaped(results)
        ready = self._trace(args, named, v)
        self._ready.setdefault(key, []).append(ready)
        return ready.shaped(ready.run(*values))

    def _described(self, args: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, list[Any]]:
        """Return the structure of arguments, which is the key of a plan, and the numbers in them."""
        arguments = bound(self._function, tuple(args), named)
        flat = [(n, x) for name, value in arguments.items() for n, x in leaves(value, name)]
        rest = repr({name: mapped(value, name, lambda *_: None) for name, value in arguments.items()})
        return (rest, tuple((n, np.shape(x)) for n, x in flat)), [np.asarray(x, float) for _, x in flat]

    def _trace(self, args: Sequence[Any], named: Mapping[str, Any], v: Mapping[str, Any] | None) -> _Ready:
        arguments = bound(self._function, tuple(args), named)
        result = trace(self._function, arguments, name_of(self._function), names=False)
        graph, conditions = result.graph, result.conditions
        expected = tuple(np.asarray(c.value, float) for c in conditions)
        weights = _weights(graph, v)
        inputs = [*graph.inputs.values(), *weights.values()]
        outputs, shaped = self._outputs(graph, arguments, result.result, weights)
        run = straight_line(inputs, [*(c.node for c in conditions), *outputs])
        n = len(conditions)
        return _Ready(run, expected, (lambda results: shaped(results[n:])) if n else shaped)

    def _outputs(
        self, graph: Graph, arguments: Mapping[str, Any], result: Any, weights: Mapping[str, Node]
    ) -> tuple[list[Node], Callable[..., Any]]:
        if self._derivative is None:
            wrt = list(graph.inputs) if self._wrt is None else list(self._wrt)
            pulled = [total(graph.outputs[name] * v) for name, v in weights.items()]
            y = sum(pulled[1:], pulled[0]) if pulled else _single(graph)
            swept = gradient(Graph.of(graph.inputs, {"y": y}), wrt)
            names = list(graph.outputs)
            return [*graph.outputs.values(), *swept.outputs.values()], lambda results: Evaluated(
                {n: owned(v) for n, v in zip(names, results, strict=False)},
                {n: owned(v) for n, v in zip(wrt, results[len(names) :], strict=True)},
            )
        d = self._derivative
        parameters = list(arguments)
        chosen = [w if isinstance(w, str) else parameters[w] for w in d.wrt]
        trees = [arguments[name] for name in chosen]
        flat = [graph.inputs[n] for name, tree in zip(chosen, trees, strict=True) for n, _ in leaves(tree, name)]
        nodes = derived(d.kind, flat, result_node(result, d.kind))
        if d.kind == "grad" and len(flat) == 1 and not d.several and is_number(trees[0]):
            return nodes, lambda results: owned(results[0])
        return nodes, lambda results: in_form(results, trees, d, result)


def _single(graph: Graph) -> Node:
    """Return the only number that a function computes.

    Errors: `InputError` where there are several.
    """
    if sum(y.size for y in graph.outputs.values()) != 1:
        hint = f"v has a weight for each result: v={{'{next(iter(graph.outputs))}': …}}; or compile(jacobian(f))"
        raise InputError("only a single number has a gradient without v", hint=hint)
    return next(iter(graph.outputs.values()))


def _weights(graph: Graph, v: Mapping[str, Any] | None) -> dict[str, Node]:
    """Return an input for each cotangent.

    Errors: `InputError` for a name that is not a result, and for another shape.
    """
    for name, weight in (v or {}).items():
        if name not in graph.outputs:
            raise InputError(f"v: `{name}` is not a result", hint=nearest(name, graph.outputs, "results"))
        if np.shape(weight) != graph.outputs[name].shape:
            raise InputError(f"v: `{name}` has shape {np.shape(weight)}, and the result {graph.outputs[name].shape}")
    return {name: leaf(graph.outputs[name].shape) for name in v or {}}


_SIMPLE = {kind: kind for kind in (float, np.float64)}


def _defaults(parameters: Mapping[str, Parameter]) -> dict[int, tuple[Any, ...]]:
    """Return the numbers in the defaults of the other parameters, by how many arguments a call has."""
    listed = list(parameters.values())
    if any(p.kind is not Parameter.POSITIONAL_OR_KEYWORD for p in listed):
        return {}
    result: dict[int, tuple[Any, ...]] = {len(listed): ()}
    for k in reversed(range(len(listed))):
        if listed[k].default is Parameter.empty:
            break
        result[k] = (*(np.asarray(x, float) for _, x in leaves(listed[k].default, "")), *result[k + 1])
    return result
