"""Gradients as formulas of matrices: what is written is the derivative, and is written as a textbook would."""

from __future__ import annotations

import re

import numpy as np
import pytest
from conftest import each, examples, long
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from gradcli import evaluate, parse
from gradcli.graph.graph import Graph
from gradcli.graph.vjp import sweep
from gradcli.notation.nodes import Notation
from gradcli.pages.forms.rules import ArrayForms

SHAPES = {
    "x": (3,), "w": (3,), "t": (5,), "a": (3,), "b": (3,), "z": (3,), "X": (5, 3), "A": (3, 3), "B": (3, 3), "k": (),
    "T": (1, 2, 3),
}  # fmt: skip

# an expression, a leaf, its gradient
WRITTEN = [
    ("x.T@A@x", "x", "(A + A.T) @ x"),
    ("x.T@A@x", "A", "outer(x, x)"),
    ("sum((X@w - t)**2)", "w", "2*X.T @ (X @ w - t)"),
    ("mean((X@w - t)**2)", "w", "2/5*X.T @ (X @ w - t)"),
    ("sum((X@w - t)**2)", "t", "2*(t - X @ w)"),
    ("norm(X@w - t)**2/2", "w", "X.T @ (X @ w - t)"),
    ("norm(x)", "x", "x/y"),
    ("sum(A**2)", "A", "2*A"),
    ("x@x", "x", "2*x"),
    ("x@w", "x", "w"),
    ("trace(A@B)", "A", "B.T"),
    ("trace(A.T@B)", "A", "B"),
    ("2*k*trace(A)", "A", "2*k*eye(3)"),
    ("trace(A@A) + trace(A)", "A", "eye(3) + 2*A.T"),
    ("2*trace(A@A)/4 + trace(A@A.T) - trace(A)", "A", "2*A + A.T - eye(3)"),
    ("3*trace(A) - 1.5*trace(A@A) - 3*trace(A)", "A", "-3*A.T"),
    ("-trace(A@A.T@A) - trace(A@A)", "A", "-2*A.T - A.T @ A - A @ (A + A.T)"),
    ("trace(A) - trace(A) + trace(B@A)", "A", "B.T"),
    ("sum(diag(A)**2)", "A", "2*diag(diag(A))"),
    ("trace(X[:2])", "X", "pad(eye(2, 3), (0, 0, 0, 3))"),
    ("sum(k*log_softmax(x))", "x", "k - 3*k*softmax(x)"),
    ("log(det(A))", "A", "inv(A).T"),
    ("-2*log(det(A + B))", "A", "-2*inv(A + B).T"),
    ("a@inv(A)@b", "b", "inv(A).T @ a"),
    ("sum(softmax(z)*b)", "z", "softmax(z)*(b - y)"),
    ("mean((2*x)**3)", "x", "8*x**2"),
    ("sum(x**w)", "x", "w*x**(w - 1)"),
    ("sum(x**20)", "x", "20*x**19"),
    ("0.5*sum(x**2) + k*sum(abs(x))", "x", "k*sign(x) + x"),
    ("k*x@x", "x", "2*k*x"),
    ("sum((x**2)**3)", "x", "6*x**5"),
    ("x@A@w - x@A.T@w", "x", "(A - A.T) @ w"),
    ("x@w/k", "x", "w/k"),
    ("-sum(a*log(softmax(z)))", "z", "sum(a)*softmax(z) - a"),
    ("-sum(a*log_softmax(z))", "z", "sum(a)*softmax(z) - a"),
    (
        "-mean(sum(B*log(softmax(A, axis=1)), axis=1))",
        "A",
        "1/3*(softmax(A, axis=1)*sum(B, axis=1, keepdims=True) - B)",
    ),
    (
        "cross_entropy(reshape(T, (2, 3)), [2, 0])",
        "T",
        "1/2*(softmax(reshape(T, (2, 3)), axis=1) - one_hot([2, 0], 3))",
    ),
    ("-log(softmax(z)[0])", "z", "softmax(z) - [1, 0, 0]"),
    ("-log_softmax(z)[1]", "z", "softmax(z) - [0, 1, 0]"),
    (
        "-sum(log(softmax(A, axis=1)[[0, 1, 2], [2, 0, 0]]))",
        "A",
        "softmax(A, axis=1) - [[0, 0, 1], [1, 0, 0], [1, 0, 0]]",
    ),
    ("sum(x[[0, 2, 0]]**3)", "x", "3*x**2*[2, 0, 1]"),
    ("log(sum(exp(z))) - z[2]", "z", "exp(z)/sum(exp(z)) - [0, 0, 1]"),
    ("k*z[0]*sum(sin(z))", "z", "k*(z[0]*cos(z) + sum(sin(z))*[1, 0, 0])"),
    (
        "-mean(log_softmax(A, axis=1)[[0, 1, 2], [2, 2, 0]])",
        "A",
        "1/3*(softmax(A, axis=1) - [[0, 0, 1], [0, 0, 1], [1, 0, 0]])",
    ),
    ("cross_entropy(A, [2, 0, 1])", "A", "1/3*(softmax(A, axis=1) - one_hot([2, 0, 1], 3))"),
    ("-mean(t*log(sigmoid(X@w)) + (1 - t)*log(1 - sigmoid(X@w)))", "w", "1/5*X.T @ (sigmoid(X @ w) - t)"),
    ("sum(tanh(x))", "x", "1 - tanh(x)**2"),
    ("std(x)", "x", "1/2*(x - mean(x))/y"),
    ("mean(relu(1 - t*(X@w)))", "w", "-1/5*X.T @ (t*where(1 - t*(X @ w) <= 0, 0, 1))"),
    ("m=mean(x); y=mean((x - m)**2)", "x", "2/3*(x - m)"),
    ("sum((A - mean(A, axis=1, keepdims=True))**2/7)", "A", "2/7*(A - mean(A, axis=1, keepdims=True))"),
    ("sum((A - mean(A, axis=0))**2)", "A", "2*(A - mean(A, axis=0))"),
    ("max(x)", "x", "where(x == y, 1, 0)/sum(where(x == y, 1, 0))"),
    ("a@x/(norm(a)*norm(x))", "x", "a/(norm(a)*norm(x)) - y*x/norm(x)**2"),
]
# the same of a system with intermediates that have names
SYSTEMS = [
    ("p=softmax(z); y=-sum(a*log(p))", "z", "sum(a)*p - a"),
    ("p=exp(z)/sum(exp(z)); y=-sum(a*log(p))", "z", "sum(a)*p - a"),
    ("p=sigmoid(X@w); y=-mean(t*log(p) + (1 - t)*log(1 - p))", "w", "1/5*X.T @ (p - t)"),
    ("h=tanh(x); y=h@w", "x", "w*(1 - h**2)"),
    ("h=relu(x); y=h@w", "x", "where(h <= 0, 0, w)"),
    ("m=mean(x); s=var(x); n=(x-m)/sqrt(s); y=n@w", "x", "1/6*(6*w - 3*sum(w*n)*n - 2*sum(w))/sqrt(s)"),
    ("n=layer_norm(A, 3); y=sum(n*B)", "A",
     "(B - n*mean(B*n, axis=1, keepdims=True) - mean(B, axis=1, keepdims=True))"
     "/sqrt(var(A, axis=1, correction=0, keepdims=True) + 0.00001)"),
    ("n=batch_norm(A); y=sum(n*B)", "A",
     "(B - n*mean(B*n, axis=0) - mean(B, axis=0))/sqrt(var(A, axis=0, correction=0) + 0.00001)"),
    ("r=x/norm(x); y=r@a", "x", "(a - sum(a*r)*r)/norm(x)"),
]  # fmt: skip
SAME = [w[:2] for w in WRITTEN + SYSTEMS] + [
    (text, leaf)
    for text, leaves in {
        "sum(relu(X@A)*2)": "XA",
        "sum((X@A).T @ t)": "XAt",
        "x@A@B@w": "xABw",
        "sum(-(A@x)/norm(x)*3)": "Ax",
        "sum(where(X@w > 0, (X@w)**3, -X@w))": "Xw",
        "sum(exp(-x*k)/(1 + w))": "xkw",
        "std(x - w)*k": "xwk",
        "sum(reshape(A, 9)[1:4]*x)": "Ax",
        "sum(A@B - B@A)": "AB",
        "trace(A@B) - trace(A) - trace(A@B) + trace(B)/3": "AB",
        "sum(outer(x, w)*A)": "xwA",
        "prod(x)*max(w)": "xw",
        "sum(cumsum(x)*w)": "xw",
        "mean(A, axis=0)@x": "Ax",
        "log_softmax(z)[1]": "z",
        "sum(exp(x)*x[[2, 0, 1]] - softmax(x[[2, 0, 1]]))": "x",
        "sum(x/w/k - x*k/2)": "xwk",
        "sum(A*k + x)*mean(x/k)": "Axk",
        "sum(layer_norm(A, 3)*B/k)": "ABk",
        "sum(softmax(A@B/k, axis=1)@w)": "ABwk",
        "sum((A/sum(A, axis=1, keepdims=True))**2)*k": "Ak",
        "sum((A - mean(A, axis=0))**3/(k + x))": "Axk",
        "sum(sum(A, axis=0)*x) + sum(sum(A, axis=1)*x)": "Ax",
        "sum(sqrt(x)*sqrt(x)*k/sqrt(w))": "xwk",
        "mean(where(x > w, k, 0)*x)": "xwk",
        "sum(where(A > 1, 0, x)*k)": "Axk",
        "sum(unsqueeze(x, 1)*A/unsqueeze(x*k, 1))": "Axk",
        "sum(x*k/k - k*ones(3))": "xk",
        "sum(std(A, axis=1)/mean(A, axis=1))": "A",
        "sum(A/norm(A))*norm(x)/norm(x)": "Ax",
        "logsumexp(x*k)/k": "xk",
        "sum(huber_loss(x, w))*k": "xwk",
        "sum(sigmoid(expand(k, 3)) - x)*sum(x)": "xk",
        "norm(exp(expand(k, 3)))*sum(x*w)": "xk",
        "sum(where(sum(x) > 0, reshape(T, 3, 2), 1)/lerp(reshape(w, 3, 1), reshape(x, 3, 1), 0.5))": "wxT",
        "prod(exp(expand(k, 2, 3)), axis=0) @ x": "xk",
        "sum(x)*logsumexp(k*ones(3))": "xk",
        "sum(x)*(exp(expand(k, 3)) @ sin(x[0]*ones(3)))": "xk",
        "sum(A*(x + k*ones(2, 3))[0])*sum(sin(expand(x, 2, 3)), axis=0)[1]": "Axk",
        "sum(exp(expand(w[:1], 3)))*sum(x) + norm(expand(w[:1], 3))": "xw",
    }.items()
    for leaf in leaves
]


def gradient(text, leaf):
    """Return the graph, the gradient of a leaf where v is 1, and its form."""
    system = text if "y=" in text else f"y = {text}"
    used = set(re.findall(r"\b\w+\b(?!\()", system))
    graph = parse(system, **{name: shape for name, shape in SHAPES.items() if name in used})
    swept = sweep(graph)
    known = dict.fromkeys(swept.cotangents.values(), 1)
    return swept, swept.gradients[leaf], ArrayForms(graph.labels, known)(swept.gradients[leaf])


@each(("text", "leaf", "expected"), WRITTEN + SYSTEMS)
def test_it_is_written_as_in_a_textbook(text, leaf, expected):
    swept, _, form = gradient(text, leaf)
    assert Notation(swept.graph.labels, implicit=True).name(form) == expected


@long
@each(("text", "leaf"), SAME)
def test_it_is_worth_the_gradient(text, leaf):
    check_worth(*gradient(text, leaf))


def check_worth(swept, plain, form):
    random = np.random.default_rng(1)
    at = {name: random.uniform(0.5, 2, (*n.shape, 1)) for name, n in swept.graph.inputs.items()}
    at["y.v"] = np.ones(1)
    found = evaluate(Graph.of(swept.graph.inputs, {"plain": plain, "form": form}, swept.graph.nodes), at)
    assert_allclose(np.broadcast_to(found["form"], found["plain"].shape), found["plain"], rtol=1e-12, atol=1e-14)


def built(form, *parts):
    return st.builds(form.format, *parts)


VECTORS = st.deferred(
    lambda: (
        st.sampled_from(["x", "w", "A[1]", "A[:, 0]", "x[[0, 0, 2]]"])
        | built("({} {} {})", VECTORS, st.sampled_from("+-*/"), VECTORS)
        | built("({}*{})", SCALARS, VECTORS)
        | built("{}({})", st.sampled_from(["sin", "tanh", "relu", "softmax", "log_softmax"]), VECTORS)
        | built("{}({}, axis=0)", st.sampled_from(["sum", "mean"]), MATRICES)
        | built("({} @ {})", MATRICES, VECTORS)
        | built("diag({})", MATRICES)
    )
)
MATRICES = st.deferred(
    lambda: (
        st.sampled_from(["A", "B", "A.T"])
        | built("({} {} {})", MATRICES, st.sampled_from("+-*"), MATRICES | VECTORS)
        | built("({} @ {}.T)", MATRICES, MATRICES)
        | built("outer({}, {})", VECTORS, VECTORS)
        | built("softmax({}, axis=1)", MATRICES)
    )
)
SCALARS = st.deferred(
    lambda: (
        st.sampled_from(["k", "x[0]", "A[0, 1]"])
        | built("{}({})", st.sampled_from(["sum", "mean", "norm", "logsumexp"]), VECTORS | MATRICES)
        | built("({})[1]", VECTORS)
        | built("({} @ {})", VECTORS, VECTORS)
        | built("trace({})", MATRICES)
    )
)


@settings(max_examples=examples(40))
@given(SCALARS.filter(lambda text: len(text) < 200), st.data())
def test_that_of_any_system_is_worth_the_gradient(text, data):
    inputs = sorted(set(re.findall(r"\b[xwkAB]\b", text)))
    check_worth(*gradient(text, data.draw(st.sampled_from(inputs))))


@each(("text", "leaf"), SAME)
def test_what_is_written_is_worth_the_gradient_when_it_is_typed(text, leaf):
    swept, plain, form = gradient(text, leaf)
    written = Notation(swept.graph.labels, implicit=True).name(form)
    if (
        "cofactors" in written or "product_of_others" in written or " with " in written
    ):  # for which there are other words
        return
    inputs = {name: n for name, n in swept.graph.inputs.items() if name != "y.v"}
    system = text if "y=" in text else f"y = {text}"
    typed = parse(f"{system}\ntyped = {written}", **{name: n.shape for name, n in inputs.items()})
    random = np.random.default_rng(1)
    at = {name: random.uniform(0.5, 2, (*n.shape, 1)) for name, n in inputs.items()}
    expected = evaluate(Graph.of(swept.graph.inputs, {"plain": plain}), at | {"y.v": np.ones(1)})["plain"][..., 0]
    found = evaluate(typed, at)["typed"][..., 0]
    assert_allclose(np.broadcast_to(found, expected.shape), expected, rtol=1e-12, atol=1e-14)


def test_a_network_has_its_adjoints(cli):
    shapes = ("--shape", "X=4x8,W1=8x6,b1=6,W2=6x2,b2=2,t=4x2", "--wrt", "W1,b1,W2,b2")
    network = ("h=relu(X@W1+b1)", "z=h@W2+b2", "L=mean((z-t)**2)")
    assert cli.done("backward", *network, *shapes, "--only", "grad").out.splitlines() == [
        "with the adjoints (z̄ = ∂L/∂z)",
        "",
        "z̄ = 1/4*(z - t)",
        "h̄ = z̄ @ W2.T",
        "",
        "W1.grad = X.T @ where(h <= 0, 0, h̄)",
        "b1.grad = sum(where(h <= 0, 0, h̄), axis=0)",
        "W2.grad = h.T @ z̄",
        "b2.grad = sum(z̄, axis=0)",
    ]


@pytest.mark.parametrize(("v", "form"), [("ones", "2*x"), ("3,3,3", "6*x"), ("0.5,0.5,0.5", "x"), ("1,2,3", "2*v*x")])
def test_v_is_a_number_where_it_is_one(cli, v, form):
    (line,) = cli.done("backward", "y=x**2", "--shape", "x=3", "--v", v, "--only", "grad").out.splitlines()
    assert line.startswith(f"x.grad = {form} = ")


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("columns", [1, 3, 10])
@pytest.mark.parametrize(
    "system",
    ["L = sum((x@W + b - t)**2)", "y = x@W + b; L = sum(y*t*y)", "y = tanh(x@W + b); L = -sum(y - t) + sum(b*b)"],
)
def test_a_formula_has_the_shape_of_the_gradient_for_a_batch_of_one(cli, rows, columns, system):
    shapes = {"x": (rows, 4), "W": (4, columns), "b": (columns,), "t": (rows, columns)}
    given = ",".join(f"{name}={'x'.join(map(str, shape))}" for name, shape in shapes.items())
    out = cli.done("backward", system, "--shape", given, "--wrt", "W,b", "--only", "grad").out
    adjoints = "".join(f"; {line}" for line in re.findall(r"^\w\u0304 = .*$", out, re.MULTILINE)).replace(
        "\u0304", "_bar"
    )
    for name in "Wb":
        written = re.search(rf"^{name}\.grad = (.*)$", out, re.MULTILINE)[1].replace("\u0304", "_bar")
        found = parse(f"{system}{adjoints}; typed = {written}", **shapes).outputs["typed"]
        assert found.shape == shapes[name], written


@pytest.mark.parametrize(
    ("system", "v", "grads"),
    [
        (
            "y=sum(relu(W@x+b))",
            (),
            [
                "W.grad = outer(where(b + W @ x <= 0, 0, 1), x)",
                "x.grad = W.T @ where(b + W @ x <= 0, 0, 1)",
                "b.grad = where(b + W @ x <= 0, 0, 1)",
            ],
        ),
        (
            "y=W@x+b",
            ("--v", "ones"),
            ["W.grad = outer(ones(50), x)", "x.grad = W.T @ ones(50)", "b.grad = [1, 1, 1, …] (50 numbers)"],
        ),
        ("y=sum(W@x+b)", ("--v", "2"), ["b.grad = [2, 2, 2, …] (50 numbers)"]),
    ],
)
def test_large_arrays_have_formulas_without_those_of_their_elements(cli, system, v, grads):
    """The formulas of 10,000 elements would take minutes, and the page does not show them."""
    out = cli.done("backward", system, "--shape", "x=200,W=50x200,b=50", *v).out
    assert set(grads) <= set(out.splitlines())
    assert "∂y/∂" not in out


def test_an_argument_that_fits_only_reshaped_is_written_reshaped(cli):
    at = ("--at", "x=[[1,2,3],[4,5,6]],b=[7,8]", "--v", "[[1,2,3,4,5,6],[1,0,0,0,0,2]]")
    out = cli.done("backward", "z=kron(x,b)", *at, "--only", "grad").out
    x, b, v = np.arange(1.0, 7).reshape(2, 3), np.array([7.0, 8]), np.array([[1.0, 2, 3, 4, 5, 6], [1, 0, 0, 0, 0, 2]])
    written = dict(re.findall(r"(\w)\.grad = (.*?) = \[", " ".join(out.split())))
    numpy = {"sum": np.sum, "reshape": np.reshape, "x": x, "b": b, "v": v}
    parts = v.reshape(2, 3, 2)
    np.testing.assert_array_equal(eval(written["x"], numpy), parts @ b)
    np.testing.assert_array_equal(eval(written["b"], numpy), np.einsum("ij,ijk", x, parts))
