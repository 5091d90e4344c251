"""The tests of ONNX itself: what is supported gives the numbers that are recorded there, and their slopes."""

import warnings
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from conftest import long

from gradcli.engine.evaluate import evaluate
from gradcli.errors import InputError
from gradcli.graph.graph import Graph
from gradcli.graph.node import Node, leaf
from gradcli.graph.vjp import sweep
from tests.onnx.builder import onnx

from gradcli.onnx.files import array, initializers  # isort: skip
from gradcli.onnx.translate import Translator  # isort: skip

# Kinds of tests, and how many of those with real inputs and outputs are read; the others need what gradcli leaves out.
KINDS = {"node": (1_309, 1_254), "simple": (15, 7), "pytorch-converted": (80, 80), "pytorch-operator": (34, 34)}
REAL = ("float16", "bfloat16", "float32", "float64")
LARGEST = 100_000  # elements of an array whose slope is measured
STEPS = 1e-6, 3e-5
INDICES = ("argsort", "argmax", "argmin")  # operations whose results are no functions to be differentiated
HUGE = 1e6  # slopes are measured where numbers are smaller


class Case(NamedTuple):
    """A test: a model, the arrays that it gets, and those that it has to give; None for what is no array."""

    name: str
    model: object
    inputs: list
    outputs: list


def cases(kind):
    """Yield the tests of a kind."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = load_model_tests(kind=kind)
    for case in found:
        if case.data_sets:
            yield Case(case.name, case.model, *([numbers(v) for v in part] for part in case.data_sets[0]))
        else:
            yield recorded(Path(case.model_dir))


def recorded(folder):
    """Return the test that a folder holds."""
    model = onnx.load(str(folder / "model.onnx"))
    parts = []
    for part, declared in (("input", model.graph.input), ("output", model.graph.output)):
        files = sorted(folder.glob(f"test_data_set_0/{part}_*.pb"), key=lambda f: int(f.stem.partition("_")[2]))
        kinds = [v.type.WhichOneof("value") for v in declared]
        arrays = [f.read_bytes() if k == "tensor_type" else None for f, k in zip(files, kinds, strict=False)]
        parts.append([None if data is None else numbers(onnx.TensorProto.FromString(data)) for data in arrays])
    return Case(folder.name, model, *parts)


def numbers(value):
    """Return an array, or None for a sequence and for what is absent."""
    if isinstance(value, onnx.TensorProto):
        value = onnx.numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, np.ndarray | np.generic) else None


def is_real(array):
    return array.dtype.name in REAL


def in_scope(case):
    """Tell whether a test has arrays of numbers and booleans alone, real ones among its inputs and its outputs."""
    arrays = [*case.inputs, *case.outputs]
    if any(a is None or not (is_real(a) or a.dtype.kind in "biu") for a in arrays):
        return False
    return any(map(is_real, case.inputs)) and any(map(is_real, case.outputs))


class Read(NamedTuple):
    """A model that was read: its graph, from leaves to those outputs that depend on them, and the numbers of both."""

    graph: Graph
    values: dict
    outputs: list  # nodes or numbers


def read(case, dtype, known):
    """Return the graph of a model: real inputs are leaves, but for the `known` ones."""
    names = [v.name for v in case.model.graph.input]
    held = {n: array(t, Path()) for n, t in initializers(case.model.graph).items()}
    given = held | dict(zip(names, case.inputs, strict=False))
    leaves = {n: leaf(a.shape, dtype) for n, a in given.items() if is_real(a) and n not in known}
    scope = {n: leaves.get(n, a) for n, a in given.items()}
    translator = Translator(case.model, Path(), "case", dtype)
    translator.run(case.model.graph.node, scope, translator.opsets)
    outputs = [scope.get(v.name) for v in case.model.graph.output]
    nodes = {f"y{k}": y for k, y in enumerate(outputs) if isinstance(y, Node)}
    with np.errstate(over="ignore"):  # some recorded numbers are what was in memory
        values = {n: given[n].astype(dtype) for n in leaves}
    return Read(Graph.of(leaves, nodes), values, outputs)


def with_known(case, dtype):
    """Return a model that was read, with those of its inputs as numbers that have to be known."""
    known = set()
    order = [*initializers(case.model.graph), *(v.name for v in case.model.graph.input)][::-1]
    while True:
        try:
            return read(case, dtype, known)
        except InputError as error:
            rest = [n for n in order if n not in known]
            if "depends on values" not in error.message or not rest:
                raise
            known.add(rest[0])


def at(values):
    return {n: a[..., None] for n, a in values.items()}


def is_right(case, found):
    """Tell whether the outputs are those that are recorded."""
    computed = evaluate(found.graph, at(found.values))
    small = any(is_real(a) and a.dtype.itemsize < 4 for a in (*case.inputs, *case.outputs))
    near = {"rtol": 2e-2 if small else 1e-3, "atol": 2e-2 if small else 1e-5}
    for k, (y, wanted) in enumerate(zip(found.outputs, case.outputs, strict=True)):
        if y is None:
            continue
        y = np.asarray(computed[f"y{k}"][..., 0] if isinstance(y, Node) else y).astype(float)
        if y.shape != wanted.shape or not np.allclose(y, wanted.astype(float), equal_nan=True, **near):
            return False
    return True


def slopes(found, values, seed):
    """Return the slope along a direction as the derivative has it, and as differences of two sizes to both sides have.

    None where there is no derivative to compare.
    """
    chosen = {k: y for k, y in found.graph.outputs.items() if y.dtype != "bool" and y.op not in INDICES}
    if not chosen or any(a.size > LARGEST for a in values.values()):
        return None
    rng = np.random.default_rng(seed)
    v = {k: rng.normal(size=y.shape) for k, y in chosen.items()}
    u = {n: rng.normal(size=a.shape) for n, a in values.items()}
    graph = Graph.of(found.graph.inputs, chosen)
    swept = sweep(graph)
    given = values | {f"{k}.v": w for k, w in v.items()}
    grads = evaluate(Graph.of(swept.graph.inputs, dict(swept.gradients)), at(given))
    ours = sum(float((g[..., 0] * u[n]).sum()) for n, g in grads.items())
    steps = np.array([-STEPS[1], -STEPS[0], 0, STEPS[0], STEPS[1]])
    results = evaluate(graph, {n: values[n][..., None] + steps * u[n][..., None] for n in u})
    with np.errstate(all="ignore"):
        y = sum((v[k][..., None] * r).reshape(-1, r.shape[-1]).sum(0) * np.ones(len(steps)) for k, r in results.items())
        return ours, np.diff(y) / np.diff(steps)


def verdict(case):
    """Return what comes of a test: `right`, `refused`, `wrong`, `wrong slope`, `corner` or `no slope`; and why."""
    for dtype in ("float32", "float64"):
        if dtype == "float32" and any(a.dtype == np.float64 for a in case.inputs):
            continue
        try:
            found = with_known(case, dtype)
        except InputError as error:
            return "refused", error.message
        if not is_right(case, found):
            return "wrong", dtype
    rng = np.random.default_rng(len(case.name))
    values = {n: np.where(np.abs(a) > HUGE, rng.normal(size=a.shape), a) for n, a in found.values.items()}
    for moved in (0, 0.01):
        measured = slopes(found, {n: a + moved * rng.normal(size=a.shape) for n, a in values.items()}, len(case.name))
        if measured is None:
            return "no slope", ""
        ours, differences = measured
        # At a corner the differences to both sides are not the same, nor those of two sizes.
        size = max(1, *map(abs, differences))
        if np.isfinite(differences).all() and np.ptp(differences) <= 1e-3 * size:
            same = abs(ours - np.mean(differences[1:3])) <= 1e-3 * size
            return ("right", "") if same else ("wrong slope", f"{ours}, and not {differences}")
    return "corner", ""


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=[long] * (kind == "node")) for kind in KINDS])
def test_numbers_and_slopes_of_all_that_is_read(kind):
    tried = [case for case in cases(kind) if in_scope(case)]
    count, read_ = KINDS[kind]
    assert len(tried) >= count
    found = {case.name: verdict(case) for case in tried}
    print(kind, len(found), dict(Counter(what for what, _ in found.values())))
    assert [(name, *why) for name, why in found.items() if why[0].startswith("wrong")] == []
    assert sum(what != "refused" for what, _ in found.values()) >= read_


@long
def test_the_slope_of_most_operators_is_compared():
    right = [case.model.graph.node for case in cases("node") if in_scope(case) and verdict(case)[0] == "right"]
    assert len({node.op_type for nodes in right for node in nodes}) >= 110
