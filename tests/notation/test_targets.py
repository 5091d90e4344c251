"""Text and LaTeX are targets: each operation of the table has a rule, derived from its row where the row says it."""

from __future__ import annotations

import pytest
from conftest import each

from gradcli import parse
from gradcli.graph.construct import call
from gradcli.graph.node import const, leaf
from gradcli.graph.operation import Operation, condition, function
from gradcli.graph.operations import OPERATIONS
from gradcli.notation import latex, text
from gradcli.notation.latex import LatexNotation
from gradcli.notation.nodes import Notation

TARGETS = {"text": text.TEXT, "latex": latex.LATEX}


@pytest.mark.parametrize("target", TARGETS)
def test_every_operation_has_a_rule(target):
    assert set(OPERATIONS) - set(TARGETS[target]) == set()


@pytest.mark.parametrize("module", [text, latex])
def test_a_row_says_how_it_is_written(module):
    assert module.derived(function(lambda y, x: 1))
    assert module.derived(condition("<>", "less"))
    assert module.derived(Operation("reduction", settings=("axes", "correction")))
    assert module.derived(Operation("reduction", settings=("axes", "a setting that nobody knows"))) is None


def written(system, **shapes):
    graph = parse(system, **shapes)
    names = {node: name for name, node in graph.inputs.items()}
    (y,) = graph.outputs.values()
    return Notation(names).expression(y), LatexNotation(names).expression(y)


SHAPES = {"x": (3,), "z": (3,), "M": (3, 3), "N": (3, 3), "a": (), "b": (), "i": (), "e": (), "Gamma": (), "psi": ()}


@each(
    ("expression", "latex"),
    [
        ("x @ x", r"x^{\top} x"),
        ("x @ M", r"M^{\top} x"),
        ("M @ (M*N)", r"M \left(M \odot N\right)"),
        ("M**2", r"M^{\circ 2}"),
        ("inv(M)", r"M^{-1}"),
        ("1/M", r"\frac{1}{M}"),
        ("sum(x**2)*a", r"\left(\sum_{i=0}^{2} x_{i}^{2}\right) a"),
        ("sum(x)*i", r"\left(\sum_{j=0}^{2} x_{j}\right) i"),
        ("mean(x)", r"\frac{1}{3} \sum_{i=0}^{2} x_{i}"),
        ("sum(M, axis=0)", r"\sum_{i=0}^{2} M_{i,{:}}"),
        ("sum(M*N)", r"\sum_{i,j} M_{i,j} N_{i,j}"),
        ("sum(M + x)", r"\sum_{i,j} \left(M_{i,j} + x_{j}\right)"),
        ("sum(M[:, 0:1]*N)", r"\sum_{i,j} (M_{{:},{:}1})_{i,0} N_{i,j}"),
        ("prod(x + 1)", r"\prod_{i=0}^{2} \left(x_{i} + 1\right)"),
        ("a**0.5*b", r"\sqrt{a} b"),
        ("a - (-0.5)*b", r"a - \left(-0.5 b\right)"),
        ("2*2**a", r"2 \cdot 2^{a}"),
        ("gamma(a) + lgamma(a) + digamma(b)", r"\Gamma\left(a\right) + \log \Gamma\left(a\right) + \psi\left(b\right)"),
        ("gamma(a)*Gamma", r"\operatorname{gamma}\left(a\right) \Gamma"),
        (
            "where(a > b, a, b)*a",
            r"\left(\begin{cases} a & \text{if } a > b \\ b & \text{otherwise} \end{cases}\right) a",
        ),
        ("abs(a)", r"\left|a\right|"),
        ("abs(M)", r"\operatorname{abs}\left(M\right)"),
        ("norm(M)", r"\left\|M\right\|_{\mathrm{F}}"),
        ("solve(M, x)", r"M^{-1} x"),
        ("[[a, b], [b, a]]", r"\begin{pmatrix} a & b \\ b & a \end{pmatrix}"),
        ("x*[1, 2, 3]", r"x \odot \begin{pmatrix} 1 & 2 & 3 \end{pmatrix}^{\top}"),
    ],
)
def test_latex_as_a_textbook_has_it(expression, latex):
    shapes = {name: shape for name, shape in SHAPES.items() if name in expression}
    assert written(f"y_out = {expression}", **shapes)[1] == latex


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("x*(M @ x)", "x*(M @ x)"),  # x*M @ x is another vector
        ("M @ (N*x)", "M @ (N*x)"),
        ("a % b % 2", "(a % b) % 2"),
        ("-(-a)", "-(-a)"),
        ("sum(M, axis=1, keepdims=True)", "sum(M, axis=1, keepdims=True)"),
        ("reshape(sum(M, axis=1), 1, 3)", "reshape(sum(M, axis=1), (1, 3))"),
        ("where(a > b, a, b)", "where(a > b, a, b)"),
        ("(a + b)*(a - b)", "(a + b)*(a - b)"),
        ("clamp(a, max=1)", "clamp(a, max=1)"),
    ],
)
def test_text(expression, text):
    shapes = {name: shape for name, shape in SHAPES.items() if name in expression}
    assert written(f"y_out = {expression}", **shapes)[0] == text


def test_a_constant_whose_name_is_taken_is_written_without_it():
    x, pi, e = leaf(), leaf(), leaf()
    product = const("pi") * x + const("e")
    assert Notation({x: "x", pi: "p", e: "f"}).expression(product) == "pi*x + e"
    assert Notation({x: "x", pi: "pi", e: "e"}).expression(product) == "acos(-1)*x + exp(1)"


def test_what_an_operation_hides_keeps_its_brackets():
    a, b = leaf(), leaf()
    node = call("identity", a + b) * b
    assert Notation({a: "a", b: "b"}).expression(node) == "(a + b)*b"
    assert LatexNotation({a: "a", b: "b"}).expression(node) == r"\left(a + b\right) b"
