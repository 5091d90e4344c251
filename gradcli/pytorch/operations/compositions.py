"""Functions that PyTorch composes of other operations: a line each, which is a function of `torch` and a method."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from string import ascii_letters
from typing import Any

import numpy as np

from gradcli.graph import construct
from gradcli.graph.construct import call
from gradcli.graph.index_arrays import IndexArray, scatter_add
from gradcli.graph.node import Node, cast, const, elementwise
from gradcli.pytorch import dtypes, linalg
from gradcli.pytorch.argument_checks import check_matrix
from gradcli.pytorch.calls import called, check_numbers, named
from gradcli.pytorch.dtypes import Size, result_dtype
from gradcli.pytorch.functions import fact, grad_name
from gradcli.pytorch.messages import raise_if, torch_error, warn_once
from gradcli.pytorch.names import TORCH, function, method, return_type
from gradcli.pytorch.operations.joining import cat
from gradcli.pytorch.operations.operators import where
from gradcli.pytorch.operations.products import einsum, weighted
from gradcli.pytorch.operations.views import diagonal_by
from gradcli.pytorch.recipes import common_shape
from gradcli.pytorch.record import apply
from gradcli.pytorch.tensor import Tensor, listed, of_array

_SVD = return_type("svd", "U", "S", "V")
_SLOGDET = return_type("slogdet", "sign", "logabsdet")
_AMINMAX = return_type("aminmax", "min", "max")


def _close(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    common_shape((input.shape, other.shape))
    with np.errstate(all="ignore"):
        return of_array(np.isclose(input._a[..., 0], other._a[..., 0], rtol, atol, equal_nan))


def _differences(input: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    if not n:
        return called(input.clone(), "torch::autograd::CopyBackwards")
    if prepend is not None or append is not None:
        input = cat([x for x in (prepend, input, append) if x is not None], dim)
    for size in range(input.shape[dim] - 1, input.shape[dim] - 1 - n, -1)[: input.shape[dim]]:
        a, b = input.narrow(dim, 1, size), input.narrow(dim, 0, size)
        input = a.ne(b) if input.dtype.name == "bool" else a - b
    return input


def _rolled(input: Any, shifts: Any, dims: Any = None) -> Tensor:
    dims = None if dims == () else dims
    raise_if(not input.dim() and dims is not None, "axes of a number to roll")
    counts = [len(p) if isinstance(p, tuple | list) else 1 for p in (shifts, dims)]
    raise_if(dims is not None and counts[0] != counts[1], "shifts of axes", *counts)
    return named("roll", input, shifts, dims)


def _cross(input: Any, other: Any, dim: int | None = None) -> Tensor:
    if dim is None:
        warn_once("cross without dim")
        dim = next((i for i, n in enumerate(input.shape) if n == 3), -1)
    return named("cross", input, other, dim)


def _trace(input: Any) -> Tensor:
    check_numbers("trace", input.dtype)
    return named("trace", input if input.dtype.is_floating_point else input.long())


def _diag(input: Any, diagonal: int = 0) -> Tensor:
    if input.dim() == 2:
        return diagonal_by("diag", input, diagonal, name="DiagonalBackward0_copy")
    return _embedded(input, diagonal)


def _embedded(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return matrices with the vectors along the last axis on a diagonal; `dim1` and `dim2` are their axes."""
    *stack, count = input.shape
    size = count + abs(offset)
    indices = IndexArray.of(np.flatnonzero(np.eye(size, k=offset)))
    axes = np.arange(len(stack) + 2)
    order = np.argsort([*np.delete(axes, [dim1, dim2]), *axes[[dim1, dim2]]])

    def build(n: Node) -> Node:
        whole = construct.reshape(scatter_add(n, len(stack), indices, size * size), (*stack, size, size))
        return construct.transpose(whole, tuple(map(int, order)))

    return apply("diag_embed", build, (input,), (offset, dim1, dim2))


def _indices(indices: Any, dtype: Any = dtypes.int64, device: Any = "cpu") -> Any:
    return of_array(np.stack(indices)).to(device).to(dtype)


def _power(input: Any, n: int) -> Any:
    if n < 0:
        return _power(input.inverse(), -n)
    if n < 2:
        return input if n else TORCH["eye"](len(input), dtype=input.dtype)
    half = _power(input, n // 2)
    return half @ half @ input if n % 2 else half @ half


def _erfinv(input: Tensor) -> Tensor:
    """Return the y with erf(y) = x.  Two steps of Newton's method have its first three derivatives."""
    x = input if input.is_floating_point() else input.to(dtypes.default_dtype())
    half = (x._a.astype(np.float64) + 1) / 2
    inside = (half > 0) & (half < 1)
    quantiles = [_NORMAL.inv_cdf(p) for p in half[inside].tolist()]
    y = np.where(np.abs(x._a) == 1, np.copysign(np.inf, x._a), np.nan)
    y[inside] = np.divide(quantiles, math.sqrt(2))

    def build(x: Node, y: Node, inside: Node) -> Node:
        first = new = elementwise("where", inside, y, const(0))
        for _ in range(2):
            slope = call("sqrt", const("pi")) / 2 * call("exp", new * new)
            new = new + (x - call("erf", new)) * cast(slope, x.dtype)
        return elementwise("where", inside, new - call("detach", new) + first, y)

    return apply("erfinv", build, (x, y.astype(x._a.dtype), inside), (), "ErfinvBackward0")


_NORMAL = NormalDist()


def _tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    first, second = dims if not isinstance(dims, int) else (range(-dims, 0), range(dims))
    left, right = list(ascii_letters[: a.dim()]), list(ascii_letters[26 : 26 + b.dim()])
    for i, j in zip(first, second, strict=True):
        raise_if(a.shape[i] != b.shape[j], "sizes of a tensordot", a.shape[i], i, b.shape[j], j)
        right[j] = left[i]
    kept = [c for c in left + right if (c in left) != (c in right)]
    return einsum(f"{''.join(left)},{''.join(right)}->{''.join(kept)}", a, b)


def _trapezoid(y: Any, x: Any = None, *, dx: Any = 1, dim: int = -1) -> Any:
    """Return integrals along an axis by the trapezoidal rule, at points x or at a distance."""
    size = y.shape[dim]
    left, right = y.narrow(dim, 0, max(size - 1, 0)), y.narrow(dim, min(1, size), max(size - 1, 0))
    if x is None:
        ends = y.narrow(dim, 0, 1) + y.narrow(dim, size - 1, 1) if size else y
        return called(dx * (y.sum(dim) - 0.5 * ends.sum(dim)), "MulBackward1")
    widths = x.diff() if x.dim() == 1 else x.diff(dim=dim)
    if x.dim() == 1:
        widths = widths.view([-1 if i == dim % y.dim() else 1 for i in range(y.dim())])
    return called(((left + right) * widths).sum(dim) / 2, "DivBackward1")


def _covariance(input: Any, *, correction: int = 1) -> Any:
    """Return the covariances of rows."""
    rows = input.reshape(-1, input.shape[-1]) if input.dim() else input.view(1, 1)
    rows = rows - rows.mean(1, keepdim=True)
    return called((rows @ rows.t() / (rows.shape[1] - correction)).squeeze(), "SqueezeBackward0")


def _correlation(input: Any) -> Any:
    """Return the correlations of rows."""
    covariance = _covariance(input)
    if not covariance.dim():
        return covariance / covariance
    deviations = covariance.diagonal().sqrt()
    return (covariance / deviations[:, None] / deviations).clip(-1, 1)


def _rotated(input: Any, k: int = 1, dims: Any = None) -> Any:
    """Return a tensor rotated k times by 90° from one axis towards another, by default from the first to the second."""
    a, b = dims or (0, 1)
    result = (input, input.flip(b).transpose(a, b), input.flip(a, b), input.flip(a).transpose(a, b))[k % 4]
    return called(result.clone() if result is input else result, "Rot90Backward0")


def _with_mean(name: str) -> Callable[..., Any]:
    step = f"{name.capitalize()}MeanBackward0"

    def function(input: Any, dim: Any = None, unbiased: bool = True, keepdim: bool = False, **more: Any) -> Any:
        spread = getattr(input, name)(dim, **({"unbiased": unbiased} | more), keepdim=keepdim)
        return called(spread, step), called(input.mean(dim, keepdim=keepdim), step)

    return function


def _taken_along(input: Any, indices: Any, dim: int | None = None) -> Any:
    """Return the elements at indices along an axis; the other axes are broadcast."""
    if dim is None:
        return input.reshape(-1).gather(0, indices.reshape(-1))
    sizes = list(
        common_shape([[1 if i == dim % x.dim() else n for i, n in enumerate(x.shape)] for x in (input, indices)])
    )
    shapes = [[*sizes[: dim % x.dim()], x.shape[dim], *sizes[dim % x.dim() + 1 :]] for x in (input, indices)]
    return input.expand(shapes[0]).gather(dim, indices.expand(shapes[1]))


def _svd(input: Any, some: bool = True, compute_uv: bool = True) -> Any:
    u, s, vh = linalg.svd(input, not some)
    return _SVD(u, s, vh.mT)


def _symeig(*_: Any, **__: Any) -> Any:
    """Raise PyTorch's error for a function that it has removed."""
    raise torch_error("old symeig")


BOTH: dict[str, Callable[..., Any]] = {
    # What numbers are
    "isnan": lambda input: input.ne(input),
    "isinf": lambda input: of_array(np.isinf(input._a[..., 0])),
    "signbit": lambda input: of_array(np.signbit(input._a[..., 0])),
    "isfinite": lambda input: of_array(np.isfinite(input._a[..., 0])),
    "is_complex": lambda input: False,
    "is_signed": lambda input: input.dtype.is_signed,
    "equal": lambda input, other: bool(input._a.shape == other._a.shape and (input._a == other._a).all()),
    "isclose": _close,
    "allclose": lambda input, other, *how, **settings: bool(np.all(_close(input, other, *how, **settings)._a)),
    "count_nonzero": lambda input, dim=None: input.ne(0).sum(dim),
    # Elements
    "polygamma": lambda self, n: named("polygamma", n, self),
    "square": lambda input: input.pow(2),
    "erfinv": _erfinv,
    "float_power": lambda input, exponent: input.double().pow(exponent),
    "dist": lambda input, other, p=2: (input - other).norm(p),
    "nansum": lambda input, dim=None, keepdim=False, *, dtype=None: where(input.isnan(), 0, input).sum(
        dim, keepdim, dtype=dtype
    ),
    "aminmax": lambda input, dim=None, keepdim=False: _AMINMAX(input.amin(dim, keepdim), input.amax(dim, keepdim)),
    "diff": _differences,
    # Axes
    "flip": lambda input, *dims: (
        called(input.clone(), "FlipBackward0") if dims and not listed(dims) else named("flip", input, *dims)
    ),
    "roll": _rolled,
    "fliplr": lambda input: input.flip(1),
    "flipud": lambda input: input.flip(0),
    "adjoint": lambda input: input.mT,
    "diag": _diag,
    "diag_embed": _embedded,
    "diagflat": lambda input, offset=0: _diag(input.reshape(-1), offset),
    "trace": _trace,
    "tril": lambda input, diagonal=0: named("tril", input, diagonal),
    "triu": lambda input, diagonal=0: named("triu", input, diagonal),
    # Products
    "inner": lambda input, other: (
        input * other if 0 in (input.dim(), other.dim()) else _tensordot(input, other, ([-1], [-1]))
    ),
    "addmv": lambda input, mat, vec, *, beta=1, alpha=1: weighted(input, mat.mv(vec), beta, alpha),
    "baddbmm": lambda input, batch1, batch2, *, beta=1, alpha=1: weighted(input, batch1.bmm(batch2), beta, alpha),
    "argwhere": lambda input: input.nonzero(),
    "corrcoef": _correlation,
    "cov": _covariance,
    "cross": _cross,
    "rot90": _rotated,
    "slogdet": lambda input: _SLOGDET(*linalg.slogdet(input)),
    "take_along_dim": _taken_along,
    "matrix_exp": linalg.matrix_exp,
    "matrix_power": _power,
    "cholesky_solve": lambda B, L, upper=False: named("solve", L.mT @ L if upper else L @ L.mT, B),
    "pinverse": lambda input: linalg.pinv(input),
    "det": linalg.det,
    "inverse": linalg.inv,
    "svd": _svd,
    "symeig": _symeig,
    "logdet": lambda input: named("det", check_matrix("logdet", input)).log(),
}
TORCH_ONLY: dict[str, Callable[..., Any]] = {
    "polygamma": lambda n, input: named("polygamma", n, input),
    "is_tensor": lambda obj: isinstance(obj, Tensor),
    "broadcast_shapes": lambda *shapes: Size(np.broadcast_shapes(*shapes)),
    "can_cast": lambda from_, to: dtypes.KINDS[from_.name] <= dtypes.KINDS[to.name],
    "promote_types": lambda type1, type2: result_dtype([of_array(np.zeros(1, d.numpy)) for d in (type1, type2)]),
    "result_type": lambda tensor1, tensor2: result_dtype((tensor1, tensor2)),
    "cdist": lambda x1, x2, p=2.0, compute_mode=None: (x1.unsqueeze(-2) - x2.unsqueeze(-3)).norm(p, -1),
    "std_mean": _with_mean("std"),
    "tensordot": _tensordot,
    "trapezoid": _trapezoid,
    "trapz": _trapezoid,
    "var_mean": _with_mean("var"),
    "tril_indices": lambda row, col, offset=0, **how: _indices(np.tril_indices(row, offset, col), **how),
    "triu_indices": lambda row, col, offset=0, **how: _indices(np.triu_indices(row, offset, col), **how),
    "iinfo": dtypes.iinfo,
    "finfo": dtypes.finfo,
}


def _step(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose result has a name of its own, where PyTorch computes it in one step."""
    if fact("one_step", name) is None:
        return function
    return lambda *args, **kwargs: called(function(*args, **kwargs), grad_name(name))


for _name, _function in BOTH.items():
    method(_name)(_step(_name, _function))
for _name, _function in TORCH_ONLY.items():
    function(_name)(_step(_name, _function))
