"""What `gradcli backward` shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.engine.evaluate import values_of
from gradcli.errors import InputError, Notes
from gradcli.explain.backward.no_gradient import leaves_without
from gradcli.explain.origin import not_finite, warn_of_values
from gradcli.explain.results import UNMEASURED, Array, BackwardPoint, BackwardResult, Call, Measured, Named, Wanted
from gradcli.explain.shared import (
    check_entries,
    cotangents,
    formulas_of,
    style_of,
    summed,
    sweep_inputs,
    symbolic,
)
from gradcli.graph.graph import Graph, dimensions
from gradcli.graph.node import Node
from gradcli.graph.vjp import Sweep, sweep

if TYPE_CHECKING:
    from gradcli.algebra.jacobian import SymbolicJacobian
    from gradcli.explain.sections import Text
    from gradcli.explain.trace import Trace

SHOWN_FORMULAS = 5_000  # elements that are worked out as formulas, beside a gradient
SHOWN_ENTRIES = 36  # of a Jacobian that is shown beside a gradient
TRACED = 1_000  # nodes of a system that a page looks into
SHOWN_RETAINED = 6  # elements of an intermediate whose gradient is shown as formulas
MAX_STEPPED_CALLS = 16


@np.errstate(all="ignore")
def backward(
    graph: Graph,
    wrt: Sequence[str],
    points: Sequence[Named],
    calls: Sequence[Sequence[Named]],
    wanted: Wanted,
    notes: Notes,
    measured: Measured = UNMEASURED,
) -> BackwardResult:
    """Return vᵀJ at each point: `calls[p]` are the cotangents of the `backward` calls at point p, which accumulate.

    Without a point, `calls[0]` are the cotangents, and the gradients are formulas.  What was `measured`, in one call at
    one point, is not computed.
    """
    swept = sweep(graph, wrt, wanted.retain)
    formulas = None
    if wanted.steps and len(calls[0]) > MAX_STEPPED_CALLS:
        notes.add("note", f"steps are shown for the first {MAX_STEPPED_CALLS} of {len(calls[0])} calls")
    if not points or (wanted.page and (wanted.jacobian or _is_small(graph, wrt))):
        check_entries(graph, wrt)
        formulas = symbolic(graph, wrt, wanted.steps)
    if formulas is not None and not points:
        result = [_in_formulas(graph, wrt, swept, calls[0], wanted, formulas)]
    else:
        result = _Numbers(graph, wrt, swept, wanted, formulas is not None, notes, measured).points(points, calls)
    style = style_of(graph, calls[0])
    return BackwardResult(graph, tuple(wrt), style, swept, wanted, tuple(result), bool(points), symbolic=formulas)


def _is_small(graph: Graph, wrt: Sequence[str]) -> bool:
    """Tell whether J is shown beside a gradient unasked."""
    rows, columns = dimensions(graph, wrt)
    return rows * columns <= SHOWN_ENTRIES and formulas_of(graph) <= SHOWN_FORMULAS


class _Numbers(NamedTuple):
    """The gradients in numbers: all points and calls in one batch, of which each point is a part."""

    graph: Graph
    wrt: Sequence[str]
    swept: Sweep
    wanted: Wanted
    jacobian: bool
    notes: Notes
    measured: Measured

    def points(self, points: Sequence[Named], calls: Sequence[Sequence[Named]]) -> list[BackwardPoint]:
        """Return the results at all points; every point has the same number of calls."""
        unknown = (g for name, g in self.swept.gradients.items() if name not in self.measured.gradients)
        keep = [*unknown, *self.graph.outputs.values()]
        if self.wanted.page:
            from gradcli.explain.system import shown_names

            keep += [self.graph.names[name] for name in shown_names(self.graph)]
        count = len(calls[0])
        # One point is a column that broadcasts; several are repeated, once for each call.
        repeat = count if len(points) > 1 else 1
        inputs = {n: np.repeat(np.stack([p[n] for p in points], axis=-1), repeat, axis=-1) for n in points[0]}
        inputs |= cotangents([call for mine in calls for call in mine])
        batch = (len(points), count)
        result = {
            n: np.broadcast_to(a, (*n.shape, batch[0] * batch[1])).reshape(*n.shape, *batch)
            for n, a in values_of(self.swept.graph, inputs, keep).items()
        }
        results = [
            self.point(at, mine, {n: a[..., k, :] for n, a in result.items()})
            for k, (at, mine) in enumerate(zip(points, calls, strict=True))
        ]
        if not self.jacobian:
            return results
        from gradcli.engine.jacobian import NumericJacobian

        matrix = NumericJacobian(self.graph, self.wrt)
        return [replace(p, jacobian=matrix(p.at)) for p in results]

    def point(self, at: Named, calls: Sequence[Named], found: Mapping[Node, Array]) -> BackwardPoint:
        """Return the result at one point; `found` holds the values, the calls along the last axis."""
        known = {name: grad[..., None] for name, grad in self.measured.gradients.items()}
        own = {name: known[name] if name in known else found[g] for name, g in self.swept.gradients.items()}
        running = {name: np.cumsum(grads, axis=-1, dtype=float) for name, grads in own.items()}
        called = [
            Call(v, {name: own[name][..., k] for name in self.wrt}, {name: running[name][..., k] for name in self.wrt})
            for k, v in enumerate(calls)
        ]
        values = {name: found[n][..., 0].astype(float) for name, n in self.graph.names.items() if n in found}
        value = {name: values[name] for name in self.graph.outputs}
        grads = {name: g[..., -1] for name, g in running.items()}
        corners = self.tell(at, value, calls, grads)
        retained = {name: grads[name] for name in self.wanted.retain}
        trace, adjoints = self.trace(at, calls), self.adjoints(calls)
        notes = (*corners, *self.notes_beside(at, calls, grads))
        return BackwardPoint(at, value, values, tuple(called), retained, trace, adjoints, notes=notes)

    def notes_beside(self, at: Named, calls: Sequence[Named], grads: Named) -> Iterator[str | Text]:
        """Yield what a page says beside the gradients, for formats without pages: why they are nan, or None."""
        if self.wanted.page or not self.wanted.notes:
            return
        yield from leaves_without(self.graph, self.wrt)
        if len(calls) == 1 and any(np.isnan(g).any() for g in grads.values()):
            from gradcli.explain.backward.indeterminate import indeterminate
            from gradcli.explain.trace import numeric_trace

            why = indeterminate(numeric_trace(self.graph, self.swept, at, calls))
            if why is not None:
                yield why

    def tell(self, at: Named, value: Named, calls: Sequence[Named], grads: Named) -> tuple[str, ...]:
        """Add notes of what is not finite at a point, and of the corners that it lies on; return these."""
        if self.wanted.warn:
            warn_of_values(self.graph, at, value, self.notes)
        if self.wanted.warn and not all(np.isfinite(g).all() for g in grads.values()):
            for text in not_finite(self.swept, sweep_inputs(at, calls), grads):
                self.notes.add("warning", text)
        if not self.wanted.notes:
            return ()
        from gradcli.explain.corners import note_corners

        return note_corners(self.graph, at, self.notes, self.wanted.page)

    def trace(self, at: Named, calls: Sequence[Named]) -> Trace | None:
        """Return the trace at one point, if steps are wanted, or a page that has something to say of them."""
        if not self.wanted.steps and not (self.wanted.page and len(self.graph.nodes) <= TRACED):
            return None
        from gradcli.explain.trace import numeric_trace

        return numeric_trace(self.graph, self.swept, at, calls[:MAX_STEPPED_CALLS], self.measured)

    def adjoints(self, calls: Sequence[Named]) -> Named:
        """Return the gradients of retained intermediates as formulas, where a page shows them."""
        small = [n for n in self.wanted.retain if self.graph.names[n].size <= SHOWN_RETAINED]
        if not self.wanted.page or not small or formulas_of(self.graph) > SHOWN_FORMULAS:
            return {}
        from gradcli.explain.backward.steps import retained_formulas

        with suppress(InputError):  # too deep to be written
            return retained_formulas(self.swept, calls, small)
        return {}


def _in_formulas(
    graph: Graph, wrt: Sequence[str], swept: Sweep, calls: Sequence[Named], wanted: Wanted, symbolic: SymbolicJacobian
) -> BackwardPoint:
    """Return the gradients as formulas: Σ_i v_i·J[i, j], from the entries of the symbolic Jacobian."""
    from gradcli.algebra.functions import exact_number
    from gradcli.explain.backward.steps import retained_formulas
    from gradcli.explain.trace import symbolic_trace

    leaves = {name: graph.inputs[name] for name in wrt}
    terms: dict[int, list[Any]] = {}
    result: list[Call] = []
    for call in calls:
        weights = [exact_number(e) for name in graph.outputs for e in call[name].reshape(-1)]
        new: dict[int, list[Any]] = {}
        for (i, j), entry in symbolic.entries.items():
            new.setdefault(j, []).append(weights[i] * entry)
        for j, more in new.items():
            terms.setdefault(j, []).extend(more)
        result.append(Call(call, summed(new, leaves), summed(terms, leaves)))
    retained = retained_formulas(swept, calls, wanted.retain)
    trace = symbolic_trace(graph, swept, calls[:MAX_STEPPED_CALLS]) if wanted.steps else None
    return BackwardPoint({}, {}, {}, tuple(result), retained, trace)
