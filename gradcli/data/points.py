"""Files of points, told apart by their endings."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from gradcli.data.block import PLAIN, Points, Reading
from gradcli.data.csv.points import CsvPoints
from gradcli.data.mistakes import label, reading, unreadable
from gradcli.data.npz.points import NpzPoints
from gradcli.data.parquet.points import ParquetPoints
from gradcli.errors import InputError


def open_points(path: str, how: Reading = PLAIN) -> Points:
    """Open a file of points: `.csv`, `.csv.gz`, `.npz`, `.parquet` or a folder of such files.

    CSV is read from standard input, `-`, and from pipes of any name.

    Errors: `InputError` for a file that cannot be read, and for an ending that is none of these.

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
        folder = Path(path).is_dir()
    match Path(path).suffix.lower():
        case ".parquet":
            return ParquetPoints(path, how)
        case _ if folder:
            return ParquetPoints(path, how)
        case ".csv":
            return CsvPoints(path, how)
        case ".npz":
            return NpzPoints(path, how)
    if path == "-" or path.lower().endswith(".csv.gz") or _is_pipe(path):
        return CsvPoints(path, how)
    raise InputError(
        f"{label(path)} has no ending of a file of points",
        hint="points are read from .csv, .csv.gz, .npz and .parquet files",
    )


def _is_pipe(path: str) -> bool:
    """Return whether a path is a pipe, as that of a process substitution is."""
    with suppress(OSError):
        return stat.S_ISFIFO(os.stat(path).st_mode)
    return False
