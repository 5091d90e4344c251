"""Pools over one, two or three axes: the largest or the mean element of each window."""

from __future__ import annotations

from gradcli.graph.node import Node
from gradcli.graph.operation import Operation, defined
from gradcli.graph.windows import Window, adaptive_average, adaptive_largest, average, largest

Sizes = tuple[int, ...]  # one for each axis


def _max_pool(kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil: bool, x: Node) -> Node:
    rows = zip(kernel, stride, padding, dilation, strict=True)
    return largest(x, [Window(n, s, p, d, ceil) for n, s, p, d in rows])


def _avg_pool(
    kernel: Sizes, stride: Sizes, padding: Sizes, ceil: bool, count_padding: bool, divisor: int | None, x: Node
) -> Node:
    windows = [Window(n, s, p, 1, ceil) for n, s, p in zip(kernel, stride, padding, strict=True)]
    return average(x, windows, count_padding, divisor)


def _adaptive_max_pool(counts: Sizes, x: Node) -> Node:
    if (windows := _even(counts, x)) is not None:
        return largest(x, windows)
    return adaptive_largest(x, counts)


def _adaptive_avg_pool(counts: Sizes, x: Node) -> Node:
    if (windows := _even(counts, x)) is not None:
        return average(x, windows, True, None)
    return adaptive_average(x, counts)


def _even(counts: Sizes, x: Node) -> list[Window] | None:
    """Return the windows that divide the last axes into so many; None where they would be unequal."""
    sizes = x.shape[-len(counts) :]
    if any(n % count for n, count in zip(sizes, counts, strict=True)):
        return None
    return [Window(n // count, n // count) for n, count in zip(sizes, counts, strict=True)]


_WINDOWS = ("kernel_size", "stride", "padding")

ROWS: dict[str, Operation] = {
    **{f"max_pool{n}d": defined(_max_pool, *_WINDOWS, "dilation", "ceil_mode") for n in (1, 2, 3)},
    **{
        f"avg_pool{n}d": defined(_avg_pool, *_WINDOWS, "ceil_mode", "count_include_pad", "divisor_override")
        for n in (1, 2, 3)
    },
    **{f"adaptive_max_pool{n}d": defined(_adaptive_max_pool, "output_size") for n in (1, 2, 3)},
    **{f"adaptive_avg_pool{n}d": defined(_adaptive_avg_pool, "output_size") for n in (1, 2, 3)},
}
