"""Functions that PyTorch composes of other operations: a line each."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from string import ascii_letters
from typing import Any

import numpy as np

from gradcli.graph import construct
from gradcli.graph.construct import call
from gradcli.graph.index_arrays import IndexArray, scatter_add
from gradcli.graph.node import Node, cast, const, elementwise
from gradcli.pytorch import dtypes, linalg
from gradcli.pytorch.calls import call_function, check_numbers, set_grad_fn_name
from gradcli.pytorch.dtypes import Size, result_dtype
from gradcli.pytorch.functions import fact, grad_name
from gradcli.pytorch.messages import raise_if, warn_once
from gradcli.pytorch.names import TORCH, function
from gradcli.pytorch.operations.joining import cat
from gradcli.pytorch.operations.operators import where
from gradcli.pytorch.operations.products import einsum, weighted_sum
from gradcli.pytorch.operations.views import diagonal_by
from gradcli.pytorch.recipes import common_shape
from gradcli.pytorch.running import apply
from gradcli.pytorch.tensor import Tensor, of_array


def _close(input: Tensor, other: Tensor, rtol: float, atol: float, equal_nan: bool) -> Tensor:
    raise_if(rtol < 0, "sign of a tolerance", "rtol", rtol)
    raise_if(atol < 0, "sign of a tolerance", "atol", atol)
    raise_if(other.dtype is not input.dtype, "dtypes that are compared", input.dtype.word, other.dtype.word)
    common_shape((input.shape, other.shape))
    with np.errstate(all="ignore"):
        return of_array(np.isclose(input._a[..., 0], other._a[..., 0], rtol, atol, equal_nan))


def _differences(input: Any, n: int, dim: int, prepend: Any, append: Any) -> Any:
    raise_if(not input.dim(), "differences of a number")
    raise_if(n < 0, "negative order of differences", n)
    if not n:
        return set_grad_fn_name(input.clone(), "torch::autograd::CopyBackwards")
    if prepend is not None or append is not None:
        input = cat([x for x in (prepend, input, append) if x is not None], dim)
    for size in range(input.shape[dim] - 1, input.shape[dim] - 1 - n, -1)[: input.shape[dim]]:
        a, b = input.narrow(dim, 1, size), input.narrow(dim, 0, size)
        input = a.ne(b) if input.dtype.name == "bool" else a - b
    return input


def _roll(input: Any, shifts: Any, dims: Any) -> Tensor:
    dims = None if dims in ((), []) else dims
    raise_if(not input.dim() and dims is not None, "axes of a number to roll")
    counts = [len(p) if isinstance(p, tuple | list) else 1 for p in (shifts, dims)]
    raise_if(dims is not None and counts[0] != counts[1], "shifts of axes", *counts)
    return call_function("roll", input, shifts, dims)


def _cross(input: Any, other: Any, dim: int | None) -> Tensor:
    if dim is None:
        warn_once("cross without dim")
        dim = next((i for i, n in enumerate(input.shape) if n == 3), -1)
    return call_function("cross", input, other, dim)


def _trace(input: Any) -> Tensor:
    raise_if(input.dim() != 2, "axes of a trace", input.dim())
    check_numbers("trace", input.dtype)
    return call_function("trace", input if input.dtype.is_floating_point else input.long())


def _triangle(input: Tensor, diagonal: int, op: str) -> Tensor:
    raise_if(input.dim() < 2, "axes of a triangle", op)
    return call_function(op, input, diagonal)  # type: ignore[no-any-return]


def _flip(input: Any, op: str) -> Tensor:
    axis = int(op == "fliplr")
    raise_if(input.dim() <= axis, "number to turn around", axis + 1)
    return input.flip(axis)  # type: ignore[no-any-return]


def _diag(input: Any, diagonal: int) -> Tensor:
    raise_if(input.dim() not in (1, 2), "axes of a diagonal", input.dim())
    if input.dim() == 2:
        return diagonal_by("diag", input, diagonal, name="DiagonalBackward0_copy")
    return _diag_embed(input, diagonal)


def _diag_embed(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
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
    from statistics import NormalDist  # which imports random numbers, decimals and fractions

    x = input if input.is_floating_point() else input.to(dtypes.default_dtype())
    half = (x._a.astype(np.float64) + 1) / 2
    inside = (half > 0) & (half < 1)
    quantiles = [NormalDist().inv_cdf(p) for p in half[inside].tolist()]
    y = np.where(np.abs(x._a) == 1, np.copysign(np.inf, x._a), np.nan)
    y[inside] = np.divide(quantiles, math.sqrt(2))

    def build(x: Node, y: Node, inside: Node) -> Node:
        first = new = elementwise("where", inside, y, const(0))
        for _ in range(2):
            slope = call("sqrt", const("pi")) / 2 * call("exp", new * new)
            new = new + (x - call("erf", new)) * cast(slope, x.dtype)
        return elementwise("where", inside, new - call("detach", new) + first, y)

    return apply("erfinv", build, (x, y.astype(x._a.dtype), inside), (), "ErfinvBackward0")


def _tensordot(a: Tensor, b: Tensor, dims: Any) -> Tensor:
    first, second = dims if not isinstance(dims, int) else (range(-dims, 0), range(dims))
    left, right = list(ascii_letters[: a.dim()]), list(ascii_letters[26 : 26 + b.dim()])
    for i, j in zip(first, second, strict=True):
        raise_if(a.shape[i] != b.shape[j], "sizes of a tensordot", a.shape[i], i, b.shape[j], j)
        right[j] = left[i]
    kept = [c for c in left + right if (c in left) != (c in right)]
    return einsum(f"{''.join(left)},{''.join(right)}->{''.join(kept)}", (a, b))


def _trapezoid(y: Any, x: Any, dx: Any, dim: int) -> Any:
    """Return integrals along an axis by the trapezoidal rule, at points x or at a distance."""
    size = y.shape[dim]
    left, right = y.narrow(dim, 0, max(size - 1, 0)), y.narrow(dim, min(1, size), max(size - 1, 0))
    if x is None:
        ends = y.narrow(dim, 0, 1) + y.narrow(dim, size - 1, 1) if size else y
        return set_grad_fn_name(dx * (y.sum(dim) - 0.5 * ends.sum(dim)), "MulBackward1")
    widths = x.diff() if x.dim() == 1 else x.diff(dim=dim)
    if x.dim() == 1:
        widths = widths.view([-1 if i == dim % y.dim() else 1 for i in range(y.dim())])
    return set_grad_fn_name(((left + right) * widths).sum(dim) / 2, "DivBackward1")


def _covariance(input: Any, correction: int) -> Any:
    """Return the covariances of rows."""
    rows = input.reshape(-1, input.shape[-1]) if input.dim() else input.view(1, 1)
    rows = rows - rows.mean(1, keepdim=True)
    return set_grad_fn_name((rows @ rows.t() / (rows.shape[1] - correction)).squeeze(), "SqueezeBackward0")


def _correlation(input: Any) -> Any:
    """Return the correlations of rows."""
    covariance = _covariance(input, 1)
    if not covariance.dim():
        return covariance / covariance
    deviations = covariance.diagonal().sqrt()
    return (covariance / deviations[:, None] / deviations).clip(-1, 1)


def _rotate(input: Any, k: int, dims: Any) -> Any:
    """Return a tensor rotated k times by 90° from one axis towards another, by default from the first to the second."""
    a, b = dims
    result = (input, input.flip(b).transpose(a, b), input.flip(a, b), input.flip(a).transpose(a, b))[k % 4]
    return set_grad_fn_name(result.clone() if result is input else result, "Rot90Backward0")


def _with_mean(input: Any, dim: Any, unbiased: bool, keepdim: bool, correction: Any, op: str) -> Any:
    """Return the standard deviation or the variance, and the mean."""
    less = int(unbiased) if correction is None else correction
    spread = getattr(input, op.removesuffix("_mean"))(dim, correction=less, keepdim=keepdim)
    return set_grad_fn_name((spread, input.mean(dim, keepdim=keepdim)), grad_name(op))


def _take_along(input: Any, indices: Any, dim: int | None) -> Any:
    """Return the elements at indices along an axis; the other axes are broadcast."""
    if dim is None:
        return input.reshape(-1).gather(0, indices.reshape(-1))
    sizes = list(
        common_shape([[1 if i == dim % x.dim() else n for i, n in enumerate(x.shape)] for x in (input, indices)])
    )
    shapes = [[*sizes[: dim % x.dim()], x.shape[dim], *sizes[dim % x.dim() + 1 :]] for x in (input, indices)]
    return input.expand(shapes[0]).gather(dim, indices.expand(shapes[1]))


def _svd(input: Any, some: bool, compute_uv: bool) -> Any:
    u, s, vh = linalg.svd(input, not some)
    return u, s, vh.mT


_COMPOSITIONS: dict[str, Callable[..., Any]] = {
    # What numbers are
    "isnan": lambda input: input.ne(input),
    "isinf": lambda input: of_array(np.isinf(input._a[..., 0])),
    "signbit": lambda input: of_array(np.signbit(input._a[..., 0])),
    "isfinite": lambda input: of_array(np.isfinite(input._a[..., 0])),
    "is_complex": lambda input: False,
    "is_signed": lambda input: input.dtype.is_signed,
    "equal": lambda input, other: bool(input._a.shape == other._a.shape and (input._a == other._a).all()),
    "isclose": _close,
    "allclose": lambda input, other, rtol, atol, equal_nan: bool(
        np.all(_close(input, other, rtol, atol, equal_nan)._a)
    ),
    "count_nonzero": lambda input, dim: input.ne(0).sum(dim),
    # Elements
    "polygamma": lambda input, n: call_function("polygamma", n, input),
    "square": lambda input: input.pow(2),
    "erfinv": _erfinv,
    "float_power": lambda input, exponent: input.double().pow(exponent),
    "dist": lambda input, other, p: (input - other).norm(p),
    "nansum": lambda input, dim, keepdim, dtype: where(input.isnan(), 0, input).sum(dim, keepdim, dtype=dtype),
    "aminmax": lambda input, dim, keepdim: (input.amin(dim, keepdim), input.amax(dim, keepdim)),
    "diff": _differences,
    # Axes
    "flip": lambda input, dims: (
        call_function("flip", input, dims) if dims else set_grad_fn_name(input.clone(), "FlipBackward0")
    ),
    "roll": _roll,
    "fliplr": _flip,
    "flipud": _flip,
    "adjoint": lambda input: input.mT,
    "diag": _diag,
    "diag_embed": _diag_embed,
    "diagflat": lambda input, offset: _diag(input.reshape(-1), offset),
    "trace": _trace,
    "tril": _triangle,
    "triu": _triangle,
    # Products
    "inner": lambda input, other: (
        input * other if 0 in (input.dim(), other.dim()) else _tensordot(input, other, ([-1], [-1]))
    ),
    "addmv": lambda input, mat, vec, beta, alpha: weighted_sum(input, mat.mv(vec), beta, alpha),
    "baddbmm": lambda input, batch1, batch2, beta, alpha: weighted_sum(input, batch1.bmm(batch2), beta, alpha),
    "argwhere": lambda input: input.nonzero(),
    "corrcoef": _correlation,
    "cov": _covariance,
    "cross": _cross,
    "rot90": _rotate,
    "slogdet": lambda input: tuple(linalg.slogdet(input)),
    "take_along_dim": _take_along,
    "matrix_exp": lambda input: linalg.matrix_exp(input),
    "matrix_power": _power,
    "cholesky_solve": lambda input, input2, upper: call_function(
        "solve", input2.mT @ input2 if upper else input2 @ input2.mT, input
    ),
    "pinverse": lambda input: linalg.pinv(input),
    "det": lambda input: linalg.det(input),
    "inverse": lambda input: linalg.inv(input),
    "svd": _svd,
    "symeig": lambda *_, **__: raise_if(True, "old symeig"),
    "logdet": lambda input: call_function("det", linalg.check_matrix("logdet", input)).log(),
    # Of dtypes and shapes, and functions alone
    **dict.fromkeys(("conj", "positive", "resolve_conj", "resolve_neg"), lambda input: input),
    "is_nonzero": lambda input: bool(input),
    "is_tensor": lambda obj: isinstance(obj, Tensor),
    "broadcast_shapes": lambda shapes: Size(np.broadcast_shapes(*shapes)),
    "can_cast": lambda from_, to: dtypes.KINDS[from_.name] <= dtypes.KINDS[to.name],
    "promote_types": lambda type1, type2: result_dtype([of_array(np.zeros(1, d.numpy)) for d in (type1, type2)]),
    "result_type": lambda tensor1, tensor2: result_dtype((tensor1, tensor2)),
    "cdist": lambda x1, x2, p, compute_mode: (x1.unsqueeze(-2) - x2.unsqueeze(-3)).norm(p, -1),
    "std_mean": _with_mean,
    "tensordot": _tensordot,
    "trapezoid": _trapezoid,
    "trapz": _trapezoid,
    "var_mean": _with_mean,
    "tril_indices": lambda row, col, offset=0, **how: _indices(np.tril_indices(row, offset, col), **how),
    "triu_indices": lambda row, col, offset=0, **how: _indices(np.triu_indices(row, offset, col), **how),
    "iinfo": dtypes.iinfo,
    "finfo": dtypes.finfo,
}


def _step(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose result has a name of its own, where PyTorch computes it in one step."""
    if fact("one_step", name) is None:
        return function
    return wraps(function)(lambda *args, **kwargs: set_grad_fn_name(function(*args, **kwargs), grad_name(name)))


for _name, _function in _COMPOSITIONS.items():
    function(_name)(_step(_name, _function))
