"""Arrays of numbers: how they are made, what they are, and what is no array."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from gradcli import InputError, evaluate, parse, symbolic_jacobian

ARRAYS = {
    "zeros(2, 3)": np.zeros((2, 3)),
    "zeros(())": np.zeros(()),
    "full((2, 1), -1.5)": np.full((2, 1), -1.5),
    "full(2, [1, 2])": np.array([1, 2]),
    "ones_like(x@x)": np.ones(()),
    "eye(2)": np.eye(2),
    "eye(3, m=2)": np.eye(3, 2),
    "one_hot([2, 0], 3)": np.eye(3)[[2, 0]],
    "one_hot(1, 2)": np.array([0, 1]),
    "arange(3)": np.arange(3),
    "arange(4, 1, -2)": np.array([4, 2]),
    "arange(0, 1, 0.1)": np.arange(10) / 10,
    "arange(1, 1.3, 0.1)": np.array([1, 1.1, 1.2]),
    "arange(start=1, stop=2)": np.array([1]),
    "linspace(0, 1, 5)": np.array([0, 0.25, 0.5, 0.75, 1]),
    "linspace(0, 1, num=1)": np.array([0]),
    "linspace(0.1, 0.7, 4)": np.array([0.1, 0.3, 0.5, 0.7]),
    "full((2, 3), x)": np.ones((2, 3)),
    "-ones(2)*3": np.full(2, -3),
    "2**ones(2)/4": np.full(2, 0.5),
}


@pytest.mark.parametrize("text", ARRAYS)
def test_an_array_is_made(text):
    graph = parse(f"y = {text}; read = sum(x)", x=(3,))
    found = evaluate(graph, {"x": np.ones((3, 1))})["y"][..., 0]
    assert_array_equal(found, ARRAYS[text])
    assert graph.outputs["y"].shape == ARRAYS[text].shape


def test_numbers_are_exact():
    graph = parse("y = linspace(0, 1, 4); z = arange(0, 0.3, 0.1); x = a")
    assert graph.outputs["y"].values == (0, Fraction(1, 3), Fraction(2, 3), 1)
    assert [str(v) for v in graph.outputs["z"].values] == ["0", "0.1", "0.2"]


def test_ends_may_be_variables():
    graph = parse("y = linspace(a, b, 3)")
    assert {place: str(e) for place, e in symbolic_jacobian(graph).entries.items()} == {
        (0, 0): "1",
        (1, 0): "1/2",
        (1, 1): "1/2",
        (2, 1): "1",
    }


MISTAKES = {
    "zeros(0)": "at least one element",
    "zeros(2.5)": "integer",
    "zeros(x)": "plain number",
    "ones(5000, 5000)": "too large",
    "eye(2000)": "4,000,000 numbers are too many",
    "one_hot(1, 0)": "at least one class",
    "one_hot(1, 2000000)": "2,000,000 numbers are too many",
    "arange(0)": "empty",
    "arange(0, 1, 0)": "step",
    "arange(x[0])": "plain numbers",
    "arange(0, 10**9)": "1,000,000,000 numbers are too many",
    "arange(inf)": "plain numbers",
    "linspace(0, 1, 0)": "integer",
    "linspace(0, 1)": "is missing an argument",
    "linspace(x, 1, 3)": "scalar",
    "full(2)": "is missing an argument",
    "full((2, 2), x)": "do not fit together",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_is_told(text):
    with pytest.raises(InputError, match=MISTAKES[text]):
        parse(f"y = sum({text}) + x[0]", x=(3,))
