"""A compiled graph against the plain interpreter `evaluate`: other blocks, threads and buffers, the same numbers."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import examples, long, some
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from vocabulary import smooth_cases, structure_systems

import gradcli
from gradcli import evaluate, parse, vjp
from gradcli.engine import compiled
from gradcli.engine.compiled import Compiled
from gradcli.graph import construct
from gradcli.graph.construct import call, where
from gradcli.graph.graph import Graph
from gradcli.graph.node import Node, compare, const, leaf
from gradcli.graph.operations import OPERATIONS

SHAPES = {"a": (), "b": (), "x": (3,), "z": (3,), "w": (4,), "M": (2, 3), "N": (3, 4), "T": (2, 2, 3), "U": (2, 3, 2)}

# All values are drawn between 0.5 and 1.5.
SYSTEMS = [
    "y = sin(a)*cos(x) + tan(a) - exp(x)/log(x + 1) + sqrt(x); p = a; q = -a",
    "y = tanh(x) + sigmoid(x) + relu(x - 1) + softplus(x) + silu(x) + gelu(x) + leaky_relu(x - 1); u = detach(a)*a",
    "y = asin(a/3) + acos(a/3) + atan(x) + atanh(x/3); u = sinh(x) + cosh(x) + asinh(x) + acosh(x + 1)",
    "y = sec(a) + csc(x) + cot(x) + sech(x)",
    "y = erf(x) + erfc(x) + log2(x) + log10(x) + log1p(x) + expm1(x) + cbrt(x)",
    "y = atan2(x, z) + hypot(x, a) + maximum(x, z) + minimum(x, M); u = x**z + x**3 + a**-2 + z % a",
    "y = abs(x - 1) + floor(2*x) + ceil(2*z) + sign(a - 1) + clip(x, 0.7, 1.2) + heaviside(x - 1, z)",
    "y = where((x > 1) & (z < 1) | ~(x == a), x*z, M); u = where((x >= a) | (x <= z), 1, 2); v = where(a != b, a, b)",
    "y = tanh(x @ N + w) @ N.T; t = trace(M) + sum(diag(N)); u = outer(x, w) - diag(w)[:3]",
    "y = M @ x; u = T @ U; v = U @ M[:, :2]; p = x @ U; q = T @ x; r = x @ z; s = M @ N",
    "y = softmax(M) + cumsum(M, axis=1) + logsumexp(M, axis=0); u = mean(T, axis=(0, 2)) + sum(T, axis=(0, 2))",
    "y = log_softmax(M, axis=0) + log_softmax(x)",
    "y = max(M) + min(M, axis=0) + norm(M, axis=0); u = std(N, axis=0) + var(N, axis=0) + N.max(dim=0) - N.min(dim=0)",
    "y = reshape(M.T, (2, 3))*x[::-1]; u = concatenate([x, w[1:]])*stack([a, b, a])[:, None][0]; v = M[:, 1]*T[..., 0]",
]
# What the language does not spell.
BUILT = [
    lambda x, M: [construct.broadcast(x, (2, 3)) * M, construct.from_diagonal(x, (4, 3))],
    lambda x, M: [construct.scatter((2, 3), [((0, range(2, -1, -1)), x), ((1,), x * x), ((range(2), range(3)), M)])],
    lambda x, M: [where(construct.argument_mask("argmin_mask", M, 1), M * x, x)],
    lambda a, b: [call("identity", a) * b, where(compare("not", a < b) & (a >= 1), a, b)],
]
# What LLVM has no rule for.
IN_ORDER = [
    "y = prod(T, axis=(0, 2))",
    lambda x, z: [construct.along("take_along", x * z, construct.ordered("argsort", z, 0, True), 0)],
    lambda M, N: [construct.along("put_along", N * N, construct.ordered("argsort", N, 1, False), 1)],
]
# SymPy, where SciPy is missing, takes a millisecond for each value.
SLOW = "y = gamma(a)*b + lgamma(a) + digamma(a) + polygamma(2, a) + i1(a) + zeta(2, a)"


def text_of(system):
    return system if isinstance(system, str) else f"built of {', '.join(system.__code__.co_varnames)}"


def graph_of(system):
    if isinstance(system, str):
        return parse(system, **SHAPES)
    names = system.__code__.co_varnames[: system.__code__.co_argcount]
    leaves = {name: leaf(SHAPES[name]) for name in names}
    return Graph.of(leaves, {f"y{k}": y for k, y in enumerate(system(**leaves))})


def orders(graph):
    """Return the graph, its vjp, and the vjp of that."""
    return [graph, vjp(graph), vjp(vjp(graph))]


def points_for(graph, count, rng):
    return {name: rng.uniform(0.5, 1.5, (*node.shape, count)) for name, node in graph.inputs.items()}


def expected_of(graph, values, count):
    """Return the outputs by name, each with all points."""
    found = evaluate(graph, values)
    return {name: np.broadcast_to(found[name], (*y.shape, count)) for name, y in graph.outputs.items()}


def check(run, points, expected, agree):
    """Check that a run gives what is expected; the last axis of what is the same at all points may be 1."""
    found = run(points)
    assert list(found) == list(expected)
    for name, value in expected.items():
        assert found[name].shape in {value.shape, (*value.shape[:-1], 1)}
        agree(np.broadcast_to(found[name], value.shape), value)


def close(found, expected):
    """A sum is in another order where points stand alone, or where BLAS takes it over; otherwise nothing is rounded."""
    assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


# Of indices and positions that are arguments: of constant ones, which formulas have alone, they are other operations.
OF_ARGUMENTS = ("gather", "index_add", "dynamic_slice", "dynamic_scatter")


def test_no_operation_is_forgotten():
    graphs = [graph_of(system) for system in [*SYSTEMS, *BUILT, *IN_ORDER, SLOW]]
    # Tests of the vocabulary compile these.
    graphs += [parse(f"out = {text}") for text in smooth_cases.ELEMENTWISE]
    graphs += [vjp(parse(f"out = {text}", **shapes)) for text, shapes in structure_systems.SYSTEMS]
    # The numbers of formulas are all of one type.
    spectra = {"exp2", "segment_sum", "cholesky", *OF_ARGUMENTS}  # defined in operations that these have
    spectra |= {"svd_u", "svd_vh", "svdvals", "eigvalsh", "eigvecsh"}  # of scripts alone, which are not compiled
    calls = {op for op, row in OPERATIONS.items() if row.kind == "call"}  # defined in these, too
    assert set(OPERATIONS) - {"cast"} - spectra - calls <= {node.op for graph in graphs for node in vjp(graph).nodes}


@pytest.mark.parametrize("system", some([*SYSTEMS, *BUILT, *IN_ORDER, SLOW]), ids=text_of)
def test_as_evaluate(system):
    rng = np.random.default_rng(0)
    for order, graph in enumerate(orders(graph_of(system))):
        names = list(graph.inputs)
        for same in ([], names[::2], names[1::2], names):
            counts = [1, 2] if system is SLOW else [1, 2, 1037] + [40_000] * (order < 2 and same == names[::2])
            run = None
            fixed = {name: v for name, v in points_for(graph, 1, rng).items() if name in same}
            for count in counts:
                points = {name: v for name, v in points_for(graph, count, rng).items() if name not in same}
                run = run or Compiled(graph, fixed, threads=3)
                check(run, points, expected_of(graph, points | fixed, count), close)


SPECIAL = np.array([0.0, -0.0, 1, -1, 0.5, -2, 3, 800, -800, 1e200, 1e-320, np.inf, -np.inf, np.nan])
# Corners, ties and poles: all operations meet in scalars `a` and `b` all pairs of special values, in `x` each among
# ordinary ones.
AT_CORNERS = [
    "y = 1/a; u = a**b; v = a % b; w = a*b - a/b; s = a**2 + a**-1 + a**-2 + a**3",
    "y = sqrt(a); u = cbrt(a); v = hypot(a, b); w = atan2(a, b); s = abs(a) + sign(b)*a",
    "y = exp(a); u = log(a); v = log1p(a); w = expm1(a); p = log2(a); q = log10(a)",
    "y = sin(a)/cos(a) + tan(b); u = asin(a) + acos(b); v = sinh(a)*cosh(b) + tanh(a); w = atanh(a) + acosh(b)",
    "y = relu(a); u = sigmoid(a); v = softplus(a); w = silu(a); p = gelu(a); q = leaky_relu(a, b)",
    "y = maximum(a, b); u = minimum(a, b); v = clip(a, b, 1); w = where(a > b, sqrt(a), b); h = heaviside(a, b)",
    "y = erf(a); u = erfc(b); v = log(relu(a)); w = sqrt(abs(b)); p = 1/maximum(a, b); q = log(clip(a, 0, b))",
    "y = max(x); u = min(x); v = prod(x); w = norm(x); p = std(x); q = max(x, dim=0); r = min(x, dim=0)",
    "y = softmax(x); u = logsumexp(x); v = cumsum(x); w = sum(x); p = norm(x, ord=inf); q = var(x, ddof=3)",
]


@pytest.mark.parametrize("text", AT_CORNERS)
def test_corners_are_evaluates_to_the_bit(text):
    a, b = (v.ravel() for v in np.meshgrid(SPECIAL, SPECIAL))
    x = np.stack([np.full(a.shape, 2.0), a, b])
    for graph in orders(parse(text, **SHAPES))[:2]:
        values = {"a": a, "b": b, "x": x}
        points = {name: values.get(name, np.ones((*n.shape, a.size))) for name, n in graph.inputs.items()}

        def equal(found, expected):
            assert_array_equal(found, expected)
            zeros = expected == 0
            assert_array_equal(np.signbit(found[zeros]), np.signbit(expected[zeros]))

        check(Compiled(graph, threads=2), points, expected_of(graph, points, a.size), equal)


# Random graphs. Arithmetic in whole numbers that stay small is exact, so that every order of the sums gives equal
# results; what could grow is clamped.


def small(x):
    return call("clamp", x, const(-9), const(9))


def mixed(x):
    return where(x > 0, x, const(2))


UNARY = [
    lambda x: call("neg", x),
    lambda x: call("abs", x),
    lambda x: small(x * x),
    lambda x: call("add", x, const(1)),
    lambda x: call("relu", x),
    lambda x: call("identity", x),
    mixed,
]
BINARY = [
    lambda x, y: small(call("add", x, y)),
    lambda x, y: small(call("sub", x, y)),
    lambda x, y: small(call("mul", x, y)),
    lambda x, y: call("maximum", x, y),
    lambda x, y: where(x < y, x, y),
    lambda x, y: where(compare("not", x <= y) | compare("eq", x, y), y, x),
]
# Each takes an array of at least one dimension, and numbers to choose by.
STRUCTURED = [
    lambda x, i, j: construct.transpose(x, tuple(reversed(range(len(x.shape))))),
    lambda x, i, j: construct.reshape(x, (-1,)),
    lambda x, i, j: construct.reshape(x, (*x.shape[1:], x.shape[0])),
    lambda x, i, j: construct.index(x, (i % x.shape[0],)),
    lambda x, i, j: construct.index(x, (range(x.shape[0] - 1, -1, -1),)),
    lambda x, i, j: construct.index(x, (None, range(0, x.shape[0], 2))),
    lambda x, i, j: construct.broadcast(x, (2, *x.shape)),
    lambda x, i, j: small(construct.reduce("sum", x, (i % len(x.shape),))),
    lambda x, i, j: construct.reduce("max", x, (i % len(x.shape),), "even"),
    lambda x, i, j: small(construct.cumulative("cumsum", x, i % len(x.shape))),
    lambda x, i, j: where(construct.argument_mask("argmax_mask", x, i % len(x.shape)), x, const(0)),
    lambda x, i, j: construct.concatenate([x, x], i % len(x.shape)),
    lambda x, i, j: construct.stack([x, call("neg", x), x], i % (len(x.shape) + 1)),
    lambda x, i, j: construct.scatter((*x.shape, 2), [((*map(range, x.shape), k % 2), x) for k in (i, j)]),
    lambda x, i, j: small(construct.matmul(x, construct.transpose(x, tuple(reversed(range(len(x.shape))))))),
]
MATRIX = [
    construct.diagonal,
    construct.swap,
    lambda x: construct.from_diagonal(construct.diagonal(x), (min(x.shape), min(x.shape) + 1)),
]


def fits(a, b):
    return all(m == n or 1 in (m, n) for m, n in zip(reversed(a), reversed(b), strict=False))


@st.composite
def graphs(draw):
    """Draw a graph whose outputs are leaves, constants, views, equals of each other, and what others read on.

    A node may be several outputs.
    """
    leaves = {"a": leaf(), "x": leaf((3,)), "M": leaf((2, 3)), "N": leaf((3, 3))}
    nodes = [*leaves.values(), const(2), const(-1, (3,))]
    for _ in range(draw(st.integers(1, 12))):
        first = nodes[-1 - draw(st.integers(0, 5))]
        kind = draw(st.sampled_from([UNARY, BINARY, STRUCTURED, STRUCTURED, MATRIX]))
        if kind is BINARY:
            partners = [n for n in nodes if fits(n.shape, first.shape)]
            new = draw(st.sampled_from(BINARY))(first, draw(st.sampled_from(partners)))
        elif kind is MATRIX and len(first.shape) == 2:
            new = draw(st.sampled_from(MATRIX))(first)
        elif kind is STRUCTURED and 0 < len(first.shape) < 3:
            new = draw(st.sampled_from(STRUCTURED))(first, draw(st.integers(0, 2)), draw(st.integers(0, 2)))
        else:
            new = draw(st.sampled_from(UNARY))(first)
        nodes.append(new)
    computed = [n for n in dict.fromkeys(nodes) if n.op != "const"]
    outputs = draw(st.lists(st.sampled_from(computed), min_size=1, max_size=4, unique=True))
    named = {f"y{k}": n for k, n in enumerate(outputs)}
    others = list(enumerate(draw(st.lists(st.sampled_from(nodes), max_size=3))))
    named |= {f"again{k}": replace(n) for k, n in others if n.op != "input"}
    named |= {f"same{k}": n for k, n in others} | {f"id{k}": call("identity", n) for k, n in others}
    return Graph.of(leaves, named)


def whole_numbers(graph, count, seed):
    rng = np.random.default_rng(seed)
    return {name: rng.integers(-4, 5, (*n.shape, count)).astype(float) for name, n in graph.inputs.items()}


law = settings(max_examples=examples(25), deadline=None)
seeds = st.integers(0, 2**32)
COUNT = 67


@settings(max_examples=examples(80), deadline=None)
@given(graphs(), seeds, st.sets(st.sampled_from("axMN")))
def test_random_graph_as_evaluate(graph, seed, same):
    """No step reads a buffer that was given away: `evaluate` uses no memory twice."""
    for g in (graph, vjp(graph)):
        points = whole_numbers(g, COUNT, seed)
        fixed = {name: points.pop(name)[..., :1] for name in same}
        before = {name: value.copy() for name, value in (points | fixed).items()}
        check(Compiled(g, fixed), points, expected_of(g, points | fixed, COUNT), assert_array_equal)
        for name, value in before.items():
            assert_array_equal((points | fixed)[name], value)


@law
@given(graphs(), seeds, st.sampled_from([1, 3, 64]), st.sampled_from([1, 2, 5]))
def test_blocks_and_threads_do_not_matter(graph, seed, block, threads):
    points = whole_numbers(graph, COUNT, seed)
    run = Compiled(graph, threads=threads)
    run.kernel.block, run.kernel.fewest = block, 1
    check(run, points, expected_of(graph, points, COUNT), assert_array_equal)


@law
@given(graphs(), seeds, st.permutations(range(COUNT)), st.integers(1, COUNT - 1))
def test_points_do_not_know_each_other(graph, seed, order, cut):
    points = whole_numbers(graph, COUNT, seed)
    run = Compiled(graph)

    def at(places):
        return run({name: value[..., places] for name, value in points.items()})

    whole, first, second, permuted = run(points), at(slice(cut)), at(slice(cut, None)), at(order)
    for name, value in whole.items():
        if value.shape[-1] == COUNT:
            assert_array_equal(np.concatenate([first[name], second[name]], axis=-1), value)
            assert_array_equal(permuted[name], value[..., order])


@law
@given(graphs(), seeds, st.sets(st.sampled_from("axMN"), min_size=1))
def test_same_is_a_value_repeated(graph, seed, same):
    points = whole_numbers(graph, COUNT, seed)
    fixed = {name: points[name][..., :1] for name in same}
    repeated = points | {name: np.repeat(value, COUNT, axis=-1) for name, value in fixed.items()}
    varying = {name: value for name, value in points.items() if name not in same}
    expected = {n: np.broadcast_to(v, (*v.shape[:-1], COUNT)) for n, v in Compiled(graph)(repeated).items()}
    check(Compiled(graph, fixed), varying, expected, assert_array_equal)


@law
@given(graphs(), seeds)
def test_results_go_into_the_arrays_given(graph, seed):
    run, points = Compiled(graph, threads=2), whole_numbers(graph, COUNT, seed)
    run.kernel.block, run.kernel.fewest = 16, 1
    out = {name: np.full((*y.shape, COUNT), np.nan) for name, y in graph.outputs.items()}
    expected, found = run(points), run(points, out)
    for name, value in expected.items():
        assert_array_equal(found[name], value)
        if value.shape[-1] == COUNT:
            assert found[name] is out[name]


# Memory


def chain(step, length):
    """Return the graph of h0 = x*x and of `step`, which reads `{h}` and may read `x`, repeated."""
    steps = [f"h{k} = {step.format(h=f'h{k - 1}')}" for k in range(1, length)]
    return parse("\n".join(["h0 = x*x", *steps]), x=(5,))


@long
@pytest.mark.parametrize(
    "step", ["sin({h})*x", "-{h} + 2", "maximum({h}, x)/3", "where({h} > x, {h}, x*{h})", "({h} + x)[::-1]"]
)
def test_buffers_of_a_chain_are_few(step):
    run = Compiled(chain(step, 1000))
    assert 1 <= len(run.kernel.buffers(1)) <= 4


class Lines:
    """Counts the lines of gradcli that are run, each pass of a loop anew."""

    def __enter__(self):
        self.count = 0
        self._own = str(Path(gradcli.__file__).parent)
        self._before = sys.gettrace()
        sys.settrace(self._call)
        return self

    def _call(self, frame, event, arg):
        return self._line if frame.f_code.co_filename.startswith(self._own) else None

    def _line(self, frame, event, arg):
        self.count += event == "line"
        return self._line

    def __exit__(self, *_):
        sys.settrace(self._before)


@long
@pytest.mark.parametrize(
    "step", ["{h}*x + sin({h})", "where({h} > x, -{h}, 2*{h})", "softmax({h})[::-1]", "concatenate([{h}[1:], {h}[:1]])"]
)
def test_compiling_is_linear(step):
    counts = []
    for length in (30, 90, 210):
        graph = chain(step, length)
        with Lines() as lines:
            Compiled(graph)
        counts.append(lines.count)
    assert counts[2] - counts[1] == pytest.approx(2 * (counts[1] - counts[0]), rel=0.02)


@long
def test_long_graph_is_compiled():
    x = y = leaf()
    for k in range(10_000):
        y = Node("add", (y, const(k)))
    run = Compiled(Graph.of({"x": x}, {"y": y}))
    assert len(run.kernel.buffers(1)) == 1
    assert_array_equal(run({"x": np.arange(3.0)})["y"], np.arange(3.0) + sum(range(10_000)))


# Threads


@pytest.mark.parametrize(("threads", "count", "made"), [(1, 40_000, 0), (8, 20_000, 0), (2, 40_000, 1), (8, 50_000, 2)])
def test_threads_are_made_where_they_pay(monkeypatch, threads, count, made):
    pools = []  # beside the caller's thread

    class Pool(compiled.ThreadPoolExecutor):
        def __init__(self, workers):
            pools.append(workers)
            super().__init__(workers)

    monkeypatch.setattr(compiled, "ThreadPoolExecutor", Pool)
    Compiled(graph_of("y = 1/a"), threads=threads)({"a": np.zeros(count)})  # and nothing warns of a division by 0
    assert pools == [made] * bool(made)


@pytest.mark.parametrize("threads", [1, 3])
def test_mistake_in_a_worker_reaches_the_caller(threads):
    run = Compiled(graph_of("y = 2*a"), threads=threads)
    work = run.kernel.run

    def failing(buffers, points, results):
        if points["a"][0] > 2000:
            raise MemoryError("the third block")
        work(buffers, points, results)

    run.kernel.run, run.kernel.block, run.kernel.fewest = failing, 1024, 1
    with pytest.raises(MemoryError, match="third"):
        run({"a": np.arange(5000.0)})
