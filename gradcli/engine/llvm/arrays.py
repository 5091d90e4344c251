"""Where the numbers of arrays are: read from NumPy's objects by a compiled function, since there may be thousands.

To ask NumPy for each address, type and order in memory takes longer than to compute with what is there.  What is read
stands in NumPy's binary interface, which C programs are compiled against.  Where Python's objects are not CPython's,
NumPy is asked.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.engine.blocks import are_rows
from gradcli.graph.array import Array

# How far behind what all objects begin with an array has what it is: see `PyArrayObject_fields`.
_NUMBERS, _TYPE, _FLAGS = 0, 40, 48
_IN_ROWS = 0x1 | 0x100  # in C's order, and aligned

# Writes the addresses of the numbers, until an array is of another kind; returns how many have been written.
SOURCE = f"""
define i64 @addresses(i64 %count, ptr %objects, ptr %found, ptr %class, ptr %type) nounwind {{
start:
  br label %array
array:
  %k = phi i64 [ 0, %start ], [ %next, %good ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %look, label %done
look:
  %place = getelementptr ptr, ptr %objects, i64 %k
  %object = load ptr, ptr %place
  %class_at = getelementptr i8, ptr %object, i64 {object.__basicsize__ - 8}
  %own_class = load ptr, ptr %class_at
  %is_array = icmp eq ptr %own_class, %class
  br i1 %is_array, label %ours, label %done
ours:
  %fields = getelementptr i8, ptr %object, i64 {object.__basicsize__}
  %type_at = getelementptr i8, ptr %fields, i64 {_TYPE}
  %own_type = load ptr, ptr %type_at
  %flags_at = getelementptr i8, ptr %fields, i64 {_FLAGS}
  %flags = load i32, ptr %flags_at
  %set = and i32 %flags, {_IN_ROWS}
  %in_rows = icmp eq i32 %set, {_IN_ROWS}
  %floats = icmp eq ptr %own_type, %type
  %both = and i1 %in_rows, %floats
  br i1 %both, label %good, label %done
good:
  %numbers_at = getelementptr i8, ptr %fields, i64 {_NUMBERS}
  %numbers = load ptr, ptr %numbers_at
  %to = getelementptr ptr, ptr %found, i64 %k
  store ptr %numbers, ptr %to
  %next = add i64 %k, 1
  br label %array
done:
  ret i64 %k
}}
"""

Reader = Callable[..., int]  # the compiled function, which holds Python's lock


def addresses(reader: Reader | None, arrays: tuple[Array, ...]) -> Array | None:
    """Return the addresses of the arrays' numbers; None unless all are rows of float64 numbers."""
    result = np.empty(len(arrays), np.int64)
    if reader is not None and _read(reader, arrays, result) == len(arrays):
        return result
    if not are_rows(arrays):
        return None
    result[:] = [a.ctypes.data for a in arrays]
    return result


def _read(reader: Reader, arrays: tuple[Array, ...], found: Array) -> int:
    objects = id(arrays) + tuple.__basicsize__
    return reader(len(arrays), objects, found.ctypes.data, id(np.ndarray), id(np.dtype(float)))


def trusted(reader: Reader) -> Reader | None:
    """Return the compiled function, if what it finds is what NumPy says of some arrays."""
    if sys.implementation.name != "cpython" or np.ndarray.__basicsize__ < object.__basicsize__ + _FLAGS + 4:
        return None
    rows = (np.arange(5.0), np.zeros((2, 3)), np.arange(6.0)[2:4])
    others: list[Any] = [np.zeros((2, 3)).T, np.zeros(3, np.float32), np.arange(6.0)[::2], None]
    result = np.zeros(len(rows), np.int64)
    right = _read(reader, rows, result) == len(rows) and result.tolist() == [a.ctypes.data for a in rows]
    return reader if right and not any(_read(reader, (other,), result) for other in others) else None
