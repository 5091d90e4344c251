"""Mathematics as LaTeX, for math mode: words as text, numbers rounded, large arrays summarised."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.explain.results import Array
from gradcli.explain.sections import (
    Computed,
    Equal,
    Formula,
    Grad,
    Listed,
    Math,
    Name,
    Page,
    Partial,
    Product,
    Sum,
    Value,
)
from gradcli.graph.names import latex_name, latex_number
from gradcli.notation.nodes import LatexNotation
from gradcli.notation.numbers import number_text
from gradcli.report.text_math import TextWriter

_WHOLE = 36  # elements of an array that is set whole
_COLUMNS = 10  # of a matrix that amsmath sets as one
_FEW = 3
_SPECIAL = {"inf": r"\infty", "-inf": r"-\infty", "nan": r"\mathrm{nan}"}
_ESCAPES = {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"} | {
    c: f"\\{c}" for c in "&%$#_{}"
}
# What stands in sentences, and in no font of text.
_SYMBOLS = {"∂": r"$\partial$", "·": r"$\cdot$", "×": r"$\times$", "ᵀ": r"$^{\top}$", "Σ": r"$\Sigma$", "→": r"$\to$"}
_ACCENTED = re.compile("(\\w)\u0304")


def escaped(text: str) -> str:
    """Return words as LaTeX text.

    >>> escaped("v·x_1")
    'v$\\\\cdot$x\\\\_1'
    """
    plain = "".join(_ESCAPES.get(c, c) for c in text)
    plain = _ACCENTED.sub(r"$\\bar{\1}$", plain)
    return "".join(_SYMBOLS.get(c, c) for c in plain)


class LatexWriter:
    """Writes mathematics for a page; `digits` significant ones of each number, all of them where it is None."""

    def __init__(self, page: Page, digits: int | None) -> None:
        self.page = page
        self.digits = digits
        self._numbers = TextWriter(page, digits)

    def write(self, math: Math) -> str:
        """Return mathematics as LaTeX."""
        match math:
            case str():
                return math if not math.strip() or math.isdigit() else rf"\text{{{escaped(math)}}}"
            case Name(name):
                return latex_name(name)
            case Grad(name):
                return grad_symbol(name)
            case Partial(of, by):
                return rf"\frac{{\partial {latex_name(of) if of else ''}}}{{\partial {latex_name(by)}}}"
            case Value(array):
                return self.array(np.asarray(array))
            case Computed(node, names, implicit=implicit):
                return LatexNotation(names, implicit=implicit).expression(node)
            case Formula(_, latex):
                return latex
            case Product(factors):
                return self._product(factors, first=True)
            case Sum(terms):
                return " + ".join(self._term(t, k == 0) for k, t in enumerate(terms))
            case Listed(items):
                return matrix(
                    [[self.write(e) for e in (i.items if isinstance(i, Listed) else (i,))] for i in _rows(items)]
                )
            case Equal(sides):
                return " = ".join(self.sides(sides))

    def sides(self, sides: Sequence[Math]) -> list[str]:
        """Return the sides of an equation, without those that are written like the one before."""
        texts = list(map(self.write, sides))
        return [text for k, text in enumerate(texts) if not k or text != texts[k - 1]]

    def _product(self, factors: tuple[Math, ...], first: bool) -> str:
        return r" \cdot ".join(self._factor(f, first and k == 0) for k, f in enumerate(factors))

    def _term(self, term: Math, first: bool) -> str:
        if isinstance(term, Product):
            return self._product(term.factors, first)
        text = self.write(term)
        return text if first or not text.startswith("-") else rf"\left({text}\right)"

    def _factor(self, math: Math, signed: bool) -> str:
        """Return a factor: a sum, and what has a sign and is not the first, in brackets."""
        if isinstance(math, str):
            return latex_name(math) if math.isidentifier() else self.write(math)
        text = self.write(math)
        bare = re.sub(r"\{[^{}]*\}", "", re.sub(r"\\left.*\\right.", "", text))
        grouped = " + " in bare or " - " in bare or (text.startswith("-") and not signed)
        return rf"\left({text}\right)" if grouped else text

    def element(self, value: Any) -> str:
        """Return an element of an array: a number, or a formula."""
        if isinstance(value, int | float):
            text = self._numbers.number(float(value))
            return _SPECIAL.get(text) or latex_number(text)
        from gradcli.notation.formulas import latex

        return "0" if value == 0 else latex(value, self.page.decimals)

    def array(self, array: Array) -> str:
        """Return a number, or an array as a matrix; one of more than two dimensions as a matrix of matrices."""
        if not array.shape:
            return self.element(array.tolist())
        if array.size > _WHOLE:
            return self._beginning(array)
        rows = array if array.ndim > 1 else array[None]
        return matrix([[self.array(np.asarray(row[k])) for k in range(len(row))] for row in rows])

    def _beginning(self, array: Array) -> str:
        """Return the corner of a large array, with its shape."""
        rows = array.reshape(-1, array.shape[-1])
        cells = [[self.element(e) for e in row[:_FEW].tolist()] for row in rows[:_FEW]]
        cells = [[*row, r"\cdots"] if array.shape[-1] > _FEW else row for row in cells]
        if len(rows) > _FEW:
            cells.append([r"\vdots"] * min(array.shape[-1], _FEW) + [r"\ddots"] * (array.shape[-1] > _FEW))
        sizes = r" \times ".join(map(str, array.shape))
        return f"{matrix(cells)}_{{{sizes}}}"


def _rows(items: tuple[Math, ...]) -> list[Math]:
    """Return the rows of a list: itself as the only one, unless it has lists in it."""
    return list(items) if items and isinstance(items[0], Listed) else [Listed(items)]


def grad_symbol(name: str) -> str:
    """Return x.grad as LaTeX."""
    return rf"{latex_name(name)}\mathtt{{.grad}}"


def number(value: float) -> str:
    """Return a number with all its digits as LaTeX."""
    text = number_text(value)
    return _SPECIAL.get(text) or latex_number(text)


def matrix(rows: Sequence[Sequence[str]]) -> str:
    """Return a `pmatrix`, which amsmath allows 10 columns, or an array in brackets."""
    body = r" \\ ".join(" & ".join(row) for row in rows)
    columns = max(map(len, rows), default=0)
    if columns <= _COLUMNS:
        return rf"\begin{{pmatrix}} {body} \end{{pmatrix}}"
    return rf"\left(\begin{{array}}{{{'c' * columns}}} {body} \end{{array}}\right)"
