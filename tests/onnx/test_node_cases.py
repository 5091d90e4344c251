"""The node tests of ONNX itself, `onnx.backend.test`: what is supported gives the numbers that are recorded there."""

import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from conftest import long

from gradcli.engine.evaluate import evaluate
from gradcli.errors import InputError
from gradcli.graph.graph import Graph
from gradcli.graph.node import Node, leaf
from tests.onnx.builder import onnx

from gradcli.onnx.translate import Translator  # isort: skip


def cases():
    """Return the tests of operators, with their models and arrays."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return load_model_tests(kind="node")


def numbers(value):
    """Return an array, or None for a sequence and for what is absent."""
    if isinstance(value, onnx.TensorProto):
        value = onnx.numpy_helper.to_array(value)
    return value if isinstance(value, np.ndarray | np.generic) else None


def is_real(array):
    return array.dtype.name in ("float16", "bfloat16", "float32", "float64")


def results(model, inputs, dtype, known):
    """Return the outputs of a model: real inputs are leaves, but for the `known` ones."""
    names = [v.name for v in model.graph.input]
    leaves = {n: leaf(a.shape, dtype) for n, a in zip(names, inputs, strict=False) if is_real(a) and n not in known}
    scope = {n: leaves.get(n, np.asarray(a)) for n, a in zip(names, inputs, strict=False)}
    translator = Translator(model, Path(), "case", dtype)
    translator.run(model.graph.node, scope, translator.opsets)
    outputs = [scope.get(v.name) for v in model.graph.output]
    nodes = {str(k): y for k, y in enumerate(outputs) if isinstance(y, Node)}
    values = {n: np.asarray(a, dtype)[..., None] for n, a in zip(names, inputs, strict=False) if n in leaves}
    computed = evaluate(Graph.of(leaves, nodes), values)
    return [computed[str(k)][..., 0] if str(k) in computed else y for k, y in enumerate(outputs)]


def with_known(model, inputs, dtype):
    """Return the outputs; inputs that must be known while the model is read are."""
    known = set()
    while True:
        try:
            return results(model, inputs, dtype, known)
        except InputError as error:
            rest = [v.name for v, a in zip(model.graph.input, inputs, strict=False) if is_real(a)]
            rest = [n for n in rest[::-1] if n not in known]
            if "depends on values" not in error.message or not rest:
                raise
            known.add(rest[0])


def in_scope(inputs, outputs):
    """Tell whether a test has arrays of real numbers, integers and booleans alone."""
    arrays = [v for v in (*inputs, *outputs) if v is not None]
    plain = all(is_real(np.asarray(a)) or np.asarray(a).dtype.kind in "biu" for a in arrays)
    return plain and len(arrays) == len(inputs) + len(outputs)


def verdict(case, dtype):
    """Return what comes of a test: `passed`, `out of scope`, `refused: …` or `wrong`."""
    inputs, outputs = ([numbers(v) for v in part] for part in case.data_sets[0])
    if not in_scope(inputs, outputs):
        return "out of scope"
    try:
        found = with_known(case.model, [np.asarray(a) for a in inputs], dtype)
    except InputError as error:
        return f"refused: {error.message}"
    for y, wanted in zip(found, outputs, strict=True):
        if y is None:
            continue
        wanted = np.asarray(wanted)
        small = (wanted.dtype.itemsize < 4 and is_real(wanted)) or any(
            np.asarray(a).dtype.itemsize < 4 and is_real(np.asarray(a)) for a in inputs
        )
        y = np.asarray(y).astype(float)
        if y.shape != wanted.shape or not np.allclose(
            y, wanted.astype(float), rtol=2e-2 if small else 1e-3, atol=2e-2 if small else 1e-5, equal_nan=True
        ):
            return "wrong"
    return "passed"


@pytest.fixture(scope="module")
def all_cases():
    return cases()


@long
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_no_operator_is_wrong(all_cases, dtype):
    verdicts = defaultdict(list)
    for case in all_cases:
        verdicts[verdict(case, dtype).partition(":")[0]].append(case.name)
    print({kind: len(names) for kind, names in verdicts.items()})
    assert verdicts["wrong"] == []
    assert len(verdicts["passed"]) >= 1500
