"""A question: what a command wants to know of a system at each point, whatever the format of the answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from gradcli.errors import Notes
from gradcli.explain.results import Row, Wanted
from gradcli.graph.array import Named
from gradcli.graph.graph import Graph

if TYPE_CHECKING:
    from gradcli.explain.columns import Columns


class Answer(Protocol):
    """The answer to a question at some points: the record that every format reads."""

    def formula(self, expr: Any) -> str:
        """Return an expression as gradcli reads it."""

    def objects(self) -> Iterator[Mapping[str, Any]]:
        """Yield an object for each line of JSON."""

    def rows(self) -> Iterable[Row]:
        """Return the arrays of each row of CSV, with the names of their columns."""


class Question(Protocol):
    """A system, and what is wanted of it at each point.

    The nodes of `columns` and those of `result` are the same, so their numbers are, too.  `seeds` are the cotangents
    and tangents with one value at all points, by their names as inputs; points hold the others.  `plural` is what the
    results are called in a warning.
    """

    @property
    def graph(self) -> Graph:
        """The system."""

    @property
    def wanted(self) -> Wanted:
        """The extras of the results, and whether they are those of a block of points."""

    @property
    def seeds(self) -> Named:
        """The seeds with one value at all points."""

    @property
    def plural(self) -> str:
        """The name of the results."""

    def columns(self) -> Columns:
        """Return the results as outputs of a graph, for a file: an engine of its own may compute them."""

    def result(self, points: Sequence[Named], notes: Notes) -> Answer:
        """Return the results at points, with all that a page or JSON shows."""

    def origin(self, point: Named, results: Named) -> str:
        """Return where the first number of a point's results arose that is not finite."""


def without_seeds(graph: Graph, points: Sequence[Named]) -> list[Named]:
    """Return the values of a system's inputs at points that hold seeds too."""
    return [{name: point[name] for name in graph.inputs} for point in points]


def tangent_of(point: Named, wrt: Sequence[str]) -> Named:
    """Return the tangent that a point, or a block of points, holds.

    >>> tangent_of({"x": 3, "x.u": 1}, ["x"])
    {'x': 1}
    """
    return {name: point[f"{name}.u"] for name in wrt}


def first_not_finite(results: Named) -> str:
    """Return which of the results at a point is not finite.

    >>> import numpy as np
    >>> first_not_finite({"y.jvp": np.array(np.inf)})
    '`y.jvp` is not finite: a local derivative is not finite'
    """
    import numpy as np

    name = next(name for name, value in results.items() if not np.isfinite(value).all())
    return f"`{name}` is not finite: a local derivative is not finite"
