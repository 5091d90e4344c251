"""Lowering keeps values: composite operations against NumPy's formulas, signs and twos to the bit."""

import sys
from itertools import product
from math import erfc, factorial

import numpy as np
import pytest
from conftest import each
from numpy.testing import assert_allclose, assert_array_equal

from gradcli import evaluate, parse, vjp
from gradcli.engine.lowering import lower
from gradcli.graph.construct import call, corner
from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.node import Node, leaf
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.rewrite import optimise
from tests.graph.test_operations import EXPRESSIONS, SHAPES, built

COMPOSITE = {op for op, row in OPERATIONS.items() if row.for_engines}


def _ndtr(x):
    return np.vectorize(erfc)(-x / np.sqrt(2)) / 2


def _i1(x):
    return sum((x / 2) ** (2 * k + 1) / (factorial(k) * factorial(k + 1)) for k in range(60))


def _softplus(x):
    return np.logaddexp(0, x)


def _sigmoid(x):
    return np.where(x < 0, np.exp(np.minimum(x, 0)) / (1 + np.exp(-np.abs(x))), 1 / (1 + np.exp(-np.abs(x))))


# What each composite operation of numbers is, as NumPy has it: (text, or a function of a node, the same in NumPy).
# Those of arrays are compared in `test_operations`.
FORMULAS = {
    "pow": [
        ("{x}**2", lambda x: x * x),
        ("{x}**3", lambda x: x * x * x),
        ("{x}**-1", lambda x: 1 / x),
        ("{x}**-2", lambda x: 1 / (x * x)),
        ("{x}**1", lambda x: x),
        ("{x}**0.5", lambda x: np.power(x, 0.5)),
        ("{x}**2.5", lambda x: np.power(x, 2.5)),
        ("{x}**{x}", lambda x: np.power(x, x)),
        ("2**{x}", lambda x: np.power(2, x)),
    ],
    "i0": [("i0({x})", np.i0), ("i0(15*{x})", lambda x: np.i0(15 * x))],
    "i1": [("i1({x})", _i1), ("i1(-0.1*{x})", lambda x: _i1(-0.1 * x))],
    "sec": [("sec({x})", lambda x: 1 / np.cos(x))],
    "csc": [("csc({x})", lambda x: 1 / np.sin(x))],
    "cot": [("cot({x})", lambda x: np.cos(x) / np.sin(x))],
    "sech": [("sech({x})", lambda x: 1 / np.cosh(x))],
    "relu": [("relu({x})", lambda x: np.maximum(x, 0))],
    "leaky_relu": [
        ("leaky_relu({x}, 0.3)", lambda x: np.where(x > 0, x, 0.3 * x)),
        ("leaky_relu(2, {x})", lambda x: np.full(x.shape, 2.0)),
        ("leaky_relu({x}, -1)", np.abs),
    ],
    "sigmoid": [("sigmoid({x})", _sigmoid), ("-sigmoid(-(-{x}))", lambda x: -_sigmoid(x))],
    "silu": [("silu({x})", lambda x: x * _sigmoid(x))],
    "gelu": [("gelu({x})", lambda x: x * _ndtr(x))],
    "mish": [("mish({x})", lambda x: x * np.tanh(_softplus(x)))],
    "elu": [
        ("elu({x})", lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0)))),
        ("elu({x}, -2)", lambda x: np.where(x > 0, x, -2 * np.expm1(np.minimum(x, 0)))),
    ],
    "selu": [
        (
            "selu({x})",
            lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0))),
        )
    ],
    "celu": [("celu({x}, 3)", lambda x: np.where(x > 0, x, 3 * np.expm1(np.minimum(x, 0) / 3)))],
    "hardtanh": [("hardtanh({x})", lambda x: x.clip(-1, 1)), ("hardtanh({x}, 0, 2)", lambda x: x.clip(0, 2))],
    "logsigmoid": [("logsigmoid({x})", lambda x: -_softplus(-x))],
    "softsign": [("softsign({x})", lambda x: x / (1 + np.abs(x)))],
    "tanhshrink": [("tanhshrink({x})", lambda x: x - np.tanh(x))],
    "exp2": [("exp2({x})", np.exp2)],
    "ndtr": [("ndtr({x})", lambda x: _ndtr(x))],
    "logaddexp": [
        ("logaddexp({x}, 1)", lambda x: np.logaddexp(x, 1)),
        ("logaddexp(2, -{x})", lambda x: np.logaddexp(2, -x)),
    ],
    "trunc": [("trunc({x})", np.trunc)],
    "frac": [("frac({x})", lambda x: x - np.trunc(x))],
    "fmod": [("fmod({x}, 0.7)", lambda x: np.fmod(x, 0.7)), ("fmod({x}, -1.1)", lambda x: np.fmod(x, -1.1))],
    "lerp": [
        ("lerp({x}, 2, 0.3)", lambda x: x + 0.3 * (2 - x)),
        ("lerp(1, 2, {x})", lambda x: 1 + x),
        ("lerp({x}, {x}*{x}, 1)", lambda x: x * x),
    ],
    "detach": [("detach({x})", lambda x: x)],
    "huber": [
        ("huber({x})", lambda x: np.where(np.abs(x) > 1, np.abs(x) - 0.5, x * x / 2)),
        ("huber({x}, 2)", lambda x: np.where(np.abs(x) > 2, 2 * np.abs(x) - 2, x * x / 2)),
    ],
    "log_loss": [
        (
            "log_loss(sin({x})**2, 0.3)",
            lambda x: -(0.3 * np.log(np.sin(x) ** 2) + 0.7 * np.log1p(-(np.sin(x) ** 2))),
        )
    ],
    "logistic_loss": [("logistic_loss({x}, 0.3)", lambda x: 0.7 * _softplus(x) + 0.3 * _softplus(-x))],
    "corner": [
        (lambda x: corner(x > 0, x * x, x / 3), lambda x: np.where(x > 0, x * x, x / 3)),
        (lambda x: corner(x <= 1, 2, 1 - x), lambda x: np.where(x <= 1, 2, 1 - x)),
    ],
}
# What `x` may be: simplification looks into an argument, and into its arguments.
ARGUMENTS = [
    ("x", lambda x: x),
    ("(-x)", lambda x: -x),
    ("(-(-x))", lambda x: x),
    ("(-(-(-x)))", lambda x: -x),
    ("(2*(3*x))", lambda x: 6 * x),
    ("(1*(1*x))", lambda x: x),
    ("(-1*(x/-1))", lambda x: x),
    ("(0.5*(x*4) - -x)", lambda x: 3 * x),
    ("(0*x + 1)", np.ones_like),
    ("(0*x - 1)", lambda x: -np.ones_like(x)),
    ("(1/x)", lambda x: 1 / x),
    ("(x**2)", lambda x: x * x),
    ("(-(x**-1))", lambda x: -1 / x),
]
POINT = np.array([[0.4, 2.1, -0.7], [-1.3, 0.9, 1.6]])


def graph_of(formula, argument="x"):
    """Return the graph of a composite operation of an argument that is written in x."""
    if isinstance(formula, str):
        return parse(f"y = {formula.format(x=argument)}", x=POINT.shape)
    inner = parse(f"y = {argument}", x=POINT.shape)
    return Graph.of(inner.inputs, {"y": formula(inner.outputs["y"])})


def values(graph, x):
    """Return the value of a graph at one point, lowered and run."""
    with np.errstate(all="ignore"):
        (value,) = evaluate(graph, {"x": x[..., None]}).values()
    return value[..., 0]


def operations(graph):
    """Return the operations that are left when a graph is lowered and optimised, leaves and constants aside."""
    simpler = lower(graph.nodes)
    nodes = optimise(Graph.of(graph.inputs, {name: simpler[y] for name, y in graph.outputs.items()})).nodes
    return [n.op for n in nodes if n.op not in ("input", "const")]


def test_no_composite_operation_is_forgotten():
    assert set(FORMULAS) == {op for op in COMPOSITE if OPERATIONS[op].broadcasts}


@each(("op", "text", "formula"), [(op, *row) for op, rows in FORMULAS.items() for row in rows])
def test_lowered_value_is_the_formulas(op, text, formula):
    for argument, inner in ARGUMENTS:
        with np.errstate(all="ignore"):
            expected = formula(inner(POINT))
        found = values(graph_of(text, argument), POINT)
        assert_allclose(found, expected, rtol=1e-13, atol=1e-15, err_msg=argument)


@each("op", sorted(COMPOSITE - {"pow"}))
def test_engines_need_no_composite_operation(op):
    graphs = [graph_of(text, argument) for (text, _), (argument, _) in product(FORMULAS.get(op, []), ARGUMENTS)]
    graphs += [parse(e, **SHAPES) if isinstance(e, str) else built(e) for e in EXPRESSIONS.get(op, [])]
    assert graphs
    for graph in graphs:
        assert not (COMPOSITE - {"pow"}) & set(operations(graph))


# Far out, where a textbook's formula overflows or loses all digits: text, x, value.
FAR = [
    ("softmax(x)", [1000, 1000, 0], [0.5, 0.5, 0]),
    ("softmax(x)", [-1000, -1001, -3000], [1 / (1 + np.exp(-1)), 1 / (1 + np.exp(1)), 0]),
    ("logsumexp(x)", [1000, 1000], 1000 + np.log(2)),
    ("logsumexp(x)", [-1000, -1000], -1000 + np.log(2)),
    ("logsumexp(-x)", [1000, 1000], -1000 + np.log(2)),
    ("logsumexp(x)", [-np.inf, -np.inf], -np.inf),
    ("logsumexp(x)", [np.inf, 0], np.inf),
    ("var(x)", [1e8 + 1, 1e8 + 2, 1e8 + 3], 1),
    ("std(x)", [1e8 + 1, 1e8 + 2, 1e8 + 3], 1),
    ("sigmoid(x)", [-800, -40, 800], [0, np.exp(-40), 1]),
    ("sigmoid(-x)", [-800, 40, 800], [1, np.exp(-40), 0]),
    ("silu(x)", [-800, 800], [0, 800]),
    ("gelu(x)", [-40, 40], [0, 40]),
    ("gelu(-x)", [10], [-7.619853024160527e-23]),
    ("sech(x)", [-800, 800], [0, 0]),
    ("softplus(x)", [-800, -40, 800], [0, np.exp(-40), 800]),
]


@pytest.mark.parametrize(("text", "x", "expected"), FAR)
def test_lowered_value_far_out(text, x, expected):
    point = np.array(x, dtype=float)
    assert_allclose(values(parse(f"y = {text}", x=point.shape), point), expected, rtol=1e-14)


# A sign is moved where that is exact. Each is read by gradcli and by Python: text, the operations that are left.
SIGNS = [
    ("-a + b", ["sub"]),
    ("a + -b", ["sub"]),
    ("-a + -b", ["neg", "sub"]),
    ("a - -b", ["add"]),
    ("-a - b", ["neg", "sub"]),
    ("-a - -b", ["neg", "add"]),
    ("-a*b", ["mul", "neg"]),
    ("a*-b", ["mul", "neg"]),
    ("-a*-b", ["mul"]),
    ("-a/b", ["div", "neg"]),
    ("a/-b", ["div", "neg"]),
    ("-a/-b", ["div"]),
    ("-(-a)*b", ["mul"]),
    ("a + -b*a", ["mul", "sub"]),
    ("a - b/-a", ["div", "add"]),
    ("-a*b - a*-b", ["mul", "neg", "add"]),
    ("-a*-b*-a*-b", ["mul", "mul", "mul"]),
    ("1/(-a*b)", ["mul", "div", "neg"]),
    ("-1*a + b", ["mul", "add"]),
]
SPECIAL = np.array([0.0, -0.0, 1, -1, 3, np.inf, -np.inf, np.nan, 1e-320, -1e308])


@pytest.mark.parametrize(("text", "left"), SIGNS)
def test_signs_are_moved_to_the_bit(text, left):
    graph = parse(f"y = {text}")
    a, b = (v.ravel() for v in np.meshgrid(SPECIAL, SPECIAL))
    (found,) = evaluate(graph, {"a": a, "b": b}).values()
    with np.errstate(all="ignore"):
        expected = eval(text, {"a": a, "b": b})
    known = ~np.isnan(expected)
    assert_array_equal(found, expected)
    assert_array_equal(np.signbit(found[known]), np.signbit(expected[known]))
    assert operations(graph) == left


# The 2 that a square leaves behind goes to the other factor, where it may meet another: text, operations, those left.
TWOS = [
    ("b*(2*a)", 2, ["mul", "mul"]),
    ("(2*a)*(2*b)", 3, ["mul", "mul", "mul"]),
    ("-b*(2*a)", 3, ["mul", "mul", "neg"]),
    ("(b/(2*a))*(2*b)", 4, ["div", "mul"]),
    ("(1/(2*a))*(b*2)", 4, ["div", "mul"]),
    ("b*(2*a) + b*(2*b)", 5, ["mul", "mul", "mul", "add"]),
    ("b*(3*a)", 2, ["mul", "mul"]),
]
MODERATE = np.array([0.0, -0.0, 1, -1, 3, 1 / 3, np.inf, -np.inf, np.nan, 1e-320, 1e-160, -1e150])


@pytest.mark.parametrize(("text", "before", "left"), TWOS)
def test_twos_are_moved_to_the_bit(text, before, left):
    graph = parse(f"y = {text}")
    a, b = (v.ravel() for v in np.meshgrid(MODERATE, MODERATE))
    (found,) = evaluate(graph, {"a": a, "b": b}).values()
    with np.errstate(all="ignore"):
        assert_array_equal(found, eval(text, {"a": a, "b": b}))
    assert len([n for n in graph.nodes if n.args]) == before
    assert operations(graph) == left


def test_one_doubled_cotangent_serves_a_sum_of_squares():
    graph = vjp(parse("y = sqrt(sum(x**2))", x=(3,)))
    # The 2 of each square and that of the root are gone: y.v/y·x.
    assert operations(graph) == ["mul", "sum", "sqrt", "div", "broadcast", "mul"]


def test_lowering_does_not_recurse():
    x = y = leaf()
    for _ in range(8_000):
        y = Node("sin", (Node("neg", (Node("mul", (Node("neg", (y,)), x)),)),))
    y = call("sigmoid", y)
    nodes = scheduled([y])
    assert len(nodes) > 30_000 > 15 * sys.getrecursionlimit()
    assert [n.op for n in scheduled([lower(nodes)[y]])[-5:]] == ["sin", "neg", "softplus", "neg", "exp"]
