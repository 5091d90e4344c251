"""Functions of `scipy.spatial.distance` on tracers, composed of NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.errors import InputError
from gradcli.pyfunc.tracer import Rule, mutable


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


FUNCTIONS: dict[str, Rule] = {
    "cdist": _cdist,
    "pdist": _pdist,
    "squareform": _squareform,
    **{name: _of_two(metric) for name, metric in _METRICS.items()},
}
