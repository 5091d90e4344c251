"""Equal operations on many numbers as operations on arrays: fewer calls, the same numbers to the last bit."""

import numpy as np
import pytest
from conftest import some
from numpy.testing import assert_array_equal

from gradcli import evaluate, parse, vjp
from gradcli.engine.compiled import Compiled
from gradcli.engine.isomorphic import vectorised
from gradcli.engine.schedule import Schedule
from gradcli.graph.jacobian import jacobian

EDGES = np.array([0.0, -0.0, 1.0, -1.5, 0.3, np.inf, -np.inf, np.nan, 1e-310, 1e300])


def lines(template, count):
    return "\n".join(template.format(i=i, j=i + 1, k=(7 * i) % count) for i in range(count))


def broyden(n):
    ends = {0: "0", n + 1: "0"}
    x = [ends.get(i, f"x{i}") for i in range(n + 2)]
    return "\n".join(f"y{i} = (3 - 2*{x[i]})*{x[i]} - {x[i - 1]} - 2*{x[i + 1]} + 1" for i in range(1, n + 1))


SYSTEMS = {
    "elements": (lines("y{i} = sin(x{i})*x{i} + 1/x{i}", 40), {}),
    "neighbours": (broyden(150), {}),
    "far apart": (lines("y{i} = x{i}*x{k} - max([x{i}, x{k}])", 40), {}),
    "read by all, and one alone": (lines("t{i} = z*x{i} + s\ny{i} = t{i}/(z + t{i})", 40) + "\np = sin(t3)*t17", {}),
    "of arrays": (lines("y{i} = x[{i}]*w[{k}] - abs(x[{i}])", 40), {"x": (41,), "w": (41,)}),
    "rows of arrays that are outputs": ("y = 3*x\n" + lines("t{i} = y[{i}]", 20), {"x": (20,)}),
    "sums between": (lines("t{i} = x{i}**2", 20) + "\ns = " + " + ".join(f"t{i}" for i in range(20))
                     + "\n" + lines("y{i} = t{i}/s", 20), {}),
    "one number with two names": (lines("y{i} = 2*x{i}", 20) + "\nz = 2*x3", {}),
}  # fmt: skip


@pytest.mark.parametrize(("text", "shapes"), SYSTEMS.values(), ids=SYSTEMS)
@pytest.mark.parametrize("derivative", [lambda graph: graph, vjp, jacobian])
def test_each_number_is_that_of_the_interpreter(text, shapes, derivative):
    graph = derivative(parse(text, **shapes))
    random = np.random.default_rng(0)
    points = {n: random.choice(EDGES, (*x.shape, 37)) for n, x in graph.inputs.items()}
    run = Compiled(graph)
    found, expected = run(points), evaluate(graph, points)
    again = run(points, out={n: np.empty((*y.shape, 37)) for n, y in graph.outputs.items()})
    for name, value in expected.items():
        for own in (found[name], again[name]):
            own, right = np.broadcast_arrays(own, value)
            assert_array_equal(own, right, err_msg=name)
            numbers = ~np.isnan(right)
            assert_array_equal(np.signbit(own[numbers]), np.signbit(right[numbers]), err_msg=name)


@pytest.mark.parametrize("name", ["elements", "neighbours", "of arrays"])
def test_there_are_fewer_steps(name):
    text, shapes = SYSTEMS[name]
    schedule = Schedule.of(parse(text, **shapes), {})
    calls = [n for n in vectorised(schedule).steps if n.op != "index"]
    assert len(calls) < len(schedule.steps) / 3


@pytest.mark.parametrize(("text", "shapes"), some(SYSTEMS.values()), ids=some(SYSTEMS))
def test_results_of_another_call_are_left_alone_or_take_the_next(text, shapes):
    run = Compiled(graph := vjp(parse(text, **shapes)))
    random = np.random.default_rng(1)
    calls = [{n: random.choice(EDGES, (*x.shape, 5)) for n, x in graph.inputs.items()} for _ in range(4)]
    expected = [Compiled(graph)(points) for points in calls]
    first, second = run(calls[0]), run(calls[1])
    assert_equal(first, expected[0])
    assert_equal(run(calls[2], out=second), expected[2])
    assert_equal(second, expected[2])
    assert_equal(first, expected[0])
    for name, value in second.items():  # some of the rows, and another array in place of one
        given = second | {name: np.empty_like(value)}
        found = run(calls[3], out=given)
        assert found[name] is given[name] or value.shape[-1] == 1
        assert_equal(found, expected[3])


@pytest.mark.parametrize("system", ["neighbours", "far apart", "sums between"])
def test_points_of_any_type_and_order_in_memory(system):
    graph = jacobian(parse(SYSTEMS[system][0]))
    whole = np.arange(len(graph.inputs) * 9).reshape(9, -1).T
    points = dict(zip(graph.inputs, whole, strict=True))  # whole numbers, each far from the next
    run, expected = Compiled(graph), evaluate(graph, {n: a.astype(float) for n, a in points.items()})
    found = run(points)
    for _ in range(2):
        for name, value in expected.items():
            assert_array_equal(*np.broadcast_arrays(found[name], value), err_msg=name)
        found = run(points, out=found)


def assert_equal(found, expected):
    for name, value in expected.items():
        assert_array_equal(found[name], value, err_msg=name)


def test_what_has_nothing_equal_stays_as_it_is():
    schedule = Schedule.of(vjp(parse("y = sin(a)*b + c/d")), {})
    assert vectorised(schedule) is schedule


def test_many_points_are_computed_number_by_number():
    """There an array would be larger than the cache."""
    graph = parse(SYSTEMS["elements"][0])
    run = Compiled(graph)
    assert run.kernel.buffers(100)[0].shape == (40, 100)
    assert all(b.ndim == 1 for b in run.kernel.buffers(100_000))
