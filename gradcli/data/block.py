"""A block: some of a file's points, as one array for each variable; what reads blocks, and what writes them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import BinaryIO, Literal, Protocol

import numpy as np

from gradcli.data.mistakes import quoted
from gradcli.errors import option_error
from gradcli.graph.array import Array as Array
from gradcli.graph.shapes import Shape

_LISTED = 12  # columns in a hint

# A float64 array for each variable, C-contiguous, with the points along the last axis. It may be read-only.  A column
# that is copied is an array of Python objects, under its header behind `COPIED`, which no variable's name begins with.
Block = dict[str, Array]
COPIED = "="

MISSING_HINT = "--missing skip leaves such points out, --missing nan reads nan"


Policy = Literal["error", "skip", "nan"]


@dataclass
class Missing:
    """The policy for missing cells, and the number of points that were skipped for them."""

    policy: Policy = "error"
    skipped: int = 0


@dataclass(frozen=True)
class Reading:
    """The options of reading a file of points.

    `headers` says which column holds an element that has another header: `{"flow rate": "x"}`.  `missing` says what is
    done with a point that has a cell which is empty or `NA`: an error, it is skipped, or the cell is a nan.
    """

    headers: Mapping[str, str] = field(default_factory=dict)
    missing: Policy = "error"

    def named(self, columns: Sequence[str], label: str) -> list[str]:
        """Return the names of a file's columns after they are renamed.

        A column that already had a name which another is renamed to gets "".

        Errors: `InputError` for a header that the file does not have, or has twice.

        >>> Reading({"flow rate": "x"}).named(["x", "flow rate", "y"], "`p.csv`")
        ['', 'x', 'y']
        """
        for header in self.headers:
            check_header(header, columns, label, "--columns")
        new = set(self.headers.values())
        return [self.headers.get(c.strip(), "" if c.strip() in new else c) for c in columns]


PLAIN = Reading()


def check_header(header: str, columns: Sequence[str], label: str, option: str) -> None:
    """Check that a file has a column of this header, once.

    Errors: `InputError`, which lists the headers that the file has.
    """
    count = sum(column.strip() == header for column in columns)
    if count > 1:
        raise option_error(option, f"{option}: {label} has the column {quoted(header)} twice", text=header)
    if not count:
        message = f"{option}: {label} has no column {quoted(header)}"
        raise option_error(option, message, listed_columns(columns), header)


def listed_columns(columns: Sequence[str]) -> str:
    """Return which columns a file has, for a hint.

    >>> listed_columns(["id", "flow rate"])
    'its columns are `id`, `flow rate`'
    """
    names = ", ".join(quoted(column.strip()) for column in columns[:_LISTED])
    return f"its columns are {names}{', …' * (len(columns) > _LISTED)}" if columns else "it has no columns"


class Points(ABC):
    """An open file of points.

    `shapes` are the shapes of the variables that the file holds, among them cotangents and tangents under their names:
    `y0.v`, `x0.u`.  `count` is the number of points, `None` where only reading to the end tells, and `done` how many
    have been read.  `columns` are the headers as they are in the file.
    """

    shapes: dict[str, Shape]
    columns: Sequence[str] = ()
    count: int | None = None
    done = 0

    def __init__(self, how: Reading = PLAIN) -> None:
        """Take the policy for missing cells."""
        self._missing = Missing(how.missing)

    @property
    def skipped(self) -> int:
        """The number of points that have been left out because a cell is missing."""
        return self._missing.skipped

    @property
    def fraction(self) -> float | None:
        """The share of the file that has been read, from 0 to 1, `None` where its size is not known."""
        return self.done / self.count if self.count else None

    @abstractmethod
    def blocks(self, names: Sequence[str], size: int) -> Iterator[Block]:
        """Yield the values of those variables (one at least) and copied columns, in blocks of 1 to `size` points.

        Points are read once: standard input cannot be read again.

        Errors: `InputError` at once for variables that are not complete in the file; when they are read, for values
        that are not numbers.
        """

    def close(self) -> None:  # noqa: B027 (a file may be open only while it is read)
        """Close the file."""


class GivenPoints(Points):
    """Points as arrays in memory, with the interface of a file of points."""

    def __init__(self, points: Sequence[Mapping[str, Array]]) -> None:
        super().__init__()
        self.shapes = {name: value.shape for name, value in points[0].items()}
        self._points = points

    def blocks(self, names: Sequence[str], size: int) -> Iterator[Block]:
        """Yield the values, as an open file does."""
        for start in range(0, len(self._points), size):
            part = self._points[start : start + size]
            yield {name: np.stack([p[name] for p in part], axis=-1) for name in names}


Write = Callable[[Mapping[str, Array]], object]  # writes the values of all variables at some points: the last axis


class ResultWriter(Protocol):
    """Writes blocks into an open file, which it does not close."""

    def write(self, block: Mapping[str, Array]) -> None:
        """Write the values of all variables at some points."""

    def finish(self) -> None:
        """Write the end of the file."""


# Works out the names of each variable's columns. There may be millions, and not every format has columns.
Names = Callable[[], Mapping[str, Sequence[str]]]

# Makes the writer for a file, the variables' shapes, and the names of their columns. At the end of its `with` block, it
# lets go of what it holds: the file is finished then, or not wanted any more.
Make = Callable[[BinaryIO, Mapping[str, Shape], Names], AbstractContextManager[ResultWriter]]


def columns_of(block: Mapping[str, Array], names: Mapping[str, Sequence[str]]) -> list[Array]:
    """Return the columns of a block, in the order of their names.

    >>> import numpy as np
    >>> columns_of({"b": np.array([5.0]), "x": np.array([[1.0], [2.0]])}, {"x": ["x[0]", "x[1]"], "b": ["b"]})
    [array([1.]), array([2.]), array([5.])]
    """
    return [column for name in names for column in block[name].reshape(-1, block[name].shape[-1])]
