"""The Numba engine against `evaluate`: few kernels, each with many operations, since one takes seconds to compile.

What the kernels do is in their source, which runs as plain Python too, slowly: random graphs are run in that way.
"""

import ast
import os
import re
import subprocess
import sys
from fractions import Fraction
from unittest.mock import MagicMock, patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
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
from gradcli.engine import numba_code
from gradcli.engine.compiled import Compiled
from gradcli.engine.numba_code import EXPRESSIONS, RULES, write
from gradcli.engine.schedule import VIEWS, Schedule
from gradcli.errors import Notes
from gradcli.graph.elementwise import ELEMENTWISE, call, where
from gradcli.graph.node import Graph, leaf
from gradcli.graph.structural import STRUCTURAL

LACKING = {"digamma", "polygamma"}
CONDITIONS = {"lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not"}


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    """Keep kernels apart from the user's own."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as context:
        context.setenv("XDG_CACHE_HOME", str(folder))
        yield folder / "gradcli"


@pytest.fixture(scope="module")
def numba():
    return pytest.importorskip("numba")


def compile_numba(graph, same=None, threads=None):
    notes = Notes()
    run = Compiled(graph, same, "numba", threads, notes)
    assert not notes.lines
    return run


def test_no_operation_is_forgotten():
    simple = {op for op, row in ELEMENTWISE.items() if not row.lowered}
    assert simple | {"pow"} == set(EXPRESSIONS) | LACKING
    assert {op for op, row in STRUCTURAL.items() if row.forward} == set(RULES) | VIEWS


# All elementwise operations in one kernel: `s` says which of them is the value of a point.


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
        if op in ("and", "or", "where"):
            y = call(op, a < b, *(args[1:] if op == "where" else [a >= 0]))
        elif op == "not":
            y = call(op, a < b)
        else:
            y = call(op, *args[: row.arity])
        found[op] = where(y, 1, 0) if op in CONDITIONS else y
    return found | {f"pow {n}": call("pow", a, n) for n in (2, 3, -1, -2, Fraction(1, 2))}


WITH_CORNERS = ["pow", "div", "sqrt", "atan2", "relu", "gelu", "abs", "maximum", "clamp", "where", "mod"]


@pytest.mark.parametrize("order", [0, 1])
def test_elementwise_operations_at_corners(numba, order):
    leaves = s, a, b, c = [leaf(name) for name in "sabc"]
    found = elementwise_operations(a, b, c)
    if order:
        found = {op: found[op] for op in WITH_CORNERS}
    values = np.concatenate([SPECIAL, np.random.default_rng(0).uniform(-3, 3, 6), [0.3, 1.7, 2, 171.5]])
    grid = np.meshgrid(np.arange(len(found)) + 0.5, values, values, [-0.4, 0.9])
    points = {name: v.ravel() for name, v in zip("sabc", grid, strict=True)}
    graph = Graph.of(leaves, [one_of(list(found.values()), s).called("y")])
    same = {}
    if order:
        graph, same = vjp(graph, ["a", "b"]), {"y.v": np.ones(1)}
    expected = expected_of(graph, points | same, grid[0].size)
    for name, value in compile_numba(graph, same)(points).items():
        for k, op in enumerate(found):
            here = points["s"] == k + 0.5
            assert_close(value[here], expected[name][here], op, *(points[name][here] for name in "abc"))


def assert_close(found, expected, op, *at):
    """Check that values agree to 1e-14, zeros and infinities with their signs."""
    near = np.isclose(found, expected, rtol=1e-14, atol=0, equal_nan=True)
    zero = expected == 0
    if op != "clamp":  # of two zeros NumPy's clip takes the first, and its maximum the second
        near[zero] &= np.signbit(found[zero]) == np.signbit(expected[zero])
    if op == "lgamma":  # SciPy's is inf at the smallest numbers, and -inf at -inf
        near |= (np.abs(at[0]) < 1e-300) | (at[0] == -np.inf)
    assert near.all(), (op, [v[~near][:3] for v in (*at, found, expected)])


# Arrays of whole numbers, so that sums in every order are equal. Compiling takes the square of the number of loops.
SHAPES = {"a": (), "x": (3,), "z": (3,), "b": (4,), "M": (2, 3), "N": (3, 4)}
ARRAYS = [
    "p = sum(M, axis=0); q = prod(x); r = max(M, dim=1)",
    "p = cumsum(x); q = concatenate([x[::-1], z[1:]]); r = M.T.reshape(2, 3)*a",
    "p = M @ x; q = stack([a, x[0]]); r = diag(x)",
    "p = max(x, dim=0)*min(z, dim=0)*x[1]",  # its vjp scatters, and masks
]


@pytest.mark.parametrize("text", ARRAYS)
def test_arrays(numba, text):
    graph = parse(text, **SHAPES)
    if text is ARRAYS[-1]:
        graph = vjp(graph)
    run = compile_numba(graph, threads=2)
    for count in (1, 1037, 40_000):
        points = whole_numbers(graph, count, count)
        for value in points.values():
            value.flags.writeable = False
        check(run, points, expected_of(graph, points, count), assert_array_equal)


def test_products_far_out(numba):
    graph = parse("y = prod(M, axis=1)", M=(2, 4))
    factors = np.array([1e-300, 5e-324, -1e-200, 0, 1, -3, 1e200, 1.7e308, np.inf, np.nan])
    points = {"M": np.random.default_rng(0).choice(factors, (2, 4, 2000)), "y.v": np.ones((2, 2000))}
    for g in (graph, vjp(graph)):
        own = {n.name: points[n.name] for n in g.inputs}
        check(compile_numba(g), own, expected_of(g, own, 2000), assert_array_equal)


def test_net_with_weights_that_are_the_same(numba):
    graph = vjp(parse("y = tanh(M @ N + b)", **SHAPES), ["M", "b"])
    rng = np.random.default_rng(0)
    values = {n.name: rng.uniform(-1, 1, (*n.shape, 1 if n.name in "Nb" else 3000)) for n in graph.inputs}
    same = {name: values.pop(name) for name in "Nb"}
    run, expected = compile_numba(graph, same, threads=2), expected_of(graph, values | same, 3000)
    run.kernel.fewest = 1000
    check(run, values, expected, close)
    # Results go where they are wanted, in whatever order they lie there.
    out = {y.name: np.full((3000, *y.shape[::-1]), np.nan).T for y in graph.outputs}
    found = run(values, out)
    for name, value in expected.items():
        assert found[name] is out[name]
        close(found[name], value)


# The source


def in_python(graph, same, points, count, tile):
    """Run the source for a graph as Python, in tiles of so many points."""
    schedule = Schedule.of(graph, same)
    if not schedule.steps:
        return {}
    code = write(schedule)
    scope = {}
    with patch.dict(sys.modules, numba=MagicMock(njit=lambda *_, **__: lambda function: function)):
        exec(re.sub("(?m)^T = .*", f"T = {tile}", code.source), scope)
    found = {name: np.full((*y.shape, count), np.nan) for name, y in schedule.outputs.items()}
    scratch = np.full(code.scratch, np.nan)
    inputs, outputs = ([flat(v) for v in vs] for vs in ([points[n.name] for n in schedule.inputs], found.values()))
    scope["kernel"](count, *inputs, code.same, scratch, *outputs)
    return found


@pytest.mark.parametrize("system", [*SYSTEMS, *BUILT], ids=text_of)
def test_source_as_evaluate(system):
    graph = graph_of(system)
    for g in (graph, vjp(graph)):
        points = points_for(g, 3, np.random.default_rng(0))
        expected = expected_of(g, points, 3)
        with np.errstate(all="ignore"):
            for name, value in in_python(g, {}, points, 3, 2).items():
                close(value, expected[name])


def flat(array):
    return array.reshape(-1, array.shape[-1]) if array.ndim > 1 else array


@settings(max_examples=60, deadline=None)
@given(graphs(), seeds, st.sets(st.sampled_from("axMN")))
def test_source_of_random_graph_as_evaluate(graph, seed, same):
    """No step reads rows that were given away."""
    for g in (graph, vjp(graph)):
        points = whole_numbers(g, 3, seed)
        fixed = {name: points.pop(name)[..., :1] for name in same}
        expected = expected_of(g, points | fixed, 3)
        for name, value in in_python(g, fixed, points, 3, 2).items():
            assert_array_equal(value, expected[name])


NAMES = {"math", "numba", "np", "kernel", "range", "min", "abs", "T", "count", "s", "n", "i", "u", "w"}
NAMES |= {f"{kind}_{side}" for kind in ("vector", "matrix") for side in ("in", "out")}


def source(names, numbers):
    """Return the source of a system in all elementwise operations, with those names and numbers."""
    a, b = leaves = [leaf(name) for name in names]
    y = numbers[0] * a - numbers[1]
    for value in elementwise_operations(a, b, b).values():
        y = y + value
    return write(Schedule.of(Graph.of(leaves, [y.called(names[0] * 2), (y * a).called(names[1] * 2)]), {})).source


def test_source_has_nothing_that_a_user_typed():
    text = source(["exec_me", "__import__('os').system('echo')"], [12345, Fraction(1, 777)])
    assert text == source(["a\nb", '"""'], [67890, Fraction(7, 999)])
    read = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    assert {name for name in read if not re.fullmatch(r"[a-z]\d+t?", name)} <= NAMES


# What Numba does not compile


@pytest.mark.parametrize(
    ("graph", "note"),
    [
        (parse("y = digamma(x)*digamma(z)"), "Numba has no `digamma`"),
        (vjp(vjp(parse("y = lgamma(x)"))), "Numba has no `polygamma`"),
        (chain("{h} + x", 102), "102 operations are too many for Numba to compile"),
    ],
    ids=["digamma", "slope of lgamma", "steps"],
)
def test_numpy_takes_the_place(numba, monkeypatch, graph, note):
    monkeypatch.setattr(numba_code, "MAX_STEPS", 101)
    notes = Notes()
    points = {n.name: np.full((*n.shape, 3), 1.5) for n in graph.inputs}
    check(Compiled(graph, engine="numba", notes=notes), points, expected_of(graph, points, 3), assert_array_equal)
    assert notes.lines == [f"note: {note}: the NumPy engine takes its place"]


# The cache


def twice(number=2):
    """Return the result of a small kernel, made anew."""
    return compile_numba(parse(f"y = {number}*x + 1"))({"x": np.arange(3.0)})["y"].tolist()


def files(folder):
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.rglob("*.*") if path.is_file()}


IN_ANOTHER_PROCESS = """
import numpy as np
from numba.core import compiler
from gradcli import parse
from gradcli.engine.compiled import Compiled
compiler.compile_extra = None  # to compile would fail
print(Compiled(parse("other = 5*z + 1"), engine="numba")({"z": np.arange(3.0)})["other"].tolist())
"""


def test_kernel_is_kept_for_other_processes_and_numbers(numba, cache):
    assert twice() == [1, 3, 5]
    before = files(cache)
    assert twice(3) == [1, 4, 7]
    done = subprocess.run(
        [sys.executable, "-c", IN_ANOTHER_PROCESS], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == ("[1.0, 6.0, 11.0]\n", "")
    assert files(cache) == before
    assert cache.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("pattern", "content"),
    [("kernel_*.py", b"raise SystemExit"), ("kernel_*.py", b"\xff\xfe"), ("*.nbi", b""), ("*.nbc", b"x")],
)
def test_what_is_broken_in_the_cache_is_made_anew(numba, monkeypatch, tmp_path, pattern, content):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert twice() == [1, 3, 5]
    (source,) = (tmp_path / "gradcli").glob("*.py")
    text = source.read_text()
    broken = list((tmp_path / "gradcli").rglob(pattern))
    assert broken
    for path in broken:
        path.write_bytes(content)
    assert twice() == [1, 3, 5]
    assert source.read_text() == text


@pytest.mark.parametrize("what", ["a file in its place", "read-only", "no home"])
def test_cache_that_cannot_be_written(numba, monkeypatch, tmp_path, what):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "folder"))
    if what == "a file in its place":
        (tmp_path / "folder").write_text("")
    elif what == "read-only":
        monkeypatch.setattr(os, "access", lambda *_: False)  # which root's permissions would not say
    else:
        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.setattr("pathlib.Path.home", MagicMock(side_effect=RuntimeError("no home")))
    assert twice() == [1, 3, 5]
