"""The section `v`: what the cotangent is, and whose gradient it asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gradcli.explain.backward.loss import cotangent, loss_name
from gradcli.explain.backward.record import BackwardResult, Call
from gradcli.explain.results import Array, Named
from gradcli.explain.sections import (
    Block,
    Computed,
    Equal,
    Listed,
    Math,
    Name,
    Partial,
    Product,
    Section,
    Sum,
    Text,
    Value,
)
from gradcli.graph.construct import total
from gradcli.graph.graph import Graph
from gradcli.graph.names import element_names
from gradcli.graph.node import Node, elementwise, leaf

Outputs = Mapping[str, Node]

_TERMS = 8  # of a sum that is written out: a line
_ELEMENTS = 4  # the same, of an array's elements, beside which stands sum(v*y)
_NAMES = 4  # of outputs that are listed: a line


def weights_section(result: BackwardResult, calls: Sequence[Call]) -> Section:
    """Return the section `v` of a single call: its cotangent, and the scalar whose gradient that gives."""
    graph, outputs, v = result.graph, result.graph.outputs, calls[0].v
    name = loss_name(graph, v)
    if sum(y.size for y in outputs.values()) == 1:
        return Section("v", (Text(_of_one_number(result, name, v)),))
    blocks: list[Block] = [Text((*_meaning(graph, v), ", for the gradient of  ", loss(graph, v, name)))]
    return Section("v", (*blocks, Text(_whatever(graph, v, name))))


def _of_one_number(result: BackwardResult, name: str, v: Named) -> tuple[Math, ...]:
    (output,), v_name = result.graph.outputs, Name(cotangent(result.graph, name))
    y = element_names(output, result.graph.outputs[output].shape)[0]
    if result.wanted.implicit:
        return Equal((v_name, "1")), ", the default for a scalar: the gradient of ", Name(y), " itself"
    if name == output:
        return Equal((v_name, Partial(name, y), "1")), ": the gradient of ", Name(y), " itself"
    slope = [] if v[output].dtype == object else [Value(v[output])]
    whose = ("the gradient of  ", Equal((Name(name), Product((Value(v[output].reshape(())), Name(y))))))
    return (Equal((v_name, Partial(name, y), *slope)), ": ", *whose)


def _meaning(graph: Graph, v: Named) -> tuple[Math, ...]:
    """Return a sentence on the scalar that the weights make of the outputs."""
    weights, name = flat(v), cotangent(graph, loss_name(graph, v))
    if (weights == 1).all():
        return Name(name) if name else "a v", " = ones sums the outputs"
    if np.count_nonzero(weights) == 1 and weights.sum() == 1:
        return "the 1 of a one-hot ", Name(name) if name else "cotangent", " picks an output"
    return Name(name) if name else "the cotangent", " weights the outputs"


def loss(graph: Graph, v: Named, name: str) -> Math:
    """Return L = Σ v_i·y_i without terms of 0; that of an array y is sum(v*y)."""
    terms = [
        Product((Value.of(weight), Name(element)))
        for output, y in graph.outputs.items()
        for weight, element in zip(v[output].reshape(-1), element_names(output, y.shape), strict=True)
        if weight != 0
    ]
    short = _as_sum(graph)
    sides: list[Math] = [Name(name), *short]
    if len(terms) <= (_ELEMENTS if short else _TERMS) or not short:
        sides.append(Sum(tuple(terms[:_TERMS])) if terms else Value.of(0.0))
        if len(terms) > _TERMS:
            sides[-1] = Sum((*terms[: _TERMS - 2], "…", terms[-1]))
    return Equal(tuple(sides))


def _as_sum(graph: Graph) -> list[Math]:
    """Return sum(v*y) for an output that is an array."""
    ((name, y), *others) = graph.outputs.items()
    if others or not y.shape:
        return []
    v, stand_in = leaf(y.shape), leaf(y.shape)
    return [Computed(total(elementwise("mul", v, stand_in)), {v: cotangent(graph), stand_in: name})]


def _whatever(graph: Graph, v: Named, name: str) -> tuple[Math, ...]:
    """Return a sentence for v without numbers: v = ∂L/∂y for a loss L computed later."""
    outputs, called = graph.outputs, cotangent(graph)
    what: list[Math]
    if len(outputs) == 1:
        ((y, weights),) = v.items()
        what = [Partial(name, y), Value(weights)]
    else:
        listed: list[Math] = [Partial(name, y) for y in list(outputs)[:_NAMES]]
        listed += ["…"] * (len(outputs) > _NAMES)
        short = len(outputs) <= _NAMES and not any(y.shape for y in outputs.values())
        what = [Listed(tuple(listed)), *([array_of(outputs, v)] if short else [])]
    return (Equal((*([Name(called)] if called else []), *what)), "; backward needs nothing more of ", Name(name))


def array_of(outputs: Outputs, v: Named) -> Math:
    """Return the cotangent of one output as an array, of several as a list of arrays."""
    values: list[Math] = [Value(v[name]) for name in outputs]
    return values[0] if len(values) == 1 else Listed(tuple(values))


def flat(v: Named) -> Array:
    """Return all weights as one vector."""
    return np.concatenate([a.reshape(-1) for a in v.values()])
