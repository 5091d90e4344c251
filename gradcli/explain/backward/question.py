"""The question of `gradcli backward`: vᵀJ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from gradcli.errors import Notes
from gradcli.explain.backward.accumulation import backward
from gradcli.explain.backward.record import BackwardResult
from gradcli.explain.origin import not_finite
from gradcli.explain.protocol import without_seeds
from gradcli.explain.results import Named, Wanted
from gradcli.explain.shared import sweep_inputs
from gradcli.graph.graph import Graph
from gradcli.graph.node import Node, leaf
from gradcli.graph.rewrite import substituted
from gradcli.graph.vjp import Sweep, sweep

if TYPE_CHECKING:
    from gradcli.explain.columns import Columns

MAX_SWEEPS = 32  # calls that a file's gradients are the sum of, each with a reverse sweep of its own


@dataclass(frozen=True)
class Gradients:
    """The gradients that `backward` leaves in `.grad`.

    `calls` are the cotangents of each point's calls; a single entry is that of all points, and without one the points
    hold their cotangents (`y.v`).
    """

    graph: Graph
    wrt: Sequence[str]
    calls: Sequence[Sequence[Named]]
    wanted: Wanted
    plural = "gradients"

    @cached_property
    def swept(self) -> Sweep:
        """The reverse sweep."""
        return sweep(self.graph, self.wrt, self.wanted.retain)

    @cached_property
    def _same(self) -> Sequence[Named]:
        """The calls of every point of a file; more than `MAX_SWEEPS` are one call with the sum of the cotangents."""
        if not self.calls or len(self.calls[0]) <= MAX_SWEEPS:
            return self.calls[0] if self.calls else ()
        return [{name: np.sum([call[name] for call in self.calls[0]], axis=0) for name in self.calls[0][0]}]

    @property
    def seeds(self) -> Named:
        """The cotangents, under a name for each call."""
        return {_seed(name, k): v for k, call in enumerate(self._same) for name, v in call.items()}

    def columns(self) -> Columns:
        """Return the gradients, added up call by call."""
        from gradcli.explain.columns import Columns  # for files

        inputs = dict(self.swept.graph.inputs)
        names = (*self.wrt, *self.wanted.retain)
        single = [self.swept.gradients[name] for name in names]
        total = single
        for k, call in enumerate(self._same[1:], 1):
            again: dict[Node, Node] = {self.swept.cotangents[name]: leaf(v.shape) for name, v in call.items()}
            inputs |= {_seed(name, k): again[self.swept.cotangents[name]] for name in call}
            total = [a + b for a, b in zip(total, substituted(single, again), strict=True)]
        return Columns(Graph.of(inputs, {f"{name}.grad": n for name, n in zip(names, total, strict=True)}))

    def result(self, points: Sequence[Named], notes: Notes) -> BackwardResult:
        """Return the gradients at each point, or as formulas where there is none."""
        calls = self.calls if len(self.calls) == len(points) or not points else [self._of(p) for p in points]
        if self.wanted.block and self.calls:
            calls = [[{name: v[..., None] for name, v in call.items()} for call in self.calls[0]]]
        return backward(self.graph, self.wrt, without_seeds(self.graph, points), calls, self.wanted, notes)

    def origin(self, point: Named, results: Named) -> str:
        """Return where the first number that is not finite arose in the first call."""
        at = without_seeds(self.graph, [point])[0]
        gradients = {name: results[f"{name}.grad"] for name in (*self.wrt, *self.wanted.retain)}
        return not_finite(self.swept, sweep_inputs(at, self._of(point)), gradients)[0]

    def _of(self, point: Named) -> Sequence[Named]:
        """Return the calls of a point."""
        return self.calls[0] if self.calls else [{name: point[f"{name}.v"] for name in self.graph.outputs}]


def _seed(name: str, call: int) -> str:
    return f"{name}.v{call or ''}"
