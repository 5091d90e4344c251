"""Files of `-F` that are no text: which they are, and what reads them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradcli.errors import InputError, Span
from gradcli.graph.subsystem import Subsystem

if TYPE_CHECKING:
    from gradcli.cli.options import SystemOptions
    from gradcli.graph.array import Array, Named
    from gradcli.graph.graph import Graph
    from gradcli.graph.shapes import Shape
    from gradcli.pyfunc.files import File

_FUNCTION = re.compile(r"(.*\.py):([^\W\d]\w*(?:\.[^\W\d]\w*)*)", re.DOTALL)


def is_subsystem(file: str) -> bool:
    """Return whether a file of `-F` is read otherwise than as statements.

    Errors: `InputError` for a Python file without the name of a function.

    >>> is_subsystem("model.onnx"), is_subsystem("net.py:loss"), is_subsystem("net.grad"), is_subsystem("-")
    (True, True, False, False)
    """
    if file.lower().endswith(".py"):
        raise InputError(
            f"`{file}` is a Python file",
            hint=f"name a function in it: -F {file}:NAME; `gradcli run {file}` runs a script",
            text=file,
        )
    return file.lower().endswith(".onnx") or is_function(file)


def is_function(file: str) -> bool:
    """Return whether a file of `-F` is a function in a Python file.

    >>> is_function("net.py:loss"), is_function("C:\\\\net.py:Model.loss"), is_function("y = x.py:3")
    (True, True, False)
    """
    return _FUNCTION.fullmatch(file) is not None


def read_subsystems(
    files: Sequence[str], wanted: Sequence[str], options: SystemOptions | None = None, points: str | None = None
) -> list[Subsystem]:
    """Return the subsystems of files that are not text; `wanted` are the names to differentiate by.

    A function is traced at the first point of `options`, in the shapes of the file of points.

    Errors: `InputError` for a file that cannot be read.
    """
    result: list[Subsystem] = []
    known = first_known(options, points) if options is not None and any(map(is_function, files)) else {}
    for file in (f for f in files if is_subsystem(f)):
        if is_function(file):
            result.append(read_function(file, known))
            continue
        from gradcli.onnx.model import read_model

        result.append(read_model(file, wanted))
    return result


_RAN: dict[str, File] = {}


def function_in(text: str) -> tuple[File, str]:
    """Return a Python file, which is run, and the name of the function in it."""
    import gradcli
    from gradcli.pyfunc.aliases import DERIVATIVES
    from gradcli.pyfunc.files import File

    match = _FUNCTION.fullmatch(text)
    assert match is not None
    path = match[1]
    if path not in _RAN:
        _RAN[path] = File(path, {other: getattr(gradcli, function) for other, function in DERIVATIVES.items()})
    return _RAN[path], match[2]


def read_function(text: str, known: Mapping[str, Array | Shape]) -> Subsystem:
    """Return a function in a Python file, as `-F file.py:NAME` names it."""
    from gradcli.pyfunc.system import FunctionSystem

    file, name = function_in(text)
    return FunctionSystem(file.function(name), text, known, file.running)


def first_known(options: SystemOptions, points: str | None) -> dict[str, Any]:
    """Return the values of the inputs at the first point, or their shapes, before the system is read."""
    from gradcli.data.arrays import array_of, assemble
    from gradcli.lang.values import read_shapes

    known: dict[str, Any] = {n: shape for option in options.shapes for n, shape in read_shapes(option).items()}
    elements: dict[str, dict[tuple[int, ...], Any]] = {}
    for a in options.at[0].assignments if options.at else ():
        if a.key is None:
            known[a.name] = array_of(a.value)
        else:
            elements.setdefault(a.name, {})[a.key] = array_of(a.value)
    known |= {name: assemble(name, elements_of.items()) for name, elements_of in elements.items()}
    if points is not None and (os.path.isfile(points) or os.path.isdir(points)):
        from gradcli.data.points import open_points

        opened = open_points(points)
        try:
            known |= opened.shapes
        finally:
            opened.close()
    return known


def check_branches(parts: Sequence[Subsystem], graph: Graph, points: Sequence[Named]) -> None:
    """Check that a function takes at all points the branch of the first, where it was traced.

    Errors: `InputError`, with the line.
    """
    if len(points) < 2:
        return
    if (other := _other_branch(parts, graph, points)) is not None:
        raise InputError(
            f"point {other[0]} takes another branch than the first",
            other[1],
            "give it a command of its own; or write `np.where(condition, a, b)`, which chooses at each point",
        )


def check_branch(parts: Sequence[Subsystem], graph: Graph, at: Named) -> None:
    """Check that a function takes the same branch at a point as where it was traced.

    Errors: `InputError`, with the line.
    """
    if (other := _other_branch(parts, graph, [at])) is not None:
        raise InputError(
            "another branch is taken there, which was not traced",
            other[1],
            "begin there, with --at; or write `np.where(condition, a, b)`, which chooses at each point",
        )


def _other_branch(parts: Sequence[Subsystem], graph: Graph, points: Sequence[Named]) -> tuple[int, Span | None] | None:
    """Return the number of the first point at which a function takes another branch, and its line, if any does."""
    conditions = [c for part in parts for c in getattr(part, "conditions", ())]
    if not conditions:
        return None
    import numpy as np

    from gradcli.engine.evaluate import at_points
    from gradcli.graph.graph import Graph
    from gradcli.pyfunc.tape import span_of

    branches = Graph.of(graph.inputs, {str(k): c.node for k, c in enumerate(conditions)})
    nodes = [c.node for c in conditions]
    for k, values in enumerate(at_points(branches, [{n: p[n] for n in branches.inputs} for p in points], nodes), 1):
        for c in conditions:
            if not np.array_equal(values[c.node], np.asarray(c.value, float)):
                return k, span_of(c.file, c.line)
    return None
