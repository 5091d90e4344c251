"""Numbers as text: what `repr` writes, the shortest text that is read as the same float64, many at a time.

pyarrow writes the same digits several times as fast, with another layout: `1` for 1.0, and other limits of where the
exponent begins.  What it lays out otherwise is written by `repr`, so the texts agree whether pyarrow is there or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np

from gradcli.graph.array import Array

_FEW = 2**15  # numbers, which are written before pyarrow is imported
_WIDE = 500  # columns: pyarrow has objects for each
_TINY, _SMALL, _LARGE, _HUGE = 1e-9, 1e-4, 1e10, 1e16  # between the first two, and the last two, layouts differ
_FIXED, _FIFTH = 1e-6, 1e-5  # from the first on, pyarrow writes no exponent; of the second it is -5
_RARE = 1 / 64  # of a column: so few texts are put between slices of the others


def rows_of(columns: Sequence[Array]) -> bytes | None:
    """Return the rows of some columns of numbers as lines, or None where pyarrow is not there or not worth it."""
    few = len(columns) * len(columns[0]) < _FEW or len(columns) > _WIDE
    if few or any(column.dtype == object for column in columns) or _pyarrow() is None:
        return None
    import pyarrow as pa
    import pyarrow.csv as arrow

    texts = _all_texts(columns)
    table = pa.table(texts, names=list(map(str, range(len(texts)))))
    lines = pa.BufferOutputStream()
    options = arrow.WriteOptions(include_header=False, quoting_style="none", batch_size=len(table))
    arrow.write_csv(table, lines, options)
    return lines.getvalue().to_pybytes()  # type: ignore[no-any-return]


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
    few = len(columns) * len(columns[0]) < _FEW or len(pieces) > _WIDE
    if not few and _pyarrow() is not None:
        import pyarrow.compute as pc

        texts = dict(zip(map(id, columns), _all_texts(columns), strict=True))
        lines = pc.binary_join_element_wise(*[texts.get(id(p), p) for p in pieces], "\n", "")
        return str(lines.buffers()[-1][:-1], "utf-8")
    cells = {id(c): c if c.dtype == object else [*map(repr, c.tolist())] for c in columns}
    line = "".join(p.replace("%", "%%") if isinstance(p, str) else "%s" for p in pieces)
    rows = zip(*(cells[id(p)] for p in pieces if not isinstance(p, str)), strict=True)
    return "\n".join(map(line.__mod__, rows))


@cache
def _pyarrow() -> Any:
    """Return pyarrow, or None where it is not installed."""
    try:
        import pyarrow
    except ImportError:
        return None
    return pyarrow


def _all_texts(columns: Sequence[Array]) -> list[Any]:
    with ThreadPoolExecutor() as threads:
        return list(threads.map(_texts, columns))


def _texts(column: Array) -> Any:
    """Return the texts of a column as an array of pyarrow's."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.dtype == object:
        return pa.array(column, pa.string())
    texts = pa.array(np.ascontiguousarray(column)).cast(pa.string())
    sizes = np.abs(column)
    integers = (column == np.rint(column)) & (sizes < _LARGE)
    if integers.any():
        pointed = pc.binary_join_element_wise(texts, ".0", "")
        texts = pointed if integers.all() else pc.if_else(pa.array(integers), pointed, texts)
    small, large = (sizes >= _TINY) & (sizes < _SMALL), (sizes >= _LARGE) & (sizes < _HUGE)
    if np.count_nonzero(small) > _RARE * len(column):
        texts = pc.if_else(pa.array(small), _exponents(texts, sizes), texts)
        small[:] = False
    return _replaced(texts, column, np.flatnonzero(small | large))


def _exponents(texts: Any, sizes: Array) -> Any:
    """Return the texts of numbers from `_TINY` to `_SMALL` as `repr` lays them out: 1.5e-05 for 0.000015 or 1.5e-5."""
    import pyarrow as pa
    import pyarrow.compute as pc

    result = pc.replace_substring(texts, "e-", "e-0")
    if (sizes >= _FIXED).any():  # nan is neither
        digits = pc.replace_substring_regex(texts, r"^(-?)0\.0*([1-9])(\d*)$", r"\1\2.\3")
        powers = pa.array(["e-06", "e-05"]).take(pa.array((sizes >= _FIFTH).astype(np.int8)))
        pointed = pc.binary_join_element_wise(pc.ascii_rtrim(digits, characters="."), powers, "")
        result = pc.if_else(pc.match_substring(texts, "e"), result, pointed)
    return result


def _replaced(texts: Any, column: Array, indices: Array) -> Any:
    """Return the texts with those of `repr` at some indices."""
    import pyarrow as pa
    import pyarrow.compute as pc

    written = pa.array(list(map(repr, column[indices].tolist())), pa.string())
    if len(indices) > _RARE * len(column):
        mask = np.zeros(len(column), dtype=bool)
        mask[indices] = True
        return pc.replace_with_mask(texts, pa.array(mask), written)
    parts, start = [], 0
    for k, index in enumerate(indices.tolist()):
        parts += [texts.slice(start, index - start), written.slice(k, 1)]
        start = index + 1
    return pa.concat_arrays([*parts, texts.slice(start)])
