"""How LaTeX is laid out on a page: what is too long is broken, and nothing is lost."""

from __future__ import annotations

import re

import pytest

from gradcli.report.latex_layout import WIDTH, height, paged, pieces, sized, table, width

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


def test_heights():
    assert [height(r"\frac{1}{2}"), height(r"\begin{pmatrix} 1 \\ 2 \\ 3 \end{pmatrix}"), height("x")] == [2, 3, 1]


def test_a_page_takes_what_fits_and_each_at_least_one():
    assert paged([30, 5, 30], lambda item: item, 24) == [[30], [5], [30]]


def test_what_is_too_wide_becomes_smaller():
    assert sized("x", WIDTH) == "x"
    assert sized("x", WIDTH * 1.05).startswith("{\\small\n")
    assert sized("x", WIDTH * 2).startswith("{\\scriptsize\n")


def test_rows_of_fractions_do_not_touch():
    assert table("c|c", "a & b", [r"1 & \frac{1}{2}", "3 & 4"], "5 & 6") == (
        "\\begin{array}{c|c}\n"
        "a & b \\\\ \\hline \\\\[-0.7em]\n"
        "1 & \\frac{1}{2} \\\\[4pt]\n"
        "3 & 4 \\\\[4pt]\n"
        "\\hline \\\\[-0.7em] 5 & 6\n"
        "\\end{array}"
    )
