"""The result of `gradcli backward`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.engine.evaluate import at_point
from gradcli.errors import InputError, Notes
from gradcli.explain.backward.no_gradient import leaves_without
from gradcli.explain.backward.record import BackwardPoint, BackwardResult, Call
from gradcli.explain.corners import Corners
from gradcli.explain.evaluation import Values, evaluated, evaluated_calls
from gradcli.explain.origin import fix, not_finite, warn_of_values
from gradcli.explain.results import UNMEASURED, Measured, Named, Wanted
from gradcli.explain.shared import (
    MAX_ENTRIES,
    check_entries,
    formulas_of,
    letters,
    style_of,
    summed,
    sweep_inputs,
    symbolic,
    weight,
)
from gradcli.graph.graph import Graph, dimensions
from gradcli.graph.node import Node
from gradcli.graph.vjp import Sweep, sweep

if TYPE_CHECKING:
    from gradcli.algebra.symbolic_jacobian import SymbolicJacobian
    from gradcli.engine.numeric_jacobian import NumericJacobian
    from gradcli.explain.sections import Text
    from gradcli.explain.trace import Trace

SHOWN_FORMULAS = 5_000  # elements whose formulas a page computes beside a gradient: more would keep the reader waiting
MANY_FORMULAS = 1_000  # elements whose formulas are not computed if those of arrays say the same: seconds of work
SHOWN_ENTRIES = 36  # entries of a J that a page shows without being asked: a matrix of 6 by 6 fills half a screen
TRACED = 1_000  # nodes of a system whose steps a page looks into: more would take longer than the rest of the page
SHOWN_RETAINED = 6  # elements of an intermediate whose gradient is shown as formulas: a line each, and a few are enough
MAX_STEPPED_CALLS = 16  # calls whose steps are shown: each is a table as long as the system


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
    if not points and (arrays := _in_arrays(graph, wrt, swept, calls[0], wanted)) is not None:
        return arrays
    formulas = None
    if wanted.steps and len(calls[0]) > MAX_STEPPED_CALLS:
        notes.add("note", f"steps are shown for the first {MAX_STEPPED_CALLS} of {len(calls[0])} calls")
    if not points or wanted.letters or (wanted.page and (wanted.jacobian or _is_small(graph, wrt))):
        check_entries(graph, wrt)
        formulas = symbolic(graph, wrt, wanted.steps)
    if formulas is not None and not points:
        result = [_in_formulas(graph, wrt, swept, calls[0], wanted, formulas)]
    else:
        matrix = None if formulas is None else _numeric_jacobian(graph, wrt)
        result = _Numbers(graph, wrt, swept, wanted, matrix, notes, measured).points(points, calls)
    style = style_of(graph, calls[0])
    in_v = {}
    if wanted.letters and formulas is not None:
        in_v = _in_formulas(graph, wrt, swept, [letters(graph.outputs)], Wanted(), formulas).grad
    numeric = bool(points)
    return BackwardResult(graph, tuple(wrt), style, swept, wanted, tuple(result), numeric, in_v, symbolic=formulas)


def _numeric_jacobian(graph: Graph, wrt: Sequence[str]) -> NumericJacobian:
    from gradcli.engine.numeric_jacobian import NumericJacobian

    return NumericJacobian(graph, wrt)


def _is_small(graph: Graph, wrt: Sequence[str]) -> bool:
    """Return whether J is shown beside a gradient unasked."""
    rows, columns = dimensions(graph, wrt)
    return rows * columns <= SHOWN_ENTRIES and formulas_of(graph) <= SHOWN_FORMULAS


@dataclass(frozen=True)
class _Numbers:
    """Computes gradients in numbers: lists the nodes that are shown, and evaluates them at all points together."""

    graph: Graph
    wrt: Sequence[str]
    swept: Sweep
    wanted: Wanted
    jacobian: NumericJacobian | None
    notes: Notes
    measured: Measured

    @cached_property
    def traced(self) -> bool:
        """Whether all passes are computed: for the section `steps`, or the page of a system that is not large."""
        return self.wanted.steps or (self.wanted.page and len(self.graph.nodes) <= TRACED)

    @cached_property
    def corners(self) -> Corners:
        """The corners of the system, if they are noted."""
        return Corners(self.graph, self.wanted.notes)

    def nodes(self) -> Iterator[Node]:
        """Yield the nodes whose values the results have."""
        yield from (g for name, g in self.swept.gradients.items() if name not in self.measured.gradients)
        yield from self.graph.outputs.values()
        if self.wanted.page:
            from gradcli.explain.system import shown_names

            yield from (self.graph.names[name] for name in shown_names(self.graph))
        yield from self.corners.nodes
        if self.traced:
            from gradcli.explain.trace import traced

            yield from traced(self.graph, self.swept, self.measured)
        if self.jacobian is not None and not self.measured.values:
            yield from self.jacobian.blocks

    def points(self, points: Sequence[Named], calls: Sequence[Sequence[Named]]) -> list[BackwardPoint]:
        """Return the results at all points."""
        values = evaluated_calls(
            self.swept.graph.inputs,
            points,
            calls,
            self.nodes(),
            self.wanted.same,
            self.wanted.block,
            self.measured.values,
        )
        return [self.point(at, v, of_calls) for at, v, of_calls in zip(points, calls, values, strict=True)]

    def point(self, at: Named, calls: Sequence[Named], values: Sequence[Values]) -> BackwardPoint:
        """Return the result at one point, given the values in each call."""
        called: list[Call] = []
        for v, computed in zip(calls, values, strict=True):
            known = self.measured.gradients
            contributions = {n: known[n] if n in known else computed[g] for n, g in self.swept.gradients.items()}
            total = {name: called[-1].grad[name] + g for name, g in contributions.items()} if called else contributions
            called.append(Call(v, contributions, total))
        grads = called[-1].grad
        of_wrt = [
            Call(c.v, {name: c.vjp[name] for name in self.wrt}, {name: c.grad[name] for name in self.wrt})
            for c in called
        ]
        first = values[0]
        named = {name: first[n] for name, n in self.graph.names.items() if n in first}
        value = {name: named[name] for name in self.graph.outputs}
        on_values = self.notes_on_values(at, value, calls, grads, first)
        retained = {name: grads[name] for name in self.wanted.retain}
        trace = self.trace(values[:MAX_STEPPED_CALLS]) if self.traced else None
        matrix = None if self.jacobian is None else self.jacobian.matrix(self.entries(self.jacobian, at, first))
        notes = (*on_values, *self.notes_beside(at, calls, grads))
        return BackwardPoint(
            at, value, named, tuple(of_wrt), retained, trace, self.adjoints(calls), jacobian=matrix, notes=notes
        )

    def entries(self, jacobian: NumericJacobian, at: Named, values: Values) -> Values:
        """Return the values of the blocks of J, as its formulas give them at the point: none of these is measured."""
        if not self.measured.values:
            return values
        (result,) = evaluated(self.graph.inputs, [at], jacobian.blocks)
        return result

    def trace(self, values: Sequence[Values]) -> Trace:
        """Return the trace of some calls."""
        from gradcli.explain.trace import trace_of  # for pages: data start sooner without it

        return trace_of(self.graph, self.swept, values, self.measured)

    def notes_beside(self, at: Named, calls: Sequence[Named], grads: Named) -> Iterator[str | Text]:
        """Yield a page's explanations, for JSON: why gradients are nan or None, and which rules surprise."""
        if self.wanted.page or not self.wanted.notes:
            return
        yield from leaves_without(self.graph, self.wrt)
        yield from self.reasons(at, calls)
        if len(calls) == 1 and any(np.isnan(g).any() for g in grads.values()):
            from gradcli.explain.backward.indeterminate import indeterminate
            from gradcli.explain.trace import numeric_trace

            why = indeterminate(numeric_trace(self.graph, self.swept, at, calls))
            if why is not None:
                yield why

    def reasons(self, at: Named, calls: Sequence[Named]) -> Iterator[str | Text]:
        """Yield a sentence for each rule of arrays that surprises: softmax, a maximum, a bias."""
        if not any(node.shape for node in self.graph.nodes):
            return
        from gradcli.explain.backward.loss import loss_name
        from gradcli.explain.backward.reasons import has_softmax, reasons

        trace = None
        if len(self.graph.nodes) <= TRACED and has_softmax(self.graph):
            from gradcli.explain.trace import numeric_trace

            trace = numeric_trace(self.graph, self.swept, at, calls)
        yield from reasons(self.graph, self.swept, self.wrt, loss_name(self.graph, calls[0]), trace)

    def notes_on_values(
        self, at: Named, value: Named, calls: Sequence[Named], grads: Named, values: Values
    ) -> tuple[str, ...]:
        """Add warnings about numbers that are not finite; return them, for JSON, and the notes on corners."""
        own = Notes()
        if self.wanted.warn:
            warn_of_values(self.graph, at, value, own)
        if self.wanted.warn and not all(np.isfinite(g).all() for g in grads.values()):
            for text in not_finite(self.swept, sweep_inputs(at, calls), grads):
                own.add("warning", text)
            if text := fix(self.swept, sweep_inputs(at, calls)):
                own.add("fix", text)
        return self.corners.note(values, own, self.notes, self.wanted.page)

    def adjoints(self, calls: Sequence[Named]) -> Named:
        """Return the gradients of retained intermediates as formulas, where a page shows them."""
        small = [n for n in self.wanted.retain if self.graph.names[n].size <= SHOWN_RETAINED]
        if not self.wanted.page or not small or formulas_of(self.graph) > SHOWN_FORMULAS:
            return {}
        from gradcli.explain.backward.steps import retained_formulas

        with suppress(InputError):  # too deep to be written
            return retained_formulas(self.swept, calls, small)
        return {}


def _in_arrays(
    graph: Graph, wrt: Sequence[str], swept: Sweep, calls: Sequence[Named], wanted: Wanted
) -> BackwardResult | None:
    """Return the result of a page that shows formulas of arrays alone; None where formulas of elements are shown, too.

    It has the values of constant gradients only.
    """
    elements = wanted.steps or wanted.jacobian or wanted.letters or wanted.retain or len(calls) > 1
    if not wanted.page or elements or len(graph.nodes) > TRACED or formulas_of(graph) <= MANY_FORMULAS:
        return None
    from gradcli.explain.forms.gradients import forms  # data, and pages of few elements, start sooner without it

    style = style_of(graph, calls)
    result = BackwardResult(graph, tuple(wrt), style, swept, wanted, (), numeric=False)
    written = forms(result, calls[0])
    if not written.covers(wrt) or any(n.size > MAX_ENTRIES for n in written.constants.values()):
        return None
    constant = {name: at_point(graph, {}, [n])[n] for name, n in written.constants.items()}
    call = Call(calls[0], constant, constant)
    return replace(result, points=(BackwardPoint({}, {}, {}, (call,), {}, None),))


def _in_formulas(
    graph: Graph, wrt: Sequence[str], swept: Sweep, calls: Sequence[Named], wanted: Wanted, symbolic: SymbolicJacobian
) -> BackwardPoint:
    """Return the gradients as formulas: Σ_i v_i·J[i, j], from the entries of the symbolic Jacobian."""
    from gradcli.explain.backward.steps import retained_formulas
    from gradcli.explain.trace import symbolic_trace

    leaves = {name: graph.inputs[name] for name in wrt}
    terms: dict[int, list[Any]] = {}
    result: list[Call] = []
    for call in calls:
        weights = [weight(e) for name in graph.outputs for e in call[name].reshape(-1).tolist()]
        new: dict[int, list[Any]] = {}
        for (i, j), entry in symbolic.entries.items():
            new.setdefault(j, []).append(weights[i] * entry)
        for j, more in new.items():
            terms.setdefault(j, []).extend(more)
        result.append(Call(call, summed(new, leaves), summed(terms, leaves)))
    retained = retained_formulas(swept, calls, wanted.retain)
    trace = symbolic_trace(graph, swept, calls[:MAX_STEPPED_CALLS]) if wanted.steps else None
    return BackwardPoint({}, {}, {}, tuple(result), retained, trace)
