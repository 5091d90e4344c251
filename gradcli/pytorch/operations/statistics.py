"""Quantiles and modes, and running extremes: compositions."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.pytorch.calls import call_function, set_grad_fn_name
from gradcli.pytorch.messages import raise_if
from gradcli.pytorch.names import TORCH, function, with_indices
from gradcli.pytorch.tensor import Tensor, axis_of, of_array


@function("quantile")
def quantile(
    input: Any, q: Any, dim: int | None, keepdim: bool, interpolation: str
) -> Any:  # fmt: skip
    """Return the elements at shares of the order along an axis, with those between two elements interpolated."""
    ways = ("linear", "lower", "higher", "midpoint", "nearest")
    raise_if(interpolation not in ways, "interpolation of a quantile", interpolation)
    x, axis = (input.reshape(-1), 0) if dim is None else (input, axis_of(dim, input.dim()))
    levels = q if isinstance(q, Tensor) else TORCH["tensor"](q, dtype=x.dtype)
    wrong = not ((levels._a >= 0) & (levels._a <= 1)).all()
    raise_if(wrong and levels is q, "levels of a quantile")
    raise_if(wrong, "level of a quantile", q)
    ordered = x.movedim(axis, -1).sort(-1).values
    ranks = levels.reshape(-1) * (ordered.shape[-1] - 1)  # type: ignore[attr-defined]
    below, above = ordered[..., ranks.floor().long()], ordered[..., ranks.ceil().long()]
    shares = {"linear": ranks.frac(), "lower": 0 * ranks, "higher": ranks.ceil() - ranks.floor()}
    shares |= {"nearest": ranks.round() - ranks.floor(), "midpoint": 0.5 * shares["higher"]}
    result = below.lerp(above, shares[interpolation].expand(below.shape))
    result = TORCH["where"](x.isnan().any(axis).unsqueeze(-1), float("nan"), result).movedim(-1, 0)
    if keepdim:
        sizes = [1 if dim is None or i == axis else n for i, n in enumerate(input.shape)]
        result = result.reshape(len(result), *sizes)
    return set_grad_fn_name(result if levels.dim() else result[0], "SqueezeBackward4")


@function("mode")
def mode(input: Any, dim: int, keepdim: bool) -> Any:
    """Return the most frequent element along an axis, the smallest of several, and the index of its last occurrence."""
    axis = axis_of(dim, input.dim())
    rows = np.moveaxis(np.atleast_1d(input._a[..., 0]), axis, -1)
    indices = np.apply_along_axis(_last_of_most, -1, rows)
    return _at_indices("mode", input, np.expand_dims(indices, axis) if input.dim() else indices, axis, keepdim)


def _last_of_most(row: Any) -> int:
    values, counts = np.unique(row, return_counts=True)
    return int(np.flatnonzero(row == values[counts.argmax()])[-1])


def _at_indices(op: str, input: Any, indices: Any, axis: int, keepdim: bool) -> Any:
    """Return the elements at the indices along an axis, and the indices; `keepdim` keeps the axis with size 1."""
    index = of_array(np.asarray(indices, np.int64))
    values = input.gather(axis, index) if input.dim() else input[...]
    if input.dim() and not keepdim:
        values, index = values.squeeze(axis), index.squeeze(axis)  # type: ignore[attr-defined]
    return with_indices(op, set_grad_fn_name(values, f"{op.capitalize()}Backward0"), index._a[..., 0])


@function("cummax", "cummin")
def running_extreme(input: Any, dim: int, op: str) -> Any:
    """Return the extremes up to each element along an axis, with the indices of their last occurrences."""
    values, axis = call_function(op, input, dim), axis_of(dim, input.dim())
    if not input.dim():
        return with_indices(op, values, 0)
    numbers = input._a[..., 0]
    is_extreme = (numbers == values._a[..., 0]) | (numbers != numbers)
    shape = [-1 if i == axis else 1 for i in range(numbers.ndim)]
    last = np.maximum.accumulate(np.where(is_extreme, np.arange(numbers.shape[axis]).reshape(shape), 0), axis=axis)
    return with_indices(op, values, last)
