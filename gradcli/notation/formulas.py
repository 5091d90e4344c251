"""SymPy expressions as text that gradcli reads back, and as LaTeX."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import sympy
from sympy.printing.latex import LatexPrinter
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.str import StrPrinter

from gradcli.algebra.arrays import ArrayElement, nested
from gradcli.algebra.functions import SYMPY, TableFunction
from gradcli.graph.names import LATEX_INFIX, latex_name, latex_number
from gradcli.graph.operations import OPERATIONS
from gradcli.notation.decimals import decimal_text, whole_text

# Python's, in which `x > 0 & y > 0` means `x > (0 & y) > 0`.
_PRECEDENCE = {"<": 35, "<=": 35, ">": 35, ">=": 35, "==": 35, "!=": 35, "|": 40, "&": 50}
_LONG = 10**9
_RENAMED = {"loggamma": "lgamma", "Abs": "abs"}


class _Ordered:
    """Prints sums as one writes them by hand: what is subtracted does not stand first, `x - m` and not `-m + x`."""

    def _as_ordered_terms(self, expr: Any, order: Any = None) -> list[Any]:
        terms = list(expr.as_ordered_terms(order=order))
        first = next((i for i, term in enumerate(terms) if not term.could_extract_minus_sign()), 0)
        return [terms.pop(first), *terms]


class _CodePrinter(_Ordered, StrPrinter):  # type: ignore[misc]
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

    def _decimal(self, number: Any) -> str | None:
        return _decimal(number) if self.decimals or _is_long(number) else None

    def _print_Rational(self, expr: Any) -> str:
        short = self._decimal(expr)
        return short or f"{whole_text(expr.p)}/{whole_text(expr.q)}"

    def _print_Mul(self, expr: Any) -> str:
        coefficient, rest = expr.as_coeff_Mul()
        short = self._decimal(abs(coefficient))
        if short is None or rest.is_Add:
            return str(super()._print_Mul(expr))
        factor = self.parenthesize(rest, PRECEDENCE["Mul"], strict=True)
        sign = "-" if coefficient < 0 else ""
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
        return f"{name}({self.stringify(expr.args, ', ')})"

    def _print_polygamma(self, expr: Any) -> str:
        order, x = expr.args
        return f"digamma({self._print(x)})" if order == 0 else f"polygamma({self._print(order)}, {self._print(x)})"

    def _array_element(self, expr: ArrayElement) -> str:
        array, place = expr.parts()
        text = "".join(nested(array, self._print))
        return f"{expr.op}({text}{expr.settings})" + (f"[{', '.join(map(str, place))}]" if place else "")

    _print_expm1 = _print_log1p = _print_log2 = _print_log10 = _print_Function


def _infix(expr: Any) -> str:
    """Return the sign of an operation of the table that is written between its arguments."""
    return OPERATIONS[expr.op].infix if isinstance(expr, TableFunction) else ""


def _grouped(printer: StrPrinter, expr: Any, infix: str) -> str:
    text = str(printer._print(expr))
    level = _PRECEDENCE.get(_infix(expr), 100 if infix not in ("&", "|") else 0)
    return text if level > _PRECEDENCE[infix] else f"({text})"


def _is_long(number: Any) -> bool:
    """Tell whether nobody would write a number as a fraction: 1.0507… is one of 16 digits by 16."""
    return bool(number.q >= _LONG)


def _decimal(number: Any) -> str | None:
    """Return a number that is no whole number as a decimal of at most 17 digits."""
    return decimal_text(Fraction(number.p, number.q)) if number.is_Rational and number.q != 1 else None


def code(expr: Any, decimals: bool = False, taken: frozenset[str] = frozenset()) -> str:
    """Return an expression as gradcli reads it.

    >>> x = sympy.Symbol("x")
    >>> code(x**2 / 5), code(x**2 / 5, decimals=True)
    ('x**2/5', '0.2*x**2')
    """
    if expr.has(sympy.I, sympy.zoo, sympy.nan, sympy.oo):
        return "nan"  # outside of the real numbers, where PyTorch has nan as well
    return str(_CodePrinter(decimals, taken).doprint(expr))


class _LatexPrinter(_Ordered, LatexPrinter):  # type: ignore[misc]
    """SymPy's LaTeX, with `x[0]` as a subscript and the functions of the table by name."""

    def _print_Symbol(self, expr: Any, style: str = "plain") -> str:
        return latex_name(expr.name)

    def _print_Exp1(self, expr: Any, exp: Any = None) -> str:
        return "e" if exp is None else f"e^{{{exp}}}"

    def _print_where(self, expr: Any, exp: Any = None) -> str:
        condition, a, b = map(self._print, expr.args)
        text = rf"\begin{{cases}} {a} & \text{{if }} {condition} \\ {b} & \text{{otherwise}} \end{{cases}}"
        return text if exp is None else rf"\left({text}\right)^{{{exp}}}"

    def _print_abs(self, expr: Any, exp: Any = None) -> str:
        text = rf"\left|{self._print(expr.args[0])}\right|"
        return text if exp is None else f"{text}^{{{exp}}}"

    def _print_Function(self, expr: Any, exp: Any = None) -> str:
        if not isinstance(expr, ArrayElement):
            return str(super()._print_Function(expr, exp))
        array, place = expr.parts()
        inside = "".join(nested(array, self._print)) + expr.settings.replace("=", " = ").replace(", ", r",\,")
        text = rf"\operatorname{{{expr.op}}}\left({inside}\right)"
        text += f"_{{{','.join(map(str, place))}}}" if place else ""
        return text if exp is None else rf"\left({text}\right)^{{{exp}}}"

    def _print_table(self, expr: Any, exp: Any = None) -> str:
        infix = OPERATIONS[expr.op].infix
        if infix:
            sign = LATEX_INFIX.get(infix, infix)
            first = f"{sign} " if len(expr.args) == 1 else ""
            text = rf"\left({first}{f' {sign} '.join(self._print(a) for a in expr.args)}\right)"
        else:
            inside = ", ".join(self._print(a) for a in expr.args)
            text = rf"\operatorname{{{expr.op.replace('_', chr(92) + '_')}}}\left({inside}\right)"
        return text if exp is None else f"{text}^{{{exp}}}"


for _op, _row in OPERATIONS.items():
    if _row.broadcasts and _op not in SYMPY and _op != "polygamma" and not hasattr(_LatexPrinter, f"_print_{_op}"):
        setattr(_LatexPrinter, f"_print_{_op}", _LatexPrinter._print_table)


def latex(expr: Any, decimals: bool = False) -> str:
    """Return an expression as LaTeX for math mode.

    >>> latex(sympy.Symbol("theta") / sympy.Symbol("x[0]"))
    '\\\\frac{\\\\theta}{x_{0}}'
    """
    if expr.has(sympy.I, sympy.zoo, sympy.nan, sympy.oo):
        return r"\mathrm{nan}"
    expr = expr.xreplace({n: _latex_rational(n, decimals) for n in expr.atoms(sympy.Rational)})
    return str(_LatexPrinter().doprint(expr))


def _latex_rational(number: Any, decimals: bool) -> Any:
    """Return a number with what is written as a decimal as symbols; a sign outside of them needs no brackets."""
    sign, size = sympy.sign(number), abs(number)
    if short := _decimal(size) if decimals or _is_long(number) else None:
        return sign * sympy.Symbol(latex_number(short))
    return sign * _latex_whole(size.p) / _latex_whole(size.q)


def _latex_whole(number: int) -> Any:
    """Return a whole number, as a symbol where it is not written digit by digit."""
    text = whole_text(number)
    return sympy.Integer(number) if text.isdigit() else sympy.Symbol(latex_number(text))
