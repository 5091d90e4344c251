"""Functions as people write them in NumPy and SciPy: traced, with the derivatives of central differences.

`whole.py` has whole ones; `features.txt` has single features, and what is refused, with the reason.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import linecache
import math
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import gradcli
from gradcli.pyfunc.tracer import leaves

scipy = pytest.importorskip("scipy")
for _name in ("integrate", "interpolate", "linalg", "optimize", "spatial.distance", "special", "stats"):
    importlib.import_module(f"scipy.{_name}")
whole = importlib.import_module("pyfunc.whole")

pytestmark = pytest.mark.every_case

POINT = {
    "w": np.array([0.7, 1.3]),
    "v": np.array([0.3, -1.2, 2.1]),
    "M": np.array([[2.0, 0.3, -0.5], [0.1, 1.5, 0.4], [-0.7, 0.2, 3.0]]),
}
MODULES = {"np": np, "math": math, "functools": functools, "json": json, "pickle": pickle, "scipy": scipy}
LINES = [line for line in Path(__file__).with_name("features.txt").read_text("utf-8").splitlines() if line[0] != "#"]
TRACED = [line for line in LINES if line[0] != "!"]
REFUSED = [tuple(line[2:].split(" | ", 1)) for line in LINES if line[0] == "!"]


def data():
    """Return the arrays of a module, new ones each time: a function may write into them."""
    random = np.random.default_rng(1)
    return {
        "X": random.normal(size=(5, 2)),
        "T": np.linspace(0.1, 1.0, 5),
        "A": np.array([[1.0, 2.0, 0.5], [0.0, 1.5, -1.0], [0.3, 0.2, 2.0]]),
        "S": np.array([[2.0, 0.5, 0.1], [0.5, 3.0, -0.4], [0.1, -0.4, 1.5]]),
    }


def function(code):
    """Return the function of a line, and its arguments."""
    names = [name for name in POINT if re.search(rf"\b{name}\b", code)]
    *statements, result = code.split("; ")
    source = "".join([f"def f({', '.join(names)}):\n", *(f"    {s}\n" for s in statements), f"    return {result}\n"])
    file = f"{code}.py"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    names_of = MODULES | data()
    exec(compile(source, file, "exec"), names_of)
    return names_of["f"], {name: POINT[name].copy() for name in names}


def flat(result):
    return np.concatenate([np.ravel(np.asarray(x, float)) for _, x in leaves(result, "y")])


def central(f, arguments, h=1e-6):
    """Return J by central differences."""
    columns = []
    for name, value in arguments.items():
        for k in np.ndindex(np.shape(value)):
            e = np.zeros(np.shape(value))
            e[k] = h
            more, less = (flat(f(**{**arguments, name: np.array(value + s * e)[()]})) for s in (1, -1))
            columns.append((more - less) / (2 * h))
    return np.array(columns).T


def check(f, arguments):
    graph = gradcli.trace(f)(**arguments)
    at = {name: np.asarray(value, float) for name, value in arguments.items()}
    values = gradcli.evaluate(graph, {name: value[..., None] for name, value in at.items()})
    np.testing.assert_allclose(flat([value[..., 0] for value in values.values()]), flat(f(**arguments)), rtol=1e-9)
    jacobian = gradcli.numeric_jacobian(graph, list(at), at)
    np.testing.assert_allclose(jacobian, central(f, arguments), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("code", TRACED)
def test_what_people_write_is_traced(code):
    check(*function(code))


WHOLE = [f for _, f in inspect.getmembers(whole, inspect.isfunction) if f.__module__ == whole.__name__]


@pytest.mark.parametrize("f", WHOLE, ids=lambda f: f.__name__)
def test_whole_functions_are_traced(f):
    defaults = {name: p.default for name, p in inspect.signature(f).parameters.items()}
    check(f, {name: np.array(x) if isinstance(x, tuple) else x for name, x in defaults.items()})


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # of np.matrix
@pytest.mark.parametrize(("message", "code"), REFUSED)
def test_what_cannot_be_traced_is_named_as_it_is_written(message, code):
    f, arguments = function(code)
    with pytest.raises(gradcli.InputError) as refused:
        gradcli.trace(f)(**arguments)
    assert refused.value.message == message
    assert refused.value.span.line == "return " + code.rpartition("; ")[2]


def test_most_is_traced():
    assert len(TRACED) + len(WHOLE) >= 138
    assert len(WHOLE) >= 30


def test_an_array_that_is_a_default_may_be_written():
    def lorenz(x, dxdt=np.zeros(3)):  # noqa: B008
        dxdt[0], dxdt[1] = x[1] - x[0], x[0] * x[2]
        return dxdt

    np.testing.assert_allclose(gradcli.jacobian(lorenz)(POINT["v"]), [[-1, 1, 0], [2.1, 0, 0.3], [0, 0, 0]])
    assert type(lorenz.__defaults__[0]) is np.ndarray


def test_the_users_arrays_are_what_they_were():
    f, arguments = function("B = A.copy(); B[0] = v; X.dot(w)[:3] * B")
    before = f.__globals__["X"]
    gradcli.trace(f)(**arguments)
    assert f.__globals__["X"] is before
    with pytest.raises(ZeroDivisionError):
        gradcli.trace(function("X.dot(w) / (1 // 0)")[0])(POINT["w"])
    assert f.__globals__["X"] is before
    assert type(np.linspace(0, 1, 3)) is np.ndarray
