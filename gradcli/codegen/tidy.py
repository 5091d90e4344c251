"""Fewer movements, as a reader would write them: a slice of a slice is one, what broadcasts by itself is not spread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from gradcli.graph.construct import Index, index, reshape
from gradcli.graph.node import Node, Rule, const, operand, operands
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.rewrite import Rewriter
from gradcli.graph.shapes import Shape, broadcast_shapes, size_of


def tidied(nodes: Iterable[Node], kept: Iterable[Node]) -> dict[Node, Node]:
    """Return for each node an equal one with fewer movements; `kept` are the results.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf((3,))
    >>> y = reshape(reshape(x, (3, 1)), (1, 3))
    >>> tidied([x, y.args[0], y], [y])[y].args[0] is x
    True
    """
    nodes = list(nodes)
    readers = Counter(a for n in nodes for a in n.args)
    readers.update(kept)
    alone: set[Node] = set()

    def note(node: Node, result: Node) -> None:
        if readers[node] < 2:
            alone.add(result)

    rules: dict[str, Rule] = {op: _unspread for op, row in OPERATIONS.items() if row.broadcasts}
    rules["reshape"] = lambda node: reshape(operand(node.args[0], "reshape") or node.args[0], node.shape)
    rules["scatter"] = lambda node: _joined(node, alone)
    rules["median"] = lambda node: node if node.settings[0] else node.args[0]  # that of a number is the number
    return Rewriter(rules, sharing=False, note=note).rewritten(nodes)


def _unspread(node: Node) -> Node:
    """Return an elementwise node without the arguments' broadcasts that it does itself, or that may wait until after.

    >>> from gradcli.graph.construct import broadcast
    >>> from gradcli.graph.node import leaf
    >>> x = leaf()
    >>> _unspread(broadcast(x, (3,)) < const(0, (3,))).args[0].args[0] is x
    True
    """
    args = tuple(_before_spread(a) for a in node.args)
    shape = broadcast_shapes([a.shape for a in args])
    if shape != node.shape and size_of(shape) < node.size and all(a in node.args or not a.shape for a in args):
        return Node("broadcast", (replace(node, args=args, shape=shape),), node.shape, (node.shape,), node.dtype)
    return replace(node, args=args) if shape == node.shape else node


def _before_spread(node: Node) -> Node:
    if node.is_constant and node.value is not None:
        return const(node.value, (), node.dtype)
    return operand(node, "broadcast") or node


def _joined(node: Node, alone: set[Node]) -> Node:
    """Return a scatter whose parts are no scatters that nobody else reads."""
    keys: list[Index] = []
    parts: list[Node] = []
    for key, part in zip(node.settings[1], node.args, strict=True):
        scattered = operands(part, "scatter")
        if scattered and part in alone and not any(None in inner for inner in (key, *part.settings[1])):
            keys += [_within(key, inner, part.shape) for inner in part.settings[1]]
            parts += scattered
        else:
            keys.append(key)
            parts.append(part)
    keys, parts = _even(node.shape, keys, parts)
    result = [_element(key, part) for key, part in zip(keys, parts, strict=True)]
    settings = (node.settings[0], tuple(key for key, _ in result))
    return replace(node, args=tuple(part for _, part in result), settings=settings)


def _even(shape: Shape, keys: list[Index], parts: list[Node]) -> tuple[list[Index], list[Node]]:
    """Return a constant scattered to equally spaced indices as one part, a range.

    >>> _even((7,), [(0,), (3,), (6,)], [const(1)] * 3)[0]
    [(range(0, 9, 3),)]
    """
    first = parts[0]
    indices = [key[0] for key in keys if len(key) == 1 and isinstance(key[0], int)]
    alike = all(p.is_constant and not p.shape and p.settings == first.settings for p in parts)
    if len(shape) != 1 or len(indices) < max(3, len(keys)) or not alike or first.value is None:
        return keys, parts
    step = indices[1] - indices[0]
    if step < 1 or any(b - a != step for a, b in pairwise(indices)):
        return keys, parts
    run = range(indices[0], indices[-1] + step, step)
    return [(run,)], [const(first.value, (len(run),), first.dtype)]


def _element(key: Index, part: Node) -> tuple[Index, Node]:
    """Return a part of a scatter without axes of 1, where that makes it simpler."""
    short = _without_ones(key)
    if short == key or None in key or len(part.shape) > sum(isinstance(k, range) for k in key):
        return key, part
    shape = tuple(len(k) for k in short if isinstance(k, range))
    if (whole := operand(part, "reshape")) is not None:
        return short, reshape(whole, shape)
    if part.is_constant:
        return short, reshape(part, shape)
    if (whole := operand(part, "index")) is not None and None not in part.settings[0]:
        result = index(whole, _without_ones(part.settings[0]))
        return (short, result) if result.shape == shape else (key, part)
    return key, part


def _without_ones(key: Index) -> Index:
    """Return an index with numbers for ranges of one."""
    return tuple(k.start if isinstance(k, range) and len(k) == 1 else k for k in key)


def _within(key: Index, inner: Index, shape: Sequence[int]) -> Index:
    """Return the index of a part of a part.

    >>> _within((1, range(2, 8, 2)), (range(2, -1, -1),), (3,))
    (1, range(6, 0, -2))
    """
    ranges = iter([*inner, *(range(n) for n in shape[len(inner) :])])
    result: list[int | range | None] = []
    for k in key:
        if not isinstance(k, range):
            result.append(k)
            continue
        i = next(ranges)
        if isinstance(i, range):
            result.append(range(k.start + k.step * i.start, k.start + k.step * i.stop, k.step * i.step))
        else:
            result.append(None if i is None else k[i])
    rest = list(ranges)
    return (*result, *rest)
