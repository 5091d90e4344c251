"""Derivatives by a complex step: of an analytic f, the imaginary part of f(x + ih)/h, in which nothing cancels."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from gradcli.engine.differences import Difference, step_size
from gradcli.engine.lowering import lower
from gradcli.graph.array import Array
from gradcli.graph.graph import scheduled
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS

_STEP = 1e-20  # relative to what moves
_ROUNDING = 1e-13  # of the result, relative to it
_NEAR = 1e-6  # how far from a finite difference without error the result is believed
# What NumPy computes for complex numbers as its analytic continuation.
_ANALYTIC = {op for op, row in OPERATIONS.items() if row.move is not None} - {"cast"} | frozenset(
    ["input", "const", "add", "sub", "mul", "div", "neg", "identity", "pow", "sqrt", "exp", "expm1", "log", "log1p",
     "log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
     "sum", "prod", "max", "min", "cumsum", "cumprod", "matmul", "einsum", "det", "inv", "solve"]
)  # fmt: skip


def is_analytic(wanted: Iterable[Node]) -> bool:
    """Return whether all operations are analytic, and NumPy has them for complex numbers.

    >>> from gradcli.graph.node import elementwise, leaf
    >>> x = leaf()
    >>> is_analytic([elementwise("sin", x) / x]), is_analytic([elementwise("abs", x)])
    (True, False)
    """
    wanted = list(wanted)
    simpler = lower(scheduled(wanted))
    return _ANALYTIC.issuperset(n.op for n in scheduled(simpler[n] for n in wanted))


@np.errstate(all="ignore")
def refined(function: Callable[[Array], Array], difference: Difference, at: Array, direction: Array) -> Difference:
    """Return finite differences with those of a complex step in their place, wherever the two agree.

    They do not where the function is not analytic, or cut open: log at -1, for one.  `function`, `at` and `direction`
    are as for `along`.  Source: Squire and Trapp, "Using complex variables to estimate derivatives of real functions"
    (SIAM Review 40, 1998).

    >>> from gradcli.engine.differences import along
    >>> at, one = np.array([[2.0]]), np.ones((1, 1))
    >>> refined(np.exp, along(np.exp, at, one), at, one).value == np.exp(2.0)
    array([[ True]])
    """
    step = np.exp2(np.floor(np.log2(_STEP * step_size(at, direction))))  # a division by it rounds nothing
    exact = function(at + 1j * step * direction).imag / step
    near = np.abs(exact - difference.value) <= 10 * difference.error + _NEAR * np.abs(difference.value)
    error = np.where(near, np.minimum(difference.error, _ROUNDING * np.abs(exact)), difference.error)
    return replace(difference, value=np.where(near, exact, difference.value), error=error)
