"""Numbers as text: what `repr` writes, the shortest text that is read as the same float64, many at a time.

pyarrow writes the same digits several times as fast, with another layout: `1` for 1.0, 0.000015 for 1.5e-05, 1.5e+10
for 15000000000.0.  These are laid out anew in a matrix of bytes, a row a number, padded with NUL.  So the texts agree
whether pyarrow is there or not.
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
_FIXED = 1e-6  # from here on, pyarrow writes no exponent
_WIDTH = 26  # bytes: -0.0000012345678901234567 as pyarrow writes it, and one more
_RARE = 1 / 64  # of a column: so few texts are put between slices of the others
_POINT, _ZERO = b".0"


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
    others = ((sizes >= _TINY) & (sizes < _SMALL)) | ((sizes >= _LARGE) & (sizes < _HUGE))
    if not others.any():
        return texts
    mask = pa.array(others)
    written = _laid_out(texts.filter(mask), column[others])
    if len(written) > _RARE * len(column):
        return pc.replace_with_mask(texts, mask, written)
    parts, start = [], 0
    for k, index in enumerate(np.flatnonzero(others).tolist()):
        parts += [texts.slice(start, index - start), written.slice(k, 1)]
        start = index + 1
    return pa.concat_arrays([*parts, texts.slice(start)])


def _laid_out(texts: Any, column: Array) -> Any:
    """Return the texts of numbers that `repr` lays out in another way than pyarrow."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lengths = np.diff(np.frombuffer(texts.buffers()[1], dtype=np.int32, count=len(column) + 1))
    padded = pc.ascii_rpad(texts, width=_WIDTH, padding="\0").buffers()[2]
    rows = np.frombuffer(padded, dtype=np.uint8, count=_WIDTH * len(column)).reshape(-1, _WIDTH).copy()
    _lay_out(rows, lengths, column)
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.StringArray.from_buffers(len(column), pa.py_buffer(ends), pa.py_buffer(rows[rows != 0]))


def _lay_out(rows: Array, lengths: Array, column: Array) -> None:
    """Change the texts of pyarrow, and their lengths, to those of `repr`."""
    sizes = np.abs(column)
    some = np.flatnonzero(sizes < _FIXED)
    digits = rows[some, lengths[some] - 1]
    lengths[some] -= 1
    _write(rows, lengths, some, b"0")
    rows[some, lengths[some]] = digits
    lengths[some] += 1
    for power in (-6, -5, *range(10, 16)):
        inside = (sizes >= float(f"1e{power}")) & (sizes < float(f"1e{power + 1}"))
        for sign, signed in enumerate((column > 0, column < 0) if inside.any() else ()):
            some = np.flatnonzero(inside & signed)
            (_with_exponent if power < 0 else _without_exponent)(rows, lengths, some, sign, power)


def _write(rows: Array, lengths: Array, some: Array, text: bytes) -> None:
    """Write a text behind those of some rows."""
    for byte in text:
        rows[some, lengths[some]] = byte
        lengths[some] += 1


def _with_exponent(rows: Array, lengths: Array, some: Array, sign: int, power: int) -> None:
    """Change texts such as 0.000015 to 1.5e-05."""
    zeros = 1 - power
    texts = rows[some]
    digits = lengths[some] - sign - zeros
    rows[some, sign:] = 0
    rows[some, sign] = texts[:, sign + zeros]
    rows[some, sign + 1] = _POINT
    rows[some, sign + 2 : 1 - zeros] = texts[:, sign + zeros + 1 :]
    lengths[some] = sign + np.where(digits > 1, digits + 1, 1)
    _write(rows, lengths, some, b"e-%02d" % -power)


def _without_exponent(rows: Array, lengths: Array, some: Array, sign: int, power: int) -> None:
    """Change texts such as 1.5e+10 to 15000000000.0."""
    for _ in b"e+10":
        lengths[some] -= 1
        rows[some, lengths[some]] = 0
    texts = rows[some]
    point = sign + 1 + power
    texts[:, sign + 1 : point] = rows[some, sign + 2 : point + 1]
    texts[:, point] = _POINT
    integers = texts[:, : point + 2]
    integers[integers == 0] = _ZERO
    rows[some] = texts
    lengths[some] = np.maximum(lengths[some], point + 2)
