"""The formulas of a record, held to PyTorch's own numbers: where the two differ, the page has the numbers alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gradcli.engine.evaluate import at_point
from gradcli.graph.graph import Graph
from gradcli.graph.node import leaf
from gradcli.graph.vjp import sweep
from gradcli.record.numbers import Numbers
from gradcli.record.record import Backward, Operation, Record

_MOST = 100_000  # numbers of an operation that is looked at
_ROUNDING = 50  # units of the last digit, for each root of how many terms are added up
_EPS = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}


def verified(record: Record, backward: Backward) -> tuple[Record, list[Operation]]:
    """Return a record without the formulas that do not give its numbers, and the operations whose these are.

    Those without a formula are PyTorch's, no function of the program.
    """
    wrong = [o for o in record.operations if not o.is_opaque and not verify(record, backward, o)]
    if not wrong:
        return record, []
    ids = {o.id for o in wrong}
    return replace(
        record,
        operations=tuple(
            replace(o, settings=("torch",), definitions=()) if o.id in ids else o for o in record.operations
        ),
    ), wrong


@np.errstate(all="ignore")
def completed(record: Record) -> Record:
    """Return a record with the numbers that it does not have, where formulas give them: of what ran unrecorded."""
    quantities = [*record.quantities]
    for o in record.operations:
        unknown = [k for k, q in enumerate(o.results) if not quantities[q].numbers.is_known]
        operands = [quantities[x].numbers if isinstance(x, int) else x for x in o.operands]
        if not unknown or o.is_opaque or any(n.whole is None for n in operands):
            continue
        graph, at = _system(o, operands)
        values = at_point(graph, at, graph.outputs.values())
        for k in unknown:
            q, value = quantities[o.results[k]], np.asarray(values[graph.outputs[f"y{k}"]])
            kind = "float32" if q.dtype == "bfloat16" else q.dtype
            if value.shape == q.shape:
                quantities[q.id] = replace(q, numbers=Numbers(value.astype(kind), q.shape, q.dtype))
    return replace(record, quantities=tuple(quantities))


def _system(operation: Operation, operands: Sequence[Numbers]) -> tuple[Graph, dict[str, Any]]:
    """Return an operation as a graph of its operands x0, x1, … and its results y0, y1, …, and the operands' numbers."""
    inputs = {f"x{i}": leaf(n.shape, n.array.dtype.name) for i, n in enumerate(operands)}
    leaves = [*inputs.values()]
    outputs = {f"y{k}": d.node(leaves[: d.operands]) for k, d in enumerate(operation.definitions)}
    return Graph.of(inputs, outputs), {f"x{i}": n.array for i, n in enumerate(operands)}


@np.errstate(all="ignore")
def verify(record: Record, backward: Backward, operation: Operation) -> bool:
    """Return whether the formula of an operation gives its results, and what it sends back, up to rounding.

    What is large, or not known in numbers, is not looked at.
    """
    operands = [record.quantities[x].numbers if isinstance(x, int) else x for x in operation.operands]
    results = [record.quantities[q].numbers for q in operation.results]
    received = [backward.received.get((operation.id, k)) for k in range(len(results))]
    sent = {i: g for i in range(len(operands)) if (g := backward.sent.get((operation.id, i))) is not None}
    known: list[Numbers] = [*operands, *results, *sent.values(), *(g for g in received if g is not None)]
    if any(n.whole is None or n.whole.dtype.kind == "c" for n in known) or sum(_size(n) for n in known) > _MOST:
        return True
    graph, at = _system(operation, operands)
    outputs, swept = graph.outputs, sweep(graph, [f"x{i}" for i in sent])
    for k, g in enumerate(received):
        at[f"y{k}.v"] = np.zeros(results[k].shape) if g is None else g.whole
    pairs = [(outputs[f"y{k}"], n) for k, n in enumerate(results) if f"y{k}" in outputs]
    pairs += [(swept.gradients[f"x{i}"], g) for i, g in sent.items()]
    values = at_point(swept.graph, at, [node for node, _ in pairs])
    eps = max((_EPS.get(n.dtype, 0.0) for n in known), default=0.0)
    scale = eps * _ROUNDING * math.sqrt(max(map(_size, known)))
    return all(_agree(values[node], n, scale * _largest([*known])) for node, n in pairs)


def _size(n: Numbers) -> int:
    return math.prod(n.shape)


def _largest(numbers: Sequence[Numbers]) -> float:
    """Return the largest finite number."""
    arrays = [n.whole.astype(float) for n in numbers if n.whole is not None and n.whole.dtype.kind == "f"]
    return max((float(np.abs(a[np.isfinite(a)]).max(initial=0)) for a in arrays), default=0.0)


def _agree(value: Any, n: Numbers, tolerance: float) -> bool:
    if n.whole is None or np.shape(value) != n.shape:
        return False
    a, b = np.asarray(value, float), n.whole.astype(float)
    near = np.abs(a - b) <= tolerance
    same = (a == b) | (np.isnan(a) & np.isnan(b)) | ~np.isfinite(b)
    return bool(np.all(near | same))
