"""Systems and their derivatives as ONNX models: ONNX Runtime computes what gradcli does."""

import numpy as np
import pytest
from conftest import some

from gradcli import parse
from gradcli.engine.evaluate import at_point
from gradcli.graph.graph import Graph
from gradcli.graph.node import leaf
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.vjp import vjp
from tests.codegen.random_systems import system
from tests.onnx.builder import central_difference, onnx, reference
from tests.onnx.whole_models import MODELS, cnn

from gradcli.codegen import torch  # isort: skip
from gradcli.codegen.onnx import compared, model  # isort: skip
from gradcli.codegen.onnx_rules import RULES  # isort: skip
from gradcli.onnx.model import Model  # isort: skip

SHAPES = {"x": (3,), "z": (3,), "M": (3, 3)}
# Some are written out before: linear algebra of small matrices.
LACKING = {"gamma", "lgamma", "digamma", "polygamma", "zeta", "product_of_others", "inv", "solve", "cofactors"}
LACKING |= {"eigvalsh", "eigvecsh", "svdvals", "svd_u", "svd_vh"}
WHAT = ("value", "vjp", "jacobian", "jvp")


def test_every_operation_has_a_rule():
    defined = {op for op in torch.RULES if OPERATIONS[op].for_engines and op not in ("pow", "cofactors")}
    assert set(RULES) | LACKING == set(torch.RULES) - defined
    assert not LACKING & set(RULES)


@pytest.mark.parametrize("seed", some(range(100)))
def test_random_systems_in_the_reference(seed):
    graph = parse(system(seed), **{n: s for n, s in SHAPES.items() if n in system(seed)})
    rng = np.random.default_rng(seed)
    at = {n: rng.uniform(0.3, 1.5, x.shape) * rng.choice([-1, 1], x.shape) for n, x in graph.inputs.items()}
    wrt = list(graph.inputs)
    assert compared(model(graph, WHAT, wrt, "model", "float64"), graph, WHAT, wrt, at) < 1e-9


def run_in_runtime(proto, values, dtype="float32"):
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = runtime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {name: np.asarray(value, dtype) for name, value in values.items()})


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


# Calls and the operators of their own that they go to; others are written by their definitions.
OWN = {
    "linear(X, W, b)": ["Gemm"],
    "linear(X[0], W)": ["Gemm"],
    "linear(X[None], W, b)": ["MatMul"],
    "conv1d(X[None], K, b, padding=1)": ["Conv"],
    "conv1d(X, K, dilation=2, padding='same')": ["Conv"],
    "conv1d(X, K, stride=2)": ["Conv"],
    "conv2d(I, K[:, :1, None], groups=2, padding=(0, 1))": ["Conv"],
    "conv3d(I[:, :, None], K[:, :, None, None])": ["Conv"],
    "conv_transpose2d(I, K[:, :, None], stride=2, output_padding=1, padding=(0, 1))": ["ConvTranspose"],
    "conv_transpose1d(X, K, b)": ["ConvTranspose"],
    "max_pool2d(I, 2, stride=1, padding=1)": ["MaxPool"],
    "max_pool1d(X, 3, stride=2, ceil_mode=True)": [],
    "avg_pool2d(I, 2, padding=1, count_include_pad=False)": ["AveragePool"],
    "avg_pool1d(X, 2, divisor_override=3)": [],
    "adaptive_avg_pool2d(I, 1)": ["GlobalAveragePool"],
    "adaptive_max_pool2d(I, (1, 3))": ["MaxPool"],
    "adaptive_avg_pool1d(X, 3)": [],
    "batch_norm(I, b, b**2, weight=b, eps=0.5)": ["BatchNormalization"],
    "batch_norm(I, weight=b)": [],
    "layer_norm(X, 4, bias=c)": ["LayerNormalization"],
    "layer_norm(X, 4, eps=a)": [],
    "group_norm(I, 2, b)": ["LayerNormalization"],
    "instance_norm(I, weight=b, bias=b)": ["InstanceNormalization"],
    "softmax(X, axis=0)": ["Softmax"],
    "log_softmax(I, axis=1)": ["LogSoftmax"],
    "scaled_dot_product_attention(X, X, X)": ["Softmax"],
    "cross_entropy(X, [3, 0], c, reduction='sum')": ["SoftmaxCrossEntropyLoss"],
    "cross_entropy(I, [[[0, 1, -100], [1, 1, 0]]])": ["SoftmaxCrossEntropyLoss"],
    "nll_loss(X, [3, 0], reduction='none')": ["NegativeLogLikelihoodLoss"],
    "cross_entropy(X, [3, 0], label_smoothing=0.1)": ["LogSoftmax"],
    "embedding([1, 0, 1], X)": ["Gather"],
    "lstm(S, h, h/2, U, V, c, c)": ["LSTM"],
    "lstm(S, h, h/2, U, V, has_biases=False, batch_first=True, result=2)": ["LSTM"],
    "lstm(S, [h[0], -h[0]], [h[0], 2*h[0]], U, V, c, c, 2*U, V/2, c, -c, bidirectional=True)": ["LSTM"],
    "gru(S, [h[0], -h[0]], U[1:], V[1:], c[1:], c[:3], V[:3], -V[:3], c[1:], c[1:], num_layers=2, result=1)": [
        "GRU",
        "GRU",
    ],
    "rnn_tanh(S, h, U[:1], V[1:2], has_biases=False)": ["RNN"],
    "rnn_relu(S, [h[0], -h[0]], U[:1], V[1:2], U[1:2], V[:1], has_biases=False, bidirectional=True)": ["RNN"],
    "rnn_relu(S[:, 0], h[:, 0], U[:1], V[1:2], has_biases=False)": [],
}
LAYERS = {"a": (), "b": (2,), "c": (4,), "X": (2, 4), "W": (2, 4), "K": (2, 2, 2), "I": (1, 2, 2, 3)}
LAYERS |= {"S": (2, 2, 2), "h": (1, 2, 1), "U": (4, 2), "V": (4, 1)}
NAMES = {name for names in OWN.values() for name in names} | {"Einsum", "Resize"}


@pytest.mark.parametrize("text", OWN)
def test_a_call_goes_to_its_own_operator(text):
    graph = parse(f"y = {text}", **{n: s for n, s in LAYERS.items() if n in text})
    proto = model(graph, ("value",), [], "model")
    made = [node.op_type for node in proto.graph.node]
    assert [op for op in made if op in NAMES - {"MatMul", "Gather", "Gemm"} or op in OWN[text]] == OWN[text]
    held = {t.name for t in proto.graph.initializer}
    assert held <= {name for node in proto.graph.node for name in node.input}


@pytest.mark.parametrize("text", OWN)
def test_a_call_and_its_gradient_in_onnx_runtime_and_read_back(text):
    graph = parse(f"y = {text}", **{n: s for n, s in LAYERS.items() if n in text})
    derived = vjp(graph)
    rng = np.random.default_rng(1)
    at = {n: rng.uniform(0.3, 1.5, x.shape).astype(np.float32).astype(float) for n, x in derived.inputs.items()}
    nodes = [*graph.outputs.values(), *derived.outputs.values()]
    expected = at_point(derived, at, nodes)
    for dtype, tolerance in (("float32", 2e-5), ("float64", 1e-12)):
        proto = model(graph, ("value", "vjp"), list(graph.inputs), "model", dtype)
        leaves = {name.replace(".", "_"): leaf(x.shape) for name, x in derived.inputs.items()}
        read = Model(proto, "model.onnx")
        built = read.build(leaves, {})
        again = Graph.of(leaves, {name: built[name] for name in read.outputs})
        results = at_point(again, {n.replace(".", "_"): v for n, v in at.items()}, again.outputs.values())
        for node, result in zip(nodes, results.values(), strict=True):
            scale = max(1, np.abs(expected[node]).max())
            np.testing.assert_allclose(result, expected[node], atol=1e-6 * scale)
        for node, result in zip(nodes, run_in_runtime(proto, at, dtype), strict=True):
            scale = max(1, np.abs(expected[node]).max())
            np.testing.assert_allclose(result, expected[node], atol=tolerance * scale)
