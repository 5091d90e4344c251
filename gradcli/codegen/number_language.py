"""C and JavaScript as languages of numbers, with the same signs and mostly the same names, and their loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from gradcli.codegen.helpers import calls_in
from gradcli.graph.array import Array
from gradcli.graph.node import Node
from gradcli.graph.operation import Precedence
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.shapes import Shape, size_of
from gradcli.loops.rules import IndexMap, Rule

# Operators: Python's signs, from the rows, but for those that are functions here, and that have other signs.
_SIGNS = {op: row.infix for op, row in OPERATIONS.items() if row.broadcasts and row.infix and op not in ("pow", "mod")}
_SIGNS |= {"and": "&&", "or": "||", "not": "!"}
# How tightly they bind: as in Python, but for conditions.
_BINDS = {
    Precedence.OR: 1, Precedence.AND: 2, Precedence.COMPARISON: 4, Precedence.SUM: 5, Precedence.PRODUCT: 6,
    Precedence.SIGN: 7,
}  # fmt: skip
LEVELS = {op: _BINDS[OPERATIONS[op].precedence] for op in _SIGNS} | {"eq": 3, "ne": 3, "where": 0}


def rules(target: str, whole: Callable[[str], str] = str) -> dict[str, str]:
    """Return the text of each operation in a target; `whole` adds a library to the name of a function."""
    return {
        **{op: f"{{}} {sign} {{}}" if OPERATIONS[op].arity > 1 else f"{sign}{{}}" for op, sign in _SIGNS.items()},
        "identity": "{}",
        "where": "{} ? {} : {}",
        **calls_in(target, whole),
        **{op: f"{op}({{}}, {{}})" for op in ("exceeds", "undercuts")},  # of the loop form
    }


ATOM = 9  # how tightly a call, a name and a number bind
CONDITIONS = {op for op, row in OPERATIONS.items() if row.kind == "condition"} | {"exceeds", "undercuts"}


@dataclass(frozen=True)
class Value:
    """An expression: its text and precedence; the operation and operands that it is made of; whether it is a name."""

    text: str
    level: int = ATOM
    op: str = ""
    operands: tuple[Value, ...] = ()
    is_name: bool = False


@dataclass(frozen=True)
class Elements(IndexMap):
    """An array of the name `base`, or a scalar, whose text `base` is of precedence `level`.

    With a formula, an operation and the arrays of its arguments, there is no array in memory: the formula is inlined
    where an element is read.
    """

    base: str = ""
    scalar: bool = False
    level: int = ATOM
    formula: tuple[Node, tuple[Elements, ...]] | None = None

    @classmethod
    def array(cls, name: str, shape: Shape) -> Elements:
        """Return an array of that name."""
        return cls(np.arange(size_of(shape)).reshape(shape), name)

    @classmethod
    def number(cls, text: str, level: int = ATOM) -> Elements:
        """Return a scalar."""
        return cls(np.zeros((), dtype=int), text, True, level)

    def at(self, offset: int | str) -> str:
        """Return the text of an element."""
        return self.base if self.scalar else f"{self.base}[{offset}]"


@dataclass(frozen=True)
class NumberLanguage:
    """A target: its name, its text for each elementwise operation, and its declarations and loops."""

    name: str
    rules: Mapping[str, str]
    array: str  # of a name and a size
    large: str  # such an array where the stack has no room for it
    table: str  # of a type, and of a name and a size, before and behind a `|`
    constant: str  # of a type, a name and a value
    variable: str
    loop: str  # of a counter and a size
    whole: str  # of a number that is an index
    number: Callable[[float], str]
    result: Callable[[str], str]  # one that is a number
    helper: Callable[[str], str]  # the name of a function that the file brings along
    structural: Mapping[str, Rule]
    indent: str
    zeroed: bool  # whether the arrays of results are zeros at first
    stack: int  # numbers that the stack has room for

    def numbers(self, values: Array) -> list[str]:
        """Return the elements of an array as text, row after row."""
        return [self.number(float(v)) for v in values.reshape(-1)]


def operand(op: str, text: str, level: int, position: int) -> str:
    """Return an operand, in brackets where its precedence is lower than that of the operation.

    >>> operand("mul", "a + b", LEVELS["add"], 0), operand("add", "a + b", LEVELS["add"], 0)
    ('(a + b)', 'a + b')
    """
    around = LEVELS.get(op)
    if around is None:
        return text
    # (a + b) + c needs no brackets, and a + (b + c) is another sum.
    levels = {"and": 3, "or": 3, "eq": ATOM, "ne": ATOM, "not": ATOM, "neg": 8}
    needed = levels.get(op, max(1, around + (position > 0)))
    return text if level >= needed else f"({text})"
