"""The pages of what scripts ask for by name: Jacobians, Hessians, and their products with a vector."""

from __future__ import annotations

import re

import pytest

F = """import torch
from torch import func
from torch.autograd import functional
def f(x):
    return torch.stack([x[0] ** 2 * x[1], 5 * x[1]])
def g(x):
    return x[0] ** 2 * x[1]
x = torch.tensor([3., 2.])
u = torch.tensor([1., 10.])
"""


@pytest.fixture
def pages(run):
    """What is told of a script: its pages, and what stands on standard error."""

    def told(text, *options):
        outcome = run(text, *options)
        return [*re.split(r"^──.*──$\n", outcome.out, flags=re.M)[1::2], outcome.err]

    return told


J = """
Jacobian J[i, j] = ∂y[i]/∂x[j]
  J      ∂/∂x[0]            ∂/∂x[1]
  y[0]   2*x[0]*x[1] = 12   x[0]**2 = 9
  y[1]   0                  5

"""
H = """
H: the second derivatives of y; symmetric: only the lower triangle is shown
  H         ∂/∂x[0]      ∂/∂x[1]
  ∂/∂x[0]   2*x[1] = 4
  ∂/∂x[1]   2*x[0] = 6   0
"""


@pytest.mark.parametrize("call", ["functional.jacobian(f, x)", "func.jacrev(f)(x)", "func.jacfwd(f)(x)"])
def test_a_jacobian_has_one_page_that_shows_all_of_it(pages, call):
    page, rest = pages(F + call)
    assert J in page
    assert "computed column by column" in page if "jacfwd" in call else "computed row by row" in page
    assert not rest


@pytest.mark.parametrize("call", ["functional.hessian(g, x)", "func.hessian(g)(x)"])
def test_a_hessian_has_one_page_that_shows_all_of_it(pages, call):
    page, rest = pages(F + call)
    assert H in page
    assert "hessian returns H" in page
    assert not rest


@pytest.mark.parametrize("call", ["functional.jvp(f, x, u)", "func.jvp(f, (x,), (u,))"])
def test_a_product_with_a_tangent_shows_both(pages, call):
    page, rest = pages(F + call)
    assert J in page
    assert "ẋ = [1, 10]" in page
    assert "ẏ[0] = 12·1 + 9·10   = 102\nẏ[1] = 5·10          = 50\n" in page
    assert not rest


@pytest.mark.parametrize("name", ["hvp", "vhp"])
def test_a_product_with_the_hessian_is_one_page(pages, name):
    page, rest = pages(F + f"functional.{name}(g, x, u)")
    assert "H·u for x = [64, 6]\n" in page  # 4·1 + 6·10 and 6·1
    assert not rest


@pytest.mark.parametrize("call", ["functional.vjp(f, x, u)", "func.vjp(f, x)[1](u)"])
def test_a_product_with_a_cotangent_is_the_page_of_backward(pages, call):
    page, rest = pages(F + call)
    assert "∂L/∂x = [1·12, 1·9 + 10·5] = [12, 59]\n" in page
    assert "vjp returns vᵀJ." in page
    assert not rest


def test_each_call_is_told_where_all_is_asked_for(pages):
    text = F + "for k in range(3):\n    functional.hessian(g, x + k)\n"
    page, rest = pages(text)
    assert H in page
    assert "2 more times" in rest
    *every, rest = pages(text, "--all")
    assert [re.search(r"∂/∂x\[1\]   2\*x\[0\] = (\d+)", page)[1] for page in every] == ["6", "8", "10"]
    assert not rest


def test_a_gradient_inside_of_the_function_has_its_own_page(pages):
    slope = "def slope(x):\n    return torch.autograd.grad(g(x), x, create_graph=True)[0]\n"
    first, second, rest = pages(F + slope + "functional.jacobian(slope, x)\n")
    assert "∂y/∂x = [12, 9]" in first
    assert "jacobian returns J" in second
    assert not rest


@pytest.mark.parametrize(
    ("call", "shown", "what"),
    [
        ("functional.jacobian(rounded, x)", "y[0]   2*x[0] = 3   0\n", "J"),
        ("func.jacrev(rounded)(x)", "y[1]   0            2*x[1] = 2\n", "J"),
        ("func.jacfwd(rounded)(x)", "y[0]   2*x[0] = 3   0\n", "J"),
        ("func.hessian(lambda x: rounded(x).sum())(x)", "∂/∂x[0]   2", ""),
        ("functional.hessian(lambda x: (rounded(x)**2).sum(), x)", "∂/∂x[0]   12*x[0]**2 = 18\n", "H"),
        ("func.jvp(rounded, (x,), (u,))", "ẏ[1] = 2·10   = 20\n", "J·u"),
        ("functional.hvp(lambda x: (rounded(x)**2).sum(), x, u)", "H·u for x = [18, 80]\n", "H·u"),
    ],
)
def test_a_page_has_the_numbers_that_float32_gave_the_script(pages, call, shown, what):
    page, _ = pages(f"{F}def rounded(x):\n    return (x + 1e8 - 1e8)*x\n{call}")
    assert shown in page
    assert (f"note: the script's float32 rounds each operation, so {what} differs from" in page) == bool(what)
