"""ONNX models whose sizes stay open: what the models of several sizes have in common.

Models of a few sizes are written, which may differ in integers and in numbers that follow from the sizes: the target of
a reshaping, the number of elements by which a mean is divided.  These are computed from the shapes of the inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, combinations
from typing import Any, NamedTuple

import numpy as np

from gradcli.codegen.onnx_writer import ModelWriter, element_type
from gradcli.errors import InputError
from gradcli.graph.array import Array

Sizes = Mapping[str, int]  # by the name of an open size
Build = Callable[[Sizes], Any]

MAX_BYTES = 2**28  # of a model of which several are written
_STEPS = (1, 2, 4)  # from the given sizes to those that are tried
_EXACT = 1e-5  # of a number of float32


class OpenSize(NamedTuple):
    """A size that a model leaves open: its name, and the input and the axis that have it."""

    name: str
    source: str
    axis: int


class _Formula(NamedTuple):
    """A number as `factor` times the product of sizes, or over it, plus `more`."""

    factor: float
    sizes: tuple[str, ...] = ()
    power: int = 1
    more: int = 0


def opened(build: Build, sizes: Sizes, places: Sequence[OpenSize]) -> Any | None:
    """Return the model that `build` returns for any sizes; None where those of several sizes differ in their nodes."""
    from onnx import numpy_helper

    given = _tried(sizes)
    try:
        models = [build(given[0])]
        if models[0].ByteSize() > MAX_BYTES:
            return None
        models += [build(some) for some in given[1:]]
    except InputError:  # these sizes do not fit
        return None
    if len({tuple(n.SerializeToString() for n in m.graph.node) for m in models}) > 1:
        return None
    held = [{t.name: numpy_helper.to_array(t) for t in m.graph.initializer} for m in models]
    if len({tuple(h) for h in held}) > 1:
        return None
    result = models[0]
    w = ModelWriter("float32")
    w.take(chain(held[0], (n for node in result.graph.node for n in node.output), (v.name for v in result.graph.input)))
    first_of = {p.name: p for p in reversed(places)}
    read = {p.name: w.add("Shape", p.source, start=p.axis, end=p.axis + 1) for p in first_of.values()}
    for name, first in held[0].items():
        arrays = [h[name] for h in held]
        if all(np.array_equal(a, first, equal_nan=first.dtype.kind == "f") for a in arrays[1:]):
            continue
        if not _written(w, name, arrays, given, read):
            return None
    for node in w.nodes:
        node.name = f"size_{node.name}"
    computed = {n for node in w.nodes for n in node.output}
    rest = [t for t in result.graph.initializer if t.name not in computed]
    nodes = [*w.nodes, *result.graph.node]
    del result.graph.initializer[:], result.graph.node[:]
    result.graph.initializer.extend([*rest, *(numpy_helper.from_array(a, n) for n, a in w.initializers.items())])
    result.graph.node.extend(nodes)
    for part in ("input", "output"):
        _open(*([v.type.tensor_type.shape.dim for v in getattr(m.graph, part)] for m in models), given=given)
    return result


def _tried(sizes: Sizes) -> list[dict[str, int]]:
    """Return the sizes at which models are written: one, and each size changed alone."""
    first = {s: n + _STEPS[0] + k for k, (s, n) in enumerate(sizes.items())}
    return [first, *({**first, s: first[s] + step} for s in first for step in _STEPS[1:])]


def _open(first: Sequence[Any], *others: Sequence[Any], given: Sequence[Sizes]) -> None:
    """Give the dimensions that vary the names of the sizes, or none where they are others."""
    for dims, *rest in zip(first, *others, strict=True):
        for i, dim in enumerate(dims):
            values = [dim.dim_value, *(d[i].dim_value for d in rest)]
            if len({*values}) > 1:
                formula = _fitted(values, given)
                name = formula.sizes[0] if formula and formula == _Formula(1, formula.sizes[:1]) else ""
                dim.Clear()
                dim.dim_param = name


def _fitted(values: Sequence[float], given: Sequence[Sizes]) -> _Formula | None:
    """Return the formula that has these values at the given sizes; None where there is no simple one."""
    if len({*values}) == 1:
        return _Formula(values[0])
    whole = all(isinstance(v, int) for v in values)
    for count in range(1, len(given[0]) + 1):
        for names in combinations(given[0], count):
            products = [math.prod(sizes[s] for s in names) for sizes in given]
            for power in (1,) if whole else (1, -1):
                factors = [v / p**power for v, p in zip(values, products, strict=True)]
                same = all(math.isclose(f, factors[0], rel_tol=0 if whole else _EXACT) for f in factors)
                if same and (not whole or factors[0].is_integer()):
                    return _Formula(factors[0], names, power)
    for name in given[0]:
        steps = [(v - values[0], sizes[name] - given[0][name]) for v, sizes in zip(values, given, strict=True)]
        slope = next((dv // dn for dv, dn in steps if dn), 0)
        if whole and all(dv == slope * dn for dv, dn in steps):
            return _Formula(slope, (name,), more=int(values[0] - slope * given[0][name]))
    return None


def _written(
    w: ModelWriter, name: str, arrays: Sequence[Array], given: Sequence[Sizes], read: Mapping[str, str]
) -> bool:
    """Add the nodes that compute an initializer from the sizes; return whether they can."""
    first = arrays[0]
    if any(a.shape != first.shape for a in arrays) or first.ndim > 1 or first.dtype.kind not in "if":
        return False
    columns = zip(*(a.reshape(-1) for a in arrays), strict=True)
    formulas = [_fitted([a.item() for a in column], given) for column in columns]
    if None in formulas or (first.dtype.kind == "f" and first.size > 1):
        return False
    parts = [_part(w, f, first.dtype, read) for f in formulas if f is not None]
    if first.ndim:
        w.add("Concat", *parts, name=name, axis=0)
    else:
        w.add("Squeeze", parts[0], name=name)
    return True


def _part(w: ModelWriter, formula: _Formula, dtype: np.dtype[Any], read: Mapping[str, str]) -> str:
    """Return the name of a vector of one element: the value of a formula."""

    def number(value: float) -> str:
        return w.initializer(np.array([value], dtype))

    if not formula.sizes:
        return number(formula.factor)
    result = read[formula.sizes[0]]
    for name in formula.sizes[1:]:
        result = w.add("Mul", result, read[name])
    if dtype.kind == "f":
        result = w.add("Cast", result, to=element_type(dtype))
    if formula.power < 0:
        return w.add("Div", number(formula.factor), result)
    result = result if formula.factor == 1 else w.add("Mul", result, number(formula.factor))
    return w.add("Add", result, number(formula.more)) if formula.more else result
