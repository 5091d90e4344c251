"""Names of quantities: of an array's elements, of nodes that have none, of adjoints."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from itertools import count, product
from keyword import iskeyword

from gradcli.graph.node import Node

# A name, as a regular expression: an ASCII letter, `_`, or any character beyond ASCII (checked later), then digits too.
# It excludes the other characters: Python takes 9 ms to compile a set that goes up to U+10FFFF.
NAME = r"[^\x00-@\[-^`{-\x7f][^\x00-/:-@\[-^`{-\x7f]*"

_BARRED = 3  # letters of a name that a bar marks
MAX_NAME = 1000  # characters of a name that is not ASCII


def normal(name: str) -> str:
    """Return a name in the form in which names are compared: NFKC, as in Python.

    >>> normal("x0"), normal("𝜆")
    ('x0', 'λ')
    """
    # A letter with 100,000 accents would take a minute.
    return name if name.isascii() or len(name) > MAX_NAME else unicodedata.normalize("NFKC", name)


def identifier(name: str) -> str:
    """Return a name with `_` for each character that no name has.

    >>> identifier("fc.weight"), identifier("/conv1/Relu_output_0"), identifier("2"), identifier("lambda")
    ('fc_weight', '_conv1_Relu_output_0', '_2', 'lambda_')
    """
    plain = re.sub(r"\W", "_", normal(name[:MAX_NAME])) or "_"
    plain = f"_{plain}" if not plain.isidentifier() else plain
    return f"{plain}_" if iskeyword(plain) else plain


class ElementName(str):
    """The name of an array's element, or of a part, with the array and the index as attributes."""

    __slots__ = ("array", "key")
    array: str
    key: str


def indexed_name(name: str, index: str) -> ElementName:
    """Return the name of a part of an array, from its index as it is written between brackets.

    >>> indexed_name("J", "i, j"), indexed_name("J", "i, j").key
    ('J[i, j]', 'i, j')
    """
    result = ElementName(f"{name}[{index}]")
    result.array, result.key = name, index
    return result


def element_name(name: str, key: Iterable[int]) -> ElementName:
    """Return the name of an array's element.

    >>> element_name("M", (0, 1)), element_name("M", (0, 1)).array
    ('M[0,1]', 'M')
    """
    return indexed_name(name, ",".join(map(str, key)))


def array_name(name: str) -> str:
    """Return the name of the array that an element's name is of, and any other name as it is.

    >>> array_name(element_name("M", (0, 1))), array_name("x")
    ('M', 'x')
    """
    return name.array if isinstance(name, ElementName) else name


def variable_name(name: str) -> str:
    """Return the variable that a name is a value of, without the number that tells its values apart.

    >>> [variable_name(name) for name in ("h_2", "_cell_Tanh_12_output_0", "_cell_Tanh_output_0")]
    ['h', 'cell_Tanh', 'cell_Tanh']
    """
    return re.sub(r"(_\d+)?(_output_0|(?<!_output)_\d+)$", "", name).lstrip("_") or name


def element_names(name: str, shape: tuple[int, ...]) -> list[str]:
    """Return the names of an array's elements, in row-major order; a scalar's name is its own.

    >>> element_names("x", (2,)), element_names("M", (1, 2)), element_names("y", ())
    (['x[0]', 'x[1]'], ['M[0,0]', 'M[0,1]'], ['y'])
    """
    if not shape:
        return [name]
    return [element_name(name, key) for key in product(*map(range, shape))]


def all_elements(nodes: Mapping[str, Node]) -> tuple[str, ...]:
    """Return the names of the elements of several quantities, one after the other."""
    return tuple(element for name, n in nodes.items() for element in element_names(name, n.shape))


def column_names(name: str, shape: tuple[int, ...]) -> list[str]:
    """Return the names of the columns that hold a variable, in row-major order.

    >>> column_names("x0.grad", ()), column_names("x.grad", (2,)), column_names("M", (1, 2))
    (['x0.grad'], ['x[0].grad', 'x[1].grad'], ['M[0,0]', 'M[0,1]'])
    """
    stem, dot, suffix = name.partition(".")
    return [f"{element}{dot}{suffix}" for element in element_names(stem, shape)]


def fresh_names(taken: set[str], stem: str = "t") -> Iterator[str]:
    """Return `t1`, `t2`, … without the names that are taken."""
    return (name for k in count(1) if (name := f"{stem}{k}") not in taken)


class Numbered:
    """Names that are not taken, with a number behind a name that is.

    >>> numbered = Numbered(["h"])
    >>> numbered("h"), numbered("h"), numbered("x")
    ('h_2', 'h_3', 'x')
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = set(taken)
        self._counts: dict[str, int] = {}

    def __call__(self, name: str) -> str:
        """Return the name, or the first one with a number that is free, and take it."""
        label = name
        while label in self.taken:
            k = self._counts[name] = self._counts.get(name, 1) + 1
            label = f"{name}_{k}"
        self.taken.add(label)
        return label


def bar(name: str) -> str:
    """Return the name of an adjoint: t̄2 of t2.

    >>> [hex(ord(c)) for c in bar("t2")], bar(element_name("t", (2,))).key
    (['0x74', '0x304', '0x32'], '2')
    """
    if isinstance(name, ElementName):
        return indexed_name(bar(name.array), name.key)
    return f"{name[0]}\u0304{name[1:]}"


class AdjointName(str):
    """The name of an adjoint, with the loss and the quantity whose derivative it is; `barred` is t̄, not ∂L/∂t."""

    __slots__ = ("barred", "by", "loss")
    loss: str
    by: str
    barred: bool


def may_be_barred(name: str) -> bool:
    """Return whether a bar over the first letter marks a name: one of few letters.

    >>> may_be_barred("t2"), may_be_barred("model.fc")
    (True, False)
    """
    return len(name.rstrip("0123456789_")) <= _BARRED and name.isidentifier()


def adjoint_name(name: str, loss: str, barred: bool | None = None) -> AdjointName:
    """Return the name of the adjoint ∂loss/∂name: t̄2 of t2, and ∂L/∂hidden where a bar would span too many letters.

    >>> adjoint_name("t2", "L") == bar("t2"), adjoint_name("model.fc", "loss"), adjoint_name("t2", "L", barred=False)
    (True, '∂loss/∂model.fc', '∂L/∂t2')
    """
    barred = may_be_barred(name) if barred is None else barred
    result = AdjointName(bar(name) if barred else f"∂{loss}/∂{name}")
    result.loss, result.by, result.barred = loss, name, barred
    return result


def dot(name: str) -> str:
    """Return the name of a tangent: ṫ2 of t2.

    >>> dot("x"), [hex(ord(c)) for c in dot("t2")]
    ('ẋ', ['0x1e6b', '0x32'])
    """
    if isinstance(name, ElementName):
        return indexed_name(dot(name.array), name.key)
    return unicodedata.normalize("NFC", f"{name[0]}\u0307") + name[1:]
