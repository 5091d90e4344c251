"""Where structural functions have no number, or PyTorch none of its own: singular matrices, the ends of the range."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gradcli import evaluate, parse, vjp

SINGULAR = {
    1: [[0]],
    2: [[1, 2], [2, 4]],
    3: [[1, 2, 0], [2, 4, 0], [0, 0, 1]],
    4: [[1, 2, 0, 0], [2, 4, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]],
}


def value_of(expression, **inputs):
    at = {name: np.array(value, dtype=float) for name, value in inputs.items()}
    graph = parse(f"y = {expression}", **{name: a.shape for name, a in at.items()})
    return evaluate(graph, {name: a[..., None] for name, a in at.items()})["y"][..., 0]


def gradient_of(expression, x):
    x = np.array(x, dtype=float)
    graph = vjp(parse(f"y = {expression}", x=x.shape))
    return evaluate(graph, {"x": x[..., None], "y.v": np.ones(1)})["x.grad"][..., 0]


@pytest.mark.parametrize("n", SINGULAR)
def test_a_singular_matrix_has_no_inverse_and_no_solutions(n):
    assert np.isnan(value_of("inv(x)", x=SINGULAR[n])).all()
    assert np.isnan(value_of("solve(x, b)", x=SINGULAR[n], b=np.ones(n))).all()
    assert value_of("det(x)", x=SINGULAR[n]) == 0


def test_of_a_stack_only_the_singular_matrices_have_none():
    stack = np.random.default_rng(0).normal(size=(9, 4, 4))
    stack[[2, 7]] = SINGULAR[4]
    stack[5, 0, 0] = np.nan
    found = value_of("inv(x)", x=stack)
    lost = [2, 5, 7]
    assert np.isnan(found[lost]).any(axis=(1, 2)).all()
    for k in set(range(9)) - set(lost):
        assert_allclose(found[k], np.linalg.inv(stack[k]), rtol=1e-12)


def test_the_warning_names_the_operation(cli):
    outcome = cli("backward", "y = inv(M)", "--at", "M=[[1,2],[2,4]]", "--v", "ones")
    assert outcome.status == 0
    assert "warning: M.grad[0,0] is nan: it arises in `inv` (inv(M)), whose value is not finite" in outcome.err
    outcome = cli("backward", "y = solve(M, [1, 2, 3])", "--at", "M=[[1,2,0],[2,4,0],[0,0,1]]", "--v", "ones")
    assert "it arises in `solve`" in outcome.err
    assert "Traceback" not in outcome.err


# The gradient of det is a polynomial, which singular matrices have as well: its cofactors.
COFACTORS = [
    ([[5]], [[1]]),
    ([[0, 0], [0, 0]], [[0, 0], [0, 0]]),
    ([[1, 2], [2, 4]], [[4, -2], [-2, 1]]),
    ([[1, 2, 3], [4, 5, 6], [7, 8, 9]], [[-3, 6, -3], [6, -12, 6], [-3, 6, -3]]),
    (np.diag([2, 3, 5, 0]), np.diag([0, 0, 0, 30])),
    (np.diag([2, 3, 0, 0]), np.zeros((4, 4))),
    (np.ones((5, 5)), np.zeros((5, 5))),
]


@pytest.mark.parametrize(("matrix", "cofactors"), COFACTORS)
def test_the_gradient_of_a_determinant(matrix, cofactors):
    assert_allclose(gradient_of("det(x)", matrix), cofactors, atol=1e-12)


@pytest.mark.parametrize("n", [2, 3])
def test_the_second_derivative_of_a_determinant_at_0(n):
    graph = vjp(vjp(parse("y = det(x)", x=(n, n))))
    v = np.arange(1.0, n * n + 1).reshape(n, n, 1)
    found = evaluate(graph, {"x": np.zeros((n, n, 1)), "y.v": np.ones(1), "x.grad.v": v})["x.grad"][..., 0]
    assert_array_equal(found, [[4, -3], [-2, 1]] if n == 2 else np.zeros((3, 3)))


def test_small_matrices_have_the_numbers_of_a_textbook():
    matrix = [[1, 2], [3, 4]]
    assert value_of("det(x)", x=matrix) == -2
    assert_array_equal(value_of("inv(x)", x=matrix), [[-2, 1], [1.5, -0.5]])
    assert_array_equal(value_of("solve(x, b)", x=matrix, b=[5, 6]), [-4, 4.5])
    assert value_of("det(x)", x=[[1, 2, 3], [4, 5, 6], [7, 8, 9]]) == 0


@pytest.mark.parametrize("scale", [1e-170, 1e160])
def test_products_that_leave_the_range_do_no_harm(scale):
    matrix = np.array([[2, 1], [1, 3]]) * scale
    assert_allclose(value_of("inv(x)", x=matrix) * scale, [[0.6, -0.2], [-0.2, 0.4]], rtol=1e-14)
    assert_allclose(value_of("solve(x, b)", x=matrix, b=[5 * scale, 5 * scale]), [2, 1], rtol=1e-14)
    small = np.diag([1 / scale, scale, 1.0])
    assert_allclose(value_of("det(x)", x=small), 1, rtol=1e-13)


def test_zeros_in_a_running_product_divide_nothing():
    assert_array_equal(gradient_of("sum(cumprod(x))", [2, 0, 3, 0, 4]), [1, 8, 0, 0, 0])
    assert_array_equal(gradient_of("cumprod(x)[2]", [1e-200, 1e-200, 1e200]), [1, 1, 0])


def test_a_nan_is_the_largest():
    x = [1, np.nan, 0, np.nan]
    assert_array_equal(value_of("sort(x)", x=x), [0, 1, np.nan, np.nan])
    assert_array_equal(value_of("argsort(x)", x=x), [2, 0, 1, 3])
    assert_array_equal(value_of("argsort(x, descending=True)", x=x), [1, 3, 0, 2])
    assert np.isnan(value_of("median(x)", x=x))
    assert value_of("argmax(x)", x=x) == value_of("argmin(x)", x=x) == 1


def test_what_a_convolution_does_not_touch_is_no_entry(cli, tmp_path):
    (tmp_path / "points.csv").write_text("x[0],x[1],x[2],w[0],w[1]\n1,2,3,4,5\n")
    arguments = ("jacobian", "y = conv1d([x], [[w]])", "--points", str(tmp_path / "points.csv"), "--wrt", "x")
    assert cli.done(*arguments, "--sparse").out == (
        '"dy[0,0]/dx[0]","dy[0,0]/dx[1]","dy[0,1]/dx[1]","dy[0,1]/dx[2]"\n4.0,5.0,4.0,5.0\n'
    )


WINDOWS = 'y = einsum("chi,oci->oh", x[:, [[0, 1], [1, 2]]], w)'
AT = ("--at", "x=[[1,2,3]],w=[[[4,5]]]", "--v", "ones", "--steps")


def test_the_gradient_of_a_convolution_is_a_transposed_one(cli, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    out = cli.done("backward", "y = conv1d(x, w)", *AT).out
    assert "x̄ = conv_transpose1d(v, w) " in out
    values = [cli.done("backward", system, *AT, "-f", "json").out for system in ("y = conv1d(x, w)", WINDOWS)]
    assert json.loads(values[0])["grad"] == json.loads(values[1])["grad"]


# Of x = inv(M) @ b, by the elements of M; SymPy writes the factors in the order of their names.
PRODUCTS = [sorted((f"inv(M)[1, {i}]", f"inv(M)[{j}, 0]")) for i in range(4) for j in range(4)]
INVERTED = [f"-{a}**2" if a == b else f"-{a}*{b}" for a, b in PRODUCTS]
FORMULAS = [
    ("y = det(M)", "M=2x2", ["M[1,1]", "-M[1,0]", "-M[0,1]", "M[0,0]"]),
    ("y = det(M)", "M=4x4", [f"det(M)*inv(M)[{j}, {i}]" for i in range(4) for j in range(4)]),
    ("y = solve(M, [1, 0, 0, 0])[1]", "M=4x4", INVERTED),
    ("y = sort(x)[1]", "x=3", [f"where(argsort(x)[1] == {i}, 1, 0)" for i in range(3)]),
    ("y = topk(x, 1)[0]", "x=2", [f"where(argsort(x, descending=True)[0] == {i}, 1, 0)" for i in range(2)]),
    ("y = max_pool1d([x], 2)[0, 0]", "x=2", [f"where(argmax([x[0], x[1]]) == {i}, 1, 0)" for i in range(2)]),
    ("y = median(x, axis=0)", "x=3", [f"where(argsort(x)[1] == {i}, 1, 0)" for i in range(3)]),
    ("y = sum(sort(x**2))", "x=2", ["2*x[0]", "2*x[1]"]),
    ("y = cumprod(x)[2]", "x=3", ["x[1]*x[2]", "x[0]*x[2]", "x[0]*x[1]"]),
    ("y = cross(x, [1, 2, 3])[0]", "x=3", ["0", "3", "-2"]),
]


@pytest.mark.parametrize(("system", "shape", "row"), FORMULAS)
def test_formulas_are_those_of_a_textbook(cli, system, shape, row):
    assert cli.json("jacobian", system, "--shape", shape)["symbolic"] == [row]


@pytest.mark.parametrize("expression", ["sort(x)", "sort(x, descending=True)[0]", "argsort(x)*x"])
def test_formulas_that_would_take_minutes_are_refused(cli, expression):
    assert "are too many to compute" in cli("jacobian", f"y = {expression}", "--shape", "x=400").refused()
