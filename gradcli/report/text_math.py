"""Mathematics as text: formulas in the language of gradcli, numbers rounded, large arrays summarised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from gradcli.graph.names import element_name
from gradcli.graph.node import Exact
from gradcli.graph.operations import OPERATIONS
from gradcli.notation.nodes import Notation
from gradcli.notation.numbers import array_text, number_text, shape_text
from gradcli.notation.writer import Binds
from gradcli.pages import sections
from gradcli.pages.results import Array, Style
from gradcli.text.wrapping import visible

WHOLE = 12  # elements of an array that is shown whole
_FEW = 3  # elements along an axis of a larger one


class TextWriter:
    """Writes mathematics in a style; `digits` significant ones of each number, all of them where it is None."""

    dot, times, brackets, power, fraction = "·", "*", "({})", "{}**{}", "{}/{}"

    def __init__(self, style: Style, digits: int | None) -> None:
        self.style = style
        self.digits = digits

    def write(self, math: sections.Math) -> str:
        """Return mathematics as text, in which every name is visible."""
        match math:
            case str(text) | sections.Name(text) | sections.Formula(text) | sections.Typed(text):
                return visible(text)
            case sections.Grad(name, key):
                return visible(element_name(f"{name}.grad", key) if key else f"{name}.grad")
            case sections.Partial(of, by, order):
                above, below = visible(_side(of)), visible(_side(by))
                return f"∂{above}/∂{below}" if order == 1 else f"∂{order}{above}/∂{below}{order}"
            case sections.Value(array, signed_zero):
                return self.array(np.asarray(array) if signed_zero else unsigned(np.asarray(array)))
            case sections.Computed(node, names, written, implicit, whole):
                return visible(written or Notation(names, implicit=implicit).expression(node, whole))
            case sections.Added(to, what):
                return f"{self.write(to)} += {self.write(what)}"
            case sections.Words(parts):
                return "".join(map(self.write, parts))
            case sections.VectorProduct(matrix, vector, first):
                return visible(f"{vector}ᵀ{matrix}" if first else f"{matrix}·{vector}")
            case sections.Product(factors):
                return self._product(factors, first=True)
            case sections.Sum(terms):
                return " + ".join(self._term(t, k == 0) for k, t in enumerate(terms))
            case sections.Difference(minuend, subtrahend):
                return f"{self.write(minuend)} - {self.write(subtrahend)}"
            case sections.Polynomial(coefficients, variable):
                return self._polynomial(coefficients, variable)
            case sections.Listed(items):
                return f"[{', '.join(map(self.write, items))}]"
            case sections.Equal(sides):
                return " = ".join(self.sides(sides))

    def sides(self, sides: tuple[sections.Math, ...]) -> list[str]:
        """Return the sides of an equation, without those that are written like the one before.

        A comparison between two signs of equality is in brackets: t = (x > 0) = 1.
        """
        texts = list(map(self.write, sides))
        for k, side in enumerate(sides[1:-1], 1):
            if isinstance(side, sections.Computed) and side.node.args and OPERATIONS[side.node.op].compares:
                texts[k] = self.brackets.format(texts[k])
        return [text for k, text in enumerate(texts) if not k or text != texts[k - 1]]

    def columns(
        self, matrix: sections.Matrix, cells: Mapping[tuple[int, int], str]
    ) -> tuple[list[list[str]], list[list[str]]]:
        """Return the columns of a matrix, headings first: the row headings, v, and the entries."""
        fixed = [[matrix.name, *map(self.write, matrix.rows)]]
        rows = range(len(matrix.rows))
        columns = [[self.write(head), *(cells.get((i, j), "0") for i in rows)] for j, head in enumerate(matrix.columns)]
        if matrix.weights:
            fixed.insert(0, ["v", *map(self.write, matrix.weights)])
        if matrix.total:
            fixed = [[*column, ""] for column in fixed]
            fixed[-1][-1] = self.write(sections.VJP)
            columns = [[*column, self.write(total)] for column, total in zip(columns, matrix.total, strict=True)]
        return fixed, columns

    def _product(self, factors: tuple[sections.Math, ...], first: bool) -> str:
        return self.dot.join([self._factor(f, first and k == 0) for k, f in enumerate(factors)])

    def _term(self, term: sections.Math, first: bool) -> str:
        if isinstance(term, sections.Product):
            return self._product(term.factors, first)
        text = self.write(term)
        return text if first or not text.startswith("-") else self.brackets.format(text)

    def _factor(self, math: sections.Math, is_first: bool) -> str:
        """Return a factor of a product, in brackets where it would be misread.

        Brackets go around a compound formula, and around a negative number that is not the first factor: `2·(-3)`.
        """
        text = self.write(math)
        match self._as_nodes(math):
            case sections.Value():
                grouped = text.startswith("-") and not is_first
            case sections.Computed(node, names, implicit=implicit):
                is_number = isinstance(node.value, Exact) and node.value >= 0  # 1/2 too
                grouped = not is_number and Notation(names, implicit=implicit).written(node).binds < Binds.ATOM
            case _:
                grouped = False
        return self.brackets.format(text) if grouped else text

    def _as_nodes(self, math: sections.Math) -> sections.Math:
        """Return a formula of SymPy's as one of nodes, and any other mathematics as it is."""
        if not isinstance(math, sections.Value) or math.array.dtype != object or math.array.shape:
            return math
        expr = math.array.item()
        if isinstance(expr, int | float):
            return math
        from gradcli.notation.formulas import as_node

        node, names = as_node(expr, self.style.decimals, self.style.taken)
        return sections.Name(names[node]) if node in names else sections.Computed(node, names)

    def _polynomial(self, coefficients: tuple[Fraction | float, ...], variable: str) -> str:
        """Return a sum of powers, in text as gradcli reads it: `h - h**3/6`."""
        x, terms = self.write(sections.Name(variable)), []
        for k, c in enumerate(coefficients):
            power = "" if k == 0 else x if k == 1 else self.power.format(x, k)
            above, below = (abs(c.numerator), c.denominator) if isinstance(c, Fraction) else (abs(c), 1)
            number = self.element(float(above))
            text = power if power and number == "1" else self.times.join(filter(None, (number, power)))
            if c:
                terms.append((" - " if c < 0 else " + ", text if below == 1 else self.fraction.format(text, below)))
        return signed_sum(terms)

    def number(self, value: float) -> str:
        """Return a number, rounded."""
        text = number_text(value)
        if self.digits is None or not np.isfinite(value):
            return text
        short = f"{value:.{self.digits}g}"
        return text if float(short) == value else number_text(float(short)) if "e" not in short else short

    def element(self, value: Any) -> str:
        """Return an element of an array: a number, a truth value, or a formula."""
        if isinstance(value, bool):
            return str(value)
        if isinstance(value, int | float):
            return self.number(float(value))
        from gradcli.notation.formulas import code

        return code(value, self.style.decimals, self.style.taken)

    def array(self, array: Array) -> str:
        """Return a number, an array as nested lists, or the beginning of a large one with its shape."""
        if not array.shape:
            return self.element(array.item())
        if array.size <= WHOLE:
            return array_text(array, self.element)
        return f"{self._beginning(array)} ({shape_text(array.shape)})"

    def _beginning(self, array: Array) -> str:
        """Return the first row of an array, as far as its first elements."""
        if array.ndim > 1:
            return f"[{self._beginning(array[0])}{', …' * (len(array) > 1)}]"
        shown = [self.element(e) for e in array[:_FEW].tolist()]
        return f"[{', '.join(shown + ['…'] * (len(array) > _FEW))}]"


def _side(names: str | tuple[str, ...]) -> str:
    """Return one quantity, or several in brackets."""
    return names if isinstance(names, str) else f"({', '.join(names)})"


def signed_sum(terms: Sequence[tuple[str, str]]) -> str:
    """Return terms with their signs as a sum, 0 of none.

    >>> signed_sum([(" - ", "h"), (" + ", "h**2")])
    '-h + h**2'
    """
    whole = "".join(sign + text for sign, text in terms)
    return f"-{whole[3:]}" if whole.startswith(" - ") else whole[3:] or "0"


def unsigned(array: Array) -> Array:
    """Return numbers with zeros that have no sign."""
    return array + 0.0 if array.dtype.kind == "f" else array
