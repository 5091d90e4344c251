"""The JAX engine against the plain interpreter: the same numbers at ordinary points, at ties, infinities and NaN."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from test_compiled import BUILT, IN_ORDER, SHAPES, SYSTEMS, graph_of, text_of

from gradcli import evaluate, parse, vjp
from gradcli.engine.compiled import Compiled
from gradcli.graph.operations import OPERATIONS

pytest.importorskip("jax")

from gradcli.engine.jax_kernel import FUNCTIONS, JAX

EDGES = np.array([0.0, -0.0, 1.0, -1.0, 2.0, 0.5, np.inf, -np.inf, np.nan, 1e-300, 1e300])
CORNERS = [
    "y = relu(a)*b + abs(a) + maximum(a, b) + minimum(a, 0)",
    "y = where(a > b, a, b) + clip(a, -1, 1) + sign(a) + heaviside(a, b)",
    "y = max([a, b, a]) + min([a, b]) + norm([a, b]) + sum([a, b, 1])",
    "y = sqrt(a) + a**b + atan2(a, b) + hypot(a, b)",
    "y = softmax([a, b])[0] + logsumexp([a, b, 1]) + sigmoid(a) + softplus(b) + tanh(a)",
    "y = sort([a, b, a])[1] + median([a, b, 1]) + prod([a, b, a]) + cumprod([a, b])[1]",
    "y = argmax([b, a]) + argmin([a, b]) + a",
]


def test_every_operation_has_a_rule():
    primitive = {op for op, row in OPERATIONS.items() if row.for_engines is None} | {"cofactors"}
    spelled = {op for op, row in OPERATIONS.items() if row.spelling_in("jax")}
    assert primitive <= spelled | set(JAX) | set(FUNCTIONS)
    assert set(JAX) | set(FUNCTIONS) <= primitive


def agree(graph, points):
    found = Compiled(graph, engine="jax")(points)
    expected = evaluate(graph, points)
    for name, right in expected.items():
        own = np.broadcast_to(found[name], np.broadcast_shapes(found[name].shape, right.shape))
        right = np.broadcast_to(right, own.shape)
        scale = np.abs(right[np.isfinite(right)]).max(initial=0)
        assert_allclose(own, right, rtol=1e-12, atol=1e-12 * scale, err_msg=name)


@pytest.mark.parametrize("text", SYSTEMS)
def test_values_and_gradients_are_those_of_the_interpreter(text):
    shapes = {n: s for n, s in SHAPES.items() if s}
    graph = parse(text, **{n: s for n, s in shapes.items() if n in text})
    random = np.random.default_rng(0)
    for own in (graph, vjp(graph)):
        agree(own, {n: random.uniform(0.5, 1.5, (*x.shape, 37)) for n, x in own.inputs.items()})


@pytest.mark.parametrize("system", [*BUILT, *IN_ORDER], ids=text_of)
def test_what_llvm_or_the_language_lacks(system):
    graph = graph_of(system)
    random = np.random.default_rng(1)
    agree(graph, {n: random.uniform(0.5, 1.5, (*x.shape, 5)) for n, x in graph.inputs.items()})


@pytest.mark.parametrize("text", CORNERS)
def test_corners_infinities_and_nan(text):
    graph = parse(text)
    a, b = (v.ravel() for v in np.meshgrid(EDGES, EDGES))
    with np.errstate(all="ignore"):
        agree(graph, {"a": a, "b": b})
        agree(vjp(graph), {"a": a, "b": b, "y.v": np.ones(a.size)})


@pytest.mark.parametrize("text", ["y = max(v)", "y = min(v)", "y = max(M, axis=1)", "y = softmax(v)", "y = norm(v)"])
def test_a_nan_among_thousands_of_points(text):
    """From 2,048 on, XLA's maximum over an axis is other code, which loses it."""
    graph = parse(text, **{n: s for n, s in {"v": (3,), "M": (2, 3)}.items() if n in text})
    random = np.random.default_rng(2)
    with np.errstate(all="ignore"):
        for own in (graph, vjp(graph)):
            agree(own, {n: random.choice(EDGES, (*x.shape, 3000)) for n, x in own.inputs.items()})
