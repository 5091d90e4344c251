"""Mathematics as LaTeX, for math mode: words as text, numbers rounded, large arrays summarised."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.graph.node import operand
from gradcli.notation.latex import LatexNotation
from gradcli.notation.latex_names import LatexNames, latex_number, literal
from gradcli.notation.latex_writer import matrix, times
from gradcli.notation.writer import Binds
from gradcli.pages import sections
from gradcli.pages.results import Array, Style
from gradcli.report.latex_letters import SIGNS
from gradcli.report.text_math import TextWriter
from gradcli.text.wrapping import visible

_WHOLE = 36  # elements of an array that is set whole
_FEW = 3
_SPECIAL = {"inf": r"\infty", "-inf": r"-\infty", "nan": r"\mathrm{nan}"}
_DOTS = r"\ldots{}"
# Characters of sentences that no text font has.
_SYMBOLS = {c: f"${sign}$" for c, sign in SIGNS.items()} | {c: f"${c}$" for c in "<>|"} | {"…": _DOTS}
_ACCENTED = re.compile("(\\w)\u0304")


def escaped(text: str) -> str:
    """Return words as LaTeX text, and code between backticks as code.

    >>> escaped("x.v, 100 %"), escaped("until `x.grad = None`")
    ('x.v, 100 \\\\%', 'until \\\\texttt{x.grad = None}')
    """
    return sections.with_code(visible(text), _words, code)


def code(text: str) -> str:
    """Return code in typewriter type.

    >>> code("--v onehot:y_0")
    '\\\\texttt{--v onehot:y\\\\_0}'
    """
    return rf"\texttt{{{literal(visible(text)).replace('…', _DOTS)}}}"


def _words(text: str) -> str:
    plain = _ACCENTED.sub(r"$\\bar{\1}$", literal(text))
    return "".join(_SYMBOLS.get(c, c) for c in plain)


class LatexWriter(TextWriter):
    """Writes mathematics for math mode."""

    dot, times, brackets, power, fraction = r" \cdot ", " ", r"\left({}\right)", "{}^{{{}}}", r"\frac{{{}}}{{{}}}"

    def __init__(self, style: Style, digits: int | None) -> None:
        super().__init__(style, digits)
        self.names = LatexNames(style.taken, style.single)

    def write(self, math: sections.Math) -> str:
        """Return mathematics as LaTeX, in which every name is text."""
        match math:
            case str():
                return math if not math.strip() or math.isdigit() else rf"\text{{{escaped(math)}}}"
            case sections.Name(name):
                return self.names(name)
            case sections.Grad(name, key):
                return rf"{self.names(name)}\mathtt{{.grad}}" + (f"_{{{','.join(map(str, key))}}}" if key else "")
            case sections.Partial(of, by, order, local):
                return self.names.derivative(of, by, order, local)
            case sections.Computed(node, names, implicit=implicit, whole=whole):
                return LatexNotation(names, implicit=implicit, latex=self.names).expression(node, whole)
            case sections.Formula(_, formula):
                return self.write(formula)
            case sections.Added(to, what):
                return rf"{self.write(to)} \mathrel{{+}}= {self.write(what)}"
            case sections.Words(parts):
                return "".join(rf"\text{{{escaped(p)}}}" if isinstance(p, str) else self.write(p) for p in parts)
            case sections.Typed(text):
                return code(text)
            case sections.VectorProduct(matrix, vector, first):
                return rf"{vector}^{{\top}} {matrix}" if first else f"{matrix} {vector}"
            case sections.Listed(items):
                return self._rows(items) if isinstance(items[0], sections.Listed) else column(self._rows(items))
        return super().write(math)

    def _rows(self, items: Sequence[sections.Math]) -> str:
        """Return a list as a matrix, whose elements may be lists."""
        rows = [item.items for item in items if isinstance(item, sections.Listed)] or [tuple(items)]
        return matrix(
            [[self._rows(e.items) if isinstance(e, sections.Listed) else self.write(e) for e in row] for row in rows]
        )

    def _factor(self, math: sections.Math, is_first: bool) -> str:
        """Return a factor of a product, in brackets where it would be misread.

        Brackets go around a sum, a product with dots, and what begins with a minus and is not the first factor.
        """
        if isinstance(math, str):
            return self.names(math) if math.isidentifier() else self.write(math)
        text = self.write(math)
        dotted = self.dot in text
        match self._as_nodes(math):
            case sections.Computed(node, names, implicit=implicit):
                binds = LatexNotation(names, implicit=implicit, latex=self.names).written(node).binds
                is_sum = binds <= Binds.SUM and operand(node, "neg") is None and not node.is_constant
                grouped = is_sum or (dotted and operand(node, "mul") is not None)
            case _:
                grouped = False
        return self.brackets.format(text) if grouped or (text.startswith("-") and not is_first) else text

    def element(self, value: Any) -> str:
        """Return an element of an array: a number, a truth value, or a formula."""
        if isinstance(value, bool):
            return rf"\mathrm{{{value}}}"
        if isinstance(value, int | float):
            text = self.number(float(value))
            return _SPECIAL.get(text) or latex_number(text)
        from gradcli.notation.formulas import latex

        return "0" if value == 0 else latex(value, self.style.decimals, self.names)

    def array(self, array: Array) -> str:
        """Return a number, or an array as a matrix; one of more than two dimensions as a matrix of matrices."""
        if not array.shape:
            return self.element(array.tolist())
        if array.size > _WHOLE:
            return self._beginning(array)
        return self._nested(array) if array.ndim > 1 else column(self._nested(array))

    def _nested(self, array: Array) -> str:
        """Return an array as a matrix, whose elements may be arrays."""
        if not array.shape:
            return self.element(array.tolist())
        rows = array if array.ndim > 1 else array[None]
        return matrix([[self._nested(np.asarray(row[k])) for k in range(len(row))] for row in rows])

    def _beginning(self, array: Array) -> str:
        """Return the corner of a large array, with its shape."""
        rows = array.reshape(-1, array.shape[-1])
        cells = [[self.element(e) for e in row[:_FEW].tolist()] for row in rows[:_FEW]]
        cells = [[*row, r"\cdots"] if array.shape[-1] > _FEW else row for row in cells]
        if len(rows) > _FEW:
            cells.append([r"\vdots"] * min(array.shape[-1], _FEW) + [r"\ddots"] * (array.shape[-1] > _FEW))
        above = r"^{\top}" if array.ndim == 1 else ""
        return f"{matrix(cells)}_{{{times(array.shape)}}}{above}"


def column(row: str) -> str:
    """Return a vector, which is a column, written as a row."""
    return rf"{row}^{{\top}}"
