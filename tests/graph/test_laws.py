"""What holds of every system: linearity in v, the chain rule, and passes that change no value."""

from decimal import Decimal
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
import sympy
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from gradcli import evaluate, numeric_jacobian, parse, vjp
from gradcli.engine.numeric_jacobian import NumericJacobian
from gradcli.graph import matrices
from gradcli.graph.construct import call
from gradcli.graph.graph import Graph
from gradcli.graph.node import const, leaf
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.rewrite import common_subexpressions, optimise

SHAPES = {"a": (), "x": (3,), "z": (3,), "M": (2, 3)}

# Systems with several statements: smooth, and with outputs of several shapes.
SYSTEMS = [
    "y0 = 3*a**2; y1 = a**2 + 2*b**3; y2 = 10*b",
    "h = sin(x)*z; y = sum(h)/(1 + a**2); w = h*a",
    "h = M @ x; y = tanh(h); n = norm(h + 4)",
    "c = x - mean(x); v = sum(c*c); y = c/sqrt(v + 1); u = v*a",
    "p = softmax(M @ x); y = logsumexp(x)*p; q = prod(x + z)",
    "r = concatenate([x, z])[::-2]; y = outer(r, x) @ z; t = trace(M.T @ M); s = cumsum(y)[0]*t",
]
# The same system in one piece and in two: the second reads what the first computes.
SPLIT = [
    ("h = sin(x)*a", "y = sum(h**2); w = h*z"),
    ("h = M @ x; k = sum(x)*a", "y = exp(-h)*k + h[0]; u = stack([k, h[1]])"),
    ("G = outer(x, z); k = norm(x + 3)", "y = G @ z/k; T = G.T*a"),
]

# Read by nodes and by NumPy: x is a leaf, c a constant.
ARITHMETIC = [
    "x + c", "c + x", "x - c", "c - x", "x*c", "c*x", "x/c", "c/x", "x**c", "(x*x)**c", "c**x", "-(-x*c)",
    "3*(x*c)", "c*(2*x)", "c*(x*2)", "-x*c", "(c + 1)*(1 - c)*x", "c**2*x",
]  # fmt: skip


@cache
def graph_of(system):
    return parse(system, **SHAPES)


backward = cache(vjp)


def points(graph, seed=False):
    """Draw a value for each input of the graph, and with `seed` a cotangent for each output."""
    shapes = {name: x.shape for name, x in graph.inputs.items()}
    if seed:
        shapes |= {f"{name}.v": y.shape for name, y in graph.outputs.items()}
    numbers = st.floats(-2, 2, allow_subnormal=False)
    return st.fixed_dictionaries({name: arrays(float, shape, elements=numbers) for name, shape in shapes.items()})


def vectors(*nodes):
    """Draw a vector with a number for each element, for each of the groups of nodes."""
    sizes = [sum(node.size for node in some.values()) for some in nodes]
    return st.tuples(*(arrays(float, size, elements=st.floats(-3, 3, allow_subnormal=False)) for size in sizes))


def run(graph, point):
    """Evaluate at one point; return the outputs by name."""
    found = evaluate(graph, {name: value[..., None] for name, value in point.items()})
    return {name: value[..., 0] for name, value in found.items()}


def pullback(graph, point, v):
    """Return vᵀJ as one vector, for v as one."""
    ends = np.cumsum([y.size for y in graph.outputs.values()])
    parts = np.split(v, ends[:-1])
    outputs = zip(graph.outputs.items(), parts, strict=True)
    cotangents = {f"{name}.v": part.reshape(y.shape) for (name, y), part in outputs}
    return flat(run(backward(graph), point | cotangents))


def flat(values):
    return np.concatenate([np.ravel(value) for value in values.values()])


@cache
def jacobian_of(graph):
    return NumericJacobian(graph, list(graph.inputs))


def jacobian(graph, point):
    return jacobian_of(graph)(point)


def close(a, b):
    assert_allclose(a, b, rtol=1e-10, atol=1e-10 * (1 + np.abs(b).max()))


systems = pytest.mark.parametrize("system", SYSTEMS)
law = settings(max_examples=examples(16), deadline=None)


@systems
@law
@given(data=st.data(), alpha=st.floats(-3, 3), beta=st.floats(-3, 3))
def test_gradient_is_linear_in_v(system, data, alpha, beta):
    graph = graph_of(system)
    point, u, v = data.draw(points(graph)), *data.draw(vectors(graph.outputs, graph.outputs))
    whole = pullback(graph, point, alpha * u + beta * v)
    close(whole, alpha * pullback(graph, point, u) + beta * pullback(graph, point, v))


@systems
@law
@given(data=st.data())
def test_product_with_the_jacobian_is_associative(system, data):
    graph = graph_of(system)
    point, u, v = data.draw(points(graph)), *data.draw(vectors(graph.inputs, graph.outputs))
    close(pullback(graph, point, v) @ u, v @ (jacobian(graph, point) @ u))


@systems
@law
@given(data=st.data())
def test_ones_is_the_sum_of_the_rows(system, data):
    graph = graph_of(system)
    point = data.draw(points(graph))
    size = sum(y.size for y in graph.outputs.values())
    close(sum(pullback(graph, point, v) for v in np.eye(size)), pullback(graph, point, np.ones(size)))


@systems
@law
@given(data=st.data())
def test_rows_follow_the_outputs(system, data):
    graph = graph_of(system)
    point = data.draw(points(graph))
    order = data.draw(st.permutations(list(graph.outputs)))
    whole = jacobian(graph, point)
    ends = np.cumsum([y.size for y in graph.outputs.values()])
    blocks = dict(zip(graph.outputs, np.split(whole, ends[:-1]), strict=True))
    permuted = Graph(graph.nodes, graph.inputs, {name: graph.outputs[name] for name in order})
    close(jacobian(permuted, point), np.concatenate([blocks[name] for name in order]))


@systems
@law
@given(data=st.data())
def test_columns_follow_wrt(system, data):
    graph = graph_of(system)
    point = data.draw(points(graph))
    names = list(graph.inputs)
    wrt = data.draw(st.permutations(names))[:2]
    ends = np.cumsum([node.size for node in graph.inputs.values()])
    blocks = np.split(jacobian(graph, point), ends[:-1], axis=1)
    expected = [blocks[names.index(name)] for name in wrt]
    close(numeric_jacobian(graph, wrt, point), np.concatenate(expected, axis=1))


@cache
def read_after(inner, system):
    """Return the graph of a system that reads the outputs of another one."""
    return parse(system, **SHAPES | {name: h.shape for name, h in inner.outputs.items()})


@pytest.mark.parametrize(("first", "second"), SPLIT)
@law
@given(data=st.data())
def test_chain_rule_across_two_systems(first, second, data):
    whole, inner = graph_of(f"{first}; {second}"), graph_of(first)
    outer = read_after(inner, second)
    point = data.draw(points(whole, seed=True))
    expected = run(backward(whole), point)

    handed_over = run(backward(outer), point | run(inner, point))
    back = run(backward(inner), point | {f"{name}.v": handed_over[f"{name}.grad"] for name in inner.outputs})
    for name, grad in expected.items():
        close(back.get(name, 0) + handed_over.get(name, 0), grad)


def merged(graph):
    """Return the graph of the common_subexpressions of its outputs."""
    same = common_subexpressions(graph.nodes)
    return Graph.of(graph.inputs, {name: same[y] for name, y in graph.outputs.items()})


def read(graph):
    """Return the graph of what its outputs read."""
    return Graph.of(graph.inputs, graph.outputs)


@systems
@pytest.mark.parametrize("shorten", [optimise, merged, read])
@law
@given(data=st.data())
def test_passes_keep_values(shorten, system, data):
    grads = backward(graph_of(system))
    shorter = shorten(grads)
    assert len(shorter.nodes) <= len(grads.nodes)
    assert list(shorter.inputs.items()) == list(grads.inputs.items())
    point = data.draw(points(grads))
    before, after = run(grads, point), run(shorter, point)
    assert list(before) == list(after)
    assert_array_equal(flat(before), flat(after))


def test_optimised_graph_repeats_nothing_and_computes_nothing_unread():
    graph = parse("a = sin(x) + 1; y = sin(x)*(sin(x) + 1); unread = a*2", x=(3,))
    shorter = optimise(Graph(graph.nodes, graph.inputs, {"y": graph.outputs["y"]}))
    assert [node.op for node in shorter.nodes] == ["input", "sin", "const", "add", "mul"]


@pytest.mark.parametrize("value", [0, 1, -1, 2, Fraction(1, 3), Decimal("0.1")])
def test_arithmetic_between_nodes_is_simplified_without_a_change(value):
    for shape, constant in [((), ()), ((2,), ()), ((), (2,)), ((2,), (1, 2)), ((2, 1), (2,))]:
        x, c = leaf(shape), const(value, constant)
        point = np.array([0.7, 1.9])[: x.size].reshape(x.shape)
        for text in ARITHMETIC:
            node = eval(text, {"x": x, "c": c})
            with np.errstate(all="ignore"):
                expected = eval(text, {"x": point, "c": np.full(constant, float(value))})
            assert node.shape == expected.shape, text
            found = run(Graph.of({"x": x}, {"y": node}), {"x": point})["y"]
            assert_allclose(found, expected, rtol=1e-15, err_msg=text)


def test_gradients_accumulate_where_a_name_is_read_twice():
    (grad,) = run(vjp(parse("h = 2*x; y = h*h + 3*h")), {"x": np.array(5.0), "y.v": np.array(1.0)}).values()
    assert grad == 8 * 5 + 6


@pytest.mark.parametrize(
    "text",
    [
        "x**3*y**2 + x*y",
        "sin(x*y) + cos(x)**2",
        "exp(-x**2 - y**2/2)",
        "log(1 + x**2 + y**4)",
        "x/(1 + y**2) - sqrt(2 + x*y + y**2)",
        "atan(x/y) + tanh(x - y)",
        "100*(y - x**2)**2 + (1 - x)**2",
        "(2 + x)**y + gamma(y)*erf(x)",
    ],
)
def test_hessian_is_sympys(text):
    variables = sympy.symbols("x y")
    hessian = sympy.lambdify(variables, sympy.hessian(sympy.sympify(text), variables).evalf(20), "mpmath")
    grads = vjp(parse(f"f = {text}"))
    for x, y in [(0.3, 1.7), (-0.8, 0.6), (1.1, 2.2)]:
        # A Hessian is the Jacobian of the gradient.
        point = {"x": np.array(x), "y": np.array(y), "f.v": np.array(1.0)}
        close(numeric_jacobian(grads, ["x", "y"], point), np.array(hessian(x, y).tolist(), dtype=float))


def at(graph, x):
    """Return the value of a system's one output."""
    return np.asarray(evaluate(graph, {"x": np.array(x)[..., None]})["y"][..., 0])


def elementwise_graph(op, x, *others):
    return Graph.of({"x": x}, {"y": call(op, x, *others)})


@pytest.mark.parametrize("op", [op for op, row in OPERATIONS.items() if row.odd and row.broadcasts])
def test_odd_functions_have_the_sign_of_their_argument(op):
    graph = elementwise_graph(op, leaf((3,)))
    ahead = at(graph, [0.0, 0.3, 0.9])
    assert_array_equal(at(graph, [0.0, -0.3, -0.9]), -ahead)
    assert ahead[0] == 0
    assert all(ahead[1:] > 0)


@pytest.mark.parametrize("op", [op for op, row in OPERATIONS.items() if row.degree is not None])
def test_results_grow_by_the_degree(op):
    row, x = OPERATIONS[op], leaf((2, 2))
    if row.kind == "matrix":
        graph = Graph.of({"x": x}, {"y": getattr(matrices, op)(x)})
    else:
        graph = (
            elementwise_graph(op, x, *[const(0.1)] * (row.arity - 1))
            if row.broadcasts
            else parse(f"y = {op}(x)", x=(2, 2))
        )
    point = np.array([[0.9, 0.2], [0.2, 0.5]])
    assert_allclose(at(graph, 3 * point), 3.0 ** float(row.degree) * at(graph, point), rtol=1e-12)
