"""The cotangent v and the scalar L whose gradient it asks for: their names, and the section `v`."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from itertools import islice, repeat

import numpy as np

from gradcli.graph.construct import total
from gradcli.graph.graph import Graph
from gradcli.graph.names import ElementName, adjoint_name, element_name, element_names
from gradcli.graph.node import Exact, Node, elementwise, leaf
from gradcli.pages.results import Array, Named
from gradcli.pages.sections import (
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


def loss_name(graph: Graph, v: Named) -> str:
    """Return the name of the scalar that a call differentiates: the output, or a new name for Σ v_i·y_i."""
    (name, y), *others = graph.outputs.items()
    return name if not others and not y.shape and v[name] == 1 else any_loss(graph)


def any_loss(graph: Graph) -> str:
    """Return a name for Σ v_i·y_i: L, or `loss` where the user has an L."""
    return "loss" if _has(graph, "L") else "L"


def cotangent(graph: Graph, loss: str = "") -> str:
    """Return the name of the cotangent: v, or the adjoint of the only output where the user has a v.

    Several outputs have no such name: "".  `loss` is what adjoints are derivatives of; `any_loss`, if it is not named.

    >>> from gradcli.graph.node import leaf
    >>> v = leaf()
    >>> cotangent(Graph.of({"v": v}, {"E": v * v})) == adjoint_name("E", "L")
    True
    >>> cotangent(Graph.of({"v": v}, {"energy": v * v}))
    '∂L/∂energy'
    """
    if not _has(graph, "v"):
        return "v"
    return adjoint_name(next(iter(graph.outputs)), loss or any_loss(graph)) if len(graph.outputs) == 1 else ""


def _has(graph: Graph, name: str) -> bool:
    names = [*graph.inputs, *graph.names, *graph.outputs]
    return name in names or name in {n.array for n in names if isinstance(n, ElementName)}


def uniform(v: Array) -> Exact | None:
    """Return the one number that all elements of a cotangent are; None where they differ, and for 0.

    >>> uniform(np.ones(3)), uniform(np.array([1.0, 2.0]))
    (1, None)
    """
    if v.dtype == object or not v.size or not np.isfinite(v).all() or (v != v.reshape(-1)[0]).any() or not v.any():
        return None
    number = float(v.reshape(-1)[0])
    return int(number) if number.is_integer() else Decimal(repr(number))


Outputs = Mapping[str, Node]

_TERMS = 8  # of a sum that is written out: a line
_ELEMENTS = 4  # the same, of an array's elements, beside which stands sum(v*y)
_NAMES = 4  # of outputs that are listed: a line


def weights_section(graph: Graph, v: Named, implicit: bool) -> Section:
    """Return the section `v` of a single call: its cotangent, and the scalar whose gradient that gives.

    `implicit` is whether nobody gave the cotangent.
    """
    name = loss_name(graph, v)
    if sum(y.size for y in graph.outputs.values()) == 1:
        return Section("v", (Text(_of_one_number(graph, name, v, implicit)),))
    blocks: list[Block] = [Text((*_meaning(graph, v), "  ", loss(graph, v, name)))]
    return Section("v", (*blocks, Text(_whatever(graph, v, name))))


def _of_one_number(graph: Graph, name: str, v: Named, implicit: bool) -> tuple[Math, ...]:
    (output,), v_name = graph.outputs, Name(cotangent(graph, name))
    y = element_names(output, graph.outputs[output].shape)[0]
    if implicit:
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
        return Name(name) if name else "a v", " = ones: the gradient is that of the sum"
    if np.count_nonzero(weights) == 1 and weights.sum() == 1:
        return Name(name) if name else "the cotangent", " is one-hot: the gradient is that of"
    return Name(name) if name else "the cotangent", " weights the outputs: the gradient is that of"


def loss(graph: Graph, v: Named, name: str) -> Math:
    """Return L = Σ v_i·y_i without terms of 0; that of an array y is sum(v*y)."""
    weighted = {output: np.flatnonzero(v[output].reshape(-1) != 0) for output in graph.outputs}  # there may be millions
    count = sum(map(len, weighted.values()))
    short = _as_sum(graph)
    sides: list[Math] = [Name(name), *short]
    if count <= (_ELEMENTS if short else _TERMS) or not short:
        places = ((output, k) for output, at in weighted.items() for k in at[:_TERMS])
        terms = [_term(output, v[output], k) for output, k in islice(places, _TERMS)]
        if count > _TERMS:
            last, at = next((output, at) for output, at in reversed(weighted.items()) if len(at))
            terms[_TERMS - 2 :] = ["…", _term(last, v[last], at[-1])]
        sides.append(Sum(tuple(terms)) if terms else Value.of(0.0))
    return Equal(tuple(sides))


def _term(output: str, v: Array, k: int) -> Math:
    """Return the product of an element of an output, by its index in the flattened array, with its weight."""
    name = element_name(output, map(int, np.unravel_index(k, v.shape))) if v.shape else output
    return Product((Value.of(v.reshape(-1)[k]), Name(name)))


def _as_sum(graph: Graph) -> list[Math]:
    """Return sum(v*y) for an output that is an array."""
    ((name, y), *others) = graph.outputs.items()
    if others or not y.shape:
        return []
    v, stand_in = leaf(y.shape), leaf(y.shape)
    return [Computed(total(elementwise("mul", v, stand_in)), {v: cotangent(graph), stand_in: name})]


def _whatever(graph: Graph, v: Named, name: str) -> tuple[Math, ...]:
    """Return a sentence for v without numbers: v = ∂L/∂y for a loss L computed later."""
    outputs, called, needed = graph.outputs, cotangent(graph), ": all that `backward` needs of "
    what: list[Math]
    if len(outputs) == 1:
        ((y, weights),) = v.items()
        what = [Partial(name, y), Value(weights)]
    elif len(outputs) <= _NAMES and any(y.shape for y in outputs.values()):
        each = (Equal((Name(f"{y}.v"), Partial(name, y), Value(weights))) for y, weights in v.items())
        return (*[part for pair in zip(each, repeat(", "), strict=False) for part in pair][:-1], needed, Name(name))
    else:
        listed: list[Math] = [Partial(name, y) for y in list(outputs)[:_NAMES]]
        listed += ["…"] * (len(outputs) > _NAMES)
        what = [Listed(tuple(listed)), *([array_of(outputs, v)] if len(outputs) <= _NAMES else [])]
    v_is = Equal((*([Name(called)] if called else []), *what))
    return v_is, needed, Name(name)


def array_of(outputs: Outputs, v: Named) -> Math:
    """Return the cotangent of one output as an array, of several as a list of arrays."""
    values: list[Math] = [Value(v[name]) for name in outputs]
    return values[0] if len(values) == 1 else Listed(tuple(values))


def flat(v: Named) -> Array:
    """Return all weights as one vector."""
    return np.concatenate([a.reshape(-1) for a in v.values()])
