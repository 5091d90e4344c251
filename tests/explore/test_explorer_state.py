"""What the keys do to the moment: numbers, undo, accumulation, gradient descent, and what is typed."""

from __future__ import annotations

import shlex

import numpy as np
import pytest

pytest.importorskip("textual", reason="needs textual")

from screens import AT, EXAMPLE, V, explorer

from gradcli.errors import InputError
from gradcli.explore.command import command_text, command_words
from gradcli.explore.panel import plot


@pytest.fixture
def example():
    return explorer(EXAMPLE, AT, V)


def values(e):
    return [e.value(field) for field in e.fields]


def test_steps_are_decimals_and_lead_back(example):
    for k, unit in enumerate([0.1, 0.1, 0.1, 1, 10, 0.01]):
        field = example.fields[k]
        before = example.value(field)
        example.step(field, 3)
        assert example.value(field) == float(f"{before + 3 * unit:.12g}")
        example.step(field, -3)
        assert example.value(field) == before


def test_undo_leads_back_through_every_change_and_reset_can_be_undone(example):
    first = values(example)
    seen = [first]
    for field in example.fields:
        example.step(field, 1)
        seen.append(values(example))
    for expected in reversed(seen[:-1]):
        assert example.undo()
        assert values(example) == expected
    assert not example.undo()
    example.step(example.fields[0], 5)
    moved = values(example)
    example.reset()
    assert values(example) == first
    example.undo()
    assert values(example) == moved


def test_the_gradient_is_the_sum_of_all_calls_and_zero_leaves_the_last(example):
    example.call()
    example.enter(example.fields[3], "1")
    # vᵀJ of the first call, and of the second: J = [[6, 0], [2, 24], [0, 10]]
    assert {n: float(g) for n, g in example.gradient().items()} == {"x0": 26 + 8, "x1": 1240 + 1024}
    assert {n: float(g) for n, g in example.gradient(last=True).items()} == {"x0": 8, "x1": 1024}
    example.zero()
    assert {n: float(g) for n, g in example.gradient().items()} == {"x0": 8, "x1": 1024}


def test_gradient_descent_follows_the_formula():
    e = explorer(["y=(x-3)**2"], {"x": 0})
    x = 0.0
    for _ in range(5):
        e.descend()
        x -= 0.1 * 2 * (x - 3)
        assert float(e.state.at["x"]) == pytest.approx(x, rel=1e-14)
    assert list(e.state.losses) == sorted(e.state.losses, reverse=True)
    assert e.state.losses[0] == 9


@pytest.mark.parametrize(
    ("typed", "expected"),
    [("2", 2), ("-1/3", -1 / 3), ("pi", np.pi), ("1e-3", 1e-3), ("2,x1=5", 2), (" sqrt(2) ", np.sqrt(2))],
)
def test_what_is_typed_is_read_as_on_the_command_line(example, typed, expected):
    example.enter(example.fields[0], typed)
    assert example.value(example.fields[0]) == expected
    assert example.value(example.fields[1]) == (5 if "x1" in typed else 2)


@pytest.mark.parametrize(
    "typed", ["", "a", "2x", "1,5", "[1,2]", "__import__('os')", "y0=1", "1,z=2", "1;2", "x" * 999]
)
def test_what_is_no_number_changes_nothing_and_says_why(example, typed):
    before = values(example)
    with pytest.raises(InputError) as error:
        example.enter(example.fields[0], typed)
    assert values(example) == before
    assert not example.past
    assert "^" in error.value.render(76)


def test_elements_of_arrays_have_fields_and_large_arrays_one():
    e = explorer(["y=sum(X**2)"], {"X": [[1, 2], [3, 4]]})
    assert [f.label for f in e.fields[:4]] == ["X[0,0]", "X[0,1]", "X[1,0]", "X[1,1]"]
    e.enter(e.fields[2], "7")
    assert e.state.at["X"].tolist() == [[1, 2], [7, 4]]
    large = explorer(["y=sum(x**2)"], {"x": np.arange(100)})
    field = large.fields[0]
    with pytest.raises(InputError, match="100 elements"):
        large.step(field, 1)
    with pytest.raises(InputError, match="100 elements"):
        large.enter(field, "3")
    large.enter(field, "[3]=-0.5")
    assert large.state.at["x"][3] == -0.5
    with pytest.raises(InputError, match="not an element"):
        large.enter(field, "[100]=1")


def test_the_command_shows_what_was_seen(example, cli):
    example.step(example.fields[0], 5)
    example.call()
    example.enter(example.fields[4], "-1/8")
    text = command_text(command_words(example, EXAMPLE, steps=False))
    name, *arguments = shlex.split(text)
    assert name == "gradcli"
    shown = cli.json(*arguments)
    assert shown["at"] == {"x0": 1.5, "x1": 2}
    assert len(shown["calls"]) == 2
    assert shown["grad"] == {n: float(g) for n, g in example.gradient().items()}


def test_the_plot_is_the_function_and_its_tangent():
    e = explorer(["y=x**3"], {"x": 2})
    shown = plot(e, e.fields[0], 0.1, 41)
    np.testing.assert_allclose(shown.xs, np.linspace(0, 4, 41), atol=1e-12)
    np.testing.assert_allclose(shown.curve, shown.xs**3, rtol=1e-12)
    np.testing.assert_allclose(shown.tangent, 8 + 12 * (shown.xs - 2), rtol=1e-12)
    assert shown.slope == 12
    assert plot(e, e.fields[1], 0.1, 41) is None  # a cotangent
