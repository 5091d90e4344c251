"""What `import gradcli` gives, against finite differences and by its errors."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gradcli
from gradcli import InputError, check, evaluate, export, grad, hessian, jvp, numeric_jacobian, parse, vjp

TEXT = "y = sum(sin(M@x))*w"
SHAPES = {"M": (2, 3), "x": (3,)}


def point():
    random = np.random.default_rng(0)
    return {"M": random.normal(size=(2, 3)), "w": 2.0, "x": random.normal(size=3)}


def test_all_that_is_promised_is_there():
    assert all(hasattr(gradcli, name) for name in gradcli.__all__)


def test_a_wrong_claim_is_false():
    assert not check("f = x**2; df/dx = 3*x")
    assert check("f = x**2; df/dx = 2*x")
    assert not check("f = x**2; df/dx = 2*x; df/dx = x")


def test_a_compiled_function_gives_values_and_gradients():
    f = gradcli.compile(TEXT, **SHAPES)
    at = point()
    values, gradients = f(**at)
    assert_allclose(values["y"], np.sum(np.sin(at["M"] @ at["x"])) * at["w"])
    for name, gradient in gradients.items():
        found = np.asarray(at[name], dtype=float)
        step = 1e-6
        slopes = []
        for k in range(found.size):
            ends = [
                at | {name: found + sign * step * np.eye(1, found.size, k).reshape(found.shape)} for sign in (1, -1)
            ]
            slopes.append((f(**ends[0]).values["y"] - f(**ends[1]).values["y"]) / (2 * step))
        assert_allclose(gradient, np.reshape(slopes, found.shape), rtol=1e-7, atol=1e-9)


def test_a_compiled_function_at_many_points():
    f = gradcli.compile(TEXT, wrt=["x"], **SHAPES)
    at = point()
    many = np.stack([at["x"], 2 * at["x"]], axis=-1)
    values, gradients = f(at["M"], at["w"], many)
    for k in range(2):
        alone = f(at["M"], at["w"], many[:, k])
        assert_allclose(values["y"][k], alone.values["y"])
        assert_allclose(gradients["x"][:, k], alone.gradients["x"])
    assert list(gradients) == ["x"]


def test_cotangents_are_given_where_there_is_no_single_scalar():
    f = gradcli.compile("y = 2*x; z = x[0]", x=(2,))
    with pytest.raises(InputError, match="only a single scalar output has a gradient without v"):
        f([1.0, 2.0])
    assert f([1.0, 2.0], v={"y": [1.0, 10.0]}).gradients["x"].tolist() == [2, 20]
    assert f([1.0, 2.0], v={"z": 1.0}).gradients["x"].tolist() == [1, 0]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda f: f(1.0), "the input `b` has no value"),
        (lambda f: f(1.0, 2.0, 3.0), "there are 2 inputs"),
        (lambda f: f(1.0, c=2.0), "`c` is not an input"),
        (lambda f: f(1.0, a=2.0), "the input `a` has two values"),
        (lambda f: f(1.0, [[1.0]]), "the input `b` has shape"),
        (lambda f: f(1.0, "two"), "the input `b` is not an array of numbers"),
        (lambda f: f([1.0, 2.0], [1.0, 2.0, 3.0]), "the input `a` has 2 points, and `b` has 3"),
        (lambda f: f(1.0, 2.0, v={"z": 1.0}), "v: `z` is not an output"),
        (lambda f: evaluate(f.graph, {"a": [1.0]}), "the input `b` has no value"),
        (lambda f: evaluate(f.graph, {"a": [1.0], "b": 2.0}), "the input `b` has shape ()"),
        (lambda f: numeric_jacobian(f.graph, ["a"], {"a": 1.0}), "the input `b` has no value"),
        (lambda f: numeric_jacobian(f.graph, ["q"], {"a": 1.0, "b": 1.0}), "`q` is not an input"),
        (lambda f: numeric_jacobian(f.graph, ["a"], {"a": [1.0], "b": 2.0}), r"the input `a` has shape \(1,\)"),
        (lambda f: hessian(f.graph, ["q"]), "`q` is not an input"),
        (lambda f: export(f.graph, "fortran"), "unknown language `fortran`"),
        (lambda f: export(f.graph, "c", ["jacobien"]), "unknown function `jacobien`"),
        (lambda f: export(f.graph, "c", name="int"), "`int` has a meaning in c"),
        (lambda _: gradcli.compile("y = x", engine="fast"), "unknown engine `fast`"),
    ],
)
def test_errors_name_what_is_wrong(call, says):
    with pytest.raises(InputError, match=says.replace("()", r"\(\)")):
        call(gradcli.compile("y = a*b"))


def test_derivatives_are_graphs():
    graph = parse("f = x**3*y")
    found = evaluate(jvp(graph), {"x": [2.0], "y": [5.0], "x.u": [1.0], "y.u": [10.0]})
    assert found["f.jvp"].tolist() == [3 * 4 * 5 + 8 * 10]
    second = evaluate(hessian(graph, ["x"]), {"x": [2.0], "y": [5.0]})
    assert second["d2f/dx/dx"].tolist() == [6 * 2 * 5]


def test_names_are_completed():
    assert {"grad", "jacobian", "check", "explain"} <= {*dir(gradcli)} == {*gradcli.__all__}
    assert all(hasattr(gradcli, name) for name in dir(gradcli))


def several(x, k):
    return {"a": x**2 * k, "b": (np.sum(np.sin(x)), np.outer(x, x))}


def test_the_vjp_and_the_jvp_of_a_function_are_rows_and_columns_of_differences():
    x, k, u = np.array([0.3, -1.2]), 1.7, (np.array([0.4, 1.1]), -0.6)
    v = {"a": np.array([1.0, 2.0]), "b": (0.5, np.array([[1.0, -1.0], [3.0, 0.2]]))}

    def weighted(x, k):
        y = several(x, k)
        return np.sum(v["a"] * y["a"]) + v["b"][0] * y["b"][0] + np.sum(v["b"][1] * y["b"][1])

    h = 1e-6
    steps = [(np.array([h, 0]), 0), (np.array([0, h]), 0), (0, h)]
    differences = [(weighted(x + dx, k + dk) - weighted(x - dx, k - dk)) / (2 * h) for dx, dk in steps]
    value, pullback = vjp(several, x, k)
    by_x, by_k = pullback(v)
    assert np.allclose(value["b"][1], np.outer(x, x))
    assert np.allclose([*by_x, by_k], differences)
    value, along = jvp(several, (x, k), u)
    assert np.allclose(value["a"], x**2 * k)
    tangent = np.sum(v["a"] * along["a"]) + v["b"][0] * along["b"][0] + np.sum(v["b"][1] * along["b"][1])
    assert np.allclose(tangent, np.dot(differences, [*u[0], u[1]]))


def test_a_text_in_the_place_of_a_function_or_of_a_graph_is_named():
    for call in (grad, hessian, lambda text: export(text, "c")):
        with pytest.raises(TypeError, match=r"is of a Python function|takes a graph"):
            call("y = x**2")
    with pytest.raises(InputError, match="a text has its claims within it"):
        check("y = x**2", "dy/dx = 2*x")


def test_a_check_of_lambdas_has_names_that_can_be_typed():
    (verdict,) = check(lambda x: np.sum(x**2), lambda x: 3 * x, x=(3,)).verdicts
    assert (verdict.claim, verdict.said) == ("df/dx", "gradient(x)")
    with pytest.raises(InputError, match="the shape of `f` is followed by that of `x`"):
        check(lambda x: x**2, lambda x: 2 * x, x=(2,))
