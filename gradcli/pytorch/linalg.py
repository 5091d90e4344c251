"""`torch.linalg`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.pytorch.calls import called, named
from gradcli.pytorch.messages import missing_if, refusal, refuse_if
from gradcli.pytorch.names import return_type
from gradcli.pytorch.operations.joining import stack
from gradcli.pytorch.operations.reductions import norm as _norm
from gradcli.pytorch.refusals import check_square, first_zero
from gradcli.pytorch.tensor import Tensor, axis_of, of_array

__all__ = ["LinAlgError", "cross", "det", "inv", "matrix_norm", "norm", "qr", "solve", "vector_norm"]
_QR = return_type("linalg_qr", "Q", "R")
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
    result = named(name, A, *B)
    if not np.isfinite(result._a).all() and (zero := first_zero(A._a[..., 0])):
        element = f"(Batch element {zero[0]}): " * (A.dim() > 2)
        raise refusal(f"singular matrix in {name}", element, zero[1], kind=LinAlgError)
    return result


def qr(A: Any, mode: str = "reduced") -> Any:
    """Return Q with orthonormal columns and an upper triangular R with A = Q @ R, with LAPACK's signs.

    The columns are those of Gram and Schmidt's method, each made orthogonal to the others twice.
    """
    refuse_if(A.dim() < 2, "axes of a qr")
    refuse_if(mode not in ("reduced", "r", "complete"), "mode of a qr", mode)
    refuse_if(not A.is_floating_point(), "dtype of a qr", A.dtype.word)
    rows, columns = A.shape[-2:]
    missing_if(mode == "complete" and rows > columns, "torch.linalg.qr(mode='complete') of a matrix of more rows")
    diagonal = np.linalg.qr(A._a[..., 0])[1].diagonal(axis1=-2, axis2=-1)
    sizes = np.abs(diagonal)
    is_singular = bool((sizes <= np.finfo(A._a.dtype).eps * sizes.max(-1, keepdims=True, initial=0)).any())
    missing_if(is_singular, "torch.linalg.qr of columns that are linearly dependent")
    result: list[Any] = []
    for j, column in enumerate(A.unbind(-1)[: min(rows, columns)]):
        for q in (*result, *result):
            column = column - (q * column).sum(-1, keepdim=True) * q
        signs = of_array(np.sign(diagonal[..., j : j + 1]).astype(A._a.dtype))
        result.append(column / column.norm(dim=-1, keepdim=True) * signs)
    Q = called(stack(result, -1), "LinalgQrBackward0")
    R = called((Q.mT @ A).triu(), "LinalgQrBackward0")
    return _QR(called(Q.reshape(-1)[:0], "LinalgQrBackward0") if mode == "r" else Q, R)


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
