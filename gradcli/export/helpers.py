"""Small functions that exported C and JavaScript files bring along, written once: in C, from which JavaScript follows.

Sources: M. Abramowitz and I. Stegun, *Handbook of Mathematical Functions* (1964), 6.1 and 6.3 to 6.4 (gamma function,
its recurrence, reflection and asymptotic series), 7.1 (error function: 7.1.6 and the continued fraction 7.1.14);
Lanczos's approximation with P. Godfrey's coefficients for g = 7; Gaussian elimination with partial pivoting.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

# What a line of these begins with is its signature; what follows, its body.
NUMBERS = """
double modulo(double a, double b)
    double r = fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;

double quotient(double a, double b)
    return rint((a - modulo(a, b)) / b);

double larger(double a, double b)
    return a > b || a != a ? a : b;

double smaller(double a, double b)
    return a < b || a != a ? a : b;

double softplus(double x)
    return larger(x, 0) + log1p(exp(-fabs(x)));

double heaviside(double x, double at0)
    return x < 0 ? 0 : x > 0 ? 1 : x == 0 ? at0 : x;

double sign(double x)
    return x > 0 ? 1 : x < 0 ? -1 : 0;

int exceeds(double a, double b)
    return a > b || (a != a && b == b);

int undercuts(double a, double b)
    return a < b || (a != a && b == b);
"""

SPECIAL = """
double digamma(double x)
    if (x == 0 || x == -INFINITY) return x == 0 ? -1 / x : NAN;
    if (x < 0) return x == floor(x) ? NAN : digamma(1 - x) - PI / tan(PI * (x - rint(x)));
    double sum = 0;
    for (; x < 12; x++) sum -= 1 / x;
    double w = 1 / (x * x);
    double series = w * (1.0 / 240 - w * (1.0 / 132 - w * (691.0 / 32760 - w / 12)));
    return sum + log(x) - 0.5 / x - w * (1.0 / 12 - w * (1.0 / 120 - w * (1.0 / 252 - series)));

double cot_slope(int n, double x)
    double p[180], y = 1 / tan(PI * (x - rint(x))), sum = 0;
    for (int k = 0; k < n + 3; k++) p[k] = k == 1 ? PI : 0;
    for (int m = 0; m < n; m++) {
        double before = 0;
        for (int k = 0; k < m + 3; k++) {
            double below = k > 0 ? (k - 1) * before : 0;
            before = p[k];
            p[k] = -PI * (below + (k + 1) * p[k + 1]);
        }
    }
    for (int k = n + 1; k >= 0; k--) sum = sum * y + p[k];
    return sum;

double polygamma(double order, double x)
    int n = (int)order;
    if (n == 0) return digamma(x);
    if (n < 0 || n > 170 || n != order || x == -INFINITY) return NAN;
    if (x <= 0 && x == floor(x)) return n % 2 ? INFINITY : -INFINITY;
    if (x < -1) return (n % 2 ? -1 : 1) * polygamma(order, 1 - x) - cot_slope(n, x);
    if (x == INFINITY) return 0;
    const double bernoulli[12] = {
        1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730,
        7.0 / 6, -3617.0 / 510, 43867.0 / 798, -174611.0 / 330, 854513.0 / 138, -236364091.0 / 2730,
    };
    double sum = 0, factorial = 1;
    for (int k = 2; k <= n; k++) factorial *= k;
    for (; x < 12 + n; x++) sum += pow(x, -n - 1);
    double term = pow(x, -n);
    sum += term / n + 0.5 * term / x;
    term *= (n + 1) / (2 * x * x);
    for (int k = 0; k < 12; k++) {
        sum += bernoulli[k] * term;
        term *= (n + 2 * k + 2.0) * (n + 2 * k + 3.0) / ((2 * k + 3.0) * (2 * k + 4.0) * x * x);
    }
    return (n % 2 ? 1 : -1) * factorial * sum;
"""

# C has these itself.
ABSENT = """
double gamma(double x)
    if (x == floor(x) && x > 0 && x < 24) {
        double product = 1;
        for (int k = 2; k < x; k++) product *= k;
        return product;
    }
    if (x == 0 || x == INFINITY) return 1 / (x == 0 ? x : 0);
    if (x < 0.5) return x == floor(x) ? NAN : PI / (turned_sine(x) * gamma(1 - x));
    double t = x + 6.5, half = pow(t, 0.5 * (x - 0.5));
    return x > 171.7 ? INFINITY : 2.5066282746310005 * half * exp(-t) * half * lanczos(x);

double lgamma(double x)
    if (x == INFINITY || x == -INFINITY) return INFINITY;
    if (x < 0.5) return x == floor(x) ? INFINITY : log(PI / fabs(turned_sine(x))) - lgamma(1 - x);
    if (x < 100) return log(gamma(x));
    double w = 1 / (x * x);
    return (x - 0.5) * log(x) - x + 0.9189385332046728 + (1.0 / 12 - w * (1.0 / 360 - w / 1260)) / x;

double turned_sine(double x)
    double rest = x - rint(x);
    return (fmod(rint(x), 2) == 0 ? 1 : -1) * sin(PI * rest);

double lanczos(double x)
    const double c[8] = {
        676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
        12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
    };
    double sum = 0.99999999999980993;
    for (int k = 0; k < 8; k++) sum += c[k] / (x + k);
    return sum;

double erf(double x)
    if (fabs(x) > 1) return x > 0 ? 1 - erfc(x) : erfc(-x) - 1;
    double term = 1.1283791670955126 * x * exp(-x * x), sum = 0;
    for (int k = 1; k < 30; k++) {
        sum += term;
        term *= 2 * x * x / (2 * k + 1);
    }
    return sum;

double erfc(double x)
    if (x < 1) return x < -1 ? 2 - erfc(-x) : 1 - erf(x);
    if (!(x < 28)) return x == x ? 0 : x;
    double fraction = x;
    for (int k = 200; k > 0; k--) fraction = x + 0.5 * k / fraction;
    double near = floor(16 * x) / 16;
    return exp(-near * near) * exp((near - x) * (near + x)) / fraction * 0.5641895835477563;
"""

MATRICES = """
double determinant(int n, double *a)
    double det = 1;
    for (int k = 0; k < n; k++) {
        int p = k;
        for (int i = k + 1; i < n; i++) {
            if (fabs(a[i * n + k]) > fabs(a[p * n + k])) p = i;
        }
        if (p != k) {
            det = -det;
            for (int j = k; j < n; j++) swap_numbers(a, k * n + j, p * n + j);
        }
        det *= a[k * n + k];
        if (a[k * n + k] == 0) return det;
        for (int i = k + 1; i < n; i++) {
            double f = a[i * n + k] / a[k * n + k];
            for (int j = k + 1; j < n; j++) a[i * n + j] -= f * a[k * n + j];
        }
    }
    return det;

void solve_equations(int n, double *a, int m, double *b)
    for (int k = 0; k < n; k++) {
        int p = k;
        for (int i = k + 1; i < n; i++) {
            if (fabs(a[i * n + k]) > fabs(a[p * n + k])) p = i;
        }
        for (int j = k; p != k && j < n; j++) swap_numbers(a, k * n + j, p * n + j);
        for (int j = 0; p != k && j < m; j++) swap_numbers(b, k * m + j, p * m + j);
        if (a[k * n + k] == 0) a[k * n + k] = NAN;
        for (int i = k + 1; i < n; i++) {
            double f = a[i * n + k] / a[k * n + k];
            for (int j = k + 1; j < n; j++) a[i * n + j] -= f * a[k * n + j];
            for (int j = 0; j < m; j++) b[i * m + j] -= f * b[k * m + j];
        }
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int j = 0; j < m; j++) {
            for (int k = i + 1; k < n; k++) b[i * m + j] -= a[i * n + k] * b[k * m + j];
            b[i * m + j] /= a[i * n + i];
        }
    }

void swap_numbers(double *a, int i, int j)
    double kept = a[i];
    a[i] = a[j];
    a[j] = kept;

void invert(int n, double *a, double *inverse)
    for (int k = 0; k < n * n; k++) inverse[k] = k % (n + 1) == 0 ? 1 : 0;
    solve_equations(n, a, n, inverse);

void cofactors(int n, const double *a, double *minor, double *result)
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            int k = 0;
            for (int r = 0; r < n; r++) {
                for (int c = 0; c < n; c++) {
                    if (r != i && c != j) minor[k++] = a[r * n + c];
                }
            }
            result[i * n + j] = ((i + j) % 2 ? -1 : 1) * determinant(n - 1, minor);
        }
    }
"""

ORDERS = """
int comes_first(double a, double b, int descending)
    return descending ? exceeds(a, b) : a < b || (a == a && b != b);

void put_in_order(int n, int descending, const double *x, double *order)
    for (int i = 0; i < n; i++) {
        int j = i;
        for (; j > 0; j--) {
            if (!comes_first(x[i], x[(int)order[j - 1]], descending)) break;
            order[j] = order[j - 1];
        }
        order[j] = i;
    }

int greatest(int n, const double *x)
    int best = 0;
    for (int i = 1; i < n; i++) {
        if (exceeds(x[i], x[best])) best = i;
    }
    return best;

int least(int n, const double *x)
    int best = 0;
    for (int i = 1; i < n; i++) {
        if (undercuts(x[i], x[best])) best = i;
    }
    return best;

int middle(int n, const double *x, double *order)
    put_in_order(n, 0, x, order);
    for (int i = 0; i < n; i++) {
        if (x[i] != x[i]) return i;
    }
    return (int)order[(n - 1 - (n + 1) % 2) / 2];
"""

_ABOUT = {
    "modulo": "The remainder, with the sign of b.",
    "quotient": "The division a / b, rounded down.",
    "larger": "The larger number, or NaN.",
    "smaller": "The smaller number, or NaN.",
    "softplus": "log(1 + exp(x)), without overflow.",
    "exceeds": "Whether a is larger than b; nothing is larger than NaN.",
    "undercuts": "Whether a is smaller than b; nothing is smaller than NaN.",
    "digamma": "The derivative of log(gamma(x)).",
    "cot_slope": "The n-th derivative of PI / tan(PI * x).",
    "polygamma": "The derivative of digamma of an order, by Euler and Maclaurin's sum.",
    "gamma": "The gamma function, by Lanczos's approximation.",
    "lgamma": "log|gamma(x)|.",
    "turned_sine": "sin(PI * x), exact at whole numbers.",
    "erf": "The error function, by its series.",
    "erfc": "1 - erf(x), by its continued fraction.",
    "determinant": "The determinant of a matrix, which is overwritten.",
    "solve_equations": "Solve a x = b; b becomes x, and a is overwritten.",
    "invert": "The inverse of a matrix, which is overwritten.",
    "cofactors": "The derivatives of the determinant by each element.",
    "comes_first": "Whether a comes before b in order; NaN is the largest.",
    "put_in_order": "From which places numbers come in order; equal ones stay as they stand.",
    "greatest": "Where the first of the largest numbers stands.",
    "least": "Where the first of the smallest numbers stands.",
    "middle": "Where the median stands, the lower one of two, or the first NaN.",
}


@dataclass(frozen=True)
class Helper:
    """A function: its type, name, parameters and lines, in C."""

    kind: str
    name: str
    parameters: str
    body: tuple[str, ...]

    @property
    def text(self) -> str:
        """Its lines as one text."""
        return "\n".join(self.body)

    def c(self) -> list[str]:
        """Return the lines in C."""
        about = [f"/* {_ABOUT[self.name]} */"] if self.name in _ABOUT else []
        return [*about, f"static inline {self.kind} {self.name}({self.parameters})", "{", *self.body, "}"]

    def javascript(self) -> list[str]:
        """Return the lines in JavaScript."""
        names = [p.split()[-1].lstrip("*") for p in self.parameters.split(",")]
        about = [f"// {_ABOUT[self.name]}"] if self.name in _ABOUT else []
        head = f"function {camel(self.name)}({', '.join(map(camel, names))}) {{"
        return [*about, head, *_javascript(self.body), "}"]


def _parsed(text: str) -> dict[str, Helper]:
    found = {}
    for block in text.strip().split("\n\n"):
        head, *body = block.split("\n")
        kind, name, parameters = re.fullmatch(r"(\w+) (\w+)\((.*)\)", head).groups()  # type: ignore[union-attr]
        found[name] = Helper(kind, name, parameters, tuple(body))
    return found


HELPERS = _parsed("\n\n".join(part.strip() for part in (NUMBERS, ORDERS, SPECIAL, MATRICES)))
HELPERS_OF_JAVASCRIPT = {**_parsed(ABSENT), **HELPERS}


def needed(text: str, helpers: Mapping[str, Helper]) -> list[Helper]:
    """Return the helpers that a text calls, those first that others call.

    >>> [h.name for h in needed("y = softplus(x);", HELPERS)]
    ['larger', 'softplus']
    """
    found: dict[Helper, None] = {}

    def add(text: str) -> None:
        for helper in helpers.values():
            if helper not in found and re.search(rf"(?<!\w)({helper.name}|{camel(helper.name)})\(", text):
                found[helper] = None
                add(helper.text)
                found[helper] = found.pop(helper)  # behind those that it calls

    add(text)
    return list(found)


def camel(name: str) -> str:
    """Return a name as JavaScript has it.

    >>> camel("put_in_order")
    'putInOrder'
    """
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


_MATH = ("fabs=abs", "log", "exp", "log1p", "sin", "cos", "tan", "pow", "floor")
_TO_JAVASCRIPT: list[tuple[str, str]] = [
    (r"\(int\)order\b(?!\[)", "order"),
    (r"\(int\)", ""),
    (r"double (\w+)\[(\d+)\],", r"const \1 = new Float64Array(\2);\n  let"),
    (r"const double (\w+)\[\d+\] = \{", r"const \1 = ["),
    (r"^    \};$", "    ];"),
    (r"(?<!\w)(?:double|int) (\w+)", r"let \1"),
    (r"fmod\((rint\(\w+\)|\w+), (\w+)\)", r"\1 % \2"),
    (r"rint\(", "roundEven("),
    (r"\bPI\b", "Math.PI"),
    (r"INFINITY", "Infinity"),
    (r"NAN", "NaN"),
    (r"(\d)\.0\b", r"\1"),
    (r"(?<![=!<>])==(?!=)", "==="),
    (r"!=(?!=)", "!=="),
]


def _javascript(body: Iterable[str]) -> list[str]:
    text = "\n".join(body)
    for pattern, new in _TO_JAVASCRIPT:
        text = re.sub(pattern, new, text, flags=re.MULTILINE)
    for pair in _MATH:
        name, _, own = pair.partition("=")
        text = re.sub(rf"(?<![\w.]){name}\(", f"Math.{own or name}(", text)
    text = re.sub(r"\b[a-z]+(?:_[a-z0-9]+)+\b", lambda m: camel(m[0]), text)
    return [line[: len(line) - len(line.lstrip())].replace("    ", "  ") + line.lstrip() for line in text.split("\n")]
