"""ONNX: a model of values, gradients and products with the Jacobian."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gradcli.codegen.kinds import check
from gradcli.codegen.onnx_calls import CALLS, takes
from gradcli.codegen.onnx_open import OpenSize, Sizes, opened
from gradcli.codegen.onnx_rules import RULES
from gradcli.codegen.onnx_writer import ModelWriter, element_type
from gradcli.codegen.program import MAX_NODES, rewritten_for_files
from gradcli.engine.evaluate import at_point, constant
from gradcli.errors import InputError
from gradcli.graph.array import Named
from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.jacobian import jacobian
from gradcli.graph.jvp import jvp
from gradcli.graph.node import Node, const
from gradcli.graph.rewrite import interpret
from gradcli.graph.vjp import vjp
from gradcli.graph.weights import Weights

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
