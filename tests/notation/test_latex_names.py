"""No two quantities of a page print alike: all names, elements, temporaries and adjoints."""

from __future__ import annotations

import re

import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from gradcli.graph.names import array_name, bar, element_name, element_names, fresh_names, normal
from gradcli.notation.latex_names import LatexNames, textbook

PARTS = ["x", "y", "W", "b", "t", "alpha", "α", "eps", "epsilon", "ε", "varepsilon", "Gamma", "Γ", "phi", "varphi", "φ"]
PARTS += [
    "pi", "π", "e", "loss", "_", "__", "_hat", "_bar", "_tilde", "_1", "1", "0", "01", "10", "é", "ȳ", "x̂", "λ", "ж",
]  # fmt: skip
names = st.lists(st.sampled_from(PARTS), min_size=1, max_size=4).map("".join).map(normal)
names = names.filter(lambda name: name.isidentifier())


def shown(latex):
    """Return LaTeX without what does not show: braces that hold one sign, and \\mathit of one letter."""
    return re.sub(r"\\mathit\{(.)\}", r"\1", re.sub(r"_\{(.)\}", r"_\1", latex)).replace(" ", "")


@settings(max_examples=examples(200), deadline=None)
@given(st.sets(names, min_size=1, max_size=8))
def test_distinct_quantities_are_distinct_in_latex(taken):
    temporaries = [next(fresh_names(taken)), *(n for n, _ in zip(fresh_names(taken, "S"), range(2), strict=False))]
    quantities = {*taken, *temporaries}
    # The adjoint of x is x̄: if the user has both, they are one name in text, too.
    quantities |= {bar(name) for name in quantities}
    quantities |= {e for name in quantities for shape in ((2,), (2, 2), (12,)) for e in element_names(name, shape)}
    latex = LatexNames(taken)
    written = {name: shown(latex(name)) for name in quantities}
    assert len(set(written.values())) == len(written), sorted(written.items(), key=lambda item: item[1])


PAIRS = [
    ("x1", element_name("x", [1])),
    (element_name("b1", [0]), element_name("b", [1, 0])),
    ("t1", element_name("t", [1])),
    (element_name("W1", [0, 0]), element_name("W", [1, 0, 0])),
    (element_name("x", [1, 2]), element_name("x", [12])),
    ("x_1", "x1"),
]
PAIRS += [("x_bar", bar("x")), ("y_hat", normal("y\u0302")), ("eps", "varepsilon"), ("lambda_", "λ"), ("alpha", "α")]


@pytest.mark.parametrize("pair", PAIRS)
def test_these_were_alike(pair):
    latex = LatexNames(array_name(name).replace("\u0304", "") for name in pair)
    first, second = map(latex, pair)
    assert first != second


@pytest.mark.parametrize(
    ("name", "latex"),
    [
        ("x1", "x_{1}"),
        ("theta_12", r"\theta_{12}"),
        ("y_hat", r"\hat{y}"),
        ("x_bar", r"\bar{x}"),
        ("theta_tilde2", r"\tilde{\theta}_{2}"),
        ("w1_hat", r"\hat{w}_{1}"),
        ("varphi", r"\varphi"),
        ("eps", r"\varepsilon"),
        ("epsilon", r"\epsilon"),
        ("Gamma", r"\Gamma"),
        ("lambda_", r"\lambda"),
        ("loss_hat", r"\mathit{loss\_hat}"),
        ("pi", r"\mathit{pi}"),
        ("_1", r"\mathit{\_1}"),
        ("xhat", r"\mathit{xhat}"),
    ],
)
def test_a_name_as_a_textbook_has_it(name, latex):
    assert textbook(name) == latex


def test_the_shorter_name_has_the_textbooks_form():
    latex = LatexNames(["x_1", "x1", "x_bar", "x"])
    assert [latex(n) for n in ("x1", "x_1", "x_bar", bar("x"))] == [
        "x_{1}",
        r"\mathtt{x\_1}",
        r"\mathtt{x\_bar}",
        r"\bar{x}",
    ]
