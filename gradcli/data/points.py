"""Files of points, each in the format of its file extension."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from gradcli.data.block import PLAIN, Points, Reading
from gradcli.data.formats import FORMATS, listed
from gradcli.data.mistakes import about_file, label, reading, unreadable

_ZIPPED = ".csv.gz"


def open_points(path: str, how: Reading = PLAIN) -> Points:
    """Open a file of points: `.csv`, `.csv.gz`, `.npz`, `.parquet` or a folder of such files.

    CSV is read from standard input, `-`, and from pipes of any name.

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
    if ending not in FORMATS and (path == "-" or path.lower().endswith(_ZIPPED) or stat.S_ISFIFO(mode)):
        ending = ".csv"
    if ending not in FORMATS:
        raise about_file(
            label(path),
            "has an unknown file extension",
            f"points are read from {listed(sorted([*FORMATS, _ZIPPED]))} files",
        )
    return FORMATS[ending].read(path, how)


def _mode(path: str) -> int:
    """Return the type and the permissions of a path; 0 where nothing is there.

    Errors: `OSError` for a path that the system refuses, which `Path.is_dir` hides from Python 3.14 on.
    """
    try:
        return os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0
