"""Sums, means, norms and extremes: what makes fewer numbers of many."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from gradcli.graph import construct
from gradcli.graph.construct import Axes
from gradcli.graph.node import Node, cast, compare, const, elementwise
from gradcli.pytorch.calls import check_numbers, number, of_scalar, pointwise, set_grad_fn_name
from gradcli.pytorch.cuts import note_lost
from gradcli.pytorch.functions import reduction_name
from gradcli.pytorch.messages import missing_if, raise_if, warn
from gradcli.pytorch.names import function, with_indices
from gradcli.pytorch.operations.conversion import real, to
from gradcli.pytorch.running import apply
from gradcli.pytorch.tensor import Tensor, axis_of, different_axes, new, of_array
from gradcli.vocabulary.register import kept


def axes_of(dim: Any, rank: int) -> tuple[int, ...]:
    """Return the axes that a reduction goes over: all of them where `dim` is None or empty."""
    if dim is None or dim in ((), [], ...):
        return tuple(range(rank))
    axes = different_axes(dim if isinstance(dim, tuple | list) else (dim,), rank)
    return tuple(sorted(axes)) if rank else ()


def _over(
    op: str,
    x: Tensor,
    axes: Axes,
    keepdim: bool,
    reduce: Callable[..., Node],
    settings: tuple[Any, ...] = (),
    numbers: Sequence[Any] = (),
    name: str | None = None,
) -> Tensor:
    """Return a reduction over axes, which stay as axes of one element where that is wanted."""
    settings = (axes, keepdim, *settings)
    return apply(op, lambda n, *m: kept(reduce(n, *m), n, axes, keepdim), (x,), settings, name, numbers)


def _node(name: str, n: Node, axes: Axes) -> Node:
    """Return a reduction: of no elements, an extreme has none, and the logarithm of their sum is that of 0."""
    if name in ("amax", "amin"):
        return _extremum(name[1:], n, axes, "factors")
    if name == "logsumexp" and not n.size:
        return elementwise("log", construct.reduce("sum", n, axes))
    return construct.reduce(name, n, axes)


@function("sum", "mean", "prod", "logsumexp", "amax", "amin")
def reduced(input: Tensor, dim: Any, keepdim: bool, dtype: Any, op: str, overload: str) -> Tensor:
    """Return a reduction; of all elements its step has another name than along an axis that is None."""
    x = real(input) if op == "logsumexp" else input if dtype is None else to(input, dtype)
    raise_if(op == "mean" and not x.is_floating_point(), "mean of integers", x.dtype.word)
    axes = axes_of(dim, x.dim())
    if op in ("amax", "amin"):
        _check_not_empty(op, input, None if dim in (None, (), []) or not axes else axes[0])
    grad_fn = reduction_name(op, bool(overload))
    return _over(op, x, axes, keepdim, lambda n: _node(op, n, axes), name=grad_fn)


@function("std", "var")
def spread(input: Tensor, dim: Any, unbiased: bool, keepdim: bool, correction: Any, op: str) -> Tensor:
    raise_if(not input.is_floating_point(), "variance of integers")
    axes = axes_of(dim, input.dim())
    less = correction if correction is not None else int(unbiased)
    if int(np.prod([input.shape[a] for a in axes])) <= less or not input.numel():
        warn("degrees of freedom", op)
    return _over(op, input, axes, keepdim, lambda n: construct.reduce(op, n, axes, less), settings=(less,))


@function("norm")
def norm(input: Tensor, p: Any, dim: Any, keepdim: bool, dtype: Any = None) -> Tensor:
    x = to(input, dtype)
    raise_if(not x.is_floating_point(), "integers in linalg", "linalg.vector_norm", x.dtype.word)
    missing_if(p == "nuc", "Tensor.norm(p='nuc')")
    p = 2 if p in ("fro", None) else p
    axes = axes_of(dim, x.dim())
    numbers = [] if p in _NORMS else [number(p, x.dtype)]
    known = "" if numbers else str(p)
    return _over("norm", x, axes, keepdim, lambda n, *m: _norm(n, p, axes, *m), settings=(known,), numbers=numbers)


_NORMS = frozenset((0, 1, 2, math.inf, -math.inf))


def _norm(n: Node, p: float, axes: tuple[int, ...], *power: Node) -> Node:
    if p == 2:
        return construct.reduce("norm", n, axes)
    size = elementwise("abs", n)
    if p in (float("inf"), float("-inf")):
        return construct.reduce("max" if p > 0 else "min", size, axes, "even")
    if p == 1:
        return construct.reduce("sum", size, axes)
    if p == 0:
        return construct.reduce("sum", cast(compare("ne", n, const(0)), n.dtype), axes)
    size = elementwise("where", compare("eq", n, const(0)), const(0), size)  # no gradient flows to what is 0
    return construct.reduce("sum", size ** power[0], axes) ** (1 / power[0])


@function("any", "all")
def some_or_all(input: Tensor, dim: Any, keepdim: bool, op: str) -> Tensor:
    axes = axes_of(dim, input.dim())
    result = np.asarray(getattr(np, op)(input._a != 0, axis=axes, keepdims=keepdim))
    return new(result.astype(np.uint8) if input._a.dtype == np.uint8 else result)


# Extremes


def _check_not_empty(name: str, input: Tensor, dim: int | None) -> None:
    if input.numel():
        return
    is_index = name.startswith("arg")
    raise_if(dim is None and is_index, "index of no elements", name)
    raise_if(dim is None, "extreme of nothing", name)
    assert dim is not None
    axis = axis_of(dim, input.dim())
    raise_if(input.dim() and not input.shape[axis], "extreme of no elements", name, axis if is_index else dim)


def _extremum(name: str, n: Node, axes: Axes, ties: str) -> Node:
    """Return an extreme; of no elements none."""
    return construct.reduce(name, n, axes, ties) if n.size else cast(construct.reduce("sum", n, axes), n.dtype)


def _indices(name: str, input: Tensor, axis: int, keepdim: bool) -> Any:
    """Return where along an axis the first extreme stands, or the median in order."""
    array = input._a[..., 0]
    if not array.ndim:
        return np.zeros((), np.int64)
    if name != "median":
        return getattr(np, f"arg{name}")(array, axis=axis, keepdims=keepdim)
    indices = np.take(np.argsort(array, axis=axis, kind="stable"), [(array.shape[axis] - 1) // 2], axis=axis)
    return indices if keepdim else np.squeeze(indices, axis)


@function("max", "min", "median")
def extreme(input: Tensor, dim: Any, keepdim: bool, other: Any, op: str) -> Any:
    """Return an extreme of all elements, along an axis, or of two tensors."""
    if other is not None:
        return pointwise(f"{op}imum", input, other)
    is_median = op == "median"
    if is_median:
        check_numbers("median", input.dtype)
    if is_median and dim is None and not input.numel():
        missing_if(not input.is_floating_point(), "torch.median(…) of an empty integer tensor")
        return set_grad_fn_name(input.sum().fill_(np.nan), "MedianBackward0")
    _check_not_empty(op, input, dim)
    names = [f"{op.capitalize()}Backward{number}" for number in (0, 1)]
    if dim is None:
        whole = partial(_extremum, op, axes=axes_of(None, input.dim()), ties="even")
        return apply(op, whole, (input,), (), names[not is_median])
    axis = axis_of(dim, input.dim())

    def along(n: Node) -> Node:
        return kept(_extremum(op, n, (axis,), "first"), n, (axis,), keepdim)

    make = along if input.dim() else of_scalar(along)
    values = apply(f"{op}_dim", make, (input,), (axis, keepdim), names[is_median])
    return with_indices(op, values, _indices(op, input, axis, keepdim))


@function("argmax", "argmin")
def extreme_index(input: Tensor, dim: Any, keepdim: bool, op: str) -> Tensor:
    raise_if(input._a.dtype == bool, "index among booleans", op)
    _check_not_empty(op, input, dim)
    axis = axis_of(dim or 0, input.dim())
    whole = dim is None or not input.dim()
    index = getattr(np, op)(input._a) if whole else _indices(op[3:], input, axis, keepdim)
    if whole and keepdim:
        index = np.reshape(index, (1,) * input.dim())
    indices = of_array(np.asarray(index, np.int64))
    note_lost(indices, (input,), op)
    return indices
