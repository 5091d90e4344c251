"""Numbers as text: what `repr` writes, the shortest text that is read as the same float64, many at a time.

pyarrow writes the same digits several times as fast, with another layout: `1` for 1.0, and other limits of where the
exponent begins.  What it lays out otherwise is written by `repr`, so the texts agree whether pyarrow is there or not.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np

from gradcli.graph.array import Array

_FEW = 2**15  # numbers, which are written before pyarrow is imported
_WIDE = 500  # columns: pyarrow has objects for each
_LEAST, _MOST = 1e-4, 1e10  # between which it lays out numbers as `repr` does


def rows_of(columns: Sequence[Array]) -> bytes | None:
    """Return the rows of some columns of numbers as lines, or None where pyarrow is not there or not worth it."""
    few = len(columns) * len(columns[0]) < _FEW or len(columns) > _WIDE
    if few or any(column.dtype == object for column in columns) or _pyarrow() is None:
        return None
    import pyarrow as pa
    import pyarrow.csv as arrow

    with ThreadPoolExecutor() as threads:
        texts = list(threads.map(_texts, columns))
    table = pa.table(texts, names=list(map(str, range(len(texts)))))
    lines = io.BytesIO()
    arrow.write_csv(table, lines, arrow.WriteOptions(include_header=False, quoting_style="none"))
    return lines.getvalue()


@cache
def _pyarrow() -> Any:
    """Return pyarrow, or None where it is not installed."""
    try:
        import pyarrow
    except ImportError:
        return None
    return pyarrow


def _texts(column: Array) -> Any:
    """Return the texts of a column as an array of pyarrow's."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pa.array(np.ascontiguousarray(column)).cast(pa.string())
    sizes = np.abs(column)
    whole = (column == np.rint(column)) & (sizes < _MOST)
    other = ~(whole | ((sizes >= _LEAST) & (sizes < _MOST)))
    if whole.any():
        texts = pc.if_else(pa.array(whole), pc.binary_join_element_wise(texts, ".0", ""), texts)
    if other.any():
        written = pa.array(list(map(repr, column[other].tolist())), pa.string())
        texts = pc.replace_with_mask(texts, pa.array(other), written)
    return texts
