"""Indices of the maxima of pooling windows, and `max_unpool1d` and `max_unpool2d`, which write values back there."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gradcli.pytorch.argument_checks import several
from gradcli.pytorch.calls import called
from gradcli.pytorch.cuts import note_lost
from gradcli.pytorch.messages import raise_if, torch_error
from gradcli.pytorch.names import calling
from gradcli.pytorch.operations.creation import zeros
from gradcli.pytorch.tensor import Array, Tensor, of_array


def indices_of(name: str, x: Tensor, pooled: Tensor, axes: int, settings: Mapping[str, Any]) -> Tensor:
    """Return for each largest number its index in its plane: the first of equal ones, the last `nan`.

    `settings` are `kernel_size`, `stride`, `padding` and `dilation`, for each axis or for all.
    """
    sizes = (several(settings[k], axes) for k in ("kernel_size", "stride", "padding", "dilation"))
    rows = zip(pooled.shape[-axes:], zip(*sizes, strict=True), strict=True)
    windows = [
        np.arange(count)[:, None] * step - ends + np.arange(kernel) * apart
        for count, (kernel, step, ends, apart) in rows
    ]
    result = of_array(_largest(x, windows).reshape(pooled.shape))
    note_lost(result, (x,), f"taking the indices of {name}")
    return result


def adaptive(x: Any, counts: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Return the largest numbers of windows of unequal sizes that cover the last axes, and their indices."""
    axes, windows = len(counts), []
    for size, count in zip(x.shape[-len(counts) :], counts, strict=True):
        ends = [(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]
        most = max((b - a for a, b in ends), default=0)
        windows.append(np.array([[*range(a, b), *[-1] * (most - b + a)] for a, b in ends], np.int64))
    indices = of_array(_largest(x, windows).reshape(*x.shape[:-axes], *counts))
    return x.flatten(-axes).gather(-1, indices.flatten(-axes)).unflatten(-1, counts), indices  # type: ignore[attr-defined]


def _largest(x: Tensor, windows: Sequence[Array]) -> Array:
    """Return for each plane the flat indices of the largest numbers of windows; each axis has its rows of positions.

    A position outside of the axis is none.
    """
    shape = x.shape[-len(windows) :]
    planes = x._a[..., 0].reshape(-1, math.prod(shape))
    flat, inside = np.zeros((1, 1), np.int64), np.ones((1, 1), bool)
    for size, positions in zip(shape, windows, strict=True):
        is_element = (positions >= 0) & (positions < size)
        rows, columns = len(flat) * len(positions), flat.shape[1] * positions.shape[1]
        flat = (flat[:, None, :, None] * size + np.clip(positions, 0, size - 1)[:, None]).reshape(rows, columns)
        inside = (inside[:, None, :, None] & is_element[:, None]).reshape(rows, columns)
    values = np.where(inside, planes[:, flat], -np.inf)
    largest = np.argmax(np.where(np.isnan(values), -np.inf, values), axis=-1)
    is_nan = np.isnan(values)
    last_nan = values.shape[-1] - 1 - np.argmax(is_nan[..., ::-1], axis=-1)
    largest = np.where(is_nan.any(-1), last_nan, largest)
    return flat[np.arange(len(flat)), largest]


def _unpooled(axes: int) -> Callable[..., Any]:
    def unpool(
        input: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
    ) -> Any:  # fmt: skip
        kernel = several(kernel_size, axes)
        steps, ends = several(kernel_size if stride is None else stride, axes), several(padding, axes)
        rows = zip(input.shape[-axes:], kernel, steps, ends, strict=True)
        usual = [(n - 1) * step + k - 2 * end for n, k, step, end in rows]
        size = usual if output_size is None else _chosen(output_size, usual, steps)
        flat = indices.flatten(-axes)
        bad = flat._a[(flat._a < 0) | (flat._a >= math.prod(size))]
        raise_if(bad.size, "index to unpool", *bad[-1:], *([1, *size][-2:]))
        empty = zeros(*input.shape[:-axes], math.prod(size), dtype=input.dtype)
        result = empty.scatter(-1, flat, input.flatten(-axes)).unflatten(-1, size)
        return called(result, "SqueezeBackward1" if axes == 1 else "MaxUnpool2DBackward0")

    return unpool


def _chosen(requested: Sequence[int], usual: Sequence[int], steps: Sequence[int]) -> list[int]:
    """Return the size that a script chooses among those that pooling makes as small."""
    size = list(requested)[-len(usual) :] if len(requested) == len(usual) + 2 else list(requested)
    if len(size) != len(usual):
        raise torch_error("count of unpooled sizes", len(usual), len(usual) + 2, len(size))
    for axis, (n, middle, step) in enumerate(zip(size, usual, steps, strict=True)):
        wrong = not middle - step < n < middle + step
        raise_if(wrong, "unpooled size", requested, axis, middle - step, middle + step)
    return size


max_unpool1d, max_unpool2d = (partial(calling, name=f"max_unpool{n}d")(_unpooled(n)) for n in (1, 2))
