"""Writes nodes as LaTeX: whole arrays by their names, or one element of them at the indices of a sum; and calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from itertools import chain, count, starmap
from typing import Any

from gradcli.graph.node import Node, operand
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.shapes import Shape
from gradcli.notation.latex_names import LatexNames
from gradcli.notation.writer import Binds, Writer, Written, called, options_of, settings_of

_INDICES = "ijklmnpqrs"
MAX_COLUMNS = 10  # of amsmath's matrices
ALL = "{:}"  # a colon without the spaces of a relation
# Signs of conditions that LaTeX writes in its own way.
SIGNS = {
    "<=": r"\leq", ">=": r"\geq", "==": "=", "!=": r"\neq", "&": r"\wedge", "|": r"\vee", "~": r"\neg", "%": r"\bmod",
}  # fmt: skip
LETTERS = {"gamma": r"\Gamma", "digamma": r"\psi", "polygamma": r"\psi"}  # unless a variable is one


class LatexNodeWriter(Writer):
    """Writes nodes; an elementwise expression at `indices`, one for each axis of `shape`, as that of its elements."""

    brackets = r"\left({}\right)"

    def __init__(self, names: Mapping[Node, str], implicit: bool = False, latex: LatexNames | None = None) -> None:
        """`implicit` leaves out what broadcasting does by itself; `latex` writes the names, as on the whole page."""
        super().__init__(names, implicit)
        self.latex = latex or LatexNames(names.values())
        self.shape: Shape = ()
        self.indices: tuple[str, ...] = ()
        self.bound: frozenset[str] = frozenset()

    def name_or_none(self, node: Node) -> str | None:
        """Return a node's name as it is written, at the indices if there are any."""
        name = self.names.get(node)
        return None if name is None else self.at_indices(self.latex(name), node)

    def written(self, node: Node) -> Written:
        """Return the expression of a node, or of its element at the indices if there are any."""
        if not self.indices or node.value is not None or (node.args and OPERATIONS[node.op].broadcasts):
            return super().written(node)
        if operand(node, "broadcast") is not None:
            name = self.name_or_none(node.args[0])
            return self.written(node.args[0]) if name is None else Written(name)
        whole = self.at((), ())
        if not node.shape:
            return whole.written(node)
        return Written(self.at_indices(whole.argument(node, Binds.ATOM), node))

    def at(self, shape: Shape, indices: Sequence[str]) -> LatexNodeWriter:
        """Return a writer of the elements at these indices of arrays that broadcast to that shape."""
        other = copy(self)
        other.shape, other.indices, other.bound = shape, tuple(indices), self.bound.union(indices)
        return other

    def at_indices(self, written: str, node: Node) -> str:
        """Return the element of a node at the indices, if there are any: 0 along an axis of size 1 that broadcasts."""
        rank = len(node.shape)
        if not self.indices or not rank:
            return written
        axes = zip(node.shape, self.shape[-rank:], self.indices[-rank:], strict=True)
        return self.latex.indexed(written, ",".join("0" if n == 1 < whole and i != ALL else i for n, whole, i in axes))

    def rank(self, node: Node) -> int:
        """Return the number of dimensions of a node's text."""
        if not self.indices:
            return len(node.shape)
        return self.indices[-len(node.shape) :].count(ALL) if node.shape else 0

    def fresh_indices(self, wanted: int) -> list[str]:
        """Return letters that are no names, and no indices of a sum around this one."""
        taken = self.bound.union(self.names.values())
        letters = chain(_INDICES, (f"i_{{{k}}}" for k in count()))
        free = (letter for letter in letters if letter not in taken)
        return [next(free) for _ in range(wanted)]


def matrix(rows: Sequence[Sequence[str]]) -> str:
    """Return a `pmatrix`, or an array in brackets where there are too many columns for amsmath."""
    body = r" \\ ".join(" & ".join(row) for row in rows)
    columns = max(map(len, rows))
    if columns <= MAX_COLUMNS:
        return rf"\begin{{pmatrix}} {body} \end{{pmatrix}}"
    return rf"\left(\begin{{array}}{{{'c' * columns}}} {body} \end{{array}}\right)"


def times(shape: Shape) -> str:
    """Return a shape: 2 × 3.

    >>> times((2, 3))
    '2 \\\\times 3'
    """
    return r" \times ".join(map(str, shape))


# Function calls: names, arguments, and settings after a semicolon


def function(op: str) -> str:
    """Return the name of a function.

    >>> function("sin"), function("leaky_relu")
    ('\\\\sin', '\\\\operatorname{leaky\\\\_relu}')
    """
    return (op in OPERATIONS and OPERATIONS[op].spelling_in("latex")) or rf"\operatorname{{{op}}}".replace("_", r"\_")


def applied(name: str, arguments: list[str], *settings: str) -> Written:
    """Return a function call; the settings follow a semicolon."""
    behind = r";\, " + r",\, ".join(settings) if settings else ""
    return Written(rf"{name}\left({', '.join(arguments)}{behind}\right)")


def call(w: Writer, node: Node, *more: str) -> Written:
    """Return a node as a call of its function, with its settings and `more`."""
    arguments, options = w.arguments(node), options_of(node)
    named = [setting(word, arguments[i]) for i, word in options.items() if word]
    positional = arguments[: len(arguments) - len(options)]
    settings = list(settings_of(node))
    first = [str(value) for word, value in settings if not word]
    behind = starmap(setting, (pair for pair in settings if pair[0]))
    return applied(function(called(node)), [*positional, *first], *named, *behind, *more)


def setting(name: str, value: Any) -> str:
    """Return a setting: axis = (0, 1).

    >>> setting("axis", (0,)), setting("descending", True)
    ('\\\\mathrm{axis} = (0)', '\\\\mathrm{descending} = \\\\mathrm{true}')
    """
    shown = f"({', '.join(map(str, value))})" if isinstance(value, tuple) else str(value)
    return rf"\mathrm{{{name}}} = ".replace("_", r"\_") + (r"\mathrm{true}" if value is True else shown)
