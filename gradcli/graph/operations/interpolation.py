"""Pictures, rows and volumes in another size, with PyTorch's coordinates.

Source: R. Keys, "Cubic convolution interpolation for digital image processing" (1981), with a = -3/4.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.graph.array import Array, exact
from gradcli.graph.index_arrays import IndexArray, take
from gradcli.graph.node import Node, cast, const
from gradcli.graph.operation import Operation, defined
from gradcli.graph.shapes import check_size
from gradcli.graph.windows import adaptive_average

_CUBIC = "bicubic"
# The numbers of axes that they are for.
MODES: dict[str, tuple[int, ...]] = {"nearest": (1, 2, 3), "nearest-exact": (1, 2, 3), "area": (1, 2, 3)}
MODES |= {"linear": (1,), "bilinear": (2,), _CUBIC: (2,), "trilinear": (3,)}


def _interpolate(
    size: tuple[int, ...] | None, factors: tuple[float, ...] | None, mode: str, align_corners: bool | None, x: Node
) -> Node:
    lengths = x.shape[2:]
    each = factors or (None,) * len(lengths)
    counts = size or tuple(int(n * f) for n, f in zip(lengths, factors or (), strict=True))
    check_size((*x.shape[:2], *counts))
    if mode == "area":
        return adaptive_average(x, counts)
    # PyTorch: the index of the nearest element is computed in float32.
    kind: Any = np.float64 if x.dtype == "float64" and "nearest" not in mode else np.float32
    for axis, (n, count, factor) in enumerate(zip(lengths, counts, each, strict=True), 2):
        if mode in ("nearest", "nearest-exact"):
            scale = kind(1 / factor if factor else n / count)
            at = (np.arange(count, dtype=kind) + kind(0.5 if mode == "nearest-exact" else 0)) * scale
            x = take(x, axis, IndexArray.of(np.minimum(at.astype(np.int64), n - 1)))
        elif mode == _CUBIC:
            at = _coordinates(kind, align_corners, n, count, factor)
            x = _sum_of_taken(x, axis, at, _cubic(at - np.floor(at)))
        else:
            at = _coordinates(kind, align_corners, n, count, factor)
            at = np.arange(count, dtype=kind) if n == count else np.maximum(at, 0)  # an axis that keeps its size
            part = at - np.floor(at)
            x = _sum_of_taken(x, axis, at, {0: 1 - part, 1: part})
    return x


def _coordinates(kind: Any, align_corners: bool | None, n: int, count: int, factor: float | None) -> Array:
    """Return the index into an axis of n elements of each of those that replace them."""
    steps = np.arange(count, dtype=kind)
    if align_corners:
        return np.asarray(steps * kind((n - 1) / (count - 1) if count > 1 else 0))
    return np.asarray((steps + kind(0.5)) * kind(1 / factor if factor else n / count) - kind(0.5))


def _sum_of_taken(x: Node, axis: int, at: Array, shares: dict[int, Array]) -> Node:
    """Return the sum of elements around coordinates along an axis, times their shares, by distance from the floor."""
    shape = (len(at), *(1,) * (len(x.shape) - 1 - axis))
    first = np.floor(at).astype(np.int64)
    parts = [
        take(x, axis, IndexArray.of(np.clip(first + i, 0, x.shape[axis] - 1))) * _constants(share, shape)
        for i, share in shares.items()
    ]
    return cast(sum(parts[1:], parts[0]), x.dtype)


def _constants(numbers: Array, shape: tuple[int, ...]) -> Node:
    values = tuple(map(exact, numbers))
    return const(values[0] if len({*values}) == 1 else values, shape)


def _cubic(t: Array) -> dict[int, Array]:
    """Return the shares of the four elements around a point, by their distance from the one on its left."""
    near = [(1.25 * d - 2.25) * d * d + 1 for d in (t, 1 - t)]
    far = [((3.75 - 0.75 * d) * d - 6) * d + 3 for d in (1 + t, 2 - t)]
    return {-1: far[0], 0: near[0], 1: near[1], 2: far[1]}


ROWS: dict[str, Operation] = {
    "interpolate": defined(_interpolate, "size", "scale_factor", "mode", "align_corners", linear=(0,))
}
