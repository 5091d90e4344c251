"""SymPy expressions as LaTeX, in the words in which nodes are written."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from typing import Any

import sympy
from sympy.printing.latex import LatexPrinter
from sympy.printing.precedence import PRECEDENCE

from gradcli.algebra.arrays import ArrayElement, nested
from gradcli.algebra.functions import SYMPY, TableFunction
from gradcli.graph.operations import OPERATIONS
from gradcli.notation.decimals import quotient, whole_text
from gradcli.notation.formulas import Ordered, decimal
from gradcli.notation.latex import cases
from gradcli.notation.latex_arrays import beside
from gradcli.notation.latex_calls import LETTERS, SIGNS, function
from gradcli.notation.latex_names import LatexNames, latex_number

_FACTOR = "\0"  # what parts factors until it is known what stands beside what
_OPS = {name: op for op, name in SYMPY.items()} | {"Abs": "abs", "ceiling": "ceil"}


class _LatexPrinter(Ordered, LatexPrinter):  # type: ignore[misc]
    """SymPy's LaTeX, with names and functions as those of nodes; `decimals` writes 1/5 as 0.2."""

    def __init__(self, names: LatexNames, decimals: bool) -> None:
        super().__init__({"mul_symbol": _FACTOR})
        self.names = names
        self.decimals = decimals

    def _print_Symbol(self, expr: Any, style: str = "plain") -> str:
        special = {"inf": r"\infty", "nan": r"\mathrm{nan}"}
        return special.get(expr.name) or self.names(expr.name)

    def _print(self, expr: Any, **kwargs: Any) -> str:
        # Euler's number prints itself, as the letter that a variable may be.
        return r"\mathrm{e}" if expr is sympy.E else str(super()._print(expr, **kwargs))

    def _print_ExpBase(self, expr: Any, exp: Any = None) -> str:
        text = rf"\mathrm{{e}}^{{{self._print(expr.args[0])}}}"
        return text if exp is None else rf"\left({text}\right)^{{{exp}}}"

    # Numbers

    def _print_Integer(self, expr: Any) -> str:
        return latex_number(whole_text(int(expr)))

    def _print_Rational(self, expr: Any) -> str:
        short = decimal(abs(expr), self.decimals)
        sign = "-" if expr < 0 else ""
        if short is not None:
            return sign + latex_number(short)
        above, below = map(latex_number, quotient(Fraction(abs(expr.p), expr.q)))
        return rf"{sign}\frac{{{above}}}{{{below}}}"

    def _print_Mul(self, expr: Any) -> str:
        coefficient, rest = expr.as_coeff_Mul()
        short = decimal(abs(coefficient), self.decimals)
        if short is None:
            return reduce(beside, str(super()._print_Mul(expr)).split(_FACTOR))
        sign = "- " if coefficient < 0 else ""
        number = latex_number(short)
        numerator, denominator = sympy.fraction(rest)
        if denominator != 1:
            above = number if numerator == 1 else self._times(number, numerator)
            return rf"{sign}\frac{{{above}}}{{{self._print(denominator)}}}"
        return sign + self._times(number, rest)

    def _times(self, number: str, rest: Any) -> str:
        return beside(number, str(self.parenthesize(rest, PRECEDENCE["Mul"], strict=True)))

    def _print_Pow(self, expr: Any) -> str:
        base = expr.base
        if base.is_Rational and base > 0 and not expr.exp.is_Rational:
            text = self._print(base)
            plain = base.q == 1 or text[0].isdigit()
            text = text if plain and r"\times" not in text else rf"\left({text}\right)"
            return f"{text}^{{{self._print(expr.exp)}}}"
        return str(super()._print_Pow(expr))

    def _needs_mul_brackets(self, expr: Any, first: bool = False, last: bool = False) -> bool:
        if getattr(expr, "op", "") == "where":  # a choice has no end on the right
            return not last
        return bool(super()._needs_mul_brackets(expr, first, last))

    # Functions

    def _print_Function(self, expr: Any, exp: Any = None) -> str:
        element = isinstance(expr, ArrayElement)
        text = self._element(expr) if element else self._applied(expr)
        if exp is None:
            return text
        ends = text.endswith((r"\right)", r"\right|", r"\rfloor", r"\rceil")) and not text.startswith(r"\left(")
        return f"{text}^{{{exp}}}" if ends or element else rf"\left({text}\right)^{{{exp}}}"

    def _applied(self, expr: Any) -> str:
        op = expr.op if isinstance(expr, TableFunction) else _OPS.get(expr.func.__name__, expr.func.__name__)
        args = [self._print(a) for a in expr.args]
        row = OPERATIONS.get(op)
        if op == "where":
            return cases(self._condition(expr.args[0]), *args[1:])
        if row is not None and row.infix:
            return rf"\left({self._signed(row.infix, args)}\right)"
        if "{}" in (text := function(op)):
            return text.format(*args)
        return rf"{self._name(op, args)}\left({', '.join(args)}\right)"

    def _name(self, op: str, args: list[str]) -> str:
        """Return the name of a function; one that has its first argument in it, has it no more among the others."""
        if op == "lgamma":
            return rf"\log {self.names.symbol(LETTERS['gamma'], 'gamma')}"
        if op not in LETTERS:
            return function(op)
        order = args.pop(0) if op == "polygamma" else "0"
        letter = self.names.symbol(LETTERS[op], "digamma" if order == "0" else op)
        return letter if order == "0" else f"{letter}^{{({order})}}"

    def _condition(self, expr: Any) -> str:
        """Return a condition, without brackets after an "if"."""
        row = OPERATIONS.get(getattr(expr, "op", ""))
        infix = "" if row is None else row.infix
        return self._signed(infix, [self._print(a) for a in expr.args]) if infix else str(self._print(expr))

    def _signed(self, infix: str, args: list[str]) -> str:
        """Return an expression with a prefix or infix sign."""
        sign = SIGNS.get(infix, infix)
        return f"{sign} {args[0]}" if len(args) == 1 else f" {sign} ".join(args)

    def _element(self, expr: ArrayElement) -> str:
        array, index = expr.parts()
        inside = "".join(nested(array, self._print)) + expr.settings.replace("=", " = ").replace(", ", r",\,")
        text = rf"\operatorname{{{expr.op}}}\left({inside}\right)"
        return self.names.indexed(text, ",".join(map(str, index))) if index else text


for _name in {*OPERATIONS, *SYMPY.values(), *_OPS, "max", "min", "log", "polygamma"} - {"exp"}:
    setattr(_LatexPrinter, f"_print_{_name}", _LatexPrinter._print_Function)


def latex(expr: Any, decimals: bool = False, names: LatexNames | None = None) -> str:
    """Return an expression as LaTeX for math mode; `names` are those of the page.

    >>> from gradcli.algebra.functions import symbol
    >>> from gradcli.graph.names import element_name
    >>> latex(symbol("theta") / symbol(element_name("x", [0])))
    '\\\\frac{\\\\theta}{x_{0}}'
    >>> x = sympy.Symbol("x")
    >>> latex(sympy.sqrt(x) / 5, decimals=True), latex(1 / (5 * sympy.sqrt(x)), decimals=True)
    ('0.2 \\\\sqrt{x}', '\\\\frac{0.2}{\\\\sqrt{x}}')
    """
    if expr.has(sympy.I, sympy.zoo, sympy.nan, sympy.oo):
        return r"\mathrm{nan}"
    return str(_LatexPrinter(names or LatexNames(), decimals).doprint(expr))
