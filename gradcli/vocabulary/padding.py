"""The name of padding, with the settings of PyTorch's `torch.nn.functional.pad`."""

from __future__ import annotations

from gradcli.errors import InputError
from gradcli.graph.construct import broadcast, concatenate, index, scatter
from gradcli.graph.node import Node, const, is_const
from gradcli.graph.shapes import check_size
from gradcli.vocabulary.register import Axis, integers, named

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
    x = index(x, tuple(range(max(0, -a), n - max(0, -b)) for n, a, b in ends))
    if value.shape:
        raise InputError("`value` is a number", None, None, value)
    more = [(max(0, a), max(0, b)) for _, a, b in ends]
    return _zeros_around(x, more) if is_const(value, 0) else _around(x, more, value)


def _zeros_around(x: Node, more: list[tuple[int, int]]) -> Node:
    shape = check_size(tuple(a + n + b for n, (a, b) in zip(x.shape, more, strict=True)))
    key = tuple(range(a, a + n) for n, (a, _) in zip(x.shape, more, strict=True))
    return x if shape == x.shape else scatter(shape, [(key, x)])


def _around(x: Node, more: list[tuple[int, int]], value: Node) -> Node:
    for axis, counts in enumerate(more):
        first, last = (
            broadcast(value, (*x.shape[:axis], count, *x.shape[axis + 1 :])) if count else None for count in counts
        )
        x = concatenate([part for part in (first, x, last) if part is not None], axis)
    return x
