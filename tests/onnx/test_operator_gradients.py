"""The gradient of each operator in the table: along a random direction it is the slope that `onnx.reference` has."""

import warnings
from pathlib import Path

import numpy as np
from conftest import long

from gradcli.engine.evaluate import evaluate
from gradcli.errors import InputError
from gradcli.graph.graph import Graph
from gradcli.graph.node import Node, leaf
from gradcli.graph.vjp import sweep
from tests.onnx.builder import reference
from tests.onnx.test_node_cases import cases, in_scope, is_real, numbers

from gradcli.onnx.translate import Translator  # isort: skip

STEP, FAR = 1e-6, 3e-5
# The reference adds up x, and not |x|, in an L1 norm.
OTHERWISE = {"test_l1normalization_axis_last"}
LARGEST = 5_000  # elements of an input


def slope(case):
    """Return the slope along a direction as gradcli has it, and those of `onnx.reference` to both sides.

    None where there is no derivative to compare.
    """
    inputs, outputs = ([numbers(v) for v in part] for part in case.data_sets[0])
    if not in_scope(inputs, outputs) or any(v.size > LARGEST for v in inputs):
        return None
    names = [v.name for v in case.model.graph.input]
    rng = np.random.default_rng(len(case.name))
    values = {n: np.asarray(a, float) if is_real(a) else a for n, a in zip(names, inputs, strict=True)}
    leaves = {n: leaf(a.shape) for n, a in zip(names, inputs, strict=True) if is_real(a)}
    scope = {n: leaves.get(n, values[n]) for n in names}
    translator = Translator(case.model, Path(), "case")
    try:
        translator.run(case.model.graph.node, scope, translator.opsets)
    except InputError:
        return None
    nodes = [scope.get(v.name) for v in case.model.graph.output]
    chosen = [k for k, y in enumerate(nodes) if isinstance(y, Node) and y.dtype != "bool" and y.op != "argsort"]
    if not leaves or not chosen:
        return None
    swept = sweep(Graph.of(leaves, {str(k): nodes[k] for k in chosen}))
    v = {k: rng.normal(size=nodes[k].shape) for k in chosen}
    u = {n: rng.normal(size=x.shape) for n, x in leaves.items()}
    at = {n: values[n][..., None] for n in leaves} | {f"{k}.v": w[..., None] for k, w in v.items()}
    grads = evaluate(Graph.of(swept.graph.inputs, dict(swept.gradients)), at)
    ours = sum(float((grads[n][..., 0] * u[n]).sum()) for n in leaves)

    def value(t):
        results = reference(case.model, {n: a + t * u[n] if n in u else a for n, a in values.items()})
        return sum(float((v[k] * np.asarray(results[k], float)).sum()) for k in chosen)

    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            far, below, here, above = (value(t) for t in (-FAR, -STEP, 0, STEP))
    except Exception:  # the reference does not compute all operators in float64
        return None
    return ours, (here - far) / FAR, (here - below) / STEP, (above - here) / STEP


@long
def test_gradients_are_the_slopes_of_the_reference():
    compared, wrong = set(), []
    for case in cases():
        result = slope(case)
        if result is None or case.name in OTHERWISE:
            continue
        ours, far, left, right = result
        size = max(abs(left), abs(right), 1)
        # At a corner the slopes to both sides differ; where something is cast to float32, those of two steps do.
        if not np.isfinite(result).all() or max(abs(left - right), abs(left - far)) > 1e-3 * size:
            continue
        compared.update(node.op_type for node in case.model.graph.node)
        if abs(ours - (left + right) / 2) > 1e-3 * size:
            wrong.append((case.name, *result))
    print(len(compared), sorted(compared))
    assert wrong == []
    assert len(compared) >= 110
