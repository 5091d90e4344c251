"""The system of a command, its graph in the shapes of its points, and the points."""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import click

from gradcli.activity import doing
from gradcli.cli.options import SystemOptions
from gradcli.cli.points import default_point, read_points, read_shape_options
from gradcli.cli.subsystems import check_branches, is_subsystem, read_subsystems
from gradcli.errors import InputError, Notes, Source, nearest
from gradcli.files import read_path, read_stdin
from gradcli.graph.array import Array, Named
from gradcli.graph.graph import Graph, appearance
from gradcli.graph.names import identifier
from gradcli.graph.shapes import Shape
from gradcli.lang.joined import note_joined
from gradcli.lang.system import System, read_system
from gradcli.lang.values import STANDARD_POINT, read_names

_CLAIM = re.compile(r"/\s*[d∂]|\.\s*grad")
MAX_SYSTEM_BYTES = 2**24
_LONG = 2**18  # characters of a text
_OBJECTS = 20_000_000  # a text of 16 MiB makes fewer: 100,000 short statements make 2,000,000
_KEPT: list[System] = []


def read_system_of(options: SystemOptions, cotangents: Sequence[str] = (), points: str | None = None) -> System:
    """Return the system of a command: the statements of files, then of arguments, or of standard input.

    `cotangents` and `points` are what `--v` and `--points` say, for which standard input may be read.

    Errors: `InputError` for statements that cannot be read, and where there are none.
    """
    sources = [_without_claims(s) for s in read_sources(options, cotangents, points)]
    subsystems = read_subsystems(options.files, _names(options.wrt), options, points)
    if sum(len(source.text) for source in sources) < _LONG:
        return read_system(sources, subsystems)
    # Millions of objects are made, the text bounds how many, and nearly all are kept to the end: Python is not to look
    # for garbage among them, nor to take a system down, one object after the other, before the process ends.
    gc.set_threshold(_OBJECTS, 50, 50)
    _KEPT[:] = [read_system(sources, subsystems)]
    return _KEPT[0]


def read_sources(options: SystemOptions, cotangents: Sequence[str] = (), points: str | None = None) -> list[Source]:
    """Return the texts of the system: the files', then the arguments', or standard input's where there are neither."""
    expr, files = options.expr, options.files
    parts = [part.strip() for text in options.at for part in text.split(",")]
    reserved = [("--v", "-")] * ("-" in cotangents) + [("--points", "-")] * (points == "-")
    reserved += [("--at", STANDARD_POINT)] * parts.count(STANDARD_POINT)
    if not expr and not files:
        if reserved or sys.stdin is None or sys.stdin.isatty():
            option, text = reserved[0] if reserved else ("", None)
            raise InputError(
                "no system is given" + (f": standard input is read for {option} {text}" if reserved else ""),
                hint=f'for example: gradcli {click.get_current_context().info_name} "y=x**2"',
                options=(option,) if option else (),
                text=text,
            )
        files = ("-",)
    if files.count("-") + len(reserved) > 1:
        raise InputError(
            "standard input can be read only once", hint=_instead(files, [option for option, _ in reserved])
        )
    return [_read_file(name) for name in files if not is_subsystem(name)] + [Source(text) for text in expr]


def _instead(files: Sequence[str], reserved: Sequence[str]) -> str:
    """Return the hint where standard input is read twice: which of the system, point and points to put in a file."""
    if "-" in files:
        return "put the system into a file: -F system.grad"
    return "put the point into a file: --at @point.json" if "--at" in reserved else "name a file: --points points.csv"


def _names(listed: str | None) -> list[str]:
    """Return the names in an option's list."""
    return [name.strip() for name in listed.split(",")] if listed is not None else []


def _as_read(listed: str) -> str:
    """Return a list of names as identifiers: `fc.weight` is `fc_weight`."""
    return ",".join(name if "[" in name else identifier(name.strip()) for name in listed.split(","))


def _without_claims(source: Source) -> Source:
    """Return a text without its claims, which are for `gradcli check`, and are not looked for where there can be none.

    Errors: `ClaimError` for one that is typed, and not in a file.
    """
    if not _CLAIM.search(source.text):
        return source
    from gradcli.lang.claims import read_claims

    (rest,), claims = read_claims([source])
    if claims and source.label is None:
        from gradcli.cli.retyped import ClaimError

        raise ClaimError("a claim about a derivative is for `gradcli check`", claims[0].span, "leave it out")
    return rest


def _read_file(name: str) -> Source:
    if name == "-":
        return Source(read_stdin(MAX_SYSTEM_BYTES), "standard input")
    return Source(read_path(name, MAX_SYSTEM_BYTES), name)


def values_of_fixed(system: System, values: Mapping[str, Array]) -> Named:
    """Return the values of the inputs that are fixed.

    Errors: `InputError` for one without a value.
    """
    for name in sorted(system.fixed - values.keys()):
        raise InputError(
            f"`{name}` has no derivative, and the result depends on its value", hint=f"give it: --at {name}=…"
        )
    return {name: values[name] for name in system.fixed}


class Situation(NamedTuple):
    """A system with its points: the graph in the points' shapes, the leaves wanted, and the points.

    `same` names the inputs that `--at` leaves at their defaults: they have one value at all points.
    """

    graph: Graph
    wrt: list[str]
    points: list[Named]
    same: frozenset[str] = frozenset()


def read_situation(system: System, options: SystemOptions, notes: Notes) -> Situation:
    """Return the graph of a system at its points, with everything that names something checked.

    Inputs without values that may be calls of functions are noted.
    """
    doing("reading points")
    known = read_shape_options(system, options.shapes)
    result = read_points(system, options.at, known)
    values = result[0] if result else default_point(system)
    known = known | {n: v.shape for n, v in values.items()}
    note_joined(system, known, notes)
    note_subsystems(system, notes)
    graph, wrt = read_graph(system, known, options, values)
    varying = {a.name for option in options.at for a in option.assignments} & {*graph.inputs}
    situation = Situation(graph, wrt, result, frozenset({*graph.inputs} - varying) if varying else frozenset())
    check_branches(system.subsystems, graph, result)
    doing("computing derivatives")
    return situation


def shown_leaves(situation: Situation, options: SystemOptions) -> list[str]:
    """Return the leaves in order of display: natural order for data, order of appearance for pages."""
    return situation.wrt if options.wrt is not None or options.page is None else appearance(situation.graph)


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
    if system.subsystems:
        wrt, outputs = (None if listed is None else _as_read(listed) for listed in (wrt, outputs))
    wanted = read_names(wrt, "--wrt") if wrt is not None else None
    named = read_names(outputs, "--outputs") if outputs is not None else None
    graph = system.graph(shapes, named, values_of_fixed(system, values))
    leaves = list(graph.inputs)
    for name in wanted or []:
        if name not in graph.inputs:
            computed = name in system.assigned
            raise InputError(
                f"--wrt: `{name}` is {'computed' if computed else 'not in the system'}",
                hint=f"--retain {name} shows its gradient" if computed else nearest(name, leaves, "inputs"),
                options=("--wrt",),
                text=name,
            )
    return graph, leaves if wanted is None else wanted
