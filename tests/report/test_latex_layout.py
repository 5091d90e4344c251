"""How LaTeX is laid out on a page: what is too long is broken, and nothing is lost."""

from __future__ import annotations

import re

import pytest

from gradcli.report.latex_layout import WIDTH, pieces, width

SUM = " + ".join(rf"\sin\left({k} x_{{{k}}} + 1\right)" for k in range(20))


@pytest.mark.parametrize(
    "latex", [f"y = {SUM}", f"y = {SUM} = {SUM}", rf"\frac{{{SUM}}}{{2}} - {SUM}", rf"\left({SUM}\right) x", "x"]
)
def test_pieces_are_the_formula(latex):
    found = pieces(latex)
    assert " ".join(found).split() == latex.split()
    for piece in found:
        assert piece.count("{") == piece.count("}")
        assert piece.count(r"\left") == piece.count(r"\right")
        assert width(piece) <= WIDTH or not re.search(r" [+=] ", re.sub(r"\\(left|frac).*", "", piece))


def test_a_formula_is_broken_at_its_signs_alone():
    assert pieces("a + b = c - d", 8) == ["a + b", "= c - d"]
    assert pieces("a + b + c + d", 9) == ["a + b + c", "+ d"]
    assert pieces(r"\sum_{i=0}^{2} x + y", 4)[0].startswith(r"\sum_{i=0}^{2} x")


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ("x", "x + y"),
        (r"\frac{x}{y}", r"\frac{x + y}{y}"),
        (r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", r"\begin{pmatrix} 1 & 2 \end{pmatrix}"),
        ("x_{1}", "x_{123456}"),
        (r"\mathit{a}", r"\mathit{abcd}"),
        ("ab", "вес"),
    ],
)
def test_wider_is_wider(narrow, wide):
    assert width(narrow) < width(wide)
