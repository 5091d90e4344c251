"""Runs over many points of J·u, of H·u, and of the Hessian."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import click
import numpy as np

from gradcli.batch.job import Tally
from gradcli.cli.many import ManyPoints
from gradcli.cli.points import Named
from gradcli.cli.tangents import read_tangent
from gradcli.errors import InputError
from gradcli.explain.hessian import hessian, hvp
from gradcli.explain.jvp import jvp
from gradcli.explain.shared import check_entries
from gradcli.graph import hessian as second
from gradcli.graph.graph import Graph
from gradcli.graph.jacobian import jacobian
from gradcli.graph.jvp import push
from gradcli.graph.names import element_names
from gradcli.graph.node import Node, const
from gradcli.report.render import render

if TYPE_CHECKING:
    from gradcli.report.pages import Data


class ForwardPoints(ManyPoints):
    """A system at the points of a file, with a tangent for each leaf that is the same at all points, or of the file."""

    def jvp(self, tangent: Sequence[str]) -> None:
        """Write J·u at all points.

        Errors: `InputError` for tangents that do not fit the leaves, and for tangents in both places.
        """
        self._tangents(tangent)
        if self.json:
            tally = self._print(
                lambda points, u: jvp(self.graph, self.wrt, points, u, [], False, self.notes, warn=False)
            )
        else:
            tally = self._run(push(self.graph, self.wrt).graph, {})
        self._told(tally, "products J·u")

    def hvp(self, tangent: Sequence[str]) -> None:
        """Write H·u at all points.

        Errors: `InputError` as for `jvp`, and when there is more than one scalar output.
        """
        second.scalar_output(self.graph)
        self._tangents(tangent)
        if self.json:
            tally = self._print(lambda points, u: hvp(self.graph, self.wrt, points, u, self.notes, warn=False))
        else:
            tally = self._run(second.hvp(self.graph, self.wrt), {})
        self._told(tally, "products H·u")

    def hessian(self) -> None:
        """Write the Hessian at all points.

        Errors: `InputError` for more than a million entries, and when there is more than one scalar output.
        """
        name, _ = second.scalar_output(self.graph)
        found = second.gradient(self.graph, self.wrt)
        check_entries(found, self.wrt, "choose some inputs with --wrt; --u gives H·u without H")
        if self.json:
            tally = self._print(lambda points, u: hessian(self.graph, self.wrt, points, self.notes, warn=False))
        else:
            tally = self._run(*self._entries(name, found))
        self._told(tally, "Hessians")

    def _entries(self, output: str, found: Graph) -> tuple[Graph, dict[str, list[str]]]:
        """Return the graph of the blocks of H, and the names of their entries."""
        graph = jacobian(found, self.wrt)
        blocks: dict[str, Node] = {}
        columns = {}
        for above in self.wrt:
            for below in self.wrt:
                shapes = found.inputs[above].shape, found.inputs[below].shape
                name = f"d2{output}/d{above}/d{below}"
                blocks[name] = graph.outputs.get(f"d{above}/d{below}") or const(0, (*shapes[0], *shapes[1]))
                rows, across = element_names(above, shapes[0]), element_names(below, shapes[1])
                columns[name] = [f"d2{output}/d{i}/d{j}" for i in rows for j in across]
        return Graph.of(graph.inputs, blocks), columns

    def _tangents(self, given: Sequence[str]) -> None:
        """Take the tangents from `--u`, or from the file where it has them; those it lacks are 0."""
        leaves: Mapping[str, Node] = {name: self.graph.inputs[name] for name in self.wrt}
        own = {f"{n}.u": x.shape for n, x in leaves.items() if f"{n}.u" in self.points.shapes}
        if own and given:
            raise InputError(f"u is given twice: by --u, and in {self._label} as `{next(iter(own))}`")
        for name, shape in own.items():
            if self.points.shapes[name] != shape:
                raise InputError(
                    f"`{name}` has shape {self.points.shapes[name]} in {self._label}, but "
                    f"{name.removesuffix('.u')} has shape {shape}"
                )
        self.varying |= own
        if own:
            rest = {n: np.zeros(x.shape) for n, x in leaves.items() if f"{n}.u" not in own}
            for name in rest:
                self.notes.add("note", f"{self._label} has no `{name}.u`: {name} gets the tangent 0")
        else:
            rest = read_tangent(leaves, given, self.notes)
        self.same |= {f"{name}.u": value[..., None] for name, value in rest.items()}

    def _print(self, explained: Callable[[Sequence[Named], Sequence[Named]], Data]) -> Tally:
        """Print what `--at` prints, for each point of the file."""
        tally = Tally(checked=Tally())
        for block, points in self._blocks():
            whole = block | {n: np.broadcast_to(v, (*v.shape[:-1], len(points))) for n, v in self.same.items()}
            own = [{n: whole[f"{n}.u"][..., k] for n in self.wrt if f"{n}.u" in whole} for k in range(len(points))]
            result = explained(points, own)
            for line in render(result, "json"):
                click.echo(line)
            rows = [dict(row) for row in result.rows()]
            self._check_values(tally, block, [{n: row[n] for n in self.graph.outputs} for row in rows])
            kept = [name for name in rows[0] if name not in self.graph.inputs and name not in self.graph.outputs]
            tally.add(block, {name: np.stack([row[name] for row in rows], axis=-1) for name in kept})
        return tally

    def _told(self, tally: Tally, what: str) -> None:
        """Warn of what is not finite, and say where there are no points."""
        self._note_no_points(tally)
        self._warn_of_values(tally.checked)
        if tally.not_finite:
            bad = next(name for name, value in tally.found.items() if not np.isfinite(value).all())
            self._warn(tally, what, f"`{bad}` is not finite: a local derivative on the way is not")
