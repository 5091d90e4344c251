"""Linear algebra, indices, order and windows: PyTorch's numbers, differences, structure, formulas, and many points."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from conftest import each, some
from numpy.testing import assert_allclose, assert_array_equal
from structure_systems import SYSTEMS

from gradcli import evaluate, parse, symbolic_jacobian, vjp
from gradcli.engine.compiled import Compiled
from gradcli.graph.graph import Graph
from gradcli.graph.sparsity import dependencies
from gradcli.notation.formulas import code

RECORDED = json.loads(Path(__file__).with_name("pytorch_structure.json").read_text())["cases"]


def counting(shape):
    return np.arange(1.0, np.prod(shape, dtype=int) + 1).reshape(shape)


def system(expression, values):
    """Return the graph of one output, and its inputs that it reads, with an axis for the points."""
    inputs = {name: np.array(value, dtype=float) for name, value in zip("xyz", values, strict=False)}
    graph = parse(f"out = {expression}", **{name: a.shape for name, a in inputs.items()})
    return graph, {name: a[..., None] for name, a in inputs.items()}


@each("case", RECORDED)
def test_numbers_are_pytorchs(case):
    graph, at = system(case["expression"], case["inputs"])
    y = evaluate(graph, at)["out"][..., 0]
    assert_allclose(y, case["value"], rtol=1e-12, atol=1e-13)
    assert y.shape == np.shape(case["value"])
    at["out.v"] = counting(y.shape)[..., None]
    backward = vjp(graph)
    grads = evaluate(backward, at)
    for name, expected in zip("xyz", case["grads"], strict=False):
        assert_allclose(grads[f"{name}.grad"][..., 0], expected, rtol=1e-12, atol=1e-12)
    at |= {f"{name}.v": counting(n.shape)[..., None] for name, n in backward.outputs.items()}
    second = evaluate(vjp(backward), at)
    for name, expected in zip("xyz", case["second"], strict=False):
        assert_allclose(second[f"{name}.grad"][..., 0], expected, rtol=1e-9, atol=1e-11)


systems = each(("expression", "shapes"), SYSTEMS)


def points_of(graph, count, seed=0):
    """Return random values of the inputs, far enough from singular matrices."""
    rng = np.random.default_rng(seed)
    found = {name: rng.uniform(-2, 2, (*n.shape, count)) for name, n in graph.inputs.items()}
    for value in found.values():
        if value.ndim > 2 and value.shape[-2] == value.shape[-3]:
            value += 5 * np.eye(value.shape[-2])[..., None]
    return found


def flat(found, points=None):
    """Return the results at points as one array: (elements, points)."""
    points = points or max(a.shape[-1] for a in found.values())
    return np.concatenate([np.broadcast_to(a, (*a.shape[:-1], points)).reshape(-1, points) for a in found.values()])


def split(columns, nodes):
    """Return a matrix of a row for each element as arrays of the nodes' shapes, whose last axis are its columns."""
    parts = np.split(columns, np.cumsum([n.size for n in nodes.values()])[:-1])
    return {name: part.reshape(*n.shape, -1) for (name, n), part in zip(nodes.items(), parts, strict=True)}


def differences(graph, at, step=1e-5):
    """Return J at one point by central differences, the inputs' elements as columns."""
    x = flat(at)
    there, here = (evaluate(graph, split(x + s * np.eye(len(x)), graph.inputs)) for s in (step, -step))
    return (flat(there, len(x)) - flat(here, len(x))) / (2 * step)


def rows(graph, at):
    """Return J at one point: a sweep for each element of the outputs, as many points at once, gives its row."""
    size = sum(y.size for y in graph.outputs.values())
    vs = {f"{name}.v": v for name, v in split(np.eye(size), graph.outputs).items()}
    return flat(evaluate(vjp(graph), at | vs), size).T


@systems
def test_second_derivatives_are_the_differences_of_gradients(expression, shapes):
    graph = vjp(parse(f"out = {expression}", **shapes))
    at = points_of(graph, 1)
    assert_allclose(rows(graph, at), differences(graph, at), rtol=1e-6, atol=1e-6)


@systems
def test_third_derivatives_are_the_differences_of_second_ones(expression, shapes):
    second = vjp(vjp(parse(f"out = {expression}", **shapes)))
    graph = Graph.of(second.inputs, {f"second{i}": n for i, n in enumerate(second.outputs.values())})
    at = points_of(graph, 1)
    tangent = {name: np.random.default_rng(1).uniform(-1, 1, a.shape) for name, a in at.items()}
    there, here = ({name: a + s * tangent[name] for name, a in at.items()} for s in (1e-5, -1e-5))
    slope = (flat(evaluate(graph, there)) - flat(evaluate(graph, here))) / 2e-5
    along = rows(graph, at) @ flat(tangent)
    assert_allclose(along, slope, rtol=1e-5, atol=1e-5)


@systems
def test_structure_is_that_of_the_numbers(expression, shapes):
    graph = parse(f"out = {expression}", **shapes)
    seen = sum(rows(graph, points_of(graph, 1, seed)) != 0 for seed in range(24)) > 0
    leaves = list(graph.inputs.values())
    sets = dependencies(graph, leaves)
    size = sum(x.size for x in leaves)
    known = [[bool(bits >> j & 1) for j in range(size)] for y in graph.outputs.values() for bits in sets[y].flat]
    if "conv" in expression and "padding" in expression:  # the weights meet zeros, times which inf is nan
        assert (np.array(known) >= seen).all()
    else:
        assert_array_equal(np.array(known), seen)


@pytest.mark.parametrize(("expression", "shapes"), some(SYSTEMS))
def test_formulas_are_the_numbers(expression, shapes):
    graph = parse(f"out = {expression}", **shapes)
    at = points_of(graph, 5)
    found = symbolic_jacobian(graph)
    lines = [(name, code(e)) for name, e in found.where.items()]
    lines += [(f"e{i}_{j}", code(e)) for (i, j), e in found.entries.items()]
    text = "; ".join(f"{name} = {e}" for name, e in lines) + f"; all = [{', '.join(f'sum({x})' for x in shapes)}]"
    for name in found.where:  # an array is assigned as a whole, or not at all
        text = text.replace(name, re.sub(r"\W", "_", name))
    written = parse(text, **shapes)
    values = evaluate(written, at)
    for k in range(5):
        matrix = np.zeros((len(found.rows), len(found.columns)))
        for i, j in found.entries:
            value = values[f"e{i}_{j}"]
            matrix[i, j] = value[min(k, len(value) - 1)]
        assert_allclose(matrix, rows(graph, {name: a[..., k : k + 1] for name, a in at.items()}), rtol=1e-9, atol=1e-9)


@systems
def test_many_points_are_the_same_as_each(expression, shapes):
    graph = vjp(parse(f"out = {expression}", **shapes))
    at = points_of(graph, 70)
    run = Compiled(graph, threads=2)
    run.kernel.block = 16
    found = run(at)
    for name, value in evaluate(graph, at).items():
        assert_allclose(np.broadcast_to(found[name], (*value.shape[:-1], 70)), value * np.ones(70), rtol=1e-11)
    alone = [evaluate(graph, {name: a[..., k : k + 1] for name, a in at.items()}) for k in range(3)]
    assert_allclose(flat(found)[:, :3], np.concatenate([flat(one) for one in alone], axis=1), rtol=1e-11, atol=1e-13)
