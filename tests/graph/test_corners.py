"""Where a function has a corner, a pole or a tie, the gradient is PyTorch's.

The expressions can be read by PyTorch too: value and gradients are what version 2.13.0 gives in float64 for
`out = …; out.sum().backward()`.
"""

from math import inf, nan

import numpy as np
import pytest
from conftest import each
from numpy.testing import assert_allclose

from gradcli import evaluate, jvp, parse, vjp
from gradcli.errors import InputError

# expression, the values of x, y and z, the value, the gradients of x, y and z
CORNERS = [
    ("elu(x, 2)", (0,), 0, (2,)),
    ("lerp(x, y, z)", (1e17, 1, 1), 1, (0, 1, -1e17)),
    # Ties are shared evenly; `max` and `min` along an axis give all to the first.
    ("maximum(x, y)", (1, 1), 1, (0.5, 0.5)),
    ("minimum(x, y)", (1, 1), 1, (0.5, 0.5)),
    ("maximum(x, 1.0)", (1,), 1, (0.5,)),
    ("maximum(x, y)", (2, 1), 2, (1, 0)),
    ("minimum(x, y)", (2, 1), 1, (0, 1)),
    ("maximum(x, y)", ([1, 2], [[1], [2]]), [[1, 2], [2, 2]], ([0.5, 1.5], [[0.5], [1.5]])),
    ("max(x)", ([2, 2, 1],), 2, ([0.5, 0.5, 0],)),
    ("min(x)", ([2, 1, 1],), 1, ([0, 0.5, 0.5],)),
    ("x.max()", ([[2, 2], [1, 2]],), 2, ([[1 / 3, 1 / 3], [0, 1 / 3]],)),
    ("max(x, dim=0)", ([2, 2, 1],), 2, ([1, 0, 0],)),
    ("max(x, dim=1)", ([[1, 2, 2], [3, 3, 3]],), [2, 3], ([[0, 1, 0], [1, 0, 0]],)),
    ("min(x, dim=0)", ([2, 1, 1],), 1, ([0, 1, 0],)),
    ("min(x, dim=-1, keepdim=True)", ([[1, 1], [3, 2]],), [[1], [2]], ([[1, 0], [0, 1]],)),
    ("amax(x, dim=0)", ([2, 2, 1],), 2, ([0.5, 0.5, 0],)),
    ("amin(x, dim=1)", ([[1, 1, 2], [3, 3, 3]],), [1, 3], ([[0.5, 0.5, 0], [1 / 3, 1 / 3, 1 / 3]],)),
    ("amax(x, dim=(0, 1))", ([[2, 1], [2, 2]],), 2, ([[1 / 3, 0], [1 / 3, 1 / 3]],)),
    ("norm(x, p=inf)", ([2, -2, 1],), 2, ([0.5, -0.5, 0],)),
    ("norm(x, p=inf)", ([0, 0],), 0, ([0, 0],)),
    ("where(x > y, x, y)", (1, 1), 1, (0, 1)),
    # Kinks and jumps.
    ("abs(x)", (0,), 0, (0,)),
    ("relu(x)", (0,), 0, (0,)),
    ("relu(x)", (-inf,), 0, (0,)),
    ("sign(x)", (0,), 0, (0,)),
    ("floor(x)", (0,), 0, (0,)),
    ("ceil(x)", (0,), 0, (0,)),
    ("leaky_relu(x)", (0,), 0, (0.01,)),
    ("leaky_relu(x, 0.3)", ([-2, 0, 2],), [-0.6, 0, 2], ([0.3, 0.3, 1],)),
    # Quotients at the ends of the range, where the square of the denominator is none.
    ("x/y", (1e200, 1e200), 1, (1e-200, -1e-200)),
    ("x/y", (1e-200, 1e-200), 1, (1e200, -1e200)),
    ("x/y", (1, 0), inf, (inf, -inf)),
    ("x/y", (0, 0), nan, (inf, nan)),
    # Lengths and spreads of 0.
    ("norm(x)", ([0, 0],), 0, ([0, 0],)),
    ("norm(x, dim=1)", ([[0, 0], [3, 4]],), [0, 5], ([[0, 0], [0.6, 0.8]],)),
    ("norm(x, p=1)", ([0, -2],), 2, ([0, -1],)),
    ("std(x)", ([2, 2],), 0, ([0, 0],)),
    ("std(x, dim=1)", ([[2, 2], [1, 3]],), [0, 1.41421356237], ([[0, 0], [-0.707106781187, 0.707106781187]],)),
    ("var(x)", ([2, 2],), 0, ([0, 0],)),
    ("var(x)", ([2],), nan, ([nan],)),
    ("std(x)", ([2],), nan, ([nan],)),
    ("var(x, correction=0)", ([2],), 0, ([0],)),
    ("var(x)", ([1, 2, 4],), 2.33333333333, ([-1.33333333333, -1 / 3, 1.66666666667],)),
    ("std(x, correction=3)", ([1, 2],), inf, ([nan, nan],)),
    ("var(x, correction=2)", ([2, 2],), nan, ([nan, nan],)),
    ("var(x, dim=0, correction=2)", ([1, 2],), inf, ([-inf, inf],)),
    ("std(x)", ([1, 2, 4],), 1.52752523165, ([-0.436435780472, -0.109108945118, 0.54554472559],)),
    ("hypot(x, y)", (0, 0), 0, (nan, nan)),
    ("atan2(x, y)", (0, 0), 0, (0, 0)),
    ("atan2(x, y)", (0, -1), 3.14159265359, (-1, 0)),
    ("atan2(x, y)", (-1, 0), -1.57079632679, (0, 1)),
    # Clamps pass their gradient at their bounds; where the bounds cross, the upper one wins.
    ("clamp(x, 0, 1)", ([-1, 0, 0.5, 1, 2],), [0, 0, 0.5, 1, 1], ([0, 1, 1, 1, 0],)),
    ("clamp(x, min=0)", (0,), 0, (1,)),
    ("clamp(x, max=0)", (0,), 0, (1,)),
    ("clamp(x, y, z)", (0, 0, 1), 0, (1, 0, 0)),
    ("clamp(x, y, z)", (1, 0, 1), 1, (1, 0, 0)),
    ("clamp(x, y, z)", (-1, 0, 1), 0, (0, 1, 0)),
    ("clamp(x, y, z)", (2, 0, 1), 1, (0, 0, 1)),
    ("clamp(x, y, z)", (0.5, 0, 1), 0.5, (1, 0, 0)),
    ("clamp(x, y, z)", (0.5, 2, 1), 1, (0, 0, 1)),
    ("clamp(x, y, z)", (3, 2, 1), 1, (0, 0, 1)),
    ("clamp(x, y, z)", (1, 1, 1), 1, (1, 0, 0)),
    ("clamp(x, y, z)", (0, 1, 1), 1, (0, 0, 0)),
    ("clamp(x, y, z)", (2, 1, 1), 1, (0, 0, 1)),
    # Powers of 0, powers to 0, and negative bases.
    ("x**y", (0, 2), 0, (0, 0)),
    ("x**y", (0, 1), 0, (1, 0)),
    ("x**y", (0, 0), 1, (0, 0)),
    ("x**y", (0, 0.5), 0, (inf, 0)),
    ("x**y", (0, -1), inf, (-inf, -inf)),
    ("x**y", (3, 0), 1, (0, 1.09861228867)),
    ("x**y", (-2, 3), -8, (12, nan)),
    ("x**y", (-2, 0.5), nan, (nan, nan)),
    ("x**y", (-2, 0), 1, (0, nan)),
    ("x**y", (-2, 2), 4, (-4, nan)),
    ("x**0", (0,), 1, (0,)),
    ("x**0.5", (0,), 0, (inf,)),
    ("x**1", (0,), 0, (1,)),
    ("x**2", (0,), 0, (0,)),
    ("x**-1", (0,), inf, (-inf,)),
    ("x**3", (-2,), -8, (12,)),
    ("x**1.5", (0,), 0, (0,)),
    ("x**0.5", (-1,), nan, (nan,)),
    ("0**x", (2,), 0, (0,)),
    ("0**x", (0,), 1, (0,)),
    ("0**x", (-1,), inf, (-inf,)),
    ("2**x", (3,), 8, (5.54517744448,)),
    ("(-2)**x", (3,), -8, (nan,)),
    ("x**x", (0,), 1, (0,)),
    # Poles, and what lies beyond.
    ("sqrt(x)", (0,), 0, (inf,)),
    ("sqrt(x)", (-1,), nan, (nan,)),
    ("x*log(x)", (0,), nan, (nan,)),
    ("1/x", (0,), inf, (-inf,)),
    ("x/y", (0, 0), nan, (inf, nan)),
    ("x/y", (1, 0), inf, (inf, -inf)),
    ("log(x)", (0,), -inf, (inf,)),
    ("log(x)", (-1,), nan, (-1,)),
    ("log1p(x)", (-1,), -inf, (inf,)),
    ("log2(x)", (0,), -inf, (inf,)),
    ("log10(x)", (0,), -inf, (inf,)),
    # What is not chosen passes nothing on, even where the slope behind it is infinite; 0 times infinity is nan.
    ("log(relu(x))", (-1,), -inf, (0,)),
    ("sqrt(relu(x))", (-1,), 0, (0,)),
    ("sqrt(relu(x))", (0,), 0, (0,)),
    ("sqrt(abs(x))", (0,), 0, (nan,)),
    ("sqrt(x**2)", (0,), 0, (nan,)),
    ("log(maximum(x, 0.0))", (-1,), -inf, (0,)),
    ("log(clamp(x, min=0))", (-1,), -inf, (0,)),
    ("where(x > 0, sqrt(x), 0*x)", (0,), 0, (nan,)),
    ("where(x > 0, log(x), x)", (-1,), -1, (1,)),
    ("1/relu(x)", (-1,), inf, (0,)),
    ("log(max(x))", ([0, -1],), -inf, ([inf, 0],)),
    ("sqrt(max(x))", ([0, -1],), 0, ([inf, 0],)),
    ("sqrt(norm(x))", ([0, 0],), 0, ([nan, nan],)),
    ("sqrt(sum(x))", ([0, 0],), 0, ([inf, inf],)),
    ("log(prod(x))", ([0, 2],), -inf, ([inf, nan],)),
    ("log(norm(x))", ([0, 0],), -inf, ([nan, nan],)),
    ("sqrt(std(x))", ([1, 1],), 0, ([0, 0],)),
    ("log(minimum(x, y))", (0, 1), -inf, (inf, 0)),
    ("sqrt(maximum(x, y))", (0, -1), 0, (inf, 0)),
    ("sqrt(where(x > y, x, y))", (0, -1), 0, (inf, 0)),
    ("1/maximum(x, y)", (0, -1), inf, (-inf, 0)),
    # A 0 that is passed on is multiplied by what comes before, infinite or not.
    ("log(x)*0", (0,), nan, (nan,)),
    ("0*sqrt(x)", (0,), 0, (nan,)),
    ("0/sqrt(x)", (0,), nan, (nan,)),
    ("floor(1/x)", (0,), inf, (nan,)),
    ("sign(log(x))", (0,), -1, (nan,)),
    ("ceil(sqrt(x))", (0,), 0, (nan,)),
    ("log(x)**0", (0,), 1, (nan,)),
    ("log(x)**y", (0, 0), 1, (nan, nan)),
    ("1**sqrt(x)", (0,), 1, (nan,)),
    ("relu(log(x))", (0,), 0, (nan,)),
    ("exp(0*log(x))", (0,), nan, (nan,)),
    ("floor(log(x)) + log(x)", (0,), -inf, (nan,)),
    ("log(0*x)", (1,), -inf, (nan,)),
    ("log(x - x)", (1,), -inf, (nan,)),
    ("log(0**x)", (1,), -inf, (nan,)),
    ("log(x**y)", (0, 1), -inf, (inf, nan)),
    ("log(atan2(x, y))", (0, 0), -inf, (nan, nan)),
    ("log(leaky_relu(x, 0.0))", (-1,), -inf, (nan,)),
    ("log(x)[1]", ([0, 1],), 0, ([nan, 1],)),
    ("log(amin(x, dim=0))", ([0, 1],), -inf, ([inf, nan],)),
    # What a step passes on is 0, whatever it gets; and a condition passes nothing on, not even that.
    ("log(floor(x))", (0.5,), -inf, (0,)),
    ("log(x**0 - 1)", (0.5,), -inf, (0,)),
    ("1/sign(x)", (0,), inf, (0,)),
    ("where(log(x) > 0, x, x)", (0,), 0, (1,)),
    ("where(sqrt(x) > 5, 1, 2)*x", (0,), 0, (2,)),
    # The ends of domains.
    ("asin(x)", (1,), 1.57079632679, (inf,)),
    ("acosh(x)", (0.5,), nan, (nan,)),
    ("acosh(x)", (-1,), nan, (inf,)),
    ("acosh(x)", (-2,), nan, (0.57735026919,)),
    ("acosh(x)", (-inf,), nan, (0,)),
    ("acos(x)", (1,), 0, (-inf,)),
    ("acosh(x)", (1,), 0, (inf,)),
    ("atanh(x)", (1,), inf, (inf,)),
    ("asin(x)", (2,), nan, (nan,)),
    # Products with zeros.
    ("prod(x)", ([0, 2, 3],), 0, ([6, 0, 0],)),
    ("prod(x)", ([0, 0, 3],), 0, ([0, 0, 0],)),
    ("prod(x, dim=0)", ([[0, 2], [3, 0]],), [0, 0], ([[3, 0], [0, 2]],)),
    ("prod(x)", ([nan, 0],), nan, ([0, nan],)),
    ("prod(x)", ([inf, 0, 2],), nan, ([0, inf, nan],)),
    ("prod(x)", ([1e200, 0, 1e200, 1],), 0, ([0, inf, 0, 0],)),
    ("prod(x, dim=0)", ([1e200, 0, 1e200, 0],), 0, ([0, 0, 0, 0],)),
    # Remainders have the divisor's sign.
    ("x % y", (5.5, 2), 1.5, (1, -2)),
    ("x % y", (6, 2), 0, (1, -3)),
    ("x % y", (-5.5, 2), 0.5, (1, 3)),
    ("x % y", (5.5, -2), -0.5, (1, 3)),
    ("x % y", (-6, 2), 0, (1, 3)),
    ("x % y", (5, inf), 5, (1, 0)),
    ("x % y", (-5, inf), inf, (1, 1)),
    ("x % y", (5e-324, -2), -2, (1, 1)),
    ("x % y", (3, 0.1), 0.1, (1, -29)),
    ("x % y", (1, 0.1), 0.1, (1, -9)),
    ("x % y", (1, 0), nan, (1, -inf)),
    ("x % y", (inf, 2), nan, (1, nan)),
    # Far out, where exp overflows or underflows.
    ("exp(x)", (800,), inf, (inf,)),
    ("expm1(x)", (-800,), -1, (0,)),
    ("tanh(x)", (400,), 1, (0,)),
    ("sigmoid(x)", (-800,), 0, (0,)),
    ("sigmoid(x)", (800,), 1, (0,)),
    ("sigmoid(x)", (-40,), 4.24835425529e-18, (4.24835425529e-18,)),
    ("softplus(x)", (-800,), 0, (0,)),
    ("softplus(x)", (0,), 0.69314718056, (0.5,)),
    ("softplus(x)", (30,), 30, (1,)),
    ("softplus(x)", (800,), 800, (1,)),
    ("silu(x)", (-800,), 0, (0,)),
    ("silu(x)", (0,), 0, (0.5,)),
    ("silu(x)", (1,), 0.73105857863, (0.927670511871,)),
    ("silu(x)", (800,), 800, (1,)),
    ("gelu(x)", (-40,), 0, (0,)),
    ("gelu(x)", (0,), 0, (0.5,)),
    ("gelu(x)", (1,), 0.841344746069, (1.08331547059,)),
    ("gelu(x)", (40,), 40, (1,)),
    ("silu(x)", (-inf,), nan, (nan,)),
    ("gelu(x)", (-inf,), nan, (nan,)),
    ("softplus(x)", (-inf,), 0, (0,)),
    ("softplus(x)", (inf,), inf, (1,)),
    ("sigmoid(x)", (inf,), 1, (0,)),
    ("sigmoid(x)", (-inf,), 0, (0,)),
    ("tanh(x)", (inf,), 1, (0,)),
    ("gelu(x)", (inf,), inf, (nan,)),
    ("silu(x)", (inf,), inf, (nan,)),
    ("logsumexp(x, dim=0)", ([1000, 1000],), 1000.69314718, ([0.5, 0.5],)),
    ("logsumexp(x, dim=0)", ([-1000, -1001],), -999.686738312, ([0.73105857863, 0.26894142137],)),
    ("logsumexp(x, dim=0)", ([0, -inf],), 0, ([1, 0],)),
    ("logsumexp(x, dim=0)", ([inf, 0],), inf, ([nan, 0],)),
    ("logsumexp(x, dim=0)", ([-inf, -inf],), -inf, ([nan, nan],)),
    ("softmax(x, dim=0)[0]", ([1000, 0],), 1, ([0, 0],)),
    ("softmax(x, dim=0)[0]", ([0, -inf],), 1, ([0, 0],)),
    ("erf(x)", (0.5,), 0.520499877813, (0.878782578935,)),
    ("erfc(x)", (5,), 1.53745979443e-12, (-1.5670866531e-11,)),
    ("hypot(x, y)", (3e200, 4e200), 5e200, (0.6, 0.8)),
    # The gamma function's family; PyTorch's trigamma is right to nine digits.
    ("digamma(x)", (1.5,), 0.0364899739786, (0.934802200972,)),
    ("digamma(x)", (-1.5,), 0.703156640645, (9.37924664485,)),
    ("digamma(x)", (0,), -inf, (inf,)),
    ("lgamma(x)", (2.5,), 0.284682870473, (0.703156640645,)),
    ("lgamma(x)", (-1.5,), 0.860047015376, (0.703156640645,)),
    ("lgamma(x)", (0,), inf, (-inf,)),
    ("lgamma(x)", (-1,), inf, (nan,)),
    ("polygamma(1, x)", (1.5,), 0.934802200972, (-0.828796644234,)),
    ("polygamma(2, x)", (0,), -inf, (inf,)),
    ("polygamma(1, x)", (-0.5,), 8.93480220012, (-0.828796644234,)),
    # Modified Bessel functions: at 0 a slope would be 0/0.
    ("i0(x)", (0,), 1, (0,)),
    ("i0(x)", (-3,), 4.88079258587, (-3.95337021740,)),
    ("i0(x)", (inf,), nan, (nan,)),
    ("i1(x)", (0,), 0, (0.5,)),
    ("i1(x)", (1e-300,), 5e-301, (0.5,)),
    ("i1(x)", (-20,), -42454973.3851, (41435533.8903,)),
    ("i1(x)", (nan,), nan, (0.5,)),
    # Hurwitz's zeta function: PyTorch has no derivative by its first argument.
    ("zeta(1, x)", (2,), inf, (-0.644934066848,)),
    ("zeta(2, x)", (0,), inf, (-inf,)),
    ("zeta(3, x)", (-1.5,), 0.118102025821, (-97.2971381096,)),
    ("zeta(2.5, x)", (-1.5,), nan, (nan,)),
    ("zeta(0.5, x)", (2,), nan, (-0.806187674343,)),
    ("zeta(2, x)", (inf,), nan, (nan,)),
    # NaN.
    ("maximum(x, y)", (nan, 1), nan, (1, 1)),
    ("minimum(x, y)", (1, nan), nan, (1, 1)),
    ("relu(x)", (nan,), nan, (1,)),
    ("clamp(x, 0, 1)", (nan,), nan, (0,)),
    ("clamp(x, y, z)", (0.5, nan, 1), nan, (0, 0, 0)),
    ("clamp(x, y, z)", (nan, 0, 1), nan, (0, 0, 0)),
    ("max(x)", ([nan, 1],), nan, ([1, 0],)),
    ("max(x, dim=0)", ([1, nan, 2],), nan, ([0, 1, 0],)),
    ("min(x)", ([nan, 1],), nan, ([1, 0],)),
    ("norm(x)", ([nan, 0],), nan, ([nan, nan],)),
    ("sign(x)", (nan,), 0, (0,)),
    ("abs(x)", (nan,), nan, (0,)),
    ("norm(x, p=1)", ([nan, -2],), nan, ([0, -1],)),
    ("norm(x, p=inf)", ([nan, -3, nan],), nan, ([0, 0, 0],)),
    ("amax(x, dim=0)", ([nan, 1, 2],), nan, ([nan, nan, nan],)),
    ("amin(x, dim=1)", ([[nan, 1], [2, 3]],), [nan, 2], ([[nan, nan], [1, 0]],)),
    ("amax(x)", ([1, nan],), nan, ([nan, nan],)),
    ("where(x > 0, x, 2*x)", (nan,), nan, (2,)),
    ("leaky_relu(x)", (nan,), nan, (0.01,)),
    ("floor(x)", (nan,), nan, (0,)),
    ("x**0", (nan,), 1, (0,)),
    ("x**y", (nan, 0), 1, (0, nan)),
    ("x**y", (1, nan), 1, (nan, 0)),
    ("hypot(x, y)", (nan, inf), inf, (nan, nan)),
    ("softmax(x, dim=0)[0]", ([nan, 0],), nan, ([nan, nan],)),
    ("logsumexp(x, dim=0)", ([nan, 0],), nan, ([nan, nan],)),
    ("0*x", (inf,), nan, (0,)),
]

# expression, the value of x, and the gradient of 1·g₁ + 2·g₂ + …, where g is the gradient of the expression
SECOND = [
    ("relu(x)", 0, 0),
    ("x**2", 0, 2),
    ("x**1", 0, 0),
    ("x**1.5", 0, inf),
    ("x**3", 0, 0),
    ("x**x", 0, nan),
    ("2**x", 0, 0.480453013918),
    ("prod(x)", [0, 2, 3], [12, 3, 2]),
    ("prod(x)", [0, 0, 3], [6, 3, 0]),
    ("prod(x)", [0, 0, 0], [0, 0, 0]),
    ("norm(x)", [0, 0], [nan, nan]),
    ("norm(x)", [3, 4], [-0.064, 0.048]),
    ("norm(x, dim=1)", [[0, 0], [3, 4]], [[nan, nan], [0, 0]]),
    ("std(x)", [2, 2], [0, 0]),
    ("var(x)", [2, 2], [-1, 1]),
    ("maximum(x, 1.0)**2", 1, 0.5),
    ("max(x)**2", [1, 1], [1.5, 1.5]),
    ("max(x, dim=0)**2", [1, 1], [2, 0]),
    ("amax(x, dim=0)**2", [1, 1], [1.5, 1.5]),
    ("clamp(x, 0, 1)**2", 1, 2),
    ("relu(x)**2", 0, 0),
    ("relu(x)**2", -1, 0),
    ("relu(x)**3", 0, 0),
    ("leaky_relu(x)**2", 0, 0.0002),
    ("silu(x)", 0, 0.5),
    ("gelu(x)", 0, 0.797884560803),
    ("softplus(x)", 0, 0.25),
    ("sigmoid(x)", 0, 0),
    ("gelu(x)", 40, 0),
    ("silu(x)", 800, 0),
    ("softplus(x)", 800, 0),
    ("sigmoid(x)", -800, 0),
    ("tanh(x)", 400, 0),
    ("tanh(x)", 800, 0),
    ("logsumexp(x, dim=0)**2", [1000, 1000], [-498.84657359, 501.84657359]),
    ("softmax(x, dim=0)[0]**2", [1000, 0], [0, 0]),
    ("atan2(x, 0*x)", 0, nan),
    ("atan2(x, 1 + 0*x)", 0, 0),
    ("sqrt(x)", 0, -inf),
    ("log(relu(x))", -1, 0),
    ("sqrt(relu(x))", -1, 0),
    ("1/relu(x)", -1, 0),
    ("where(x > 0, log(x), x**2)", -1, 2),
    ("abs(x)**3", 0, 0),
    ("abs(x)**2", 0, 0),
    ("x*abs(x)", 0, 0),
    ("exp(-1/relu(x))", -1, 0),
    ("sqrt(clamp(x, min=0))", -1, 0),
    ("floor(x)*x", 0.5, 0),
    ("x % 2.0 * x", 3, 2),
    ("maximum(x, x**2)", 0, 1),
    ("maximum(x, x**2)", 1, 1),
    # PyTorch has no second derivative here.
    ("abs(x)", 0, 0),
]

# expression, the value of x, the value, the gradient: what PyTorch loses to cancellation, to 12 digits
MORE_EXACT = [
    ("softplus(x)", -40, 4.24835425529e-18, 4.24835425529e-18),
    ("gelu(x)", -10, -7.61985302416e-23, -7.61840009646e-22),
    ("digamma(x)", 1.5, 0.0364899739786, 0.934802200545),
    ("acosh(x)", 1e200, 461.210165779, 1e-200),
    # Products: PyTorch's overflow and underflow on the way.
    ("prod(x)", [1e-200, 1e-200, 1e200, 1e200], 1, [1e200, 1e200, 1e-200, 1e-200]),
    ("prod(x)", [1e200, 1e200, 1e-200, 1e-306], 1e-106, [1e-306, 1e-306, 1e94, 1e200]),
    ("prod(x)", [1e308, 10, 0.1], 1e308, [1, 1e307, inf]),
    ("prod(x)", [1e-300, 1e-20, 3e10, 1e10], 3e-300, [3, 3e-280, 1e-310, 3e-310]),
    ("prod(x)", [5e-324, 2.0**1023], 2.0**-51, [2.0**1023, 5e-324]),
    ("prod(x)", [5e-324] * 3 + [2.0**1022] * 3, 2.0**-156, [2.0**918] * 3 + [0] * 3),
    # PyTorch has no derivative for heaviside: it is 0, as for every other step.
    ("heaviside(x, 0.5)", 0, 0.5, 0),
    ("heaviside(x, 1)", -1, 0, 0),
]


def differentiate(expression, values, order=1):
    """Return the value of an expression and its gradients, of the given order, for ones as v."""
    point = {name: np.array(value, dtype=float)[..., None] for name, value in zip("xyz", values, strict=False)}
    graph = parse(f"out = {expression}", **{name: value.shape[:-1] for name, value in point.items()})
    (output,) = graph.outputs.values()
    (value,) = evaluate(graph, point).values()
    wrt = list(point)
    point["out.v"] = np.ones((*output.shape, 1))
    if order == 2:
        point["x.grad.v"] = np.arange(1.0, 1 + point["x"].size).reshape(point["x"].shape)
        graph = vjp(graph)
    grads = evaluate(vjp(graph, wrt), point)
    return value[..., 0], [grad[..., 0] for grad in grads.values()]


@each(("expression", "values", "value", "grads"), CORNERS)
def test_as_pytorch(expression, values, value, grads):
    found, found_grads = differentiate(expression, values)
    assert_allclose(found, value, rtol=1e-9)
    for grad, wanted in zip(found_grads, grads, strict=True):
        assert_allclose(grad, wanted, rtol=1e-9)


@each(("expression", "x", "wanted"), SECOND)
def test_second_derivative_as_pytorch(expression, x, wanted):
    _, (grad,) = differentiate(expression, [x], order=2)
    assert_allclose(grad, wanted, rtol=1e-9)


@pytest.mark.parametrize(("expression", "x", "value", "grad"), MORE_EXACT)
def test_more_exact_than_pytorch(expression, x, value, grad):
    found, (found_grad,) = differentiate(expression, [x])
    assert_allclose(found, value, rtol=1e-11)
    assert_allclose(found_grad, grad, rtol=1e-11)


@pytest.mark.parametrize("call", ["hardtanh(x, y, 2)", "hardtanh(x, -2, y)", "clamp(x, y, 2)", "clamp(x, -2, y)"])
def test_at_a_bound_the_gradient_is_given_once(call):
    """Where x and its bound move together, so does the result: their slopes add up to 1."""
    value, grads = differentiate(call, (1, 1))
    assert value == sum(grads) == 1


@pytest.mark.parametrize("derive", [vjp, jvp])
def test_a_derivative_that_has_no_formula_is_an_error(derive):
    """It is not 0: PyTorch raises an error, too, unless the other argument's is asked for alone."""
    graph = parse("y = zeta(x, q)")
    with pytest.raises(InputError, match="no derivative of `zeta` by this argument"):
        derive(graph)
    assert derive(graph, ["q"])
