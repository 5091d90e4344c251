"""Files of results, told apart by their endings, and written in blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import numpy as np

from gradcli.data.block import Array
from gradcli.data.columns import column_names
from gradcli.data.csv.result import csv_writer, standard_output
from gradcli.data.mistakes import label
from gradcli.data.npz.result import npz_writer
from gradcli.data.parquet.result import parquet_writer
from gradcli.data.replacement import Replacement, check_target, writing
from gradcli.data.writer import Make, Names, Writer
from gradcli.errors import InputError
from gradcli.graph.shapes import Shape

__all__ = ["Result", "column_names", "create_result"]


class Result(Protocol):
    """A file of results: a context manager, at whose end the file is put in its place."""

    def __enter__(self) -> Self:
        """Open the file."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Put the file in its place, or remove it if there was an exception."""

    def write(self, block: Mapping[str, Array]) -> None:
        """Write the values of all variables at some points, which run along the last axis.

        An array whose last axis is 1, where others have more, is repeated.
        """


def create_result(path: str, shapes: Mapping[str, Shape], columns: Mapping[str, Sequence[str]] | None = None) -> Result:
    """Return a file of results with those variables, of which `columns` names the columns in row-major order.

    `.csv` and `.parquet` have a column for each element, `.npz` an array `(N, *shape)` for each variable; `-` is CSV
    on standard output. The file has its old contents until the end of the `with` block.

    Errors: `InputError`, here or on entering the block, where the file cannot be written; and later, on a full disk.
    On standard output, an `OSError` is left to the caller.

    >>> with create_result("-", {"x.grad": (2,)}) as result:
    ...     result.write({"x.grad": np.array([[1.0, 2.0], [0.5, 1e-05]])})
    x[0].grad,x[1].grad
    1.0,0.5
    2.0,1e-05
    """

    def names() -> dict[str, Sequence[str]]:
        given = columns or {}
        return {name: given.get(name) or column_names(name, shape) for name, shape in shapes.items()}

    if path == "-":
        return _Stream(standard_output(names()))
    makers: dict[str, Make] = {".csv": csv_writer, ".npz": npz_writer, ".parquet": parquet_writer}
    make = makers.get(Path(path).suffix.lower())
    if make is None:
        raise InputError(
            f"{label(path)} has no ending of a file of results",
            hint="results are written to .csv, .npz and .parquet files",
        )
    check_target(path)
    return _File(path, make, shapes, names)


class _Stream:
    """Results on standard output."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._writer.finish()

    def write(self, block: Mapping[str, Array]) -> None:
        self._writer.write(_repeated(block))


class _File:
    """Results in a file."""

    def __init__(self, path: str, make: Make, shapes: Mapping[str, Shape], names: Names) -> None:
        self._path = path
        self._make = make
        self._shapes = shapes
        self._names = names

    def __enter__(self) -> Self:
        with ExitStack() as stack, writing(self._path):
            self._replacement = Replacement(self._path)
            stack.callback(self._replacement.discard)
            writer = self._make(self._replacement.file, self._shapes, self._names)
            self._writer = stack.enter_context(writer)
            self._stack = stack.pop_all()
        return self

    def write(self, block: Mapping[str, Array]) -> None:
        with writing(self._path):
            self._writer.write(_repeated(block))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # After a commit, there is nothing left to discard.
        with self._stack, writing(self._path):
            if kind is None:
                self._writer.finish()
                self._replacement.commit()


def _repeated(block: Mapping[str, Array]) -> dict[str, Array]:
    """Return the arrays with the same number of points."""
    count = max(array.shape[-1] for array in block.values())
    return {name: np.broadcast_to(array, (*array.shape[:-1], count)) for name, array in block.items()}
