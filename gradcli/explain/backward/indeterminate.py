"""Why a gradient is nan where its formula is not: 0·inf or inf - inf in the reverse pass, which a formula cancels."""

from __future__ import annotations

import numpy as np

from gradcli.explain.results import Array
from gradcli.explain.sections import Computed, Equal, Math, Product, Text, Value, quantity
from gradcli.explain.trace import Reverse, Trace
from gradcli.graph.vjp import Pass, textbook_slope


def indeterminate(trace: Trace) -> Text | None:
    """Return a sentence on the first product 0·inf or sum inf - inf of the only reverse pass; None without one."""
    (result,) = trace.calls
    before = dict(result.seeds)
    for p in trace.passes:
        text = _product(trace, result, p) or _sum(trace, before.get(p.argument), result.contributions[p], p)
        if text is not None:
            return text
        before[p.argument] = result.totals[p]
    return None


def _product(trace: Trace, call: Reverse, p: Pass) -> Text | None:
    """Return a sentence on a product of an adjoint and a local derivative, of which one is 0 and one infinite."""
    slope = call.slopes.get(p)
    if slope is None:
        return None
    pair = _first_nan(call.adjoints[p.node], slope, call.adjoints[p.node] * slope)
    if pair is None:
        return None
    labels = trace.graph.labels
    derivative = Equal((Computed(textbook_slope(p.node, p.position), labels, implicit=True), Value.of(pair[1])))
    product = Product((Value.of(pair[0]), Value.of(pair[1])))
    name = {n: label for n, label in labels.items() if n is not p.node}
    parts: tuple[Math, ...] = ("nan here is ", product, ": ", Computed(p.node, name, implicit=True))
    parts += (" has the adjoint ", Value.of(pair[0]), " and the derivative ", derivative)
    return Text((*parts, ". A formula in which the two cancel does not show it."))


def _sum(trace: Trace, before: Array | None, contribution: Array, p: Pass) -> Text | None:
    """Return a sentence on contributions inf and -inf that are added up."""
    pair = None if before is None else _first_nan(before, contribution, before + contribution)
    if pair is None:
        return None
    argument = quantity(p.argument, trace.graph.labels)
    parts: tuple[Math, ...] = ("nan here is inf - inf: the adjoint of ", argument)
    return Text((*parts, " adds up both. A formula in which they cancel does not show it."))


def _first_nan(a: Array, b: Array, result: Array) -> tuple[float, float] | None:
    """Return the first pair of elements whose result is nan while neither element is."""
    a, b = np.broadcast_arrays(a, b)
    indices = np.argwhere(np.isnan(result) & ~np.isnan(a) & ~np.isnan(b))
    return (float(a[tuple(indices[0])]), float(b[tuple(indices[0])])) if len(indices) else None
