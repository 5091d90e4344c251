"""Products of matrices and vectors, extremes, and what puts elements in order."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from gradcli.graph import construct
from gradcli.graph.construct import axes_of
from gradcli.graph.einsum import einsum as einsum_node
from gradcli.graph.node import Node
from gradcli.graph.places import Places, take
from gradcli.pytorch.calls import pointwise
from gradcli.pytorch.dtypes import WORDS
from gradcli.pytorch.operators import both, function
from gradcli.pytorch.record import Recorder, apply, note_lost
from gradcli.pytorch.tensor import Tensor, axis_of, of_array
from gradcli.vocabulary.register import kept

__all__: list[str] = []


def _multiplied(a: Tensor, b: Tensor, name: str) -> Tensor:
    if a._a.dtype != b._a.dtype:
        first, second = (WORDS[x.dtype.name].lower() for x in (a, b))
        if name == "MmBackward0" or name == "MvBackward0" or name == "DotBackward0":
            words = {
                "MmBackward0": f"expected m1 and m2 to have the same dtype, but got: {first} != {second}",
                "MvBackward0": f"expected m1 and m2 to have the same dtype, but got: {first} != {second}",
                "DotBackward0": (
                    "dot : expected both vectors to have same dtype, but found "
                    f"{WORDS[a.dtype.name]} and {WORDS[b.dtype.name]}"
                ),
            }
            raise RuntimeError(words[name])
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {first} != {second}")
    return apply("matmul", construct.matmul, (a, b), (), name)


@both("mm")
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """Return the product of two matrices."""
    if input.dim() != 2:
        raise RuntimeError("self must be a matrix")
    if mat2.dim() != 2:
        raise RuntimeError("mat2 must be a matrix")
    _check_matrices(input, mat2)
    return _multiplied(input, mat2, "MmBackward0")


def _check_matrices(a: Tensor, b: Tensor) -> None:
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and {b.shape[0]}x{b.shape[1]})"
        )


@both("mv")
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """Return the product of a matrix and a vector."""
    if input.dim() != 2 or vec.dim() != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {vec.dim()}, {input.dim()}, {vec.dim()}")
    if input.shape[1] != vec.shape[0]:
        raise RuntimeError(
            f"size mismatch, got input ({input.shape[0]}), mat ({input.shape[0]}x{input.shape[1]}), vec "
            f"({vec.shape[0]})"
        )
    return _multiplied(input, vec, "MvBackward0")


@both("dot", "inner", "vdot")
def dot(input: Tensor, other: Tensor) -> Tensor:
    """Return the product of two vectors."""
    if input.dim() != 1 or other.dim() != 1:
        raise RuntimeError(f"1D tensors expected, but got {input.dim()}D and {other.dim()}D tensors")
    if input.shape != other.shape:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{input.shape[0]}] and src [{other.shape[0]}] to have the same "
            f"number of elements, but got {input.shape[0]} and {other.shape[0]} elements respectively"
        )
    return _multiplied(input, other, "DotBackward0")


@both("bmm")
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """Return the products of two stacks of matrices."""
    if input.shape[-1] != mat2.shape[-2]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{input.shape[0]}, "
            f"{input.shape[2]}] but got: "
            f"[{mat2.shape[0]}, {mat2.shape[1]}]."
        )
    return _multiplied(input, mat2, "BmmBackward0")


@both("matmul")
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """Return the product of vectors, matrices, or stacks of them."""
    ranks = (input.dim(), other.dim())
    if ranks == (1, 1):
        return dot(input, other)
    if ranks == (2, 1):
        return mv(input, other)
    if ranks == (2, 2):
        return mm(input, other)
    if 0 in ranks:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {ranks[0]}D and {ranks[1]}D")
    inner = other.shape[-2] if ranks[1] > 1 else other.shape[0]
    if input.shape[-1] != inner:
        rows = int(np.prod(input.shape[:-1]))
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({rows}x{input.shape[-1]} and {inner}x{other.shape[-1]})"
        )
    return _multiplied(input, other, "SqueezeBackward4" if ranks == (1, 2) else "UnsafeViewBackward0")


def _matmul_operator(self: Tensor, other: Any) -> Any:
    return matmul(self, other) if isinstance(other, Tensor) else NotImplemented


Tensor.__matmul__ = _matmul_operator


@both("addmm")
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor) -> Tensor:
    """Return `input + mat1 @ mat2`."""
    _check_matrices(mat1, mat2)
    if mat1._a.dtype != mat2._a.dtype:
        first, second = (WORDS[x.dtype.name].lower() for x in (mat1, mat2))
        raise RuntimeError(
            f"mat1 and mat2 must have the same dtype, but got {first.capitalize()} and {second.capitalize()}"
        )
    return apply("addmm", lambda b, x, w: construct.call("add", construct.matmul(x, w), b), (input, mat1, mat2))


@function("einsum")
def einsum(equation: str, *operands: Any) -> Tensor:
    """Return a sum of products, as Einstein wrote them."""
    parts = operands[0] if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands
    return apply("einsum", lambda *n: einsum_node(equation, *n), tuple(parts), equation)


# Extremes

_Max: dict[str, Any] = {
    name: namedtuple(name, ["values", "indices"]) for name in ("max", "min", "sort", "topk", "median", "cummax")
}


def _found(name: str, values: Tensor, places: Any) -> Any:
    return _Max[name](values, of_array(places.astype(np.int64)))


def _named_repr(self: Any) -> str:
    lines = ",\n".join(f"{field}={value!r}" for field, value in zip(self._fields, self, strict=True))
    return f"torch.return_types.{type(self).__name__}(\n{lines})"


for _class in _Max.values():
    _class.__repr__ = _named_repr


def _extreme(name: str, pairwise: str) -> None:
    def made(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None, axis: Any = None) -> Any:
        dim = axis if dim is None else dim
        other = dim if isinstance(dim, Tensor) else other
        if other is not None:
            return pointwise(pairwise, input, other)
        if dim is None:
            axes = axes_of(None, input.dim())
            return apply(name, lambda n: construct.extremum(name, n, axes, "even"), (input,), (), _grad(name, 1))
        if not input.dim():
            return _found(name, input.clone(), np.zeros((), int))  # type: ignore[attr-defined]
        at = axis_of(dim, input.dim())

        def build(n: Node) -> Node:
            return kept(construct.extremum(name, n, (at,), "first"), n, (at,), keepdim)

        values = apply(f"{name}_dim", build, (input,), (at, keepdim), _grad(name, 0))
        places = getattr(np, f"arg{name}")(input._a[..., 0], axis=at)
        return _found(name, values, np.expand_dims(places, at) if keepdim else places)

    made.__name__ = name
    both(name)(made)


def _grad(name: str, number: int) -> str:
    return f"{name.capitalize()}Backward{number}"


_extreme("max", "maximum")
_extreme("min", "minimum")


@both("median")
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the lower one of the elements in the middle, and along an axis where it stands."""
    if dim is None:
        axes = axes_of(None, input.dim())
        return apply(
            "median", lambda n: construct.extremum("median", n, axes, "even"), (input,), (), _grad("median", 0)
        )
    at = axis_of(dim, input.dim())

    def build(n: Node) -> Node:
        return kept(construct.extremum("median", n, (at,), "first"), n, (at,), keepdim)

    values = apply("median_dim", build, (input,), (at, keepdim), _grad("median", 1))
    order = np.argsort(input._a[..., 0], axis=at, kind="stable")
    places = np.take(order, (input.shape[at] - 1) // 2, axis=at)
    return _found("median", values, np.expand_dims(places, at) if keepdim else places)


def _extreme_place(name: str) -> None:
    def made(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
        own = input._a[..., 0]
        if not own.size:
            raise IndexError(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
                "reduction dim with the 'dim' argument."
            )
        find = getattr(np, name)
        found = find(own) if dim is None else find(own, axis=axis_of(dim, input.dim()), keepdims=keepdim)
        places = of_array(np.asarray(found, np.int64))
        if Recorder.explains:
            note_lost(places, (input,), name)
        return places

    made.__name__ = name
    both(name)(made)


_extreme_place("argmax")
_extreme_place("argmin")


def _order(input: Tensor, dim: int, descending: bool) -> Any:
    own = input._a[..., 0]
    if not own.ndim:
        return np.zeros((), np.int64), 0
    at = axis_of(dim, own.ndim)
    from gradcli.engine.sorting import places

    return places(at, descending, input._a)[..., 0], at


def _along(input: Tensor, order: Any, at: int, op: str, name: str) -> Tensor:
    """Return the elements at places along an axis."""
    where: list[Any] = list(np.indices(order.shape, sparse=True))
    where[at] = order
    flat = Places.of(np.ravel_multi_index(np.broadcast_arrays(*where), tuple(input.shape)))

    def build(n: Node) -> Node:
        whole = n if len(n.shape) == 1 else Node("reshape", (n,), (n.size,), ((n.size,),))
        return take(whole, 0, flat)

    return apply(op, build, (input,), flat, name)


@both("sort")
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """Return the elements in order along an axis, and where they stood."""
    order, at = _order(input, dim, descending)
    return _found("sort", _along(input, order, at, "sort", "SortBackward0"), order)


@both("argsort")
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """Return where the elements in order along an axis stand."""
    return of_array(np.asarray(_order(input, dim, descending)[0], np.int64))


@both("topk")
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """Return the largest elements along an axis, and where they stand."""
    order, at = _order(input, dim, largest)
    if not 0 <= k <= input.shape[at]:
        raise RuntimeError("selected index k out of range")
    order = np.take(order, range(k), axis=at)
    return _found("topk", _along(input, order, at, "topk", "TopkBackward0"), order)


@both("cummax")
def cummax(input: Tensor, dim: int) -> Any:
    """Return the largest elements so far along an axis, and where they stand."""
    at = axis_of(dim, input.dim())
    own = np.moveaxis(input._a[..., 0], at, 0)
    order = np.zeros(own.shape, np.int64)
    for i in range(1, len(own)):
        order[i] = np.where(own[i] >= np.take_along_axis(own, order[i - 1][None], 0)[0], i, order[i - 1])
    order = np.moveaxis(order, 0, at)
    return _found("cummax", _along(input, order, at, "topk", "CummaxBackward0"), order)


@both("histc")
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Return how many elements lie in each of so many parts of a range."""
    span = (min, max) if min != max else (float(input._a.min()), float(input._a.max()))
    return of_array(np.histogram(input._a, bins, span)[0].astype(input._a.dtype))
