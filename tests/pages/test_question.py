"""What holds for every question: its result at points is that of its columns, at each point alone and in blocks."""

from __future__ import annotations

import json

import numpy as np
import pytest

from gradcli import parse
from gradcli.engine.evaluate import at_point
from gradcli.errors import Notes
from gradcli.graph.names import column_names
from gradcli.pages.backward.question import Gradients
from gradcli.pages.forward.jvp import JacobianProduct
from gradcli.pages.forward.taylor import Taylor
from gradcli.pages.hessian.question import Hessian, HessianProduct
from gradcli.pages.jacobian.question import Jacobian
from gradcli.pages.results import Wanted
from gradcli.report.data import csv
from gradcli.report.data import json as json_lines

SCALAR = parse("f = sin(x)*x**3")
LOSS = parse("h = W @ x; f = sum(tanh(h)**2)", W=(2, 3), x=(3,))
SYSTEM = parse("y = W @ x; z = sum(exp(x))*W[0,0]", W=(2, 3), x=(3,))
WRT = ["W", "x"]
CALLS = [[{"y": np.array([1.0, 10.0]), "z": np.array(0.5)}, {"y": np.array([0.0, -1.0]), "z": np.array(2.0)}]]
U = {"W": np.arange(6.0).reshape(2, 3), "x": np.array([1.0, -1.0, 0.5])}
QUESTIONS = {
    "gradients": lambda wanted: Gradients(SYSTEM, WRT, wanted, CALLS),
    "J": lambda wanted: Jacobian(SYSTEM, WRT, wanted),
    "J·u": lambda wanted: JacobianProduct(SYSTEM, WRT, wanted, U),
    "H": lambda wanted: Hessian(LOSS, WRT, wanted),
    "H·u": lambda wanted: HessianProduct(LOSS, WRT, wanted, U),
    "Taylor": lambda wanted: Taylor(SCALAR, ["x"], wanted, 3),
}
NUMBERS = Wanted(warn=False)


def points(graph):
    random = np.random.default_rng(1)
    return [{name: random.normal(size=x.shape) for name, x in graph.inputs.items()} for _ in range(3)]


def names_of(names, array):
    """Return the headings of the elements of an array in a row."""
    return column_names(names, array.shape) if isinstance(names, str) else names


def cells(row):
    """Return the numbers of a row by the headings of their columns."""
    return {n: float(v) for names, a in row for n, v in zip(names_of(names, a), a.reshape(-1), strict=True)}


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_values_at_points_are_those_of_the_columns(name):
    """A file's engine computes the graph of the columns, and a page or JSON the nodes of the result."""
    question = QUESTIONS[name](NUMBERS)
    graph, names = question.columns()
    at = points(question.graph)
    for point, row in zip(at, question.result(at, Notes()).rows(), strict=True):
        values = at_point(graph, point | question.seeds, [*graph.outputs.values()])
        expected = {
            e: float(v)
            for output, node in graph.outputs.items()
            for e, v in zip(names.get(output, column_names(output, node.shape)), values[node].flat, strict=True)
        }
        assert expected == {n: v for n, v in cells(row).items() if n in expected}
        assert len(cells(row)) == len(expected) + sum(x.size for x in question.graph.inputs.values()) + sum(
            y.size for y in question.graph.outputs.values()
        )


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_result_at_several_points_is_that_at_each(name):
    question = QUESTIONS[name](NUMBERS)
    at = points(question.graph)
    together = list(json_lines.lines(question.result(at, Notes())))
    assert together == [line for p in at for line in json_lines.lines(QUESTIONS[name](NUMBERS).result([p], Notes()))]
    assert all(list(json.loads(line)["at"]) == list(question.graph.inputs) for line in together)


@pytest.mark.parametrize("name", [name for name in QUESTIONS if name != "Taylor"])  # which no file of points has
def test_a_block_of_points_has_the_numbers_of_its_points(name):
    question, of_block = QUESTIONS[name](NUMBERS), QUESTIONS[name](NUMBERS._replace(block=True))
    at = points(question.graph)
    block = {n: np.stack([p[n] for p in at], axis=-1) for n in question.graph.inputs}
    seeds = {n: v[..., None] for n, v in of_block.seeds.items()}
    (row,) = of_block.result([block | seeds], Notes()).rows()
    for k, single in enumerate(question.result(at, Notes()).rows()):
        one = [(n, array[..., min(k, array.shape[-1] - 1)]) for n, array in row]
        assert cells(one) == pytest.approx(cells(single), rel=1e-12)


@pytest.mark.parametrize("name", [name for name in QUESTIONS if name != "H·u"])  # which needs a point
def test_without_a_point_formulas_stand_under_the_names_of_the_numbers(name):
    question = QUESTIONS[name](NUMBERS)
    (row,) = (result := question.result([], Notes())).rows()
    at, *_ = question.result(points(question.graph), Notes()).rows()
    headings, behind = ([e for n, a in cells for e in names_of(n, a)] for cells in (row, at))
    count = sum(x.size for x in (*question.graph.inputs.values(), *question.graph.outputs.values()))
    assert headings[: len(behind) - count] == behind[count:]
    _, formulas = csv.lines(result)
    assert "x[0]" in formulas or "cos(x)" in formulas
