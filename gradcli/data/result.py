"""Files of results, each in the format of its file extension, written in blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

from gradcli.data.block import COPIED
from gradcli.data.csv.result import standard_output
from gradcli.data.formats import FORMATS, listed
from gradcli.data.mistakes import about_file, label
from gradcli.data.replacement import Replacement, check_target, writing
from gradcli.data.writer import ResultWriter
from gradcli.graph.array import Array
from gradcli.graph.names import column_names
from gradcli.graph.shapes import Shape


class Result(Protocol):
    """An open file of results."""

    def write(self, block: Mapping[str, Array]) -> None:
        """Write the values of all variables at some points, which run along the last axis."""


@contextmanager
def create_result(
    path: str, shapes: Mapping[str, Shape], columns: Mapping[str, Sequence[str]] | None = None
) -> Iterator[Result]:
    """Yield a file of results with those variables, of which `columns` names the columns in row-major order.

    `.csv` and `.parquet` have a column for each element, `.npz` an array `(N, *shape)` for each variable; `-` is CSV
    on standard output. The file has its old contents until the end of the `with` block.

    Errors: `InputError` where the file cannot be written; and later, on a full disk.  On standard output, an `OSError`
    is left to the caller.

    >>> import numpy as np
    >>> with create_result("-", {"x.grad": (2,)}) as result:
    ...     result.write({"x.grad": np.array([[1.0, 2.0], [0.5, 1e-05]])})
    x[0].grad,x[1].grad
    1.0,0.5
    2.0,1e-05
    """

    def names() -> dict[str, Sequence[str]]:
        headers = columns or {}
        return {name: headers.get(name) or _column_names(name, shape) for name, shape in shapes.items()}

    if path == "-":
        writer: ResultWriter = standard_output(names())
        yield writer
        writer.finish()
        return
    form = FORMATS.get(Path(path).suffix.lower())
    if form is None:
        raise about_file(
            label(path),
            "has an unknown file extension",
            f"results are written to {listed(FORMATS)} files",
        )
    check_target(path)
    with ExitStack() as stack:
        with writing(path):
            replacement = Replacement(path)
            stack.callback(replacement.discard)  # after a commit, there is nothing left to discard
            writer = stack.enter_context(form.write(replacement.file, shapes, names))
        yield _InFile(path, writer)
        with writing(path):
            writer.finish()
            replacement.commit()


def _column_names(name: str, shape: Shape) -> Sequence[str]:
    return [name.removeprefix(COPIED)] if name.startswith(COPIED) else column_names(name, shape)


class _InFile(NamedTuple):
    """Results in a file; an `OSError` of writing is an `InputError` with the path."""

    path: str
    writer: ResultWriter

    def write(self, block: Mapping[str, Array]) -> None:
        with writing(self.path):
            self.writer.write(block)
