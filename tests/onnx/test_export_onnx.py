"""Systems and their derivatives as ONNX models: ONNX Runtime computes what gradcli does."""

import numpy as np
import pytest
from conftest import some

from gradcli import parse
from gradcli.engine.evaluate import at_point
from gradcli.graph.graph import Graph
from gradcli.graph.node import leaf
from gradcli.graph.vjp import vjp
from tests.export.random_systems import system
from tests.onnx.builder import central_difference, onnx, reference
from tests.onnx.whole_models import MODELS, cnn

from gradcli.export import torch  # isort: skip
from gradcli.export.onnx import compared, model  # isort: skip
from gradcli.export.onnx_rules import RULES  # isort: skip
from gradcli.onnx.model import Model  # isort: skip

SHAPES = {"x": (3,), "z": (3,), "M": (3, 3)}
WHAT = ("value", "vjp", "jacobian", "jvp")


def test_every_operation_has_a_rule():
    assert set(RULES) == set(torch.RULES)


@pytest.mark.parametrize("seed", some(range(100)))
def test_random_systems_in_the_reference(seed):
    graph = parse(system(seed), **{n: s for n, s in SHAPES.items() if n in system(seed)})
    rng = np.random.default_rng(seed)
    at = {n: rng.uniform(0.3, 1.5, x.shape) * rng.choice([-1, 1], x.shape) for n, x in graph.inputs.items()}
    wrt = list(graph.inputs)
    assert compared(model(graph, WHAT, wrt, "model", "float64"), graph, WHAT, wrt, at) < 1e-9


def run_in_runtime(proto, values):
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = runtime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {name: np.asarray(value, np.float32) for name, value in values.items()})


@pytest.mark.parametrize("seed", some(range(100)))
def test_random_systems_in_onnx_runtime(seed):
    graph = parse(system(seed), **{n: s for n, s in SHAPES.items() if n in system(seed)})
    rng = np.random.default_rng(seed)
    at = {n: rng.uniform(0.3, 1.5, x.shape) * rng.choice([-1, 1], x.shape) for n, x in graph.inputs.items()}
    derived = vjp(graph)
    proto = model(graph, ("value", "vjp"), list(graph.inputs), "model")
    at = {n: np.asarray(value, np.float32).astype(float) for n, value in at.items()}
    at |= {n: np.ones(v.shape) for n, v in derived.inputs.items() if n not in at}
    nodes = [*graph.outputs.values(), *derived.outputs.values()]
    expected = at_point(derived, at, nodes)
    for node, result in zip(nodes, run_in_runtime(proto, at), strict=True):
        np.testing.assert_allclose(result, expected[node], rtol=2e-4, atol=2e-5 * np.abs(expected[node]).max())


def test_the_cotangent_of_a_number_is_1_by_default():
    graph = parse("y = x**2; z = 3*x")
    proto = model(graph, ("vjp",), ["x"], "model")
    assert [i.name for i in proto.graph.input] == ["x", "y.v", "z.v"]
    assert [o.name for o in proto.graph.output] == ["x.grad"]
    assert run_in_runtime(proto, {"x": 2})[0] == 7
    assert run_in_runtime(proto, {"x": 2, "z.v": 0})[0] == 4


def test_a_model_gets_its_gradient(cli, tmp_path):
    onnx.save(cnn()[0], tmp_path / "cnn.onnx")
    target = tmp_path / "with_gradient.onnx"
    cli.done("export", "-F", str(tmp_path / "cnn.onnx"), "--shape", "x=2x1x4x4", "--to", "onnx", "--what", "value,vjp",
             "--output", str(target))  # fmt: skip
    x = np.random.default_rng(3).normal(size=(2, 1, 4, 4)).astype(np.float32)
    v = np.array([[0, 1, 0], [1, 0, 0]])
    proto = onnx.load(target)
    assert {"conv_weight", "fc_weight"} <= {t.name for t in proto.graph.initializer}
    probs, grad = run_in_runtime(proto, {"x": x, "probs.v": v})
    np.testing.assert_allclose(probs, reference(cnn()[0], {"x": x.astype(float)})[0], rtol=1e-5)
    numeric = central_difference(cnn()[0], {"x": x.astype(float)}, "x", [v])
    np.testing.assert_allclose(grad, numeric, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("build", MODELS.values(), ids=MODELS)
def test_whole_models_with_their_gradients_in_onnx_runtime(build):
    proto, shapes = build()
    leaves = {name: leaf(shape) for name, shape in shapes.items()}
    read = Model(proto, "model.onnx")
    nodes = read.build(leaves, {})
    graph = Graph.of(leaves, {name: nodes[name] for name in read.outputs})
    rng = np.random.default_rng(8)
    derived = vjp(graph)
    at = {name: rng.normal(size=x.shape).astype(np.float32).astype(float) for name, x in derived.inputs.items()}
    wanted = [*graph.outputs.values(), *derived.outputs.values()]
    expected = at_point(derived, at, wanted)
    results = run_in_runtime(model(graph, ("value", "vjp"), [*shapes], "model"), at)
    for y, result in zip(wanted, results, strict=True):
        np.testing.assert_allclose(result, expected[y], rtol=1e-3, atol=2e-5 * max(1, np.abs(expected[y]).max()))
