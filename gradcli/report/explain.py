"""The data that `jacobian` and `backward` show, computed from a graph, points and cotangents."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from gradcli.engine.evaluate import evaluate, values_of
from gradcli.engine.jacobian import NumericJacobian
from gradcli.errors import InputError, Notes
from gradcli.graph.graph import Graph
from gradcli.graph.names import element_names
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.shapes import size_of
from gradcli.graph.vjp import Sweep, sweep
from gradcli.report import steps
from gradcli.report.numbers import number_text
from gradcli.report.results import (
    Array,
    BackwardPoint,
    BackwardResult,
    Call,
    JacobianPoint,
    JacobianResult,
    Named,
)

MAX_ENTRIES = 10**6  # of a Jacobian that is asked for
MAX_FORMULAS = 50_000  # elements that are worked out as formulas
SHOWN_FORMULAS = 5_000  # the same, beside a gradient
SHOWN_ENTRIES = 400  # of a Jacobian that is shown beside a gradient
MAX_STEPPED_CALLS = 16


@np.errstate(all="ignore")  # inf and nan are results, and told as warnings of ours
def jacobian(
    graph: Graph, wrt: Sequence[str], points: Sequence[Named], notes: Notes, warn: bool = True
) -> JacobianResult:
    """Return the Jacobian of the outputs with respect to the leaves `wrt`, symbolic and at each point.

    Errors: `InputError` when it would have more than a million entries.
    """
    check_entries(graph, wrt)
    symbolic = _symbolic(graph, wrt)
    found = []
    matrices = map(NumericJacobian(graph, wrt), points) if points else ()
    for at, matrix in zip(points, matrices, strict=True):
        matrix = _structural_zeros(matrix, symbolic)
        values = _evaluate(graph, at)
        if warn and not np.isfinite(matrix).all():
            notes.add("warning", not_finite_entry(graph, wrt, at, matrix))
        found.append(JacobianPoint(at, values, matrix))
    return JacobianResult(graph, tuple(wrt), symbolic, *_style(graph), points=tuple(found))


def check_entries(graph: Graph, wrt: Sequence[str], hint: str = "") -> None:
    """Refuse a Jacobian that nobody could read; `hint` is another way out."""
    rows, columns = _dimensions(graph, wrt)
    if rows * columns > MAX_ENTRIES:
        raise InputError(
            f"the Jacobian would have {rows:,} × {columns:,} entries",
            hint=hint or "choose some with --outputs and --wrt; `gradcli backward` gives vᵀJ without it",
        )


@dataclass(frozen=True)
class Wanted:
    """What `backward` is to show beside the gradients."""

    retain: tuple[str, ...] = ()
    steps: bool = False
    formulas: bool = False  # the Jacobian, with its formulas
    warn: bool = True  # of gradients that are not finite


@np.errstate(all="ignore")
def backward(
    graph: Graph,
    wrt: Sequence[str],
    points: Sequence[Named],
    calls: Sequence[Sequence[Named]],
    wanted: Wanted,
    notes: Notes,
) -> BackwardResult:
    """Return vᵀJ at each point: `calls[p]` are the cotangents of the `backward` calls at point p, which accumulate.

    Without a point, `calls[0]` are the cotangents, and the gradients are formulas.
    """
    swept = sweep(graph, wrt, wanted.retain)
    symbolic = None
    rows, columns = _dimensions(graph, wrt)
    if not points or (wanted.formulas and rows * columns <= SHOWN_ENTRIES and _formulas_of(graph) <= SHOWN_FORMULAS):
        symbolic = _symbolic(graph, wrt)
    common = (graph, tuple(wrt), symbolic, *_style(graph, calls[0]))
    if points:
        numeric = None if symbolic is None else NumericJacobian(graph, wrt)
        found = _Numbers(graph, wrt, swept, wanted, symbolic, numeric, notes).points(points, calls)
    else:
        found = [_in_formulas(graph, wrt, swept, calls[0], wanted, symbolic)]
    shown = {*graph.inputs.values(), *graph.outputs.values(), *(graph.names[name] for name in wanted.retain)}
    forgotten = [name for name, n in graph.names.items() if n not in shown and "[" not in name]
    return BackwardResult(
        *common,
        points=tuple(found),
        numeric=bool(points),
        steps=wanted.steps,
        retained=wanted.retain,
        forgotten=tuple(forgotten),
    )


def _symbolic(graph: Graph, wrt: Sequence[str]) -> Any:
    """Return the symbolic Jacobian, unless it would take minutes."""
    from gradcli.algebra.jacobian import symbolic_jacobian

    if (count := _formulas_of(graph)) > MAX_FORMULAS:
        raise InputError(
            f"the formulas of {count:,} elements are too many to work out",
            hint="formulas need smaller shapes; `gradcli backward` with --at works in numbers",
        )
    return symbolic_jacobian(graph, wrt)


def _formulas_of(graph: Graph) -> int:
    """Return how many elements of arrays are computed; a contraction counts what goes into it."""
    total = 0
    for n in graph.nodes:
        if n.op == "matmul":
            total += n.size * n.args[0].shape[-1]
        elif n.args:
            total += max(n.size, *(a.size for a in n.args)) if not OPERATIONS[n.op].broadcasts else n.size
    return total


def _dimensions(graph: Graph, wrt: Sequence[str]) -> tuple[int, int]:
    return sum(y.size for y in graph.outputs.values()), sum(graph.inputs[name].size for name in wrt)


def _style(graph: Graph, calls: Sequence[Named] = ()) -> tuple[bool, frozenset[str]]:
    """Return whether formulas are written with decimals, and which names mean variables."""
    decimals = any(isinstance(v, Decimal) for n in graph.nodes for v in n.values)
    weights = (float(e) for call in calls[:100] for v in call.values() for e in v.reshape(-1)[:1000])
    return decimals or any(w != round(w, 0) for w in weights if np.isfinite(w)), frozenset(graph.labels.values())


def _evaluate(graph: Graph, at: Mapping[str, Array]) -> Named:
    """Return the values of the outputs at one point, in their own shapes."""
    found = evaluate(graph, {n: v[..., None] for n, v in at.items()})
    return {name: v[..., 0].astype(float) for name, v in found.items()}


def _structural_zeros(matrix: Array, symbolic: Any) -> Array:
    """Return J with 0 where there is no dependence: 0·inf in the sweep of a neighbour is no derivative."""
    mask = np.zeros(matrix.shape, dtype=bool)
    for place in symbolic.entries:
        mask[place] = True
    return np.where(mask | np.isfinite(matrix), matrix, 0.0)


@dataclass(frozen=True)
class _Numbers:
    """The gradients in numbers: all points and calls in one batch, of which each point is a part."""

    graph: Graph
    wrt: Sequence[str]
    swept: Sweep
    wanted: Wanted
    symbolic: Any
    numeric: NumericJacobian | None
    notes: Notes

    def points(self, points: Sequence[Named], calls: Sequence[Sequence[Named]]) -> list[BackwardPoint]:
        """Return the results at all points; every point has the same number of calls."""
        keep = [*self.swept.gradients.values(), *self.graph.outputs.values()]
        keep += self.graph.names.values() if self.wanted.formulas or self.wanted.steps else []
        count = len(calls[0])
        # One point is a column that broadcasts; several are repeated, once for each call.
        repeat = count if len(points) > 1 else 1
        inputs = {n: np.repeat(np.stack([p[n] for p in points], axis=-1), repeat, axis=-1) for n in points[0]}
        inputs |= _cotangents(self.graph, [call for mine in calls for call in mine])
        batch = (len(points), count)
        found = {
            n: np.broadcast_to(a, (*n.shape, batch[0] * batch[1])).reshape(*n.shape, *batch)
            for n, a in values_of(self.swept.graph, inputs, keep).items()
        }
        return [
            self.point(at, mine, {n: a[..., k, :] for n, a in found.items()})
            for k, (at, mine) in enumerate(zip(points, calls, strict=True))
        ]

    def point(self, at: Named, calls: Sequence[Named], found: Mapping[Node, Array]) -> BackwardPoint:
        """Return the result at one point; `found` holds the values, the calls along the last axis."""
        own = {name: found[g] for name, g in self.swept.gradients.items()}
        running = {name: np.cumsum(grads, axis=-1, dtype=float) for name, grads in own.items()}
        called = [
            Call(v, {name: own[name][..., k] for name in self.wrt}, {name: running[name][..., k] for name in self.wrt})
            for k, v in enumerate(calls)
        ]
        inputs = {n: v[..., None] for n, v in at.items()} | _cotangents(self.graph, calls)
        if self.wanted.warn and not all(np.isfinite(g[..., -1]).all() for g in running.values()):
            for text in not_finite(self.swept, inputs, {name: g[..., -1] for name, g in running.items()}):
                self.notes.add("warning", text)
        matrix = None if self.numeric is None else _structural_zeros(self.numeric(at), self.symbolic)
        values = {name: found[n][..., 0].astype(float) for name, n in self.graph.names.items() if n in found}
        return BackwardPoint(
            at,
            {name: values[name] for name in self.graph.outputs},
            values,
            tuple(called),
            {name: running[name][..., -1] for name in self.wanted.retain},
            matrix,
            *self.steps(inputs, len(calls)),
        )

    def steps(self, inputs: Named, calls: int) -> steps.Steps:
        """Return the steps at one point, if they are wanted."""
        if not self.wanted.steps:
            return (), ()
        if calls > MAX_STEPPED_CALLS:
            self.notes.add("note", f"steps are shown for the first {MAX_STEPPED_CALLS} of {calls} calls")
        return steps.numeric(self.graph, self.swept, inputs, min(calls, MAX_STEPPED_CALLS))


def _cotangents(graph: Graph, calls: Sequence[Named]) -> Named:
    """Return the inputs of a sweep for these calls, along the batch axis."""
    return {f"{name}.v": np.stack([c[name] for c in calls], axis=-1) for name in graph.outputs}


def _in_formulas(
    graph: Graph, wrt: Sequence[str], swept: Sweep, calls: Sequence[Named], wanted: Wanted, symbolic: Any
) -> BackwardPoint:
    """Return the gradients as formulas: Σ_i v_i·J[i, j], from the entries of the symbolic Jacobian."""
    from gradcli.algebra.functions import exact_number

    terms: dict[int, list[Any]] = {}
    found: list[Call] = []
    for call in calls:
        weights = [exact_number(e) for name in graph.outputs for e in call[name].reshape(-1)]
        new: dict[int, list[Any]] = {}
        for (i, j), entry in symbolic.entries.items():
            new.setdefault(j, []).append(weights[i] * entry)
        for j, more in new.items():
            terms.setdefault(j, []).extend(more)
        found.append(Call(call, _formulas(graph, wrt, symbolic, new), _formulas(graph, wrt, symbolic, terms)))
    retained = steps.retained_formulas(swept, calls, wanted.retain)
    tables = steps.symbolic(graph, swept, calls[:MAX_STEPPED_CALLS]) if wanted.steps else ((), ())
    return BackwardPoint({}, {}, {}, tuple(found), retained, None, *tables)


def _formulas(graph: Graph, wrt: Sequence[str], symbolic: Any, terms: Mapping[int, list[Any]]) -> Named:
    """Return for each leaf the array of the sums of its elements' terms, given by column."""
    import sympy

    from gradcli.algebra.display import tidy

    shapes = {name: n.shape for name, n in graph.inputs.items()}
    elements = [tidy(sympy.Add(*terms.get(j, []))) for j in range(len(symbolic.columns))]
    grads: Named = {}
    start = 0
    for name in wrt:
        stop = start + size_of(shapes[name])
        grads[name] = _object_array(elements[start:stop], shapes[name])
        start = stop
    return grads


def _object_array(elements: Sequence[Any], shape: tuple[int, ...]) -> Array:
    result = np.empty(len(elements), dtype=object)
    result[:] = elements
    return result.reshape(shape)


def not_finite(swept: Sweep, inputs: Named, grads: Named) -> list[str]:
    """Return what to tell of gradients that are not finite, with the operation where the first such number arose."""
    where = steps.origin(swept, inputs)
    found = []
    for name, grad in grads.items():
        bad = ~np.isfinite(grad)
        if bad.any():
            place = element_names(f"{name}.grad", grad.shape)[int(np.argmax(bad.reshape(-1)))]
            value = number_text(grad.reshape(-1)[int(np.argmax(bad.reshape(-1)))])
            found.append(f"{place} is {value}: {where}")
    return found


def not_finite_entry(graph: Graph, wrt: Sequence[str], at: Named, matrix: Array) -> str:
    """Return what to tell of the first entry of J that is not finite, with the operation where it arose."""
    i, j = (int(k[0]) for k in np.nonzero(~np.isfinite(matrix)))
    places = ((name, y, k) for name, y in graph.outputs.items() for k in range(y.size))
    name, y, k = next(itertools.islice(places, i, None))
    column = next(itertools.islice((e for n in wrt for e in element_names(n, graph.inputs[n].shape)), j, None))
    v = np.zeros(y.size)
    v[k] = 1
    alone = sweep(Graph.of(graph.inputs, {name: y}, names=graph.names, spans=graph.spans), wrt)
    inputs = {n: a[..., None] for n, a in at.items()} | {f"{name}.v": v.reshape(*y.shape, 1)}
    row = element_names(name, y.shape)[k]
    return f"d{row}/d{column} is {number_text(matrix[i, j])}: {steps.origin(alone, inputs)}"
