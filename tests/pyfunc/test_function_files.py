"""Functions of Python files as systems: `-F file.py:NAME`."""

import json
import sys

import numpy as np
import pytest

FILE = """
import numpy as np
from numpy import zeros
import cubes

W = np.arange(20.0).reshape(4, 5) / 10


def pendulum(theta, omega=1.0, m=2.0, g=9.81, length=0.5):
    kinetic = 0.5 * m * (length * omega) ** 2
    potential = m * g * length * (1 - np.cos(theta))
    return kinetic + potential


def chain(x):
    y = zeros(3)
    y[0] = x[0]
    y[1] = x[1] * y[0]
    y[2] = np.sin(y[1])
    return y


def branch(x):
    if x > 0:
        return x**2
    return -x


def layer(x, k=2.0):
    h = np.tanh(W.T @ x)
    for _ in range(2):
        h = h * k
    return np.sum(h**2)


def two(x):
    return {"square": x**2, "cube": cubes.cube(x)}


def pair(x):
    return x + 1, 2 * x


def as_float(x):
    return float(x) ** 2


def random(x):
    return x * np.random.randn()


def fails(x):
    print("before")
    raise ValueError("no such state")


def endless(x):
    return endless(x)


def nothing(x):
    x + 1


def leaves(x):
    import sys

    sys.exit(3)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "f.py").write_text(FILE, encoding="utf-8")
    (tmp_path / "cubes.py").write_text("def cube(x):\n    return x**3\n", encoding="utf-8")
    # Names of libraries that gradcli uses, which are the user's own here.
    (tmp_path / "sympy.py").write_text("raise RuntimeError('not the library')\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("gradcli.cli.inputs.system._RAN", {})
    return tmp_path


def test_parameters_are_inputs_and_local_variables_have_names(cli):
    out = cli.done("backward", "-F", "f.py:pendulum", "--at", "theta=0.3").out
    assert "kinetic   = 0.5*m*(length*omega)**2 = 0.25" in out
    assert "pendulum  = kinetic + potential" in out


def test_gradients_are_the_analytic_ones(cli):
    result = cli.json("backward", "-F", "f.py:pendulum", "--at", "theta=0.3,g=10")
    assert result["at"] == {"g": 10.0, "length": 0.5, "m": 2.0, "omega": 1.0, "theta": 0.3}
    assert result["grad"]["theta"] == pytest.approx(2 * 10 * 0.5 * np.sin(0.3))
    assert result["grad"]["omega"] == pytest.approx(2 * 0.5**2)


def test_elements_that_are_assigned_make_an_array(cli):
    result = cli.json("jacobian", "-F", "f.py:chain", "--at", "x=[1,2]")
    c = np.cos(2.0)
    np.testing.assert_allclose(result["jacobian"], [[1, 0], [2, 1], [2 * c, c]])


@pytest.mark.parametrize(("at", "slope"), [("x=3", 6), ("x=-3", -1)])
def test_the_branch_of_the_point_is_taken_and_noted(cli, at, slope):
    outcome = cli("backward", "-F", "f.py:branch", "--at", at, "-f", "json")
    assert (outcome.status, json.loads(outcome.out)["grad"]["x"]) == (0, slope)
    assert f"`if x > 0` is {slope > 0} here" in outcome.err


def test_a_point_on_another_branch_is_an_error_with_the_line(cli):
    err = cli.refused("backward", "-F", "f.py:branch", "--at", "x=3", "--at", "x=-3")
    assert "point 2 takes another branch" in err
    assert "f.py, line 24" in err


def test_a_branch_without_a_value_asks_for_a_point(cli):
    outcome = cli("jacobian", "-F", "f.py:branch")
    assert (outcome.status, "--at" in outcome.err, "f.py, line 24" in outcome.err) == (2, True, True)


def test_outputs_are_named_by_keys_and_by_numbers(cli):
    assert cli.json("backward", "-F", "f.py:two", "--at", "x=2", "--v", "ones")["grad"]["x"] == 4 + 12
    assert cli.json("jacobian", "-F", "f.py:pair", "--at", "x=2")["rows"] == ["pair0", "pair1"]


def test_many_points_have_one_graph(cli, folder):
    (folder / "p.csv").write_text("theta,m\n0.1,1\n0.2,2\n", encoding="utf-8")
    out = cli.done("backward", "-F", "f.py:pendulum", "--points", "p.csv", "--wrt", "theta", "-f", "csv").out
    rows = np.genfromtxt(out.splitlines(), delimiter=",", skip_header=1)
    np.testing.assert_allclose(rows.reshape(2, -1)[:, -1], [9.81 * 0.5 * np.sin(0.1), 2 * 9.81 * 0.5 * np.sin(0.2)])


def test_formulas_and_functions_make_one_system(cli):
    result = cli.json("backward", "-F", "f.py:branch", "loss = 3*branch + z", "--at", "x=2,z=1")
    assert result["grad"] == {"x": 12.0, "z": 1.0}


ERRORS = {
    "f.py:as_float": (2, "line 45"),
    "f.py:random": (2, "np.random.randn"),
    "f.py:fails": (1, 'raise ValueError("no such state")'),
    "f.py:endless": (1, "RecursionError"),
    "f.py:nothing": (2, "returns nothing"),
    "f.py:leaves": (3, ""),
    "f.py:nowhere": (2, "`f.py` has no `nowhere`"),
    "f.py:W": (2, "and not a Python function"),
    "missing.py:f": (2, "cannot be read"),
    "f.py": (2, "name a function in it"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_what_goes_wrong_is_told_in_the_users_lines(cli, name):
    expected, text = ERRORS[name]
    outcome = cli("backward", "-F", name, "--at", "x=1")
    assert (outcome.status, outcome.out) == (expected, "")
    assert text in outcome.err
    assert "fault of gradcli" not in outcome.err
    assert "gradcli/pyfunc" not in outcome.err.replace("\\", "/")


def test_only_a_named_function_runs_a_file(cli, folder):
    (folder / "danger.py").write_text("open('ran', 'w').close()\n", encoding="utf-8")
    outcome = cli("backward", "-F", "danger.py")
    assert (outcome.status, (folder / "ran").exists()) == (2, False)


def test_code_for_autograd_and_jax_runs_as_it_is(cli, folder):
    (folder / "g.py").write_text(
        "import autograd.numpy as anp\nimport jax.numpy as jnp\nimport jax\nfrom autograd import grad\n"
        "def energy(x):\n    return anp.sum(anp.sin(x)**2) + jnp.dot(x, x)\n"
        "@jax.jit\ndef force(x):\n    return -grad(energy)(x)\n",
        encoding="utf-8",
    )
    result = cli.json("jacobian", "-F", "g.py:force", "--at", "x=[0.5,1]")
    np.testing.assert_allclose(result["jacobian"], np.diag(-2 * np.cos([1, 2]) - 2), atol=1e-12)
    assert "jax" not in sys.modules


GRADIENTS = """
import numpy as np

X = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 0.25]])
y = np.array([1.0, 0.0, 2.0])


def loss(w):
    r = X @ w - y
    return np.mean(r**2)


def right(w):
    return 2 * X.T @ (X @ w - y) / 3


def half(w):
    return X.T @ (X @ w - y) / 3


def model(a, b):
    return a * np.sin(b)


def dmodel(a, b):
    return {"db": -a * np.cos(b), "da": np.sin(b)}
"""


@pytest.mark.parametrize(
    ("names", "status", "told"),
    [
        (("loss", "right"), 0, ["dloss/dw = right(w)   right: proved"]),
        (("loss", "half"), 1, ["dloss/dw = half(w)   wrong: in ∂loss/∂r you wrote r: the derivative of r**2"]),
        (
            ("model", "dmodel"),
            1,
            ["dmodel/db = dmodel(a, b)[0]   wrong: in ∂model/∂b the sign", "dmodel/da = dmodel(a, b)[1]   right"],
        ),
    ],
)
def test_a_gradient_in_numpy_is_checked(cli, folder, names, status, told):
    (folder / "g.py").write_text(GRADIENTS, encoding="utf-8")
    own = ("--shape", "w=2") if names[0] == "loss" else ()
    outcome = cli("check", f"g.py:{names[0]}", "--gradient", f"g.py:{names[1]}", *own)
    assert outcome.status == status, outcome.err
    assert all(text in outcome.out for text in told), outcome.out


def test_a_gradient_of_another_shape_is_an_error(cli, folder):
    (folder / "g.py").write_text(GRADIENTS + "\n\ndef wrong(w):\n    return X\n", encoding="utf-8")
    assert "has shape (3, 2)" in cli.refused("check", "g.py:loss", "--gradient", "g.py:wrong", "--shape", "w=2")


LISTS = """
import numpy as np

def f(x, a): return a*x[0]**2 - 0.5*x[1]**3
def listed(x, a): return [2*a*x[0], -1.5*x[1]**2]
def pair(x, a): return [2*a*x[0], -1.5*x[1]**2], x[0]**2
def arrays(x, a): return (np.array([2*a*x[0], -1.5*x[1]**2]), x[0]**2)
def flat(x, a): return 2*a*x[0], -1.5*x[1]**2, x[0]**2
def keys(x, a): return {"da": x[0]**2, "dx": [2*a*x[0], -1.5*x[1]**2]}
def wrong(x, a): return [2*a*x[0], -1.5*x[1]**2], x[0]
def many(x, a): return [1, 2, 3, 4]
def r(x): return [x[0]*x[1], x[1]**2, x[0]]
def jacobian(x): return [[x[1], x[0]], [0, 2*x[1]], [1, 0]]
def spoiled(x): return [[x[1], x[0]], [0, x[1]], [1, 0]]
def transposed(x): return [[x[1], 0, 1], [x[0], 2*x[1], 0]]
"""
X, A = "df/dx = {}(x, a)", "df/da = {}(x, a)"


@pytest.mark.parametrize(
    ("function", "gradient", "claims"),
    [
        ("f", "listed", {X: "right"}),
        ("f", "pair", {X + "[0]": "right", A + "[1]": "right"}),
        ("f", "arrays", {X + "[0]": "right", A + "[1]": "right"}),
        ("f", "flat", {X + "[0]": "right", A + "[1]": "right"}),
        ("f", "keys", {A + "[0]": "right", X + "[1]": "right"}),
        ("f", "wrong", {X + "[0]": "right", A + "[1]": "wrong"}),
        ("r", "jacobian", {"dr/dx = {}(x)": "right"}),
        ("r", "spoiled", {"dr/dx = {}(x)": "wrong"}),
    ],
)
def test_a_gradient_that_is_a_list_is_checked(cli, folder, function, gradient, claims):
    (folder / "g.py").write_text(LISTS, encoding="utf-8")
    outcome = cli("check", f"g.py:{function}", "--gradient", f"g.py:{gradient}", "--shape", "x=2", "-f", "json")
    found = {f"{o['claim']} = {o['said']}": o["verdict"] for o in map(json.loads, outcome.out.splitlines())}
    assert found == {claim.format(gradient): verdict for claim, verdict in claims.items()}, outcome.err


MOVES = """
import os
import numpy as np

os.chdir("sub")


def f(x):
    os.chdir("..")
    os.chdir("other")
    return np.sum(x**2)
"""


@pytest.mark.parametrize(
    "command",
    [
        ("backward", "--points", "p.csv", "--output", "o.csv"),
        ("graph", "--at", "x=1", "--output", "o.svg"),
        ("export", "--at", "x=1", "--to", "numpy", "--output", "o.py"),
    ],
    ids=lambda c: c[0],
)
def test_files_are_those_of_the_folder_where_the_command_began(cli, folder, command):
    (folder / "g.py").write_text(MOVES, encoding="utf-8")
    (folder / "p.csv").write_text("x\n1\n", encoding="utf-8")
    for name in ("sub", "other"):
        (folder / name).mkdir()
        (folder / name / "p.csv").write_text("x\n100\n", encoding="utf-8")
    name, *rest = command
    cli.done(name, "-F", "g.py:f", *rest)
    written = folder / rest[-1]
    assert written.is_file()
    assert [p.name for p in folder.rglob(written.name)] == [written.name]
    if written.suffix == ".csv":
        assert written.read_text(encoding="utf-8").split() == ["x.grad", "2.0"]


def test_a_file_in_another_encoding_is_refused_as_python_does(cli, folder):
    (folder / "g.py").write_bytes(b"# \xe9\ndef f(x): return x*x\n")
    outcome = cli("backward", "-F", "g.py:f", "--at", "x=2")
    assert (outcome.status, "Non-UTF-8 code starting with '\\xe9' in file g.py on line 1" in outcome.err) == (1, True)
    (folder / "h.py").write_bytes(b"# -*- coding: latin-1 -*-\n# \xe9\ndef f(x): return x*x\n")
    assert cli.json("backward", "-F", "h.py:f", "--at", "x=2")["grad"] == {"x": 4.0}


LOOPS = """
import sys
import numpy as np


def long(x, n=2000):
    s = 0
    for i in range(int(n)):
        s = s + x
    return s


def deep(x):
    sys.setrecursionlimit(10**5)
    g = lambda x, n: x if n == 0 else np.sin(g(x, n - 1))
    return g(x, 5000)


def plain(x):
    assert sys.gettrace() is None
    return x * sum(i for i in range(1000))
"""


@pytest.mark.parametrize("name", ["long", "deep"])
def test_the_operations_of_a_function_are_bounded(cli, folder, monkeypatch, name):
    monkeypatch.setattr("gradcli.pyfunc.tape.MAX_NODES", 1000)
    limit = sys.getrecursionlimit()
    (folder / "g.py").write_text(LOOPS, encoding="utf-8")
    outcome = cli("backward", "-F", f"g.py:{name}", "--at", "x=1")
    sys.setrecursionlimit(limit)
    assert outcome.status == 2
    assert "makes more than 1,000 operations" in outcome.err
    assert "g.py, line" in outcome.err


ESCAPES = {
    "x.tobytes()": "`x.tobytes` cannot be traced",
    "__import__('pickle').dumps(x)": "cannot be traced",
    "json.dumps(list(x))": "`json.dumps` cannot be traced",
    "HIDDEN.array.__setitem__(0, x[0])": "cannot be traced",
    "np.searchsorted(-x, -1.5)": "`np.searchsorted` searches in a sorted array",
}


@pytest.mark.parametrize("code", ESCAPES)
def test_what_leaves_numpy_is_an_error_with_the_line(cli, folder, code):
    (folder / "g.py").write_text(
        "import json, types\nimport numpy as np\nHIDDEN = types.SimpleNamespace(array=np.zeros(2))\n"
        f"def f(x):\n    y = x * 2\n    {code}\n    return y\n",
        encoding="utf-8",
    )
    outcome = cli("backward", "-F", "g.py:f", "--at", "x=[1,2]", "--v", "ones")
    assert (outcome.status, outcome.out, "Traceback" in outcome.err, "Tracer" in outcome.err) == (2, "", False, False)
    assert ESCAPES[code] in outcome.err
    assert "g.py, line 6" in outcome.err


def test_what_is_imported_in_the_function_is_traced(cli, folder):
    (folder / "g.py").write_text(
        "def f(x):\n    from scipy.special import logsumexp\n    return logsumexp([x[0], x[1]])\n"
        "def g(x):\n    import scipy.linalg as sla\n    return sla.logm(x)\n",
        encoding="utf-8",
    )
    found = cli.json("backward", "-F", "g.py:f", "--at", "x=[0,0]")
    np.testing.assert_allclose(found["grad"]["x"], [0.5, 0.5])
    assert "`sla.logm` cannot be traced" in cli.refused("jacobian", "-F", "g.py:g", "--at", "x=[[1,2],[3,4]]")


CALLABLES = """
import functools, numpy as np
class Square:
    def __call__(self, x): return x**2
    def method(self, x): return x**2
def square(x): return x**2
instance, alias, cached = Square(), square, functools.lru_cache(square)
lambda_ = lambda x: x**2
partial = functools.partial(lambda x, k: x**k, k=2)
vectorized = np.vectorize(square)
"""


@pytest.mark.parametrize("name", ["instance", "instance.method", "alias", "cached", "lambda_", "partial", "vectorized"])
def test_whatever_is_called_has_the_name_that_was_typed(cli, folder, name):
    (folder / "g.py").write_text(CALLABLES, encoding="utf-8")
    found = cli.json("backward", "-F", f"g.py:{name}", "--at", "x=3")
    assert (found["value"], found["grad"]["x"]) == ({name.rpartition(".")[2]: 9}, 6)
