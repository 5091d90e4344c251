"""Quantiles and modes, running extremes, histograms, and indices in sorted numbers: compositions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.pytorch.calls import called
from gradcli.pytorch.messages import raise_if
from gradcli.pytorch.names import TORCH, function, method, return_type, with_indices
from gradcli.pytorch.tensor import Tensor, axis_of, of_array


@method("quantile")
def quantile(
    input: Any, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Any:  # fmt: skip
    """Return the elements at shares of the order along an axis, with those between two elements interpolated."""
    x, at = (input.reshape(-1), 0) if dim is None else (input, axis_of(dim, input.dim()))
    levels = q if isinstance(q, Tensor) else TORCH["tensor"](q, dtype=x.dtype)
    wrong = not ((levels._a >= 0) & (levels._a <= 1)).all()
    raise_if(wrong and levels is q, "levels of a quantile")
    raise_if(wrong, "level of a quantile", q)
    ordered = x.movedim(at, -1).sort(-1).values
    ranks = levels.reshape(-1) * (ordered.shape[-1] - 1)  # type: ignore[attr-defined]
    below, above = ordered[..., ranks.floor().long()], ordered[..., ranks.ceil().long()]
    shares = {"linear": ranks.frac(), "lower": 0 * ranks, "higher": ranks.ceil() - ranks.floor()}
    shares |= {"nearest": ranks.round() - ranks.floor(), "midpoint": 0.5 * shares["higher"]}
    result = below.lerp(above, shares[interpolation].expand(below.shape))
    result = TORCH["where"](x.isnan().any(at).unsqueeze(-1), float("nan"), result).movedim(-1, 0)
    if keepdim:
        sizes = [1 if dim is None or i == at else n for i, n in enumerate(input.shape)]
        result = result.reshape(len(result), *sizes)
    return called(result if levels.dim() else result[0], "SqueezeBackward4")


@method("nanmean")
def nanmean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Return the mean of the elements that are numbers."""
    sums = input.nansum(dim, keepdim, dtype=dtype)
    return called(sums / input.isnan().logical_not().sum(dim, keepdim), "DivBackward0")


@method("nanmedian")
def nanmedian(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the median of the elements that are numbers, of all or along an axis: the lower of two."""
    if dim is None:
        numbers = input[input.isnan().logical_not()]
        return called(numbers.median() if numbers.numel() else input.sum(), "NanmedianBackward0")
    at = axis_of(dim, input.dim())
    rows = np.atleast_1d(input._a[..., 0])
    middle = np.maximum(np.sum(~np.isnan(rows), axis=at, keepdims=True) - 1, 0) // 2
    indices = np.take_along_axis(np.argsort(rows, axis=at, kind="stable"), middle, at)
    result = _at_indices(_NANMEDIAN, input, indices if input.dim() else indices[0], at, keepdim)
    return called(result, "NanmedianBackward1")


@method("mode")
def mode(input: Any, dim: int = -1, keepdim: bool = False) -> Any:
    """Return the most frequent element along an axis, the smallest of several, and the index of its last occurrence."""
    at = axis_of(dim, input.dim())
    rows = np.moveaxis(np.atleast_1d(input._a[..., 0]), at, -1)
    indices = np.apply_along_axis(_last_of_most, -1, rows)
    return _at_indices(_MODE, input, np.expand_dims(indices, at) if input.dim() else indices, at, keepdim)


def _last_of_most(row: Any) -> int:
    values, counts = np.unique(row, return_counts=True)
    return int(np.flatnonzero(row == values[counts.argmax()])[-1])


def _at_indices(kind: Any, input: Any, indices: Any, at: int, keepdim: bool) -> Any:
    """Return the elements at indices along an axis, with these; the axis is left out unless it is kept."""
    index = of_array(np.asarray(indices, np.int64))
    values = input.gather(at, index) if input.dim() else input[...]
    if input.dim() and not keepdim:
        values, index = values.squeeze(at), index.squeeze(at)  # type: ignore[attr-defined]
    return with_indices(kind, called(values, f"{kind.__name__.capitalize()}Backward0"), index._a[..., 0])


def _running(name: str) -> Callable[..., Any]:
    """Return the extremes up to each element along an axis, with the indices of their last occurrences."""
    accumulate = getattr(np, f"{name[3:]}imum").accumulate
    kind = return_type(name)

    def function(input: Any, dim: int) -> Any:
        at, array = axis_of(dim, input.dim()), input._a[..., 0]
        if not input.dim():
            return _at_indices(kind, input, 0, 0, True)
        is_extreme = (array == accumulate(array, axis=at)) | np.isnan(array)
        shape = [-1 if i == at else 1 for i in range(array.ndim)]
        indices = np.where(is_extreme, np.arange(array.shape[at]).reshape(shape), 0)
        return _at_indices(kind, input, np.maximum.accumulate(indices, axis=at), at, True)

    return function


_MODE, _NANMEDIAN = return_type("mode"), return_type("nanmedian")
for _name in ("cummax", "cummin"):
    method(_name)(_running(_name))


@method("logcumsumexp")
def logcumsumexp(input: Any, dim: int) -> Any:
    """Return the logarithms of running sums of exponentials, from which the largest number is taken before."""
    largest = input.detach().amax(dim, True)
    return called((input - largest).exp().cumsum(dim).log() + largest, "LogcumsumexpBackward0")


method("msort")(lambda input: called(input.sort(0).values, "SortBackward0"))


@method("histc")
def histc(input: Any, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Return how many elements are in each of some intervals of one length; by default from the least to the most."""
    numbers = input._a.reshape(-1)
    low, high = (min, max) if min != max else (numbers.min(initial=np.inf), numbers.max(initial=-np.inf))
    low, high = (low - 1, high + 1) if low == high else (low, high)
    counts = np.histogram(numbers, bins, (low, high))[0] if numbers.size else np.zeros(bins)
    return of_array(counts.astype(input._a.dtype))


@function("isin")
def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    values, others = (x._a[..., 0] if isinstance(x, Tensor) else x for x in (elements, test_elements))
    return of_array(np.asarray(np.isin(values, others, invert=invert)))


@function("searchsorted")
def searchsorted(
    sorted_sequence: Any, input: Any, *, out_int32: bool = False, right: bool = False, side: str | None = None,
) -> Tensor:  # fmt: skip
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
def bucketize(input: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False) -> Tensor:
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


@method("unique_consecutive")
def unique_consecutive(
    input: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:  # fmt: skip
    """Return the first element of each run of equal ones."""
    rows = input._a.reshape(-1, 1) if dim is None else np.moveaxis(input._a[..., 0], dim, 0)
    flat = rows.reshape(len(rows), -1)
    is_first = np.ones(len(rows), bool)
    is_first[1:] = (flat[1:] != flat[:-1]).any(1)
    first = np.flatnonzero(is_first)
    values = input.reshape(-1)[of_array(first)] if dim is None else input.index_select(dim, of_array(first))
    parts = [called(values, "UniqueConsecutiveBackward0")]
    shape = input.shape if dim is None else (-1,)
    parts += [of_array((np.cumsum(is_first) - 1).reshape(shape))] if return_inverse else []
    parts += [of_array(np.diff(np.append(first, len(rows))))] if return_counts else []
    return parts[0] if len(parts) == 1 else tuple(parts)
