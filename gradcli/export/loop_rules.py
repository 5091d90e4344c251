"""Structural operations in any language of loops over numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from gradcli.export.loops import LEVELS, LoopWriter, Place
from gradcli.graph.array import Array
from gradcli.graph.einsum import aligned
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.operations.movement import basic
from gradcli.graph.shapes import Shape, size_of

StructuralRule = Callable[[LoopWriter, Node, Sequence[Place]], Place]


def _fold(w: LoopWriter, node: Node, inner: Shape, grids: Sequence[Place], op: str) -> Place:
    """Write a reduction over the last axes, of the shape `inner`: `op` joins the result so far with the products."""
    outer = node.shape
    place = w.taken(node) if node.shape else None
    counters = w.loops(outer)
    if size_of(inner) == 1:
        total = _product(w, grids, counters)
    else:
        start = {"add": w.language.number(0.0), "mul": w.language.number(1.0)}.get(op)
        if start is None:
            start = w.counted(grids[0].seen(grids[0].index.reshape(*outer, -1)[..., 0]), counters)
        total = (w.function.names.get(node) if place is None else None) or next(w.fresh)
        w.line(w.language.variable.format(name=total, value=start))
        more = w.loops(inner)
        own = _product(w, grids, [*counters, *more])
        joined = f"{total} {'+' if op == 'add' else '*'}= {own}"
        w.line(f"{joined if op in ('add', 'mul') else f'{total} = {w.language.rules[op].format(total, own)}'};")
        w.close(inner)
    if place is None:
        return Place.number(total)
    w.line(f"{w.counted(place, counters)} = {total};")
    w.close(outer)
    return place


def _product(w: LoopWriter, grids: Sequence[Place], counters: Sequence[str]) -> str:
    texts = []
    for g in grids:
        text = w.counted(g, [*counters, *["0"] * (g.index.ndim - len(counters))])
        texts.append(text if g.level >= LEVELS["mul"] or len(grids) == 1 else f"({text})")
    return " * ".join(texts)


def _reduction(op: str) -> StructuralRule:
    def rule(w: LoopWriter, node: Node, args: Sequence[Place]) -> Place:
        axes = node.settings[0]
        turned = np.moveaxis(args[0].index, axes, range(-len(axes), 0))
        return _fold(w, node, turned.shape[len(node.shape) :], [args[0].seen(turned)], op)

    return rule


def _contraction(w: LoopWriter, node: Node, args: Sequence[Place]) -> Place:
    indices = aligned(node, [place.index for place in args])
    inner = np.broadcast_shapes(*(index.shape for index in indices))[len(node.shape) :]
    return _fold(w, node, inner, [place.seen(index) for place, index in zip(args, indices, strict=True)], "add")


def _copies(w: LoopWriter, place: Place, parts: Iterable[tuple[Array, Place]], sign: str) -> Place:
    for index, part in parts:
        for target, value in w.each(index.shape, [place.seen(index), part]):
            w.line(f"{target} {sign} {value};")
    return place


def _joined(w: LoopWriter, node: Node, args: Sequence[Place]) -> Place:
    (axis,) = node.settings
    place = w.taken(node)
    parts = list(np.moveaxis(place.index, axis, 0))
    if node.op == "concatenate":
        parts = np.split(place.index, np.cumsum([a.index.shape[axis] for a in args])[:-1], axis)
    return _copies(w, place, zip(parts, args, strict=True), "=")


def _moved(w: LoopWriter, node: Node, args: Sequence[Place]) -> Place:
    """Write a copy: of a number that stands in zeros."""
    move = OPERATIONS[node.op].move
    assert move is not None
    place = w.taken(node)
    index = move(*node.settings, args[0].index[..., None] + 1)[..., 0] - 1
    return _copies(w, place, [(place.index, args[0].seen(np.asarray(index)))], "=")


def _zeros(w: LoopWriter, node: Node) -> Place:
    place = w.taken(node)
    zero = Place.number(w.language.number(0.0))
    return _copies(w, place, [(place.index.reshape(-1), zero.seen(np.zeros(node.size, dtype=int)))], "=")


def _scatter(w: LoopWriter, node: Node, args: Sequence[Place]) -> Place:
    place = _zeros(w, node)
    keys = node.settings[1]
    return _copies(w, place, ((np.asarray(place.index[basic(k)]), a) for k, a in zip(keys, args, strict=True)), "+=")


def _put(w: LoopWriter, node: Node, args: Sequence[Place]) -> Place:
    axis, places, _ = node.settings
    place = _zeros(w, node)
    return _copies(w, place, [(place.index.take(places.numbers, axis=axis), args[0])], "+=")


def _scan(update: str) -> StructuralRule:
    """Return what writes running results: each is made of the one before it and the next element."""

    def rule(w: LoopWriter, node: Node, args: Sequence[Place]) -> Place:
        (axis,) = node.settings
        place = w.taken(node)
        out, x = place.index, args[-1].index
        _copies(w, place, [(out.take(0, axis), args[-1].seen(x.take(0, axis)))], "=")
        for k in range(1, node.shape[axis]):
            here, before = (np.take(out, i, axis) for i in (k, k - 1))
            own = [place.seen(here), place.seen(before), args[-1].seen(np.take(x, k, axis))]
            own += [args[0].seen(np.take(args[0].index, k - 1, axis))] * (len(args) > 1)
            for target, *texts in w.each(here.shape, own):
                w.line(f"{target} = {update.format(*texts)};")
        return place

    return rule


STRUCTURAL: dict[str, StructuralRule] = {
    "sum": _reduction("add"),
    "prod": _reduction("mul"),
    "max": _reduction("maximum"),
    "min": _reduction("minimum"),
    "matmul": _contraction,
    "einsum": _contraction,
    "concatenate": _joined,
    "stack": _joined,
    "scatter": _scatter,
    "put": _put,
    **dict.fromkeys(("from_diagonal", "triu", "tril", "take"), _moved),
    **dict.fromkeys(("transpose", "reshape", "broadcast", "index", "diagonal", "cast"), _moved),
    "cumsum": _scan("{0} + {1}"),
    "cumprod": _scan("{0} * {1}"),
    "recurrence": _scan("{1} + {2} * {0}"),
}
