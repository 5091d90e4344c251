"""Functions of `scipy.linalg` on tracers, composed of NumPy's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.errors import InputError
from gradcli.pyfunc.tape import aside
from gradcli.pyfunc.tracer import Rule, known_values, mutable


def _transposed(a: Any) -> Any:
    return np.swapaxes(a, -1, -2)


def _symmetric(a: Any, lower: bool) -> Any:
    """Return the symmetric matrix of one triangle, the only one that LAPACK reads."""
    a = np.asarray(a) if lower else _transposed(np.asarray(a))
    return np.tril(a) + _transposed(np.tril(a, -1))


def _solve(
    a: Any, b: Any, lower: bool = False, *_: Any, assume_a: Any = None, transposed: bool = False, **__: Any
) -> Any:
    if assume_a in ("sym", "her", "pos", "symmetric", "hermitian", "positive definite"):
        a = _symmetric(a, lower)
    elif assume_a in ("lower triangular", "upper triangular"):
        a = np.tril(a) if assume_a[0] == "l" else np.triu(a)
    return np.linalg.solve(_transposed(a) if transposed else a, b)


def _cholesky(a: Any, lower: bool = False, *_: Any, **__: Any) -> Any:
    factor = np.linalg.cholesky(_symmetric(a, lower))
    return factor if lower else _transposed(factor)


def _cho_solve(factor: Any, b: Any, *_: Any, **__: Any) -> Any:
    c, lower = factor
    half = _solve_triangular(c, b, 0 if lower else 1, lower)
    return _solve_triangular(c, half, 1 if lower else 0, lower)


def _solve_triangular(
    a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False, *_: Any, **__: Any
) -> Any:
    a = np.tril(a) if lower else np.triu(a)
    if unit_diagonal:
        a = a - np.diag(np.diag(a)) + np.eye(len(a))
    return np.linalg.solve(_transposed(a) if trans in (1, 2, "T", "C") else a, b)


def _eigh(a: Any, b: Any = None, *, lower: bool = True, eigvals_only: bool = False, **_: Any) -> Any:
    from scipy.linalg import eigh

    if b is not None:
        raise InputError("`scipy.linalg.eigh` of two matrices cannot be traced")
    a = _symmetric(a, lower)
    if eigvals_only:
        return np.linalg.eigvalsh(a)
    values, vectors = np.linalg.eigh(a)
    if (known := known_values(a)) is not None:  # SciPy's vectors have signs of their own
        with aside():
            same = np.sum(eigh(known)[1] * known_values(vectors), axis=-2)
        vectors = vectors * np.where(same < 0, -1.0, 1.0)
    return values, vectors


# Coefficients of the diagonal Padé approximant of exp of degree 13, which is exact to double precision for matrices of
# a 1-norm up to _NEAR (Higham, The scaling and squaring method for the matrix exponential revisited, 2005).
_DEGREE, _NEAR = 13, 5.37
_PADE = [
    math.factorial(2 * _DEGREE - k) * math.factorial(_DEGREE)
    / (math.factorial(2 * _DEGREE) * math.factorial(k) * math.factorial(_DEGREE - k))
    for k in range(_DEGREE + 1)
]  # fmt: skip


def _expm(A: Any) -> Any:
    """Return the exponential of a matrix, scaled so that its norm is small, and squared as often."""
    a = np.asarray(A)
    norm = np.max(np.sum(np.abs(a), axis=-2))
    squarings = int(np.maximum(0.0, np.ceil(np.log2(norm / _NEAR))).decided())
    a = a / 2**squarings
    power = np.eye(a.shape[-1])
    even, odd, square = _PADE[0] * power, _PADE[1] * power, a @ a
    for k in range(2, _DEGREE, 2):
        power = power @ square
        even, odd = even + _PADE[k] * power, odd + _PADE[k + 1] * power
    odd = a @ odd
    result = np.linalg.solve(even - odd, even + odd)
    for _ in range(squarings):
        result = result @ result
    return result


def _block_diag(*arrays: Any) -> Any:
    blocks = [np.atleast_2d(a) for a in arrays]
    result = mutable(np.zeros((sum(b.shape[0] for b in blocks), sum(b.shape[1] for b in blocks))))
    row = column = 0
    for b in blocks:
        result[row : row + b.shape[0], column : column + b.shape[1]] = b
        row, column = row + b.shape[0], column + b.shape[1]
    return result


def _toeplitz(c: Any, r: Any = None) -> Any:
    c = np.ravel(c)
    r = c if r is None else np.ravel(r)
    values = np.concatenate([r[:0:-1], c])
    return values[np.arange(len(c))[:, None] - np.arange(len(r)) + len(r) - 1]


FUNCTIONS: dict[str, Rule] = {
    "solve": _solve,
    "inv": lambda a, *_, **__: np.linalg.inv(a),
    "det": lambda a, *_, **__: np.linalg.det(a),
    "norm": lambda a, ord=None, axis=None, keepdims=False, check_finite=True: np.linalg.norm(a, ord, axis, keepdims),
    "cholesky": _cholesky,
    "cho_factor": lambda a, lower=False, *_, **__: (_cholesky(a, lower), lower),
    "cho_solve": _cho_solve,
    "solve_triangular": _solve_triangular,
    "eigh": _eigh,
    "eigvalsh": lambda a, b=None, *, lower=True, **_: _eigh(a, b, lower=lower, eigvals_only=True),
    "svdvals": lambda a, *_, **__: np.linalg.svd(a, compute_uv=False),
    "expm": _expm,
    "block_diag": _block_diag,
    "toeplitz": _toeplitz,
}
