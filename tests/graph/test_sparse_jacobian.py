"""The Jacobian as a graph: its values against finite differences, and that nothing is computed that is zero."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import each, examples
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from gradcli import InputError, evaluate, numeric_jacobian, parse
from gradcli.engine.schedule import Schedule
from gradcli.graph import jacobian as module
from gradcli.graph import sparsity
from gradcli.graph.graph import Graph
from gradcli.graph.jacobian import entries, jacobian
from gradcli.graph.node import leaf
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.sparsity import dependencies
from gradcli.graph.vjp import vjp

# Systems in which every operation on arrays is met, with the shapes of their inputs.
SYSTEMS = {
    "scalars": ("y0 = 3*x0**2; y1 = x0**2 + 2*x1**3; y2 = 10*x1", {}),
    "diagonal": ("y = sin(x)", {"x": (4,)}),
    "banded": ("y = 3*x[1:] - x[:-1]**2", {"x": (6,)}),
    "assembled": ("y[0] = x[1]*x[0]; y[1] = x[0]**2; y[2] = 3 + w", {"x": (2,)}),
    "a leaf as an element": ("y[0] = a; y[1] = b*a; z = b", {}),
    "the same element twice": ("t = a*b; y[0] = t; y[1] = t", {}),
    "tall": ("y = sin(w*x) + x[0]", {"x": (5,)}),
    "tall and assembled": ("y = stack([a*x, a**2*x])", {"x": (3,)}),
    "dense": ("y = tanh(W@x)", {"W": (3, 4), "x": (4,)}),
    "matrices": ("y = A@B", {"A": (2, 3), "B": (3, 2)}),
    "vector and matrix": ("y = x@A", {"x": (3,), "A": (3, 2)}),
    "vectors": ("y = x@z", {"x": (3,), "z": (3,)}),
    "stacks": ("y = A@B", {"A": (2, 2, 3), "B": (3, 2)}),
    "stack and vector": ("y = A@x", {"A": (2, 2, 3), "x": (3,)}),
    "reductions": ("y = sum(A, axis=0); z = mean(A) + prod(A, axis=1)[0] + norm(A[0])", {"A": (3, 2)}),
    "extrema": ("y = max(A, axis=0); z = min(A)", {"A": (3, 2)}),
    "spread": ("y = var(A, axis=1); z = std(A)", {"A": (2, 3)}),
    "softmax": ("y = softmax(x); z = logsumexp(x)", {"x": (3,)}),
    "cumulated": ("y = cumsum(x)", {"x": (4,)}),
    "extremes": ("y = cummax(x)**2; z = cummin(A, axis=0)", {"x": (4,), "A": (3, 2)}),
    "moved": ("y = reshape(A.T, (3, 2)) + x.reshape(1, 2)", {"A": (2, 3), "x": (2,)}),
    "diagonals": ("y = diag(A); z = trace(A); w = diag(x)", {"A": (3, 3), "x": (2,)}),
    "outer": ("y = outer(a, b)", {"a": (2,), "b": (3,)}),
    "joined": ("y = concatenate([a, b, a*2])", {"a": (2,), "b": (1,)}),
    "conditions": ("y = where(x > z, x, 2*z); w = maximum(x, z)", {"x": (3,), "z": (3,)}),
    "a constant output": ("y = floor(x); z = x**2", {"x": (2,)}),
    "matrix to matrix": ("y = A*B", {"A": (2, 3), "B": (3,)}),
    "log_softmax": ("y = log_softmax(x)", {"x": (3,)}),
    "products": ("y = cumprod(x); z = cumprod(A, axis=0)", {"x": (4,), "A": (3, 2)}),
    "in order": ("y = sort(x); z = median(A, axis=1); w = argmax(x)*x + argmin(x)", {"x": (3,), "A": (2, 3)}),
    "matrices as a whole": ("y = det(A)*x; z = inv(A); w = solve(A, x)", {"A": (2, 2), "x": (2,)}),
    "triangles": ("y = triu(A); z = tril(A, -1)", {"A": (3, 3)}),
    "taken": ("y = x[[0, 2, 0]]; z = A[:, [1, 0]]", {"x": (3,), "A": (2, 2)}),
    "crossed": ("y = cross(x, z)", {"x": (3,), "z": (3,)}),
    "calls": ("y = mse_loss(A, x, reduction='none'); z = huber_loss(A[0], x)", {"A": (2, 3), "x": (3,)}),
    "contracted": ('y = einsum("ij,ik->jk", A, B)', {"A": (2, 2), "B": (2, 3)}),
}


def point_of(graph, seed=0):
    generator = np.random.default_rng(seed)
    return {name: generator.uniform(0.6, 1.4, n.shape) for name, n in graph.inputs.items()}


def values(graph, point):
    found = evaluate(graph, {name: np.asarray(v, dtype=float)[..., None] for name, v in point.items()})
    return {name: value[..., 0] for name, value in found.items()}


def differences(graph, point, y, x, step=1e-6):
    """Return dy/dx by central differences, of the shape of y followed by that of x."""
    columns = []
    for i in range(point[x].size):
        ends = []
        for sign in (1, -1):
            moved = point[x].copy()
            moved.reshape(-1)[i] += sign * step
            ends.append(values(graph, point | {x: moved})[y])
        columns.append((ends[0] - ends[1]) / (2 * step))
    return np.stack(columns, axis=-1).reshape((*columns[0].shape, *point[x].shape))


@each(("text", "shapes"), SYSTEMS.values())
def test_blocks_are_what_differences_say(text, shapes):
    graph = parse(text, **shapes)
    point = point_of(graph)
    found = values(jacobian(graph), point)
    for y in graph.outputs:
        for x in graph.inputs:
            expected = differences(graph, point, y, x)
            block = found.pop(f"d{y}/d{x}", np.zeros(expected.shape))
            assert block.shape == expected.shape
            assert_allclose(block, expected, rtol=1e-6, atol=1e-8)
    assert not found


@each(("text", "shapes"), SYSTEMS.values())
def test_single_entries_are_those_of_the_blocks(text, shapes):
    graph = parse(text, **shapes)
    point = point_of(graph, 1)
    blocks = values(jacobian(graph), point)
    nodes = entries(graph)
    assert all(n.shape == () for n in nodes.values())
    found = values(Graph.of(graph.inputs, {str(place): n for place, n in nodes.items()}), point)
    assert len(nodes) <= sum(b.size for b in blocks.values())
    rows, columns = elements(graph.outputs), elements(graph.inputs)
    for i, j in nodes:
        (y, *above), (x, *below) = rows[i], columns[j]
        assert found[str((i, j))] == blocks[f"d{y}/d{x}"][(*above, *below)]
    assert_allclose(np.sum([abs(b).sum() for b in blocks.values()]), sum(abs(v) for v in found.values()))


# A branch, an extremum, or an order may be another elsewhere than at these points.
@each("name", sorted(set(SYSTEMS) - {"conditions", "extrema", "extremes", "in order"}))
def test_the_sparsity_is_exact(name):
    """An entry is in the pattern if and only if it is not zero at some point."""
    text, shapes = SYSTEMS[name]
    graph = parse(text, **shapes)
    matrices = [numeric_jacobian(graph, list(graph.inputs), point_of(graph, seed)) for seed in range(3)]
    sets = dependencies(graph, list(graph.inputs.values()))
    found = [columns for y in graph.outputs.values() for columns in sets[y].flat]
    pattern = [[bool(columns >> j & 1) for j in range(matrices[0].shape[1])] for columns in found]
    assert pattern == np.any(matrices, axis=0).tolist()


@pytest.mark.parametrize(
    ("text", "sets", "entries"),
    [
        ("floor(x)", [0, 0], []),
        ("ceil(x.reshape(2, 1)[::-1])", [0, 0], []),
        ("floor_divide(x, 3)", [0, 0], []),
        ("sign(x[::-1] + 0)", [2, 1], []),
        ("floor_divide(x, x[0] + 0)", [1, 3], []),
        ("floor(1/x)", [1, 2], [[np.nan, 0], [0, -0.0]]),
        ("where(x > 1, 3, x)", [1, 2], [[1, 0], [0, 1]]),
        ("where(1/x > 1, 3, 2)*1.0", [0, 0], []),
        ("argmax(x)*x", [1, 2], [[1, 0], [0, 1]]),
        ("detach(1/x)*x", [1, 2], [[np.inf, 0], [0, 1]]),
    ],
)
def test_a_step_passes_on_a_0_and_a_condition_nothing(text, sets, entries):
    """Of a leaf, a 0 is all that there is; but what is computed may have an infinite slope."""
    graph = parse(f"y = {text}", x=(2,))
    found = dependencies(graph, list(graph.inputs.values()))[graph.outputs["y"]]
    assert found.ravel().tolist() == sets
    blocks = values(jacobian(graph), {"x": [0, 1]})
    np.testing.assert_equal([block.tolist() for block in blocks.values()], [entries] if entries else [])


def elements(nodes):
    """Return the name and the indices of each element of some nodes, in the order of rows and columns."""
    return [(name, *place) for name, n in nodes.items() for place in np.ndindex(*n.shape)]


# Eigenvalues and singular values, of which every element depends on every entry; segment_sum is a product.
SPECTRA = {"svd_u", "svd_vh", "svdvals", "eigvalsh", "eigvecsh", "segment_sum", "cholesky"}
SPECTRA |= {"gather", "index_add", "dynamic_slice", "dynamic_scatter"}  # defined in these, where indices are known


def test_every_operation_on_arrays_is_met():
    met = set()
    for text, shapes in SYSTEMS.values():
        primal = parse(text, **shapes)
        for graph in (primal, vjp(primal), vjp(vjp(primal))):
            dependencies(graph, list(graph.inputs.values()))
            met |= {n.op for n in graph.nodes}
    arrays = {op for op, row in OPERATIONS.items() if not row.broadcasts and row.kind != "call"}  # which are defined
    assert met >= arrays - {"argmin_mask", "cast"} - SPECTRA


@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=1, max_size=6))
def test_the_entries_are_the_pattern(pattern):
    """y_i sums the squares of the x_j that row i of the pattern names."""
    leaves = {f"x{j}": leaf() for j in range(4)}
    outputs = {}
    for i, row in enumerate(pattern):
        outputs[f"y{i}"] = 0 * leaves["x0"]
        for x in (x for x, there in zip(leaves.values(), row, strict=True) if there):
            outputs[f"y{i}"] += x**2
    graph = jacobian(Graph.of(leaves, outputs))
    assert set(graph.outputs) == {
        f"dy{i}/dx{j}" for i, row in enumerate(pattern) for j, there in enumerate(row) if there
    }
    found = values(graph, {f"x{j}": j + 1.0 for j in range(4)})
    assert all(value == 2 * (int(name[-1]) + 1) for name, value in found.items())


def tridiagonal(n):
    """Return Broyden's function (More, Garbow, Hillstrom 1981, problem 30)."""
    x = [f"x{i}" for i in range(n)]
    below = ["", *(f" - {name}" for name in x[:-1])]
    above = [*(f" - 2*{name}" for name in x[1:]), ""]
    return "\n".join(f"y{i} = (3 - 2*{x[i]})*{x[i]}{below[i]}{above[i]} + 1" for i in range(n))


@pytest.mark.parametrize("n", [10, 300])
def test_work_grows_with_the_entries_and_constants_are_computed_once(n):
    graph = jacobian(parse(tridiagonal(n)))
    assert len(graph.outputs) == 3 * n - 2
    schedule = Schedule.of(graph, {})
    constants = {name: float(value.item()) for name, value in schedule.constants.items()}
    assert constants == {f"dy{i}/dx{i - 1}": -1.0 for i in range(1, n)} | {
        f"dy{i}/dx{i + 1}": -2.0 for i in range(n - 1)
    }
    assert len(schedule.steps) <= 4 * n  # of d(3 - 2x)x/dx, three or four


@pytest.mark.parametrize(
    ("text", "shapes", "sweeps"),
    [
        (tridiagonal(50), {}, 3),
        ("y = 3*x[1:] - x[:-1]**2", {"x": (50,)}, 2),
        ("y = sin(x)", {"x": (50,)}, 1),
        ("y = sin(w*x)", {"x": (50,)}, 2),  # columns: one for w, one for all of x
        ("y = x@x", {"x": (50,)}, 1),
        ("y = M@x", {"M": (7, 50), "x": (50,)}, 7),
    ],
)
def test_there_are_as_many_sweeps_as_colours(text, shapes, sweeps, monkeypatch):
    calls = []

    def counted(sweep):
        def called(*arguments):
            calls.append(sweep)
            return sweep(*arguments)

        return called

    for name in ("reverse", "forward"):
        monkeypatch.setattr(module, name, counted(getattr(module, name)))
    jacobian(parse(text, **shapes))
    assert len(calls) == sweeps


def test_leaves_of_very_many_elements_are_single_columns():
    graph = jacobian(parse("y = sum(x**2); z = x[0]*w", x=(6000,)))
    point = {"x": np.linspace(1, 2, 6000), "w": np.array(3.0)}
    found = values(graph, point)
    assert_allclose(found["dy/dx"], 2 * point["x"])
    assert_allclose(found["dz/dx"], np.where(np.arange(6000) == 0, 3.0, 0.0))
    assert set(found) == {"dy/dx", "dz/dx", "dz/dw"}


def test_outputs_of_very_many_elements_are_told_apart():
    """Swept by columns, J has more rows than there may be columns of a leaf: y_k = k·a·x, 70 elements each."""
    x = np.linspace(1, 2, 70)
    graph = parse("; ".join(["h = a*x", *(f"y{k} = {k}*h" for k in range(1, 81))]), x=(70,))
    found = values(jacobian(graph), {"a": np.array(2.0), "x": x})
    for k in range(1, 81):
        assert_allclose(found[f"dy{k}/dx"], 2 * k * np.eye(70))
        assert_allclose(found[f"dy{k}/da"], k * x)


@pytest.mark.parametrize("inner", ["1/x", "log(x)", "1/(x*x)", "x**-2", "w*x**0.5"])
def test_a_column_is_finite_where_only_another_is_not(inner):
    """Swept by columns, J has the numbers of the rows, which are what PyTorch's `backward` leaves."""
    graph = parse(f"y = M@({inner})", M=(3, 2), x=(2,))
    point = {"M": np.arange(1.0, 7.0).reshape(3, 2), "x": np.array([0.0, 2.0])}
    point |= {name: np.array(3.0) for name in graph.inputs if name == "w"}
    found = values(jacobian(graph, ["x"]), point)["dy/dx"]
    assert np.isfinite(found[:, 1]).all()
    for row, v in zip(found, np.eye(3), strict=True):
        assert_array_equal(row, values(vjp(graph, ["x"]), point | {"y.v": v})["x.grad"])


def test_corners_are_those_of_the_sweep():
    """The norm at 0 has the subgradient 0, a tie of max is shared: what `backward` gives row by row."""
    graph = parse("y = norm(x); z = max(x)", x=(2,))
    found = values(jacobian(graph), {"x": np.zeros(2)})
    assert found["dy/dx"].tolist() == [0.0, 0.0]
    assert found["dz/dx"].tolist() == [0.5, 0.5]


def test_a_power_of_0_is_no_concern_of_another():
    """Three rows of two columns: x**b at 0 has a finite slope where b is 0, and so it has beside other powers."""
    found = values(jacobian(parse("y = x**b", b=(3,))), {"x": np.array(0.0), "b": np.array([0.0, 1.0, 2.0])})
    assert found["dy/dx"].tolist() == [0.0, 1.0, 0.0]


def test_a_pole_of_one_row_is_no_concern_of_another():
    graph = parse("y[0] = 1/x[0]; y[1] = 2*x[1]; z = log(w)")
    found = values(jacobian(graph), {"x": np.array([0.0, 1.0]), "w": np.array(0.0)})
    assert found["dy/dx"].tolist() == [[-np.inf, 0.0], [0.0, 2.0]]
    assert found["dz/dw"] == np.inf


def test_too_many_single_entries_are_refused():
    with pytest.raises(InputError, match="120,000 entries"):
        entries(parse("y = a*outer(b, c)", a=(1,), b=(300,), c=(400,)), ["a"])


@settings(max_examples=examples(20))
@given(st.integers(1, 4), st.integers(1, 4))
def test_rows_and_columns_give_the_same(m, n):
    """A matrix that is taller than wide is swept by columns, its transpose by rows."""
    generator = np.random.default_rng(10 * m + n)
    x, matrix = generator.normal(size=n), generator.normal(size=(m, n))
    tall = values(jacobian(parse("y = sin(M@x)", M=(m, n), x=(n,)), ["x"]), {"M": matrix, "x": x})["dy/dx"]
    assert_allclose(tall, np.cos(matrix @ x)[:, None] * matrix, rtol=1e-12)


def test_a_jacobian_without_a_pattern_is_refused_before_its_rows_are_lines(monkeypatch):
    """Each element of a leaf that is one column has the same set, of which runs are worked out once."""
    computed = []
    runs = sparsity._runs
    monkeypatch.setattr(sparsity, "MAX_COLUMNS", 10)
    monkeypatch.setattr(sparsity, "MAX_SETS", 100)
    monkeypatch.setattr(sparsity, "_runs", lambda columns: computed.append(columns) or runs(columns))
    monkeypatch.setattr(module, "_lines", None)
    with pytest.raises(InputError, match="too large to find the entries"):
        module.sparse(parse("y = x**3", x=(5000,)))
    assert len(computed) == 1
