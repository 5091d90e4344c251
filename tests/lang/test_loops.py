"""`y[i] = EXPRESSION for i in 0..9` is what the statements for each element are, at the cost of a few operations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradcli import evaluate, numeric_jacobian, parse

N = 5


class Term(NamedTuple):
    """A term as a loop has it, and the function that writes it out for one i."""

    short: str
    at: object


LEAVES = [
    Term("x[i]", lambda i: f"x[{i}]"),
    Term("x[n-1-i]", lambda i: f"x[{N - 1 - i}]"),
    Term("x[(i+2)%n]", lambda i: f"x[{(i + 2) % N}]"),
    Term("x[n-1]", lambda i: f"x[{N - 1}]"),
    Term("i", str),
    Term("a", lambda i: "a"),
    Term("0.5", lambda i: "0.5"),
    Term("sum(x)", lambda i: "sum(x)"),
    Term("(x[i-1] if i > 0 else 0)", lambda i: f"x[{i - 1}]" if i else "0"),
    Term("(x[i+1] if i < n-1 else a)", lambda i: f"x[{i + 1}]" if i < N - 1 else "a"),
    Term("(x[0] if i%2 == 0 else x[i//2]**2)", lambda i: f"x[{i // 2}]**2" if i % 2 else "x[0]"),
    Term(
        "(x[2*i] if 1 <= i <= 2 else i*a if not i == 0 and i != n else 3)",
        lambda i: f"x[{2 * i}]" if i in (1, 2) else f"{i}*a" if i else "3",
    ),
    Term("t[i]", lambda i: f"t[{i}]"),
    Term("norm(x[i:])", lambda i: f"norm(x[{i}:])"),
]


def values(graph, at):
    """Return the outputs at one point."""
    found = evaluate(graph, {name: np.asarray(at[name])[..., None] for name in graph.inputs})
    return {name: value[..., 0] for name, value in found.items()}


def joined(terms):
    """Return terms made of two, or of one."""
    return st.one_of(
        st.builds(
            lambda a, sign, b: Term(f"({a.short}{sign}{b.short})", lambda i: f"({a.at(i)}{sign}{b.at(i)})"),
            terms,
            st.sampled_from("+-*"),
            terms,
        ),
        terms.map(lambda a: Term(f"sin({a.short})", lambda i: f"sin({a.at(i)})")),
        terms.map(lambda a: Term(f"where({a.short} > 0.1, 2, a)", lambda i: f"where({a.at(i)} > 0.1, 2, a)")),
    )


@given(st.recursive(st.sampled_from(LEAVES), joined, max_leaves=6), st.integers(0, 2), st.integers(0, 2))
def test_a_loop_is_its_elements(term, first, last):
    low, high = first, N - 1 - last
    before = "t = x*sin(a*x)"
    loop = parse(f"n = {N}; {before}; y[i-{low}] = {term.short} for i in {low}..n-{1 + last}", x=(N,), a=())
    written = "; ".join(f"y[{i - low}] = {term.at(i)}" for i in range(low, high + 1))
    expanded = parse(f"{before}; {written}", x=(N,), a=())
    at = {"x": np.linspace(-1, 1.3, N), "a": np.array(0.7)}
    np.testing.assert_allclose(*(values(g, at)["y"] for g in (loop, expanded)), rtol=1e-13)
    whole = [numeric_jacobian(g, ["x", "a"], at) for g in (loop, expanded)]
    np.testing.assert_allclose(*whole, rtol=1e-12, atol=1e-13)


def test_several_axes():
    text = """
      m = 3
      z[i,j] = ((u[i-1,j] if i > 0 else 0) - 2*u[i,j] + v[j]*i
                + (u[j,i] if i != j else 7)) for i in 0..m-1 for j in 0..m-1
    """
    u, v = np.arange(9.0).reshape(3, 3) ** 1.5, np.array([3.0, -1, 2])
    graph = parse(text, u=(3, 3), v=(3,))
    wanted = np.vstack([np.zeros(3), u[:-1]]) - 2 * u + v * np.arange(3)[:, None] + np.where(np.eye(3), 7, u.T)
    np.testing.assert_allclose(values(graph, {"u": u, "v": v})["z"], wanted)


def test_elements_of_several_statements():
    graph = parse("y[0] = a; y[4] = b; y[i] = x[i] for i in 1..2; y[i] = a*b for i in 3..3")
    at = {"a": 2.0, "b": 3.0, "x": np.array([9.0, 5, 7])}
    assert values(graph, at)["y"].tolist() == [2, 5, 7, 6, 3]


def test_elements_from_those_before():
    """A recurrence is written out, and so is what takes arrays."""
    graph = parse(
        "h[0] = s; h[k] = tanh(w*h[k-1] + x[k]) for k in 1..3; r[i] = M[i] @ x for i in 0..1", M=(2, 4), x=(4,)
    )
    at = {"s": np.array(0.3), "w": np.array(-2.0), "x": np.arange(4.0), "M": np.arange(8.0).reshape(2, 4)}
    h = [0.3]
    for k in (1, 2, 3):
        h.append(np.tanh(-2 * h[-1] + k))
    found = values(graph, at)
    np.testing.assert_allclose(found["h"], h, rtol=1e-14)
    np.testing.assert_allclose(found["r"], at["M"] @ at["x"])


def test_leaves_get_the_shapes_that_are_read():
    graph = parse("y[i] = x[i+1]*(z[i,3] if i < 2 else 0) for i in 0..3")
    assert {name: x.shape for name, x in graph.inputs.items()} == {"x": (5,), "z": (2, 4)}


def test_a_long_loop_is_a_few_operations():
    graph = parse("n = 100000; y[i] = (3-2*x[i])*x[i] - (x[i-1] if i > 0 else 0) + (x[i+1] if i < n-1 else 0) "
                  "for i in 0..n-1")  # fmt: skip
    assert len(graph.nodes) < 20
    assert not any(node.op == "take" for node in graph.nodes)


def test_coupled_recurrences():
    """Loops over one range that read each other's elements are computed round by round: the Euler steps of a model."""
    graph = parse("""
      S[0] = 0.9; I[0] = 0.1; R[0] = 0
      S[k] = S[k-1] - b*S[k-1]*I[k-1]               for k in 1..20
      I[k] = I[k-1] + b*S[k-1]*I[k-1] - 0.1*R[k-1]  for k in 1..20
      R[k] = R[k-1] + 0.1*S[k]                      for k in 1..20
    """)
    s, i, r = [0.9], [0.1], [0.0]
    for _ in range(20):
        s, i = [*s, s[-1] - 0.3 * s[-1] * i[-1]], [*i, i[-1] + 0.3 * s[-1] * i[-1] - 0.1 * r[-1]]
        r.append(r[-1] + 0.1 * s[-1])
    found = values(graph, {"b": np.array(0.3)})
    assert list(found) == ["S", "I", "R"]
    np.testing.assert_allclose([found["S"], found["I"], found["R"]], [s, i, r], rtol=1e-12)


def test_coupled_recurrences_begin_in_their_first_round():
    text = "a[k] = (b[k-1] + x if k > 0 else x) for k in 0..3; b[k] = 2*a[k] for k in 0..3; y = sum(a) + sum(b)"
    assert values(parse(text), {"x": 1.0})["y"] == 3 * (1 + 3 + 7 + 15)


@pytest.mark.parametrize("right", ["a*(h[t-1] if t > 0 else 0) + x", "a*h[t-1] + x if t > 0 else x"])
def test_a_recurrence_begins_in_its_first_round(right):
    found = values(parse(f"h[t] = {right} for t in 0..5"), {"a": 2.0, "x": 3.0})["h"]
    np.testing.assert_allclose(found, 3 * (2.0 ** np.arange(1, 7) - 1))


def test_elements_of_an_assigned_row():
    """`s[k-1,0]` is `s[k-1][0]` while rows are assigned."""
    graph = parse("s[0] = [x, 1 - x]; s[k] = [s[k-1,0]*s[k-1,1], s[k-1][0]] for k in 1..2; y = s[2,0] + s[2,1]")
    assert values(graph, {"x": 3.0})["y"] == -6 * 3 - 6
