"""Files of points and of results, each in the format of its file extension."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from gradcli.data.block import COPIED, PLAIN, Make, Points, Reading, ResultWriter, Write
from gradcli.data.csv.reader import CsvPoints
from gradcli.data.csv.result import csv_writer, standard_output
from gradcli.data.json_lines import JsonLinesPoints
from gradcli.data.mistakes import label, reading, unknown_ending, unreadable
from gradcli.data.npz import NpzPoints, npz_writer
from gradcli.data.parquet import ParquetPoints, parquet_writer
from gradcli.data.replacement import check_target, replaced_file, writing
from gradcli.data.text_files import is_json, opened
from gradcli.graph.array import Array
from gradcli.graph.names import column_names
from gradcli.graph.shapes import Shape

CSV_ENDINGS = (".csv", ".tsv", ".txt", ".dat")  # whose delimiter is detected
TEXT_ENDINGS = (*CSV_ENDINGS, ".jsonl", ".json")  # which gzip may have compressed

READERS: Mapping[str, Callable[[str, Reading], Points]] = {
    **dict.fromkeys(CSV_ENDINGS, CsvPoints),
    ".jsonl": JsonLinesPoints,
    ".json": JsonLinesPoints,  # an answer of a command
    ".npz": NpzPoints,
    ".parquet": ParquetPoints,
}
WRITERS: Mapping[str, Make] = {".csv": csv_writer, ".npz": npz_writer, ".parquet": parquet_writer}


def listed(endings: Iterable[str]) -> str:
    """Return the file extensions as words of a sentence.

    >>> listed(WRITERS)
    '.csv, .npz and .parquet'
    """
    *first, last = endings
    return f"{', '.join(first)} and {last}"


def open_points(path: str, how: Reading = PLAIN) -> Points:
    """Open a file of points, in the format of its file extension, or a folder of `.parquet` files.

    `.csv`, `.tsv`, `.txt` and `.dat` are CSV, whose delimiter is detected; `.jsonl` and `.json` are JSON Lines.  Both
    may be compressed (`.csv.gz`), and are read from standard input, `-`, and from pipes of any name, too: the first
    character tells them apart.

    Errors: `InputError` for a file that cannot be read, and for an unknown file extension.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("x[0],x[1],b\\n1,2,3\\n4,5,6\\n")
    ...     file.flush()
    ...     points = open_points(file.name)
    ...     shapes, blocks = points.shapes, list(points.blocks(["x", "b"], 1000))
    ...     points.close()
    >>> shapes
    {'x': (2,), 'b': ()}
    >>> blocks
    [{'x': array([[1., 4.],
           [2., 5.]]), 'b': array([3., 6.])}]
    """
    if "\0" in path:
        raise unreadable(label(path), "a name has no NUL characters")
    with reading(label(path)):
        if not path:
            raise FileNotFoundError(2, "No such file or directory")
        mode = _mode(path)
    ending = ".parquet" if stat.S_ISDIR(mode) else Path(path).suffix.lower()
    if ending == ".gz" and (packed := Path(path).with_suffix("").suffix.lower()) in TEXT_ENDINGS:
        ending = packed
    if ending not in READERS and (path == "-" or stat.S_ISFIFO(mode)):
        return _piped(path, how)
    if ending not in READERS:
        known = listed(sorted([*READERS, ".csv.gz"]))
        raise unknown_ending(path, f"points are read from {known} files; `--points -` reads CSV, JSON Lines")
    return READERS[ending](path, how)


def _piped(path: str, how: Reading) -> Points:
    file = opened(path)
    with reading(label(path)):
        reader = JsonLinesPoints if is_json(file) else CsvPoints
    return reader(path, how, file)


def _mode(path: str) -> int:
    """Return the type and the permissions of a path; 0 where nothing is there.

    Errors: `OSError` for a path that the system refuses, which `Path.is_dir` hides from Python 3.14 on.
    """
    try:
        return os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0


@contextmanager
def create_result(
    path: str, shapes: Mapping[str, Shape], columns: Mapping[str, Sequence[str]] | None = None
) -> Iterator[Write]:
    """Yield what writes a file of results with those variables; `columns` names their columns in row-major order.

    `.csv` and `.parquet` have a column for each element, `.npz` an array `(N, *shape)` for each variable; `-` is CSV
    on standard output. The file has its old contents until the end of the `with` block.

    Errors: `InputError` where the file cannot be written; and later, on a full disk.  On standard output, an `OSError`
    is left to the caller.

    >>> import numpy as np
    >>> with create_result("-", {"x.grad": (2,)}) as write:
    ...     write({"x.grad": np.array([[1.0, 2.0], [0.5, 1e-05]])})
    x[0].grad,x[1].grad
    1.0,0.5
    2.0,1e-05
    """

    def names() -> dict[str, Sequence[str]]:
        headers = columns or {}
        return {name: headers.get(name) or _column_names(name, shape) for name, shape in shapes.items()}

    def write(block: Mapping[str, Array]) -> None:
        with writing(path):
            writer.write(block)

    if path == "-":
        writer: ResultWriter = standard_output(names())
        yield writer.write
        writer.finish()
        return
    make = WRITERS.get(Path(path).suffix.lower())
    if make is None:
        hint = f"results are written to {listed(WRITERS)} files; `--output -` writes CSV to standard output"
        raise unknown_ending(path, hint)
    check_target(path)
    with ExitStack() as stack:
        with writing(path):
            writer = stack.enter_context(make(stack.enter_context(replaced_file(path)), shapes, names))
        yield write
        with writing(path):
            writer.finish()
            stack.close()


def _column_names(name: str, shape: Shape) -> Sequence[str]:
    return [name.removeprefix(COPIED)] if name.startswith(COPIED) else column_names(name, shape)
