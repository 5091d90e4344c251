"""Why a number is not that of the formula beside it: a corner of the rule, or nan that the formula cancels."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gradcli.graph.names import element_names
from gradcli.graph.vjp import Pass, textbook_slope
from gradcli.pages.question import Point, Result
from gradcli.pages.results import Array
from gradcli.pages.sections import Computed, Equal, Grad, Line, Math, Product, Sum, Text, Value, quantity
from gradcli.pages.trace import Reverse, Trace

_EXACT = 1000  # numbers and exponents: a power, or gamma, of larger ones has too many digits


def disagreements(result: Result, point: Point, lines: list[Line]) -> Iterator[Text]:
    """Yield why only one of the two is finite: the gradient of a scalar, or its formula as written.

    At such a point a value is 0, or not finite.  A line loses a formula that is finite where the gradient is not.
    """
    values = {**point.named, **point.outputs, **point.at}
    if len(point.calls) > 1 or all(np.isfinite(a).all() and np.all(a) for a in values.values()):
        return
    scalars = ((name, list(_formulas(line.sides))) for name, line in zip(result.wrt, lines, strict=False))
    formulas = {
        name: fs for name, fs in scalars if fs and not point.grad[name].shape and point.grad[name].dtype != object
    }
    if not formulas:
        return
    numbers = {
        e: float(n) for name, a in values.items() for e, n in zip(element_names(name, a.shape), a.flat, strict=True)
    }
    for name, listed in formulas.items():
        grad = point.grad[name]
        written = {formula: _as_written(formula, numbers) for formula in listed}
        known = [value for value in written.values() if value is not None]
        undefined = next((f for f, value in written.items() if value is not None and not math.isfinite(value)), None)
        if undefined is not None and np.isfinite(grad):
            taken = Value(grad)
            yield Text((Value.of(undefined), " as written is nan here: the rule takes ", taken, ", as PyTorch does."))
        elif undefined is None and known and not np.isfinite(grad):
            cancels = (" Simplified, the derivative is ", Value.of(listed[0]), ", which cancels it.")
            i = list(result.wrt).index(name)
            lines[i] = replace(lines[i], sides=tuple(s for s in lines[i].sides if not [*_formulas((s, s))]))
            yield Text((Grad(name), " is ", Value(grad), *_origin(point), *cancels))


def _formulas(sides: Sequence[Math]) -> Iterator[Any]:
    """Yield the local derivatives of a line that shows a sum both in formulas and in numbers."""
    sums = [side for side in sides if isinstance(side, Sum)]
    for term in sums[0].terms if len(sums) > 1 else ():
        for factor in term.factors[1:] if isinstance(term, Product) else ():
            if isinstance(factor, Value) and not factor.array.shape:
                yield factor.array.item()


def _as_written(formula: Any, numbers: Mapping[str, float]) -> float | None:
    """Return the value of a formula: nan where it is undefined, None where it mentions nan or an unknown name."""
    import sympy

    if isinstance(formula, float):  # 0, where all terms of the formula cancel
        return formula
    if any(math.isnan(numbers.get(s.name, math.nan)) for s in formula.free_symbols):  # SymPy's nan > 0 is nan
        return None
    exact = all(abs(e) <= _EXACT for power in formula.atoms(sympy.Pow) for e in power.exp.atoms(sympy.Integer))
    exact = exact and all(abs(numbers[s.name]) <= _EXACT for s in formula.free_symbols)
    number = sympy.nsimplify if exact else sympy.Float
    value = formula.subs({s: number(numbers[s.name]) for s in formula.free_symbols})
    if value.has(sympy.nan, sympy.zoo):
        return math.nan
    return float(value) if value.is_number and value.is_extended_real else None


def _origin(point: Point) -> tuple[Math, ...]:
    """Return the first operation whose value is not finite."""
    trace = point.trace
    for node, value in trace.values.items() if trace is not None else ():
        if trace is not None and node.args and not np.isfinite(value).all():
            names = {n: label for n, label in trace.graph.labels.items() if n is not node}
            return ", because ", Computed(node, names, implicit=True), " is ", Value(value), "."
    return (".",)


def indeterminate(trace: Trace) -> Text | None:
    """Return a sentence on the first product 0·inf or sum inf - inf of the only reverse pass; None without one."""
    (result,) = trace.calls
    before = dict(result.seeds)
    for p in trace.swept.passes:
        text = _zero_times_infinity(trace, result, p) or _difference_of_infinities(
            trace, before.get(p.argument), result.contributions[p], p
        )
        if text is not None:
            return text
        before[p.argument] = result.totals[p]
    return None


def _zero_times_infinity(trace: Trace, call: Reverse, p: Pass) -> Text | None:
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
    return Text((*parts, ". The formula need not be nan: `backward` multiplies 0 by infinity on the way."))


def _difference_of_infinities(trace: Trace, before: Array | None, contribution: Array, p: Pass) -> Text | None:
    """Return a sentence on contributions inf and -inf that are added up."""
    pair = None if before is None else _first_nan(before, contribution, before + contribution)
    if pair is None:
        return None
    argument = quantity(p.argument, trace.graph.labels)
    parts: tuple[Math, ...] = ("nan here is inf - inf: the adjoint of ", argument)
    return Text((*parts, " adds up both. The formula need not be nan: `backward` adds inf and -inf on the way."))


def _first_nan(a: Array, b: Array, result: Array) -> tuple[float, float] | None:
    """Return the first pair of elements whose result is nan while neither element is."""
    a, b = np.broadcast_arrays(a, b)
    indices = np.argwhere(np.isnan(result) & ~np.isnan(a) & ~np.isnan(b))
    return (float(a[tuple(indices[0])]), float(b[tuple(indices[0])])) if len(indices) else None
