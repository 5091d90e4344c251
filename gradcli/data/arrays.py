"""The numbers of constant values: from nodes, from `.npy` and `.csv` files, and of what a system declares."""

from __future__ import annotations

import io
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

import numpy as np

from gradcli.engine.evaluate import evaluate
from gradcli.errors import InputError
from gradcli.files import note_read, read_text, reason
from gradcli.graph.array import Array, Named
from gradcli.graph.graph import Graph
from gradcli.graph.kinds import KINDS, is_of_kind
from gradcli.graph.names import element_name
from gradcli.graph.node import Node
from gradcli.graph.shapes import Shape, check_size
from gradcli.lang.builder import build
from gradcli.lang.system import System
from gradcli.lang.values import Assignment

MAX_BYTES = 2**28  # of a file that holds one value: 256 MiB
_ROWS = 2**12  # that are texts at a time


def array_of(value: Node | Path | InputError) -> Array:
    """Return a constant value as a float64 array of its shape.

    Errors: `InputError` for a file that cannot be read as an array of numbers, and for a value that is an error.

    >>> from gradcli.graph.node import const
    >>> array_of(const(3))
    array(3.)
    """
    if isinstance(value, InputError):
        raise value
    if isinstance(value, Path):
        return load(value)
    return np.asarray(evaluate(Graph.of({}, {"value": value}), {})["value"][..., 0], dtype=float)


def assigned_array(a: Assignment, check: Callable[[str], object] = str) -> Array:
    """Return the array of an assignment; `check` raises an error for a wrong name.

    Errors: `InputError`, with its position.
    """
    try:
        check(a.name)
        return array_of(a.value)
    except InputError as error:
        raise error.at(a.span) from None


def load(path: Path) -> Array:
    """Return the array in a `.npy` file (never unpickled) or a `.csv` file of numbers, one row a line."""
    ending = path.suffix.lower()
    if ending not in (".npy", ".csv"):
        raise InputError(f"`{path}`: values are read from .npy and .csv files")
    try:
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # opening a pipe waits for a writer
            raise InputError(f"`{path}` is a pipe or a device, not a file", hint="save the values to a file first")
        with path.open("rb") as file:
            note_read(file)
            return _npy(path, file) if ending == ".npy" else _csv(path, file)
    except InputError:
        raise
    except Exception as error:  # NumPy and csv have errors of many kinds for broken files
        raise InputError(f"`{path}` cannot be read: {reason(error)}") from None


def _npy(path: Path, file: BinaryIO) -> Array:
    """Read the header first: it may promise an array of any size, and a file may be endless."""
    from gradcli.data.npz import MAX_HEADER, npy_header

    start = io.BytesIO(file.read(MAX_HEADER))
    shape, fortran, dtype = npy_header(start, f"`{path}`")
    if dtype.hasobject or dtype.kind not in "iufb":
        raise InputError(f"`{path}` holds {dtype}, not numbers")
    check_size(shape)
    count = int(np.prod(shape, dtype=np.int64))
    file.seek(start.tell())
    data = file.read(count * dtype.itemsize)
    if len(data) < count * dtype.itemsize:
        raise InputError(f"`{path}` ends early: {count} numbers are declared in its header")
    return _finite_size(np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C").astype(float))


def _csv(path: Path, file: BinaryIO) -> Array:
    from gradcli.data.text_files import UTF8, Rows  # most commands read no file

    text = read_text(file, str(path), MAX_BYTES)
    rows = Rows([text.encode(*UTF8)], f"`{path}`", 1, ",")
    table: list[list[float]] = []
    while some := rows.take(_ROWS):
        for line, row in some:
            if not any(cell.strip() for cell in row):
                continue
            table.append(_numbers(row, f"`{path}`, line {line}"))
            if len(row) != len(table[0]):
                cells = f"{len(row)} cell{'s' * (len(row) > 1)}"
                raise InputError(f"`{path}`, line {line}: {cells}, where the first line has {len(table[0])}")
    if not table:
        raise InputError(f"`{path}` holds no numbers")
    array = np.array(table)
    # A single row or column is a vector, a single number a scalar.
    return _finite_size(array.reshape(()) if array.size == 1 else array.ravel() if 1 in array.shape else array)


def _numbers(row: list[str], where: str) -> list[float]:
    from gradcli.data.csv.reader import number_in

    result = []
    for column, cell in enumerate(row, 1):
        try:
            result.append(number_in(cell))
        except InputError as error:
            raise InputError(f"{where}, column {column}: {error.message}", hint=error.hint) from None
    return result


def _finite_size(array: Array) -> Array:
    check_size(array.shape)
    if not array.size:
        raise InputError("an empty array has no elements to differentiate")
    return array


def assemble(name: str, elements: Iterable[tuple[tuple[int, ...], Array]]) -> Array:
    """Return the array whose elements were given one by one: x[0]=1, x[1]=2.

    >>> assemble("x", [((1,), np.array(5.0)), ((0,), np.array(4.0))])
    array([4., 5.])
    """
    elements_at = dict(elements)
    ranks = {len(k) for k in elements_at}
    if len(ranks) > 1 or any(v.shape for v in elements_at.values()):
        raise InputError(f"the elements of `{name}` must be numbers, all under one or all under two indices")
    shape: Shape = tuple(max(k[i] for k in elements_at) + 1 for i in range(ranks.pop()))
    check_size(shape)
    result = np.full(shape, np.nan)
    for key, value in elements_at.items():
        result[key] = value
    if len(elements_at) < result.size:
        missing = next(k for k in np.ndindex(*shape) if k not in elements_at)
        raise InputError(f"`{element_name(name, missing)}` is missing")
    return result


def default_point(system: System) -> Named:
    """Return the default values that the system declares."""
    defaults = ((name, p.default) for part in system.subsystems for name, p in part.parameters.items())
    point = {name: default for name, default in defaults if default is not None}
    for name, declared in system.defaults.items():
        try:
            point[name] = array_of(declared.file or build(declared.expression, {}))
        except InputError as error:
            raise error.at(declared.span) from None
        if declared.kind is not None and not is_of_kind(declared.kind, point[name]):
            expression = declared.expression
            span = expression.span(expression.tree) if declared.file is None else declared.span
            message = f"`{name}` is declared as {declared.kind}, and its value is not"
            raise InputError(message, span, f"{declared.kind}: {KINDS[declared.kind].what}")
    return point
