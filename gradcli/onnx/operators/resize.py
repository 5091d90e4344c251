"""Images in another size: a matrix along each axis, or the nearest elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.errors import InputError
from gradcli.graph.array import Array
from gradcli.graph.construct import call, equal, index, matmul, reshape, transpose, where
from gradcli.graph.einsum import einsum
from gradcli.graph.index_arrays import IndexArray, take
from gradcli.graph.node import Node, const
from gradcli.graph.shapes import check_size, size_of
from gradcli.onnx.register import operator
from gradcli.onnx.values import axis_of, integers, lift

_LINEAR, _CUBIC = "linear", "cubic"


@operator("Resize", since=11)
def _resize(
    x: Node, roi: Array | None = None, scales: Array | None = None, sizes: Array | None = None, *,
    mode: str = "nearest", axes: Any = None, keep_aspect_ratio_policy: str = "stretch", **attributes: Any,
) -> Node:  # fmt: skip
    rank = len(x.shape)
    along = [axis_of(a, rank) for a in axes] if axes is not None else list(range(rank))
    if sizes is not None and sizes.size:
        wanted = list(integers(sizes))
        factors = [n / x.shape[a] for n, a in zip(wanted, along, strict=True)]
        if keep_aspect_ratio_policy != "stretch":
            one = (min if keep_aspect_ratio_policy == "not_larger" else max)(factors)
            factors = [one] * len(along)
            wanted = [int(one * x.shape[a] + 0.5) for a in along]
    elif scales is not None and scales.size:
        factors = [float(str(s)) for s in scales.reshape(-1)]
        wanted = [int(s * x.shape[a] + 1e-9) for s, a in zip(factors, along, strict=True)]
    else:
        raise InputError("`Resize` has neither scales nor sizes")
    ends = np.zeros((2, len(along))) if roi is None or not roi.size else roi.reshape(2, len(along))
    return _resized(x, along, wanted, factors, ends, mode, attributes)


@operator("Resize", "Upsample")
def _upsample(x: Node, scales: Array, *, mode: str = "nearest") -> Node:
    factors = [float(str(s)) for s in scales.reshape(-1)]
    wanted = [int(s * n + 1e-9) for s, n in zip(factors, x.shape, strict=True)]
    attributes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return _resized(x, list(range(len(factors))), wanted, factors, np.zeros((2, len(factors))), mode, attributes)


def _resized(
    x: Node,
    along: list[int],
    wanted: list[int],
    factors: list[float],
    ends: Array,
    mode: str,
    attributes: dict[str, Any],
) -> Node:
    sizes = dict(zip(along, wanted, strict=True))
    check_size(tuple(sizes.get(a, n) for a, n in enumerate(x.shape)))
    how = attributes.get("coordinate_transformation_mode", "half_pixel")
    outside: Any = None
    for k, (axis, n, s) in enumerate(zip(along, wanted, factors, strict=True)):
        if n < 1:
            raise InputError("`Resize` makes an axis empty")
        if n == x.shape[axis] and s == 1 and how != "tf_crop_and_resize":
            continue
        at = _coordinates(how, n, x.shape[axis], s, ends[:, k])
        if how == "tf_crop_and_resize":
            beyond = ((at < 0) | (at > x.shape[axis] - 1)).reshape(
                [-1 if i == axis else 1 for i in range(len(x.shape))]
            )
            outside = beyond if outside is None else outside | beyond
        if mode == "nearest":
            x = take(
                x,
                axis,
                IndexArray.of(_nearest(at, x.shape[axis], attributes.get("nearest_mode", "round_prefer_floor"))),
            )
        else:
            weights = _weights(at, x.shape[axis], s, mode, attributes)
            x = _along(x, axis, lift(weights, x.dtype))
    if outside is not None and outside.any():
        fill = lift(np.asarray(attributes.get("extrapolation_value", 0.0)), x.dtype)
        return where(lift(np.broadcast_to(outside, x.shape)), fill, x)
    return x


def _coordinates(how: str, n: int, size: int, scale: float, ends: Array) -> Array:
    """Return the index into the array of each element of the result."""
    at = np.arange(n, dtype=float)
    match how:
        case "half_pixel":
            return (at + 0.5) / scale - 0.5
        case "half_pixel_symmetric":
            exact = scale * size
            return size / 2 * (1 - n / exact) + (at + 0.5) / scale - 0.5
        case "pytorch_half_pixel":
            return (at + 0.5) / scale - 0.5 if n > 1 else np.zeros(1)
        case "align_corners":
            return at * (size - 1) / (scale * size - 1) if scale * size != 1 else np.zeros(n)
        case "asymmetric":
            return at / scale
        case "tf_crop_and_resize":
            start, end = (float(e) for e in ends)
            if n > 1:
                return start * (size - 1) + at * (end - start) * (size - 1) / (n - 1)
            return np.full(1, 0.5 * (start + end) * (size - 1))
    raise InputError(f"there is no coordinate_transformation_mode `{how[:40]}`")


def _nearest(at: Array, size: int, how: str) -> Array:
    round_off: Any = {
        "round_prefer_floor": lambda x: np.ceil(x - 0.5),
        "round_prefer_ceil": lambda x: np.floor(x + 0.5),
        "floor": np.floor,
        "ceil": np.ceil,
    }.get(how)
    if round_off is None:
        raise InputError(f"there is no nearest_mode `{how[:40]}`")
    return np.asarray(np.clip(round_off(at), 0, size - 1).astype(np.int64))


def _weights(at: Array, size: int, scale: float, mode: str, attributes: dict[str, Any]) -> Array:
    """Return the matrix of interpolation along an axis: a row for each element of the result."""
    if mode not in (_LINEAR, _CUBIC):
        raise InputError(f"`Resize` has no mode `{mode[:40]}`")
    reach, wide = 1 if mode == _LINEAR else 2, 1.0
    if attributes.get("antialias") and scale < 1:
        wide = scale
    check_size((len(at), size))
    result = np.zeros((len(at), size))
    count = int(np.ceil(reach / wide))
    for offset in range(1 - count, count + 1):
        index = np.floor(at).astype(int) + offset
        weight = _kernel(mode, np.abs(index - at) * wide, attributes.get("cubic_coeff_a", -0.75))
        if attributes.get("exclude_outside"):
            weight = np.where((index < 0) | (index >= size), 0, weight)
        np.add.at(result, (np.arange(len(at)), np.clip(index, 0, size - 1)), weight)
    return np.asarray(result / result.sum(axis=1, keepdims=True))


def _kernel(mode: str, t: Array, a: float) -> Array:
    """Return the weight of an element at a distance (R. Keys, "Cubic convolution interpolation", 1981)."""
    if mode == _LINEAR:
        return np.asarray(np.maximum(0, 1 - t))
    near, far = ((a + 2) * t - (a + 3)) * t**2 + 1, ((t - 5) * t + 8) * t * a - 4 * a
    return np.where(t <= 1, near, np.where(t < 2, far, 0))


def _along(x: Node, axis: int, matrix: Node) -> Node:
    """Return the product of a matrix with each line along an axis."""
    order = [*(i for i in range(len(x.shape)) if i != axis), axis]
    y = matmul(transpose(x, tuple(order)), transpose(matrix, (1, 0)))
    return transpose(y, tuple(order.index(i) for i in range(len(order))))


# Samples at coordinates that may depend on the inputs


@operator("GridSample")
def _grid_sample(
    x: Node, grid: Node, *, mode: str = "linear", padding_mode: str = "zeros", align_corners: int = 0
) -> Node:
    """Return the sums over all elements, each weighted by its distance along each axis from the sample."""
    rank = len(x.shape) - 2
    mode = {"bilinear": _LINEAR, "bicubic": _CUBIC}.get(mode, mode)
    if mode not in (_LINEAR, _CUBIC, "nearest") or (mode == _CUBIC and padding_mode != "zeros") or rank > 3:
        raise InputError(f"`GridSample` with mode `{mode[:40]}` and padding `{padding_mode[:40]}` is not supported")
    if len(grid.shape) != rank + 2 or grid.shape[:: rank + 1] != (x.shape[0], rank):
        raise InputError(f"a grid of shape {grid.shape} does not fit an array of shape {x.shape}")
    count = size_of(grid.shape[1:-1])
    y = reshape(x, x.shape)
    letters, inner = "nc" + "xyz"[:rank], "xyz"[:rank]
    for k in range(rank)[::-1]:  # the grid has the last axis first
        n = x.shape[2 + k]
        at = reshape(index(grid, (*map(range, grid.shape[:-1]), rank - 1 - k)), (grid.shape[0], count, 1))
        at = (at + 1) / 2 * (n - 1) if align_corners else ((at + 1) * n - 1) / 2
        weights = _hats(_inside(at, n, padding_mode, align_corners), n, mode)
        check_size((*y.shape, count))
        left = letters.replace("p", "") + "p" * ("p" in letters)
        rest = left.replace(inner[k], "")
        rest = rest if "p" in rest else rest + "p"
        y, letters = einsum(f"{left},np{inner[k]}->{rest}", y, weights), rest
    return reshape(y, (*x.shape[:2], *grid.shape[1:-1]))


def _inside(at: Node, n: int, padding: str, align: int) -> Node:
    """Return coordinates that are moved to the border, or reflected at it."""
    if padding == "border":
        return call("clamp", at, 0, n - 1)
    if padding == "reflection":
        low, span = (0, n - 1) if align else (const(-1) / 2, n)
        if not span:
            return 0 * at
        far = call("mod", at - low, 2 * span)
        return call("clamp", call("minimum", far, 2 * span - far) + low, 0, n - 1)
    return at


def _hats(at: Node, n: int, mode: str) -> Node:
    """Return the weight of each of n elements for samples at coordinates."""
    indices = const(tuple(range(n)), (n,)) if n > 1 else const(0, (1,))
    if mode == "nearest":
        return where(equal(call("round", at), indices), 1, 0)
    t = call("abs", at - indices)
    if mode == _LINEAR:
        return call("maximum", 1 - t, 0)
    a = const(-3) / 4
    near, far = ((a + 2) * t - (a + 3)) * t**2 + 1, ((t - 5) * t + 8) * t * a - 4 * a
    return where(t <= 1, near, where(t < 2, far, 0))
