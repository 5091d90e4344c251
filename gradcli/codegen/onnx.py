"""ONNX: a model of values, gradients and products with the Jacobian, also with sizes that are open."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain, combinations
from typing import Any, NamedTuple

import numpy as np

from gradcli.codegen.kinds import check
from gradcli.codegen.onnx_calls import CALLS, takes
from gradcli.codegen.onnx_rules import RULES, ModelWriter, element_type
from gradcli.codegen.program import MAX_NODES, rewritten_for_files
from gradcli.engine.evaluate import at_point, constant
from gradcli.errors import InputError
from gradcli.graph.array import Array, Named, Weights
from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.jacobian import jacobian
from gradcli.graph.jvp import jvp
from gradcli.graph.node import Node, const
from gradcli.graph.rewrite import interpret
from gradcli.graph.vjp import vjp

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
        if not _formula(w, name, arrays, given, read):
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


def _formula(
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


OPSET, IR = 18, 8
_CANCELLED = 1e-5  # the size of a result, relative to the largest one, below which it may be what rounding left
_SAME = 1e-5  # a difference that rounding makes, relative to the size of the results
WHAT = ("value", "vjp", "jacobian", "jvp")


def model(graph: Graph, what: Sequence[str], wrt: Sequence[str], name: str, dtype: str = "float32") -> Any:
    """Return the ONNX model of a graph with the values, `vjp`, `jacobian` and `jvp` that are wanted.

    Its inputs are those of the graph, then the cotangents `y.v`, which are 1 by default where y is one number, and the
    tangents `x.u`; its outputs are `y`, `x.grad`, `dy/dx` and `y.jvp`.

    Errors: `InputError` where ONNX has no operator, and for a model that would be too large.
    """
    whole = _whole(graph, what, wrt)
    return _checked(_written(whole, graph, name, ModelWriter(dtype)))


def open_model(
    graph_at: Callable[[Sizes], Graph], sizes: Sizes, places: Sequence[OpenSize], what: Sequence[str],
    wrt: Sequence[str], name: str, dtype: str,
) -> Any | None:  # fmt: skip
    """Return the model of a system that has a graph for any sizes, which stay open; None where there is none.

    It is tried at sizes that it was not made of.
    """

    def build(some: Sizes) -> Any:
        graph = graph_at(some)
        return _written(_whole(graph, what, wrt), graph, name, ModelWriter(dtype, shared=False))

    proto = opened(build, sizes, places)
    if proto is None:
        return None
    others = {s: n + 3 + 2 * k for k, (s, n) in enumerate(sizes.items())}
    try:
        graph = graph_at(others)
        rng = np.random.default_rng(0)
        at = {n: rng.uniform(0.5, 1.5, x.shape) for n, x in graph.inputs.items()}
        gap = compared(_checked(proto), graph, what, wrt, at)
        same = gap < _SAME or gap <= 2 * compared(build(others), graph, what, wrt, at)
    except Exception:  # of the checker, or of the reference: it is no model at these sizes
        return None
    return proto if same else None


def _checked(proto: Any) -> Any:
    """Return a model that is one.

    Errors: `InputError` for one that is too large.
    """
    from onnx import checker

    try:
        checker.check_model(proto, full_check=True)
    except ValueError as error:  # a protobuf of more than 2 GiB
        raise InputError(f"the model would be too large: {str(error)[:100]}") from None
    return proto


def _whole(graph: Graph, what: Sequence[str], wrt: Sequence[str]) -> Graph:
    """Return the graph of all that is wanted."""
    if other := next((kind for kind in what if kind not in WHAT), None):
        raise InputError(
            f"--what {other} is not written as a model",
            hint=f"choose from {', '.join(WHAT)}",
            options=("--what",),
            text=other,
        )
    check(graph, what)
    parts = {"value": lambda: graph, "vjp": lambda: vjp(graph, wrt), "jvp": lambda: jvp(graph, wrt)}
    parts["jacobian"] = lambda: _blocks(graph, wrt)
    inputs: dict[str, Node] = {}
    outputs: dict[str, Node] = {}
    for kind in what:
        part = parts[kind]()
        inputs |= part.inputs
        outputs |= part.outputs
    return Graph.of(inputs, outputs, graph.nodes, names=graph.names)


def _blocks(graph: Graph, wrt: Sequence[str]) -> Graph:
    """Return the blocks of the Jacobian, zeros among them."""
    blocks = jacobian(graph, wrt)
    outputs = {
        f"d{y}/d{x}": blocks.outputs.get(f"d{y}/d{x}") or const(0, (*n.shape, *graph.inputs[x].shape))
        for y, n in graph.outputs.items()
        for x in wrt
    }
    return Graph.of(graph.inputs, outputs)


def _written(whole: Graph, graph: Graph, name: str, w: ModelWriter) -> Any:
    from onnx import helper, numpy_helper

    new = rewritten_for_files(whole, True, "onnx", partial(takes, doubles=w.dtype == np.float64))
    results = {name: new[y] for name, y in whole.outputs.items()}
    nodes = scheduled(results.values())
    if len(nodes) > MAX_NODES:
        raise InputError(f"the model would have {len(nodes):,} nodes; the limit is {MAX_NODES:,}")
    kind = element_type(w.dtype)
    names = {w.fresh(name): n for name, n in (*whole.inputs.items(), *results.items())}
    done = {n: name for name, n in whole.inputs.items()}
    called = {new[n]: label for n, label in graph.labels.items() if n in new}
    interpret(nodes, lambda node, args: _step(w, node, args, called), done)
    for name_, node in results.items():
        w.add("Identity", done[node], name=name_)
    ones = [f"{y}.v" for y, n in graph.outputs.items() if n.size == 1 and f"{y}.v" in whole.inputs]
    defaults = {v: np.ones(names[v].shape, w.dtype) for v in ones}
    inputs = [helper.make_tensor_value_info(n, kind, list(x.shape)) for n, x in whole.inputs.items()]
    outputs = [helper.make_tensor_value_info(n, kind, list(y.shape)) for n, y in whole.outputs.items()]
    read = {*defaults, *(name for node in w.nodes for name in node.input)}
    arrays = {n: a for n, a in (w.initializers | defaults).items() if n in read}
    held = [numpy_helper.from_array(np.asarray(a, order="C"), n) for n, a in arrays.items()]
    body = helper.make_graph(w.nodes, name, inputs, outputs, held)
    return helper.make_model(
        body, producer_name="gradcli", opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR
    )


def _step(w: ModelWriter, node: Node, args: Sequence[str], called: Mapping[Node, str]) -> str:
    """Add what computes a node, and return its name."""
    if node.is_constant:
        dtype = np.dtype(bool) if node.dtype == "bool" else w.dtype
        numbers = constant(node)[..., 0].astype(dtype)
        if node.value is not None and node.size > 1:
            return w.add("Expand", w.initializer(numbers.reshape(-1)[0]), w.integers(node.shape))
        prefix = called.get(node, "c") if isinstance(node.settings[0], Weights) else "c"
        return w.initializer(numbers, prefix)
    if (call := CALLS.get(node.op)) is not None:
        return call.write(w, node, args)
    if (rule := RULES.get(node.op)) is None:
        raise InputError(
            f"ONNX has no operator for `{node.op}`",
            hint="--to numpy, torch or c writes it; or leave it out with --outputs",
        )
    return rule(w, node, args)


def compared(proto: Any, graph: Graph, what: Sequence[str], wrt: Sequence[str], at: Named) -> float:
    """Return by how much the results of `onnx.reference` differ from gradcli's at a point, relative to their size.

    Cotangents and tangents are 1.
    """
    from onnx.reference import ReferenceEvaluator

    whole = _whole(graph, what, wrt)
    values = {name: np.ones(n.shape) if name not in at else at[name] for name, n in whole.inputs.items()}
    expected = at_point(whole, values, whole.outputs.values())
    is_double = proto.graph.input[0].type.tensor_type.elem_type == element_type(np.dtype(float))
    dtype = np.float64 if is_double else np.float32
    with np.errstate(all="ignore"):
        results = ReferenceEvaluator(proto).run(None, {name: v.astype(dtype) for name, v in values.items()})
    worst, sizes = 0.0, {y: float(np.abs(v[np.isfinite(v)]).max(initial=0)) for y, v in expected.items()}
    least = max(_CANCELLED * max(sizes.values(), default=0.0), 1e-30)
    for y, result in zip(whole.outputs.values(), results, strict=True):
        wanted = expected[y]
        same = (result == wanted) | (np.isnan(result) & np.isnan(wanted))
        gap = np.where(same, 0, np.abs(result - wanted) / max(sizes[y], least))
        worst = max(worst, float(np.nan_to_num(gap, nan=np.inf).max(initial=0)))
    return worst
