"""Convolutions and transposed ones over one, two or three axes."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.graph.construct import index, reduce, reshape
from gradcli.graph.einsum import einsum
from gradcli.graph.index_arrays import scatter_add
from gradcli.graph.node import Node
from gradcli.graph.operation import Operation, defined
from gradcli.graph.shapes import size_of
from gradcli.graph.windows import Window, convolve, flat_positions, in_windows

Sizes = tuple[int, ...]  # one for each axis


def _convolution(
    stride: Sizes, padding: Sizes | str, dilation: Sizes, groups: int, x: Node, weight: Node, **bias: Node
) -> Node:
    sizes = weight.shape[2:]
    ends = [(n, 0) for n in padding] if isinstance(padding, tuple) else [(0, 0)] * len(sizes)
    if padding == "same":  # what is more of it is at the far end
        ends = [divmod(d * (n - 1), 2) for n, d in zip(sizes, dilation, strict=True)]
    rows = zip(sizes, stride, ends, dilation, strict=True)
    y = convolve(x, weight, [Window(n, s, p, d, more=more) for n, s, (p, more), d in rows], groups)
    return _shifted(y, len(sizes), **bias)


def _convolution_pullback(
    g: Node, y: Node, stride: Sizes, padding: Sizes | str, dilation: Sizes, groups: int, x: Node, weight: Node,
    **bias: Node,
) -> Sequence[Node] | None:  # fmt: skip
    n = len(stride)
    if not isinstance(padding, tuple):
        return None
    rows = list(zip(x.shape[-n:], g.shape[-n:], weight.shape[2:], stride, padding, dilation, strict=True))
    rest = tuple(size - (count - 1) * s + 2 * p - d * (k - 1) - 1 for size, count, k, s, p, d in rows)
    settings = (), stride, padding, rest, groups, dilation
    of_x = Node(f"conv_transpose{n}d", (g, weight), x.shape, settings, g.dtype)
    of_weight = _of_weight(_columns(x, weight, stride, padding, dilation), g, weight, groups)
    return [of_x, of_weight, *(_of_bias(g, n) for _ in bias)]


def _of_weight(columns: Node, passed: Node, weight: Node, groups: int) -> Node:
    """Return the sums of products of the elements of windows and a number of each, by output and channel."""
    n = len(weight.shape) - 2
    lead = len(passed.shape) - n - 1
    batch, length, inner, each = "n" * lead, "hwd"[:n], "ijk"[:n], "g" * (groups > 1)
    taken, passed = _in_groups(columns, lead, groups), _in_groups(passed, lead, groups)
    products = einsum(f"{batch}{each}c{length}{inner},{batch}{each}o{length}->{each}oc{inner}", taken, passed)
    return reshape(products, weight.shape)


def _shifted(y: Node, n: int, bias: Node | None = None) -> Node:
    return y if bias is None else y + reshape(bias, (*bias.shape, *(1,) * n))


def _of_bias(g: Node, n: int) -> Node:
    return reduce("sum", g, tuple(i for i in range(len(g.shape)) if i != len(g.shape) - n - 1))


def _columns(x: Node, weight: Node, stride: Sizes, padding: Sizes, dilation: Sizes) -> Node:
    """Return the elements that each window multiplies, which forward and backward read ("im2col")."""
    rows = zip(weight.shape[2:], stride, padding, dilation, strict=True)
    return in_windows(x, [Window(k, s, p, d) for k, s, p, d in rows])


def _residuals(
    stride: Sizes, padding: Sizes, dilation: Sizes, groups: int, x: Node, weight: Node, **bias: Node
) -> list[Node]:
    return [_columns(x, weight, stride, padding, dilation)]


def _in_groups(x: Node, axis: int, groups: int) -> Node:
    """Return an array whose channels along an axis are in groups, along an axis in front; one of one group as it is."""
    if groups == 1:
        return x
    return reshape(x, (*x.shape[:axis], groups, x.shape[axis] // groups, *x.shape[axis + 1 :]))


def _conv_transpose(
    stride: Sizes, padding: Sizes, output_padding: Sizes, groups: int, dilation: Sizes, x: Node, weight: Node,
    **bias: Node,
) -> Node:  # fmt: skip
    n = len(stride)
    lead, counts = x.shape[: len(x.shape) - n - 1], x.shape[-n:]
    batch, length, inner = "n" * len(lead), "hwd"[:n], "ijk"[:n]
    outputs, kernel, each = weight.shape[1], weight.shape[2:], "g" * (groups > 1)
    split, kernels = _in_groups(x, len(lead), groups), _in_groups(weight, 0, groups)
    spread = einsum(f"{batch}{each}o{length},{each}oc{inner}->{batch}{each}c{length}{inner}", split, kernels)
    rows = list(zip(counts, kernel, stride, padding, output_padding, dilation, strict=True))
    positions = [Window(k, s, 0, d).positions((count - 1) * s + d * (k - 1) + 1) for count, k, s, _, _, d in rows]
    size = tuple((count - 1) * s - 2 * p + d * (k - 1) + 1 + rest for count, k, s, p, rest, d in rows)
    frame = tuple(
        max((count - 1) * s + d * (k - 1) + 1, p + out) for (count, k, s, p, _, d), out in zip(rows, size, strict=True)
    )
    planes = (*lead, groups * outputs)
    taken = reshape(spread, (*planes, *counts, *kernel))
    whole = scatter_add(taken, len(planes), flat_positions(positions, frame), size_of(frame))
    inside = (range(p, p + out) for p, out in zip(padding, size, strict=True))
    y = index(reshape(whole, (*planes, *frame)), (*map(range, planes), *inside))
    return _shifted(y, n, **bias)


def _conv_transpose_pullback(
    g: Node, y: Node, stride: Sizes, padding: Sizes, output_padding: Sizes, groups: int, dilation: Sizes, x: Node,
    weight: Node, **bias: Node,
) -> Sequence[Node] | None:  # fmt: skip
    if any(rest >= s for rest, s in zip(output_padding, stride, strict=True)):  # there would be more windows
        return None
    n = len(stride)
    of_x = Node(f"conv{n}d", (g, weight), x.shape, ((), stride, padding, dilation, groups), x.dtype)
    of_weight = _of_weight(_columns(g, weight, stride, padding, dilation), x, weight, groups)
    return [of_x, of_weight, *(_of_bias(g, n) for _ in bias)]


_SETTINGS = ("given", "stride", "padding")
_BIAS = {"bias": None}

ROWS: dict[str, Operation] = {
    **{
        f"conv{n}d": defined(
            _convolution,
            *_SETTINGS,
            "dilation",
            "groups",
            pullback=_convolution_pullback,
            residuals=_residuals,
            options=_BIAS,
        )
        for n in (1, 2, 3)
    },
    **{
        f"conv_transpose{n}d": defined(
            _conv_transpose,
            *_SETTINGS,
            "output_padding",
            "groups",
            "dilation",
            pullback=_conv_transpose_pullback,
            options=_BIAS,
        )
        for n in (1, 2, 3)
    },
}
