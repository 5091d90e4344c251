"""Functions of one number, and a few of two: powers and logarithms, trigonometric, hyperbolic and special functions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import factorial

from gradcli.graph.construct import call, corner, equal, where
from gradcli.graph.node import Exact, Node, compare, const
from gradcli.graph.operation import Corner, Operation, function, no_slope, spelled

# Of a Bessel function: from there on its asymptotic series is exact to the last digits, and the terms of both series.
_FAR = 20
_NEAR_TERMS, _FAR_TERMS = 36, 20


def _bell(x: Node) -> Node:
    return 2 * call("exp", -(x**2)) / call("sqrt", const("pi"))


def normal_density(x: Node) -> Node:
    """Return the density of the normal distribution."""
    return call("exp", -(x**2) / 2) / call("sqrt", 2 * const("pi"))


def _lost_beside_1(x: Node) -> Node:
    return compare("not", call("abs", x) > Fraction(1, 2**52))  # a NaN, too


def _lowered_logaddexp(a: Node, b: Node) -> Node:
    far = call("maximum", a, b) + call("softplus", -call("abs", a - b))
    return where(equal(a, b), a + call("log", 2), far)  # two infinities have no difference


def _modified_bessel(order: int, x: Node) -> Node:
    """Return the modified Bessel function of the first kind of order 0 or 1, to the last digits of float64.

    Source: M. Abramowitz and I. Stegun, "Handbook of Mathematical Functions" (1964), 9.6.10 and 9.7.1.
    """
    near = _polynomial([Fraction(1, factorial(k) * factorial(k + order)) for k in range(_NEAR_TERMS)], x**2 / 4)
    coefficients = [Fraction(1)]
    for k in range(1, _FAR_TERMS):
        coefficients.append(coefficients[-1] * Fraction((2 * k - 1) ** 2 - 4 * order, 8 * k))
    size = call("abs", x)
    half = call("exp", size / 2)  # whose square overflows last
    far = half * (_polynomial(coefficients, 1 / size) / call("sqrt", 2 * const("pi") * size)) * half
    if order:
        near, far = near * (x / 2), far * call("sign", x)
    return where(size <= _FAR, near, far)


def _polynomial(coefficients: Sequence[Exact], x: Node) -> Node:
    """Return the polynomial in x, the constant coefficient first, by Horner's rule."""
    *rest, last = coefficients
    total: Node | Exact = last
    for coefficient in reversed(rest):
        total = total * x + coefficient
    assert isinstance(total, Node)
    return total


ROWS: dict[str, Operation] = {
    # Powers and logarithms
    "sqrt": function(
        lambda y, x: 1 / (2 * y),
        degree=Fraction(1, 2),
        spelling=spelled("sqrt", llvm="llvm.sqrt", latex=r"\sqrt{{{}}}"),
    ),
    "cbrt": function(
        lambda y, x: 1 / (3 * y**2),
        odd=True,
        degree=Fraction(1, 3),
        spelling=spelled(
            "cbrt",
            torch="(torch.sign({0}) * torch.abs({0}) ** (1 / 3))",
            onnx="Mul(Sign({0}), Pow(Abs({0}), Div(1, 3)))",
            sympy="",
            latex=r"\sqrt[3]{{{}}}",
        ),
    ),
    "exp": function(lambda y, x: y, spelling=spelled("exp")),
    "exp2": function(lambda y, x: y * call("log", 2), lowered=lambda x: call("pow", 2, x)),
    # In ONNX: tanh(x/2)·(exp(x) + 1), which keeps its digits near 0.
    "expm1": function(
        lambda y, x: call("exp", x), spelling=spelled("expm1", onnx="Mul(Tanh(Mul({0}, 0.5)), Add(Exp({0}), 1))")
    ),
    "log": function(lambda y, x: 1 / x, poles=True, spelling=spelled("log", latex=r"\log")),
    "log1p": function(lambda y, x: 1 / (1 + x), poles=True, spelling=spelled("log1p", onnx="")),
    "log2": function(
        lambda y, x: 1 / (x * call("log", 2)),
        poles=True,
        spelling=spelled("log2", onnx="Div(Log({0}), Log(2))", latex=r"\log_{2}"),
    ),
    "log10": function(
        lambda y, x: 1 / (x * call("log", 10)),
        poles=True,
        spelling=spelled("log10", onnx="Div(Log({0}), Log(10))", latex=r"\log_{10}"),
    ),
    "logaddexp": function(
        lambda y, a, b: call("sigmoid", a - b), lambda y, a, b: call("sigmoid", b - a), lowered=_lowered_logaddexp
    ),
    "hypot": function(
        lambda y, a, b: a / y,
        lambda y, a, b: b / y,
        spelling=spelled("hypot", onnx="Sqrt(Add(Mul({0}, {0}), Mul({1}, {1})))", sympy=""),
    ),
    # Trigonometric
    "sin": function(lambda y, x: call("cos", x), spelling=spelled("sin", latex=r"\sin")),
    "cos": function(lambda y, x: -call("sin", x), spelling=spelled("cos", latex=r"\cos")),
    "tan": function(lambda y, x: 1 + y**2, poles=True, spelling=spelled("tan", latex=r"\tan")),
    "sec": function(
        lambda y, x: y * call("tan", x),
        lowered=lambda x: 1 / call("cos", x),
        poles=True,
        spelling=spelled(sympy="sec", latex=r"\sec"),
    ),
    "csc": function(
        lambda y, x: -(y * call("cot", x)),
        lowered=lambda x: 1 / call("sin", x),
        poles=True,
        spelling=spelled(sympy="csc", latex=r"\csc"),
    ),
    "cot": function(
        lambda y, x: -(1 + y**2),
        lowered=lambda x: call("cos", x) / call("sin", x),
        poles=True,
        spelling=spelled(sympy="cot", latex=r"\cot"),
    ),
    "asin": function(
        lambda y, x: 1 / call("sqrt", 1 - x**2), odd=True, spelling=spelled("asin", numpy="arcsin", latex=r"\arcsin")
    ),
    "acos": function(
        lambda y, x: -(1 / call("sqrt", 1 - x**2)), spelling=spelled("acos", numpy="arccos", latex=r"\arccos")
    ),
    "atan": function(lambda y, x: 1 / (1 + x**2), odd=True, spelling=spelled("atan", numpy="arctan", latex=r"\arctan")),
    # PyTorch: 0 at the origin, where the angle has no slope.
    "atan2": function(
        lambda y, a, b: corner(equal(a**2 + b**2, 0), 0, b / (a**2 + b**2)),
        lambda y, a, b: corner(equal(a**2 + b**2, 0), 0, -(a / (a**2 + b**2))),
        multiplies=(0, 1),
        corner=Corner(lambda y, a, b: equal(a, 0) & equal(b, 0), "0", (0, 1)),
        spelling=spelled("atan2", numpy="arctan2", onnx="", sympy=""),
    ),
    # Hyperbolic
    "sinh": function(lambda y, x: call("cosh", x), odd=True, spelling=spelled("sinh", sympy="", latex=r"\sinh")),
    "cosh": function(lambda y, x: call("sinh", x), spelling=spelled("cosh", sympy="", latex=r"\cosh")),
    "tanh": function(lambda y, x: 1 - y**2, odd=True, spelling=spelled("tanh", sympy="", latex=r"\tanh")),
    "sech": function(lambda y, x: -(y * call("tanh", x)), lowered=lambda x: 1 / call("cosh", x)),
    "asinh": function(lambda y, x: 1 / call("sqrt", 1 + x**2), odd=True, spelling=spelled("asinh", numpy="arcsinh")),
    # PyTorch: finite below -1 too, where the function is not.
    "acosh": function(
        lambda y, x: 1 / (call("sqrt", call("abs", x) - 1) * call("sqrt", call("abs", x) + 1)),
        spelling=spelled("acosh", numpy="arccosh"),
    ),
    "atanh": function(lambda y, x: 1 / (1 - x**2), poles=True, odd=True, spelling=spelled("atanh", numpy="arctanh")),
    # Special
    "erf": function(lambda y, x: _bell(x), odd=True, spelling=spelled("erf", numpy="", jax="jax.scipy.special.erf")),
    "erfc": function(
        lambda y, x: -_bell(x),
        spelling=spelled("erfc", numpy="", jax="jax.scipy.special.erfc", onnx="Sub(1, Erf({0}))"),
    ),
    # The normal distribution.  Of 1 + erf nothing is left where x is far below 0.
    "ndtr": function(
        lambda y, x: normal_density(x),
        lowered=lambda x: call("erfc", -x / call("sqrt", 2)) / 2,
        formula=lambda x: (1 + call("erf", x / call("sqrt", 2))) / 2,
    ),
    # Modified Bessel functions of the first kind.  PyTorch: where x is lost beside 1, the slope of i1 is 1/2.
    "i0": function(
        lambda y, x: call("i1", x),
        lowered=lambda x: _modified_bessel(0, x),
        spelling=spelled(numpy="i0", torch="special.i0", jax="jax.scipy.special.i0"),
    ),
    "i1": function(
        lambda y, x: corner(_lost_beside_1(x), Fraction(1, 2), call("i0", x) - y / x),
        lowered=lambda x: _modified_bessel(1, x),
        odd=True,
        spelling=spelled(torch="special.i1", jax="jax.scipy.special.i1"),
    ),
    "gamma": function(
        lambda y, x: y * call("digamma", x),
        poles=True,
        spelling=spelled(jax="jax.scipy.special.gamma", c="tgamma", javascript="gamma", sympy="gamma"),
    ),
    "lgamma": function(
        lambda y, x: call("digamma", x),
        poles=True,
        spelling=spelled("lgamma", numpy="", jax="jax.scipy.special.gammaln", onnx="", sympy="loggamma"),
    ),
    "digamma": function(
        lambda y, x: call("polygamma", 1, x),
        poles=True,
        spelling=spelled(torch="digamma", jax="jax.scipy.special.digamma", c="digamma", javascript="digamma"),
    ),
    "polygamma": function(
        lambda y, n, x: 0,
        lambda y, n, x: call("polygamma", n + 1, x),
        poles=True,
        spelling=spelled(c="polygamma", javascript="polygamma"),
    ),
    # Hurwitz's: the sum of 1/(q + k)**x over k = 0, 1, 2, …
    "zeta": function(
        no_slope,
        lambda y, x, q: -(x * call("zeta", x + 1, q)),
        poles=True,
        spelling=spelled(torch="special.zeta", jax="jax.scipy.special.zeta", c="zeta", javascript="zeta"),
    ),
}
