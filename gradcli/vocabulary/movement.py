"""Names of functions that move elements, and of padding."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.errors import InputError
from gradcli.graph import construct
from gradcli.graph.calls import call_of, definition_of
from gradcli.graph.construct import axes_of, broadcast, one_axis, reshape
from gradcli.graph.index_arrays import gather_along, index_array, segment_sum, take
from gradcli.graph.node import Node, const, is_const
from gradcli.graph.shapes import Shape, check_size
from gradcli.vocabulary.register import Axis, integers, named


@named("transpose", "t")
def _transpose(x: Node, *axes: Axis) -> Node:
    rank = len(x.shape)
    if not axes:
        return construct.transpose(x, tuple(reversed(range(rank))))
    if len(axes) == 1:
        return _permute(x, *axes)
    if len(axes) != 2:
        raise InputError("`transpose` exchanges two axes", hint="`permute(x, 2, 0, 1)` puts all in a new order")
    first, second = (one_axis(a, rank) for a in _sizes(axes))  # PyTorch: x.transpose(0, 1) exchanges two axes
    exchanged = {first: second, second: first}
    return construct.transpose(x, tuple(exchanged.get(i, i) for i in range(rank)))


@named("permute")
def _permute(x: Node, *axes: Axis) -> Node:
    return construct.transpose(x, tuple(one_axis(a, len(x.shape)) for a in _sizes(axes)))


def _sizes(sizes: Sequence[Axis]) -> Shape:
    return integers(sizes, "`reshape(x, 2, 3)` or `reshape(x, (2, 3))`")


@named("reshape", "view")
def _reshape(x: Node, *shape: Axis) -> Node:
    return construct.reshape(x, _sizes(shape))


@named("flatten", "ravel")
def _flatten(x: Node) -> Node:
    return reshape(x, (x.size,))


@named("concatenate", "cat", "concat", methods=())
def _concatenate(parts: Sequence[Node], axis: int = 0) -> Node:
    rank = len(parts[0].shape) if parts else 0
    if not rank or any(len(p.shape) != rank for p in parts):
        raise InputError(
            "`concatenate` needs arrays with as many axes", hint="`stack([a, b])` makes a vector of scalars"
        )
    return construct.concatenate(parts, one_axis(axis, rank))


@named("stack", methods=())
def _stack(parts: Sequence[Node], axis: int = 0) -> Node:
    if not parts:
        raise InputError("`stack` needs at least one element")
    return construct.stack(parts, one_axis(axis, len(parts[0].shape) + 1))


@named("squeeze")
def _squeeze(x: Node, axis: Axis = None) -> Node:
    axes = axes_of(axis, len(x.shape))
    return reshape(x, [n for i, n in enumerate(x.shape) if i not in axes or n != 1])  # PyTorch: others stay


@named("unsqueeze", "expand_dims")
def _unsqueeze(x: Node, axis: int) -> Node:
    axis = one_axis(axis, len(x.shape) + 1)
    return reshape(x, (*x.shape[:axis], 1, *x.shape[axis:]))


@named("expand", "broadcast_to")
def _expand(x: Node, *shape: Axis) -> Node:
    sizes = integers(shape, "`expand(x, 2, -1)`")
    new = len(sizes) - len(x.shape)
    if new < 0 or any(n < 1 and (n != -1 or i < new) for i, n in enumerate(sizes)):
        raise InputError(
            f"shape {x.shape} does not expand to {sizes}", hint="-1 keeps the size of an axis; new axes go in front"
        )
    return broadcast(x, tuple(x.shape[i - new] if n == -1 else n for i, n in enumerate(sizes)))


def _times(name: str, counts: Sequence[Axis]) -> Shape:
    """Return how often each axis is repeated."""
    times = integers(counts, f"`{name}(x, 2, 1)`")
    if not times or min(times) < 1:
        raise InputError(f"`{name}` takes integers from 1", hint=f"for example `{name}(x, 2, 1)`")
    return times


@named("repeat")
def _repeat(x: Node, *times: Axis) -> Node:
    if len(_times("repeat", times)) < len(x.shape):
        raise InputError(
            f"`repeat` of an array of shape {x.shape} takes a number for each axis",
            hint="as in PyTorch; `repeat_interleave(x, 2, axis=0)` is what `repeat` is in NumPy",
        )
    return _tile(x, *times)


@named("tile")
def _tile(x: Node, *times: Axis) -> Node:
    counts = _times("tile", times)
    rank = max(len(counts), len(x.shape))
    counts, sizes = ((1,) * (rank - len(n)) + n for n in (counts, x.shape))
    pairs = tuple(n for pair in zip(counts, sizes, strict=True) for n in pair)
    apart = reshape(x, [n for size in sizes for n in (1, size)])
    return reshape(broadcast(apart, pairs), [k * n for k, n in zip(counts, sizes, strict=True)])


def _along(x: Node, axis: int | None) -> tuple[Node, int]:
    """Return an array and its axis; without one, they are those of all elements in a row."""
    return (_flatten(x), 0) if axis is None else (x, one_axis(axis, len(x.shape)))


@named("repeat_interleave")
def _repeat_interleave(x: Node, repeats: int, axis: int | None = None) -> Node:
    if type(repeats) is not int:
        raise InputError("all elements must be repeated equally often", hint="for example `repeat_interleave(x, 2)`")
    (count,) = _times("repeat_interleave", (repeats,))
    x, axis = _along(x, axis)
    before, n, behind = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    apart = broadcast(reshape(x, (*before, n, 1, *behind)), (*before, n, count, *behind))
    return reshape(apart, (*before, n * count, *behind))


@named("flip")
def _flip(x: Node, *axes: Axis, axis: Axis = None) -> Node:
    return construct.flip(x, axes_of(integers(axes, "`flip(x, 0)`") if axes else axis, len(x.shape)))


@named("roll")
def _roll(x: Node, shifts: Axis, axis: Axis = None) -> Node:
    example = "`roll(x, 1, 0)` or `roll(x, (1, 2), (0, 1))`"
    steps = integers(shifts, example)
    if axis is None and len(steps) == 1:
        return reshape(call_of("roll", (steps[0], 0), _flatten(x)), x.shape)
    axes = [one_axis(a, len(x.shape)) for a in integers(axis, example)] if axis is not None else []
    if len(axes) != len(steps):
        raise InputError("`roll` takes a shift for each axis", hint=f"for example {example}")
    for step, along in zip(steps, axes, strict=True):
        x = call_of("roll", (step, along), x)
    return x


@named("take")
def _take(x: Node, index: Axis, axis: int | None = None) -> Node:
    x, axis = _along(x, axis)
    return take(x, axis, index_array(index, x.shape[axis]))


@named("index_select")
def _index_select(x: Node, axis: int, index: Axis) -> Node:
    return _take(x, index, one_axis(axis, len(x.shape)))


@named("segment_sum")
def _segment_sum(x: Node, ids: Axis, n: int) -> Node:
    if type(n) is not int or n < 1:
        raise InputError("the number of segments must be an integer from 1", hint="`segment_sum(x, [0, 0, 1], 2)`")
    return segment_sum(x, index_array(ids, n), n)


@named("gather")
def _gather(x: Node, axis: int, index: Axis) -> Node:
    return gather_along(x, one_axis(axis, len(x.shape)), index)


_ZERO = const(0)


@named("pad", methods=())
def _pad(x: Node, pad: Axis, mode: str = "constant", value: Node = _ZERO) -> Node:
    """Return the array padded by these counts before and after it, along the last axis, the one before, and so on.

    Negative counts remove elements.
    """
    if mode != "constant":
        raise InputError(f"`pad` has no mode `{mode[:40]}`", hint='"constant" puts `value` around the array')
    counts = integers(pad, "`pad(x, (1, 1))`")
    rank = len(x.shape)
    if len(counts) % 2 or len(counts) > 2 * rank:
        raise InputError(
            f"`pad` takes two numbers an axis, from the last axis on, not {len(counts)} for {rank}",
            hint="`pad(M, (1, 0, 0, 2))`: a column before M, and two rows below it",
        )
    before = (0,) * (rank - len(counts) // 2) + counts[::2][::-1]
    behind = (0,) * (rank - len(counts) // 2) + counts[1::2][::-1]
    ends = list(zip(x.shape, before, behind, strict=True))
    if any(n + a + b < 1 or n + min(a, 0) + min(b, 0) < 1 for n, a, b in ends):
        raise InputError("no element of the array would be left")
    check_size(tuple(n + a + b for n, a, b in ends))
    if value.shape:
        raise InputError("`value` is a number", None, None, value)
    result = call_of("pad", (counts,), x, value)
    return definition_of(result) if is_const(value, 0) else result  # a scatter, which formulas write as pad, too
