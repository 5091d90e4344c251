"""Functions of `scipy.special` that NumPy's protocols do not reach, on tracers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from gradcli.pyfunc.functions.reductions import reduced
from gradcli.pyfunc.tape import aside, running
from gradcli.pyfunc.tracer import Rule, contains, known_values, lift, traced
from gradcli.vocabulary import FUNCTIONS


def replacements() -> dict[str, Rule]:
    """Return the replacements of SciPy's functions, which take tracers; none where SciPy is not loaded."""
    special = sys.modules.get("scipy.special")
    functions: dict[str, Callable[..., Any]]
    functions = {"logsumexp": _logsumexp, "softmax": _softmax, "log_softmax": _log_softmax, "polygamma": _polygamma}
    return {name: _or_original(getattr(special, name), new) for name, new in functions.items()} if special else {}


def _or_original(original: Callable[..., Any], new: Callable[..., Any]) -> Rule:
    @wraps(original)
    def call(*args: Any, **settings: Any) -> Any:
        is_traced = running() is not None and (contains(args) or contains([*settings.values()]))
        return new(original, *args, **settings) if is_traced else original(*args, **settings)

    return call


def _logsumexp(original: Any, a: Any, axis: Any = None, b: Any = None, keepdims: bool = False) -> Any:
    if b is not None:
        return _logsumexp(original, a + np.log(b), axis, None, keepdims)
    known = known_values(a)
    with aside():
        value = None if known is None else original(known, axis=axis, keepdims=keepdims)
    return traced(reduced("logsumexp")(a, axis, keepdims=keepdims), value)


def _log_softmax(original: Any, x: Any, axis: Any = None) -> Any:
    shifted = x - np.max(x, axis=axis, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


def _softmax(original: Any, x: Any, axis: Any = None) -> Any:
    return np.exp(_log_softmax(original, x, axis))


def _polygamma(original: Any, n: Any, x: Any) -> Any:
    known = known_values(x)
    with aside():
        value = None if known is None else original(n, known)
    return traced(FUNCTIONS["polygamma"](lift(n), lift(x)), value)
