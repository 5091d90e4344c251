"""`torch.linalg`."""

from __future__ import annotations

import math
from functools import partial, reduce
from typing import Any

import numpy as np

from gradcli.graph import matrices
from gradcli.pytorch.calls import call_function, check_numbers, set_grad_fn_name
from gradcli.pytorch.dispatch import return_type
from gradcli.pytorch.messages import missing_if, raise_if, torch_error
from gradcli.pytorch.operations.joining import stack
from gradcli.pytorch.operations.reductions import norm as _norm
from gradcli.pytorch.running import apply
from gradcli.pytorch.tensor import Tensor, axis_of, of_array

__all__ = ["LinAlgError", "cholesky", "cond", "cross", "det", "eigh", "eigvalsh", "inv", "matrix_norm", "matrix_rank"]
__all__ += ["matrix_exp", "multi_dot", "norm", "pinv", "qr", "slogdet", "solve", "solve_triangular", "svd", "svdvals"]
__all__ += ["vector_norm"]
_QR = return_type("linalg_qr", "Q", "R")
_EIGH = return_type("linalg_eigh", "eigenvalues", "eigenvectors")
_SLOGDET = return_type("linalg_slogdet", "sign", "logabsdet")
_SVD = return_type("linalg_svd", "U", "S", "Vh")
ELSEWHERE = {"matmul": "operations.products"}
LinAlgError = type("_LinAlgError", (RuntimeError,), {"__doc__": "What cannot be solved.", "__module__": "torch._C"})


def check_matrix(name: str, A: Tensor, *, square: bool = True, integers: bool = False) -> Tensor:
    """Return a matrix of floating-point numbers, or a stack of them.

    Errors: `RuntimeError` for anything else.
    """
    raise_if(A.dim() < 2, "axes of a matrix", name, "A")
    raise_if(square and A.shape[-1] != A.shape[-2], "not a square matrix", name, *A.shape[-2:])
    raise_if(not integers and not A.is_floating_point(), "integers in linalg", name, A.dtype.word)
    return A


def _first_zero(A: Any) -> tuple[int, int] | None:
    """Return which matrix of a stack is the first without an inverse, and where its elimination meets a 0."""
    for number, matrix in enumerate(A.reshape(-1, *A.shape[-2:])):
        rows = matrix.copy()
        for k in range(len(rows)):
            best = k + int(np.abs(rows[k:, k]).argmax())
            rows[[k, best]] = rows[[best, k]]
            if not rows[k, k]:
                return number, k + 1
            rows[k + 1 :] -= np.outer(rows[k + 1 :, k] / rows[k, k], rows[k])
    return None


def det(A: Tensor) -> Tensor:
    return call_function("det", check_matrix("linalg.det", A))


def slogdet(A: Any) -> Any:
    """Return the sign of a determinant, and the logarithm of its absolute value."""
    result: Any = call_function("det", check_matrix("linalg.slogdet", A))
    return _SLOGDET(*(set_grad_fn_name(x, "LinalgSlogdetBackward0") for x in (result.sign(), result.abs().log())))


def inv(A: Tensor) -> Tensor:
    return _solve("inv", check_matrix("linalg.inv", A))


def solve(A: Tensor, B: Tensor) -> Tensor:
    check_matrix("linalg.solve", A)
    of_vectors = B.dim() < 2 or B.shape == A.shape[:-1]
    rows, columns = (B.shape[-1] if B.dim() else 1, 1) if of_vectors else B.shape[-2:]
    raise_if(rows != A.shape[-1], "sizes of a solve", A.shape[-1], rows, columns)
    return _solve("solve", A, B)


def _solve(name: str, A: Tensor, *B: Tensor) -> Tensor:
    """Return an inverse or a solution.

    Errors: `LinAlgError` for a singular matrix, in PyTorch's words.
    """
    result = call_function(name, A, *B)
    if not np.isfinite(result._a).all() and (zero := _first_zero(A._a[..., 0])):
        element = f"(Batch element {zero[0]}): " * (A.dim() > 2)
        raise torch_error(f"singular matrix in {name}", element, zero[1], kind=LinAlgError)
    return result


def cholesky(A: Any, *, upper: bool = False) -> Tensor:
    """Return the lower triangular L with A = L @ L.mT, or its transpose; the gradient is symmetric.

    Errors: `LinAlgError` for a matrix that is not positive-definite.
    """
    a = _symmetric(check_matrix("linalg.cholesky", A), "U" if upper else "L")
    symmetric = (a + a.mT) / 2
    factor: Any = apply("cholesky", matrices.cholesky, (symmetric,), (), "LinalgCholeskyExBackward0")
    if bad := np.argwhere(~(factor._a[..., 0].diagonal(axis1=-2, axis2=-1) > 0)).tolist():
        element = f"(Batch element {bad[0][0]}): " * (A.dim() > 2)
        raise torch_error("matrix that is not positive-definite", element, bad[0][-1] + 1, kind=LinAlgError)
    return set_grad_fn_name(factor.mT, "LinalgCholeskyExBackward0") if upper else factor


def pinv(A: Any, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Tensor:
    """Return the pseudoinverses of matrices: by the normal equations of a full-rank factorization, and a Newton step.

    Sources: A. Ben-Israel, "An iterative method for computing the generalized inverse" (1965); G. H. Golub and
    V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems whose variables separate"
    (1973), for the derivative where the rank stays the same.
    """
    raise_if(A.dim() < 2 or not A.is_floating_point(), "matrix for pinv", A.dtype.word, list(A.shape))
    missing_if((atol, rtol, hermitian) != (None, None, False), "torch.linalg.pinv(atol=…, rtol=…, hermitian=…)")
    ranks = matrix_rank(A)._a
    rank = int(ranks.max(initial=0))
    if (ranks != rank).any():  # of several matrices
        return set_grad_fn_name(stack([pinv(a) for a in A]), "LinalgPinvBackward0")
    if not rank:
        return set_grad_fn_name(A.mT.contiguous() - A.mT, "LinalgPinvBackward0")
    if rank == min(A.shape[-2:]):
        is_tall = A.shape[-2] >= A.shape[-1]
        rough = call_function("inv", A.mT @ A) @ A.mT if is_tall else A.mT @ call_function("inv", A @ A.mT)
    else:  # A = L @ R while the rank stays the same, with constant bases of the column space and of the row space
        u, _, vh = np.linalg.svd(A._a[..., 0])
        columns, rows = of_array(u[..., :rank]), of_array(vh[..., :rank, :])
        L = A @ rows.mT
        R = call_function("inv", columns.mT @ L) @ (columns.mT @ A)
        rough = R.mT @ call_function("inv", R @ R.mT) @ call_function("inv", L.mT @ L) @ L.mT
    return set_grad_fn_name(2 * rough - rough @ A @ rough, "LinalgPinvBackward0")


def qr(A: Any, mode: str = "reduced") -> Any:
    """Return Q with orthonormal columns and an upper triangular R with A = Q @ R, with LAPACK's signs.

    The columns are those of Gram and Schmidt's method, each made orthogonal to the others twice.
    """
    raise_if(mode not in ("reduced", "r", "complete"), "mode of a qr", mode)
    check_matrix("linalg.qr", A, square=False)
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
    Q = set_grad_fn_name(stack(result, -1), "LinalgQrBackward0")
    R = set_grad_fn_name((Q.mT @ A).triu(), "LinalgQrBackward0")
    return _QR(set_grad_fn_name(Q.reshape(-1)[:0], "LinalgQrBackward0") if mode == "r" else Q, R)


def eigh(A: Any, UPLO: str = "L") -> Any:
    """Return the eigenvalues of symmetric matrices in ascending order, and their eigenvectors, with LAPACK's signs."""
    return _EIGH(
        eigvalsh(A, UPLO), apply("eigvecsh", matrices.eigvecsh, (_symmetric(A, UPLO),), (), "LinalgEighBackward0")
    )


def eigvalsh(A: Any, UPLO: str = "L") -> Tensor:
    """Return the eigenvalues of symmetric matrices in ascending order."""
    return apply("eigvalsh", matrices.eigvalsh, (_symmetric(A, UPLO),), (), "LinalgEighBackward0")


def _symmetric(A: Any, UPLO: str) -> Any:
    """Return symmetric matrices with the numbers of one triangle; the gradient is that of both, as in PyTorch."""
    raise_if(UPLO not in ("L", "U", "l", "u"), "triangle of eigh", UPLO)
    check_matrix("linalg.eigh", A, integers=True)
    check_numbers("eigvalsh", A.dtype)
    a = A._a[..., 0]
    lower = np.tril(a) if UPLO.upper() == "L" else np.triu(a).swapaxes(-1, -2)
    symmetric = lower + np.tril(lower, -1).swapaxes(-1, -2)
    return A if np.array_equal(symmetric, a, equal_nan=True) else A + (of_array(symmetric) - A.detach())


def svd(A: Any, full_matrices: bool = True) -> Any:
    """Return U, the singular values in descending order, and Vh with A = U @ diag(S) @ Vh, with LAPACK's signs."""
    s = svdvals(A)
    u, vh = (
        apply(op, partial(matrices.singular_vectors, op, full=full_matrices), (A,), full_matrices, "LinalgSvdBackward0")
        for op in ("svd_u", "svd_vh")
    )
    return _SVD(u, s, vh)


def svdvals(A: Any) -> Tensor:
    """Return the singular values of matrices in descending order.

    Errors: `LinAlgError` where an element is nan or infinite.
    """
    check_matrix("linalg.svd", A, square=False)
    if not np.isfinite(A._a).all():
        raise torch_error("infinite matrix in svd", kind=LinAlgError)
    return apply("svdvals", matrices.svdvals, (A,), (), "LinalgSvdBackward0")


def matrix_rank(A: Any, *, atol: Any = 0.0, rtol: Any = None, hermitian: bool = False) -> Tensor:
    """Return how many singular values are above a tolerance: by default, the largest one's rounding error."""
    raise_if(A.dim() < 2, "axes of a matrix", "torch.linalg.matrix_rank", "input")
    s = svdvals(A.detach())
    if rtol is None:
        rtol = 0.0 if atol else max(A.shape[-2:]) * float(np.finfo(A._a.dtype).eps)
    return (s > (s.amax(-1, True) * rtol).clamp_min(atol)).sum(-1)


def multi_dot(tensors: Any) -> Any:
    """Return the product of matrices; the first or the last may be a vector."""
    return reduce(lambda a, b: a @ b, tensors)


def solve_triangular(A: Any, B: Any, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    """Return X with A @ X = B, or X @ A = B, for triangular matrices, whose other triangle is not read."""
    check_matrix("linalg.solve_triangular", A)
    matrix = A.triu(int(unitriangular)) if upper else A.tril(-int(unitriangular))
    if unitriangular:
        matrix = matrix + of_array(np.eye(A.shape[-1], dtype=A._a.dtype))
    result: Any = call_function("solve", matrix, B) if left else call_function("solve", matrix.mT, B.mT)
    return set_grad_fn_name(result if left else result.mT, "LinalgSolveTriangularBackward0")


def matrix_exp(A: Any) -> Any:
    """Return exponentials of matrices: of the matrix over a power of 2 by Taylor's series, squared as often.

    Source: C. Moler and C. Van Loan, "Nineteen dubious ways to compute the exponential of a matrix" (2003).
    """
    check_matrix("linalg.matrix_exp", A)
    size = float(np.abs(A._a).sum(-2).max(initial=0))
    count = max(0, math.ceil(math.log2(size)) + 1) if size else 0
    result = term = of_array(np.eye(A.shape[-1], dtype=A._a.dtype)) + 0 * A
    for k in range(1, 19):
        term = term @ A / (2**count * k)
        result = result + term
    for _ in range(count):
        result = result @ result
    return set_grad_fn_name(result, "LinalgMatrixExpBackward0")


def cond(A: Any, p: Any = None) -> Tensor:
    """Return the condition number: of singular values the largest by the smallest, else the norms' product."""
    if p in (None, 2, -2):
        s = svdvals(A)
        return set_grad_fn_name(s[..., 0] / s[..., -1] if p != -2 else s[..., -1] / s[..., 0], "SqueezeBackward1")
    return set_grad_fn_name(matrix_norm(A, p) * matrix_norm(inv(A), p), "NanToNumBackward0")


def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    return call_function("cross", input, other, dim)


def norm(A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False) -> Tensor:
    both = dim if dim is not None else (-2, -1) if A.dim() == 2 else ()
    if ord is not None and isinstance(both, tuple | list) and len(both) == 2:
        return matrix_norm(A, ord, both, keepdim)
    return _norm(A, 2 if ord is None else ord, dim, keepdim)


def vector_norm(x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False) -> Tensor:
    return _norm(x, ord, dim, keepdim)


def matrix_norm(A: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False) -> Tensor:
    raise_if(ord not in ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf), "order of a norm", ord)
    if ord == "fro":
        return _norm(A, 2, dim, keepdim)
    rows, columns = (axis_of(d, A.dim()) for d in dim)
    if ord in ("nuc", 2, -2):
        s = svdvals(A.movedim((rows, columns), (-2, -1)))
        result = s.sum(-1) if ord == "nuc" else s.amax(-1) if ord == 2 else s.amin(-1)
        shape = [1 if i in (rows, columns) else n for i, n in enumerate(A.shape)]
        return set_grad_fn_name(result.reshape(shape), "PermuteBackward0") if keepdim else result
    along, across = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = A.abs().sum(along, keepdim)
    left = across - (along < across and not keepdim)
    return sums.amax(left, keepdim) if ord > 0 else sums.amin(left, keepdim)
