"""Sums, means, norms and extremes: what makes fewer numbers of many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.graph import construct
from gradcli.graph.construct import Axes
from gradcli.graph.node import Node, cast, compare, const, elementwise
from gradcli.pytorch import dtypes
from gradcli.pytorch.calls import called, exact, is_boolean, of_scalar, pointwise
from gradcli.pytorch.cuts import note_lost
from gradcli.pytorch.messages import refusal, warn
from gradcli.pytorch.missing import MissingError
from gradcli.pytorch.operations.conversion import real, to
from gradcli.pytorch.record import Recorder, apply
from gradcli.pytorch.registry import both, found, return_type
from gradcli.pytorch.tensor import Tensor, axis_of, different_axes, new, of_array
from gradcli.vocabulary.register import kept


def axes_of(dim: Any, rank: int) -> tuple[int, ...]:
    """Return the axes that a reduction goes over: all of them for none."""
    if dim is None or dim in ((), []):
        return tuple(range(rank))
    axes = different_axes(dim if isinstance(dim, tuple | list) else (dim,), rank)
    return tuple(sorted(axes)) if rank else ()


def _over(op: str, x: Tensor, axes: Axes, keepdim: bool, reduce: Callable[[Node], Node], **more: Any) -> Tensor:
    """Return a reduction over axes, which stay as axes of one element where that is wanted."""
    settings = (axes, keepdim, *more.get("settings", ()))
    return apply(op, lambda n: kept(reduce(n), n, axes, keepdim), (x,), settings, more.get("name"))


def _reduced(name: str) -> Callable[..., Tensor]:
    def made(
        input: Tensor,
        dim: Any = ...,  # not given, which has another name than None
        keepdim: bool = False,
        *,
        dtype: Any = None,
        axis: Any = None,
        keepdims: bool = False,
    ) -> Tensor:
        dim, keepdim = dim if axis is None else axis, keepdim or keepdims
        if isinstance(dim, dtypes.dtype):
            dim, dtype = ..., dim
        x = to(input, dtype)
        if name == "mean" and x._a.dtype.kind != "f":
            raise refusal("mean of whole numbers", x.dtype.word)
        axes = axes_of(None if dim is ... else dim, x.dim())
        grad = f"{name.capitalize()}Backward{int(dim is not ...)}"
        return _over(name, x, axes, keepdim, lambda n: construct.reduce(name, n, axes), name=grad)

    return both(name)(made)


for _name in ("sum", "mean", "prod"):
    _reduced(_name)


def _spread(name: str) -> Callable[..., Tensor]:
    def made(
        input: Tensor, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: int | None = None
    ) -> Tensor:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        if input._a.dtype.kind != "f":
            raise RuntimeError("std and var only support floating point and complex dtypes")
        axes = axes_of(dim, input.dim())
        less = correction if correction is not None else int(unbiased)
        if int(np.prod([input.shape[a] for a in axes])) <= less or not input.numel():
            warn("degrees of freedom", name)
        return _over(name, input, axes, keepdim, lambda n: construct.spreadness(name, n, axes, less), settings=(less,))

    grad = f"{name.capitalize()}MeanBackward0"
    both(f"{name}_mean")(lambda input, dim=None, **kw: called((made(input, dim, **kw), _mean(input, dim, kw)), grad))
    return both(name)(made)


def _mean(input: Any, dim: Any, settings: dict[str, Any]) -> Any:
    return input.mean(dim, settings.get("keepdim", False))


_spread("std")
_spread("var")


@both("norm")
def norm(input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    x = to(input, dtype)
    if x._a.dtype.kind != "f":
        word = x.dtype.word
        raise RuntimeError(f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {word}")
    if p == "nuc":
        raise MissingError("Tensor.norm(p='nuc')")
    p = 2 if p in ("fro", None) else p
    axes = axes_of(dim, x.dim())
    return _over("norm", x, axes, keepdim, lambda n: _norm(n, p, axes), settings=(p,))


def _norm(n: Node, p: float, axes: tuple[int, ...]) -> Node:
    if p == 2:
        return construct.reduce("norm", n, axes)
    size = elementwise("abs", n)
    if p in (float("inf"), float("-inf")):
        return construct.extremum("max" if p > 0 else "min", size, axes, "even")
    if p == 1:
        return construct.reduce("sum", size, axes)
    if p == 0:
        return construct.reduce("sum", cast(compare("ne", n, const(0)), n.dtype), axes)
    power = const(exact(p))
    return construct.reduce("sum", size**power, axes) ** (1 / power)


def _any_all(name: str) -> None:
    def made(input: Tensor, dim: Any = None, keepdim: bool = False, *, axis: Any = None) -> Tensor:
        axes = axes_of(dim if axis is None else axis, input.dim())
        return new(np.asarray(getattr(np, name)(input._a != 0, axis=axes, keepdims=keepdim)))

    both(name)(made)


_any_all("any")
_any_all("all")


# Extremes


def _refuse_empty(name: str, input: Tensor, dim: Any, kind: type[Exception], more: str = "") -> None:
    if input.numel():
        return
    if dim is None:
        words = f"{name}(): Expected reduction dim to be specified for input.numel() == 0."
        raise kind(words + more)
    if input.dim() and not input.shape[axis_of(dim, input.dim())]:
        at = axis_of(dim, input.dim()) if name.startswith("arg") else dim
        raise IndexError(f"{name}(): Expected reduction dim {at} to have non-zero size.")


_SPECIFY = " Specify the reduction dim with the 'dim' argument."


def _extreme(name: str, pairwise: str) -> None:
    kind = return_type(name)

    def made(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None, axis: Any = None) -> Any:
        dim = axis if dim is None else dim
        other = dim if isinstance(dim, Tensor) else other
        if other is not None:
            return pointwise(pairwise, input, other)
        _refuse_empty(name, input, dim, RuntimeError, _SPECIFY)
        if dim is None:
            return _of_all(name, input)
        values = _along(name, input, dim, keepdim, 0)
        places = _places(f"arg{name}", input, axis_of(dim, input.dim()), keepdim)
        return found(kind, values, places)

    both(name)(made)


def _of_all(name: str, x: Tensor, grad: str | None = None) -> Tensor:
    """Return an extreme of all elements."""
    return apply(name, lambda n: construct.extremum(name, n, axes_of(None, len(n.shape)), "even"), (x,), (), grad)


def _largest(name: str, n: Node, axes: tuple[int, ...], ties: str) -> Node:
    """Return an extreme; of no elements none."""
    return construct.extremum(name, n, axes, ties) if n.size else cast(construct.reduce("sum", n, axes), n.dtype)


def _along(name: str, input: Tensor, dim: int, keepdim: bool, number: int) -> Tensor:
    """Return an extreme along an axis, the first of several."""
    at = axis_of(dim, input.dim())

    def build(n: Node) -> Node:
        return kept(_largest(name, n, (at,), "first"), n, (at,), keepdim)

    make = build if input.dim() else of_scalar(build)
    return apply(f"{name}_dim", make, (input,), (at, keepdim), f"{name.capitalize()}Backward{number}")


def _places(name: str, input: Tensor, at: int, keepdim: bool) -> Any:
    own = input._a[..., 0]
    return getattr(np, name)(own, axis=at, keepdims=keepdim) if own.ndim else np.zeros((), np.int64)


def _of_axes(name: str) -> None:
    def made(input: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
        _refuse_empty(name, input, None if dim in ((), [], None) else dim, RuntimeError, _SPECIFY)
        axes = axes_of(dim, input.dim())
        return _over(name, input, axes, keepdim, lambda n: _largest(name[1:], n, axes, "factors"))

    both(name)(made)


_of_axes("amax")
_of_axes("amin")
_extreme("max", "maximum")
_extreme("min", "minimum")


_MEDIAN = return_type("median")


@both("median")
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    if is_boolean(input):
        raise NotImplementedError("\"median_cpu\" not implemented for 'Bool'")
    if dim is None:
        if not input.numel():
            least = np.nan if input._a.dtype.kind == "f" else np.iinfo(input._a.dtype).min
            nothing = of_array(np.asarray(least, input._a.dtype))
            return called(input.sum() * 0 + nothing, "MedianBackward0")  # type: ignore[attr-defined]
        return _of_all("median", input, "MedianBackward0")
    _refuse_empty("median", input, dim, IndexError)
    values = _along("median", input, dim, keepdim, 1)
    at = axis_of(dim, input.dim())
    if not input.dim():
        return found(_MEDIAN, values, np.zeros((), np.int64))
    order = np.argsort(input._a[..., 0], axis=at, kind="stable")
    places = np.take(order, (input.shape[at] - 1) // 2, axis=at)
    return found(_MEDIAN, values, np.expand_dims(places, at) if keepdim else places)


def _extreme_place(name: str) -> None:
    def made(input: Tensor, dim: int | None = None, keepdim: bool = False, *, axis: int | None = None) -> Tensor:
        dim = axis if dim is None else dim
        if is_boolean(input):
            raise RuntimeError(f"{name}(): does not support bool input")
        _refuse_empty(name, input, dim, IndexError)
        whole = np.asarray(getattr(np, name)(input._a)) if dim is None else None
        at = axis_of(dim or 0, input.dim())
        places = of_array(np.asarray(_places(name, input, at, keepdim) if whole is None else whole, np.int64))
        if Recorder.explains:
            note_lost(places, (input,), name)
        return places

    both(name)(made)


_extreme_place("argmax")
_extreme_place("argmin")


@both("logsumexp")
def logsumexp(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    if dim is None:
        raise TypeError('logsumexp() missing 1 required positional arguments: "dim"')
    axes = axes_of(dim, input.dim())

    def reduced(n: Node) -> Node:
        return (
            construct.reduce("logsumexp", n, axes) if n.size else elementwise("log", construct.reduce("sum", n, axes))
        )

    return _over("logsumexp", real(input), axes, keepdim, reduced)
