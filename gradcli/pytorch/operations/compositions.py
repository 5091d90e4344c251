"""What PyTorch itself composes of other operations: a line a function, each a function of `torch` and a method."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations, product
from typing import Any

import numpy as np

from gradcli.graph import construct
from gradcli.graph.node import Node
from gradcli.graph.places import Places, put
from gradcli.pytorch import dtypes, linalg
from gradcli.pytorch.calls import called, named
from gradcli.pytorch.dtypes import Size, result_dtype
from gradcli.pytorch.operations.joining import cat, stack
from gradcli.pytorch.operations.operators import where
from gradcli.pytorch.operations.views import shape_of
from gradcli.pytorch.recipes import common_shape
from gradcli.pytorch.record import apply
from gradcli.pytorch.refusals import check_square
from gradcli.pytorch.registry import TORCH, both, function, return_type
from gradcli.pytorch.tensor import Tensor, axis_of, different_axes, of_array

_AMINMAX, _SLOGDET = return_type("aminmax", "min", "max"), return_type("slogdet", "sign", "logabsdet")

BOTH: dict[str, Callable[..., Any]] = {
    # What numbers are
    "isnan": lambda input: input.ne(input),
    "isinf": lambda input: _checked(input, np.isinf),
    "isfinite": lambda input: _checked(input, np.isfinite),
    "isposinf": lambda input: _checked(input, np.isposinf),
    "isneginf": lambda input: _checked(input, np.isneginf),
    "isreal": lambda input: _checked(input, np.isreal),
    "signbit": lambda input: _checked(input, np.signbit),
    "is_nonzero": bool,
    "is_complex": lambda input: False,
    "is_floating_point": lambda input: input.dtype.is_floating_point,
    "is_signed": lambda input: input.dtype.is_signed,
    "is_same_size": lambda input, other: input.shape == other.shape,
    "equal": lambda input, other: bool(input._a.shape == other._a.shape and (input._a == other._a).all()),
    "allclose": lambda input, other, rtol=1e-05, atol=1e-08, equal_nan=False: bool(
        _close(input, other, rtol, atol, equal_nan).all()
    ),
    "isclose": lambda input, other, rtol=1e-05, atol=1e-08, equal_nan=False: of_array(
        _close(input, other, rtol, atol, equal_nan)[..., 0]
    ),
    "count_nonzero": lambda input, dim=None: input.ne(0).sum(dim),
    # Elements
    "square": lambda input: input.pow(2),
    "float_power": lambda input, exponent: input.double().pow(exponent),
    "positive": lambda input: input,
    "conj": lambda input: input,
    "resolve_conj": lambda input: input,
    "dist": lambda input, other, p=2: (input - other).norm(p),
    "nansum": lambda input, dim=None, keepdim=False: where(input.isnan(), 0, input).sum(dim, keepdim),
    "nanmean": lambda input, dim=None, keepdim=False: (
        input.nansum(dim, keepdim) / input.isnan().logical_not().sum(dim, keepdim)
    ),
    "aminmax": lambda input, dim=None, keepdim=False: _AMINMAX(input.amin(dim, keepdim), input.amax(dim, keepdim)),
    "diff": lambda input, n=1, dim=-1: input if not n else _differences(input, dim).diff(n - 1, dim),
    "logcumsumexp": lambda input, dim: input.exp().cumsum(dim).log(),
    "quantile": lambda input, q, dim=None, keepdim=False: _quantile(input, q, dim, keepdim),
    # Axes
    "flip": lambda input, *dims: _flipped(input, shape_of(dims)),
    "fliplr": lambda input: input.flip(1),
    "flipud": lambda input: input.flip(0),
    "rot90": lambda input, k=1, dims=(0, 1): _turned(input, k % 4, dims),
    "adjoint": lambda input: input.mT,
    "diag": lambda input, diagonal=0: _diag(input, diagonal),
    "diag_embed": lambda input, offset=0: _embedded(input, offset),
    "diagflat": lambda input, offset=0: _embedded(input.reshape(-1), offset),
    "roll": lambda input, shifts, dims=None: _rolled(input, shifts, dims),
    "trace": lambda input: _trace(input),
    "tril": lambda input, diagonal=0: _triangle("tril", input, diagonal),
    "triu": lambda input, diagonal=0: _triangle("triu", input, diagonal),
    # Products
    "inner": lambda input, other: (
        input * other if 0 in (input.dim(), other.dim()) else TORCH["tensordot"](input, other, ([-1], [-1]))
    ),
    "addmv": lambda input, mat, vec, *, beta=1, alpha=1: beta * input + alpha * mat.mv(vec),
    "addr": lambda input, vec1, vec2, *, beta=1, alpha=1: beta * input + alpha * vec1.outer(vec2),
    "baddbmm": lambda input, batch1, batch2, *, beta=1, alpha=1: beta * input + alpha * batch1.bmm(batch2),
    "addbmm": lambda input, batch1, batch2, *, beta=1, alpha=1: beta * input + alpha * batch1.bmm(batch2).sum(0),
    "matrix_power": lambda input, n: _power(input, n),
    "det": lambda input: linalg.det(input),
    "inverse": lambda input: linalg.inv(input),
    "logdet": lambda input: _squared("logdet", input).det().log(),
    "slogdet": lambda input: _SLOGDET(_squared("linalg.slogdet", input).det().sign(), input.det().abs().log()),
    "cov": lambda input, correction=1: _covariance(input, correction),
    "corrcoef": lambda input: _correlation(_covariance(input, 1)),
}
TORCH_ONLY: dict[str, Callable[..., Any]] = {
    "real": lambda input: input,
    "numel": lambda input: input.numel(),
    "is_tensor": lambda obj: isinstance(obj, Tensor),
    "block_diag": lambda *tensors: _blocks(tensors),
    "broadcast_shapes": lambda *shapes: Size(np.broadcast_shapes(*shapes)),
    "can_cast": lambda from_, to: dtypes.KINDS[from_.name] <= dtypes.KINDS[to.name],
    "promote_types": lambda a, b: result_dtype([of_array(np.zeros(1, d.numpy)) for d in (a, b)]),
    "result_type": lambda tensor1, tensor2: result_dtype((tensor1, tensor2)),
    "cartesian_prod": lambda *tensors: stack([stack(row) for row in product(*tensors)]),
    "combinations": lambda input, r=2: stack([stack(row) for row in combinations(input, r)]),
    "cdist": lambda x1, x2, p=2.0: (x1.unsqueeze(-2) - x2.unsqueeze(-3)).norm(p, -1),
    "tensordot": lambda a, b, dims=2: _tensordot(a, b, dims),
    "trapezoid": lambda y, x=None, *, dx=1, dim=-1: _trapezoid(y, x, dx, dim),
    "tril_indices": lambda row, col, offset=0: of_array(np.stack(np.tril_indices(row, offset, col))),
    "triu_indices": lambda row, col, offset=0: of_array(np.stack(np.triu_indices(row, offset, col))),
    "unravel_index": lambda indices, shape: tuple(map(of_array, np.unravel_index(indices._a[..., 0], shape))),
    "vander": lambda x, N=None, increasing=False: _vander(x, len(x) if N is None else N, increasing),
    "iinfo": dtypes.iinfo,
    "finfo": dtypes.finfo,
    "fill": lambda input, value: TORCH["full_like"](input, value),
}
TORCH_ONLY["trapz"] = TORCH_ONLY["trapezoid"]
# What PyTorch computes in one step has a name of its own.
_STEPS = {
    name: f"{name.capitalize()}Backward0" for name in ("addmv", "addr", "baddbmm", "cdist", "dist", "nansum", "rot90")
}
_STEPS |= {"aminmax": "AminmaxBackward0", "block_diag": "BlockDiagBackward0", "cov": "SqueezeBackward0"}
_STEPS |= {"logcumsumexp": "LogcumsumexpBackward0", "trapezoid": "MulBackward1", "quantile": "SqueezeBackward4"}
_STEPS |= {"logdet": "WhereBackward0", "slogdet": "LinalgSlogdetBackward0", "addbmm": "AddbmmBackward0"}


def _step(name: str, made: Callable[..., Any]) -> Callable[..., Any]:
    if name not in _STEPS:
        return made
    return lambda *args, **kwargs: called(made(*args, **kwargs), _STEPS[name])


for _name, _made in BOTH.items():
    both(_name)(_step(_name, _made))
for _name, _made in TORCH_ONLY.items():
    function(_name)(_step(_name, _made))


def _checked(x: Tensor, test: Callable[..., Any]) -> Tensor:
    return of_array(test(x._a[..., 0]))


def _close(a: Tensor, b: Tensor, *settings: Any) -> Any:
    if a._a.dtype != b._a.dtype:
        raise RuntimeError(f"{a.dtype.word} did not match {b.dtype.word}")
    common_shape((a.shape, b.shape))
    with np.errstate(all="ignore"):
        return np.isclose(*(x[..., 0] for x in _aligned(a, b)), *settings)[..., None]


def _aligned(a: Tensor, b: Tensor) -> list[Any]:
    rank = max(a.dim(), b.dim())
    return [x._a.reshape(*(1,) * (rank - x.dim()), *x._a.shape) for x in (a, b)]


def _differences(x: Any, dim: int) -> Any:
    n = x.shape[dim]
    return x.narrow(dim, 1, n - 1) - x.narrow(dim, 0, n - 1)


def _quantile(x: Any, q: Any, dim: int | None, keepdim: bool) -> Any:
    own = x.reshape(-1) if dim is None else x
    at = axis_of(-1 if dim is None else dim, own.dim())
    if isinstance(q, Tensor) and q.dim():
        return stack([_quantile(x, v, dim, keepdim) for v in q.tolist()])
    place = float(q) * (own.shape[at] - 1)
    values = own.sort(at)[0]
    low, high = values.select(at, math.floor(place)), values.select(at, math.ceil(place))
    found = low.lerp(high, place - math.floor(place))
    return found.unsqueeze(at) if keepdim else found


def _flipped(x: Any, dims: Any) -> Any:
    return named("flip", x, different_axes(dims, x.dim()))


def _turned(x: Any, times: int, dims: Any) -> Any:
    a, b = dims
    if times == 2:
        return x.flip(a, b)
    return x if not times else x.transpose(a, b).flip(a if times == 1 else b)


def _rolled(x: Any, shifts: Any, dims: Any) -> Any:
    if not x.dim() and dims is not None:
        raise IndexError(f"Dimension specified as {dims} but tensor has no dimensions")
    given = (x, shifts) if dims is None else (x, shifts, dims)
    return named("roll", *given) if x.numel() else called(x.clone(), "RollBackward0")


def _triangle(name: str, x: Any, diagonal: int) -> Any:
    if x.dim() < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
    return named(name, x, diagonal)


def _trace(x: Any) -> Any:
    if x.dim() != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {x.dim()}")
    own = x if x.dtype.is_floating_point else x.long()
    return named("trace", own)


def _diag(x: Any, offset: int) -> Any:
    if x.dim() not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {x.dim()}D")
    return x.diagonal(offset, name="DiagonalBackward0_copy") if x.dim() == 2 else _embedded(x, offset)


def _embedded(x: Any, offset: int) -> Any:
    size = x.shape[-1] + abs(offset)
    rows = np.arange(x.shape[-1]) + max(-offset, 0)
    places = Places.of(rows * size + rows + offset)

    def build(n: Node) -> Node:
        return construct.reshape(put(n, len(n.shape) - 1, places, size * size), (*n.shape[:-1], size, size))

    return apply("diag_embed", build, (x,), offset)


def _squared(name: str, x: Any) -> Any:
    check_square(name, x)
    return x


def _power(x: Any, n: int) -> Any:
    if n < 0:
        return _power(x.inverse(), -n)
    found = None
    for bit in f"{n:b}":
        found = found if found is None else found @ found
        if bit == "1":
            found = x if found is None else found @ x
    return TORCH["eye"](x.shape[-1], dtype=x.dtype) if found is None else found


def _covariance(x: Any, correction: int) -> Any:
    own = x - x.mean(-1, keepdim=True)
    products = own @ own.t() if x.dim() == 2 else own @ own
    return products / (x.shape[-1] - correction)


def _correlation(c: Any) -> Any:
    spread = c.diagonal().sqrt()
    return (c / spread[:, None] / spread[None, :]).clamp(-1, 1)


def _blocks(tensors: Any) -> Any:
    parts = [p if p.dim() == 2 else p.reshape(1, -1) for p in tensors]
    width, rows, before = sum(p.shape[1] for p in parts), [], 0
    for p in parts:
        sides = [TORCH["zeros"](p.shape[0], n, dtype=p.dtype) for n in (before, width - before - p.shape[1])]
        rows.append(cat([sides[0], p, sides[1]], 1))
        before += p.shape[1]
    return cat(rows)


def _tensordot(a: Any, b: Any, dims: Any) -> Any:
    first, second = dims if not isinstance(dims, int) else (range(a.dim() - dims, a.dim()), range(dims))
    gone = [axis_of(d, a.dim()) for d in first], [axis_of(d, b.dim()) for d in second]
    left = [i for i in range(a.dim()) if i not in gone[0]]
    right = [i for i in range(b.dim()) if i not in gone[1]]
    size = math.prod(a.shape[i] for i in gone[0])
    rows = a.permute(*left, *gone[0]).reshape(-1, size)
    product_ = rows.mm(b.permute(*gone[1], *right).reshape(size, -1))
    return product_.view(*(a.shape[i] for i in left), *(b.shape[i] for i in right))


def _trapezoid(y: Any, x: Any, dx: float, dim: int) -> Any:
    n = y.shape[dim]
    sums = y.narrow(dim, 0, n - 1) + y.narrow(dim, 1, n - 1)
    if x is not None:
        return (_differences(x, -1) * sums).sum(dim) / 2
    return sums.sum(dim) * (dx / 2)


def _vander(x: Any, n: int, increasing: bool) -> Any:
    powers = stack([x**k for k in range(n)], 1)
    return powers if increasing else powers.flip(1)
