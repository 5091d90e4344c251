"""The error and gamma functions, with SciPy and without it: the same numbers, to the last digits, and at every pole."""

import math
import subprocess
import sys
from functools import partial

import mpmath
import numpy as np
import pytest
from conftest import HANG, each, environment, long
from numpy.testing import assert_allclose

from gradcli import evaluate, parse, vjp
from gradcli.engine import functions

inf, nan = math.inf, math.nan

WITHOUT = "import sys; sys.modules['scipy'] = None\n"


@pytest.fixture(params=["with SciPy", "without SciPy"], autouse=True)
def scipy(request, monkeypatch):
    """Run each test twice; without SciPy, its import fails."""
    if request.param == "with SciPy":
        pytest.importorskip("scipy.special")
    else:
        monkeypatch.setitem(sys.modules, "scipy", None)
        monkeypatch.setitem(sys.modules, "scipy.special", None)
    functions._special.cache_clear()
    yield request.param
    functions._special.cache_clear()


def values_of(expression, x):
    """Return an expression and its slope at all points."""
    graph = parse(f"y = {expression}")
    (value,) = evaluate(graph, {"x": np.array(x)}).values()
    (slope,) = evaluate(vjp(graph), {"x": np.array(x), "y.v": np.ones(1)}).values()
    return value, slope


def _zeta(s, q):
    """Return Hurwitz's zeta function, below 0 by the terms up to there, which mpmath does not sum."""
    below = max(0, math.ceil(-q))
    return mpmath.fsum(1 / (q + k) ** s for k in range(below)) + mpmath.zeta(s, q + below)


EXACT = {
    "erf(x)": (mpmath.erf, lambda x: 2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-(x**2))),
    "erfc(x)": (mpmath.erfc, lambda x: -2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-(x**2))),
    "i0(x)": (partial(mpmath.besseli, 0), partial(mpmath.besseli, 1)),
    "i1(x)": (partial(mpmath.besseli, 1), lambda x: (mpmath.besseli(0, x) + mpmath.besseli(2, x)) / 2),
    "zeta(2, x)": (partial(_zeta, 2), lambda x: -2 * _zeta(3, x)),
    "zeta(15, x)": (partial(_zeta, 15), lambda x: -15 * _zeta(16, x)),
    "gamma(x)": (mpmath.gamma, lambda x: mpmath.gamma(x) * mpmath.psi(0, x)),
    "lgamma(x)": (lambda x: mpmath.log(abs(mpmath.gamma(x))), lambda x: mpmath.psi(0, x)),
    "digamma(x)": (lambda x: mpmath.psi(0, x), lambda x: mpmath.psi(1, x)),
    "polygamma(1, x)": (lambda x: mpmath.psi(1, x), lambda x: mpmath.psi(2, x)),
    "polygamma(2, x)": (lambda x: mpmath.psi(2, x), lambda x: mpmath.psi(3, x)),
    "polygamma(5, x)": (lambda x: mpmath.psi(5, x), lambda x: mpmath.psi(6, x)),
}
POINTS = [0.1, 0.5, 1.0, 1.5, 2.75, 4.0, 8.5, 20.25, -0.1, -0.5, -0.9, -1.1, -1.5, -2.75, -6.4, -20.25, 1e-9, -1e-9]


@pytest.mark.parametrize("expression", EXACT)
def test_values_and_slopes(expression):
    found = values_of(expression, POINTS)
    with mpmath.workdps(40):
        for numbers, exact in zip(found, EXACT[expression], strict=True):
            assert_allclose(numbers, [float(exact(mpmath.mpf(x))) for x in POINTS], rtol=2e-13, atol=1e-300)


# expression, x, the value, the slope: as in PyTorch, which lacks gamma
POLES = [
    ("erf(x)", inf, 1, 0),
    ("erf(x)", -inf, -1, 0),
    ("erfc(x)", -inf, 2, 0),
    ("erfc(x)", 26.0, 5.663192408856143e-296, -2.9470e-294),
    ("gamma(x)", 0.0, inf, -inf),
    ("gamma(x)", -0.0, -inf, -inf),
    ("gamma(x)", 5e-324, inf, -inf),
    ("gamma(x)", -5e-324, -inf, -inf),
    ("gamma(x)", -1.0, nan, nan),
    ("gamma(x)", 171.5, 9.483367566824795e307, inf),
    ("gamma(x)", 172.0, inf, inf),
    ("gamma(x)", inf, inf, inf),
    ("lgamma(x)", 0.0, inf, -inf),
    ("lgamma(x)", -0.0, inf, inf),
    ("lgamma(x)", 5e-324, 744.4400719213812, -inf),
    ("lgamma(x)", -5e-324, 744.4400719213812, inf),
    ("lgamma(x)", -1.0, inf, nan),
    ("lgamma(x)", 1e308, inf, 709.1962086421661),
    ("lgamma(x)", inf, inf, inf),
    ("lgamma(x)", -inf, inf, nan),
    ("digamma(x)", 0.0, -inf, inf),
    ("digamma(x)", -0.0, inf, inf),
    ("digamma(x)", -1.0, nan, inf),
    ("digamma(x)", 5e-324, -inf, inf),
    ("digamma(x)", 1e-300, -1e300, inf),
    ("digamma(x)", 1e300, 690.7755278982137, 1e-300),
    ("digamma(x)", inf, inf, 0),
    ("digamma(x)", -inf, nan, inf),
    ("polygamma(1, x)", 0.0, inf, -inf),
    ("polygamma(1, x)", -3.0, inf, -inf),
    ("polygamma(1, x)", -1e17, inf, -inf),
    ("polygamma(1, x)", inf, 0, 0),
    ("polygamma(2, x)", 0.0, -inf, inf),
    ("polygamma(2, x)", -inf, -inf, inf),
    ("polygamma(2, x)", 1e-300, -inf, inf),
]


@each(("expression", "x", "value", "slope"), POLES)
def test_poles_and_ends(expression, x, value, slope):
    (found,), (found_slope,) = values_of(expression, [x])
    assert_allclose(found, value, rtol=1e-12)
    assert_allclose(found_slope, slope, rtol=1e-4)


@pytest.mark.parametrize("expression", EXACT)
def test_nan(expression):
    (value,), (slope,) = values_of(expression, [nan])
    assert np.isnan(value)
    assert np.isnan(slope) or expression == "i1(x)"  # PyTorch: 1/2


FAR = """
import math
import numpy as np
from gradcli.engine.functions import polygamma
for x in (-1e6 - 0.5, -1e10 - 0.5, -1e15 - 0.5, -2.0**50 - 0.25):
    one, two, three = (float(polygamma(np.full(1, n), np.array([x]))[0]) for n in (1.0, 2.0, 3.0))
    c, s = {-0.5: (0.0, 1.0), -0.25: (-0.5**0.5, 0.5**0.5)}[math.fmod(x, 1)]
    print(abs(one - (math.pi / s)**2 + 1 / -x), abs(two + 2 * math.pi**3 * c / s**3 + 1 / x**2), three > 100)
"""


@long
def test_far_below_zero_in_no_time(scipy):
    """A sum with a term for each step to 0 would not end; SciPy's could not even be interrupted."""
    script = FAR if scipy == "with SciPy" else WITHOUT + FAR
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment(), capture_output=True, timeout=HANG, check=True, text=True)
    for line in done.stdout.splitlines():
        one, two, three = line.split()
        assert float(one) < 1e-12
        assert float(two) < 1e-12
        assert three == "True"


def test_orders_that_differ_from_point_to_point():
    n, x = np.array([[0.0], [1], [2], [7], [nan]]), np.array([2.5, -2.5, -0.5, -40.75])
    with np.errstate(all="ignore"):
        found = functions.polygamma(n, x)
    with mpmath.workdps(40):
        exact = [[float(mpmath.psi(int(k), mpmath.mpf(z))) for z in x] for k in n[:4, 0]]
    assert_allclose(found[:4], exact, rtol=2e-13)
    assert np.isnan(found[4]).all()


def test_orders_that_are_no_order_are_nan_at_once():
    n = np.array([-1, 0.5, 1e6, 1e300, nan, np.inf])
    assert np.isnan(functions.polygamma(n, np.full(6, 2.0))).all()


@pytest.mark.parametrize("name", ["erf", "erfc", "gamma", "lgamma", "digamma", "polygamma"])
def test_results_go_where_they_are_wanted(name):
    x = np.linspace(-2.3, 4, 10).reshape(2, 5)
    arguments = (np.full(1, 2.0), x) if name == "polygamma" else (x,)
    out = np.empty((2, 5))
    with np.errstate(all="ignore"):
        expected = getattr(functions, name)(*arguments)
        assert getattr(functions, name)(*arguments, out=out) is out
    assert np.array_equal(out, expected)
