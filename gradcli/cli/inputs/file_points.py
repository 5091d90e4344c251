"""A system at the points of a file: what varies from point to point, and what does not."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from gradcli.cli.inputs.points import example_of, read_constants, read_points, read_shape_options
from gradcli.cli.inputs.system import note_subsystems, read_graph
from gradcli.cli.options import Files, SystemOptions
from gradcli.cli.output import print_notes
from gradcli.data.arrays import default_point
from gradcli.data.block import (
    COPIED,
    PLAIN,
    Array,
    Block,
    GivenPoints,
    Points,
    Policy,
    Reading,
    check_header,
    listed_columns,
)
from gradcli.data.columns import element
from gradcli.data.formats import open_points
from gradcli.data.mistakes import about_file, label, path_of
from gradcli.errors import InputError, Notes, did_you_mean, option_error, unknown_name
from gradcli.graph.array import Named
from gradcli.graph.graph import Graph
from gradcli.graph.names import NAME
from gradcli.graph.node import Node
from gradcli.graph.shapes import Shape
from gradcli.lang.own_names import with_identifiers
from gradcli.lang.system import System
from gradcli.pages.results import Wanted
from gradcli.process.platform import quote
from gradcli.report.render import PAGE_ENDINGS, PAGES

# Headers have commas, too: what follows one that parts is NAME=.
_BETWEEN = re.compile(rf",(?=\s*{NAME}(?:\[[\d\s,]*\])?(?:\.[uv])?\s*=)")
_AT = "--at"  # the label of the points without a file


@dataclass
class FilePoints:
    """A system in the shapes of its points.

    `varying` has the shapes of what the file has for each point, `same` the arrays of the rest, with a last axis of 1;
    `label` is what messages call the file of the points, `notes` are printed in the end, and `reading` says how
    the file is read.
    """

    options: SystemOptions
    files: Files
    notes: Notes
    graph: Graph
    wrt: tuple[str, ...]
    points: Points
    varying: Mapping[str, Shape]
    same: Mapping[str, Array]
    label: str
    reading: Reading = PLAIN
    kept: tuple[str, ...] = ()  # the headers of the columns that are copied
    of_file: Literal[True] = True
    count: None = None

    @property
    def leaves(self) -> tuple[str, ...]:
        """The leaves in their order."""
        return self.wrt

    def note_skipped(self, count: int) -> None:
        """Add a note of points that were left out because a cell is missing."""
        if count:
            points = "1 point was" if count == 1 else f"{count:,} points were"
            self.notes.add("note", f"{points} skipped: a cell is missing")

    def has_columns(self, suffix: str, nodes: Mapping[str, Node], typed: bool) -> bool:
        """Return whether the file has seeds, `y.v` or `x.u` of the nodes; these vary then, and a missing one is 0.

        `typed` is whether the command line has some.

        Errors: `InputError` for seeds of another shape than their nodes, and for seeds in both places.
        """
        named = {f"{n}.{suffix}": x.shape for n, x in nodes.items()}
        columns = {name: shape for name, shape in named.items() if name in self.points.shapes}
        if columns and typed:
            twice = f"{suffix} is given twice: by --{suffix}, and in {self.label} as `{next(iter(columns))}`"
            raise option_error(f"--{suffix}", twice)
        for name, shape in columns.items():
            if (result := self.points.shapes[name]) != shape:
                message = f"`{name}` has shape {result} in {self.label}, but {name[:-2]} has shape {shape}"
                raise InputError(message, text=path_of(self.label))
        if not columns:
            return False
        rest = {name: np.zeros(shape) for name, shape in named.items() if name not in columns}
        what = "cotangent" if suffix == "v" else "tangent"
        for name in rest:
            self.notes.add("note", f"{self.label} has no `{name}`: {name[:-2]} gets the {what} 0")
        self.varying = {**self.varying, **columns}
        self.add_seeds(rest)
        return True

    @property
    def prints_json(self) -> bool:
        """Whether lines of JSON are printed."""
        return self.options.style == "json" and self.files.output in (None, "-")

    @property
    def wanted(self) -> Wanted:
        """The extras of a result: what a block of points has."""
        return Wanted(warn=False, same=frozenset(self.same), block=True)

    def add_seeds(self, seeds: Named) -> None:
        """Add seeds that are the same at all points."""
        self.same = {**self.same, **{name: v[..., None] for name, v in seeds.items()}}

    def point(self, at: Mapping[str, Array]) -> Named:
        """Return a point whole, given what varies."""
        return {**at, **{name: value[..., 0] for name, value in self.same.items()}}

    def blocks(self, size: int) -> Iterator[Block]:
        """Yield the varying values block by block, with the columns that are copied."""
        return self.points.blocks([*self.varying, *(COPIED + header for header in self.kept)], size)


def read_reading(system: System, columns: Sequence[str], missing: Policy) -> Reading:
    """Return how a file of points is read, of `--columns` and `--missing`.

    Errors: `InputError` for names that the system does not have.
    """
    headers: dict[str, str] = {}
    for option in columns:
        for part in _BETWEEN.split(with_identifiers(option)):
            name, _, header = (text.strip() for text in part.partition("="))
            result = element(name)
            if result is None or not header:
                part, example = part.strip(), 'for example "x=flow rate"'
                raise option_error("--columns", f"--columns: `{part}` is not NAME=HEADER", example, part)
            stem = result[0].partition(".")[0]
            if stem not in {*system.uses, *system.defaults, *system.assigned}:
                raise unknown_name("--columns", stem, f"`{stem}` is not in the system", system.leaves(), "inputs")
            if header in headers:
                raise option_error("--columns", f"--columns: the column `{header}` is given two names", text=header)
            headers[header] = name
    if repeated := next((name for name in headers.values() if [*headers.values()].count(name) > 1), None):
        raise option_error("--columns", f"--columns: `{repeated}` is given two columns", text=repeated)
    return Reading(headers, missing)


@contextmanager
def open_many(system: System, options: SystemOptions, files: Files) -> Iterator[FilePoints]:
    """Open the points, read the system in their shapes, and print the notes at the end.

    Errors: `InputError` for options that do not go together, and for points that lack an input of the system.
    """
    _check(options, files)
    known = read_shape_options(system, options.shapes)
    reading = read_reading(system, files.columns, files.missing)
    name = files.points
    points: Points = _given_points(system, options, known) if name is None else open_points(name, reading)
    with closing(points):
        run = _read(system, options, files, points, known, reading)
        yield run
    print_notes(run.notes)


def _given_points(system: System, options: SystemOptions, shapes: Mapping[str, Shape]) -> GivenPoints:
    points = read_points(system, options.at, shapes)
    if not points:
        example = quote(example_of({name: shapes.get(name, ()) for name in system.leaves(shapes)}))
        raise InputError("there are no points to compute at", hint=f"give a file, --points FILE, or --at {example}")
    return GivenPoints(points)


def _read(
    system: System, options: SystemOptions, files: Files, points: Points, known: Mapping[str, Shape], reading: Reading
) -> FilePoints:
    """Return the run; `known` are the shapes of `--shape`."""
    where = _AT if files.points is None else label(files.points)
    kept = tuple(dict.fromkeys(header.strip() for header in files.keep.split(","))) if files.keep else ()
    for header in kept:
        check_header(header, points.columns, where, "--keep")
    for name, shape in known.items():
        if (other := points.shapes.get(name, shape)) != shape:
            message = f"--shape: `{name}` has shape {other} in {where}, not {shape}"
            raise InputError(message, options=("--shape", _AT) if where == _AT else ("--shape",), text=name)
    shapes = {n: s for n, s in points.shapes.items() if n in system.uses or n in system.defaults}
    if inputs := [n for n in shapes if n not in system.assigned]:
        points.blocks(inputs, 1)  # a variable's own mistakes are reported before its shape is used
    constants = read_constants(system, options.at) if files.points is not None else {}
    if repeated := next((n for n in constants if n in shapes), None):
        hint = "beside --points, --at gives the inputs that are the same at all points"
        raise option_error(_AT, f"`{repeated}` is given twice: by --at, and in {where}", hint, repeated)
    same = default_point(system) | constants
    graph, wrt = read_graph(system, {**{n: v.shape for n, v in same.items()}, **known, **shapes}, options, same)
    varying = {n: shapes[n] for n in graph.inputs if n in shapes}
    rest = [n for n in graph.inputs if n not in shapes]
    missing = [n for n in rest if n not in same]
    if missing or (rest and not varying):
        raise _missing(where, (missing if varying else rest)[0], points)
    constant = {n: same[n][..., None] for n in rest}
    notes = Notes()
    note_subsystems(system, notes)
    return FilePoints(options, files, notes, graph, tuple(wrt), points, varying, constant, where, reading, kept)


def _missing(where: str, name: str, points: Points) -> InputError:
    error = about_file(where, f"has no values for the input `{name}`")
    error = replace(error, options=(_AT,) if where == _AT else ())
    if not points.columns:
        listed = ", ".join(points.shapes)
        return replace(error, hint=did_you_mean(name, list(points.shapes)) or f"there are values for {listed}")
    if not points.shapes:
        return replace(error, hint=f"a column of numbers is headed by its name: {name}")
    near = did_you_mean(name, [column.strip() for column in points.columns])
    hint = f"{listed_columns(points.columns)}\n  --columns {name}=HEADER names the column with its values"
    return replace(error, hint="\n  ".join(filter(None, (near, hint))))


# Options that do not go together


def _check(options: SystemOptions, files: Files) -> None:
    """Check that the options go together, and that the format agrees with `--output` and the engine.

    Errors: `InputError` for the first that does not.
    """
    style, output, at_points = options.style, files.output or "-", files.points is None
    ending = next((name for name, page in PAGE_ENDINGS.items() if page == style), "")
    is_data_set = _is_parquet(files.points) or os.path.isdir(files.points or "-")
    other = style is not None and output != "-" and not output.lower().endswith(f".{style}")
    rules = (
        (
            not at_points and len(options.at) > 1, ("--points", _AT), None, "--points takes the place of --at",
            "one --at may give the inputs that are not in the file and are the same at all points",
        ),
        (
            style in PAGES[1:] and at_points and output != "-", ("--output",), output,
            f"{label(output)} would hold data, and -f {style} is a page", f"give it the file extension {ending}",
        ),
        (
            style in PAGES, ("-f",), style, f"-f {style} is for single points",
            "many points are printed with -f csv or -f json",
        ),
        (
            other, ("-f",), style, f"-f {style} is for standard output",
            "the file extension of --output chooses the format",
        ),
        (
            style == "json" and files.engine != "numpy", ("-f",), style, "-f json is computed by NumPy",
            f"leave out --engine {files.engine}, or -f json",
        ),
        (
            files.scheduler is not None and files.engine != "dask", ("--scheduler", "--engine"), None,
            "--scheduler is for --engine dask", None,
        ),
        (
            files.engine == "dask" and not (is_data_set and _is_parquet(files.output)), ("--engine",), "dask",
            "--engine dask reads and writes Parquet data sets",
            "for example: --points points.parquet --output result.parquet, each a folder of files",
        ),
    )  # fmt: skip
    for wrong, names, text, message, hint in rules:
        if wrong:
            raise InputError(message, hint=hint, options=names, text=text)


def _is_parquet(path: str | None) -> bool:
    return Path(path or "-").suffix.lower() == ".parquet"
