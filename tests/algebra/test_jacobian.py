"""The symbolic Jacobian is SymPy's, looks like a textbook's, and gradcli reads it back as the engine's numbers."""

import re
from pathlib import Path

import numpy as np
import pytest
import sympy
from conftest import examples, some
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from vocabulary.smooth_cases import ELEMENTWISE
from vocabulary.structure_systems import SYSTEMS

from gradcli import numeric_jacobian, parse, symbolic_jacobian
from gradcli.algebra.functions import kept
from gradcli.cli.inputs.system import read_situation, read_system_of
from gradcli.cli.options import SystemOptions
from gradcli.engine.evaluate import values_of
from gradcli.errors import InputError, Notes
from gradcli.graph.operations import OPERATIONS
from gradcli.notation.formulas import code

MIXTURE = Path(__file__).parents[2] / "samples" / "gaussian_mixture.grad"


SHAPES = {"a": (), "b": (), "x": (3,), "z": (3,), "u": (2,), "M": (2, 3), "v": (2,), "A": (2, 2)}

# Formulas of these are evaluated; every function of the language stands in one of them.
UNARY = [
    "sqrt", "cbrt", "exp", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "sec", "csc", "cot",
    "asin", "acos", "atan", "sinh", "cosh", "tanh", "sech", "asinh", "acosh", "atanh", "erf", "erfc", "gamma", "lgamma",
    "digamma", "relu", "leaky_relu", "sigmoid", "softplus", "silu", "gelu", "abs", "sign", "floor", "ceil", "heaviside",
    "detach",
]  # fmt: skip
BINARY = ["pow", "hypot", "atan2", "mod", "maximum", "minimum", "heaviside", "leaky_relu", "add", "sub", "mul", "div"]
READABLE = [
    *[f"a*{name}(a)**3 + {name}(b/2)" for name in UNARY],
    *[f"{name}(a, b)*a; {name}(b, a + 0.5)" for name in BINARY],
    "polygamma(2, a)*b; polygamma(0, b)",
    "clamp(a, -1, b); clip(b, 0.3, max=1)*a",
    "where(a > b, a*b, a/b)*where(a != 1, a, b)",
    "where((a > 0) & (b < 1) | ~(a <= b), a**b, b)*a",
    "where(~((a > 0) | (b >= 1)) & (a*b == 1), a, b)",
    "Piecewise((a, a < 0), (a**2, a < 1), (b, True))",
    "maximum(a, b, a*b)*2.5; min(a, b, 1/2)",
    "a**-b; 2**a; e**(a*b); a**e; pi**a; a**0.3; (a + b)**-2; a**(1/3)",
    "-a**2/3; a/b/3; -(a - b)/(a + b); 2/3*a*b; -(-a)*b; (a*b)**3/7; (a % b)*a",
    "1e-10*a**2; 1e30*a**2; 1.1e-7*a**3; a/3 + 0.1*a**2; 123456789012345678*a**2",
    "sqrt(2)*a**2; 2**0.5*a; exp(-a)/exp(b); exp(a)**b; sqrt(a*a*b*b); log(a/b); abs(a)**3; sqrt(a)*sqrt(b)",
    "gamma(1/2)*a + lgamma(5)*a**2 + digamma(1)*b + erf(1)*a*b + sin(1)*b + atan2(1, -1)*a + hypot(3, 4)*b",
    "relu(-2)*a + floor(2.5)*a + maximum(1, 2)*b + cbrt(-8)*a + gelu(1)*b**2 + tanh(1)*a**2 + 5 % 3*a + sign(-3)*b",
    "asin(2)*a; sqrt(-1)*b + a; log(-2)*a; (-8)**(1/3)*b; acosh(0.5)*a*b",
    "inf*a; nan*b + a; -inf*a*b",
    "a; sum(x)*a; mean(M, axis=0)",
    "prod(x)*a; prod(M, axis=1)",
    "floor_divide(a, b)*a; floor_divide(x, 0.35) @ z",
    "max(x)*a; max(M, axis=0); amax(M, axis=1)",
    "max(x, axis=0)*b; max(z, axis=-1); min(-x, axis=0); min(-z)",
    "min(M)*a; min(M, axis=1); amin(x)**2",
    "norm(x)*a; norm(M, axis=0); norm(x, p=1); norm(x, p=inf)",
    "var(x); var(M, axis=0, correction=0); std(x)*a; std(M, axis=1)",
    "logsumexp(x)*a; softmax(M @ x)*b; log_softmax(u)*b",
    "cumsum(x*z) @ x; M @ x; outer(u, x) @ z; x @ z/(norm(x)*norm(z))",
    "trace(M)*a; diag(M) @ u; diag(x) @ z; M.T @ u; reshape(M, 3, 2) @ u; permute(M, 1, 0) @ v",
    "x[::-1]*z; concatenate([x, u])*a; stack([x, z]) @ x; [a, b, x[0]]; cat([u, u*v])",
    "mse_loss(x, z)*a; huber_loss(x, z); binary_cross_entropy(sigmoid(x), z)*b; layer_norm(x, 3)*z; batch_norm(M)",
    "v @ A @ v; tanh(A @ v + u) @ v; sum(relu(A @ (A @ v)))",
]  # fmt: skip
POINTS = [
    {"a": 0.7, "b": 0.45, "x": [0.4, 1.1, 0.8], "z": [1.5, 0.3, 0.6]},
    {"a": 1.2, "b": 2.3, "x": [1.2, -0.3, -1.5], "z": [-0.4, 0.8, 0.5]},
    {"a": -0.6, "b": 1.6, "x": [-0.6, 0.9, 1.7], "z": [0.2, -0.7, 1.1]},
    # Ties and kinks.
    {"a": 1, "b": 1, "x": [1, 2, 2], "z": [2, 2, 1]},
]
MATRICES = {"u": [0.5, 1.2], "v": [0.9, -0.4], "M": [[0.2, 0.8, 1.4], [1.1, 0.3, 0.5]], "A": [[0.3, -1.1], [0.6, 0.7]]}

NAMES = dict.fromkeys(["e", "pi", "gamma", "beta", "zeta", "E", "I", "N", "O", "Q", "S", "lambda_", "Symbol"], ())


def written(graph, found, decimals=False):
    """Return the Jacobian as statements in gradcli's language: what entries mention, and an `entry_i_j` for each."""
    taken = frozenset(graph.inputs)
    named = {name: re.sub(r"\W", "_", name) for name in found.where}
    entries = {f"entry_{i}_{j}": entry for (i, j), entry in found.entries.items()}
    lines = [f"{named.get(name, name)} = {code(e, decimals, taken)}" for name, e in (found.where | entries).items()]
    # Where an array is an intermediate, each element that has a name becomes a scalar.
    return re.sub(r"\w+\[[\d,]+\]", lambda m: named.get(m.group(), m.group()), "\n".join(lines))


def read_back(graph, point):
    """Return the Jacobian's formulas, printed, parsed and evaluated."""
    return reader(graph, symbolic_jacobian(graph))(point)


def reader(graph, found, decimals=False):
    """Return a function of points that evaluates the Jacobian's formulas, which were printed and parsed."""
    text = written(graph, found, decimals)
    unused = "\n".join(f"unused_{name} = {name}" for name in graph.inputs)
    again = parse(f"{text}\n{unused}", **{name: node.shape for name, node in graph.inputs.items()})
    nodes = {place: again.names[f"entry_{place[0]}_{place[1]}"] for place in found.entries}

    def at(point):
        values = values_of(again, {name: value[..., None] for name, value in point.items()}, nodes.values())
        result = np.zeros((len(found.rows), len(found.columns)))
        for place, node in nodes.items():
            result[place] = values[node][0]
        return result

    return at


def engines(graph, point):
    return numeric_jacobian(graph, list(graph.inputs), point)


def point_of(graph, values):
    return {name: np.array(values[name], dtype=float) for name in graph.inputs}


def tokens(formula):
    return sorted(re.findall(r"[\w.]+|\S", formula))


@pytest.mark.parametrize("system", some(READABLE))
def test_formulas_read_back_as_the_engines_numbers(system):
    graph = parse(system, **SHAPES)
    symbolic = symbolic_jacobian(graph)
    for read in (reader(graph, symbolic), reader(graph, symbolic, decimals=True)):
        for values in POINTS:
            point = point_of(graph, values | MATRICES)
            expected = engines(graph, point)
            found = np.where(np.isfinite(expected), read(point), expected)
            assert_allclose(found, expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("system", ["sqrt(relu(a))", "log(relu(a))", "1/maximum(a, 0)", "where(a > 0, a, 0)**0.5"])
def test_a_branch_not_taken_is_not_multiplied_by_infinity(system):
    graph = parse(system)
    point = {"a": np.array(-1.0)}
    assert_allclose(read_back(graph, point), engines(graph, point))


def test_every_operation_is_read_back():
    tried = {node.op for system in READABLE for node in parse(system, **SHAPES).nodes}
    # Tests of the vocabulary read these back.
    tried |= {node.op for text in ELEMENTWISE for node in parse(f"out = {text}").nodes}
    tried |= {node.op for text, shapes in SYSTEMS for node in parse(f"out = {text}", **shapes).nodes}
    # Of some only rules make use, and nothing needs a copy.
    inner = {"broadcast", "scatter", "scatter_add", "corner", "identity", "product_of_others", "cofactors"}
    inner |= {"recurrence", "sum_segments"}
    inner |= {"svd_u", "svd_vh", "svdvals", "eigvalsh", "eigvecsh", "cholesky"}  # of scripts and functions
    inner |= {"exp2", "segment_sum", "gather", "index_add", "dynamic_slice", "dynamic_scatter"}  # tested in tests/graph
    inner |= {op for op, row in OPERATIONS.items() if row.kind == "call"}  # entries are those of their definitions
    inner |= {"argmax_mask", "argmin_mask", "argmedian_mask", "take_along", "put_along", "cast"}
    assert tried >= set(OPERATIONS) - inner


@pytest.mark.parametrize(
    "system",
    [
        "e*pi*gamma*beta + E*I*N*S*O*Q/zeta",
        "exp(1)*e**2 + acos(-1)*pi**2 + exp(e + 1) + e**pi",
        "gamma(gamma) + gamma(N)*sin(S)*I + lambda_**Symbol",
        "zeta*where(E > I, N/S, Q**O)/beta",
    ],
)
def test_names_that_sympy_knows_are_variables(system):
    graph = parse(system, **NAMES)
    point = {name: np.array(0.3 + 0.2 * k) for k, name in enumerate(graph.inputs)}
    assert set(point) == set(re.findall(r"\b(?!gamma\()[^\W\d]\w*\b(?!\()", system))
    assert_allclose(read_back(graph, point), engines(graph, point), rtol=1e-10)


TEMPLATES = [
    "{0} + {1}", "{0} - {1}", "{0}*{1}", "-{0}", "{0}**2", "{0}**3", "{0}/(1 + {1}**2)", "(1 + {0}**2)**sin({1})",
    "sin({0})", "cos({0})", "exp({0}/3)", "log(2 + {0}**2)", "sqrt(1 + {0}**2)", "atan({0})", "tanh({0})", "erf({0})",
]  # fmt: skip
EXPRESSIONS = st.recursive(
    st.sampled_from(["x", "z", "w", "2", "1/3", "pi"]),
    lambda parts: st.builds(lambda template, *p: f"({template.format(*p)})", st.sampled_from(TEMPLATES), parts, parts),
    max_leaves=8,
)


@pytest.mark.parametrize("argument", ["x - (z + w)", "2*(x - (z + w))", "w - (x + z)", "x - (z - (w + x*z))"])
@pytest.mark.parametrize("name", ["sin", "cos", "tan", "sec"])
def test_signs_within_a_cosine(name, argument):
    graph = parse(f"y = {name}({argument})")
    point = {name: np.array(value) for name, value in {"x": 0.3, "z": 0.5, "w": -0.2}.items()}
    assert_allclose(read_back(graph, point), engines(graph, point), rtol=1e-12)


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(EXPRESSIONS, min_size=1, max_size=3))
def test_random_system_against_sympy(expressions):
    variables = sympy.symbols("w x z")
    functions = [sympy.sympify(expression) for expression in expressions]
    point = {"w": np.array(0.375), "x": np.array(-0.625), "z": np.array(1.25)}
    at = {symbol: sympy.Rational(str(point[symbol.name])) for symbol in variables}
    expected = np.array(sympy.Matrix(functions).jacobian(variables).subs(at).evalf(20).tolist(), dtype=float)
    assume(np.abs(expected).max() < 1e6)

    lines = [f"y{i} = {expression} + 0*(w + x + z)" for i, expression in enumerate(expressions)]
    graph = parse("\n".join(lines))
    assert_allclose(read_back(graph, point), expected, rtol=1e-8, atol=1e-8)
    assert_allclose(engines(graph, point), expected, rtol=1e-8, atol=1e-8)
    for i, j in symbolic_jacobian(graph).entries:
        assert variables[j] in functions[i].free_symbols


@pytest.mark.parametrize(
    ("variables", "expressions"),
    [
        ("r theta", ["r*cos(theta)", "r*sin(theta)"]),
        ("phi r theta", ["r*sin(theta)*cos(phi)", "r*sin(theta)*sin(phi)", "r*cos(theta)"]),
        ("x z", ["10*(z - x**2)", "1 - x"]),
        ("a b c", ["log(a/b)*c", "(a*b)**c", "a/(b + c) - c/(a + b)", "sqrt(a*b + c**2)", "exp(-(a - b)**2/(2*c**2))"]),
        ("k x", ["x/(1 + (x/k)**2)", "k*x*(1 - x/k)", "1/(1 + exp(-k*x))"]),
        (
            " ".join(f"x{i}" for i in range(9)),
            [f"x{i}*(x{(i + 1) % 9} - x{(i + 5) % 9}) - x{i}**2/3" for i in range(9)],
        ),
    ],
)
def test_entries_equal_sympys(variables, expressions):
    graph = parse("\n".join(f"y{i} = {e}" for i, e in enumerate(expressions)))
    assert " ".join(symbolic_jacobian(graph).columns) == variables
    expected = sympy.Matrix([sympy.sympify(e) for e in expressions]).jacobian(sympy.symbols(variables))
    entries = symbolic_jacobian(graph).entries
    assert set(entries) == {(i, j) for i, j in np.ndindex(*expected.shape) if expected[i, j] != 0}
    at = {symbol: sympy.Rational(k + 2, 7) for k, symbol in enumerate(expected.free_symbols)}
    for place, entry in entries.items():
        assert abs((entry - expected[place]).subs(at).evalf(30)) < 1e-25


def test_jacobian_is_sparse():
    """Broyden's tridiagonal function: three entries a row."""
    n = 200
    lines = ["y0 = (3 - 2*x0)*x0 - 2*x1 + 1", f"y{n - 1} = (3 - 2*x{n - 1})*x{n - 1} - x{n - 2} + 1"]
    lines[1:1] = [f"y{i} = (3 - 2*x{i})*x{i} - x{i - 1} - 2*x{i + 1} + 1" for i in range(1, n - 1)]
    entries = symbolic_jacobian(parse("\n".join(lines))).entries
    assert set(entries) == {(i, j) for i in range(n) for j in (i - 1, i, i + 1) if 0 <= j < n}
    assert [code(entries[7, j]) for j in (6, 7, 8)] == ["-1", "3 - 4*x7", "-2"]


def test_wrt_chooses_and_orders_the_columns():
    found = symbolic_jacobian(parse("y = x**2*v[0]*k", v=(2,)), wrt=["v", "x"])
    assert found.columns == ("v[0]", "v[1]", "x")
    assert {place: tokens(code(e)) for place, e in found.entries.items()} == {
        (0, 0): tokens("k*x**2"),
        (0, 2): tokens("2*k*x*v[0]"),
    }


# What is too deep to read is shown through named intermediates: the user's names, t1, t2, … where there are none.
DEEP = {
    "chain": "h0 = sin(x)*x\n" + "\n".join(f"h{k + 1} = sin(h{k})*h{k} + x" for k in range(100)),
    "branches": "h0 = x; k0 = w\n"
    + "\n".join(f"h{i + 1} = h{i}*k{i} + 1; k{i + 1} = cos(h{i} - k{i})" for i in range(20)),
    "one expression": "y = " + "sin(x + " * 60 + "w" + ")" * 60,
    "layers": "h = tanh(A @ u)\nk = tanh(A @ h + u)\nl = tanh(A @ k + u)\ny = softmax(l)",
    "max": "y = max(sin(x*c)*cos(c)/(1 + x**2 + c**2) + exp(-c)*log(2 + c**2))*min(x*c)",
    "names like ours": "t1 = sin(x)\n" + "y = " + "sin(x + " * 60 + "t1" + ")" * 60,
}


@pytest.mark.parametrize("name", some(DEEP))
def test_deep_formulas_are_named(name):
    graph = parse(DEEP[name], u=(2,), A=(2, 2), c=(6,))
    found = symbolic_jacobian(graph)
    text = written(graph, found)
    assert found.where
    assert max(map(len, text.splitlines())) < 5000
    point = point_of(graph, MATRICES | {"x": 0.7, "w": -0.3, "c": np.linspace(0.2, 1.4, 6)})
    assert_allclose(read_back(graph, point), engines(graph, point), rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize(
    "expression",
    [
        "(3*x)**(10**12)",
        "(3*x/7)**(10**12)",
        "gamma(10**6)*x",
        "lgamma(10**9)*x**2",
        "2**(1/2)*x",
        "(2*x*z)**(10**9)",
        "((3*x)**10**5)**10**5",
        "x**(10**30)",
        "(10**300)**x",
        "sqrt(10**200 + 1)*x",
        "polygamma(300, 3)*x",
        "exp(exp(exp(exp(10))))*x",
        "cosh(10**9)*x",
        "exp(log(3)*10**5*x)",
        # Each of these has tens of thousands of digits if SymPy works it out.
        "sqrt(2)**(10**5)*x",
        "(sqrt(2)*x)**(10**5)",
        "(2**0.5*x)**(10**5)",
        "exp(10**5*log(2))*x",
        "expm1(10**5*log(2))*x",
    ],
)
def test_hostile_constants_stay_as_typed(expression):
    graph = parse(f"y = {expression}")
    found = symbolic_jacobian(graph)
    text = written(graph, found)
    assert found.entries
    assert len(text) < 800
    assert parse(text + "\nunused = x").outputs


def test_where_an_entry_is_too_long_no_other_is_made_shorter(monkeypatch):
    options = SystemOptions((), (str(MIXTURE),), (), (), None, None, None)
    graph = read_situation(read_system_of(options), options, Notes()).graph
    tried = []
    monkeypatch.setattr("gradcli.algebra.symbolic_jacobian.tidy", lambda expr, known=None: tried.append(expr) or expr)
    found = symbolic_jacobian(graph)
    # Each entry of the Jacobian that is shown, and the definitions that it needs; one entry of each way that was tried.
    assert len(tried) <= len(found.entries) + len(found.where) + 3


@pytest.mark.parametrize("text", ["log(det(s*ones(4, 4) + t*eye(4)))", "sum(inv(s*ones(4, 4) + t*eye(4))**2)"])
def test_matrices_of_large_blocks_are_read_back(text):
    graph = parse(f"y = {text}")
    point = {"s": np.array(0.5), "t": np.array(1.25)}
    assert_allclose(read_back(graph, point), engines(graph, point), rtol=1e-12)


@pytest.mark.parametrize(
    ("op", "args", "value"),
    [("cbrt", [-8.0], -2), ("frac", [-1.5], -0.5), ("fmod", [-3.5, 2.0], -1.5), ("fmod", [3.5, -2.0], 1.5)],
)
def test_functions_that_mpmath_defines_otherwise(op, args, value):
    assert float(kept(op)(*map(sympy.Float, args))) == value


def test_functions_of_complex_value_stay_unevaluated():
    assert not kept("log10")(sympy.Float(-1)).is_Float


def test_a_definition_with_a_pole_where_it_is_tried_is_no_number(cli):
    system = "f=tanh(x)**mod(1e-9, 2**(x**z))/((y**x)**(3 + y) + z + lgamma(floor(log1p(y))))"
    assert "lgamma(floor(log1p(y)))" in cli.done("jacobian", system).out


def test_what_takes_too_many_operations_is_refused_before_it_is_written(monkeypatch):
    """Also where few entries name many intermediates: a loop of 9,000 rounds has a page of 18,000 lines."""
    monkeypatch.setattr("gradcli.algebra.symbolic_jacobian.formulas", None)
    graph = parse("h[0]=x; h[t]=sin(h[t-1]) for t in 1..9000; y=h[9000]", x=(4,))
    with pytest.raises(InputError, match="more than 100,000 operations"):
        symbolic_jacobian(graph)
