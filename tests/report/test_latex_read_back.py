"""LaTeX says what the program computes: each statement and each entry of J, read back, is worth its number."""

from __future__ import annotations

import re

import numpy as np
import pytest
from conftest import some
from latex_reader import worth
from numpy.testing import assert_allclose

EXPRESSIONS = [
    "x - (-3) + (-2 - z) - (x - (z - 1)) + (-x*z - 3)*z",
    "x - (-1/3)*z - (-x)/(-2) - x*(-1/3) + (-0.5)*z*(-0.25)*x - x**2/(-7)",
    "(x**2)**z + x**z**2 + (-x)**2 - x**-2*z - (1/3)**x + (-2)**3*x + 0.5**-x + (2/3)**z*(-x)**3",
    "-0.3*x**2 - 1e-7*x/z - 0.25*x*z + (-0.5)**2*z - x**-0.3",
    "0.1**x - (-0.1)*z*2.5e-7**x + 1e30*x**2 - 1.5e-30*z*x**3",
    "abs(x)**2*z + abs(x - z)**3 - 1/abs(z)**2",
    "abs(abs(x) - abs(z))**2*abs(x)",
    "sin(x)**2*cos(z)**3 - tan(x)/sin(x*z)**2 + cos(-x)",
    "exp(-x**2/2)/exp(z)**2 + e**(x*z) + log(x)**2 - log(x*z)/log2(z) + sqrt(x)**3/sqrt(x + z)",
    "sinh(x)**2*tanh(z)**2/cosh(x) - sech(x*z)",
    "sigmoid(x)**2*relu(z)**3 - softplus(x)**2 + silu(x)*gelu(z) + leaky_relu(-x)**2",
    "hypot(x, z)**2 - atan2(x, -z)**3 + cbrt(x)**2 - log10(x)**2 - expm1(z)**2",
    "erf(x)**2 - erfc(z)**2 + digamma(x)**2 + gamma(x)",
    "maximum(x, z)**2 - minimum(x, 2)*clip(z, 0, x)**2 + heaviside(x, 1)*x**2",
    "where(x > z, x**2, -z)**3",
    "2*where(x > z, x, z)*x - where(x <= z, x, z)**2",
    "where(~(x > z), x**2, z)",
    "where(~((x > 0) & (z < 1)) | (x == 2), x**2*z, z**3)",
    "where((x > 0) & ((z < 1) | (x != 2)), x**2*z, z**3)",
    "where((x >= 9) & (z < 1) | (x != 2), x**2*z, z**3)",
    "where((x >= 9) | ~(z < 9), x**2*z, x*z**3)*x",
    "(x*2 % z)*2*x - x % z % 3 + x*(z % x)",
    "floor(x*3)*x**2 - ceil(z)*z**2 + sign(-x)*z**2",
    "pi*x**2 + e*z",
    "x**2/3e300*1e300 + 10**20*x**2/10**20",
]
POINTS = [{"x": 0.7, "z": 1.6}, {"x": 2.3, "z": 0.4}]


@pytest.mark.parametrize("expression", some(EXPRESSIONS))
def test_statement_and_jacobian_can_be_read_back(cli, expression):
    text = cli.done("jacobian", f"y={expression}+0*x*z", "-f", "latex").out
    whole = re.sub(r" \\\\\n&(?:\\quad )?", " ", text)  # a long formula goes on in the next line
    lines = re.findall(r"^(.+?) &= (.*?)(?: \\\\)?$", whole, re.MULTILINE)
    (_, statement), (left, by_x), (right, by_z), *definitions = lines
    assert (left, right) == (r"\frac{\partial y}{\partial x}", r"\frac{\partial y}{\partial z}")
    for point in POINTS:
        found = cli.json("jacobian", f"y={expression}+0*x*z", "--at", ",".join(f"{n}={v}" for n, v in point.items()))
        assert_allclose(worth(statement, point), found["value"]["y"], rtol=1e-9, err_msg=statement)
        for name, definition in definitions:  # of what entries mention
            point = point | {name: worth(definition, point)}
        for entry, expected in zip((by_x, by_z), found["jacobian"][0], strict=True):
            assert_allclose(worth(entry, point), expected, rtol=1e-9, atol=1e-13, err_msg=entry)


def elements(name, array):
    """Return the elements of an array by what a textbook calls them."""
    array = np.asarray(array, float)
    return {name % ",".join(map(str, key)): array[key] for key in np.ndindex(array.shape)}


def test_elements_have_subscripts_and_can_be_read_back(cli):
    """x[1] is x_{1}; W1[0,1] is no element of W, and u[1] has brackets, for there is a u1."""
    system = "y=x[0]**2*W1[0,1]-x[1]*W[1,0]**3+x[2]*x[0]/W1[1,0]-u[1]**2*u1"
    arrays = {"x": [1.5, 2, 3], "W": [[1, 2], [3, 4]], "W1": [[5, 6], [7, 8]], "u": [2, 3]}
    at = ",".join(f"{name}={value}" for name, value in arrays.items()) + ",u1=4"
    shown = cli.done("jacobian", system, "--at", at, "-f", "latex").out
    data = cli.json("jacobian", system, "--at", at)
    names = {"u_{1}": 4.0}
    for name, latex in {"x": "x_{%s}", "W": "W_{%s}", "W1": "(W_{1})_{%s}", "u": "u[%s]"}.items():
        names |= elements(latex, arrays[name])
    formulas = dict(re.findall(r"^(.+?) &= (.*?) = [-\d.]+(?: .*)?$", shown, re.MULTILINE))
    expected = dict(zip(data["columns"], data["jacobian"][0], strict=True))
    assert_allclose(worth(formulas["y"], names), data["value"]["y"], rtol=1e-9)
    for name, latex in (("x[0]", "x_{0}"), ("W1[1,0]", "(W_{1})_{1,0}"), ("W[1,0]", "W_{1,0}"), ("u[1]", "u[1]")):
        assert_allclose(worth(formulas[rf"\frac{{\partial y}}{{\partial {latex}}}"], names), expected[name], rtol=1e-9)
