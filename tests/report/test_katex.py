r"""Formulas of HTML pages are ones that KaTeX 0.19 and MathJax set: they stand between \( and \) or \[ and \]."""

from __future__ import annotations

import html
import re

from conftest import each

# What KaTeX rendered without an error, in 133 formulas of 19 pages.
COMMANDS = {
    "Gamma", "alpha", "bar", "begin", "bmod", "cdot", "circ", "ddot", "dot", "end", "exp", "frac", "hat", "hline",
    "infty", "lambda", "left", "lfloor", "log", "mathit", "mathrm", "mathtt", "max", "odot", "operatorname", "partial",
    "psi", "qquad", "quad", "rfloor", "right", "sqrt", "sum", "text", "texttt", "theta", "times", "to", "top",
}  # fmt: skip
ENVIRONMENTS = {"aligned", "array", "cases", "pmatrix"}
FORMULA = re.compile(r"\\\((.*?)\\\)|<div>\\\[(.*?)\\\]\n?</div>", re.DOTALL)


@each(
    "command",
    [
        ("backward", "y0=3*x0**2", "y1=x0**2+2*x1**3", "y2=10*x1", "--at", "x0=1,x1=2", "--v", "1,10,100", "--steps"),
        ("backward", "y=-sum(t*log(softmax(x)))", "--wrt", "x", "--at", "x=[1,3,2],t=[0,0,1]"),
        ("backward", "y=W1[0,1]*x[0]+max(x)", "--at", "x=[1,2,3],W1=[[1,2],[3,4]]"),
        ("jacobian", "y=where(x>0,x**2,-z)*gamma(x)", "w=floor(z)"),
        ("hessian", "f=x**3*y", "--at", "x=1,y=2"),
        ("jvp", "y=x@M", "--at", "x=[1,2],M=[[1,2],[3,4]]", "--u", "x=[1,0]", "--steps"),
    ],
)
def test_formulas_of_html_pages_are_known_to_katex(cli, command):
    page = cli.done(*command, "-f", "html").out
    formulas = [html.unescape(inline or display) for inline, display in FORMULA.findall(page)]
    assert formulas
    for formula in formulas:
        assert set(re.findall(r"\\([A-Za-z]+)", formula)) <= COMMANDS
        assert set(re.findall(r"\\begin\{(\w+\*?)\}", formula)) <= ENVIRONMENTS
        assert formula.count(r"\left") == formula.count(r"\right")
