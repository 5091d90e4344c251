"""Every operation of the table: its value against NumPy's, its first and second derivatives against differences.

The second derivative is the `vjp` of the `vjp`, so each rule is also differentiated itself.
"""

import json
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from conftest import each, examples
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes
from numpy.testing import assert_allclose

from gradcli import evaluate, parse, vjp
from gradcli.graph import construct, index_arrays, matrices
from gradcli.graph.calls import call_of, opened
from gradcli.graph.construct import call, corner, where
from gradcli.graph.graph import Graph
from gradcli.graph.index_arrays import dynamic_scatter, dynamic_slice, gather, index_add
from gradcli.graph.jvp import jvp
from gradcli.graph.node import compare, const, leaf
from gradcli.graph.operations import OPERATIONS

ANY, POSITIVE, NEGATIVE, UNIT = (-2.0, 2.0), (0.5, 3.0), (-3.0, -1.0), (-0.9, 0.9)

# The domain of each argument.
_ALIKE = {
    (ANY, ANY): """add sub mul leaky_relu elu maximum minimum logaddexp logistic_loss heaviside lt le gt ge eq ne
        and or""",
    (ANY, NEGATIVE): "div hypot atan2 celu",
    (ANY,): """neg identity exp exp2 expm1 sin cos atan sinh cosh tanh sech asinh erf erfc i0 i1 relu sigmoid softplus
        silu gelu mish selu logsigmoid softsign tanhshrink abs ndtr frac sign floor ceil trunc round not""",
    (POSITIVE,): "sqrt log log1p log2 log10 csc cot gamma lgamma digamma polygamma zeta",
    (UNIT,): "tan sec asin acos atanh",
    (ANY, ANY, ANY): "clamp where corner lerp",
}
DOMAINS = {op: domains for domains, ops in _ALIKE.items() for op in ops.split()}
DOMAINS |= {
    "pow": (POSITIVE, ANY),
    "cbrt": (NEGATIVE,),
    "acosh": ((1.2, 3.0),),
    "hardtanh": (ANY, (-1.5, -0.5), (0.5, 1.5)),
    "mod": (ANY, (2.5, 4.5)),
    "fmod": ((-2.9, -2.2), (1.0, 1.09)),
    "huber": ((-2.5, -1.6), (0.5, 1.5)),
    "log_loss": ((0.1, 0.9), (0.1, 0.9)),
    "floor_divide": (ANY, (2.5, 4.5)),
}
# Its derivative is 0, whatever the differences are.
DETACHED = {"detach"}
# What takes more than leaves (a condition, a whole number), or is a condition.
BUILT = {
    **{op: partial(compare, op) for op, row in OPERATIONS.items() if row.kind == "condition"},
    "where": lambda c, a, b: where(c > 0, a, b),
    "corner": lambda c, a, b: corner(c > 0, a, b),
    "polygamma": lambda x: call("polygamma", 1, x),
    "zeta": lambda q: call("zeta", 3, q),
}

SHAPES = {"a": (), "x": (3,), "z": (3,), "M": (2, 3), "N": (3, 4), "T": (2, 2, 3), "U": (2, 3, 2), "V": (1, 3, 2)}
SHAPES |= {"P": (3, 3), "I": (1, 2, 4, 3), "K": (2, 2, 2, 2)}

DISTINCT = const((6, 1, 0, 1, 13, 1, 0, 1, 27), (3, 3))  # its eigenvalues are far apart


def integers(numbers):
    array = np.array(numbers)
    return const(tuple(array.reshape(-1).tolist()), array.shape, "int64")


def stacked(x):
    return construct.stack([x, x * x])


# Calls by operation, parted by semicolons; a line that is indented goes on with the one above.  Each is read by
# gradcli, and by Python with NumPy's functions under the same names.
TABLE = Path(__file__).with_name("expressions.txt").read_text("utf-8").replace("\n    ", " ")
SPELLED = {op: calls.split("; ") for op, calls in re.findall(r"^(\w+): (.+)$", TABLE, re.MULTILINE)}
# What the language does not spell.
MADE = {
    "product_of_others": [
        lambda x: construct.product_of_others(x, (0,)),
        lambda x: construct.product_of_others(construct.index(x, (range(1),)), (0,)),
        lambda T: construct.product_of_others(T, (0, 2)),
        lambda M: construct.product_of_others(construct.concatenate([M, M * M, M], 1), (1,)),
    ],
    "sum_segments": [lambda x: call_of("sum_segments", (0,), x * x, compare("gt", x, const(0)))],
    "recurrence": [
        lambda x, z: construct.recurrence(construct.index(x, (range(2),)), z, 0),
        lambda T: construct.recurrence(construct.index(T, (range(2), range(2), range(1, 3))), T * T, 2),
    ],
    "take_along": [lambda x, z: construct.along("take_along", x, construct.ordered("argsort", z, 0, False), 0)],
    "put_along": [lambda M: construct.along("put_along", M * M, construct.ordered("argsort", M, 1, True), 1)],
    "gather": [lambda x: gather(x * x, 0, integers([2, 0, 2])), lambda T: gather(T, 1, integers([[1, 0], [0, 0]]))],
    "index_add": [
        lambda x: index_add(x * x, 0, integers([1, 0, 1]), 4),
        lambda M: index_add(M, 0, integers([[0, 1, 1], [3, 1, 0]]), 4),
    ],
    "dynamic_slice": [
        lambda x: dynamic_slice(x * x, (0,), integers([2])),
        lambda T: dynamic_slice(T, (0, None, range(1)), integers([1, 1])),
    ],
    "dynamic_scatter": [
        lambda x: dynamic_scatter(x * x, (range(0, 6, 2),), integers([1]), (7,)),
        lambda M: dynamic_scatter(M, (0, range(2)), integers([1, 2]), (2, 5, 3)),
    ],
    "argmedian_mask": [lambda P: construct.argument_mask("argmedian_mask", P, 0)],
    "argmax_mask": [lambda M: construct.argument_mask("argmax_mask", M, 0)],
    "argmin_mask": [lambda M: construct.argument_mask("argmin_mask", M, 1)],
    "cofactors": [
        lambda P: matrices.cofactors(P),
        lambda T: matrices.cofactors(construct.index(T, (range(2), range(2), range(2)))),
    ],
    "cholesky": [lambda P: matrices.cholesky(P + DISTINCT), lambda P: matrices.cholesky(stacked(P + DISTINCT))],
    "eigvalsh": [lambda P: matrices.eigvalsh(P + DISTINCT), lambda P: matrices.eigvalsh(stacked(P + DISTINCT))],
    "eigvecsh": [lambda P: matrices.eigvecsh(P + DISTINCT), lambda P: matrices.eigvecsh(stacked(P + DISTINCT))],
    "svdvals": [lambda P: matrices.svdvals(P + DISTINCT), lambda M: matrices.svdvals(M), lambda U: matrices.svdvals(U)],
    "svd_u": [
        lambda P: matrices.singular_vectors("svd_u", P + DISTINCT),
        lambda M: matrices.singular_vectors("svd_u", M),
        lambda N: matrices.singular_vectors("svd_u", construct.swap(N)),
        lambda U: construct.sliced(matrices.singular_vectors("svd_u", U, full=True), 2, range(2)),
    ],
    "svd_vh": [
        lambda P: matrices.singular_vectors("svd_vh", P + DISTINCT),
        lambda M: construct.sliced(matrices.singular_vectors("svd_vh", M, full=True), 0, range(2)),
        lambda U: matrices.singular_vectors("svd_vh", U),
    ],
    "from_diagonal": [lambda x: construct.from_diagonal(x, (3, 5)), lambda x: construct.from_diagonal(x, (4, 3))],
    "broadcast": [lambda x: construct.broadcast(x, (2, 3)), lambda V: construct.broadcast(V, (2, 2, 3, 2))],
    "scatter_add": [lambda M: index_arrays.scatter_add(M, 1, index_arrays.IndexArray.of([3, 0, 3]), 5)],
    "scatter": [lambda x, a: construct.scatter((2, 3), [((0, range(3)), x), ((0, range(2, -1, -1)), x), ((1, 2), a)])],
    "embedding": [lambda M: call_of("embedding", (None,), integers([[0, 1, 1], [1, 0, 0]]), M * M)],
}
EXPRESSIONS = {op: [*SPELLED.get(op, []), *MADE.get(op, [])] for op in SPELLED | MADE}


NUMPY = vars(np) | {
    "cummax": lambda x, axis=0: np.maximum.accumulate(x, axis),
    "cummin": lambda x, axis=0: np.minimum.accumulate(x, axis),
    "segment_sum": lambda x, ids, n: np.stack([x[np.asarray(ids) == k].sum(axis=0) for k in range(n)]),
    "norm": np.linalg.norm,
    "var": partial(np.var, ddof=1),
    "std": partial(np.std, ddof=1),
    "logsumexp": lambda x, **axes: np.log(np.sum(np.exp(x), **axes)),
    "log_softmax": lambda x, axis=-1: x - np.log(np.exp(x).sum(axis=axis, keepdims=True)),
    "det": np.linalg.det,
    "inv": np.linalg.inv,
    "solve": np.linalg.solve,
    "softmax": lambda x, axis=-1: np.exp(x) / np.exp(x).sum(axis=axis, keepdims=True),
    "transpose": lambda x, *axes: np.swapaxes(x, *axes) if len(axes) == 2 else np.transpose(x, *axes),
    "permute": lambda x, *axes: np.transpose(x, axes),
    "reshape": lambda x, *shape: x.reshape(*shape),
}


# PyTorch's values of layers and losses: `record_calls.py`.
RECORDED = json.loads(Path(__file__).with_name("calls.json").read_text("utf-8"))


def graph_of(build, **shapes):
    leaves = {name: leaf(shape) for name, shape in shapes.items()}
    return Graph.of(leaves, {"y": build(**leaves)})


def random_point(graph, domains, rng):
    """Return distinct values for the leaves: no two are equal, none is whole or 0, and none is near to that."""
    point = {}
    for i, ((name, node), (low, high)) in enumerate(zip(graph.inputs.items(), domains, strict=True)):
        count = max(16, node.size)
        places = rng.choice(count, node.size, replace=False) + (i + 1) / (len(graph.inputs) + 1)
        point[name] = low + (high - low) * places.reshape(node.shape) / count
    return point


def at(graph, point):
    """Evaluate at one point; return the outputs by name."""
    found = evaluate(graph, {name: value[..., None] for name, value in point.items()})
    return {name: value[..., 0] for name, value in found.items()}


def differences(graph, point, name, h=1e-3):
    """Return the gradient of vᵀy for one leaf, by central differences extrapolated from h and h/2."""
    x = point[name]
    steps = np.eye(x.size).reshape(*x.shape, x.size)
    shifted = np.concatenate([x[..., None] + s * steps for s in (h, -h, h / 2, -h / 2)], axis=-1)
    found = evaluate(graph, {k: v[..., None] for k, v in point.items()} | {name: shifted})
    total = np.zeros(4 * x.size)
    for output, y in found.items():
        total += np.sum(point[f"{output}.v"][..., None] * y, axis=tuple(range(y.ndim - 1)))
    up, down, half_up, half_down = total.reshape(4, *x.shape)
    return (8 * (half_up - half_down) - (up - down)) / (6 * h)


def assert_close(found, expected, rtol, atol, name):
    """Be quick where NumPy's `assert_allclose` has nothing to tell, which takes its time to find that."""
    with np.errstate(invalid="ignore"):
        apart = np.abs(np.subtract(found, expected, dtype=float))
    if not (apart <= atol + rtol * np.abs(expected)).all():
        assert_allclose(found, expected, rtol=rtol, atol=atol, err_msg=name)


def check_grads(graph, point, rng, order=2):
    """Check vᵀJ, the vᵀJ of that, and so on up to `order`, against differences."""
    point = point | {f"{name}.v": rng.uniform(-1, 1, y.shape) for name, y in graph.outputs.items()}
    grads = vjp(graph)
    found = at(grads, point)
    for name, node in graph.inputs.items():
        grad = found[f"{name}.grad"]
        assert grad.shape == node.shape
        assert_close(grad, differences(graph, point, name), 1e-7, 1e-8, name)
    if order > 1:
        check_grads(grads, point, rng, order - 1)


def check_batch(graph, domains, rng, points=3):
    """Check that many points at once give what each gives alone, and that an input may have one point for all."""
    singles = [random_point(graph, domains, rng) for _ in range(points)]
    batch = {name: np.stack([single[name] for single in singles], axis=-1) for name in graph.inputs}
    batch |= {f"{name}.v": rng.uniform(-1, 1, (*y.shape, 1)) for name, y in graph.outputs.items()}
    first = next(iter(graph.inputs))
    for g in (graph, vjp(graph)):
        for values in (batch, batch | {first: batch[first][..., :1]}):
            together = evaluate(g, values)
            for k in range(points):
                one = at(g, {name: value[..., k % value.shape[-1]] for name, value in values.items()})
                for name, value in together.items():
                    shape = g.outputs[name].shape
                    assert value.shape in {(*shape, 1), (*shape, points)}
                    assert_close(value[..., k % value.shape[-1]], one[name], 1e-12, 1e-14, name)


def test_no_operation_is_forgotten():
    elementwise = {op for op, row in OPERATIONS.items() if row.broadcasts}
    assert elementwise == set(DOMAINS) | DETACHED
    # The numbers of formulas are all of one type.
    assert set(OPERATIONS) - elementwise - {"cast"} <= set(EXPRESSIONS)


@pytest.mark.parametrize("op", DOMAINS)
@settings(max_examples=examples(12), deadline=None)
@given(data=st.data())
def test_elementwise(op, data):
    domains = DOMAINS[op]
    shapes = data.draw(mutually_broadcastable_shapes(num_shapes=len(domains), max_dims=2, max_side=3)).input_shapes
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    build = BUILT.get(op, partial(call, op))
    graph = graph_of(lambda **leaves: build(*leaves.values()), **dict(zip("abc", shapes, strict=False)))
    assert graph.outputs["y"].shape == np.broadcast_shapes(*shapes)
    check_grads(graph, random_point(graph, domains, rng), rng)
    check_batch(graph, domains, rng)


@each(("op", "text"), [(op, text) for op, texts in EXPRESSIONS.items() for text in texts])
def test_expression(op, text):
    rng = np.random.default_rng(0)
    graph = parse(text, **SHAPES) if isinstance(text, str) else built(text)
    assert op in {node.op for node in graph.nodes}
    domains = [ANY] * len(graph.inputs)
    point = random_point(graph, domains, rng)
    if isinstance(text, str):
        (value,) = at(graph, point).values()
        right = RECORDED[text] if text in RECORDED else eval(text.replace("^", "**"), NUMPY | point)
        assert_allclose(value, right, rtol=1e-13, atol=1e-14 * (text in RECORDED))
        assert value.shape == np.shape(right)
    check_grads(graph, point, rng)
    check_batch(graph, domains, rng)


def built(build):
    """Return the graph of a function of leaves, which have their names and shapes from its arguments."""
    return graph_of(build, **{name: SHAPES[name] for name in build.__code__.co_varnames[: build.__code__.co_argcount]})


CALLS = [text for op, texts in EXPRESSIONS.items() for text in texts if OPERATIONS[op].kind == "call"]
# A row of padding has no gradient, whatever the differences are.
CALLS += [
    "embedding([[2, 0], [0, 0]], N, 0)",
    "embedding(a - a + [0, 1], M, -1)",
    lambda M: call_of("embedding", (1,), integers([[0, 1, 1], [1, 0, 0]]), M * M),
]


@each("text", CALLS)
@settings(max_examples=examples(4), deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_call_has_the_derivatives_of_its_definition(text, seed):
    graph = parse(text, **SHAPES) if isinstance(text, str) else built(text)
    rng = np.random.default_rng(seed)
    point = random_point(graph, [ANY] * len(graph.inputs), rng)
    moving = {f"{name}.u": rng.uniform(-1, 1, x.shape) for name, x in graph.inputs.items()}
    for derived, more in ((vjp, {}), (lambda g: vjp(vjp(g)), {}), (jvp, moving)):
        found = derived(graph)
        more |= {name: rng.uniform(-1, 1, x.shape) for name, x in found.inputs.items() if name not in {*point, *more}}
        expected = at(derived(opened(graph)), point | more)
        for name, value in at(found, point | more).items():
            assert_close(value, expected[name], 1e-9, 1e-11, name)
