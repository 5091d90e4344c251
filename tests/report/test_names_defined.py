"""Each identifier in a formula of a page is an input, an output or a function, or has an equation that defines it."""

from __future__ import annotations

import ast
import re
import unicodedata
from pathlib import Path

import pytest
from conftest import examples, some
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from gradcli.graph.names import indexed_name
from gradcli.notation.latex_names import LatexNames
from gradcli.report.documents import latex, markdown, table
from gradcli.vocabulary import FUNCTIONS

SAMPLES = Path(__file__).parents[2] / "samples"

UNNAMED = "d=a*b; e=a-d-relu(b-a); g=e**2+1/e"
KNOWN = {*FUNCTIONS, "pi", "e", "inf", "nan", "L", "loss", "v", "J", "H", "u", "vJ", "T", "h", "d"}
KNOWN |= {"sum", "difference", "product", "quotient", "power", "broadcast", "torch"}  # of rules, and of PyTorch's line
KNOWN |= {"cofactors"}  # of a matrix: det(A)*inv(A).T, and defined where A has no inverse, too
KNOWN |= {"at", "along"}  # words before a bracket: at (relu(x))[1] = 0, along (x, y) = [1, 0]
ACCENTS = re.compile("[\u0304\u0307]")
PARTIAL = re.compile(r"\(?∂[\w.]+/∂[\w.]+(\[[\d,]*\])?\)?")
TEMPLATES = [
    "{0} + {1}", "{0} - {1}", "{0}*{1}", "{0}/{1}", "{0}**2", "{0}**-1", "-{0}", "sin({0})", "exp({0})", "tanh({0})",
    "sigmoid({0})", "relu({0})", "abs({0})", "maximum({0}, {1})", "where({0} > {1}, {0}, {1}**2)", "sqrt(1 + {0}**2)",
]  # fmt: skip


def expressions(names, *constants):
    return st.recursive(
        st.sampled_from([*names, *constants]),
        lambda parts: st.builds(lambda t, *p: f"({t.format(*p)})", st.sampled_from(TEMPLATES), parts, parts),
        max_leaves=6,
    )


# p and q are read again and again: their derivatives get names.
SYSTEMS = st.builds(
    lambda p, q, y: f"p = {p} + a*b; q = {q} + p*c; y = {y} + q**2 + 1/q",
    expressions("abc", "2"),
    expressions("abcp", "2"),
    expressions("apq", "2"),
)
# The same as scripts: a function has no name for what it returns, and x is an array.
SCRIPTS = st.builds(
    """\
import torch
from torch import abs, exp, maximum, relu, sigmoid, sin, sqrt, tanh, where
def of(a, b):
    c = {}
    return c * a
x = torch.tensor([0.5, -2.], requires_grad=True)
w = torch.tensor(1.5, requires_grad=True)
p = {}
q = of({}, p) + 1
y = (x*q**2 + 1/q).sum()
y.backward()
""".format,
    expressions("ab"),
    expressions("xw"),
    expressions("xwp"),
)


# h, p, … are arrays of two rows: matrix products, softmax, batch norm by hand, norms and sums of them.
LAYERS = [
    "tanh({0})", "relu({0})", "({0})**2", "softmax({0}, axis=-1)", "({0})*h", "({0})*b", "sqrt(1 + ({0})**2)",
    "({0} - mean({0}, axis=0))/sqrt(mean(({0} - mean({0}, axis=0))**2, axis=0) + 1)", "log_softmax({0}, axis=-1)",
]  # fmt: skip
LOSSES = [
    "sum({0})", "mean(({0})**2)", "-log(softmax({0}, axis=-1)[0,1])", "sum({0}, axis=0)", "{0}", "norm({0})",
    "max({0})", "sum(({0})*h, axis=1)", "conv1d(reshape({0}, 1, 1, 4), reshape(b, 1, 1, 2))",
]  # fmt: skip
ARRAYS = st.builds(
    lambda first, p, q, y: f"h = {first}; p = {p.format('h')}; q = {q.format('p')}; y = {y.format('q')}",
    st.sampled_from(["x@W + b", "(x*3)@W - b", "x@W*b"]),
    st.sampled_from(LAYERS),
    st.sampled_from(LAYERS),
    st.sampled_from(LOSSES),
)
ARRAYS_AT = "x=[[1,2],[0.5,-1]],W=[[1,0.5],[-1,2]],b=[0.5,1]"


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


def identifiers(tree):
    """Yield the names in a formula, each with the element of it that is read: t1 and t1[0,1] of t1[0,1]."""
    elements = [n for n in ast.walk(tree) if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name)]
    yield from ((n.value.id, ast.unparse(n)) for n in elements)
    bases = {id(n.value) for n in elements}
    yield from ((n.id, n.id) for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in bases)


def undefined(text, *known):
    """Return the identifiers in the formulas of a page that nothing defines."""
    read, defined = set(), set()
    for tree, is_left in formulas(PARTIAL.sub("1", text)):
        read |= {*identifiers(tree)}
        if is_left and isinstance(tree, ast.Name | ast.Subscript):
            defined.add(ast.unparse(tree))
    known = KNOWN | {*known}
    return {element for name, element in read if name not in known and not {name, element} & defined}


def definitions(text, name):
    """Return the right sides of the equations that define a name."""
    lines = [line for line in text.splitlines() if re.match(rf"\s*{name}\s+= ", line)]
    return {re.split(r"\s+= ", line.strip(), maxsplit=2)[1].strip().replace(" ", "") for line in lines}


COMMANDS = [
    ("backward", "--at", "{at}"),
    ("backward", "--at", "{at}", "--only", "grad"),
    ("backward",),
    ("backward", "--steps"),
    ("backward", "--retain", "all"),
    ("backward", "--at", "{at}", "--retain", "all", "--steps"),
    ("backward", "--at", "{at}", "--steps", "--jacobian"),
    ("jacobian",),
    ("jacobian", "--steps"),
    ("jacobian", "--at", "{at}", "--only", "jacobian"),
    ("hessian",),
    ("hessian", "--at", "{at}"),
    ("jvp", "--at", "{at}", "--u", "a=1,b=2,c=3", "--steps"),
    ("check", "dy/da = 1"),
]
COMMANDS_OF_ARRAYS = [
    ("backward", "--v", "ones"),
    ("backward", "--v", "ones", "--steps"),
    ("backward", "--v", "ones", "--retain", "all"),
    ("backward", "--v", "ones", "--jacobian"),
    ("jacobian",),
    ("jacobian", "--steps"),
    ("hessian",),
    ("jvp", "--u", "{at}", "--steps"),
]
# An example that fails is shown as it was drawn: to shrink it would take minutes.
SEARCH = settings(
    deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.reuse, Phase.generate]
)


def check_names(cli, system, command, at, known):
    """Assert that a page defines its names, each once, in all formats."""
    written, pages = table.render, []

    def render(page, digits):
        pages.append(page)
        return written(page, digits)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "render", render)
        arguments = [part.format(at=at) for part in command]
        outcome = page(cli, patch, arguments[0], system, *arguments[1:])
    if outcome.status != 0:  # a vector has no Hessian
        return
    assert undefined(outcome.out, *known) == set()
    (shown,) = pages
    others = [style.render(shown, 6).replace(" ", "") for style in (markdown, latex)]
    adjoint = re.compile(r"\s*t\u0304")  # t̄2[0, 1] = t̄3 is a rule, and no definition of t2
    lines = unicodedata.normalize("NFD", outcome.out).splitlines()
    definite = formulas("\n".join(line for line in lines if not adjoint.match(line)))
    for name in {ast.unparse(t).replace(" ", "") for t, is_left in definite if is_left}:
        if re.fullmatch(r"t\d+(\[[\d,]+\])?", name):
            assert len(definitions(outcome.out, re.escape(name))) == 1
            typed = indexed_name(*name[:-1].split("[")) if name.endswith("]") else name
            either = f"({re.escape(name)}|{re.escape(LatexNames()(typed).replace(' ', ''))})&?="  # tables have text
            assert all(re.search(either, text) for text in others)


@pytest.mark.parametrize("style", ["table", "markdown"])
def test_a_name_that_gradcli_gives_has_its_line(cli, monkeypatch, style):
    text = page(cli, monkeypatch, "backward", UNNAMED, "--at", "a=-4,b=2", "-f", style).out
    assert "1·(t1 - b*t1 - t2)" in text or r"t_{1}" in text
    assert "t1 = 2*e - 1/e**2" in text or "t_{1}" in text
    assert undefined(text, *"abdeg") == set()


@given(SYSTEMS, st.sampled_from(COMMANDS))
@example(UNNAMED + "; y = g", ("backward", "--at", "a=-4,b=2"))
@settings(SEARCH, max_examples=examples(30))
def test_every_identifier_is_defined(cli, system, command):
    check_names(cli, system, command, "a=0.5,b=2,c=-1.5", "abcpqydeg")


@given(ARRAYS, st.sampled_from(COMMANDS_OF_ARRAYS))
@example(
    "h = x@W + b; p = (h)*h; q = tanh(p); y = -log(softmax(q, axis=-1)[0,1])", ("backward", "--v", "ones", "--steps")
)
@settings(SEARCH, max_examples=examples(5))
def test_every_identifier_is_defined_in_systems_of_arrays(cli, system, command):
    check_names(cli, system, (command[0], "--at", "{at}", *command[1:]), ARRAYS_AT, "xWbhpqy")


@given(SCRIPTS, st.sampled_from([(), ("--steps",)]))
@example(
    """\
import torch
def of(a, b):
    return (b - b)**-1*a
x, w = torch.tensor([0.5, -2.], requires_grad=True), torch.tensor(1.5, requires_grad=True)
of(x, w).sum().backward()
""",
    (),
)
@settings(SEARCH, max_examples=examples(10))
def test_every_identifier_is_defined_on_pages_of_scripts(cli, script, options):
    with pytest.MonkeyPatch.context() as patch:
        outcome = page(cli, patch, "run", *options, "-c", script)
    assert outcome.status == 0, outcome.err
    assert "x.grad" in outcome.out
    told = re.sub(r"(?m)^line \d+: .*$", "", outcome.out)  # a fix is the script's own line, with its local variables
    assert undefined(told, *"xwpqy") == set(), script + outcome.out


@pytest.mark.parametrize(
    "sample",
    some(sorted(file for file in SAMPLES.glob("*.grad") if file.stem != "gaussian_mixture")),
    ids=lambda file: file.stem,
)
def test_samples_define_their_names(cli, monkeypatch, sample):
    for command in ("backward", "jacobian"):
        outcome = page(
            cli, monkeypatch, command, "-F", str(sample), *(["--v", "ones"] if command == "backward" else [])
        )
        assert outcome.status in (0, 2), outcome.err
        known = re.findall(r"^(?:input )?([A-Za-z]\w*)", sample.read_text("utf-8"), re.MULTILINE)
        letters = {name for line in sample.read_text("utf-8").splitlines() for name in re.findall(r"[A-Za-z]\w*", line)}
        assert undefined(outcome.out, *known, *letters) == set()
