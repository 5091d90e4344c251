"""Random systems, written in gradcli's language, against HIPS autograd.

The text of a system is Python as well: with the functions of `autograd.numpy` under the names of the language it
computes the same values, and autograd differentiates it.
"""

import autograd.numpy as anp
import numpy as np
from autograd import grad
from conftest import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from gradcli import evaluate, parse, vjp
from gradcli.graph.rewrite import optimise

LEAVES = {"a": (), "b": (), "x": (3,), "z": (3,), "u": (2,), "M": (2, 3), "N": (3, 3)}

ELEMENTWISE = [
    "{0} + {1}", "{0} - {1}", "{0}*{1}", "-{0}", "{0}/(1.5 + {1}**2)", "{0}**2 - {1}/3", "(1 + {0}**2)**(sin({1})/2)",
    "2**sin({0})", "sin({0})*cos({1})", "tan({0}/4)", "exp(-{0}**2)", "exp(sin({0}))", "expm1({0}/5)",
    "log(2 + {0}**2)", "log1p({0}**2)", "log2(3 + cos({0}))", "sqrt(1 + {0}**2)", "tanh({0} - {1})", "sinh(sin({0}))",
    "cosh(sin({0}))", "arctan({0})", "arcsin(sin({0})/2)", "arctan2({0}, 2 + {1}**2)", "abs({0})",
    "maximum({0}, {1})", "minimum({0}, {1})", "where({0} > {1}, {0}**2, sin({1}))", "clip({0}, -1.1, 0.9)*{1}",
    "relu({0} - {1})", "hypot({0}, 1.5)",
]  # fmt: skip
# By the dimensions of the array that is read; `{n}` is its last size, `{axis}` an axis.
STRUCTURAL = {
    1: [
        "sum({0})", "mean({0}, keepdims=True)", "prod({0})", "max({0})", "min({0})", "norm({0})", "var({0}, ddof=1)",
        "cumsum({0})", "softmax({0})", "logsumexp({0})", "{0}[::-1]", "{0}[0]*{0}", "{0}[1:]", "{0}[:, None]",
        "diag({0})", "outer({0}, {0})", "{0} @ {0}", "{0} @ outer({0}, sin({0}))", "stack([{0}, cos({0})])",
        "concatenate([{0}, {0}**2])",
    ],
    2: [
        "sum({0})", "sum({0}, axis={axis})", "sum({0}, axis={axis}, keepdims=True)", "mean({0}, axis=(0, 1))",
        "prod({0}, axis={axis})", "max({0}, axis={axis})", "min({0}, axis={axis}, keepdims=True)", "norm({0})",
        "std({0}, axis={axis}, ddof=0)", "var({0}, axis={axis}, ddof=0)", "cumsum({0}, axis={axis})", "softmax({0})",
        "logsumexp({0}, axis={axis})", "{0}.T", "{0}[0]", "{0}[:, -1]", "{0}[::-1, ::-2]", "{0}[1:, 0]*{0}[0, 0]",
        "diag({0})", "trace({0})", "{0} @ {0}.T", "{0} @ {0}[-1]", "{0}[:, 0] @ {0}", "reshape({0}, (-1,))",
        "concatenate([{0}, sin({0})], axis={axis})", "stack([{0}[0], {0}[-1]], axis={axis})",
    ],
}  # fmt: skip


def _softmax(x):
    weights = anp.exp(x - anp.max(x, axis=-1, keepdims=True))
    return weights / anp.sum(weights, axis=-1, keepdims=True)


def _logsumexp(x, **axes):
    return anp.log(anp.sum(anp.exp(x), **axes))


PYTHON = vars(anp) | {
    "norm": anp.linalg.norm,
    # autograd's pullback of `where` does not undo a broadcast.
    "where": lambda c, x, y: anp.where(c, x + anp.zeros(c.shape), y + anp.zeros(c.shape)),
    "relu": lambda x: anp.where(x > 0, x, 0.0),
    "softmax": _softmax,
    "logsumexp": _logsumexp,
}


@st.composite
def systems(draw):
    """Draw statements as (name, expression), and a value for each leaf."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    point = {name: rng.uniform(-1.5, 1.5, shape) for name, shape in LEAVES.items()}
    values = dict(point)
    statements = []
    for k in range(draw(st.integers(1, 9))):
        expression = draw(expressions({name: np.shape(value) for name, value in values.items()}))
        value = np.asarray(eval(expression, PYTHON, values))
        if np.abs(value).max() > 20:
            expression, value = f"3*sin({expression})", 3 * np.sin(value)
        if value.size <= 24:
            statements.append((f"h{k}", expression))
            values[f"h{k}"] = value
    return statements, point


@st.composite
def expressions(draw, shapes):
    """Draw an expression in one or two of the names, of which the last are the likeliest."""
    names = [*shapes, *[name for name in shapes if name not in LEAVES] * 3]
    first = draw(st.sampled_from(names))
    shape = shapes[first]
    if min(shape, default=0) > 1 and draw(st.booleans()):
        template = draw(st.sampled_from(STRUCTURAL[len(shape)]))
        assume(not (template == "diag({0})" and len(set(shape)) > 1))  # autograd's pullback is for square matrices
        return template.format(first, axis=draw(st.integers(-len(shape), len(shape) - 1)))
    second = draw(st.sampled_from([name for name in names if fits(shape, shapes[name])]))
    return draw(st.sampled_from(ELEMENTWISE)).format(first, second)


def fits(a, b):
    return all(m == n or 1 in (m, n) for m, n in zip(reversed(a), reversed(b), strict=False))


@settings(max_examples=examples(100), deadline=None)
@given(systems(), st.integers(0, 2**32))
def test_random_system(system, seed):
    statements, point = system
    assume(statements)
    graph = parse("; ".join(f"{name} = {expression}" for name, expression in statements), **LEAVES)
    rng = np.random.default_rng(seed)
    v = {name: rng.uniform(-1, 1, node.shape) for name, node in graph.outputs.items()}

    def forward(point):
        scope = dict(point)
        for name, expression in statements:
            scope[name] = eval(expression, PYTHON, scope)
        return scope

    def weighted(point):
        scope = forward(point)
        return sum(anp.sum(v[name] * scope[name]) for name in v)

    with np.errstate(all="ignore"):
        expected = grad(weighted)(point)
    assume(all(np.isfinite(g).all() for g in expected.values()))  # where it divides by a norm or a factor of 0

    at = {name: value[..., None] for name, value in (point | {f"{y}.v": value for y, value in v.items()}).items()}
    values, scope = evaluate(graph, at), forward(point)
    assert list(values) == list(graph.outputs)
    for name, value in values.items():
        agree(value, scope[name])
    for grads in (vjp(graph), optimise(vjp(graph))):
        for name, value in evaluate(grads, at).items():
            agree(value, expected[name.removesuffix(".grad")])


def agree(batch, expected):
    assert batch.shape == (*np.shape(expected), 1)
    assert_allclose(batch[..., 0], expected, rtol=1e-10, atol=1e-10 * max(1, np.abs(expected).max()))
