"""Writes nodes as LaTeX: whole arrays by their names, or one element of them at the indices of a sum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from itertools import chain, count

from gradcli.graph.node import Node, operand
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.shapes import Shape
from gradcli.notation.latex_names import LatexNames
from gradcli.notation.writer import Binds, Writer, Written

_INDICES = "ijklmnpqrs"
MAX_COLUMNS = 10  # of amsmath's matrices
ALL = "{:}"  # a colon without the spaces of a relation


class LatexNodeWriter(Writer):
    """Writes nodes; an elementwise expression at `indices`, one for each axis of `shape`, as that of its elements."""

    brackets = r"\left({}\right)"

    def __init__(
        self,
        names: Mapping[Node, str],
        implicit: bool = False,
        latex: LatexNames | None = None,
    ) -> None:
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
