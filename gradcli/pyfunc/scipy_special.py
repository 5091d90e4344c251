"""Functions of `scipy.special` that NumPy's protocols do not reach, on tracers."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.pyfunc.functions.reductions import reduced
from gradcli.pyfunc.tape import aside
from gradcli.pyfunc.tracer import Rule, known_values, lift, traced
from gradcli.vocabulary import FUNCTIONS as VOCABULARY


def _logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False) -> Any:
    from scipy import special

    if b is not None:
        return _logsumexp(a + np.log(b), axis, None, keepdims)
    known = known_values(a)
    with aside():
        value = None if known is None else special.logsumexp(known, axis=axis, keepdims=keepdims)
    return traced(reduced("logsumexp")(a, axis, keepdims=keepdims), value)


def _log_softmax(x: Any, axis: Any = None) -> Any:
    shifted = x - np.max(x, axis=axis, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


def _polygamma(n: Any, x: Any) -> Any:
    from scipy import special

    known = known_values(x)
    with aside():
        value = None if known is None else special.polygamma(n, known)
    return traced(VOCABULARY["polygamma"](lift(n), lift(x)), value)


FUNCTIONS: dict[str, Rule] = {
    "logsumexp": _logsumexp,
    "softmax": lambda x, axis=None: np.exp(_log_softmax(x, axis)),
    "log_softmax": _log_softmax,
    "polygamma": _polygamma,
}
