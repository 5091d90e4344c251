"""Forward mode: against the Jacobian for every kind of operation, against PyTorch's numbers, linear in the graph."""

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import each
from numpy.testing import assert_allclose

from gradcli import evaluate, numeric_jacobian, parse
from gradcli.graph.graph import Graph
from gradcli.graph.hessian import gradient, hvp
from gradcli.graph.jvp import jvp, structural, transposed
from gradcli.graph.node import leaf
from gradcli.graph.operations import OPERATIONS

RECORDED = json.loads(Path(__file__).with_name("second_order.json").read_text())

SYSTEMS = [
    "y = sum(x**2*z)/a",
    "y = M @ x; w = x @ z; q = M @ N; r = outer(x, z)",
    "y = M.T; w = reshape(M, (3, 2)); q = M[0, ::-1]; r = x[[0, 2, 0]]; s = diag(N); u = broadcast_to(a, (2,))",
    "y = concatenate([x, z*2]); u = diag(x); w = stack([a, x[0], 3]); q = tril(N); r = triu(N*a)",
    "y = mean(M, axis=0); w = prod(x); q = max(x); r = min(M, dim=1); s = norm(x); t = var(x); u = std(M, axis=1)",
    "y = logsumexp(x); w = softmax(M, axis=1); q = log_softmax(x); r = cumsum(M, 0); s = cumprod(x, 0); t = trace(N)",
    "y = sort(x); w = median(x); q = sort(z, descending=True); r = amax(M, dim=0)",
    "y = det(N); w = inv(N); q = solve(N, x); r = cross(x, z); s = einsum('ij,jk->ki', M, N); t = amin(M)",
    "y = where(x > z, x*a, z**2); w = maximum(x, z); q = clamp(x, z, a); r = floor(x); s = x % a; t = detach(x)*z",
    "y = M @ x + x[:2]; h = tanh(y); w = h @ h; q = sum(outer(h, x) @ z)*a",
]  # fmt: skip
SHAPES = {"a": (), "x": (3,), "z": (3,), "M": (2, 3), "N": (3, 3)}


def drawn(inputs, seed=0):
    random = np.random.default_rng(seed)
    return {name: random.normal(size=n.shape) for name, n in inputs.items()}


def run(graph, point):
    found = evaluate(graph, {name: np.asarray(value, dtype=float)[..., None] for name, value in point.items()})
    return {name: value[..., 0] for name, value in found.items()}


def flat(values):
    return np.concatenate([np.ravel(value) for value in values])


@pytest.mark.parametrize("system", SYSTEMS)
def test_forward_mode_is_the_jacobian_times_the_tangent(system):
    graph = parse(system, **SHAPES)
    pushed = jvp(graph)
    point = drawn(pushed.inputs)
    u = flat([point[f"{name}.u"] for name in graph.inputs])
    expected = numeric_jacobian(graph, list(graph.inputs), {name: point[name] for name in graph.inputs}) @ u
    assert_allclose(flat(run(pushed, point).values()), expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_kind_that_is_linear_says_what_the_transpose_of_the_pullback_says(system):
    graph = parse(system, **SHAPES)
    seen = set()
    for node in graph.nodes:
        row = OPERATIONS.get(node.op)
        if row is None or row.broadcasts or not row.passes_on or node.op in seen:
            continue
        seen.add(node.op)
        inputs = {f"a{i}": leaf(a.shape) for i, a in enumerate(node.args)}
        own = type(node)(node.op, tuple(inputs.values()), node.shape, node.settings)
        tangents = {f"u{i}": leaf(a.shape) for i, a in enumerate(node.args)}
        known = dict(enumerate(tangents.values()))
        both = {"rule": structural(own, known), "transpose": transposed(own, known)}
        found = run(Graph.of(inputs | tangents, both), drawn(inputs | tangents))
        assert_allclose(found["rule"], found["transpose"], rtol=1e-12, atol=1e-13)


@each("case", RECORDED)
def test_numbers_are_pytorchs(case):
    at = {name: np.array(value, dtype=float) for name, value in zip("xz", case["inputs"], strict=True)}
    graph = parse(f"y = {case['expression']}", **{name: value.shape for name, value in at.items()})
    at = {name: at[name] for name in graph.inputs}
    u = 1 + np.arange(sum(value.size for value in at.values())) / 4
    parts = np.split(u, np.cumsum([value.size for value in at.values()])[:-1])
    along = at | {f"{n}.u": part.reshape(at[n].shape) for n, part in zip(at, parts, strict=True)}
    forward = run(jvp(graph), along)["y.jvp"]
    assert_allclose(forward, case["jvp"], rtol=1e-12, atol=1e-13)
    found = gradient(graph)
    # PyTorch sends a cotangent of 0 through the infinite slope of another entry: it has nan where there is a number.
    matrix = numeric_jacobian(found, list(at), at)
    expected = np.where(np.isnan(case["hessian"]), matrix, case["hessian"])
    assert_allclose(matrix, expected, rtol=1e-9, atol=1e-11)
    product = flat(run(hvp(graph), along).values())
    assert_allclose(product, case["hvp"], rtol=1e-9, atol=1e-11)
    assert_allclose(product, case["forward_over_reverse"], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("case", [c for c in RECORDED if not c["corner"]], ids=lambda case: case["expression"])
def test_second_derivatives_are_differences_of_gradients(case):
    at = {name: np.array(value, dtype=float) for name, value in zip("xz", case["inputs"], strict=True)}
    graph = parse(f"y = {case['expression']}", **{name: value.shape for name, value in at.items()})
    point = flat(at.values())
    found = gradient(graph)

    def slope(x):
        parts = np.split(x, [at["x"].size])
        return flat(run(found, {n: part.reshape(at[n].shape) for n, part in zip(at, parts, strict=True)}).values())

    h = 1e-5
    steps = [(slope(point + h * e) - slope(point - h * e)) / (2 * h) for e in np.eye(len(point))]
    assert_allclose(np.array(case["hessian"]), steps, rtol=1e-6, atol=1e-7)


def test_only_the_leaves_that_are_wanted_get_a_tangent():
    graph = jvp(parse("y = a*b"), ["b"])
    assert list(graph.inputs) == ["a", "b", "b.u"]
    assert run(graph, {"a": 3, "b": 5, "b.u": 2})["y.jvp"] == 6


def test_what_does_not_depend_on_a_leaf_has_the_tangent_0():
    graph = jvp(parse("y = a; z = sign(b) + detach(b); k = b", b=(2,)), ["b"])
    found = run(graph, {"a": 3, "b": [5, 1], "b.u": [2, 1]})
    assert found["y.jvp"] == 0
    assert found["z.jvp"].tolist() == [0, 0]


@pytest.mark.parametrize(
    "step", ["sin(t{}) + x", "-(-t{})", "t{}*x", "sum([t{}, x])", "norm([t{}, x])", "[t{}, x] @ [x, 2]"]
)
def test_forward_mode_is_linear_in_the_graph(step):
    def nodes(length):
        text = "t0 = x\n" + "\n".join(f"t{i + 1} = {step.format(i)}" for i in range(length))
        return len(jvp(parse(text)).nodes)

    small, middle, large = nodes(100), nodes(200), nodes(400)
    assert large - middle == 2 * (middle - small)


def test_a_chain_of_20_000_nodes_is_an_ordinary_graph():
    x = leaf()
    y = x
    for _ in range(20_000):
        y = y + x
    graph = jvp(Graph.of({"x": x}, {"y": y}))
    assert run(graph, {"x": 1, "x.u": 2})["y.jvp"] == 40_002


@pytest.mark.parametrize("system", ["y = x; z = 2*x", "y = [x, 2*x]"])
def test_second_derivatives_need_one_scalar(system):
    with pytest.raises(Exception, match="second derivatives need one scalar"):
        gradient(parse(system))
