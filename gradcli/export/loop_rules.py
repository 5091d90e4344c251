"""Structural operations in any language of loops over numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gradcli.export.loops import ATOM, UNROLLED, LoopWriter, Place
from gradcli.graph.einsum import labels
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.operations.movement import basic
from gradcli.graph.shapes import Shape, size_of

Array = np.ndarray[Any, Any]

StructuralRule = Callable[[LoopWriter, Node, Sequence[Place]], Place]


def _split(node: Node, x: Array, axes: Sequence[int]) -> tuple[Shape, Shape, Array]:
    """Return the shapes of what is left and of what is reduced, and the index with the reduced axes behind."""
    rest = [a for a in range(x.ndim) if a not in axes]
    turned = x.transpose(*rest, *axes)
    return tuple(x.shape[a] for a in rest), tuple(x.shape[a] for a in axes), turned


def _fold(
    w: LoopWriter, node: Node, shapes: tuple[Shape, Shape], grids: Sequence[Place], update: str, term: str
) -> Place:
    """Write a reduction: `update` joins the result so far with a `term` of the elements."""
    outer, inner = shapes
    place = (
        w.taken(node)
        if node.shape
        else Place(w.function.names.get(node) or next(w.fresh), np.zeros((), dtype=int), True)
    )
    if size_of(outer) * size_of(inner) <= 4 * UNROLLED:
        flat = [g.index.reshape(size_of(outer), size_of(inner)) for g in grids]
        for k in range(size_of(outer)):
            found = ""
            for m in range(size_of(inner)):
                own = term.format(*(_operand(g.seen(f[k, m : m + 1]), w) for g, f in zip(grids, flat, strict=True)))
                found = update.format(found, own) if found else own
                if "{0} > " in update and m:  # an extremum reads what it has so far several times
                    name = next(w.fresh)
                    w.line(w.language.scalar.format(name=name, value=found))
                    found = name
            w.line(
                f"{w.text(place, k)} = {found};"
                if node.shape
                else w.language.scalar.format(name=place.base, value=found)
            )
        return place
    start = [g.seen(g.index.reshape(*outer, -1)[..., 0]) for g in grids]
    if not node.shape:
        w.line(w.language.variable.format(name=place.base, value=w.language.number(0.0)))
    counters = w.loops(outer)
    target = w.counted(place, counters) if node.shape else place.base
    extremum = "{0} > " in update or "{0} < " in update
    first = "" if not extremum else term.format(*(w.counted(g, counters) if outer else w.text(g, 0) for g in start))
    neutral = first if extremum else w.language.number(1.0 if "*" in update else 0.0)
    w.line(f"{target} = {neutral};")
    more = w.loops(inner)
    own = term.format(*(w.counted(g.seen(g.index.reshape(*outer, *inner)), [*counters, *more]) for g in grids))
    if extremum:
        w.line(w.language.scalar.format(name=(name := next(w.fresh)), value=own))
        own = name
    w.line(f"{target} = {update.format(target, own)};")
    w.close(inner)
    w.close(outer)
    return place


def _operand(place: Place, w: LoopWriter) -> str:
    text = w.text(place, 0)
    return text if place.level == ATOM else f"({text})"


def _reduction(update: str) -> StructuralRule:
    def rule(w: LoopWriter, node: Node, args: Sequence[Place]) -> Place:
        outer, inner, index = _split(node, args[0].index, node.settings[0])
        return _fold(w, node, (outer, inner), [args[0].seen(index)], update, "{}")

    return rule


def _contraction(w: LoopWriter, node: Node, args: Sequence[Place]) -> Place:
    first, second, result = labels(node)
    sizes: dict[object, int] = {}
    for own, a in zip((first, second), node.args, strict=True):
        for label, n in zip(own, a.shape, strict=True):
            sizes[label] = max(n, sizes.get(label, 1))
    summed = [label for label in dict.fromkeys([*first, *second]) if label not in result]
    order = [*result, *summed]
    shape = tuple(sizes[label] for label in order)
    grids = []
    for own, place in zip((first, second), args, strict=True):
        index = place.index.transpose([list(own).index(label) for label in order if label in own])
        index = np.expand_dims(index, tuple(i for i, label in enumerate(order) if label not in own))
        grids.append(place.seen(np.broadcast_to(index, shape)))
    cut = len(result)
    if not summed:
        return _fold(w, node, (shape, (1,)), [g.seen(g.index[..., None]) for g in grids], "{} + {}", "{}*{}")
    return _fold(w, node, (shape[:cut], shape[cut:]), grids, "{} + {}", "{}*{}")


def _copies(w: LoopWriter, place: Place, parts: Iterator[tuple[Array, Place]], sign: str) -> Place:
    for index, part in parts:
        for target, value in w.each(index.shape, [place.seen(index), part]):
            w.line(f"{target} {sign} {value};")
    return place


def _joined(w: LoopWriter, node: Node, args: Sequence[Place]) -> Place:
    (axis,) = node.settings
    place = w.taken(node)

    def parts() -> Iterator[tuple[Array, Place]]:
        start = 0
        for arg in args:
            if node.op == "stack":
                yield np.take(place.index, start, axis), arg
                start += 1
            else:
                stop = start + arg.index.shape[axis]
                yield np.take(place.index, range(start, stop), axis), arg
                start = stop

    return _copies(w, place, parts(), "=")


def _moved(w: LoopWriter, node: Node, args: Sequence[Place]) -> Place:
    """Write a copy: of a number that stands in zeros."""
    move = OPERATIONS[node.op].move
    assert move is not None
    place = w.taken(node)
    index = move(*node.settings, args[0].index[..., None] + 1)[..., 0] - 1
    return _copies(w, place, iter([(place.index, args[0].seen(np.asarray(index)))]), "=")


def _zeros(w: LoopWriter, node: Node) -> Place:
    place = w.taken(node)
    zero = Place(w.language.number(0.0), np.zeros((), dtype=int), True)
    return _copies(w, place, iter([(place.index.reshape(-1), zero.seen(np.zeros(node.size, dtype=int)))]), "=")


def _scatter(w: LoopWriter, node: Node, args: Sequence[Place]) -> Place:
    place = _zeros(w, node)
    keys = node.settings[1]
    return _copies(w, place, ((np.asarray(place.index[basic(k)]), a) for k, a in zip(keys, args, strict=True)), "+=")


def _put(w: LoopWriter, node: Node, args: Sequence[Place]) -> Place:
    axis, places, _ = node.settings
    place = _zeros(w, node)
    return _copies(w, place, iter([(place.index.take(places.numbers, axis=axis), args[0])]), "+=")


def _scan(update: str) -> StructuralRule:
    """Return what writes running results: each is made of the one before it and the next element."""

    def rule(w: LoopWriter, node: Node, args: Sequence[Place]) -> Place:
        (axis,) = node.settings
        place = w.taken(node)
        out, x = place.index, args[-1].index
        first = np.take(out, 0, axis), args[-1].seen(np.take(x, 0, axis))
        _copies(w, place, iter([first]), "=")
        for k in range(1, node.shape[axis]):
            here, before = (np.take(out, i, axis) for i in (k, k - 1))
            own = [place.seen(here), place.seen(before), args[-1].seen(np.take(x, k, axis))]
            own += [args[0].seen(np.take(args[0].index, k - 1, axis))] * (len(args) > 1)
            for target, *texts in w.each(here.shape, own):
                w.line(f"{target} = {update.format(*texts)};")
        return place

    return rule


def _argument(better: str, mask: bool) -> StructuralRule:
    """Return what writes where the first extremum stands along an axis, as a number or as a mask."""

    def rule(w: LoopWriter, node: Node, args: Sequence[Place]) -> Place:
        (axis,) = node.settings
        x = np.moveaxis(args[0].index, axis, -1)
        place = w.taken(node) if node.shape else None
        for k, own in enumerate(x.reshape(-1, x.shape[-1])):
            best, value = next(w.fresh), next(w.fresh)
            w.line(w.language.variable.format(name=value, value=args[0].at(int(own[0]))))
            w.line(w.language.variable.format(name=best, value=w.language.number(0.0)))
            for j in range(1, len(own)):
                test = better.format(args[0].at(int(own[j])), value)
                w.line(
                    f"if ({test}) {{ {value} = {args[0].at(int(own[j]))}; {best} = {w.language.number(float(j))}; }}"
                )
            if place is None:
                return Place(best, np.zeros((), dtype=int), True)
            if mask:
                line = np.moveaxis(place.index, axis, -1).reshape(-1, x.shape[-1])[k]
                for j, element in enumerate(line):
                    w.line(f"{place.at(int(element))} = ({best} == {w.language.number(float(j))}) ? 1 : 0;")
            else:
                w.line(f"{place.at(int(place.index.reshape(-1)[k]))} = {best};")
        assert place is not None
        return place

    return rule


_GREATER = "{0} > {1} || ({0} != {0} && {1} == {1})"
_LESS = "{0} < {1} || ({0} != {0} && {1} == {1})"

STRUCTURAL: dict[str, StructuralRule] = {
    "sum": _reduction("{} + {}"),
    "prod": _reduction("{}*{}"),
    "max": _reduction("({0} > {1} || {0} != {0} ? {0} : {1})"),
    "min": _reduction("({0} < {1} || {0} != {0} ? {0} : {1})"),
    "matmul": _contraction,
    "einsum": _contraction,
    "concatenate": _joined,
    "stack": _joined,
    "scatter": _scatter,
    "put": _put,
    **dict.fromkeys(("from_diagonal", "triu", "tril", "take"), _moved),
    **dict.fromkeys(("transpose", "reshape", "broadcast", "index", "diagonal", "cast"), _moved),
    "cumsum": _scan("{0} + {1}"),
    "cumprod": _scan("{0}*{1}"),
    "recurrence": _scan("{1} + {2}*{0}"),
    "argmax": _argument(_GREATER, False),
    "argmin": _argument(_LESS, False),
    "argmax_mask": _argument(_GREATER, True),
    "argmin_mask": _argument(_LESS, True),
}
# Those that loops over numbers do not say: orders, and the linear algebra of large matrices.
_ORDERS = "sort argsort take_along put_along median argmedian_mask"
_MATRICES = "det inv solve cofactors prod_others"  # of which the small ones are written out
NOT_IN_LOOPS = frozenset([*_ORDERS.split(), *_MATRICES.split()])
