"""Functions of SciPy's on tracers, composed of NumPy's, and distributions by SciPy's own formulas."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from gradcli.errors import InputError
from gradcli.pyfunc.functions.reductions import reduced
from gradcli.pyfunc.tape import aside
from gradcli.pyfunc.tracer import Rule, computed, known_values, lift, mutable
from gradcli.vocabulary import FUNCTIONS as VOCABULARY

# scipy.special, of which NumPy's protocols reach the ufuncs


def _logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False) -> Any:
    from scipy import special

    if b is not None:
        return _logsumexp(a + np.log(b), axis, None, keepdims)
    node = reduced("logsumexp")(a, axis, keepdims=keepdims)
    return computed(node, partial(special.logsumexp, axis=axis, keepdims=keepdims), a)


def log_softmax(x: Any, axis: Any = None) -> Any:
    """Return the logarithm of the softmax along an axis, or of all elements."""
    shifted = x - np.max(x, axis=axis, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


def _polygamma(n: Any, x: Any) -> Any:
    from scipy import special

    return computed(VOCABULARY["polygamma"](lift(n), lift(x)), partial(special.polygamma, n), x)


_SPECIAL: dict[str, Rule] = {
    "logsumexp": _logsumexp,
    "softmax": lambda x, axis=None: np.exp(log_softmax(x, axis)),
    "log_softmax": log_softmax,
    "polygamma": _polygamma,
}


# scipy.linalg


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


_LINALG: dict[str, Rule] = {
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


# scipy.spatial.distance


def _cosine(a: Any, b: Any) -> Any:
    return 1 - np.sum(a * b, -1) / (np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1))


# Distances of vectors, which are the last axes.
_METRICS: dict[str, Callable[..., Any]] = {
    "euclidean": lambda a, b: np.linalg.norm(a - b, axis=-1),
    "sqeuclidean": lambda a, b: np.sum((a - b) ** 2, -1),
    "cityblock": lambda a, b: np.sum(np.abs(a - b), -1),
    "chebyshev": lambda a, b: np.max(np.abs(a - b), -1),
    "minkowski": lambda a, b, p=2.0: np.linalg.norm(a - b, p, axis=-1),
    "cosine": _cosine,
    "correlation": lambda a, b: _cosine(a - np.mean(a, -1, keepdims=True), b - np.mean(b, -1, keepdims=True)),
    "mahalanobis": lambda a, b, VI: np.sqrt(np.sum((a - b) @ VI * (a - b), -1)),
}


def _metric(name: Any) -> Callable[..., Any]:
    if isinstance(name, str) and name.lower() in _METRICS:
        return _METRICS[name.lower()]
    raise InputError(f"the distance `{name}` cannot be traced", hint=f"these can: {', '.join(_METRICS)}")


def _cdist(XA: Any, XB: Any, metric: Any = "euclidean", *, out: Any = None, **settings: Any) -> Any:
    return _metric(metric)(np.asarray(XA)[:, None, :], np.asarray(XB)[None, :, :], **settings)


def _pdist(X: Any, metric: Any = "euclidean", *, out: Any = None, **settings: Any) -> Any:
    X = np.asarray(X)
    first, second = np.triu_indices(len(X), 1)
    return _metric(metric)(X[first], X[second], **settings)


def _squareform(X: Any, *_: Any, **__: Any) -> Any:
    X = np.asarray(X)
    if X.ndim > 1:
        return X[np.triu_indices(len(X), 1)]
    n = round((1 + (1 + 8 * len(X)) ** 0.5) / 2)
    result = mutable(np.zeros((n, n)))
    result[np.triu_indices(n, 1)] = X
    return result + result.T


def _of_two(metric: Callable[..., Any]) -> Rule:
    return lambda u, v, *more, **settings: metric(np.asarray(u), np.asarray(v), *more, **settings)


_DISTANCE: dict[str, Rule] = {
    "cdist": _cdist,
    "pdist": _pdist,
    "squareform": _squareform,
    **{name: _of_two(metric) for name, metric in _METRICS.items()},
}


# scipy.stats: SciPy's own formulas of each distribution, without its checks of the arguments


def _of_distribution(name: str, below: float, above: float, finish: Callable[[Any, Any], Any]) -> Rule:
    """Return a method of all distributions: `finish` takes the standard form of it and the scale.

    Its value is `below` and `above` the support the number of that name.
    """

    def method(self: Any, x: Any, *args: Any, **settings: Any) -> Any:
        shapes, loc, scale = self._parse_args(*args, **settings)
        z = (np.asarray(x) - loc) / scale if hasattr(self, "pdf") else np.asarray(x) - loc
        shapes = tuple(map(np.asarray, shapes))
        low, high = self._get_support(*shapes)
        inside, least, most = [], _bounded(low), _bounded(high)
        if least:
            inside.append(z >= low)
        if most:
            inside.append(z <= high)
        if not inside:
            return finish(getattr(self, name)(z, *shapes), scale)
        is_inside = inside[0] if len(inside) == 1 else np.logical_and(*inside)
        middle = (low + high) / 2 if least and most else low + 1 if least else high - 1
        value = finish(getattr(self, name)(np.where(is_inside, z, middle), *shapes), scale)
        return np.where(is_inside, value, np.where(z < low, below, above) if below != above else below)

    return method


def _bounded(end: Any) -> bool:
    return bool(np.any(np.isfinite(np.asarray(getattr(end, "_value", end)))))


def _as_it_is(value: Any, scale: Any) -> Any:
    return value


_INF = math.inf
_CUMULATIVE = {
    "cdf": _of_distribution("_cdf", 0.0, 1.0, _as_it_is),
    "logcdf": _of_distribution("_logcdf", -_INF, 0.0, _as_it_is),
    "sf": _of_distribution("_sf", 1.0, 0.0, _as_it_is),
    "logsf": _of_distribution("_logsf", 0.0, -_INF, _as_it_is),
}
_CONTINUOUS = {
    "pdf": _of_distribution("_pdf", 0.0, 0.0, lambda value, scale: value / scale),
    "logpdf": _of_distribution("_logpdf", -_INF, -_INF, lambda value, scale: value - np.log(scale)),
}
_DISCRETE = {
    "pmf": _of_distribution("_pmf", 0.0, 0.0, _as_it_is),
    "logpmf": _of_distribution("_logpmf", -_INF, -_INF, _as_it_is),
}


def _t_logpdf(self: Any, x: Any, df: Any) -> Any:
    from scipy.special import gammaln

    factor = gammaln((df + 1) / 2) - gammaln(df / 2) - np.log(math.pi * df) / 2
    return factor - (df + 1) / 2 * np.log1p(x**2 / df)


def _normal_logpdf(self: Any, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
    cov = np.asarray(cov)
    size = cov.shape[0] if cov.ndim else 1 if mean is None else np.size(mean)
    cov = cov * np.eye(size) if cov.ndim == 0 else np.diag(cov) if cov.ndim == 1 else cov
    x = np.asarray(x)
    x = x[..., None] if x.ndim == 0 or (x.ndim == 1 and size == 1) else x
    off = x if mean is None else x - np.ravel(mean)
    rows = np.reshape(off, (-1, size))
    squares = np.sum(rows * np.linalg.solve(cov, rows.T).T, axis=1)
    result = -(size * math.log(2 * math.pi) + np.linalg.slogdet(cov)[1] + squares) / 2
    return np.reshape(result, off.shape[:-1])


def _normal_pdf(self: Any, *args: Any, **settings: Any) -> Any:
    return np.exp(_normal_logpdf(self, *args, **settings))


class _Normal:
    """A multivariate normal distribution whose mean or covariance is traced."""

    def __init__(self, _: Any, mean: Any = None, cov: Any = 1, *__: Any, **___: Any) -> None:
        self.mean, self.cov = mean, cov

    def logpdf(self, x: Any) -> Any:
        """Return the logarithm of the density."""
        return _normal_logpdf(self, x, self.mean, self.cov)

    def pdf(self, x: Any) -> Any:
        """Return the density."""
        return np.exp(self.logpdf(x))


def methods(stats: Any) -> Iterator[tuple[type, str, Rule]]:
    """Return the methods of SciPy's classes, by their names."""
    for owner, rules in ((stats.rv_continuous, _CONTINUOUS), (stats.rv_discrete, _DISCRETE)):
        for name, rule in (rules | _CUMULATIVE).items():
            yield owner, name, rule
    yield type(stats.t), "_logpdf", _t_logpdf
    normal = type(stats.multivariate_normal)
    yield normal, "logpdf", _normal_logpdf
    yield normal, "pdf", _normal_pdf
    yield normal, "__call__", _Normal


FUNCTIONS: dict[str, dict[str, Rule]] = {
    "scipy.special": _SPECIAL,
    "scipy.linalg": _LINALG,
    "scipy.spatial.distance": _DISTANCE,
    "scipy.stats": {},  # which has methods
}
