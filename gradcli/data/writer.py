"""The writer of results in one format."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import BinaryIO, Protocol

from gradcli.graph.array import Array
from gradcli.graph.shapes import Shape


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
