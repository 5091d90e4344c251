"""The direction of steepest curvature: no other direction has a larger second derivative."""

import numpy as np
import pytest

from gradcli.pages.hessian.page import steepest


@pytest.mark.parametrize("seed", range(5))
def test_no_direction_is_steeper(seed):
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(4, 4))
    matrix = half + half.T
    second, along = steepest(matrix)
    others = rng.normal(size=(1000, 4))
    others /= np.linalg.norm(others, axis=1, keepdims=True)
    assert along @ matrix @ along == pytest.approx(second)
    assert (np.abs(np.einsum("ki,ij,kj->k", others, matrix, others)) <= abs(second) + 1e-12).all()


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_page_has_it(cli, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    page = cli.done("hessian", "f=x**2-3*y**2", "--at", "x=0,y=0").out
    assert "steepest curvature: -6, along (x, y) = [0, 1]" in " ".join(page.split())
    assert max(map(len, page.splitlines())) <= columns


def test_many_names_are_broken_into_lines(cli, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    system = "y = weights[0]*weights[1] + weights[2]**2*weights[3]"
    page = cli.done("hessian", system, "--at", "weights=[1,2,3,4,5,6,7,8]").out
    names = ", ".join(f"weights[{k}]" for k in range(8))
    assert f"along ({names}) = [" in " ".join(page.split())
    assert max(map(len, page.splitlines())) <= 80
