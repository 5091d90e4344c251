"""An entry of a gradient in full: its sum is what is printed behind it, and what finite differences of NumPy say."""

from __future__ import annotations

import re

import numpy as np
import pytest

X = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 7.0], [7.0, 8.0, 9.5]])
K = np.array([[1.0, -0.5], [0.25, 2.0]])
V = np.array([[1, 2, 0], [3, -1, 1], [2, 1, 1]])
W = np.arange(40.0).reshape(20, 2) / 7


def convolved(x, k):
    x = np.pad(x, (0, 1))
    return np.array([[(x[i : i + 2, j : j + 2] * k).sum() for j in range(3)] for i in range(3)])


def text(a):
    return str(a.tolist()).replace(" ", "")


CASES = {
    "a convolution's input": (
        ("y=conv2d(x,k,padding='same')", "--at", f"x=[[{text(X)}]],k=[[{text(K)}]]", "--v", f"[[{text(V)}]]"),
        ("x", X, lambda x: (convolved(x, K) * V).sum()),
    ),
    "a convolution's kernel, behind a square": (
        ("y=sum(conv2d(x,k,padding='same')**2)", "--at", f"x=[[{text(X)}]],k=[[{text(K)}]]"),
        ("k", K, lambda k: (convolved(X, k) ** 2).sum()),
    ),
    "a row that is read twice": (
        ("h=W[[9,3,9]]", "y=sum(h**3)", "--at", f"W={text(W)}"),
        ("W", W, lambda w: (w[[9, 3, 9]] ** 3).sum()),
    ),
    "an element that two operations read": (
        ("y=sum(exp(sin(x)*cos(x[0,0]))*x*cumsum(x,1))", "--at", f"x={text(X)}", "--only", "grad"),
        ("x", X, lambda x: (np.exp(np.sin(x) * np.cos(x[0, 0])) * x * np.cumsum(x, 1)).sum()),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_an_entry_is_the_sum_that_stands_before_it(cli, case, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    arguments, (name, at, loss) = CASES[case]
    out = cli.done("backward", *arguments, "--digits", "full").out
    line = re.search(rf"^{name}\.grad\[([\d,]+)\] += (.*)$", out, re.MULTILINE)
    *_, arithmetic, total = line[2].split(" = ")
    key = tuple(map(int, line[1].split(",")))[-at.ndim :]
    step = np.zeros_like(at)
    step[key] = 1e-5
    slope = (loss(at + step) - loss(at - step)) / 2e-5
    assert float(total) == pytest.approx(slope, rel=1e-6)
    assert eval(arithmetic.replace("·", "*"), {}) == pytest.approx(float(total), rel=1e-12)  # numbers alone


def test_rows_that_are_0_are_counted(cli):
    out = cli.done("backward", "y=sum(W[[9,3,9]]**3)", "--at", f"W={text(W)}").out
    assert re.findall(r"^W\.grad\[(\d+)\]", out, re.MULTILINE)[-2:] == ["3", "9"]
    assert "The other 18 rows of W.grad are 0." in out


def test_no_gradient_of_a_small_system_is_numbers_alone(cli):
    """J, a formula or arithmetic stands with each, whatever the operations are."""
    for statement, at in [
        ("y=(1-x[0])**2+100*(x[1]-x[0]**2)**2", "x=[-1.2,1]"),
        ("y=sum(batch_norm(x)**3)", "x=[[1,2],[3,5],[0,1]]"),
        ("y=sum(layer_norm(x,3)**3)", "x=[1,2,4]"),
        ("y=sum(max_pool2d(x,2)**2)", "x=[[[[1,2],[4,5]]]]"),
        ("y=sum(avg_pool2d(x,2)**2)", "x=[[[[1,2],[4,5]]]]"),
        ("y=norm(cumsum(x))*prod(x)", "x=[1,2,3]"),
        ("y=logsumexp(x)*std(x)", "x=[1,2,4]"),
        ("y=sum(sort(x)**2*[1,2,3])", "x=[3,1,2]"),
    ]:
        out = cli.done("backward", statement, "--at", at, "--digits", "17").out
        lines = [*re.finditer(r"^x\.grad += (.*)", out, re.MULTILINE)]
        alone = all(line[1].startswith("[") and "·" not in line[1] for line in lines)
        assert not alone or "∂y/∂x[" in out or "One entry in full" in out, statement
