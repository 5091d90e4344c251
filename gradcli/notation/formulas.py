"""SymPy expressions as text that gradcli reads back."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import sympy
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.str import StrPrinter

from gradcli.algebra.arrays import ArrayElement, nested
from gradcli.algebra.functions import TableFunction
from gradcli.graph.operation import Precedence
from gradcli.graph.operations import OPERATIONS
from gradcli.notation.decimals import decimal_text, quotient, whole_text

# Conditions on SymPy's scale, in Python's order, in which `x > 0 & y > 0` means `x > (0 & y) > 0`.
_LEVELS = {Precedence.COMPARISON: 35, Precedence.OR: 40, Precedence.AND: 50}
_PRECEDENCE = {row.infix: _LEVELS[row.precedence] for row in OPERATIONS.values() if row.precedence in _LEVELS}
_LONG = 10**4
_OF_TWO = {"max": "maximum", "min": "minimum"}
_RENAMED = {"loggamma": "lgamma", "Abs": "abs"}


class Ordered:
    """Prints a sum with a positive term first: `x - m`, not `-m + x`."""

    def _as_ordered_terms(self, expr: Any, order: Any = None) -> list[Any]:
        terms = list(expr.as_ordered_terms(order=order))
        first = next((i for i, term in enumerate(terms) if not term.could_extract_minus_sign()), 0)
        return [terms.pop(first), *terms]


class _CodePrinter(Ordered, StrPrinter):  # type: ignore[misc]
    """Prints in the language of gradcli.  `decimals` writes 1/5 as 0.2; `taken` are names that mean variables."""

    def __init__(self, decimals: bool, taken: frozenset[str]) -> None:
        super().__init__()
        self.decimals = decimals
        self.taken = taken

    def _print_Exp1(self, expr: Any) -> str:
        return "exp(1)" if "e" in self.taken else "e"

    def _print_Pi(self, expr: Any) -> str:
        return "acos(-1)" if "pi" in self.taken else "pi"

    def _print_Integer(self, expr: Any) -> str:
        return whole_text(int(expr))

    def _print_Rational(self, expr: Any) -> str:
        short = decimal(expr, self.decimals)
        return short or "-" * (expr.p < 0) + "/".join(quotient(Fraction(abs(expr.p), expr.q)))

    def _print_Mul(self, expr: Any) -> str:
        coefficient, rest = expr.as_coeff_Mul()
        short = decimal(abs(coefficient), self.decimals)
        above, below = quotient(Fraction(abs(coefficient.p), coefficient.q)) if coefficient.is_Rational else ("1", "1")
        if (short is None and "." not in below) or rest.is_Add:
            return str(super()._print_Mul(expr))
        factor = self.parenthesize(rest, PRECEDENCE["Mul"], strict=True)
        sign = "-" if coefficient < 0 else ""
        if short is None:
            return f"{sign}{factor if above == '1' else f'{above}*{factor}'}/{below}"
        if factor.startswith("1/"):
            return f"{sign}{short}{factor[1:]}"
        return f"{sign}{short}*{factor}"

    def _print_Pow(self, expr: Any, rational: bool = False) -> str:
        if expr.exp.is_Rational and expr.exp.is_negative:
            inverse = sympy.Pow(expr.base, -expr.exp, evaluate=False) if expr.exp != -1 else expr.base
            return f"1/{self.parenthesize(inverse, PRECEDENCE['Mul'], strict=False)}"
        return str(super()._print_Pow(expr, rational))

    def _print_Function(self, expr: Any) -> str:
        if isinstance(expr, ArrayElement):
            return self._array_element(expr)
        infix = _infix(expr)
        if infix == "~":
            return f"~({self._print(expr.args[0])})"
        if infix in _PRECEDENCE:
            return f" {infix} ".join(_grouped(self, a, infix) for a in expr.args)
        name = _RENAMED.get(expr.func.__name__, expr.func.__name__)
        if name in _OF_TWO and len(expr.args) == 2 and any(a.is_Integer for a in expr.args):
            name = _OF_TWO[name]  # `max(x, 2)` may mean an axis
        return f"{name}({self.stringify(expr.args, ', ')})"

    def _print_polygamma(self, expr: Any) -> str:
        order, x = expr.args
        return f"digamma({self._print(x)})" if order == 0 else f"polygamma({self._print(order)}, {self._print(x)})"

    def _array_element(self, expr: ArrayElement) -> str:
        array, index = expr.parts()
        text = "".join(nested(array, self._print))
        return f"{expr.op}({text}{expr.settings})" + (f"[{', '.join(map(str, index))}]" if index else "")

    _print_expm1 = _print_log1p = _print_log2 = _print_log10 = _print_Function


def _infix(expr: Any) -> str:
    """Return the sign of an operation of the table that is written between its arguments."""
    return OPERATIONS[expr.op].infix if isinstance(expr, TableFunction) else ""


def _grouped(printer: StrPrinter, expr: Any, infix: str) -> str:
    text = str(printer._print(expr))
    level = _PRECEDENCE.get(_infix(expr), 100 if infix not in ("&", "|") else 0)
    return text if level > _PRECEDENCE[infix] else f"({text})"


def decimal(number: Any, decimals: bool) -> str | None:
    """Return a number that is not an integer as a decimal of at most 17 digits, if `decimals` are wanted.

    Nobody would write 0.7615942 as 3807971/5000000: that is a decimal in any case.
    """
    written = number.is_Rational and number.q != 1 and (decimals or number.q >= _LONG)
    return decimal_text(Fraction(number.p, number.q)) if written else None


def is_atom(expr: Any) -> bool:
    """Return whether the text of an expression needs no brackets as a factor: a number, a name, a call.

    >>> x = sympy.Symbol("x")
    >>> is_atom(x), is_atom(sympy.Rational(1, 2)), is_atom(sympy.sqrt(x)), is_atom(-x), is_atom(1 / x)
    (True, True, True, False, False)
    """
    if expr.is_Rational:
        return bool(expr >= 0)
    called = isinstance(expr, sympy.Function) and not _infix(expr)
    return bool(expr.is_Atom or called or (expr.is_Pow and expr.exp == sympy.S.Half) or _is_not_real(expr))


def _is_not_real(expr: Any) -> bool:
    """Return whether an expression is outside of the real numbers, where PyTorch has nan."""
    return bool(expr.has(sympy.I, sympy.zoo, sympy.nan, sympy.oo))


def code(expr: Any, decimals: bool = False, taken: frozenset[str] = frozenset()) -> str:
    """Return an expression as gradcli reads it.

    >>> x = sympy.Symbol("x")
    >>> code(x**2 / 5), code(x**2 / 5, decimals=True)
    ('x**2/5', '0.2*x**2')
    >>> code(-3 * x / sympy.Rational("1.4142137"))
    '-3*x/1.4142137'
    """
    if _is_not_real(expr):
        return "nan"
    return str(_CodePrinter(decimals, taken).doprint(expr))
