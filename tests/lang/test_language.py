"""The language: its operators, its functions under all their names, exact numbers, names, indices and choices."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from gradcli import InputError, evaluate, parse


def value(text: str, **point):
    """Return what the last statement of a system is worth at a point."""
    arrays = {name: np.asarray(v, dtype=float) for name, v in point.items()}
    graph = parse(text, **{name: a.shape for name, a in arrays.items()})
    (found,) = evaluate(graph, {name: a[..., None] for name, a in arrays.items()}).values()
    return found[..., 0]


# Operators

VARIABLES = {"a": 0.75, "b": -1.5, "c": 2.25, "d": 0.3}
OPERATORS = ["+", "-", "*", "/", "**", "^", " - ", " * "]


def grown(parts):
    """Return larger expressions; a number never meets another, as gradcli works those out exactly."""
    operators = st.sampled_from(OPERATORS)
    number = st.sampled_from(["1", "2", "3", "0.5"])
    return st.one_of(
        st.tuples(parts, operators, parts).map("".join),
        st.tuples(number, operators, parts).map("".join),
        st.tuples(parts, operators, number).map("".join),
        parts.map("({})".format),
        parts.map("-{}".format),
        parts.map("+{}".format),
    )


EXPRESSIONS = st.recursive(st.sampled_from(sorted(VARIABLES)), grown, max_leaves=8)


def python_value(text: str) -> float:
    """Return what Python's float arithmetic makes of an expression of this file's own."""
    for number in ("1", "2", "3"):
        text = text.replace(number, f"{number}.0")
    try:
        found = eval(text.replace("0.5.0", "0.5").replace("^", "**"), {"__builtins__": {}}, dict(VARIABLES))
    except ArithmeticError:
        return math.nan
    return found if isinstance(found, float) else math.nan


@settings(max_examples=250, deadline=None)
@given(text=EXPRESSIONS)
@example(text="-a**2")
@example(text="c**-a**2")
@example(text="c**a**d")
@example(text="2^c^2/3")
@example(text="a-b-c")
@example(text="a/b/c*d")
@example(text="a - -b**2*-c")
def test_operators_bind_as_in_python(text):
    expected = python_value(text)
    assume(abs(expected) < 1e100)
    assert value(f"y={text}", **VARIABLES) == pytest.approx(expected, rel=1e-9, abs=1e-9)


M, N, X, Z = [[1.0, 2.0], [3.0, 4.0]], [[0.0, 1.0], [1.0, 5.0]], [1.0, -2.0], [0.5, 3.0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("M @ N", np.array(M) @ N),
        ("x @ M", np.array(X) @ M),
        ("M @ x", np.array(M) @ X),
        ("x @ z", np.array(X) @ Z),
        ("M @ N * 2", np.array(M) @ N * 2),
        ("2 * M @ N.T @ x", 2 * np.array(M) @ np.array(N).T @ X),
        ("M * x", np.array(M) * X),
        ("x % 1.5", np.array(X) % 1.5),
        ("M + x - 1", np.array(M) + X - 1),
    ],
)
def test_arrays(text, expected):
    np.testing.assert_allclose(value(f"y={text}+0*sum(M)+0*sum(N)+0*sum(x)+0*sum(z)", M=M, N=N, x=X, z=Z), expected)


# Functions: the names that PyTorch, NumPy and SymPy users type, and the same in NumPy


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


erf, erfc, gamma, lgamma = map(np.vectorize, (math.erf, math.erfc, math.gamma, math.lgamma))

UNARY = [
    ("abs Abs absolute", np.abs, -1.3),
    ("sign sgn", np.sign, -1.3),
    ("sqrt", np.sqrt, 1.3),
    ("cbrt", np.cbrt, -1.3),
    ("exp", np.exp, 1.3),
    ("expm1", np.expm1, 1e-9),
    ("log ln", np.log, 1.3),
    ("log1p", np.log1p, 1e-9),
    ("log2", np.log2, 1.3),
    ("log10", np.log10, 1.3),
    ("sin", np.sin, 1.3),
    ("cos", np.cos, 1.3),
    ("tan", np.tan, 1.3),
    ("sec", lambda x: 1 / np.cos(x), 1.3),
    ("csc", lambda x: 1 / np.sin(x), 1.3),
    ("cot", lambda x: 1 / np.tan(x), 1.3),
    ("asin arcsin", np.arcsin, 0.3),
    ("acos arccos", np.arccos, 0.3),
    ("atan arctan", np.arctan, 1.3),
    ("sinh", np.sinh, 1.3),
    ("cosh", np.cosh, 1.3),
    ("tanh", np.tanh, 1.3),
    ("asinh arcsinh", np.arcsinh, 1.3),
    ("acosh arccosh", np.arccosh, 1.3),
    ("atanh arctanh", np.arctanh, 0.3),
    ("erf", erf, 0.3),
    ("erfc", erfc, 3.0),
    ("gamma", gamma, 4.5),
    ("lgamma loggamma", lgamma, 4.5),
    ("digamma", lambda x: (lgamma(x + 1e-6) - lgamma(x - 1e-6)) / 2e-6, 4.5),
    ("floor", np.floor, -1.3),
    ("ceil ceiling", np.ceil, -1.3),
    ("relu", lambda x: np.maximum(x, 0), -1.3),
    ("relu", lambda x: np.maximum(x, 0), 1.3),
    ("leaky_relu", lambda x: np.where(x > 0, x, 0.01 * x), -1.3),
    ("sigmoid", sigmoid, 1.3),
    ("softplus", lambda x: np.log(1 + np.exp(x)), 1.3),
    ("silu", lambda x: x * sigmoid(x), 1.3),
    ("gelu", lambda x: x * (1 + erf(x / np.sqrt(2))) / 2, 1.3),
    ("heaviside Heaviside", lambda x: np.heaviside(x, 0.5), 0.0),
    ("square", np.square, -1.3),
]


@pytest.mark.parametrize(
    ("name", "numpy", "x"), [(name, numpy, x) for names, numpy, x in UNARY for name in names.split()]
)
def test_functions_of_one_number(name, numpy, x):
    expected = pytest.approx(float(numpy(x)), rel=1e-8 if name == "digamma" else 1e-14)
    assert value(f"y={name}(x)", x=x) == expected
    assert value(f"y=x.{name}()", x=x) == expected
    assert value(f"y=sum({name}(x))", x=[x, x]) / 2 == expected


BINARY = [
    ("atan2 arctan2", np.arctan2),
    ("mod Mod remainder", np.mod),
    ("maximum Max max", np.maximum),
    ("minimum Min min", np.minimum),
    ("hypot", np.hypot),
    ("pow Pow power", np.power),
    ("add", np.add),
    ("sub subtract", np.subtract),
    ("mul multiply", np.multiply),
    ("div divide", np.divide),
    ("heaviside", np.heaviside),
    ("leaky_relu", lambda x, slope: np.where(x > 0, x, slope * x)),
]


@pytest.mark.parametrize(("name", "numpy"), [(name, numpy) for names, numpy in BINARY for name in names.split()])
def test_functions_of_two_numbers(name, numpy):
    for a, b in [(1.3, 0.7), (0.4, 2.0)]:
        assert value(f"y={name}(a, b)", a=a, b=b) == pytest.approx(float(numpy(a, b)), rel=1e-14)


A = np.array([[0.5, -1.0, 2.0], [3.0, 0.25, -2.0]])
STRUCTURAL = [
    ("sum(A)", A.sum()),
    ("sum(A, axis=0)", A.sum(axis=0)),
    ("sum(A, 1)", A.sum(axis=1)),
    ("sum(A, axis=(0, 1))", A.sum()),
    ("sum(A, axis=-1, keepdims=True)", A.sum(axis=-1, keepdims=True)),
    ("mean(A, axis=0)", A.mean(axis=0)),
    ("prod(A)", A.prod()),
    ("max(A)", A.max()),
    ("min(A, axis=1)", A.min(axis=1)),
    ("amax(A, axis=0)", A.max(axis=0)),
    ("norm(A)", np.linalg.norm(A)),
    ("norm(A, axis=0)", np.linalg.norm(A, axis=0)),
    ("norm(A[0], 1)", np.linalg.norm(A[0], 1)),
    ("norm(A[0], p=inf)", np.linalg.norm(A[0], np.inf)),
    ("var(A)", A.var(ddof=1)),  # as in PyTorch
    ("var(A, axis=0, correction=0)", A.var(axis=0)),
    ("std(A)", A.std(ddof=1)),
    ("std(A, unbiased=False)", A.std()),
    ("matmul(A, A.T)", A @ A.T),
    ("mm(A, A.T)", A @ A.T),
    ("dot(A[0], A[1])", A[0] @ A[1]),
    ("outer(A[0], A[1])", np.outer(A[0], A[1])),
    ("trace(A @ A.T)", np.trace(A @ A.T)),
    ("transpose(A)", A.T),
    ("transpose(A, (1, 0))", A.T),
    ("reshape(A, 3, 2)", A.reshape(3, 2)),
    ("reshape(A, (6,))", A.reshape(6)),
    ("reshape(A, -1, 2)", A.reshape(-1, 2)),
    ("concatenate([A, A], axis=1)", np.concatenate([A, A], axis=1)),
    ("cat([A, A])", np.concatenate([A, A])),
    ("stack([A[0], A[1]], axis=1)", np.stack([A[0], A[1]], axis=1)),
    ("softmax(A)", np.exp(A) / np.exp(A).sum(axis=-1, keepdims=True)),
    ("softmax(A, axis=0)", np.exp(A) / np.exp(A).sum(axis=0)),
    ("logsumexp(A)", np.log(np.exp(A).sum())),
    ("logsumexp(A, axis=1)", np.log(np.exp(A).sum(axis=1))),
    ("cumsum(A, axis=0)", A.cumsum(axis=0)),
    ("cumsum(A[0])", A[0].cumsum()),
    ("diag(A[0])", np.diag(A[0])),
    ("diag(A @ A.T)", np.diag(A @ A.T)),
    ("clamp(A, -1, 1)", A.clip(-1, 1)),
    ("clip(A, min=0)", A.clip(0, None)),
    ("clamp(A, max=0.5)", A.clip(None, 0.5)),
    ("where(A > 0, A, 0)", np.where(A > 0, A, 0)),
    ("maximum(A, 0, -A)", np.abs(A)),
    # Methods, as they are pasted from PyTorch
    ("A.sum()", A.sum()),
    ("A.sum(dim=0)", A.sum(axis=0)),
    ("A.sum(1, keepdim=True)", A.sum(axis=1, keepdims=True)),
    ("A.mean()", A.mean()),
    ("A.norm()", np.linalg.norm(A)),
    ("A.T", A.T),
    ("A.t()", A.T),
    ("A.transpose(0, 1)", A.T),
    ("A.pow(2)", A**2),
    ("A.max()", A.max()),
    ("A.min(dim=0)", A.min(axis=0)),
    ("A.view(3, 2)", A.reshape(3, 2)),
    ("A.reshape(-1)", A.reshape(-1)),
    ("A.flatten()", A.ravel()),
    ("A.mm(A.T)", A @ A.T),
    ("A.clamp(min=0)", A.clip(0, None)),
    ("A.relu().sum()", A.clip(0, None).sum()),
    ("A.exp().log().abs()", np.abs(A)),
    ("(A*2).sum(dim=1)[0]", (A * 2).sum(axis=1)[0]),
]


@pytest.mark.parametrize(("text", "expected"), STRUCTURAL, ids=[text for text, _ in STRUCTURAL])
def test_functions_of_arrays(text, expected):
    found = value(f"y={text}", A=A)
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize(
    ("text", "gradient"),
    [
        ("norm(x, p=inf)", [0.5, -0.5, 0]),
        ("norm(x, p=inf, axis=0)", [0.5, -0.5, 0]),
        ("norm(x, p=inf, axis=-1, keepdims=True)[0]", [0.5, -0.5, 0]),
        ("norm(stack([x, -x]), p=inf, axis=1)[0]", [0.5, -0.5, 0]),
        ("max(abs(x))", [0.5, -0.5, 0]),
        ("max(abs(x), axis=0)", [1, 0, 0]),
        ("abs(x).max()", [0.5, -0.5, 0]),
        ("abs(x).max(0)", [1, 0, 0]),
        ("amax(abs(x), axis=0)", [0.5, -0.5, 0]),
        ("abs(x).amax(dim=0)", [0.5, -0.5, 0]),
        ("max(abs(x), axis=(0,))", [0.5, -0.5, 0]),
        ("min(-abs(x), axis=0)", [-1, 0, 0]),
        ("amin(-abs(x), axis=0)", [-0.5, 0.5, 0]),
        ("(-abs(x)).min()", [-0.5, 0.5, 0]),
        ("maximum(x[0], -x[1])", [0.5, -0.5, 0]),
    ],
)
def test_who_gets_the_gradient_of_a_tie(cli, text, gradient):
    """PyTorch: an index along an axis has it all, and everything else is shared."""
    assert cli.json("backward", f"y={text}", "--at", "x=[2,-2,1]")["grad"] == {"x": gradient}


@pytest.mark.parametrize(
    "subscript",
    [
        "0",
        "-1",
        "1,2",
        "-1,-3",
        "0,:",
        ":,1",
        "1:",
        ":-1",
        "::2",
        "::-1",
        ":,::-1",
        ":,1:3",
        ":,-2:",
        "0,1:2",
        "...,0",
        "None",
        ":,None",
        "1:2,None,0",
        "...,::-2",
    ],
)
def test_indices(subscript):
    expected = eval(f"A[{subscript}]", {"A": A})
    found = value(f"y=A[{subscript}]", A=A)
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("x[1]", (2,)),
        ("x[0]*x[2] + x[1]", (3,)),
        ("x[1,0] + x[0,2]", (2, 3)),
        ("sin(x[0])[None] + x[1].exp()", (2,)),
        ("x", ()),
    ],
)
def test_an_input_that_is_read_by_element_is_as_small_as_they_allow(text, shape):
    assert [n.shape for n in parse(f"y={text}").inputs.values()] == [shape]


@pytest.mark.parametrize("text", ["x[0] + x", "x[-1]", "x[0:1]", "x[0] + x[1:]", "x[0] + x[0,1]", "x[0] + sum(x)"])
def test_an_input_that_is_read_as_a_whole_needs_a_shape(text):
    with pytest.raises(InputError, match="`x` is a scalar"):
        parse(f"y={text}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[x, 2*x]", [3, 6]),
        ("[[x, 1], [2, x**2]]", [[3, 1], [2, 9]]),
        ("[[x, 1], [2, 3]] @ [x, 1]", [10, 9]),
        ("[[1, x], [2, 3]][1, 0]", 2),
        ("sum([x, x, 1])", 7),
        ("max([x, 5, 1])", 5),
        ("[v, 2*v]", [[1, 2], [2, 4]]),
        ("[v[1], v[0]]", [2, 1]),
    ],
)
def test_lists_stack(text, expected):
    np.testing.assert_array_equal(value(f"y={text}+0*x*v[0]", x=3, v=[1, 2]), expected)


CONDITIONS = [
    "x > 1",
    "x >= 1",
    "x < 1",
    "x <= 1",
    "x == 1",
    "x != 1",
    "0 < x < 2",
    "0 < x <= 1 < 3 - x",
    "(x > 0) & (x < 1)",
    "(x < 0) | (x > 1)",
    "~(x > 1)",
    "x > 0 and x < 1",
    "x < 0 or x > 1",
    "not x > 1",
    "not (x > 0 and x < 1) or x == 0.5",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_choices(condition):
    for x in (-1.0, 0.0, 0.5, 1.0, 2.0):
        holds = eval(condition.replace("~", "not "), {"x": x})
        assert value(f"y=where({condition}, 10*x, -x) + 0*x", x=x) == (10 * x if holds else -x)
        assert value(f"y=Piecewise((10*x, {condition}), (-x, True)) + 0*x", x=x) == (10 * x if holds else -x)


def test_the_first_condition_of_a_piecewise_that_holds():
    text = "y=Piecewise((1+0*x, x<0), (x**2, x<1), (5, x<=1), (x, True))"
    assert [float(value(text, x=x)) for x in (-3, 0.5, 1, 4)] == [1, 0.25, 5, 4]
    assert math.isnan(value("y=Piecewise((x, x<0))", x=1))


# Numbers are exact


@pytest.mark.parametrize(
    ("text", "slope"),
    [
        ("x/3", "1/3"),
        ("1/3*x", "1/3"),
        ("0.1*x", "0.1"),
        ("(0.1+0.2)*x", "0.3"),
        ("(1/3+1/6)*x", "1/2"),
        ("3*x*(1/3)", "1"),
        ("2**100*x", "1267650600228229401496703205376"),
        ("1e-3*x", "0.001"),
        ("pi*x", "pi"),
        ("e*x", "e"),
        ("sqrt(2)*x", "sqrt(2)"),
        ("2**(1/2)*x", "sqrt(2)"),
        ("x**(1/3)", "1/(3*x**(2/3))"),
        ("x**0.5", "0.5/sqrt(x)"),
    ],
)
def test_numbers_are_exact(cli, text, slope):
    assert cli.json("jacobian", f"y={text}")["symbolic"] == [[slope]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0.1 + 0.2", 0.3), ("0.3 - 0.2", 0.1), ("1.1*1.1", 1.21), ("0.1*3", 0.3), ("0.7/7", 0.1), ("1.1**2", 1.21)],
)
def test_numbers_among_themselves_are_worked_out_exactly(text, expected):
    assert float(value(f"y=({text})*x", x=1)) == expected
    assert eval(text) != expected


ZEROS = ["0.0", "-0.0", "-0.", "-0e3", "-0", "--0.0", "+(-0.0)", "-(1 - 1)", "-(0.5 - 0.5)", "0.0 - 0", "-0.0 - 0"]
ZEROS += ["-0.0 + 0.0", "-0.0 + -0.0", "-0.0 - 0.0", "-0.0 - -0.0", "0.0*-3", "-0.0*-3", "-0.0/2", "0.0/-2"]
ZEROS += ["(-0.0)**3", "(-0.0)**2", "-0.0**2", "-1e-400"]


@pytest.mark.parametrize("zero", ZEROS)
def test_a_zero_has_the_sign_that_it_has_in_python(cli, tmp_path, zero):
    """PyTorch's zeros have it, too: it decides what a division by it gives."""
    point = tmp_path / "points.csv"
    point.write_text("b\n1\n")
    expected = "Infinity" if math.copysign(1, eval(zero)) > 0 else "-Infinity"
    assert cli.json("backward", "y=b/a", "--at", f"a={zero},b=1")["value"] == {"y": expected}
    assert cli.json("backward", "y=b/a[1]", "--at", f"a=[0,{zero}],b=1")["value"] == {"y": expected}
    assert cli.json("backward", "--at", "b=1", stdin=f"input a = {zero}\ny=b/a")["value"] == {"y": expected}
    assert cli.json("backward", f"y=b/({zero})", "--at", "b=1")["value"] == {"y": expected}
    assert str(cli.json("backward", "y=b", "--at", "b=1", f"--v={zero}")["grad"]["b"]) == str(float(eval(zero)))
    grad = cli.done("backward", "y=b/a", "--at", f"a={zero}", "--points", str(point)).out
    assert grad == f"a.grad,b.grad\n-inf,{expected[:-5].lower()}\n"


def test_zeros_of_both_signs_in_one_system(cli, tmp_path):
    point = tmp_path / "points.csv"
    point.write_text("b\n1\n")
    system = ("y=b/(-0.0)", "z=b/0.0")
    assert cli.json("backward", *system, "--at", "b=1", "--v", "0,1")["value"] == {"y": "-Infinity", "z": "Infinity"}
    out = cli.done("jacobian", *system, "--points", str(point)).out
    assert out == "dy/db,dz/db\n-inf,inf\n"


# Names


@pytest.mark.parametrize(
    "name",
    [
        "gamma",
        "beta",
        "E",
        "I",
        "N",
        "S",
        "Q",
        "lambda_",
        "sin",
        "sum",
        "zeta",
        "Symbol",
        "O",
        "x_1",
        "_",
        "input",
        "in_",
        "norm",
        "max",
    ],
)
def test_names_that_are_functions_elsewhere_are_variables(cli, name):
    assert cli.json("backward", f"y={name}**2", "--at", f"{name}=3", "--v", "10")["grad"] == {name: 60}
    assert cli.json("jacobian", f"y={name}**2")["symbolic"] == [[f"2*{name}"]]


def test_a_name_is_a_function_only_where_it_is_called():
    assert value("y=gamma(gamma)*sin(sin)", gamma=4, sin=1) == pytest.approx(6 * math.sin(1))
    assert value("sum=2*x; y=sum(sum)", x=[1, 2]) == 6


def test_pi_and_e_are_constants_until_they_are_assigned_or_supplied(cli):
    assert value("y=pi*x+e", x=1) == pytest.approx(math.pi + math.e)
    assert cli.json("jacobian", "y=pi*e*x")["columns"] == ["x"]
    assert value("pi=3*x; y=pi*x", x=2) == 12
    found = cli.json("backward", "y=pi*x**2+exp(e)", "--at", "x=2,pi=3,e=0")
    assert found["grad"] == {"e": 1, "pi": 4, "x": 12}
    assert cli.json("jacobian", stdin="input e = 2\ny = e**2\n")["jacobian"] == [[4]]


def test_the_constants_of_formulas_are_not_taken_for_variables(cli):
    """Where `e` and `pi` are variables, a formula that needs the constants writes them in another way."""
    found = cli.json("jacobian", "y=e*acos(-1)*x+pi*exp(1)", "--at", "e=2,pi=5,x=1")
    by_e, by_pi, by_x = found["symbolic"][0]
    for formula, expected in ((by_e, math.pi), (by_pi, math.e), (by_x, 2 * math.pi)):
        again = cli.json("jacobian", f"f={formula}+0*e*pi*x", "--at", "e=2,pi=5,x=1")
        assert again["value"]["f"] == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("text", ["x^2", "x**2", "x·x", "x *\tx", "x.pow(2)", "pow(x, 2)", "square(x)"])
def test_ways_to_write_a_square(text):
    assert value(f"y={text}", x=3) == 9


def test_statements_are_read_in_order():
    with pytest.raises(InputError, match="before it is assigned"):
        parse("y=t; t=x")
    assert list(parse("t=x; y=t").outputs) == ["y"]


def test_another_name_is_the_same_node():
    graph = parse("h=2*x; k=h; y=x; z=k+y; w=k")
    x, h = graph.inputs["x"], graph.names["h"]
    assert list(graph.names) == ["h", "k", "y", "z", "w"]
    assert graph.names["k"] is graph.outputs["w"] is h
    assert graph.names["y"] is x
    assert [graph.labels[n] for n in (x, h, graph.outputs["z"])] == ["x", "h", "z"]
    assert [n.op for n in graph.nodes] == ["input", "const", "mul", "add"]
