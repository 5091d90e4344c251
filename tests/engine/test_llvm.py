"""The LLVM engine against `evaluate`."""

import re
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from conftest import examples, long, some
from hypothesis import given, settings
from hypothesis import strategies as st
from llvm_source import in_tiles
from numpy.testing import assert_array_equal
from test_compiled import (
    BUILT,
    SPECIAL,
    SYSTEMS,
    chain,
    check,
    close,
    expected_of,
    graph_of,
    graphs,
    points_for,
    seeds,
    text_of,
    whole_numbers,
)

from gradcli import parse, vjp
from gradcli.engine.compiled import Compiled
from gradcli.engine.llvm import code
from gradcli.engine.llvm.code import EXPRESSIONS, RULES, write
from gradcli.engine.llvm.expressions import LIBRARY
from gradcli.engine.schedule import Schedule
from gradcli.errors import Notes
from gradcli.graph import construct
from gradcli.graph.construct import call, where
from gradcli.graph.graph import Graph
from gradcli.graph.node import compare, leaf
from gradcli.graph.operations import OPERATIONS

LACKING = {"digamma", "polygamma", "zeta", "gamma"}
WITHOUT_RULE = {"det", "inv", "solve", "sort", "argsort", "take_along", "put_along", "median", "argmedian_mask"}
WITHOUT_RULE |= {"eigvalsh", "eigvecsh", "svdvals", "svd_u", "svd_vh", "prod", "product_of_others"}
ELEMENTWISE = {op: row for op, row in OPERATIONS.items() if row.broadcasts}


@pytest.fixture(scope="module")
def llvm():
    return pytest.importorskip("llvmlite")


def compiled_by_llvm(graph, same=None, threads=None):
    notes = Notes()
    run = Compiled(graph, same, "llvm", threads, notes)
    assert not notes.lines
    return run


def test_no_operation_is_forgotten():
    simple = {op: row for op, row in OPERATIONS.items() if not row.for_engines}
    assert {op for op in simple if op in ELEMENTWISE} | {"pow"} == set(EXPRESSIONS) | LACKING
    arrays = {op: row for op, row in simple.items() if op not in ELEMENTWISE}
    assert {op for op, row in arrays.items() if row.kind != "view"} == set(RULES) | WITHOUT_RULE


# Many elementwise operations in one kernel: `s` says which of them is the value of a point.


def one_of(values, s):
    """Return the node that is the k-th value where k ≤ s < k + 1."""
    chosen = values[-1]
    for k, value in reversed(list(enumerate(values[:-1]))):
        chosen = where(s < k + 1, value, chosen)
    return chosen


def elementwise_operations(*args):
    """Return for each elementwise operation its value, a condition as 1 or 0."""
    a, b, _ = args
    found = {}
    for op, row in ELEMENTWISE.items():
        if op in LACKING:
            continue
        if op in ("where", "corner"):
            found[op] = call(op, a < b, *args[1:])
        elif row.kind == "condition":
            read = [a < b, a >= 0] if op in ("and", "or", "not") else args
            found[op] = where(compare(op, *read[: row.arity]), 1, 0)
        else:
            found[op] = call(op, *args[: row.arity])
    return found | {f"pow {n}": call("pow", a, n) for n in (2, 3, -1, -2, Fraction(1, 2))}


WITH_CORNERS = ["pow", "div", "sqrt", "atan2", "relu", "gelu", "abs", "maximum", "clamp", "where", "mod"]


KERNELS = 6  # for all operations: to compile takes the square of their number


@pytest.mark.parametrize(("order", "part"), [*((0, part) for part in range(KERNELS)), (1, 0)])
def test_elementwise_operations_at_corners(llvm, order, part):
    s, a, b, c = (leaf() for _ in "sabc")
    found = elementwise_operations(a, b, c)
    found = {op: found[op] for op in (WITH_CORNERS if order else list(found)[part::KERNELS])}
    values = np.concatenate([SPECIAL, np.random.default_rng(0).uniform(-3, 3, 6), [0.3, 1.7, 2, 171.5]])
    grid = np.meshgrid(np.arange(len(found)) + 0.5, values, values, [-0.4, 0.9])
    points = {name: v.ravel() for name, v in zip("sabc", grid, strict=True)}
    graph = Graph.of({"s": s, "a": a, "b": b, "c": c}, {"y": one_of(list(found.values()), s)})
    same = {}
    if order:
        graph, same = vjp(graph, ["a", "b"]), {"y.v": np.ones(1)}
    expected = expected_of(graph, points | same, grid[0].size)
    for name, value in compiled_by_llvm(graph, same)(points).items():
        for k, op in enumerate(found):
            here = points["s"] == k + 0.5
            assert_close(value[here], expected[name][here], op, *(points[name][here] for name in "abc"))


def assert_close(found, expected, op, *at):
    """Check that values agree to 1e-14, zeros and infinities with their signs."""
    near = np.isclose(found, expected, rtol=1e-14, atol=0, equal_nan=True)
    zero = expected == 0
    if op not in (
        "clamp",
        "hardtanh",
        "huber",
    ):  # of two zeros NumPy's clip takes the first, and its maximum the second
        near[zero] &= np.signbit(found[zero]) == np.signbit(expected[zero])
    if op == "lgamma":  # SciPy's is inf at the smallest numbers, and -inf at -inf
        near |= (np.abs(at[0]) < 1e-300) | (at[0] == -np.inf)
    assert near.all(), (op, [v[~near][:3] for v in (*at, found, expected)])


# Arrays of whole numbers, so that sums in every order are equal. Compiling takes the square of the number of loops.
SHAPES = {"a": (), "x": (3,), "z": (3,), "b": (4,), "M": (2, 3), "N": (3, 4)}
ARRAYS = [
    "p = sum(M, axis=0); q = cumprod(x); r = max(M, dim=1)",
    "p = cumsum(x); q = concatenate([x[::-1], z[1:]]); r = M.T.reshape(2, 3)*a",
    "p = M @ x; q = stack([a, x[0]]); r = diag(x)",
    "p = max(x, dim=0)*x[1]",  # its vjp scatters, and masks
]


@pytest.mark.parametrize("text", ARRAYS)
def test_arrays(llvm, text):
    graph = parse(text, **SHAPES)
    if text is ARRAYS[-1]:
        graph = vjp(graph)
    run = compiled_by_llvm(graph, threads=2)
    for count in (1, 1037, 40_000):
        points = whole_numbers(graph, count, count)
        for value in points.values():
            value.flags.writeable = False
        check(run, points, expected_of(graph, points, count), assert_array_equal)


# Parts that overlap, that leave elements out, and of which none comes first everywhere.
SCATTERED = [
    "y = sum(x[1:]*x[:-1]**2)",
    "y = sum(x[2:]*x[:-2] + x[1:-1]**3)",
    "y = sum(x[::2]*x[1::2] + x[:3]*x[3:])",
    "y = sum(x[::-1]**2*x)",
    "y = sum(M[1:, :2]*M[:-1, 2:] + M[:-1, 1:3]*M[1:, :2])",
    "y = sum(M[:, 0]*M[:, 3])",
    "p = sum(M, axis=1); q = max(M, axis=0); r = min(M[1:]*M[:-1]); s = sum(p[1:]*p[:-1])",
]


@long
@pytest.mark.parametrize("text", SCATTERED)
def test_scattered_in_the_loop_that_computes_it(text):
    graph = vjp(parse(text, x=(6,), M=(3, 4)))
    for seed in range(3):
        points = whole_numbers(graph, 5, seed)
        found = in_tiles(graph, {}, points, 5, 4)
        for name, value in expected_of(graph, points, 5).items():
            assert_array_equal(found[name], value)


def test_numbers_do_not_depend_on_the_other_points(llvm):
    graph = vjp(
        parse("y = sum(tanh(x @ M) + exp(w)*sin(b)) + cos(sum(b)**3) + norm(b)", M=(3, 4), x=(3,), w=(4,), b=(4,))
    )
    run = compiled_by_llvm(graph, threads=2)
    run.kernel.fewest = 100
    points = points_for(graph, 1037, np.random.default_rng(0))
    points["b"] *= 10.0 ** np.arange(1037).clip(max=7)  # angles of every size
    expected = run(points)
    for start, stop in ((0, 1), (3, 6), (0, 8), (5, 14), (1000, 1037)):
        for name, value in run({n: a[..., start:stop] for n, a in points.items()}).items():
            assert_array_equal(value, expected[name][..., start:stop])


# The source


@pytest.mark.parametrize("system", some([*SYSTEMS, *BUILT]), ids=text_of)
def test_source_as_evaluate(system):
    graph = graph_of(system)
    for g in (graph, vjp(graph)):
        points = points_for(g, 3, np.random.default_rng(0))
        expected = expected_of(g, points, 3)
        with np.errstate(all="ignore"):
            for name, value in in_tiles(g, {}, points, 3, 2).items():
                close(value, expected[name])


@settings(max_examples=examples(40), deadline=None)
@given(graphs(), seeds, st.sets(st.sampled_from("axMN")))
def test_source_of_random_graph_as_evaluate(graph, seed, same):
    """No step reads rows that were given away."""
    for g in (graph, vjp(graph)):
        points = whole_numbers(g, 3, seed)
        fixed = {name: points.pop(name)[..., :1] for name in same}
        expected = expected_of(g, points | fixed, 3)
        for name, value in in_tiles(g, fixed, points, 3, 2).items():
            assert_array_equal(value, expected[name])


@pytest.mark.parametrize("op", ["argmax_mask", "argmin_mask", "max", "min"])
@pytest.mark.parametrize("axis", [0, 1])
def test_source_of_extrema_among_nan_and_ties(op, axis):
    """The first NaN stands for all, and of equals the first."""
    x = leaf((3,) if axis == 0 else (2, 3))
    y = where(construct.argument_mask(op, x, axis), x, 7) if "mask" in op else construct.reduce(op, x, (axis,), "first")
    graph = Graph.of({"x": x}, {"y": y})
    rows = np.array(list(product([np.nan, 1.0, 2.0, -np.inf], repeat=3))).T
    points = {"x": rows if axis == 0 else np.stack([rows, rows[:, ::-1]])}
    count = rows.shape[1]
    assert_array_equal(in_tiles(graph, {}, points, count, 8)["y"], expected_of(graph, points, count)["y"])


def test_first_nan_wins_in_a_maximum_along_an_axis(llvm):
    graph = vjp(parse("y = max(x, axis=0) + 2*min(z, axis=0)", x=(3,), z=(3,)))
    values = [[1, np.nan, np.nan], [np.nan, 1, np.nan], [1, 3, 3], [3, 1, 1]]
    points = {"x": np.array(values).T, "z": np.array(values).T, "y.v": np.ones(4)}
    found = compiled_by_llvm(graph)(points)
    assert found["x.grad"].T.tolist() == [[0, 1, 0], [1, 0, 0], [0, 1, 0], [1, 0, 0]]
    assert found["z.grad"].T.tolist() == [[0, 2, 0], [2, 0, 0], [2, 0, 0], [0, 2, 0]]


def source(names, numbers):
    """Return the source of a system in all elementwise operations, with those names and numbers."""
    a, b = leaf(), leaf()
    y = numbers[0] * a - numbers[1]
    for value in elementwise_operations(a, b, b).values():
        y = y + value
    graph = Graph.of(dict(zip(names, (a, b), strict=True)), {names[0] * 2: y, names[1] * 2: y * a})
    return write(Schedule.of(graph, {}), 8).source


def test_source_has_nothing_that_a_user_typed():
    text = source(["exec_me", "__import__('os').system('echo')"], [12345, Fraction(1, 777)])
    assert text == source(["a\nb", '"""'], [67890, Fraction(7, 999)])
    functions = set(re.findall(r"(?:call|declare) .*?@([\w.]+)", text))
    assert {
        name for name in functions if "." not in name and not re.fullmatch(r"loop\d+|stream", name)
    } <= LIBRARY.keys()


def test_arrays_of_all_kinds_are_read(llvm):
    """In another order than the system's, with more than it reads, of other types, and not in rows."""
    run = compiled_by_llvm(parse("y = 2*x - z; u = M[1]*x", M=(2,)))
    x, z, m = np.arange(40.0), np.arange(40.0) - 7, np.arange(80.0).reshape(2, 40)
    for points in (
        {"x": x, "z": z, "M": m},
        {"M": m, "w": x, "z": z, "x": x},
        {"x": x.astype(int), "z": z.astype(np.float32), "M": m.astype(">f8")},
        {"x": np.repeat(x, 2)[::2], "z": z[::-1][::-1], "M": m.T.copy().T},
        {"x": x.view(np.recarray), "z": z, "M": m},
        {"x": np.frombuffer(x.tobytes()), "z": np.frombuffer(b" " + z.tobytes(), offset=1), "M": m},
    ):
        for out in (None, {"u": np.zeros(80)[::2], "y": np.zeros(40)}, {"y": np.zeros(40, np.float32), "u": x * 0}):
            found = run(points, out)
            assert_array_equal(found["y"], 2 * x - z)
            assert_array_equal(found["u"], m[1] * x)


# What LLVM does not compile


@pytest.mark.parametrize(
    ("graph", "note"),
    [
        (parse("y = digamma(x)*digamma(z)"), "the LLVM engine does not compile `digamma`"),
        (vjp(vjp(parse("y = lgamma(x)"))), "the LLVM engine does not compile `polygamma`"),
        (chain("{h} + x", 102), "the LLVM engine compiles 101 operations at most, not 102"),
    ],
    ids=["digamma", "slope of lgamma", "steps"],
)
def test_numpy_takes_the_place(llvm, monkeypatch, graph, note):
    monkeypatch.setattr(code, "MAX_STEPS", 101)
    notes = Notes()
    points = {name: np.full((*n.shape, 3), 1.5) for name, n in graph.inputs.items()}
    check(Compiled(graph, engine="llvm", notes=notes), points, expected_of(graph, points, 3), assert_array_equal)
    assert notes.lines == [f"note: {note}: the NumPy engine computes these points"]


@long
@pytest.mark.parametrize("triple", ["aarch64-linux-gnu", "arm64-apple-darwin", "x86_64-linux-gnu", "riscv64-linux-gnu"])
def test_kernels_compile_for_other_processors(llvm, triple):
    """LLVM writes code for other processors too; here without features that only some of their kind have."""
    from llvmlite import binding

    from gradcli.engine.llvm.kernel import optimized

    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    try:
        target = binding.Target.from_triple(triple)
    except RuntimeError as error:
        pytest.skip(str(error))
    for text in ("y = sin(x)*exp(z) + where(x > z, x % z, floor(x))", "y = tanh(M @ v); z = sum(abs(v))"):
        graph = vjp(parse(text, **({"M": (3, 3), "v": (3,)} if "M" in text else {})))
        machine = target.create_target_machine(opt=2, codemodel="jitdefault", jit=True)
        code = machine.emit_object(optimized(write(Schedule.of(graph, {}), 8).source, machine, 2))
        assert {b"kernel"} <= set(re.findall(rb"\b_?(kernel|addresses)\b", code))
