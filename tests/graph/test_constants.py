"""Arrays of numbers are one constant: read, computed, written, shared, pickled, and fast."""

import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from gradcli import evaluate, numeric_jacobian, parse, symbolic_jacobian, vjp
from gradcli.engine.compiled import Compiled
from gradcli.engine.schedule import Schedule
from gradcli.graph.construct import broadcast, index, reshape, stack
from gradcli.graph.graph import Graph
from gradcli.graph.node import const, elementwise, leaf
from gradcli.graph.rewrite import optimise
from gradcli.notation.latex import LatexNotation
from gradcli.notation.nodes import Notation

TYPED = {
    "[1, 2, 3]": ((3,), (1, 2, 3)),
    "[-1, 2.5, 1/3, pi, -inf]": None,
    "[[1, 2], [3, 4]]": ((2, 2), (1, 2, 3, 4)),
    "[[[1]], [[2]]]": ((2, 1, 1), (1, 2)),
    "[5]": ((1,), (5,)),
    "[1.0, 0.1]": ((2,), (Decimal("1.0"), Decimal("0.1"))),
    "[[1, 2], arange(2)]": ((2, 2), (1, 2, 0, 1)),
    "[1/2, 2**3]": ((2,), (Fraction(1, 2), 8)),
    "[nan, e]": ((2,), None),
}


@pytest.mark.parametrize("text", TYPED)
def test_a_list_of_numbers_is_one_node(text):
    node = parse(f"y = {text}; z = x").outputs["y"]
    if TYPED[text] is None:  # -inf is an operation
        assert node.op == "stack"
        return
    shape, values = TYPED[text]
    assert (node.op, node.shape, node.value) == ("const", shape, None)
    if values is not None:
        assert [(v, type(v)) for v in node.values] == [(v, type(v)) for v in values]


@pytest.mark.parametrize("text", ["[1, x]", "[[1, 2], [3, x]]", "[[1, 2], 2*[x, 1]]"])
def test_a_list_with_a_variable_is_a_stack(text):
    graph = parse(f"y = {text}")
    assert graph.outputs["y"].op == "stack"
    assert evaluate(graph, {"x": np.array([7.0])})["y"].ravel()[:1] == 1


def test_thousands_of_numbers_are_a_few_nodes():
    numbers = np.arange(20_000) / 8
    graph = parse(f"y = sum(x*{numbers.tolist()})", x=numbers.shape)
    assert [n.op for n in graph.nodes] == ["input", "const", "mul", "sum"]
    (grad,) = evaluate(vjp(graph), {"x": np.ones((20_000, 1)), "y.v": np.ones(1)}).values()
    assert_array_equal(grad[:, 0], numbers)


SYSTEM = "y = [[1, 2.5], [-3, 1/4]]@x + [1, 2]*x**[0, 1]/[3, 4] + [x[0], 1]"


@pytest.mark.parametrize("engine", ["numpy", "llvm"])
def test_engines_take_arrays_for_constants(engine):
    graph = vjp(parse(SYSTEM, x=(2,)))
    point = {"x": np.array([[0.0, 2.0], [3.0, -1.0]]), "y.v": np.ones((2, 2))}
    wanted = evaluate(graph, point)["x.grad"]
    assert_array_equal(Compiled(graph, engine=engine)(point)["x.grad"], wanted)
    assert_array_equal(wanted[:, 0], [-1, 3.25])
    steps = Schedule.of(graph, {}).steps
    assert all(n.op != "const" for n in steps)


def test_formulas_have_their_numbers():
    entries = symbolic_jacobian(parse(SYSTEM, x=(2,))).entries
    assert {p: str(e) for p, e in entries.items()} == {(0, 0): "2", (0, 1): "5/2", (1, 0): "-3", (1, 1): "3/4"}


def test_an_exponent_of_0_among_others_has_no_slope():
    """0**0 is 1 all around: 0·0**(-1) would be nan."""
    graph = parse("y = x**[0, 1, 2]; z = [0, 2, e]**x")
    rows = np.eye(6)
    at = {"x": np.zeros(1), "y.v": rows[:3], "z.v": rows[3:]}
    np.testing.assert_allclose(evaluate(vjp(graph), at)["x.grad"], [0, 1, 0, 0, np.log(2), 1])
    # The same by columns, where what selects comes before what is infinite.
    j = numeric_jacobian(graph, ["x"], {"x": np.array(0.0)})
    np.testing.assert_allclose(j[:, 0], [0, 1, 0, 0, np.log(2), 1])


def test_elements_and_shapes_are_known_at_once():
    numbers = const(tuple(range(6)), (2, 3))
    assert index(numbers, (1, 2)).value == 5
    assert index(numbers, (1,)).values == (3, 4, 5)
    assert index(numbers, (range(2), range(2, 0, -1))).values == (2, 1, 5, 4)
    assert index(numbers, (None, 0, range(1, 2))).shape == (1, 1)
    assert index(const(7, (2, 3)), (0,)).values == (7,)
    assert reshape(numbers, (3, 2)).values == numbers.values
    assert reshape(const(7, (2, 3)), (6,)).value == 7
    assert broadcast(numbers, (2, 2, 3)).op == "broadcast"
    assert stack([const(1), const(2)]).values == (1, 2)
    assert stack([const(0, (9, 9))] * 2).op == "stack"


def test_equal_arrays_are_one_node_unless_they_print_differently():
    ints, same = const((1, 2), (2,)), const((1, 2), (2,))
    decimals, shaped = const((Decimal(1), 2), (2,)), const((1, 2), (2, 1))
    outputs = dict(zip("abcd", (ints, same, decimals, shaped), strict=True))
    small = optimise(Graph.of({}, outputs))
    assert len(small.nodes) == 3
    assert small.outputs["a"] is small.outputs["b"]


def test_a_graph_is_pickled_with_its_arrays_and_conditions():
    graph = parse("y = where(x > [0, 1], x*[1, 2.5], 0)", x=(2,))
    again = pickle.loads(pickle.dumps(graph))
    assert [(n.op, n.settings, n.dtype) for n in again.nodes] == [(n.op, n.settings, n.dtype) for n in graph.nodes]
    point = {"x": np.array([[2.0], [0.5]]), "y.v": np.ones((2, 1))}
    assert_array_equal(evaluate(vjp(again), point)["x.grad"][:, 0], [1, 0])


def text_of(node, names):
    return Notation(names).expression(node), LatexNotation(names).expression(node)


def test_arrays_are_written_as_they_are_typed():
    x = leaf((2,))
    names = {x: "x"}
    numbers = const((1, Fraction(-1, 2)), (2,))
    assert text_of(elementwise("mul", numbers, x), names) == (
        "[1, -1/2]*x",
        r"\begin{pmatrix} 1 & -\frac{1}{2} \end{pmatrix}^{\top} \odot x",
    )
    matrix = const((1, "pi", Decimal("1E-7"), 4), (2, 2))
    assert text_of(matrix, names) == (
        "[[1, pi], [1e-7, 4]]",
        r"\begin{pmatrix} 1 & \pi \\ 1 \times 10^{-7} & 4 \end{pmatrix}",
    )
    assert text_of(const(tuple(range(9)), (9,)), {})[0] == "[0, 1, 2, 3, 4, 5, …]"


def test_a_filled_array_is_a_number_only_where_that_is_the_same():
    x = leaf((2,))
    names = {x: "x"}
    assert text_of(elementwise("add", x, const(2, (2,))), names) == ("x + 2", "x + 2")
    a = leaf()
    assert text_of(elementwise("add", a, const(2, (2,))), {a: "a"})[0] == "a + full((2,), 2)"
    assert text_of(const(0, (2, 3)), names) == ("zeros(2, 3)", r"\mathbf{0}_{2 \times 3}")
    assert text_of(const(1, (2,)), names) == ("ones(2)", r"\mathbf{1}_{2}")
    assert text_of(const(2, (2, 3)), names) == ("full((2, 3), 2)", r"2 \cdot \mathbf{1}_{2 \times 3}")
