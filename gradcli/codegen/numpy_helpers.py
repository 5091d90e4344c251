"""Small functions that exported NumPy files bring along: what NumPy does not have.

Sources: as for `helpers.c`.
"""

from __future__ import annotations

_TEXTS = (
    '''
def _spread(array, points):
    """Return an array with an axis of length 1 for each axis of points."""
    return np.reshape(array, np.shape(array) + (1,) * len(points))
''',
    '''
def _is_at(places, n, axis):
    """Return a one-hot array: whether each of n indices along an axis is the one."""
    return np.moveaxis(np.equal.outer(np.arange(n), places), 0, axis)
''',
    '''
def _linear(function, points, *matrices):
    """Apply a function to matrices whose axes may be followed by that of the points."""
    k = len(points)
    result = function(*(np.moveaxis(x, (-2 - k, -1 - k), (-2, -1)) for x in matrices))
    rank = result.ndim - max(x.ndim for x in matrices) + 2  # of a single result
    return np.moveaxis(result, range(-rank, 0), range(-rank - k, -k))
''',
    *(
        f"@np.vectorize(otypes=[float])\ndef _{name}(x):\n    return math.{name}(x)\n"
        for name in ("erf", "erfc", "gamma", "lgamma")
    ),
    '''
@np.vectorize(otypes=[float])
def _digamma(x):
    """Return the derivative of log(gamma(x)), by its asymptotic series."""
    if x <= 0 and x == round(x):
        return -math.copysign(math.inf, x) if x == 0 else math.nan
    total = 0.0
    if x < 0:
        total, x = -math.pi / math.tan(math.pi * (x - round(x))), 1 - x
    while x < 12:
        total, x = total - 1 / x, x + 1
    w = 1 / x**2
    terms = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
    series = sum(c * w**k for k, c in enumerate(terms, 1))
    return total + math.log(x) - 0.5 / x - series
''',
    '''
@np.vectorize(otypes=[float])
def _zeta(s, q):
    """Return the sum of (q + k)**-s, by Euler and Maclaurin's sum; below 0 by reflection."""
    if s == 1:
        return math.inf
    if not (1 < s < math.inf and abs(q) < math.inf):
        return math.nan
    if q <= 0 and (q == round(q) or s != round(s)):
        return math.inf if q == round(q) else math.nan
    if q < 0 and s > 171:  # its two largest terms
        r = q - round(q)
        return np.power(r, -s) + np.power(r - math.copysign(1, r), -s)
    if q < -1:
        n = int(s) - 1
        return (-1) ** n * (_cot_slope(n, q) / math.factorial(n) + float(_zeta(s, 1 - q)))
    total, term = 0.0, np.float64(q) ** -s
    while q < 11 + s and abs(term) > 1e-18 * abs(total):
        total, q = total + term, q + 1
        term = np.float64(q) ** -s
    if abs(term) <= 1e-18 * abs(total):
        return total
    total += term * (q / (s - 1) + 0.5)
    term *= s / (2 * q)
    fractions = ((1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6))
    fractions += ((-3617, 510), (43867, 798), (-174611, 330), (854513, 138))
    for k, (a, b) in enumerate(fractions):
        total += a / b * term
        term *= (s + 2 * k + 1) * (s + 2 * k + 2) / ((2 * k + 3) * (2 * k + 4) * q**2)
    return total


''',
    '''
@np.vectorize(otypes=[float])
def _polygamma(n, x):
    """Return the n-th derivative of digamma."""
    n = int(n)
    if n == 0:
        return float(_digamma(x))
    sign = 1.0 if n % 2 else -1.0
    return sign * (math.inf if x <= 0 and x == round(x) else math.factorial(n) * float(_zeta(n + 1, x)))
''',
    '''
def _cot_slope(n, x):
    """Return the n-th derivative of pi / tan(pi * x)."""
    slope = np.polynomial.Polynomial([0, math.pi])
    for _ in range(n):
        slope = -math.pi * np.polynomial.Polynomial([1, 0, 1]) * slope.deriv()
    return float(slope(1 / math.tan(math.pi * (x - round(x)))))
''',
)


def _named(text: str) -> tuple[str, list[str]]:
    lines = text.strip("\n").split("\n")
    head = next(line for line in lines if line.startswith("def "))
    return head[4 : head.index("(")], lines


HELPERS = dict(map(_named, _TEXTS))
