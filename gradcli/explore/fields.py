"""The fields of an explorer: each number that can be changed, and the numbers that are typed into it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from gradcli.data.arrays import assigned_array
from gradcli.errors import InputError, nearest
from gradcli.graph.array import Named
from gradcli.graph.names import element_names
from gradcli.graph.node import Node
from gradcli.graph.shapes import Shape, inside
from gradcli.lang.values import read_point

ELEMENTS = 64  # of an array that has a field for each
INPUT, COTANGENT, RATE = "input", "cotangent", "rate"

Index = tuple[int, ...]


class Field(NamedTuple):
    """A number that can be changed: an element of an input or of a cotangent, or the learning rate.

    `at` is its index; it is None for a whole array, which is too large to have a field for each element.
    """

    kind: str
    name: str
    label: str
    at: Index | None = ()


def fields_of(inputs: Mapping[str, Node], outputs: Mapping[str, Node]) -> list[Field]:
    """Return the fields of a system: those of its inputs, those of its cotangents, and the learning rate.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf((2,))
    >>> [f.label for f in fields_of({"x": x}, {"y": x * x})]
    ['x[0]', 'x[1]', 'y[0]', 'y[1]', 'learning rate']
    """
    result = [field for name, node in inputs.items() for field in _of(INPUT, name, node.shape)]
    result += [field for name, node in outputs.items() for field in _of(COTANGENT, name, node.shape)]
    return [*result, Field(RATE, "", "learning rate")]


def _of(kind: str, name: str, shape: Shape) -> Iterator[Field]:
    if math.prod(shape) > ELEMENTS:
        yield Field(kind, name, name, None)
        return
    for label, index in zip(element_names(name, shape), np.ndindex(*shape), strict=True):
        yield Field(kind, name, label, index)


def stepped(value: float, unit: float, count: int) -> float:
    """Return a value after a number of steps; decimals are exact, so that steps back lead to where one began.

    >>> stepped(1.1, unit_of(1.1), 1), stepped(100.0, unit_of(100.0), -2), stepped(0.3, unit_of(0.3), 10)
    (1.2, 80.0, 0.4)
    """
    return float(Decimal(repr(value)) + count * Decimal(repr(unit))) if math.isfinite(value) else value


def unit_of(value: float) -> float:
    """Return the step that suits a value: a tenth of its power of ten, and 0.1 for 0.

    >>> unit_of(3.0), unit_of(-25.0), unit_of(0.02), unit_of(0.0)
    (0.1, 1.0, 0.001, 0.1)
    """
    if value == 0 or not math.isfinite(value):
        return 0.1
    return float(Decimal(10) ** (Decimal(repr(abs(value))).adjusted() - 1))


def typed_values(field: Field, text: str, known: Named) -> list[tuple[str, Index | None, float | np.ndarray]]:
    """Return the values typed into a field: its own, and those of others after commas, as in `2,x1=3`.

    Each is the name of an array, the index of an element (None: all of them), and the value.  `known` are the arrays.

    Errors: `InputError` for anything but numbers of the right shapes, with its position.
    """
    result = []
    for a in read_point(_assignment(field, text), ""):
        if a.name not in (known if field.kind != RATE else ("rate",)):
            raise InputError(f"`{a.name}` has no field here", a.span, nearest(a.name, known, "names"))
        value, shape = assigned_array(a), np.shape(known.get(a.name, 0.0))
        index = a.key if a.key is not None or shape else ()
        wanted = shape if index is None else ()
        if index is not None and index and not inside(index, shape):
            raise InputError(f"`{a.span.text.strip()}` is not an element of `{a.name}`, of shape {shape}", a.span)
        if value.shape != wanted:
            needed = f"an array of shape {wanted}" if wanted else "a number"
            raise InputError(f"`{a.name}` must be {needed}, and this has shape {value.shape}", a.span)
        result.append((a.name, index, value if index is None else float(value)))
    return result


def _assignment(field: Field, text: str) -> str:
    """Return the typed text with the name that it is for: `x=3`, and `X[3]=0.5` for an element of a whole array."""
    if field.at is None and re.match(r"\s*\[[\d\s,]*\]\s*=", text, re.ASCII):
        return f"{field.name}{text.strip()}"
    return f"{'rate' if field.kind == RATE else field.label}={text}"
