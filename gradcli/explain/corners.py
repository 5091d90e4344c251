"""Corners: points at which a function has no derivative, and what PyTorch takes there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from gradcli.engine.evaluate import at_point
from gradcli.errors import Notes
from gradcli.explain.results import Array, Named
from gradcli.graph.graph import Graph
from gradcli.graph.names import element_names
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.vjp import active_nodes
from gradcli.notation.numbers import number_text

_NODES = 5_000  # of a system that is looked into
_SHOWN = 60  # characters of an expression
_LEFT = "the slope on the left"

# For each operation where its corners are, as a mask over its first argument, and what is taken there.  A reduction
# gets its axes behind its argument.
Corner = tuple[Callable[..., Any], str]


def _at(value: float) -> Callable[..., Any]:
    return lambda x, *_: x == value


def _whole(x: Array) -> Any:
    return x == np.floor(x)


def _bounds(x: Array, low: Array, high: Array) -> Any:
    return (x == low) | (x == high)


CORNERS: Mapping[str, Corner] = {
    "abs": (_at(0), "0, the middle of -1 and 1"),
    "relu": (_at(0), f"0, {_LEFT}"),
    "leaky_relu": (_at(0), _LEFT),
    "elu": (lambda x, alpha: (x == 0) & (alpha != 1), _LEFT),
    "selu": (_at(0), _LEFT),
    "clamp": (_bounds, "1: the bound itself passes"),
    "hardtanh": (_bounds, "0: the bound itself does not pass"),
    "maximum": (lambda a, b: a == b, "1/2 for each: a tie is shared"),
    "minimum": (lambda a, b: a == b, "1/2 for each: a tie is shared"),
    "pow": (lambda a, b: (a == 0) & (b == 0), "0 by the exponent"),
    "atan2": (lambda a, b: (a == 0) & (b == 0), "0"),
    "sign": (_at(0), "0, as everywhere else"),
    "heaviside": (_at(0), "0, as everywhere else"),
    "floor": (_whole, "0, as everywhere else"),
    "ceil": (_whole, "0, as everywhere else"),
    "trunc": (lambda x: _whole(x) & (x != 0), "0, as everywhere else"),
    "round": (lambda x: np.abs(x - np.floor(x)) == 0.5, "0, as everywhere else"),
    "frac": (lambda x: _whole(x) & (x != 0), "1, as everywhere else"),
    "mod": (lambda a, b: _whole(a / b), "1, as everywhere else"),
    "norm": (lambda x, axes: _all(x == 0, axes), "0, the smallest of all subgradients"),
    "std": (lambda x, axes: _all(x == np.min(x, axes, keepdims=True), axes), "0, as for norm"),
    "max": (lambda x, axes: _ties(x == np.max(x, axes, keepdims=True), axes), "an equal share for each of the largest"),
    "min": (
        lambda x, axes: _ties(x == np.min(x, axes, keepdims=True), axes),
        "an equal share for each of the smallest",
    ),
}


def _all(mask: Array, axes: tuple[int, ...]) -> Any:
    return np.broadcast_to(mask.all(axes, keepdims=True), mask.shape)


def _ties(mask: Array, axes: tuple[int, ...]) -> Any:
    return mask & (mask.sum(axes, keepdims=True) > 1)


def note_corners(graph: Graph, at: Named, notes: Notes, page: bool = True) -> tuple[str, ...]:
    """Return a note for each operation whose corner the point lies on, and add them to those that a page has."""
    if len(graph.nodes) > _NODES or not any(n.op in CORNERS for n in graph.nodes):
        return ()
    result = tuple(_corners(graph, at_point(graph, at, graph.nodes)))
    for text in result if page else ():
        notes.add("note", text)
    return result


def _corners(graph: Graph, values: Mapping[Node, Array]) -> Iterator[str]:
    active = active_nodes(graph, graph.inputs.values())
    for node in graph.nodes:
        if node.op not in CORNERS or not values[node.args[0]].size:
            continue
        if node.args[1 if node.op == "pow" else 0] not in active:  # 0**z jumps at z = 0, and x**0 nowhere
            continue
        lies, taken = CORNERS[node.op]
        axes = node.settings[:1] if OPERATIONS[node.op].kind == "reduction" else ()
        with np.errstate(all="ignore"):
            mask = np.asarray(lies(*(values[a] for a in node.args), *axes))
        if mask.any():
            if node.op in ("max", "min") and node.settings[1] == "first":
                taken = "the first of the " + ("largest" if node.op == "max" else "smallest")
            yield f"{_where(graph, node, mask, values)} has no derivative: PyTorch takes {taken}"


def _where(graph: Graph, node: Node, mask: Array, values: Mapping[Node, Array]) -> str:
    """Return the operation and the first index of its corner, in words: at x = 0, abs(x)."""
    from gradcli.notation.nodes import Notation, readable_names

    notation = Notation(readable_names(graph))
    argument, expression = node.args[0], notation.expression(node)
    if len(expression) > _SHOWN and node in notation.names:
        return f"at this point, {notation.names[node]}"
    place = int(np.flatnonzero(mask)[0])
    name = notation.name(argument)
    if argument.shape and mask.shape == argument.shape:
        name = element_names(name if argument in notation.names else f"({name})", argument.shape)[place]
    value = np.broadcast_to(values[argument], mask.shape).reshape(-1)[place]
    return f"at {_short(name)} = {number_text(float(value))}, {_short(expression)}"


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
