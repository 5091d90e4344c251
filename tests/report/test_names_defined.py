"""Each identifier in a formula of a page is an input, an output or a function, or has an equation that defines it."""

from __future__ import annotations

import ast
import re
import unicodedata
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gradcli.vocabulary import FUNCTIONS

UNNAMED = "d=a*b; e=a-d-relu(b-a); g=e**2+1/e"
KNOWN = {*FUNCTIONS, "pi", "e", "inf", "nan", "L", "loss", "v", "J", "H", "u", "vJ", "T", "h", "d"}
ACCENTS = re.compile("[\u0304\u0307]")
TEMPLATES = [
    "{0} + {1}", "{0} - {1}", "{0}*{1}", "{0}/{1}", "{0}**2", "{0}**-1", "-{0}", "sin({0})", "exp({0})", "tanh({0})",
    "sigmoid({0})", "relu({0})", "abs({0})", "maximum({0}, {1})", "where({0} > {1}, {0}, {1}**2)", "sqrt(1 + {0}**2)",
]  # fmt: skip


def expressions(names):
    return st.recursive(
        st.sampled_from([*names, "2"]),
        lambda parts: st.builds(lambda t, *p: f"({t.format(*p)})", st.sampled_from(TEMPLATES), parts, parts),
        max_leaves=6,
    )


# p and q are read again and again: their derivatives get names.
SYSTEMS = st.builds(
    lambda p, q, y: f"p = {p} + a*b; q = {q} + p*c; y = {y} + q**2 + 1/q",
    expressions("abc"),
    expressions("abcp"),
    expressions("apq"),
)


def page(cli, monkeypatch, *arguments):
    monkeypatch.setenv("COLUMNS", "100000")
    return cli(*arguments)


def formulas(text):
    """Yield each formula of a page as a syntax tree, with whether it stands on the left of an equation."""
    for line in text.splitlines():
        plain = ACCENTS.sub("", unicodedata.normalize("NFD", line)).replace("·", "*").replace("`", "")
        for cell in re.split(r"\s{2,}|: |   \| ", re.sub(r"\s+= ", " = ", plain)):
            sides = cell.strip(" ,").split(" = ")
            for k, side in enumerate(sides):
                try:
                    tree = ast.parse(side.strip(), mode="eval").body
                except SyntaxError:
                    continue
                is_word = isinstance(tree, ast.Name) and len(sides) == 1
                if not is_word:
                    yield tree, not k


def undefined(text, *known):
    """Return the identifiers in the formulas of a page that nothing defines, and those that are defined twice."""
    read, defined = set(), Counter()
    for tree, is_left in formulas(text):
        names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
        read |= names
        if is_left and isinstance(tree, ast.Name):
            defined[tree.id] += 1
    return read - KNOWN - {*known} - defined.keys()


def definitions(text, name):
    """Return the right sides of the equations that define a name."""
    lines = [line for line in text.splitlines() if re.match(rf"\s*{name}\s+= ", line)]
    return {re.split(r"\s+= ", line.strip(), maxsplit=2)[1].strip().replace(" ", "") for line in lines}


COMMANDS = [
    ("backward", "--at", "{at}"),
    ("backward", "--at", "{at}", "--only", "grad"),
    ("backward",),
    ("backward", "--steps"),
    ("backward", "--at", "{at}", "--steps", "--jacobian"),
    ("jacobian",),
    ("jacobian", "--steps"),
    ("jacobian", "--at", "{at}", "--only", "jacobian"),
    ("hessian",),
    ("hessian", "--at", "{at}"),
]


@pytest.mark.parametrize("style", ["table", "markdown"])
def test_a_name_that_gradcli_gives_has_its_line(cli, monkeypatch, style):
    text = page(cli, monkeypatch, "backward", UNNAMED, "--at", "a=-4,b=2", "-f", style).out
    assert "1·(t1 - b*t1 - t2)" in text or r"t_{1}" in text
    assert "t1 = 2*e - 1/e**2" in text or "t_{1}" in text
    assert undefined(text, *"abdeg") == set()


@given(SYSTEMS, st.sampled_from(COMMANDS))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_identifier_is_defined(cli, system, command):
    with pytest.MonkeyPatch.context() as patch:
        arguments = [part.format(at="a=0.5,b=2,c=-1.5") for part in command]
        outcome = page(cli, patch, arguments[0], system, *arguments[1:])
    if outcome.status == 0:
        assert undefined(outcome.out, *"abcpqy") == set()
        for k in range(1, 9):
            assert len(definitions(outcome.out, f"t{k}")) <= 1
