"""Windows of images as columns, columns as sums of windows, and images in another size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.graph.construct import reshape
from gradcli.graph.node import Node, cast, const
from gradcli.graph.places import Places, put, take
from gradcli.pytorch.calls import exact
from gradcli.pytorch.messages import refusal
from gradcli.pytorch.missing import MissingError
from gradcli.pytorch.record import apply
from gradcli.pytorch.refusals import several
from gradcli.pytorch.tensor import Tensor

Array = np.ndarray[Any, Any]


def _windows(size: Sequence[int], kernel: Any, dilation: Any, padding: Any, stride: Any) -> tuple[Array, Array, int]:
    """Return which elements of the columns show an element of the image, which one each shows, and how many windows."""
    rows = zip(size, *(several(own, len(size)) for own in (kernel, dilation, padding, stride)), strict=True)
    at, inside = np.zeros((1, 1), np.int64), np.ones((1, 1), bool)
    for n, k, d, p, s in rows:
        starts = np.arange(0, n + 2 * p - d * (k - 1), s) - p
        own = np.arange(k)[:, None] * d + starts
        at = (at[:, None, :, None] * n + own[None, :, None]).reshape(len(at) * k, -1)
        inside = (inside[:, None, :, None] & ((own >= 0) & (own < n))[None, :, None]).reshape(at.shape)
    return np.flatnonzero(inside), at[inside], at.shape[1]


def _moved(x: Node, source: Array, target: Array, size: int) -> Node:
    """Return elements of the last axis at other places, those that meet added."""
    axis = len(x.shape) - 1
    taken = x if np.array_equal(source, np.arange(x.shape[axis])) else take(x, axis, Places.of(source))
    return taken if np.array_equal(target, np.arange(size)) else put(taken, axis, Places.of(target), size)


def unfold(input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    x = input if input.dim() == 4 else input.unsqueeze(0)
    count, channels, *size = x.shape
    kernel = several(kernel_size, 2)
    shown, at, windows = _windows(size, kernel, dilation, padding, stride)
    rows = kernel[0] * kernel[1]

    def build(n: Node) -> Node:
        columns = _moved(reshape(n, (count, channels, size[0] * size[1])), at, shown, rows * windows)
        return reshape(columns, (count, channels * rows, windows))

    found: Any = apply("unfold2d", build, (x,), repr((kernel, dilation, padding, stride)), "Im2ColBackward0")
    return found if input.dim() == 4 else found.squeeze(0)  # type: ignore[no-any-return]


def fold(
    input: Any, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    x = input if input.dim() == 3 else input.unsqueeze(0)
    size, kernel = several(output_size, 2), several(kernel_size, 2)
    shown, at, windows = _windows(size, kernel, dilation, padding, stride)
    rows = kernel[0] * kernel[1]
    if x.shape[2] != windows:
        own = [tuple(several(v, 2)) for v in (dilation, padding, stride)]
        counts = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in zip(size, kernel, *own, strict=True)]
        raise refusal(
            "windows of a fold", tuple(size), tuple(kernel), *own, f"{counts[0]} * {counts[1]} = {windows}", x.shape[2]
        )
    shape = (x.shape[0], x.shape[1] // rows, *size)

    def build(n: Node) -> Node:
        flat = reshape(n, (*shape[:2], rows * windows))
        return reshape(_moved(flat, shown, at, size[0] * size[1]), shape)

    found: Any = apply("fold", build, (x,), repr((size, kernel, dilation, padding, stride)), "Col2ImBackward0")
    return found if input.dim() == 3 else found.squeeze(0)  # type: ignore[no-any-return]


_MODES = {("nearest", 1): "Nearest1D", ("nearest", 2): "Nearest2D", ("linear", 1): "Linear1D"}
_MODES[("bilinear", 2)] = "Bilinear2D"


def interpolate(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    axes = input.dim() - 2
    if (size is None) == (scale_factor is None):
        raise ValueError(f"{'either' if size is None else 'only one of'} size or scale_factor should be defined")
    if mode == "nearest" and align_corners is not None:
        raise refusal("corners of another mode")
    if (mode, axes) not in _MODES:
        raise MissingError(f"torch.nn.functional.interpolate(mode={mode!r}) of {input.dim()} axes")
    sizes = list(input.shape[2:])
    factors = [None] * axes if size is not None else several(scale_factor, axes)
    wanted = several(size, axes) if size is not None else [int(n * f) for n, f in zip(sizes, factors, strict=True)]
    places = [_sources(mode, align_corners, *row) for row in zip(sizes, wanted, factors, strict=True)]

    def build(x: Node) -> Node:
        for axis, (low, high, part) in enumerate(places, 2):
            near = take(x, axis, Places.of(low))
            if mode == "nearest":
                x = near
                continue
            shape = (len(part), *[1] * (axes + 1 - axis))
            first, second = (const(tuple(map(exact, own)), shape) for own in (1 - part, part))
            x = cast(near * first + take(x, axis, Places.of(high)) * second, x.dtype)
        return x

    settings = (mode, align_corners, tuple(wanted), tuple(factors))
    return apply("interpolate", build, (input,), settings, f"Upsample{_MODES[mode, axes]}Backward0")


def _sources(mode: str, corners: bool | None, n: int, wanted: int, factor: float | None) -> tuple[Array, Array, Array]:
    """Return the two elements of an axis between which each new one lies, and how far it is from the first."""
    steps = np.arange(wanted, dtype=np.float32)
    if corners:
        at = steps * np.float32((n - 1) / (wanted - 1) if wanted > 1 else 0)
    else:
        scale = np.float32(1 / factor if factor else n / wanted)
        at = steps * scale if mode == "nearest" else np.maximum((steps + np.float32(0.5)) * scale - np.float32(0.5), 0)
    low = np.minimum(at.astype(np.int64), n - 1)
    return low, np.minimum(low + 1, n - 1), at - low
