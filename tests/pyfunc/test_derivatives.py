"""Derivatives of NumPy functions, against HIPS autograd and central differences."""

from dataclasses import dataclass
from types import SimpleNamespace

import autograd
import autograd.numpy as anp
import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import gradcli
from gradcli import InputError

pytestmark = pytest.mark.every_case

V = np.array([0.3, -1.2, 2.1, 0.7])
M = np.array([[2.0, 0.3, -0.5], [0.1, 1.5, 0.4], [-0.7, 0.2, 3.0]])
B = np.array([1.0, -2.0, 0.5])

# Each takes a module, NumPy or autograd's, and an array; what it returns is summed with weights.
OF_VECTORS = {
    "ufuncs": lambda np, x: np.exp(-(x**2)) * np.sin(x) + np.tanh(x) / (1 + np.abs(x)) - np.arctan(x) ** 3,
    "powers": lambda np, x: np.sqrt(np.square(x) + 1) + np.power(2.0, x) + np.reciprocal(x),
    "two arguments": lambda np, x: (
        np.logaddexp(x, 0.5) + np.hypot(x, 2.0) if np is not anp else np.logaddexp(x, 0.5) + np.sqrt(x**2 + 4)
    ),
    "maximum": lambda np, x: np.maximum(x, 0.5) + np.minimum(x, 1.0),
    "where": lambda np, x: np.where(x > 0, x**2, -3 * x),
    "a condition as a number": lambda np, x: x * (x > 0),
    "clip": lambda np, x: np.clip(x, -1.0, 1.0) * x,
    "sum, mean, prod": lambda np, x: np.sum(x) * np.mean(x**2) + np.prod(x),
    "var and std": lambda np, x: np.var(x) + np.std(x, ddof=1),
    "max and min": lambda np, x: np.max(x) * np.min(x),
    "cumsum": lambda np, x: np.cumsum(x) ** 2,
    "sort": lambda np, x: np.sort(x) * np.arange(4.0),
    "reshape and T": lambda np, x: (np.reshape(x, (2, 2)).T @ np.array([1.0, 3.0])) ** 2,
    "slices": lambda np, x: x[::-1] * x[[1, 0, 2, 2]] + x[-1],
    "a mask": lambda np, x: x[x > 0] ** 2,
    "concatenate": lambda np, x: np.concatenate([x[:2], x * 2, x[3:]]) ** 2,
    "stack": lambda np, x: np.vstack([x, x**2]) + np.hstack([x, x])[:4] + np.stack([x, x]),
    "array of scalars": lambda np, x: np.array([x[0] * x[1], 2.0, np.sin(x[2])]) ** 2,
    "outer and dot": lambda np, x: np.outer(x, x) @ x + np.dot(x, x) + np.tensordot(x, x, 1),
    "einsum": lambda np, x: np.einsum("i,j,j->i", x, x, np.ones(4)),
    "tile and repeat": lambda np, x: np.tile(x, 2) * np.repeat(x, 2),
    "roll": lambda np, x: np.roll(x, 1) * x,
    "pad": lambda np, x: np.pad(x, (1, 2), "constant") ** 2,
    "column_stack and select": lambda np, x: (
        np.column_stack([x, x**2]) + np.select([x > 1, x > 0], [x, x**3], x**2)[:, None]
    ),
    "diff": lambda np, x: np.diff(x) ** 2,
    "a loop": lambda np, x: sum([x[i] * x[i - 1] for i in range(4)]),
    "linspace": lambda np, x: np.linspace(0.0, 1.0, 4) * x,
    "argmax": lambda np, x: x[np.argmax(x)] * x[0],
    "norm": lambda np, x: np.linalg.norm(x) * x,
    "sinc": lambda np, x: np.sinc(x),
}
OF_MATRICES = {
    "det": lambda np, a: np.linalg.det(a),
    "inv": lambda np, a: np.linalg.inv(a),
    "solve": lambda np, a: np.linalg.solve(a, B),
    "slogdet": lambda np, a: np.linalg.slogdet(a)[1],
    "svd": lambda np, a: np.linalg.svd(a, full_matrices=False)[1],
    "eigenvalues": lambda np, a: np.linalg.eigh(a @ np.transpose(a))[0],
    "projections on eigenvectors": lambda np, a: np.linalg.eigh(a @ np.transpose(a))[1] ** 2,
    "cholesky": lambda np, a: np.linalg.cholesky(a @ np.transpose(a) + np.eye(3)),
    "trace and diag": lambda np, a: np.trace(a @ a) + np.diag(a),
    "triangles": lambda np, a: np.triu(a) * 2 + np.tril(a, -1),
    "axes": lambda np, a: np.sum(a, axis=0) * np.max(a, axis=1, keepdims=True),
    "transpose": lambda np, a: np.transpose(a) @ np.swapaxes(a, 0, 1) + np.moveaxis(a, 0, 1),
    "einsum": lambda np, a: np.einsum("ij,kj->ik", a, a),
    "kron": lambda np, a: np.kron(a[:2, :2], a[1:, 1:]),
    "rows and columns": lambda np, a: a[1:, ::2] * a[[0, 2]][:, [1, 1]] + a[..., None, 0][:2],
}
CASES = [pytest.param(f, V, id=n) for n, f in OF_VECTORS.items()]
CASES += [pytest.param(f, M, id=f"{n} of a matrix") for n, f in OF_MATRICES.items()]


def weighted(f, np_module, wanted=None):
    """Return a scalar function: the result times weights."""

    def scalar(x):
        y = f(np_module, x)
        w = np.cos(np.arange(float(np.prod(np.shape(y), dtype=int)))).reshape(np.shape(y))
        return np_module.sum(y * w)

    return scalar


@pytest.mark.parametrize(("f", "x"), CASES)
def test_the_gradient_is_autograds(f, x):
    own, peer = weighted(f, np), autograd.grad(weighted(f, anp))
    expected = peer(x)
    np.testing.assert_allclose(gradcli.grad(own)(x), expected, rtol=1e-10, atol=1e-12)
    compiled = gradcli.compile(gradcli.grad(own))
    np.testing.assert_allclose(compiled(x), expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(compiled(x), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("f", "x"), CASES[::4])
def test_the_gradient_of_a_gradient_is_autograds(f, x):
    u = np.sin(np.arange(float(x.size))).reshape(x.shape)
    own = gradcli.grad(lambda x: np.sum(gradcli.grad(weighted(f, np))(x) * u))
    peer = autograd.grad(lambda x: anp.sum(autograd.grad(weighted(f, anp))(x) * u))
    np.testing.assert_allclose(own(x), peer(x), rtol=1e-9, atol=1e-10)


def central(f, x, h=1e-6):
    result = np.zeros(x.shape)
    for k in np.ndindex(x.shape):
        e = np.zeros(x.shape)
        e[k] = h
        result[k] = (f(x + e) - f(x - e)) / (2 * h)
    return result


def assembled(x):
    y = np.zeros((3, 2))
    y[0, 0] = x[0] ** 2
    y[1] = x[:2] * x[2]
    row = y[2]
    row[1] = x[3] * y[0, 0]
    y[:, 0] += x[1]
    z = y.T
    z[1, 0] = np.sin(x[0])
    z *= 2.0
    return np.sum(y * np.arange(6.0).reshape(3, 2)) + np.sum(z)


def recurrence(x):
    y = np.empty(50)
    y[0] = x[0]
    for k in range(1, 50):
        y[k] = 0.9 * np.sin(y[k - 1]) + x[1] / k
    return y[-1] + np.mean(y)


def scattered(x):
    y = np.ones(6)
    y[[0, 2, 0]] = x[:3]  # the last of two values counts
    y[y > 2] = 0.0
    return np.sum(y**2 * np.arange(6.0))


@pytest.mark.parametrize("f", [assembled, recurrence, scattered])
def test_assigned_elements_are_differentiated(f):
    np.testing.assert_allclose(gradcli.grad(f)(V), central(f, V), rtol=1e-6, atol=1e-8)
    value, gradient = gradcli.value_and_grad(f)(V)
    assert value == pytest.approx(f(V))
    np.testing.assert_allclose(gradient, central(f, V), rtol=1e-6, atol=1e-8)


@dataclass
class Layer:
    weight: np.ndarray
    bias: np.ndarray
    kind: str = "tanh"


def test_arguments_may_be_trees_of_arrays():
    def loss(layers, x):
        for layer in layers:
            x = np.tanh(layer.weight @ x + layer.bias)
        return np.sum(x)

    layers = [Layer(M, B), Layer(M[:2], B[:2])]
    gradient = gradcli.grad(loss)(layers, B)
    assert [type(g) for g in gradient] == [Layer, Layer]
    np.testing.assert_allclose(
        gradient[0].weight, central(lambda w: loss([Layer(w, B), layers[1]], B), M), rtol=1e-6, atol=1e-9
    )
    compiled = gradcli.compile(gradcli.grad(loss))(layers, B)
    np.testing.assert_allclose(compiled[1].bias, gradient[1].bias)


def test_several_arguments_by_position_and_by_name():
    def f(x, y, k=3.0):
        return k * np.sum(x * y)

    both = gradcli.grad(f, (0, "y"))(B, 2 * B)
    np.testing.assert_allclose(both[0], 6 * B)
    np.testing.assert_allclose(both[1], 3 * B)
    np.testing.assert_allclose(gradcli.grad(f, "k")(B, B, k=1.0), B @ B)
    values, gradients = gradcli.compile(f)(B, B)
    assert values["f"] == pytest.approx(3 * B @ B)
    assert sorted(gradients) == ["k", "x", "y"]


def test_jacobian_and_hessian():
    np.testing.assert_allclose(gradcli.jacobian(lambda x: M @ x**2)(B), M * 2 * B)
    np.testing.assert_allclose(gradcli.hessian(lambda x: x @ M @ x)(B), M + M.T)


def test_results_may_be_lists_tuples_and_dictionaries():
    def rhs(t, z):
        x, y = z
        return [x - x * y, x * y - y]

    z = np.array([1.0, 2.0])
    np.testing.assert_allclose(gradcli.jacobian(rhs, "z")(0.0, z), [[-1, -1], [2, 0]])
    compiled = gradcli.compile(gradcli.jacobian(rhs, "z"))
    np.testing.assert_allclose(compiled(0.0, 2 * z), [[-3, -2], [4, 1]])
    of_several = lambda z: {"a": z[0] * z[1], "b": (z, 3.0)}  # noqa: E731
    for jacobian in (gradcli.jacobian(of_several), gradcli.compile(gradcli.jacobian(of_several))):
        found = jacobian(z)
        np.testing.assert_allclose(found["a"], [2, 1])
        np.testing.assert_allclose(found["b"][0], np.eye(2))
        np.testing.assert_allclose(found["b"][1], [0, 0])
    values, gradients = gradcli.compile(rhs)(0.0, z, v={"rhs0": 1.0, "rhs1": 2.0})
    assert values == {"rhs0": -1, "rhs1": 0}
    np.testing.assert_allclose(gradients["z"], [3, -1])
    with pytest.raises(InputError, match="v has a weight for each result"):
        gradcli.compile(rhs)(0.0, z)


def test_each_branch_is_compiled_once():
    calls = []

    def f(x):
        calls.append(1)
        return x**2 if x > 0 else -3 * x

    run = gradcli.compile(gradcli.grad(f))
    assert [run(x) for x in (1.0, 2.0, -1.0, 3.0, -2.0)] == [2.0, 4.0, -3.0, 6.0, -3.0]
    assert len(calls) == 2


def test_what_a_function_reads_outside_is_that_of_the_call():
    factor = [2.0]
    derivative = gradcli.grad(lambda x: factor[0] * x)
    first = derivative(1.0)
    factor[0] = 5.0
    assert (first, derivative(1.0)) == (2.0, 5.0)


def test_numpy_is_as_it_was_also_after_an_exception():
    before = np.zeros, np.array, np.random.randn
    with pytest.raises(ZeroDivisionError):
        gradcli.grad(lambda x: x * (1 // 0))(1.0)
    assert (np.zeros, np.array, np.random.randn) == before
    assert type(np.zeros(2)) is np.ndarray


UNSEEN = SimpleNamespace(array=np.empty(4))  # an object of Python's, and none of the user's
LOST = {
    "float(x)": lambda x: float(x[0]),
    "`np.linalg.pinv`": lambda x: np.linalg.pinv(np.outer(x, x))[0, 0],
    "an array of numbers cannot hold": lambda x: np.sum(np.add(x, x, out=UNSEEN.array)),
    "np.random.normal": lambda x: np.sum(x * np.random.normal(size=4)),
    "complex": lambda x: np.sum(x * 1j),
    "cuts off the fraction": lambda x: _into_integers(x),
    "a gradient is that of a scalar": lambda x: x,
}


def _into_integers(x):
    y = np.zeros(4, dtype=int)
    y[0] = x[0]
    return np.sum(y)


@pytest.mark.parametrize("text", LOST)
def test_what_cannot_be_traced_is_an_error(text):
    with pytest.raises(InputError) as raised:
        gradcli.grad(LOST[text])(V)
    assert text in str(raised.value)


NUMBERS = st.floats(-2, 2, allow_subnormal=False).map(lambda x: round(x, 3))
VECTORS = arrays(float, 3, elements=NUMBERS)


@settings(max_examples=examples(25), deadline=None)
@given(VECTORS, VECTORS, NUMBERS)
def test_derivatives_are_linear_and_products_have_leibnizs_rule(x, w, c):
    f = lambda x: np.sum(np.sin(x) * w)  # noqa: E731
    g = lambda x: np.dot(x, x) + x[0] * x[2]  # noqa: E731
    df, dg = gradcli.grad(f)(x), gradcli.grad(g)(x)
    np.testing.assert_allclose(gradcli.grad(lambda x: c * f(x) + g(x))(x), c * df + dg, atol=1e-12)
    np.testing.assert_allclose(gradcli.grad(lambda x: f(x) * g(x))(x), df * g(x) + f(x) * dg, atol=1e-10)
    np.testing.assert_allclose(gradcli.grad(lambda x: f(M @ x))(x), M.T @ gradcli.grad(f)(M @ x), atol=1e-10)


@settings(max_examples=examples(25), deadline=None)
@given(VECTORS)
def test_what_is_known_after_an_assignment_is_what_numpy_has(x):
    def f(x):
        y = np.zeros(3)
        y[1:] = x[:2]
        y[0] = y[1] * y[2]
        return y

    np.testing.assert_array_equal(gradcli.trace(f)(x=x).outputs["f"].shape, (3,))
    np.testing.assert_allclose(gradcli.jacobian(f)(x), [[x[1], x[0], 0], [1, 0, 0], [0, 1, 0]])


special = pytest.importorskip("scipy.special")
SPECIAL = {
    "logsumexp": lambda np, special, x: special.logsumexp(x),
    "logsumexp of rows": lambda np, special, x: special.logsumexp(np.reshape(x, (2, 2)), axis=1),
    "erf": lambda np, special, x: special.erf(x) + special.erfc(x**2),
    "gamma": lambda np, special, x: special.gammaln(x**2 + 1) * special.psi(x**2 + 1),
    "expit and logit": lambda np, special, x: special.logit(special.expit(x)) * x,
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions_have_autograds_gradients(name):
    import autograd.scipy.special

    f = SPECIAL[name]
    own = gradcli.grad(lambda x: np.sum(f(np, special, x)))(V)
    peer = autograd.grad(lambda x: anp.sum(f(anp, autograd.scipy.special, x)))(V)
    np.testing.assert_allclose(own, peer, rtol=1e-10)


def test_softmax_of_scipy():
    x = V
    np.testing.assert_allclose(
        gradcli.jacobian(special.softmax)(x),
        np.diag(special.softmax(x)) - np.outer(special.softmax(x), special.softmax(x)),
    )
