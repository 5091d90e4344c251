"""The slopes that the table states against those that SymPy works out."""

import numpy as np
import pytest
import sympy
from conftest import each, long
from numpy.testing import assert_allclose
from test_operations import DOMAINS

from gradcli import evaluate
from gradcli.algebra.functions import SYMPY, function
from gradcli.graph.construct import call
from gradcli.graph.graph import Graph
from gradcli.graph.node import compare, const, elementwise, leaf
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.vjp import slope, textbook_slope

# Klambauer and others, "Self-normalizing neural networks" (2017).
_SCALE, _ALPHA = sympy.Rational("1.0507009873554805"), sympy.Rational("1.6732632423543772")
# What each elementwise operation is to SymPy; a condition is given as a number that is positive where it holds.
FORMS = {op: function(op) for op in SYMPY} | {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "neg": lambda a: -a,
    "pow": sympy.Pow,
    "identity": lambda a: a,
    "exp2": lambda a: 2**a,
    "cbrt": lambda a: sympy.sign(a) * sympy.cbrt(sympy.Abs(a)),
    "hypot": lambda a, b: sympy.sqrt(a**2 + b**2),
    "atan2": sympy.atan2,
    "sinh": sympy.sinh,
    "cosh": sympy.cosh,
    "tanh": sympy.tanh,
    "sech": sympy.sech,
    "i0": lambda a: sympy.besseli(0, a),
    "i1": lambda a: sympy.besseli(1, a),
    "digamma": sympy.digamma,
    "polygamma": lambda a: sympy.polygamma(2, a),
    "zeta": lambda a: sympy.zeta(2, a),
    "relu": lambda a: sympy.Max(a, 0),
    "leaky_relu": lambda a, b: sympy.Piecewise((a, a > 0), (a * b, True)),
    "sigmoid": lambda a: 1 / (1 + sympy.exp(-a)),
    "softplus": lambda a: sympy.log(1 + sympy.exp(a)),
    "silu": lambda a: a / (1 + sympy.exp(-a)),
    "gelu": lambda a: a * (1 + sympy.erf(a / sympy.sqrt(2))) / 2,
    "mish": lambda a: a * sympy.tanh(sympy.log(1 + sympy.exp(a))),
    "elu": lambda a, b: sympy.Piecewise((a, a > 0), (b * (sympy.exp(a) - 1), True)),
    "selu": lambda a: _SCALE * sympy.Piecewise((a, a > 0), (_ALPHA * (sympy.exp(a) - 1), True)),
    "celu": lambda a, b: sympy.Piecewise((a, a > 0), (b * (sympy.exp(a / b) - 1), True)),
    "hardtanh": lambda a, low, high: sympy.Min(sympy.Max(a, low), high),
    "logsigmoid": lambda a: -sympy.log(1 + sympy.exp(-a)),
    "softsign": lambda a: a / (1 + sympy.Abs(a)),
    "tanhshrink": lambda a: a - sympy.tanh(a),
    "logaddexp": lambda a, b: sympy.log(sympy.exp(a) + sympy.exp(b)),
    "ndtr": lambda a: (1 + sympy.erf(a / sympy.sqrt(2))) / 2,
    "lerp": lambda a, b, w: a + w * (b - a),
    "huber": lambda a, d: sympy.Piecewise((a**2 / 2, sympy.Abs(a) <= d), (d * (sympy.Abs(a) - d / 2), True)),
    "log_loss": lambda p, t: -t * sympy.log(p) - (1 - t) * sympy.log(1 - p),
    "logistic_loss": lambda a, t: t * sympy.log(1 + sympy.exp(-a)) + (1 - t) * sympy.log(1 + sympy.exp(a)),
    "abs": sympy.Abs,
    "maximum": sympy.Max,
    "minimum": sympy.Min,
    "clamp": lambda a, low, high: sympy.Min(sympy.Max(a, low), high),
    "where": lambda c, a, b: sympy.Piecewise((a, c > 0), (b, True)),
    "corner": lambda c, a, b: sympy.Piecewise((a, c > 0), (b, True)),
}
# SymPy does not differentiate a step, and so no remainder; what is detached has no slope at all.
WITHOUT_SLOPE = {"mod", "fmod", "frac", "heaviside", "detach"}
POINTS = 6


def test_no_operation_is_forgotten():
    assert set(FORMS) | WITHOUT_SLOPE == {op for op, row in OPERATIONS.items() if row.kind == "elementwise"}


def node_of(op, *args):
    """Return the node of an operation, and the number of its first argument that a form takes."""
    if op in ("where", "corner"):
        return elementwise(op, compare("gt", args[0], const(0)), *args[1:]), 0
    if op in ("polygamma", "zeta"):
        return call(op, 2, *args), 1
    return call(op, *args), 0


@long
@each("op", FORMS)
def test_slopes_are_sympys(op):
    domains = DOMAINS[op]
    symbols = sympy.symbols(f"a0:{len(domains)}", real=True)
    leaves = {s.name: leaf() for s in symbols}
    y, first = node_of(op, *leaves.values())
    rng = np.random.default_rng(0)
    points = {name: rng.uniform(*domain, POINTS) for name, domain in zip(leaves, domains, strict=True)}
    slopes = {s.name: slope(y, first + i) for i, s in enumerate(symbols)}
    found = evaluate(Graph.of(leaves, slopes), points)
    for symbol in symbols:
        derivative = sympy.diff(FORMS[op](*symbols), symbol)
        expected = [
            derivative.subs({s: sympy.Rational(points[s.name][k]) for s in symbols}).evalf(30) for k in range(POINTS)
        ]
        assert_allclose(np.broadcast_to(found[symbol.name], POINTS), np.array(expected, dtype=float), rtol=1e-13)


@pytest.mark.parametrize("op", [op for op, row in OPERATIONS.items() if row.textbook])
def test_a_textbooks_slope_is_the_slope(op):
    symbols = sympy.symbols(f"a0:{len(DOMAINS[op])}")
    leaves = {s.name: leaf() for s in symbols}
    rng = np.random.default_rng(1)
    points = {name: rng.uniform(*domain, POINTS) for name, domain in zip(leaves, DOMAINS[op], strict=True)}
    for negative in (False, True):  # a sign is taken out of what is divided
        y = call(op, *(-a if negative else a for a in leaves.values()))
        for i in OPERATIONS[op].textbook:
            found = evaluate(Graph.of(leaves, {"as told": textbook_slope(y, i), "as computed": slope(y, i)}), points)
            assert_allclose(found["as told"], found["as computed"], rtol=1e-9)


@pytest.mark.parametrize("op", [op for op, row in OPERATIONS.items() if row.kind == "step"])
def test_steps_have_the_slope_0(op):
    leaves = {f"a{i}": leaf() for i in range(OPERATIONS[op].arity)}
    y = call(op, *leaves.values())
    assert [slope(y, i).value for i in range(len(leaves))] == [0] * len(leaves)
