"""`torch.linalg`."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from gradcli.pytorch.calls import named
from gradcli.pytorch.missing import MissingError
from gradcli.pytorch.reductions import norm as _norm
from gradcli.pytorch.tensor import Tensor

__all__ = ["LinAlgError", "cross", "det", "inv", "matrix_norm", "norm", "solve", "vector_norm"]
ELSEWHERE = {"matmul": "products", "diagonal": "views"}
det, solve = partial(named, "det"), partial(named, "solve")


def inv(A: Tensor) -> Tensor:
    """Return the inverse.

    Errors: `LinAlgError` for a singular matrix, in PyTorch's words.
    """
    found = named("inv", A)
    if not np.isfinite(found._a).all() and np.isfinite(A._a).all():
        raise LinAlgError(
            f"linalg.inv: The diagonal element {A.shape[-1]} is zero, the inversion could not be completed because the "
            "input matrix is singular."
        )
    return found


class LinAlgError(RuntimeError):
    """What cannot be solved."""


LinAlgError.__module__ = "torch._C"


def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    return named("cross", input, other, dim)


def norm(A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False) -> Tensor:
    if A.dim() == 2 and dim is None and ord not in (None, "fro"):
        raise MissingError(f"torch.linalg.norm(ord={ord!r}) of a matrix")
    return _norm(A, 2 if ord is None else ord, dim, keepdim)


def vector_norm(x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False) -> Tensor:
    return _norm(x, ord, dim, keepdim)


def matrix_norm(A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False) -> Tensor:
    if ord != "fro":
        raise MissingError(f"torch.linalg.matrix_norm(ord={ord!r})")
    return _norm(A, 2, dim, keepdim)
