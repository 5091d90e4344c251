"""The system of a command, its graph in the shapes of its points, and the points; files of `-F` that are no text."""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import click

from gradcli.cli.inputs.points import assembled, read_points, read_shape_options
from gradcli.cli.options import SystemOptions
from gradcli.data.arrays import default_point
from gradcli.errors import InputError, Notes, Source, Span, nearest, option_error
from gradcli.files import read_path, read_stdin
from gradcli.graph.array import Array, Named
from gradcli.graph.graph import Graph, appearance
from gradcli.graph.node import Node
from gradcli.graph.shapes import Shape
from gradcli.graph.subsystem import Subsystem
from gradcli.lang.system import System, read_system
from gradcli.lang.values import STANDARD_POINT, read_names
from gradcli.pages.results import Wanted
from gradcli.process.platform import is_terminal

if TYPE_CHECKING:
    from gradcli.pyfunc.files import File

_CLAIM = re.compile(r"/\s*[d∂]|\.\s*grad")
MAX_SYSTEM_BYTES = 2**24
_LONG = 2**18  # characters of a text
_LISTED = 8  # weights of a model
_OBJECTS = 20_000_000  # a text of 16 MiB makes fewer: 100,000 short statements make 2,000,000
_KEPT: list[System] = []


def read_system_of(options: SystemOptions, points: str | None = None, stdin_has_v: bool = False) -> System:
    """Return the system of a command: the statements of files, then of arguments, or of standard input.

    `points` is what `--points` says; `stdin_has_v` is whether `--v` reads standard input.

    Errors: `InputError` for statements that cannot be read, and where there are none.
    """
    sources = [_without_claims(s) for s in read_sources(options, points, stdin_has_v)]
    by = [name.strip() for name in options.wrt.split(",")] if options.wrt is not None else []
    subsystems = read_subsystems(options.files, by, options, points)
    if sum(len(source.text) for source in sources) < _LONG:
        return read_system(sources, subsystems)
    # Millions of objects are made, the text bounds how many, and nearly all are kept to the end: Python is not to look
    # for garbage among them, nor to take a system down, one object after the other, before the process ends.
    gc.set_threshold(_OBJECTS, 50, 50)
    _KEPT[:] = [read_system(sources, subsystems)]
    return _KEPT[0]


def read_sources(options: SystemOptions, points: str | None = None, stdin_has_v: bool = False) -> list[Source]:
    """Return the texts of the system: the files', then the arguments', or standard input's where there are neither."""
    expr, files = options.expr, options.files
    parts = [part.strip() for text in options.at for part in text.split(",")]
    reserved = [("--v", "-")] * stdin_has_v + [("--points", "-")] * (points == "-")
    reserved += [("--at", STANDARD_POINT)] * parts.count(STANDARD_POINT)
    if not expr and not files:
        if reserved or sys.stdin is None or is_terminal(sys.stdin):
            hint = f'for example: gradcli {click.get_current_context().info_name} "y=x**2"'
            for option, text in reserved:
                message = f"no system is given: standard input is read for {option} {text}"
                raise option_error(option, message, hint, text)
            raise InputError("no system is given", hint=hint)
        files = ("-",)
    if files.count("-") + len(reserved) > 1:
        hint = "name a file: --points points.csv"  # which of the system, the point and the points is to be in a file
        if "-" in files:
            hint = "put the system into a file: -F system.grad"
        elif "--at" in dict(reserved):
            hint = "put the point into a file: --at @point.json"
        raise InputError("standard input can be read only once", hint=hint)
    return [_read_file(name) for name in files if not is_subsystem(name)] + [Source(text) for text in expr]


def _without_claims(source: Source) -> Source:
    """Return a text without its claims, which are for `gradcli check`, and are not looked for where there can be none.

    Errors: `InputError` for one that is typed, and not in a file.
    """
    if not _CLAIM.search(source.text):
        return source
    from gradcli.lang.claims import read_claims

    (rest,), claims = read_claims([source])
    if claims and source.label is None:
        hint = "it takes the same system; here, leave the claim out"
        raise InputError("a claim is for `gradcli check`", claims[0].span, hint)
    return rest


def has_claims(name: str) -> bool:
    """Return whether a file of statements has claims about derivatives.

    Errors: `InputError` for a file that cannot be read.
    """
    if name == "-" or is_subsystem(name):
        return False
    from gradcli.lang.claims import read_claims

    _, claims = read_claims([_read_file(name)])
    return bool(claims)


def _read_file(name: str) -> Source:
    if name == "-":
        return Source(read_stdin(MAX_SYSTEM_BYTES), "standard input")
    return Source(read_path(name, MAX_SYSTEM_BYTES), name)


def values_of_fixed(system: System, values: Mapping[str, Array]) -> Named:
    """Return the values of the inputs that are fixed.

    Errors: `InputError` for one without a value.
    """
    for name in sorted(system.fixed - values.keys()):
        message = f"`{name}` has no derivative, and the result depends on its value"
        raise InputError(message, hint=f"give it: --at {name}=…")
    return {name: values[name] for name in system.fixed}


@dataclass(eq=False, repr=False)
class Situation:
    """A system with its points: the graph in the points' shapes, the leaves wanted, and the points.

    `same` names the inputs that `--at` leaves at their defaults: they have one value at all points.  `notes` are
    printed in the end.
    """

    options: SystemOptions
    notes: Notes
    graph: Graph
    wrt: list[str]
    points: list[Named]
    same: frozenset[str] = frozenset()
    of_file: Literal[False] = False

    @property
    def count(self) -> int | None:
        """The number of points; None for those of a file."""
        return len(self.points)

    @property
    def leaves(self) -> list[str]:
        """The leaves in order of display: natural order for data, order of appearance for pages."""
        by_name = self.options.wrt is not None or self.options.page is None
        return self.wrt if by_name else appearance(self.graph)

    @property
    def wanted(self) -> Wanted:
        """The extras of a result: those of a page, if there is one."""
        return Wanted(page=self.options.page is not None, same=self.same)

    def has_columns(self, suffix: str, nodes: Mapping[str, Node], typed: bool) -> bool:
        """Return whether the points have seeds, as those of a file may."""
        return False

    def only(self, message: str, hint: str = "give one --at", option: str = "--at") -> Named | None:
        """Return the point, or None where there is none.

        Errors: `InputError` with this message, in which {} is how many there are, for several.
        """
        if len(self.points) > 1:
            raise option_error(option, message.format(len(self.points)), hint)
        return self.points[0] if self.points else None


def read_situation(system: System, options: SystemOptions, notes: Notes) -> Situation:
    """Return the graph of a system at its points, with everything that names something checked.

    Inputs without values that may be calls of functions are noted.
    """
    known = read_shape_options(system, options.shapes)
    result = read_points(system, options.at, known)
    values = result[0] if result else default_point(system)
    known = known | {n: v.shape for n, v in values.items()}
    if system.uses.keys() - system.defaults.keys() - known.keys():
        from gradcli.lang.claims import note_joined  # a system whose inputs have values starts sooner

        note_joined(system, known, notes)
    note_subsystems(system, notes)
    graph, wrt = read_graph(system, known, options, values)
    varying = {a.name for option in options.at for a in option.assignments} & {*graph.inputs}
    same = frozenset({*graph.inputs} - varying) if varying else frozenset[str]()
    check_branches(system.subsystems, graph, result)
    return Situation(options, notes, graph, wrt, result, same)


def note_subsystems(system: System, notes: Notes) -> None:
    """Add the notes of a system's subsystems."""
    for part in system.subsystems:
        for text in part.notes:
            notes.add("note", text)


def read_graph(
    system: System, shapes: Mapping[str, Shape], options: SystemOptions, values: Named
) -> tuple[Graph, list[str]]:
    """Return the graph of a system whose leaves have these shapes, and the leaves to differentiate by.

    `values` has those of the inputs that are fixed.
    """
    wrt, outputs = options.wrt, options.outputs
    wanted = read_names(wrt, "--wrt") if wrt is not None else None
    named = read_names(outputs, "--outputs") if outputs is not None else None
    graph = system.graph(shapes, named, values_of_fixed(system, values))
    leaves = list(graph.inputs)
    for name in [n for n in wanted or () if n not in graph.inputs]:
        if name in system.assigned:
            raise option_error("--wrt", f"--wrt: `{name}` is computed", f"--retain {name} shows its gradient", name)
        hint = _inputs_like(name, leaves, system.subsystems)
        raise option_error("--wrt", f"--wrt: `{name}` is not in the system", hint, name)
    return graph, leaves if wanted is None else wanted


def _inputs_like(name: str, leaves: Sequence[str], subsystems: Sequence[Subsystem]) -> str | None:
    """Return a hint with the weights of the layer of that name, or with the nearest of all inputs and weights."""
    weights = [weight for part in subsystems for weight in part.weights]
    inside = [weight for weight in weights if name and weight.startswith(name)]
    if not inside:
        return nearest(name, [*leaves, *weights], "inputs and weights" if weights else "inputs")
    return f"the weights of {name} are {', '.join(inside[:_LISTED])}{', …' * (len(inside) > _LISTED)}"


_FUNCTION = re.compile(r"(.*\.py):([^\W\d]\w*(?:\.[^\W\d]\w*)*)", re.DOTALL)


def is_subsystem(file: str) -> bool:
    """Return whether a file of `-F` is read otherwise than as statements.

    Errors: `InputError` for a Python file without the name of a function.

    >>> is_subsystem("model.onnx"), is_subsystem("net.py:loss"), is_subsystem("net.grad"), is_subsystem("-")
    (True, True, False, False)
    """
    if file.lower().endswith(".py"):
        hint = f"name a function in it: -F {file}:NAME; `gradcli run {file}` runs a script"
        raise InputError(f"`{file}` is a Python file", hint=hint, text=file)
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
    known: dict[str, Any] | None = None
    for file in (f for f in files if is_subsystem(f)):
        if is_function(file):
            known = first_known(options, points) if known is None and options is not None else known or {}
            result.append(read_function(file, known))
            continue
        from gradcli.lang.own_names import note_own_names
        from gradcli.onnx.model import read_model

        model = read_model(file, wanted)
        note_own_names(model.own_names)
        result.append(model)
    return result


_RAN: dict[str, File] = {}
_BRANCH = "give it {} of its own; or write `np.where(condition, a, b)`, which chooses at each point"


def function_in(text: str) -> tuple[File, str]:
    """Return a Python file, which is run, and the name of the function in it."""
    from gradcli.api import differentiate
    from gradcli.pyfunc.aliases import DERIVATIVES
    from gradcli.pyfunc.files import File

    match = _FUNCTION.fullmatch(text)
    assert match is not None
    path = match[1]
    if path not in _RAN:
        _RAN[path] = File(path, {other: getattr(differentiate, function) for other, function in DERIVATIVES.items()})
    return _RAN[path], match[2]


def read_function(text: str, known: Mapping[str, Array | Shape]) -> Subsystem:
    """Return a function in a Python file, as `-F file.py:NAME` names it."""
    from gradcli.pyfunc.system import FunctionSystem

    file, name = function_in(text)
    return FunctionSystem(file.function(name), text, known, file.running)


def first_known(options: SystemOptions, points: str | None) -> dict[str, Any]:
    """Return the values of the inputs at the first point, or their shapes, before the system is read."""
    from gradcli.lang.values import read_shapes

    known: dict[str, Any] = {n: shape for option in options.shapes for n, shape in read_shapes(option).items()}
    first = options.at[0].assignments if options.at else []
    known |= assembled(a for a in first if not isinstance(a.value, InputError))  # reported where the system has it
    if points is not None and (os.path.isfile(points) or os.path.isdir(points)):
        from gradcli.data.formats import open_points

        with closing(open_points(points)) as opened:
            known |= opened.shapes
    return known


def check_branches(parts: Sequence[Subsystem], graph: Graph, points: Sequence[Named]) -> None:
    """Check that a function takes at all points the branch of the first, where it was traced.

    Errors: `InputError`, with the line.
    """
    if len(points) > 1 and (other := _other_branch(parts, graph, points)) is not None:
        raise InputError(f"point {other[0]} takes another branch than the first", other[1], _BRANCH.format("a command"))


def check_branch(parts: Sequence[Subsystem], graph: Graph, at: Named) -> None:
    """Check that a function takes the same branch at a point as where it was traced.

    Errors: `InputError`, with the line.
    """
    if (other := _other_branch(parts, graph, [at])) is not None:
        raise InputError("another branch is taken there, which was not traced", other[1], _BRANCH.format("an explorer"))


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
