"""Estimates of the width and height of LaTeX on a page, and the places where a long formula may be broken."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import TypeVar

Item = TypeVar("Item")

WIDTH = 66  # letters of a line
HEIGHT = 24  # lines of a display on one page

_TOKEN = re.compile(r"\\(?:begin|end)\{[a-z]+\*?\}(?:\{[a-z|]+\})?|\\[A-Za-z]+|\\.|[{}^_&]|\s+|.", re.DOTALL)
_OPENING, _CLOSING = (r"\left", r"\begin", "{", "["), (r"\right", r"\end", "}", "]")
_SILENT = {
    r"\left", r"\right", r"\mathit", r"\mathrm", r"\mathtt", r"\texttt", r"\mathbf", r"\operatorname", r"\text",
    r"\bar", r"\hat", r"\tilde", r"\displaystyle", r"\,", r"\;",
}  # fmt: skip
_WIDE = {r"\sum": 3, r"\prod": 3, r"\quad": 3, r"\qquad": 6, r"\arcsin": 6, r"\arccos": 6, r"\arctan": 6}
_NAMES = {rf"\{n}": len(n) for n in ("sin", "cos", "tan", "sec", "csc", "cot", "sinh", "cosh", "tanh", "log", "max")}
_SPACED = {
    r"\to": 3, r"\times": 3, r"\infty": 2, r"\mathrel": 2, "+": 3, "-": 3, "=": 3, "<": 3, ">": 3, ",": 1.5,
    r"\cdot": 2, r"\odot": 3, r"\leq": 3, r"\geq": 3,
}  # fmt: skip
_WIDTHS: dict[str, float] = _SPACED | _NAMES | _WIDE
_SMALL = 0.7  # of a subscript
_SIZES = {"": 1.0, r"\small": 0.94, r"\footnotesize": 0.87}
_FOREIGN = 6  # of a letter that is shown by its number
_SHORT = 4  # of the left side of an equation


def width(latex: str) -> float:
    """Return about how many letters wide LaTeX is.

    >>> width("x + 1"), width(r"\\frac{x_{1}}{2}")
    (5.0, 1.7)
    """
    return _Measure(_TOKEN.findall(latex)).sequence()


def height(latex: str) -> int:
    """Return about how many lines high a formula is: those of its largest matrix, two of a fraction.

    >>> height("x"), height(r"\\frac{1}{2}"), height(r"\\begin{pmatrix} 1 \\\\ 2 \\\\ 3 \\end{pmatrix}")
    (1, 2, 3)
    """
    bodies: list[str] = re.findall(r"\\begin\{(?:pmatrix|cases|array)\}(.*?)\\end", latex)
    return max([1, 2 * (r"\frac" in latex), *(body.count(r"\\") + 1 for body in bodies)])


class _Measure:
    """Reads tokens, and adds up how wide they are."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self.tokens = list(reversed(tokens))

    def sequence(self, end: tuple[str, ...] = ()) -> float:
        """Return the width up to an ending token; of an environment, that of its widest row."""
        widest = total = 0.0
        while self.tokens:
            token = self.tokens.pop()
            if token in end or (end and token.startswith(r"\end")):
                break
            if token == r"\\":
                widest, total = max(widest, total), 0.0
            else:
                total += self.one(token)
        return max(widest, total)

    def one(self, token: str) -> float:
        """Return the width of what begins with a token."""
        if token == "{":
            return self.sequence(("}",))
        if token.startswith(r"\begin"):
            return self.sequence((r"\end",)) + 2
        if token in ("^", "_"):
            return _SMALL * self.argument()
        if token == r"\frac":
            return max(self.argument(), self.argument())
        if token == "&":
            return 2.0
        if not token.strip() or token in _SILENT or token.startswith(r"\end"):
            return 0.0
        return float(_WIDTHS.get(token) or (1 if token.isascii() else _FOREIGN))

    def argument(self) -> float:
        """Return the width of the next group, or the next sign."""
        while self.tokens and not self.tokens[-1].strip():
            self.tokens.pop()
        return self.one(self.tokens.pop()) if self.tokens else 0.0


def table(form: str, head: str, body: Sequence[str], last: str = "") -> str:
    """Return an array of these rows, with a line below its head, and above its last row if there is one."""
    high = any(height(row) > 1 for row in body)  # fractions of two rows would touch, and the line above them
    end, below = (r" \\[4pt]", r" \\[-0.7em]") if high else (r" \\", "")
    rows = [*body, *([rf"\hline{below} {last}"] if last else [])]
    above = r" \\[4pt]" if height(head) > 1 else r" \\"
    return f"\\begin{{array}}{{{form}}}\n{head}{above} \\hline{below}\n" + f"{end}\n".join(rows) + "\n\\end{array}"


def paged(items: Iterable[Item], lines: Callable[[Item], int], most: float = HEIGHT) -> list[list[Item]]:
    """Return items in parts of one page each; `lines` says how high an item is.

    >>> paged([10, 10, 10], lambda item: item)
    [[10, 10], [10]]
    """
    parts: list[list[Item]] = [[]]
    used = 0
    for item in items:
        used += lines(item)
        if used > most and parts[-1]:
            parts.append([])
            used = lines(item)
        parts[-1].append(item)
    return parts


def sized(display: str, wide: float) -> str:
    """Return a display in a font size that fits the line, not below a readable size."""
    size = next((name for name, part in _SIZES.items() if wide * part <= WIDTH), r"\scriptsize")
    return display if not size else f"{{{size}\n{display}}}"


def pieces(latex: str, room: float = WIDTH) -> list[str]:
    """Return a formula in pieces that fit into a line, broken at its signs of equality, its sums, and settings.

    >>> pieces("a + b = c", 5), pieces(r"\\left(a + b\\right) c", 5)
    (['a + b', '= c'], ['\\\\left(a + b\\\\right) c'])
    """
    if width(latex) <= room:
        return [latex]
    result: list[str] = []
    for part in _at(latex, ("=",)):
        terms = [part] if width(part) <= room else _filled(_at(part, ("+", "-")), room)
        result += chain.from_iterable([term] if width(term) <= room else _in_call(term, room) for term in terms)
    if len(result) > 1 and width(result[0]) < _SHORT:  # a name alone is no line
        result[:2] = [" ".join(result[:2])]
    return result


def _at(latex: str, signs: tuple[str, ...]) -> list[str]:
    """Return the parts of a formula, of which each but the first begins with one of these signs."""
    parts, depth = [""], 0
    tokens = _TOKEN.findall(latex)
    for k, token in enumerate(tokens):
        between = 0 < k < len(tokens) - 1 and tokens[k - 1].isspace() and tokens[k + 1].isspace()
        if token in signs and depth == 0 and between and parts[-1].strip():
            parts.append("")
        depth += token.startswith(_OPENING) - token.startswith(_CLOSING)
        parts[-1] += token
    return [part.strip() for part in parts]


def _in_call(latex: str, room: float) -> list[str]:
    r"""Return the pieces of a formula between the settings of its calls, whose brackets end and begin there unseen.

    >>> _in_call(r"f\left(x;\, a = 1,\, b = 2\right)", 8)
    ['f\\left(x;\\right.', '\\left.a = 1,\\right.', '\\left.b = 2\\right)']
    """
    parts, opened = [""], [""]
    for token in _TOKEN.findall(latex):
        if token.startswith(_OPENING):
            opened.append(token)
        elif token.startswith(_CLOSING):
            opened = opened[:-1]  # of a name, a bracket may close nothing
        parts[-1] += token
        if token == r"\," and opened[1:] == [r"\left"]:
            parts.append("")
    lines = _filled([part.strip() for part in parts], room)
    begun = [lines[0], *(rf"\left.{line}" for line in lines[1:])]
    return [*(line.removesuffix(r"\,") + r"\right." for line in begun[:-1]), begun[-1]]


def _filled(parts: Sequence[str], room: float) -> list[str]:
    """Return the parts joined, as many in a line as there is room for."""
    lines: list[str] = []
    for part in parts:
        if lines and width(lines[-1]) + width(part) <= room:
            lines[-1] += f" {part}"
        else:
            lines.append(part)
    return lines
