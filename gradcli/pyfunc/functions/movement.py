"""NumPy's functions that move elements: shapes, axes, joined arrays, padding."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.errors import InputError
from gradcli.graph import construct
from gradcli.graph.construct import broadcast, one_axis, reshape
from gradcli.graph.index_arrays import IndexArray, take
from gradcli.graph.node import Node
from gradcli.pyfunc.functions.arguments import Axis, axes_in, number, rule
from gradcli.pyfunc.tape import aside
from gradcli.pyfunc.tracer import RULES, lift
from gradcli.vocabulary import FUNCTIONS


@rule(np.reshape, view=True)
def _reshape(a: Any, /, shape: Any = None, order: str = "C", *, newshape: Any = None, copy: Any = None) -> Node:
    shape = newshape if shape is None else shape
    sizes = tuple(int(n) for n in shape) if isinstance(shape, list | tuple | np.ndarray) else (int(shape),)
    x = lift(a)
    if order == "F":
        sizes = tuple(x.size // max(1, -math.prod(sizes)) if n == -1 else n for n in sizes)
        return _reversed(reshape(_reversed(x), sizes[::-1]))
    return reshape(x, sizes)


def _reversed(x: Node) -> Node:
    return construct.transpose(x, tuple(reversed(range(len(x.shape)))))


@rule(np.ravel, view=True)
def _ravel(a: Any, order: str = "C") -> Node:
    x = _reversed(lift(a)) if order == "F" else lift(a)
    return reshape(x, (x.size,))


@rule(np.transpose, np.permute_dims if hasattr(np, "permute_dims") else np.transpose, view=True)
def _transpose(a: Any, axes: Any = None) -> Node:
    x = lift(a)
    return _reversed(x) if axes is None else construct.transpose(x, tuple(one_axis(int(i), len(x.shape)) for i in axes))


@rule(np.swapaxes, view=True)
def swapaxes(a: Any, axis1: int, axis2: int) -> Node:
    """Return an array with two axes exchanged, as `np.swapaxes` does."""
    x = lift(a)
    order = list(range(len(x.shape)))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return construct.transpose(x, tuple(order))


@rule(np.squeeze, view=True)
def _squeeze(a: Any, axis: Axis = None) -> Node:
    x = lift(a)
    axes = axes_in(axis, len(x.shape))
    return reshape(x, [n for i, n in enumerate(x.shape) if i not in axes or n != 1])


@rule(np.diagonal, view=True)
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Node:
    """Return the diagonals of the matrices along two axes, as `np.diagonal` does."""
    x = lift(a)
    rank = len(x.shape)
    first, second = one_axis(axis1, rank), one_axis(axis2, rank)
    rest = [i for i in range(rank) if i not in (first, second)]
    x = construct.transpose(x, (first, second, *rest))
    low, up = max(0, -offset), max(0, offset)
    parts = (range(low, x.shape[0]), range(up, x.shape[1]), *map(range, x.shape[2:]))
    x = construct.diagonal(construct.index(x, parts))
    return construct.transpose(x, (*range(1, len(x.shape)), 0))


@rule(np.diag)
def _diag(v: Any, k: int = 0) -> Node:
    x = lift(v)
    if len(x.shape) == 2:
        return diagonal(x, k)
    n = x.shape[0] + abs(k)
    if k == 0:
        return construct.from_diagonal(x, (n, n))
    inner = construct.from_diagonal(x, x.shape * 2)
    key = (range(max(0, -k), n - max(0, k)), range(max(0, k), n - max(0, -k)))
    return construct.scatter((n, n), [(key, inner)])


@rule(np.broadcast_to, view=True)
def _broadcast_to(array: Any, shape: Any, subok: bool = False) -> Node:
    return broadcast(lift(array), tuple(shape) if isinstance(shape, list | tuple) else (int(shape),))


@rule(np.concatenate)
def _concatenate(arrays: Any, /, axis: int | None = 0, out: Any = None, **_: Any) -> Node:
    parts = [number(x) for x in arrays]
    if axis is None:
        parts, axis = [reshape(p, (p.size,)) for p in parts], 0
    return construct.concatenate(parts, one_axis(int(axis), len(parts[0].shape)))


@rule(np.stack)
def _stack(arrays: Any, axis: int = 0, out: Any = None, **_: Any) -> Node:
    parts = [number(x) for x in arrays]
    return construct.stack(parts, one_axis(int(axis), len(parts[0].shape) + 1))


@rule(np.repeat)
def _repeat(a: Any, repeats: Any, axis: int | None = None) -> Node:
    x = lift(a)
    x = reshape(x, (x.size,)) if axis is None else x
    i = one_axis(0 if axis is None else int(axis), len(x.shape))
    return take(x, i, IndexArray.of(np.repeat(np.arange(x.shape[i]), repeats)))


@rule(np.tile)
def _tile(A: Any, reps: Any) -> Node:
    x = lift(A)
    counts = tuple(int(n) for n in reps) if isinstance(reps, list | tuple | np.ndarray) else (int(reps),)
    return FUNCTIONS["tile"](x, *counts)


@rule(np.roll)
def _roll(a: Any, shift: Any, axis: Any = None) -> Node:
    x = lift(a)
    flat = np.roll(np.arange(x.size).reshape(x.shape), shift, axis)
    if axis is not None and not isinstance(axis, tuple) and not isinstance(shift, tuple):
        return FUNCTIONS["roll"](x, int(shift), one_axis(int(axis), len(x.shape)))
    return take(reshape(x, (x.size,)), 0, IndexArray.of(flat))


def _triangle(op: str) -> Callable[..., Node]:
    return lambda m, k=0: FUNCTIONS[op](lift(m), int(k))


RULES[np.triu], RULES[np.tril] = _triangle("triu"), _triangle("tril")


@rule(np.pad)
def _pad(array: Any, pad_width: Any, mode: str = "constant", **settings: Any) -> Node:
    x = lift(array)
    around = settings.pop("constant_values", 0)
    numbers = np.pad(np.arange(1, x.size + 1).reshape(x.shape), pad_width, mode, **settings)  # type: ignore[call-overload]
    if mode != "constant":
        if mode not in ("edge", "reflect", "symmetric", "wrap") or settings.get("reflect_type", "even") != "even":
            raise InputError(f'`np.pad` with `mode="{mode}"` is not supported')
        return take(reshape(x, (x.size,)), 0, IndexArray.of(numbers - 1))
    inside = np.argwhere(numbers)
    corner = inside.min(axis=0) if len(inside) else np.zeros(numbers.ndim, int)
    key = tuple(range(int(i), int(i) + n) for i, n in zip(corner, x.shape, strict=True))
    inner = construct.scatter(numbers.shape, [(key, x)])
    if not np.any(around):
        return inner
    with aside():
        return inner + lift(np.pad(np.zeros(x.shape), pad_width, "constant", constant_values=around))
