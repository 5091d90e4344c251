"""Whatever the vocabulary makes, written as text, is read back as the same function: its values and its gradients."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import numpy as np
import pytest
import sympy
from conftest import each, long
from numpy.testing import assert_allclose

from gradcli import parse
from gradcli.engine.evaluate import at_point, values_of
from gradcli.graph import index_arrays
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.vjp import sweep
from gradcli.notation.formulas import code
from gradcli.notation.latex import LatexNotation
from gradcli.notation.nodes import Notation
from gradcli.notation.writer import Writer
from gradcli.vocabulary import FUNCTIONS, KEYWORDS, METHODS

# Small whole numbers, so that there are ties.
POINT = {
    "a": 2.0,
    "b": 3.0,
    "x": [2.0, -1.0, 2.0],
    "z": [1.0, 3.0, 2.0],
    "q": [0.25, 0.5, 0.125],
    "M": [[1.0, 2.0, 2.0], [3.0, 1.0, 3.0]],
    "N": [[2.0, 2.0, 1.0], [1.0, 4.0, 4.0]],
    "S": [[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 2.0, 5.0]],
    "w": [1.0, 2.0],
    "T": [[[1.0, 2.0], [2.0, 2.0], [0.0, 1.0]], [[3.0, 1.0], [3.0, 0.0], [1.0, 2.0]]],
    "I": [[[1.0, 3.0, 2.0, 3.0, 0.0], [2.0, 2.0, 1.0, 0.0, 4.0]]],
    "K": [[[1.0, -1.0], [2.0, 1.0]], [[0.0, 1.0], [1.0, 1.0]]],
    "k": [[[1.0, 2.0]], [[-1.0, 3.0]]],
    "P": [[[[1.0, 3.0, 2.0, 1.0], [2.0, 2.0, 0.0, 4.0], [3.0, 1.0, 3.0, 2.0], [0.0, 1.0, 2.0, 5.0]]]],
    "L": [[[[1.0, -1.0], [2.0, 1.0]]]],
}
# Calls by name, parted by semicolons; a line that is indented goes on with the one above.
TABLE = Path(__file__).with_name("vocabulary_calls.txt").read_text(encoding="utf-8").replace("\n    ", " ")
CALLS = {name: calls.split("; ") for name, calls in re.findall(r"^(\w+): (.+)$", TABLE, re.MULTILINE)}
EVERY = [call for calls in CALLS.values() for call in calls]
SHAPES = {name: np.shape(value) for name, value in POINT.items()}
# What only pullbacks and scripts make has no name of the language.
ELSEWHERE = {
    "recurrence", "sum_segments", "product_of_others", "scatter_add", "put_along", "gather", "index_add",
    "dynamic_slice", "dynamic_scatter", "take_along", "from_diagonal", "diagonal", "cast", "eigvalsh", "eigvecsh",
    "svdvals", "svd_u", "svd_vh", "cholesky",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _whole_lists(monkeypatch):
    """Long lists are written to their ends, not summarised as for readers."""
    monkeypatch.setattr(Writer, "shown", 10**9)
    monkeypatch.setattr(index_arrays, "_SHOWN", 10**9)


def read(text):
    return parse(f"y_out = {text}", **{n: s for n, s in SHAPES.items() if n in names_in(text)})


def names_in(text):
    return {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}


def written(call, notation=Notation):
    graph = read(call)
    names = {node: name for name, node in graph.inputs.items()}
    return notation(names).expression(graph.outputs["y_out"])


def numbers(graph):
    """Return the value of a system and the gradients of its leaves, for a cotangent of different numbers."""
    y = graph.outputs["y_out"]
    swept = sweep(graph, list(graph.inputs))
    inputs = {name: np.array(POINT[name])[..., None] for name in graph.inputs}
    inputs["y_out.v"] = np.linspace(1, 2, y.size).reshape(*y.shape, 1)
    with np.errstate(all="ignore"):
        found = values_of(swept.graph, inputs, [*swept.graph.outputs.values(), *swept.gradients.values(), y])
    return {"y": found[y]} | {name: found[node] for name, node in swept.gradients.items()}


@long
@each("call", EVERY)
def test_text_is_read_back_as_the_same_function(call):
    text = written(call)
    again = read(text)
    expected, found = numbers(read(call)), numbers(again)
    for name, array in expected.items():
        # What a call leaves out has gradient 0.
        assert_allclose(found.get(name, np.zeros_like(array)), array, rtol=1e-12, err_msg=text)
    assert written(text) == text


def test_every_name_of_the_vocabulary_is_written():
    builders = {build for name, build in FUNCTIONS.items() if name in CALLS}
    assert {name for name, build in FUNCTIONS.items() if build not in builders} == set()


def settings_of(build):
    return {p.name for p in inspect.signature(build).parameters.values() if p.default is not p.empty}


def typed(build, call):
    """Return the settings of a function that a call of it gives."""
    tree = next(n for n in ast.walk(ast.parse(call)) if isinstance(n, ast.Call) and FUNCTIONS.get(n.func.id) is build)
    given = inspect.signature(build).bind(*tree.args, **{KEYWORDS.get(k.arg, k.arg): k.value for k in tree.keywords})
    return set(given.arguments)


@each("name", [name for name in CALLS if name in FUNCTIONS])
def test_every_setting_is_written(name):
    build = FUNCTIONS[name]
    calls = [call for call in CALLS[name] if f"{name}(" in call]
    assert settings_of(build) <= set().union(*(typed(build, call) for call in calls))


def test_methods_have_no_other_settings():
    for name, build in METHODS.items():
        assert settings_of(build) <= settings_of(FUNCTIONS[name]), name


def test_every_operation_is_written():
    made = {node.op for call in EVERY for node in read(call).nodes}
    hidden = {"identity", "corner", "argmedian_mask", "argmax_mask", "argmin_mask"}
    assert set(OPERATIONS) - made <= ELSEWHERE | hidden


def test_different_quantities_are_not_alike_in_latex():
    found = {}
    for call in EVERY:
        latex, text = written(call, LatexNotation), written(call)
        known = found.setdefault(latex, (call, text))
        if text != known[1]:  # x @ M and M.T @ x are one vector
            expected = numbers(read(known[0]))
            assert {n: a.tolist() for n, a in numbers(read(call)).items()} == {
                n: a.tolist() for n, a in expected.items()
            }


def test_the_transpose_of_a_vector_that_was_made_a_row_is_typed_back(cli):
    system = ("y=reshape(sin(x),(1,2))@W", "L=sum(tanh(y))")
    out = cli.done("backward", *system, "--shape", "x=2,W=2x3", "--no-jacobian").out
    formula = next(line for line in out.splitlines() if line.startswith("W.grad = "))
    assert ".T @" in formula
    assert cli("check", *system, formula, "--shape", "x=2,W=2x3").status == 0


@pytest.mark.parametrize("values", ["[0,0,0,0,0,0,0,0,1,0]", "[0,0,0,0,0,0,0,-3,0]"])
def test_a_constant_whose_only_element_would_be_cut_off_is_typed_back(values, monkeypatch):
    monkeypatch.undo()  # lists are cut
    graph = parse(f"y = x - {values}", x=(len(ast.literal_eval(values)),))
    text = Notation({graph.inputs["x"]: "x"}).expression(graph.outputs["y"])
    again = parse(f"y = {text}", x=graph.inputs["x"].shape)
    x = np.arange(1.0, len(ast.literal_eval(values)) + 1)
    assert "…" not in text
    y = again.outputs["y"]
    assert_allclose(at_point(again, {"x": x}, [y])[y], x - np.array(ast.literal_eval(values)))


def test_a_constant_is_not_shown_as_zeros_that_it_is_not(monkeypatch):
    monkeypatch.undo()
    graph = parse("y = x + [0,0,0,0,0,0,2,3]", x=(8,))
    named = {graph.inputs["x"]: "x"}
    assert Notation(named).expression(graph.outputs["y"]) == "x + constant(8 numbers)"
    assert "0" not in LatexNotation(named).expression(graph.outputs["y"])


def test_a_sum_of_many_terms_is_written_in_its_order_and_read_back():
    letters = sympy.symbols("x:600", real=True)
    terms = sum((x**2 if k % 50 else -x) for k, x in enumerate(letters))
    text = code(terms)
    assert sympy.expand(sympy.sympify(text, {x.name: x for x in letters}) - terms) == 0
    assert "(" not in text
