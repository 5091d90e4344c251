"""Mathematics in HTML pages is MathML: well-formed, and with the numbers of the LaTeX of the same page."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from conftest import each, some

from gradcli.notation.latex_names import textbook
from gradcli.report.mathml import mathml

SAMPLES = sorted((Path(__file__).parents[2] / "samples").glob("*.grad"))
COMMANDS = [
    ("backward", "y0=3*x0**2", "y1=x0**2+2*x1**3", "y2=10*x1", "--at", "x0=1,x1=2", "--v", "1,10,100", "--steps"),
    ("backward", "y=-sum(t*log(softmax(x)))", "--wrt", "x", "--at", "x=[1,3,2],t=[0,0,1]"),
    ("backward", "y=W1[0,1]*x[0]+max(x)", "--at", "x=[1,2,3],W1=[[1,2],[3,4]]"),
    ("backward", "a_b_c=Straße**2*λ+é", "--at", "Straße=2,λ=3,é=1"),
    ("jacobian", "y=where(x>0,x**2,-z)*gamma(x)", "w=floor(z)"),
    ("hessian", "f=x**3*y", "--at", "x=1,y=2"),
    ("jvp", "y=x@M", "--at", "x=[1,2],M=[[1,2],[3,4]]", "--u", "x=[1,0]", "--steps"),
    ("check", "y=tanh(x)", "dy/dx=1-x**2"),
]
KNOWN = {
    "math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "mfrac", "msqrt", "mroot", "msub", "msup", "msubsup", "mover",
    "mtable", "mtr", "mtd",
}  # fmt: skip


def pages(cli, command):
    """Return the elements of the page in HTML, and its text in LaTeX."""
    page = cli(*command, "-f", "html").out
    assert page.startswith("<!doctype html>\n")
    return ET.fromstring(page.partition("\n")[2]), cli(*command, "-f", "latex").out


def numbers(text):
    """The numbers of a text, in their order."""
    return re.findall(r"\d+(?:\.\d+)?", text)


def of_latex(text):
    """The numbers of a page in LaTeX, without those of its layout and of programs."""
    text = re.sub(r"\\begin\{verbatim\}.*?\\end\{verbatim\}", "", text, flags=re.DOTALL)
    return numbers(re.sub(r"\[-?[\d.]+(?:pt|em)\]", "", text))


def compare(cli, command):
    page, latex = pages(cli, command)
    math = [*page.iter("math")]
    assert math
    assert {element.tag for m in math for element in m.iter()} <= KNOWN
    for m in math:
        for fraction in m.iter():
            if fraction.tag in ("mfrac", "msub", "msup", "mover"):
                assert len(fraction) == 2
            elif fraction.tag == "msubsup":
                assert len(fraction) == 3
        assert "\\" not in "".join(m.itertext())
    for element in page.iter():
        if element.tag.rpartition("}")[2] in ("pre", "style", "h1", "svg"):  # the head of a document has a picture
            element.clear()
    shown = numbers(" ".join(page.itertext()))
    assert sorted(shown) == sorted(of_latex(latex))


@each("command", COMMANDS)
def test_the_mathematics_of_a_page_is_that_of_its_latex(cli, command):
    compare(cli, command)


def test_so_is_that_of_every_sample(cli):
    for path in some(SAMPLES):
        for command in (("backward", "-F", str(path)), ("jacobian", "-F", str(path))):
            if cli(*command, "-f", "latex").status == 0:
                compare(cli, command)


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"\frac{\partial y}{\partial x_{0}}", "∂y∂x0"),
        (r"\bar{t}_{1}^{2}", "t‾12"),
        (r"\left(x + 1\right)^{2}", "(x+1)2"),
        (r"\sqrt[3]{x}", "x3"),
        (r"\text{at $x_{0} = 1$, \texttt{a\_b} \%}", "at\u00a0x0=1,\u00a0a_b\u00a0%"),
        (r"\operatorname{softmax}\left(x;\, \mathrm{axis} = 0\right)", "softmax(x;axis=0)"),
        (r"\begin{array}{c|c} J & x \\[4pt] \hline y & 1 \\ \hline & 2 \end{array}", "Jxy12"),
        (r"\begin{pmatrix} 1 & \cdots \\ \vdots & \ddots \end{pmatrix}", "(1⋯⋮⋱)"),
        (r"\mathtt{x.grad} = \lambda \Omega", "x.grad=λΩ"),
        ("x'", "x'"),
        ("", ""),
        ("{", ""),
        (r"\frac", ""),
        (r"\left(", "("),
        (r"\begin{array}{c} 1", "1"),
        ("<script>&", "<script>&"),
    ],
)
def test_a_formula_has_the_text_that_is_read(latex, text):
    found = "".join(ET.fromstring(mathml(latex)).itertext())
    assert found.replace(" ", "") == text.replace(" ", "")


def test_a_page_is_written_to_a_file_that_is_complete(cli, tmp_path):
    for command in (
        ("backward", "y=x**2", "--at", "x=3"),
        ("jacobian", "y=x**2"),
        ("hessian", "y=x**2", "--at", "x=3"),
        ("jvp", "y=x**2", "--at", "x=3", "--u", "1"),
        ("check", "y=x**2", "dy/dx=2*x"),
    ):
        for ending, style in (("html", "html"), ("md", "markdown"), ("tex", "latex"), ("txt", "table")):
            file = tmp_path / f"{command[0]}.{ending}"
            outcome = cli(*command, "--output", str(file))
            assert (outcome.status, outcome.out) == (0, "")
            assert outcome.told.splitlines()[-1].startswith(f"wrote {file}: ")
            document = ["--standalone"] * (style == "markdown" and command[0] != "check")
            printed = cli.done(*command, "-f", style, *document).out
            assert file.read_text("utf-8").rstrip("\n") == printed.rstrip("\n")
        document = (tmp_path / f"{command[0]}.html").read_text("utf-8")
        assert document.endswith("</html>\n")
        assert document.count("<h1>") == 1
        assert "<msup><mi>x</mi><mn>2</mn></msup>" in document  # of the system


@pytest.mark.parametrize("name", ["größe", "señal", "épée", "Ångström", "άλφα", "čáp", "dǖ", "Straße", "naïve"])
def test_a_word_is_the_letters_that_were_typed(name):
    assert "".join(ET.fromstring(mathml(textbook(name))).itertext()) == name


@pytest.mark.parametrize(("name", "sign"), [("é", "´"), ("č", "ˇ"), ("ŏ", "˘"), ("è", "`"), ("ñ", "~"), ("ö", "¨")])
def test_an_accent_of_a_letter_is_above_it(name, sign):
    (over,) = ET.fromstring(mathml(textbook(name)))
    assert over.tag == "mover"
    assert [part.text for part in over] == [unicodedata.normalize("NFD", name)[0], sign]
