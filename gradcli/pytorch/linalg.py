"""`torch.linalg`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.pytorch.calls import named
from gradcli.pytorch.messages import missing_if, refuse_if, told
from gradcli.pytorch.operations.reductions import norm as _norm
from gradcli.pytorch.refusals import check_square, first_zero
from gradcli.pytorch.tensor import Tensor, axis_of

__all__ = ["LinAlgError", "cross", "det", "inv", "matrix_norm", "norm", "solve", "vector_norm"]
ELSEWHERE = {"matmul": "operations.products"}
LinAlgError = type("_LinAlgError", (RuntimeError,), {"__doc__": "What cannot be solved.", "__module__": "torch._C"})


def det(A: Tensor) -> Tensor:
    return named("det", check_square("linalg.det", A))


def inv(A: Tensor) -> Tensor:
    return _solved("inv", check_square("linalg.inv", A))


def solve(A: Tensor, B: Tensor) -> Tensor:
    check_square("linalg.solve", A)
    of_vectors = B.dim() < 2 or B.shape == A.shape[:-1]
    rows, columns = ((*B.shape, 1)[-1 - bool(B.dim())], 1) if of_vectors else B.shape[-2:]
    refuse_if(rows != A.shape[-1], "sizes of a solve", A.shape[-1], rows, columns)
    return _solved("solve", A, B)


def _solved(name: str, A: Tensor, *B: Tensor) -> Tensor:
    """Return an inverse or a solution.

    Errors: `LinAlgError` for a singular matrix, in PyTorch's words.
    """
    found = named(name, A, *B)
    if not np.isfinite(found._a).all() and (zero := first_zero(A._a[..., 0])):
        raise LinAlgError(told(f"singular matrix in {name}", f"(Batch element {zero[0]}): " * (A.dim() > 2), zero[1]))
    return found


def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    return named("cross", input, other, dim)


def norm(A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False) -> Tensor:
    both = dim if dim is not None else (-2, -1) if A.dim() == 2 else ()
    if ord is not None and isinstance(both, tuple | list) and len(both) == 2:
        return matrix_norm(A, ord, both, keepdim)
    return _norm(A, 2 if ord is None else ord, dim, keepdim)


def vector_norm(x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False) -> Tensor:
    return _norm(x, ord, dim, keepdim)


def matrix_norm(A: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False) -> Tensor:
    if ord == "fro":
        return _norm(A, 2, dim, keepdim)
    missing_if(ord in ("nuc", 2, -2), f"torch.linalg.matrix_norm(ord={ord!r})")
    refuse_if(ord not in (1, -1, np.inf, -np.inf), "order of a norm", ord)
    rows, columns = (axis_of(d, A.dim()) for d in dim)
    along, across = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = A.abs().sum(along, keepdim)
    left = across - (along < across and not keepdim)
    return sums.amax(left, keepdim) if ord > 0 else sums.amin(left, keepdim)
