"""Runs over many points: `--points FILE` and `--output FILE`."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import click
import numpy as np

from gradcli.batch.job import Job, Tally
from gradcli.batch.progress import progress
from gradcli.cli.cotangents import Call, read_calls
from gradcli.cli.options import Files, read_graph
from gradcli.cli.points import Named, default_point, read_constants, read_points, read_shape_options
from gradcli.data.block import Block, Points
from gradcli.data.mistakes import label
from gradcli.data.points import open_points
from gradcli.data.result import create_result
from gradcli.engine.jacobian import numeric_jacobian
from gradcli.errors import InputError, Notes, did_you_mean
from gradcli.explain.backward import Wanted
from gradcli.explain.backward import backward as explained_backward
from gradcli.explain.jacobian import jacobian as explained_jacobian
from gradcli.explain.origin import not_finite, not_finite_entry, not_finite_values
from gradcli.explain.shared import check_entries
from gradcli.graph.construct import reduce
from gradcli.graph.graph import Graph
from gradcli.graph.jacobian import MAX_SINGLE, entries, jacobian
from gradcli.graph.names import element_names
from gradcli.graph.node import Node, const
from gradcli.graph.shapes import Shape
from gradcli.graph.vjp import sweep
from gradcli.lang.system import System
from gradcli.report.render import render_data

_JSON_BLOCK = 2**10  # points whose steps of JSON are worked out at a time


class GivenPoints:
    """The points of `--at`, as if they stood in a file."""

    fraction = None

    def __init__(self, points: Sequence[Named]) -> None:
        self.shapes = {name: value.shape for name, value in points[0].items()}
        self.count: int | None = len(points)
        self._points = points

    def blocks(self, names: Sequence[str], size: int) -> Iterator[Block]:
        """Yield the values, as an open file does."""
        for start in range(0, len(self._points), size):
            part = self._points[start : start + size]
            yield {name: np.stack([p[name] for p in part], axis=-1) for name in names}

    def close(self) -> None:
        """Do nothing: no file is open."""


class ManyPoints:
    """A system at the points of a file: what varies from point to point, what does not, and where results go."""

    def __init__(
        self,
        system: System,
        files: Files,
        at: Sequence[str],
        shapes: Sequence[str],
        wrt: str | None,
        outputs: str | None,
        style: str | None,
        notes: Notes,
    ) -> None:
        """Open the points and read the system in their shapes.

        Errors: `InputError` for options that do not go together, and for points that lack an input of the system.
        """
        _check(files, at, style)
        self.files, self.notes = files, notes
        self.json = style == "json" and files.output in (None, "-")
        known = read_shape_options(system, shapes)
        self._constants = read_constants(system, at) if files.points is not None else {}
        self.points = _open(system, files, at, known)
        try:
            self._read(system, known, wrt, outputs)
        except BaseException:
            self.points.close()
            raise

    def _read(self, system: System, known: Mapping[str, Shape], wrt: str | None, outputs: str | None) -> None:
        found, defaults = self.points.shapes, default_point(system) | self._constants
        for name, shape in known.items():
            if found.get(name, shape) != shape:
                raise InputError(f"--shape: `{name}` has shape {found[name]} in {self._label}, not {shape}")
        own = {n: s for n, s in found.items() if n in system.uses or n in system.defaults}
        if inputs := [n for n in own if n not in system.assigned]:
            self.points.blocks(inputs, 1)  # what is wrong with a variable is told before its shape is believed
        if twice := [n for n in self._constants if n in own]:
            raise InputError(
                f"`{twice[0]}` is given twice: by --at, and in {self._label}",
                hint="beside --points, --at gives the inputs that are the same at all points",
            )
        declared = {n: v.shape for n, v in defaults.items()}
        self.graph, self.wrt = read_graph(system, {**declared, **known, **own}, wrt, outputs)
        leaves = list(self.graph.inputs)
        for name in leaves:
            if name not in own and name not in defaults:
                raise _missing(self._label, name, [n for n in found if "." not in n])
        self.varying = {n: own[n] for n in leaves if n in own}
        self.same = {n: defaults[n][..., None] for n in leaves if n not in own}
        if not self.varying:
            raise _missing(self._label, leaves[0], list(found))

    @property
    def _label(self) -> str:
        return "--at" if self.files.points is None else label(self.files.points)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.points.close()

    def backward(self, cotangents: Sequence[str], strict: bool, retain: Sequence[str], steps: bool) -> None:
        """Write vᵀJ at all points, with the cotangents of the file, or with those of `--v` at every point.

        Errors: `InputError` for cotangents that do not fit the outputs, and for cotangents in both places.
        """
        calls = self._calls(cotangents, strict)
        swept = sweep(self.graph, self.wrt, retain)
        if self.json:
            tally = self._print_backward(calls, Wanted(tuple(retain), steps, warn=False))
        elif steps:
            raise InputError("--steps shows single points", hint="add -f json, or give the points with --at")
        else:
            grads = {f"{name}.grad": swept.gradients[name] for name in (*self.wrt, *retain)}
            tally = self._run(Graph.of(swept.graph.inputs, grads), {})
        self._note_no_points(tally)
        self._warn_of_values(tally.checked)
        if tally.not_finite:
            at = {name: value[..., None] for name, value in tally.at.items()} | self.same
            grad = {name.removesuffix(".grad"): value for name, value in tally.found.items()}
            self._warn(tally, "gradients", not_finite(swept, at, grad)[0])

    def _calls(self, cotangents: Sequence[str], strict: bool) -> list[Call] | None:
        """Return the calls of `--v`, or None where the file has a cotangent for each point."""
        given = {f"{n}.v": y for n, y in self.graph.outputs.items() if f"{n}.v" in self.points.shapes}
        if given and cotangents:
            raise InputError(f"v is given twice: by --v, and in {self._label} as `{next(iter(given))}`")
        if not given:
            calls = read_calls(self.graph.outputs, None, cotangents, strict, self.notes)[0]
            self.same |= {f"{n}.v": np.sum([c[n] for c in calls], axis=0)[..., None] for n in calls[0]}
            return calls
        for name, y in given.items():
            if self.points.shapes[name] != y.shape:
                raise InputError(
                    f"`{name}` has shape {self.points.shapes[name]} in {self._label}, but "
                    f"{name.removesuffix('.v')} has shape {y.shape}"
                )
        self.varying |= {name: y.shape for name, y in given.items()}
        for name, y in self.graph.outputs.items():
            if f"{name}.v" not in given:
                self.same[f"{name}.v"] = np.zeros((*y.shape, 1))
                self.notes.add("note", f"{self._label} has no `{name}.v`: {name} gets the cotangent 0")
        return None

    def jacobian(self, sparse: bool) -> None:
        """Write the Jacobian at all points; if `sparse`, only the entries that are not zero everywhere.

        Errors: `InputError` for a Jacobian of more than a million entries, unless it is sparse.
        """
        if self.json and sparse:
            raise InputError("-f json shows whole Jacobians", hint="leave out --sparse, or take -f csv")
        if (rows := sum(y.size for y in self.graph.outputs.values())) > MAX_SINGLE:
            raise InputError(f"the Jacobian would have {rows:,} rows", hint="choose some outputs with --outputs")
        if not sparse:
            check_entries(self.graph, self.wrt, "--sparse writes only those that are not zero everywhere")
        tally = self._print_jacobian() if self.json else self._run(*(self._single() if sparse else self._whole()))
        self._note_no_points(tally)
        self._warn_of_values(tally.checked)
        if tally.not_finite:
            at = self._point(tally)
            matrix = numeric_jacobian(self.graph, self.wrt, at)
            if np.isfinite(matrix).all():  # a sum in another order
                first = "an entry is not finite: it arises where contributions are added"
            else:
                first = not_finite_entry(self.graph, self.wrt, at, matrix)
            self._warn(tally, "Jacobians", first)

    def _single(self) -> tuple[Graph, dict[str, list[str]]]:
        """Return the graph of the entries of J that are not zero everywhere, and their names."""
        rows, columns = self._elements(self.graph.outputs), self._elements({n: self.graph.inputs[n] for n in self.wrt})
        found = {f"d{rows[i]}/d{columns[j]}": node for (i, j), node in entries(self.graph, self.wrt).items()}
        if not found:
            raise InputError("all entries of the Jacobian are zero", hint="leave out --sparse to see them")
        return Graph.of(self.graph.inputs, found), {name: [name] for name in found}

    def _whole(self) -> tuple[Graph, dict[str, list[str]]]:
        """Return the graph of J with the blocks that are zero everywhere, and the names of all entries."""
        graph = jacobian(self.graph, self.wrt)
        blocks: dict[str, Node] = {}
        columns = {}
        for (above, y), below in itertools.product(self.graph.outputs.items(), self.wrt):
            x = self.graph.inputs[below]
            name = f"d{above}/d{below}"
            blocks[name] = graph.outputs.get(name) or const(0, (*y.shape, *x.shape))
            rows, across = element_names(above, y.shape), element_names(below, x.shape)
            columns[name] = [f"d{i}/d{j}" for i in rows for j in across]
        return Graph.of(graph.inputs, blocks), columns

    @staticmethod
    def _elements(nodes: Mapping[str, Node]) -> list[str]:
        return [element for name, n in nodes.items() for element in element_names(name, n.shape)]

    def _run(self, graph: Graph, columns: Mapping[str, Sequence[str]]) -> Tally:
        """Compute the outputs of a graph at all points, and write them."""
        checks = {name: _check_of(y) for name, y in self.graph.outputs.items()}
        checked = Graph.of(graph.inputs, {**graph.outputs, **checks})
        job = Job(checked, self.varying, self.same, columns, self.files.engine, self.files.threads, frozenset(checks))
        if self.files.engine == "dask":
            return self._run_on_cluster(job)
        output = self.files.output or "-"
        with (
            create_result(output, job.shapes, columns) as result,
            progress(lambda: self.points.fraction) as told,
        ):
            return job.run(self.points, result, self.notes, told)

    def _run_on_cluster(self, job: Job) -> Tally:
        from gradcli.batch.cluster import run_on_cluster

        assert self.files.points is not None
        assert self.files.output is not None
        share = 0.0

        def told_both(count: int, so_far: float) -> None:
            nonlocal share
            share = so_far
            told(count)

        with progress(lambda: share) as told:
            return run_on_cluster(job, self.files.points, self.files.output, self.files.scheduler, told_both)

    def _blocks(self) -> Iterator[tuple[Block, list[Named]]]:
        """Yield the points block by block, and one by one: the inputs of the system, in their own shapes."""
        leaves = list(self.graph.inputs)
        same = {name: value[..., 0] for name, value in self.same.items()}
        for block in self.points.blocks(list(self.varying), _JSON_BLOCK):
            count = next(iter(block.values())).shape[-1]
            yield (
                block,
                [{n: block[n][..., k] if n in block else same[n] for n in leaves} for k in range(count)],
            )

    def _print_backward(self, calls: list[Call] | None, wanted: Wanted) -> Tally:
        """Print what `--at` prints, for each point of the file."""
        tally = Tally(checked=Tally())
        names = list(self.graph.outputs)
        for block, points in self._blocks():
            vectors = block | {n: np.broadcast_to(v, (*v.shape[:-1], len(points))) for n, v in self.same.items()}
            own = [calls or [{n: vectors[f"{n}.v"][..., k] for n in names}] for k in range(len(points))]
            result = explained_backward(self.graph, self.wrt, points, own, wanted, self.notes)
            for line in render_data(result, "json"):
                click.echo(line)
            self._check_values(tally, block, [p.value for p in result.points])
            grads = [p.grad | p.retained for p in result.points]
            tally.add(block, {f"{n}.grad": np.stack([g[n] for g in grads], axis=-1) for n in grads[0]})
        return tally

    def _print_jacobian(self) -> Tally:
        tally = Tally(checked=Tally())
        for block, points in self._blocks():
            result = explained_jacobian(self.graph, self.wrt, points, self.notes, warn=False)
            for line in render_data(result, "json"):
                click.echo(line)
            self._check_values(tally, block, [p.value for p in result.points])
            tally.add(block, {"J": np.stack([p.jacobian for p in result.points], axis=-1)})
        return tally

    def _note_no_points(self, tally: Tally) -> None:
        if not tally.points:
            self.notes.add("note", f"{self._label} holds no points, so the result has no rows")

    def _check_values(self, tally: Tally, block: Block, values: Sequence[Named]) -> None:
        if tally.checked is not None:
            tally.checked.add(block, {n: np.stack([v[n] for v in values], axis=-1) for n in values[0]})

    def _point(self, tally: Tally) -> Named:
        """Return the first point that was not finite."""
        return tally.at | {name: value[..., 0] for name, value in self.same.items()}

    def _warn_of_values(self, tally: Tally | None) -> None:
        if tally is not None and tally.not_finite:
            told = not_finite_values(self.graph, self._point(tally))
            # A sum in another order may be finite.
            self._warn(tally, "values", told[0] if told else "a value is not finite: it arises where terms are added")

    def _warn(self, tally: Tally, what: str, first: str) -> None:
        self.notes.add(
            "warning",
            f"the {what} of {tally.not_finite:,} of {tally.points:,} points are not finite;"
            f"\n  at the first, point {tally.first + 1:,}, {first}",
        )


def _check(files: Files, at: Sequence[str], style: str | None) -> None:
    """Refuse options that do not go together."""
    if files.points is not None and len(at) > 1:
        raise InputError(
            "--points takes the place of --at",
            hint="one --at may give the inputs that the file lacks, and that are the same at all points",
        )
    if files.points and files.output and _same_file(files.points, files.output):
        raise InputError(f"{label(files.output)} is the file of points", hint="give the results a name of their own")
    if style in ("table", "latex", "markdown"):
        raise InputError(f"-f {style} is for single points", hint="many points are printed with -f csv or -f json")
    to_file = files.output not in (None, "-")
    if to_file and style is not None and not f"{files.output}".lower().endswith(f".{style}"):
        raise InputError(f"-f {style} is for standard output", hint="the ending of --output says what is written there")
    if style == "json" and files.engine != "numpy":
        raise InputError("-f json is computed by NumPy", hint=f"leave out --engine {files.engine}, or -f json")
    if files.scheduler is not None and files.engine != "dask":
        raise InputError("--scheduler is for --engine dask")
    if files.engine == "dask" and not (_is_data_set(files.points) and _is_parquet(files.output)):
        raise InputError(
            "--engine dask reads and writes Parquet data sets",
            hint="for example: --points points.parquet --output result.parquet, each a folder of files",
        )


def _is_parquet(path: str | None) -> bool:
    return Path(path or "-").suffix.lower() == ".parquet"


def _is_data_set(path: str | None) -> bool:
    """Tell whether points are Parquet: a file or a folder of that ending, or a folder of any name."""
    return _is_parquet(path) or os.path.isdir(path or "-")


def _check_of(y: Node) -> Node:
    """Return a number that is finite where the output is."""
    return reduce("sum", 0 * y, tuple(range(len(y.shape)))) if y.shape else y


def _same_file(a: str, b: str) -> bool:
    return os.path.exists(a) and os.path.exists(b) and os.path.samefile(a, b)


def _open(system: System, files: Files, at: Sequence[str], shapes: Mapping[str, Shape]) -> Points:
    if files.points is not None:
        return open_points(files.points)
    points = read_points(system, at, shapes)
    if not points:
        raise InputError("there are no points to compute at", hint="give a file, --points FILE, or points, --at x=1")
    return GivenPoints(points)


def _missing(where: str, name: str, found: Sequence[str]) -> InputError:
    listed = ", ".join(found[:8]) + (", …" if len(found) > 8 else "")
    hint = f"there are values for {listed}" if found else f"a column of numbers is headed by its name: {name}"
    return InputError(f"{where} has no values for the input `{name}`", hint=did_you_mean(name, found) or hint)
