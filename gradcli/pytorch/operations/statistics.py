"""Quantiles and modes, running extremes, histograms, and indices in sorted numbers: compositions."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.pytorch.calls import call_function, set_grad_fn_name
from gradcli.pytorch.messages import raise_if
from gradcli.pytorch.names import TORCH, function, with_indices
from gradcli.pytorch.operations.selection import at_indices
from gradcli.pytorch.tensor import Tensor, axis_of, of_array


@function("quantile")
def quantile(input: Any, q: Any, dim: int | None, keepdim: bool, interpolation: str) -> Any:
    """Return the elements at shares of the order along an axis, with those between two elements interpolated."""
    ways = ("linear", "lower", "higher", "midpoint", "nearest")
    raise_if(interpolation not in ways, "interpolation of a quantile", interpolation)
    x, axis = (input.reshape(-1), 0) if dim is None else (input, axis_of(dim, input.dim()))
    levels = q if isinstance(q, Tensor) else TORCH["tensor"](q, dtype=x.dtype)
    raise_if(not ((levels._a >= 0) & (levels._a <= 1)).all(), "level of a quantile", q)
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


@function("nanmean")
def nanmean(input: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """Return the mean of the elements that are numbers."""
    sums = input.nansum(dim, keepdim, dtype=dtype)
    return set_grad_fn_name(sums / input.isnan().logical_not().sum(dim, keepdim), "DivBackward0")


@function("nanmedian")
def nanmedian(input: Any, dim: int | None, keepdim: bool) -> Any:
    """Return the median of the elements that are numbers, of all or along an axis: the lower of two."""
    if dim is None:
        numbers = input[input.isnan().logical_not()]
        return set_grad_fn_name(numbers.median() if numbers.numel() else input.sum(), "NanmedianBackward0")
    axis = axis_of(dim, input.dim())
    rows = np.atleast_1d(input._a[..., 0])
    middle = np.maximum(np.sum(~np.isnan(rows), axis=axis, keepdims=True) - 1, 0) // 2
    indices = np.take_along_axis(np.argsort(rows, axis=axis, kind="stable"), middle, axis)
    result = at_indices("nanmedian", input, indices if input.dim() else indices[0], axis, keepdim, "gather")
    return set_grad_fn_name(result, "NanmedianBackward1")


@function("mode")
def mode(input: Any, dim: int, keepdim: bool) -> Any:
    """Return the most frequent element along an axis, the smallest of several, and the index of its last occurrence."""
    axis = axis_of(dim, input.dim())
    rows = np.moveaxis(np.atleast_1d(input._a[..., 0]), axis, -1)
    indices = np.apply_along_axis(_last_of_most, -1, rows)
    indices = np.expand_dims(indices, axis) if input.dim() else indices
    return at_indices("mode", input, indices, axis, keepdim, "gather")


def _last_of_most(row: Any) -> int:
    values, counts = np.unique(row, return_counts=True)
    return int(np.flatnonzero(row == values[counts.argmax()])[-1])


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


@function("logcumsumexp")
def logcumsumexp(input: Any, dim: int) -> Any:
    """Return the logarithms of running sums of exponentials, from which the largest number is taken before."""
    largest = input.detach().amax(dim, True)
    return set_grad_fn_name((input - largest).exp().cumsum(dim).log() + largest, "LogcumsumexpBackward0")


function("msort")(lambda input: set_grad_fn_name(input.sort(0).values, "SortBackward0"))


@function("histc")
def histc(input: Any, bins: int, min: float, max: float) -> Tensor:
    """Return how many elements are in each of some intervals of one length; by default from the least to the most."""
    numbers = input._a.reshape(-1)
    low, high = (min, max) if min != max else (numbers.min(initial=np.inf), numbers.max(initial=-np.inf))
    low, high = (low - 1, high + 1) if low == high else (low, high)
    counts = np.histogram(numbers, bins, (low, high))[0] if numbers.size else np.zeros(bins)
    return of_array(counts.astype(input._a.dtype))


@function("isin")
def isin(
    elements: Any, test_elements: Any, element: Any, test_element: Any, assume_unique: bool, invert: bool
) -> Tensor:
    values = element if elements is None else elements._a[..., 0]
    others = test_element if test_elements is None else test_elements._a[..., 0]
    return of_array(np.asarray(np.isin(values, others, invert=invert)))


@function("searchsorted")
def searchsorted(sorted_sequence: Any, input: Any, out_int32: bool, right: bool, side: str | None) -> Tensor:
    """Return where numbers would be inserted in sorted ones so that these stay sorted, row by row."""
    rows = sorted_sequence._a[..., 0]
    numbers = input._a[..., 0] if isinstance(input, Tensor) else np.asarray(input)
    how: Any = "right" if right or side == "right" else "left"
    if rows.ndim == 1:
        result = np.searchsorted(rows, numbers, how)
    else:
        pairs = zip(rows.reshape(-1, rows.shape[-1]), numbers.reshape(-1, numbers.shape[-1]), strict=True)
        result = np.stack([np.searchsorted(*pair, how) for pair in pairs]).reshape(numbers.shape)
    return of_array(np.asarray(result, np.int32 if out_int32 else np.int64))


@function("bucketize")
def bucketize(input: Any, boundaries: Any, out_int32: bool, right: bool) -> Tensor:
    return searchsorted(boundaries, input, out_int32, right, None)


@function("unique_consecutive")
def unique_consecutive(input: Any, return_inverse: bool, return_counts: bool, dim: int | None) -> Any:
    """Return the first element of each run of equal ones."""
    rows = input._a.reshape(-1, 1) if dim is None else np.moveaxis(input._a[..., 0], dim, 0)
    flat = rows.reshape(len(rows), -1)
    is_first = np.ones(len(rows), bool)
    is_first[1:] = (flat[1:] != flat[:-1]).any(1)
    first = np.flatnonzero(is_first)
    values = input.reshape(-1)[of_array(first)] if dim is None else input.index_select(dim, of_array(first))
    parts = [set_grad_fn_name(values, "UniqueConsecutiveBackward0")]
    shape = input.shape if dim is None else (-1,)
    parts += [of_array((np.cumsum(is_first) - 1).reshape(shape))] if return_inverse else []
    parts += [of_array(np.diff(np.append(first, len(rows))))] if return_counts else []
    return parts[0] if len(parts) == 1 else tuple(parts)
