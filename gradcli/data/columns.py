"""Columns of numbers and the variables whose elements they hold: `x0`, `x[0]`, `M[0,1]`, `y[0].v`, `x[0].u`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from gradcli.data.block import COPIED, PLAIN, Array, Block, Reading, check_header
from gradcli.data.mistakes import about_file, quoted
from gradcli.errors import InputError, nearest
from gradcli.graph.names import column_names, element_name, normal
from gradcli.graph.shapes import MAX_RANK, Shape, indices, size_of

Key = tuple[int, ...]

_COLUMN = re.compile(r"([^\s\[\].]+)(?:\[([0-9]+(?:,[0-9]+)*)\])?(\.[uv])?")
_BLANKS_INSIDE = re.compile(r"\s+(?=[^\[\]]*\])")
_MAX_DIGITS = 9  # of an index; int() refuses texts of thousands of digits


def variable(name: str) -> str | None:
    """Return the normalised name of a variable, or None for text that is not an identifier.

    Some letters, such as the micro sign and the Greek mu, are one to Python.

    >>> variable("x0"), variable("\\u00b5") == "\\u03bc", variable("the date"), variable("2x")
    ('x0', True, None, None)
    """
    return normal(name) if name.isidentifier() else None


def element(column: str) -> tuple[str, Key] | None:
    """Return the variable and the index in a column's name, or None where it is not the name of an element.

    >>> element(" M[0, 1] "), element("y[2].v"), element("x0"), element("the date")
    (('M', (0, 1)), ('y.v', (2,)), ('x0', ()), None)
    """
    text = column.strip()
    match = _COLUMN.fullmatch(_BLANKS_INSIDE.sub("", text) if "[" in text else text)
    name = variable(match[1]) if match else None
    if not match or not name:
        return None
    indices = match[2].split(",") if match[2] else []
    if len(indices) > MAX_RANK:
        return None
    return name + (match[3] or ""), tuple(int(i) if len(i) <= _MAX_DIGITS else 10**_MAX_DIGITS for i in indices)


@dataclass(frozen=True)
class Picked:
    """The columns of some variables: their indices in the file, their names, and the shapes of the variables.

    The name of a column is that of its element, and its header where `--columns` says what it holds. `copied` has the
    index of each column that is copied.
    """

    shapes: dict[str, Shape]
    positions: list[int]
    names: list[str]
    copied: dict[str, int]

    def block(self, columns: Sequence[Array]) -> Block:
        """Return the arrays of the variables from their columns; copied columns follow those of the variables.

        >>> Header.of(["x[1]", "x[0]"], "`p.csv`").pick(["x"]).block([np.array([1.0, 2.0]), np.array([3.0, 4.0])])
        {'x': array([[1., 2.],
               [3., 4.]])}
        """
        result: Block = {}
        start = 0
        for name, shape in self.shapes.items():
            part = columns[start : start + size_of(shape)]
            result[name] = np.stack(part).reshape(*shape, -1) if shape else np.ascontiguousarray(part[0])
            start += len(part)
        return result | dict(zip(self.copied, columns[start:], strict=True))


@dataclass(frozen=True)
class Header:
    """Which columns of a file hold which variables.  Columns whose names are not names of elements are left out."""

    label: str
    columns: Sequence[str]
    elements: dict[str, dict[Key, list[int]]]
    shapes: dict[str, Shape]
    renamed: dict[int, str]  # headers of the columns, by their positions, that `--columns` names

    @classmethod
    def of(cls, columns: Sequence[str], label: str, reading: Reading = PLAIN) -> Header:
        """Return the header of a file with these columns; errors of a variable are raised by `pick`.

        >>> Header.of(["x[0]", "x[1]", "b", "the date"], "`p.csv`").shapes
        {'x': (2,), 'b': ()}
        """
        elements: dict[str, dict[Key, list[int]]] = {}
        for position, column in enumerate(reading.named(columns, label)):
            result = element(column)
            if result:
                elements.setdefault(result[0], {}).setdefault(result[1], []).append(position)
        headers = (column.strip() for column in columns) if reading.headers else ()
        renamed = {position: header for position, header in enumerate(headers) if header in reading.headers}
        return cls(label, columns, elements, {name: _shape(keys) for name, keys in elements.items()}, renamed)

    def pick(self, names: Sequence[str]) -> Picked:
        """Return the columns of those variables.

        Errors: `InputError` for a variable that is not there, or not once and whole.

        >>> Header.of(["x[0]", "x[2]"], "`p.csv`").pick(["x"])
        Traceback (most recent call last):
        gradcli.errors.InputError: `p.csv` has a column `x[2]`, but no `x[1]`
          an array has a column for each of its elements
        """
        positions: list[int] = []
        columns: list[str] = []
        copied: dict[str, int] = {}
        for name in names:
            if name.startswith(COPIED):
                header = name.removeprefix(COPIED)
                check_header(header, self.columns, self.label, "--keep")
                copied[name] = [column.strip() for column in self.columns].index(header)
                continue
            if name not in self.elements:
                raise missing(name, self.shapes, self.label)
            keys, shape = self.elements[name], self.shapes[name]
            self._check_complete(name, keys, shape)
            indices = [keys[key][0] for key in product(*map(range, shape))]
            columns += map(self.renamed.get, indices, column_names(name, shape))
            positions += indices
        shapes = {name: self.shapes[name] for name in names if name not in copied}
        return Picked(shapes, positions, columns, copied)

    def _check_complete(self, name: str, keys: dict[Key, list[int]], shape: Shape) -> None:
        """Check that each element of a variable has one column.

        Errors: `InputError` for names of several ranks, and for an element with two columns or none.
        """
        hint = "an array has a column for each of its elements"
        other = next((key for key in keys if len(key) != len(shape)), None)
        if other is not None:
            first = next(key for key in keys if len(key) == len(shape))
            raise about_file(self.label, f"has both {_quoted(name, first)} and {_quoted(name, other)}", hint)
        repeated = next((key for key, positions in keys.items() if len(positions) > 1), None)
        if repeated is not None:
            raise about_file(self.label, f"has the column {_quoted(name, repeated)} twice")
        if len(keys) < size_of(shape):
            lacking = next(key for key in indices(shape) if key not in keys)
            said = f"has a column {_quoted(name, max(keys))}, but no {_quoted(name, lacking)}"
            raise about_file(self.label, said, hint)


def missing(name: str, known: dict[str, Shape], label: str) -> InputError:
    """Return the error of a variable without columns in a file."""
    return about_file(label, f"has no values for {quoted(name)}", nearest(name, known, "variables in it"))


def _shape(keys: dict[Key, list[int]]) -> Shape:
    """Return the smallest shape with all those elements: of the first one's rank, if they differ in it."""
    rank = len(next(iter(keys)))
    return tuple(max(sizes) + 1 for sizes in zip(*(key for key in keys if len(key) == rank), strict=True))


def _quoted(name: str, key: Key) -> str:
    """Return the name of an element's column in a message."""
    stem, dot, suffix = name.partition(".")
    return quoted((element_name(stem, key) if key else stem) + dot + suffix)
