"""Columns of numbers as text, which is read as the same float64: by pyarrow where it is worth it, else by `repr`."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from gradcli.graph.array import Array

_FEW = 2**15  # numbers, which are written before pyarrow is imported, or by a thread at a time
_WIDE = 500  # columns: pyarrow has objects for each


def rows_of(columns: Sequence[Array]) -> list[Any] | None:
    """Return the rows of some columns of numbers as lines, in buffers of many; None where pyarrow is not worth it."""
    if any(column.dtype == object for column in columns) or not _worthwhile(len(columns), columns[0]):
        return None
    import pyarrow as pa
    import pyarrow.csv as arrow

    def rows(start: int) -> Any:
        some = [pa.array(np.ascontiguousarray(column[start : start + step])) for column in columns]
        lines = pa.BufferOutputStream()
        table = pa.table(some, names=[*map(str, range(len(some)))])
        arrow.write_csv(table, lines, arrow.WriteOptions(include_header=False, batch_size=step))
        return lines.getvalue()

    step = max(1, _FEW // len(columns))
    with ThreadPoolExecutor() as threads:
        return [*threads.map(rows, range(0, len(columns[0]), step))]


def lines_of(pieces: Sequence[str | Array]) -> str:
    """Return the lines that have these pieces one behind the other: text that is the same on all, and columns.

    Columns are finite numbers, or texts where their dtype is object; without one there is one line.

    >>> print(lines_of(["x = ", np.array([1.0, 1e-05]), ";"]))
    x = 1.0;
    x = 1e-05;
    """
    columns = list({id(piece): piece for piece in pieces if not isinstance(piece, str)}.values())
    if not columns:
        return "".join(map(str, pieces))
    if len(pieces) <= _WIDE and _worthwhile(len(columns), columns[0]):
        import pyarrow.compute as pc

        texts = {id(column): _texts(column) for column in columns}
        lines = pc.binary_join_element_wise(*[texts.get(id(p), p) for p in pieces], "\n", "")
        return str(lines.buffers()[-1][:-1], "utf-8")
    cells = {id(c): c if c.dtype == object else [*map(repr, c.tolist())] for c in columns}
    line = "".join(p.replace("%", "%%") if isinstance(p, str) else "%s" for p in pieces)
    rows = zip(*(cells[id(p)] for p in pieces if not isinstance(p, str)), strict=True)
    return "\n".join(map(line.__mod__, rows))


def _worthwhile(count: int, column: Array) -> bool:
    """Return whether so many columns as long as this one are written by pyarrow."""
    if count * len(column) < _FEW or count > _WIDE:
        return False
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        return False
    return True


def _texts(column: Array) -> Any:
    """Return the texts of a column as an array of pyarrow's: those of `repr`, since `--at` prints the same lines.

    pyarrow has no point in integers, and an exponent for other sizes than `repr`.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.dtype == object:
        return pa.array(column, pa.string())
    texts = pa.array(np.ascontiguousarray(column)).cast(pa.string())
    is_integer = pc.invert(pc.match_substring_regex(texts, "[.e]"))
    texts = pc.if_else(is_integer, pc.binary_join_element_wise(texts, ".0", ""), texts)
    size = np.abs(column)
    others = (column != 0) & ((size < 1e-4) | (size >= 1e10))
    return pc.replace_with_mask(texts, pa.array(others), pa.array(map(repr, column[others].tolist()), pa.string()))
