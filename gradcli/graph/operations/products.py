"""The product of all elements but one, as nodes: for formulas, and for derivatives of derivatives."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.graph.construct import Axes, concatenate, index, inverse, reshape, transpose
from gradcli.graph.node import Node, const
from gradcli.graph.shapes import size_of


def in_front(axes: Axes, rank: int) -> Axes:
    """Return the order of all axes that begins with these."""
    return axes + tuple(i for i in range(rank) if i not in axes)


# A series is a value, alone or with its derivative along a direction.

Series = Sequence[Node]


def others(axes: Axes, x: Node, along: Node | None = None) -> Node:
    """Return the products of all other elements, by a tree of pairs; with `along`, their directional derivative."""
    order = in_front(axes, len(x.shape))
    count, rest = size_of(tuple(x.shape[i] for i in axes)), tuple(x.shape[i] for i in order[len(axes) :])
    if count < 2:
        return const(0 if along else 1, x.shape)
    level: Series = [reshape(transpose(n, order), (count, *rest)) for n in (x, along) if n is not None]
    pairs: list[tuple[Series, Series]] = []
    while (half := level[0].shape[0] // 2) > 0:
        a, b = _rows(level, 0, half), _rows(level, half, 2 * half)
        pairs.append((a, b))
        level = _joined(_times(a, b), _rows(level, 2 * half, level[0].shape[0]))
    a, b = pairs.pop()
    factor = _joined(b, a)
    for a, b in reversed(pairs):
        half = a[0].shape[0]
        head, tail = _rows(factor, 0, half), _rows(factor, half, factor[0].shape[0])
        factor = _joined(_times(head, b), _times(head, a), tail)
    return transpose(reshape(factor[-1], tuple(x.shape[i] for i in order)), inverse(order))


def _times(a: Series, b: Series) -> Series:
    return [a[0] * b[0], *(da * b[0] + a[0] * db for da, db in zip(a[1:], b[1:], strict=True))]


def _rows(series: Series, start: int, stop: int) -> Series:
    return [index(n, (range(start, stop),)) for n in series]


def _joined(*parts: Series) -> Series:
    return [concatenate(same, 0) for same in zip(*parts, strict=True)]
