"""The question of `gradcli backward`: vᵀJ, in one call or in several, which accumulate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.engine.evaluate import at_point
from gradcli.errors import InputError, Notes
from gradcli.graph.graph import Graph, dimensions
from gradcli.graph.node import Node, leaf
from gradcli.graph.rewrite import substituted
from gradcli.pages.evaluation import Values, evaluated, seeded, sweep_inputs
from gradcli.pages.formulas import MAX_ENTRIES, check_entries, formula_count, letters, summed, symbolic, weight
from gradcli.pages.not_finite import fixes, not_finite
from gradcli.pages.question import Call, Columns, Point, Question, Result
from gradcli.pages.results import Named, Row, defined, style_of

if TYPE_CHECKING:
    from gradcli.algebra.symbolic_jacobian import SymbolicJacobian
    from gradcli.pages.sections import Text

SHOWN_FORMULAS = 5_000  # elements whose formulas a page computes beside a gradient: more would keep the reader waiting
MANY_FORMULAS = 1_000  # elements whose formulas are not computed if those of arrays say the same: seconds of work
SHOWN_ENTRIES = 36  # entries of a J that a page shows without being asked: a matrix of 6 by 6 fills half a screen
TRACED = 1_000  # nodes of a system whose steps a page looks into: more would take longer than the rest of the page
SHOWN_RETAINED = 6  # elements of an intermediate whose gradient is shown as formulas: a line each, and a few are enough
MAX_STEPPED_CALLS = 16  # calls whose steps are shown: each is a table as long as the system
MAX_SWEEPS = 32  # calls that a file's gradients are the sum of, each with a reverse sweep of its own


@dataclass(eq=False, repr=False)
class Gradients(Question):
    """The gradients that `backward` leaves in `.grad`.

    `calls` are the cotangents of each point's calls; a single entry is that of all points, and without one the points
    hold their cotangents (`y.v`).
    """

    calls: Sequence[Sequence[Named]]
    plural = "gradients"
    seed = "v"

    # At the points of a file

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

    @cached_property
    def same(self) -> frozenset[str]:
        """The inputs with one value at all points, cotangents among them."""
        is_same = self.calls and all(of_point[0] is self.calls[0][0] for of_point in self.calls)
        return self.wanted.same | (seeded("v", self.calls[0][0]).keys() if is_same else frozenset())

    def columns(self) -> Columns:
        """Return the gradients, added up call by call."""
        inputs = dict(self.inputs)
        names = (*self.wrt, *self.wanted.retain)
        single = [self.swept.gradients[name] for name in names]
        total = single
        for k, call in enumerate(self._same[1:], 1):
            again: dict[Node, Node] = {self.swept.cotangents[name]: leaf(v.shape) for name, v in call.items()}
            inputs |= {_seed(name, k): again[self.swept.cotangents[name]] for name in call}
            total = [a + b for a, b in zip(total, substituted(single, again), strict=True)]
        return Columns(Graph.of(inputs, {f"{name}.grad": n for name, n in zip(names, total, strict=True)}))

    def origin(self, point: Named, values: Named) -> str:
        """Return where the first number that is not finite arose in the first call."""
        at = {name: point[name] for name in self.graph.inputs}
        gradients = {name: values[f"{name}.grad"] for name in (*self.wrt, *self.wanted.retain)}
        return not_finite(self.swept, sweep_inputs(at, self._calls(0, point)), gradients)[0]

    # At points

    @property
    def inputs(self) -> Mapping[str, Node]:
        """The leaves, and the cotangents."""
        return self.swept.graph.inputs

    def _calls(self, k: int, point: Named) -> Sequence[Named]:
        """Return the cotangents of the calls of a point, the k-th."""
        if not self.calls:
            return [{name: point[f"{name}.v"] for name in self.graph.outputs}]
        return self.calls[k if len(self.calls) > 1 else 0]

    def runs(self, k: int, point: Named) -> Sequence[Named]:
        """Return the cotangents of each call."""
        runs = [seeded("v", call) for call in self._calls(k, point)]
        return [{n: v[..., None] for n, v in run.items()} for run in runs] if self.wanted.block and self.calls else runs

    @cached_property
    def _has_formulas(self) -> bool:
        """Whether formulas of J's entries are shown at points too: in a page's J, and in gradients in v."""
        if self.wanted.letters:
            return True
        rows, columns = dimensions(self.graph, self.wrt)
        is_small = rows * columns <= SHOWN_ENTRIES and formula_count(self.graph) <= SHOWN_FORMULAS
        return self.wanted.page and not self.measured.hooks and (self.wanted.jacobian or is_small)

    @cached_property
    def _entries(self) -> dict[tuple[int, int], Node]:
        """The entries of J that are not zero everywhere, for its formulas and its numbers."""
        from gradcli.graph.jacobian import entries  # data start sooner without it

        return entries(self.graph, self.wrt)

    @cached_property
    def _is_traced(self) -> bool:
        """Whether all passes are computed: for the section `steps`, or the page of a system that is not large."""
        return self.wanted.steps or (self.wanted.page and len(self.graph.nodes) <= TRACED)

    def nodes(self) -> Iterator[Node]:
        """Yield the gradients, and what a page shows: intermediates, steps, J."""
        yield from (g for name, g in self.swept.gradients.items() if name not in self.measured.gradients)
        if self.wanted.page:
            from gradcli.pages.system import shown_nodes

            yield from shown_nodes(self.graph)
        if self._is_traced:
            from gradcli.pages.trace import traced

            yield from traced(self.graph, self.swept, self.measured)
        if self._has_formulas and not self.measured.values:
            yield from self._entries.values()

    def answer(self, at: Named, outputs: Named, runs: Sequence[Named], values: Sequence[Values]) -> Point:
        """Return the gradients at a point, call by call."""
        known, whole = self.measured.gradients, dict[str, Any]()
        calls: list[Call] = []
        for run, computed in zip(runs, values, strict=True):
            vjp = {n: known[n] if n in known else computed[g] for n, g in self.swept.gradients.items()}
            whole = {name: whole[name] + g for name, g in vjp.items()} if calls else vjp
            v = {name: run[f"{name}.v"] for name in self.graph.outputs}
            calls.append(Call(v, {n: vjp[n] for n in self.wrt}, {n: whole[n] for n in self.wrt}))
        first, trace, matrix = values[0], None, None
        if self._is_traced:
            from gradcli.pages.trace import trace_of  # for pages: data start sooner without it

            trace = trace_of(self.graph, self.swept, values[:MAX_STEPPED_CALLS], self.measured)
        if self._has_formulas:  # as its formulas give it at the point: no entry is measured
            if self.measured.values:
                (first,) = evaluated(self.graph.inputs, [at], self._entries.values())
            matrix = np.zeros(dimensions(self.graph, self.wrt))
            for index, entry in self._entries.items():
                matrix[index] = first[entry]
        named = {name: values[0][n] for name, n in self.graph.names.items() if n in values[0]}
        retained = {name: whole[name] for name in self.wanted.retain}
        more = {"adjoints": self._adjoints([call.v for call in calls]), "in_v": self._in_v}
        return Point(at, outputs, _values(calls, retained), named, matrix, tuple(calls), trace, more)

    def warnings(self, p: Point) -> Iterator[tuple[str, str]]:
        """Yield warnings of gradients that are not finite, and a fix."""
        grads = {**p.grad, **p.retained}
        if all(np.isfinite(g).all() for g in grads.values()):
            return
        inputs = sweep_inputs(p.at, [call.v for call in p.calls])
        yield from (("warning", text) for text in not_finite(self.swept, inputs, grads))
        if text := fixes(self.graph, self.wrt, inputs):
            yield "fix", text

    def remarks(self, p: Point, notes: Notes) -> Iterator[str | Text]:
        """Yield a page's explanations, for JSON: why gradients are nan or None, and which rules surprise."""
        if self.wanted.page or not self.wanted.notes:
            return
        calls = [call.v for call in p.calls]
        if not self.swept.adjoints.keys() >= {*self.graph.leaves(self.wrt).values()}:
            from gradcli.pages.backward.reasons import leaves_without

            yield from leaves_without(self.graph, self.wrt)
        if any(node.shape for node in self.graph.nodes):
            yield from self._reasons(p.at, calls)
        if len(calls) == 1 and any(np.isnan(g).any() for g in (*p.grad.values(), *p.retained.values())):
            from gradcli.pages.backward.disagreement import indeterminate
            from gradcli.pages.trace import numeric_trace

            if (why := indeterminate(numeric_trace(self.graph, self.swept, p.at, calls))) is not None:
                yield why

    def _reasons(self, at: Named, calls: Sequence[Named]) -> Iterator[str | Text]:
        """Yield a sentence for each rule of arrays that surprises: softmax, a maximum, a bias."""
        from gradcli.pages.backward.loss import loss_name
        from gradcli.pages.backward.reasons import has_softmax, reasons

        trace = None
        if len(self.graph.nodes) <= TRACED and has_softmax(self.graph):
            from gradcli.pages.trace import numeric_trace

            trace = numeric_trace(self.graph, self.swept, at, calls)
        yield from reasons(self.graph, self.swept, self.wrt, loss_name(self.graph, calls[0]), trace)

    def _adjoints(self, calls: Sequence[Named]) -> Named:
        """Return the gradients of retained intermediates as formulas, where a page shows them."""
        small = [n for n in self.wanted.retain if self.graph.names[n].size <= SHOWN_RETAINED]
        if not self.wanted.page or not small or formula_count(self.graph) > SHOWN_FORMULAS:
            return {}
        from gradcli.pages.backward.steps import retained_formulas

        with suppress(InputError):  # too deep to be written
            return retained_formulas(self.swept, calls, small)
        return {}

    # In formulas

    def formulas(self, numeric: bool, notes: Notes) -> SymbolicJacobian | None:
        """Return the formulas of J, unless the page shows formulas of arrays alone.

        Errors: `InputError` for too many entries.
        """
        if not numeric and self._in_arrays is not None:
            return None
        if self.wanted.steps and (count := len(self.calls[0]) if self.calls else 1) > MAX_STEPPED_CALLS:
            notes.add("note", f"steps are shown for the first {MAX_STEPPED_CALLS} of {count} calls")
        return None if numeric and not self._has_formulas else self._symbolic

    @cached_property
    def _symbolic(self) -> SymbolicJacobian:
        check_entries(self.graph, self.wrt, "choose some with --outputs and --wrt, or compute numbers with --at")
        return symbolic(self.graph, self.wrt, self.wanted.steps, lambda: self._entries)

    def in_formulas(self, formulas: SymbolicJacobian | None) -> Point:
        """Return the gradients as formulas, from the entries of the symbolic Jacobian, or from formulas of arrays."""
        if formulas is None:
            assert self._in_arrays is not None
            return self._in_arrays
        from gradcli.pages.backward.steps import retained_formulas
        from gradcli.pages.trace import symbolic_trace

        given = self.calls[0]
        retained = retained_formulas(self.swept, given, self.wanted.retain)
        trace = symbolic_trace(self.graph, self.swept, given[:MAX_STEPPED_CALLS]) if self.wanted.steps else None
        calls = self._products(formulas, given)
        return Point({}, {}, _values(calls, retained), calls=tuple(calls), trace=trace, more={"in_v": self._in_v})

    def _products(self, formulas: SymbolicJacobian, calls: Sequence[Named]) -> list[Call]:
        """Return Σ_i v_i·J[i, j] of each call, and what has accumulated."""
        leaves = self.graph.leaves(self.wrt)
        terms: dict[int, list[Any]] = {}
        result: list[Call] = []
        for call in calls:
            weights = [weight(e) for name in self.graph.outputs for e in call[name].reshape(-1).tolist()]
            new: dict[int, list[Any]] = {}
            for (i, j), entry in formulas.entries.items():
                new.setdefault(j, []).append(weights[i] * entry)
            for j, more in new.items():
                terms.setdefault(j, []).extend(more)
            result.append(Call(call, summed(new, leaves), summed(terms, leaves)))
        return result

    @cached_property
    def _in_arrays(self) -> Point | None:
        """The gradients of a page that shows formulas of arrays alone; None where formulas of elements are shown, too.

        It has the values of constant gradients only.
        """
        wanted, calls = self.wanted, self.calls[0]
        elements = wanted.steps or wanted.jacobian or wanted.letters or wanted.retain or len(calls) > 1
        large = len(self.graph.nodes) > TRACED or formula_count(self.graph) <= MANY_FORMULAS
        if not wanted.page or elements or large:
            return None
        from gradcli.pages.forms.gradients import forms  # data, and pages of few elements, start sooner without it

        written = forms(Result(self.graph, tuple(self.wrt), style_of(self.graph, calls), self, ()), calls[0])
        if not written.covers(self.wrt) or any(n.size > MAX_ENTRIES for n in written.constants.values()):
            return None
        constant = {name: at_point(self.graph, {}, [n])[n] for name, n in written.constants.items()}
        call = Call(calls[0], constant, constant)
        return Point({}, {}, _values([call], {}), calls=(call,))

    # In data

    @cached_property
    def _in_v(self) -> Named:
        """The gradients as formulas in the letters of the cotangents, where these are wanted."""
        return self._products(self._symbolic, [letters(self.graph.outputs)])[0].grad if self.wanted.letters else {}

    def last(self, result: Result, p: Point) -> Mapping[str, Any]:
        """Return the steps, the formulas in v, and the definitions of names in formulas."""
        last: dict[str, Any] = {}
        if self.wanted.steps and p.trace is not None:
            from gradcli.pages.backward.steps import steps_objects  # data start sooner without it

            last["steps"] = steps_objects(p.trace)
        return {**last, **({"formulas": self._in_v} if self._in_v else {}), **super().last(result, p)}

    def cells(self, result: Result, p: Point) -> Row:
        """Return `x0.grad`, …, those of retained intermediates, and the definitions of names in formulas."""
        grads: Row = [(f"{name}.grad", grad) for name, grad in (*p.grad.items(), *p.retained.items())]
        return [*grads, *(() if result.numeric else defined(result.where))]


def _values(calls: Iterable[Call], retained: Named) -> dict[str, Any]:
    """Return the values of a point, as JSON names them."""
    calls = list(calls)
    values = {"calls": [{"v": call.v, "grad": call.grad} for call in calls], "grad": calls[-1].grad}
    return values | ({"retained": retained} if retained else {})


def _seed(name: str, call: int) -> str:
    return f"{name}.v{call or ''}"
