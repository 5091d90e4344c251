"""SymPy expressions as nodes, which are written as text that gradcli reads back, and as LaTeX."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial, reduce
from itertools import groupby
from typing import Any

import sympy

from gradcli.algebra.arrays import ArrayElement
from gradcli.algebra.functions import SYMPY, TableFunction
from gradcli.graph.node import Constant, Node, const, leaf
from gradcli.graph.shapes import Shape
from gradcli.notation.latex import LatexNotation
from gradcli.notation.latex_names import LatexNames
from gradcli.notation.nodes import Notation
from gradcli.notation.numbers import decimal_text, quotient

_LONG = 10**4
_OPS = {name: op for op, name in SYMPY.items()} | {"Abs": "abs", "ceiling": "ceil"}
_CONSTANTS: dict[Any, Constant] = {sympy.pi: "pi", sympy.E: "e"}
_NOT_FINITE = ("inf", "nan")  # symbols of numbers that no algebra is done with


class _Complete(Notation):
    shown = 2**20


def as_node(expr: Any, decimals: bool = False, taken: frozenset[str] = frozenset()) -> tuple[Node, dict[Node, str]]:
    """Return an expression as a node, and the names of its variables.

    `decimals` writes 1/5 as 0.2; `taken` are names that mean variables.

    >>> x = sympy.Symbol("x")
    >>> node, names = as_node(x**2 / 5)
    >>> node, [*names.values()]
    (div(pow, const), shape (), ['x'])
    """
    letters = {name: leaf() for name in sorted(taken & {"pi", "e"})}
    # Outside of the real numbers PyTorch has nan.
    is_nan = expr.has(sympy.I, sympy.zoo, sympy.nan, sympy.oo)
    node = const(float("nan")) if is_nan else _Reader(decimals, letters).node(expr)
    return node, {n: name for name, n in letters.items()}


def code(expr: Any, decimals: bool = False, taken: frozenset[str] = frozenset()) -> str:
    """Return an expression as gradcli reads it.

    >>> x = sympy.Symbol("x")
    >>> code(x**2 / 5), code(x**2 / 5, decimals=True)
    ('x**2/5', '0.2*x**2')
    >>> code(-3 * x / sympy.Rational("1.4142137"))
    '-3*x/1.4142137'
    """
    node, names = as_node(expr, decimals, taken)
    return _Complete(names).name(node)


def latex(expr: Any, decimals: bool = False, names: LatexNames | None = None) -> str:
    """Return an expression as LaTeX for math mode; `names` are those of the page.

    >>> x = sympy.Symbol("x")
    >>> latex(sympy.Symbol("theta") / x), latex(1 / (5 * sympy.sqrt(x)), decimals=True)
    ('\\\\frac{\\\\theta}{x}', '\\\\frac{0.2}{\\\\sqrt{x}}')
    """
    node, letters = as_node(expr, decimals)
    return LatexNotation(letters, latex=names or LatexNames()).name(node)


class _Reader:
    """Makes nodes of expressions; `letters` are the leaves by their names."""

    def __init__(self, decimals: bool, letters: dict[str, Node]) -> None:
        self.decimals, self.letters = decimals, letters

    def node(self, expr: Any) -> Node:
        if expr.is_Symbol:
            return const(float(expr.name)) if expr.name in _NOT_FINITE else self._letter(expr.name)
        if expr.is_Rational:
            value = Fraction(expr.p, expr.q)
            return self._number(value) if value.denominator != 1 else const(value.numerator)
        if expr in _CONSTANTS:
            return const(_CONSTANTS[expr])
        if expr.is_Add:
            return self._sum(expr)
        if expr.is_Mul:
            return self._product(expr)
        return self._power(*expr.args) if expr.is_Pow else self._function(expr)

    def _letter(self, name: str, shape: Shape = ()) -> Node:
        return self.letters.setdefault(name, leaf(shape))

    def _number(self, value: Fraction) -> Node:
        return const(self._decimal(value) or value)

    def _decimal(self, value: Fraction) -> Decimal | None:
        """Return a number that is not an integer as a decimal of at most 17 digits, if decimals are wanted.

        Nobody would write 0.7615942 as 3807971/5000000: that is a decimal in any case.
        """
        wanted = value.denominator != 1 and (self.decimals or value.denominator >= _LONG)
        text = decimal_text(value) if wanted else None
        return None if text is None else Decimal(text)

    def _sum(self, expr: Any) -> Node:
        """Return a sum with a positive term first: `x - m`, not `-m + x`."""
        terms = list(expr.as_ordered_terms())
        first = next((i for i, term in enumerate(terms) if not term.could_extract_minus_sign()), 0)
        total, *others = terms.pop(first), *terms
        result = self.node(total)
        for negative, run in groupby(others, lambda term: bool(term.as_coeff_Mul()[0] < 0)):
            if negative:
                result = reduce(partial(_operation, "sub"), [self.node(-term) for term in run], result)
            else:
                result = _balanced([result, *map(self.node, run)])
        return result

    def _product(self, expr: Any) -> Node:
        """Return a product as one fraction, with its number first."""
        number, rest = expr.as_coeff_Mul()
        size = Fraction(abs(number.p), number.q)
        above: list[Node] = []
        below: list[Node] = []
        if (decimal := None if rest.is_Add else self._decimal(size)) is not None:
            above.append(const(decimal))
        else:
            above, below = ([const(_read(part))] if part != "1" else [] for part in quotient(size))
        for factor in rest.as_ordered_factors():
            base, exponent = factor.args if factor.is_Pow else (factor, sympy.S.One)
            if exponent.as_coeff_Mul()[0] < 0:
                below.append(self._power(base, -exponent))
            else:
                above.append(self.node(factor))
        product = reduce(_times, above or [const(1)])
        whole = _operation("div", product, reduce(_times, below)) if below else product
        return _operation("neg", whole) if number < 0 else whole

    def _power(self, base: Any, exponent: Any) -> Node:
        if exponent == 1:
            return self.node(base)
        if exponent == sympy.S.Half:
            return _operation("sqrt", self.node(base))
        if exponent.is_Rational and exponent < 0:
            return _operation("div", const(1), self._power(base, -exponent))
        return _operation("pow", self.node(base), self.node(exponent))

    def _function(self, expr: Any) -> Node:
        if isinstance(expr, ArrayElement):
            return self._element(expr)
        op = expr.op if isinstance(expr, TableFunction) else _OPS.get(expr.func.__name__, expr.func.__name__)
        args = expr.args
        if op == "polygamma" and args[0] == 0:
            op, args = "digamma", args[1:]
        if op in ("max", "min") and len(args) == 2 and any(a.is_Integer for a in args):
            op = f"{op}imum"  # `max(x, 2)` may mean an axis
        settings = ((0,), "even") if op in ("max", "min") else ()
        return Node(op, tuple(map(self.node, args)), (), settings, "float64")

    def _element(self, expr: ArrayElement) -> Node:
        elements, symbols = expr.parts()
        index = tuple(map(int, symbols))
        array = self._array(elements.tolist())
        whole = Node(expr.op, (array,), tuple(i + 1 for i in index), expr.settings, "float64")  # at least so large
        return Node("index", (whole,), (), (index,), "float64") if index else whole

    def _array(self, elements: Any) -> Node:
        if not isinstance(elements, list):
            return self.node(elements)
        parts = tuple(map(self._array, elements))
        return Node("stack", parts, (len(parts), *parts[0].shape), (0,), "float64")


def _operation(op: str, *args: Node) -> Node:
    return Node(op, args, (), (), "float64")


def _balanced(terms: Sequence[Node]) -> Node:
    """Return a sum as a tree of little depth, however many terms it has: they are written in their order."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return _operation("add", _balanced(terms[:half]), _balanced(terms[half:]))


def _times(a: Node, b: Node) -> Node:
    return _operation("mul", a, b)


def _read(text: str) -> Constant:
    return Decimal(text) if "." in text else int(Decimal(text))
