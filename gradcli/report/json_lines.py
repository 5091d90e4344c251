"""Results as JSON Lines: an object a point, with the full precision of float64."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gradcli.explain.results import Array, BackwardResult, JacobianResult, Named, Shown

if TYPE_CHECKING:
    from gradcli.explain.trace import Trace


def _plain(result: Shown, array: Array) -> Any:
    """Return an array as a number, a formula, or nested lists of them; JSON has no NaN, so that is a string."""

    def plain(nested: Any) -> Any:
        if isinstance(nested, list):
            return [plain(e) for e in nested]
        if array.dtype == object:
            return result.formula(nested)
        if math.isfinite(nested):
            return nested
        return "NaN" if math.isnan(nested) else "Infinity" if nested > 0 else "-Infinity"

    return plain(array.tolist())


def _named(result: Shown, values: Named) -> dict[str, Any]:
    return {name: _plain(result, value) for name, value in values.items()}


def jacobian(result: JacobianResult) -> Iterator[str]:
    """Yield one JSON object a point; a single one without a point."""
    symbolic = result.symbolic
    assert symbolic is not None
    columns = range(len(symbolic.columns))
    formulas = {place: result.formula(entry) for place, entry in symbolic.entries.items()}
    common: dict[str, Any] = {
        "rows": symbolic.rows,
        "columns": symbolic.columns,
        "symbolic": [[formulas.get((i, j), "0") for j in columns] for i in range(len(symbolic.rows))],
    }
    if symbolic.where:
        common["where"] = {name: result.formula(e) for name, e in symbolic.where.items()}
    if not result.points:
        yield json.dumps(common)
    for p in result.points:
        value = {"at": _named(result, p.at), "value": _named(result, p.value), "jacobian": _plain(result, p.jacobian)}
        yield json.dumps(common | value)


def backward(result: BackwardResult) -> Iterator[str]:
    """Yield one JSON object a point; without a point, one whose gradients are formulas."""
    for point in result.points:
        found: dict[str, Any] = {}
        if result.numeric:
            found |= {"at": _named(result, point.at), "value": _named(result, point.value)}
        found["calls"] = [{"v": _named(result, c.v), "grad": _named(result, c.grad)} for c in point.calls]
        found["grad"] = _named(result, point.grad)
        if result.retained:
            found["retained"] = _named(result, point.retained)
        if result.steps and point.trace is not None:
            found["steps"] = _steps(result, point.trace)
        if not result.numeric and result.symbolic is not None and result.symbolic.where:
            found["where"] = {name: result.formula(e) for name, e in result.symbolic.where.items()}
        yield json.dumps(found)


def _steps(result: Shown, trace: Trace) -> dict[str, Any]:
    from gradcli.explain.steps import forward_steps, reverse_steps

    forward = []
    for s in forward_steps(trace):
        row: dict[str, Any] = {
            "node": s.name,
            "operation": s.operation,
            "arguments": s.arguments,
            "expression": s.expression,
            "shape": s.node.shape,
        }
        forward.append(row if s.value is None else row | {"value": _plain(result, s.value)})
    reverse = []
    for r in (r for call in range(len(trace.calls)) for r in reverse_steps(trace, call)):
        row = {"call": r.call, "node": r.node, "adjoint": _plain(result, r.adjoint), "passes_to": r.argument}
        row["rule"] = r.rule.text
        if r.slope is not None:
            row["local_derivative"] = _plain(result, r.slope)
        row |= {"contribution": _plain(result, r.contribution), "adjoint_so_far": _plain(result, r.total)}
        reverse.append(row)
    return {"forward": forward, "reverse": reverse}
