"""Distributions of `scipy.stats` on tracers: SciPy's own formulas of each, without its checks of the arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gradcli.pyfunc.tracer import Rule


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


FUNCTIONS: dict[str, Rule] = {}
