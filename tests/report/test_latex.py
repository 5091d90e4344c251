"""LaTeX: balanced, and ready for a document that loads amsmath."""

from __future__ import annotations

import re

import pytest

COMMANDS = {
    "main": ("backward", "y0=3*x0**2", "y1=x0**2+2*x1**3", "y2=10*x1", "--at", "x0=1,x1=2", "--v", "1,10,100"),
    "formulas": ("backward", "h=x**2; y=sin(h)*exp(-x)/sqrt(1+x)"),
    "jacobian": ("jacobian", "y=x@M", "--shape", "x=2,M=2x2"),
    "matrix": ("backward", "out=x@M_1", "--at", "x=[[1,2],[3,4]],M_1=[[0.1,1e-7],[1e300,-4]]", "--v", "ones"),
    "choices": ("jacobian", "y=where((x>0)&(z<=1)|~(x!=z), abs(x)**2, max(x,z)) % 3"),
    "functions": ("jacobian", "y=lgamma(x)+digamma(x)+erf(x)+leaky_relu(x)+cbrt(x)+atan2(x,2)+log2(x)+norm([x,1])"),
    "numbers": ("jacobian", "y=1e-7*x**2+1e300**x+(1/3)**x+(x/z)**2+x*(-0.5*z-1.5)+(-0.5)**2*x+1e-20*x**2.5"),
    "indices": ("backward", "t2=x*2; y=(x.T@t2)[0:1,1][0]*t2[0,::-1].sum()", "--at", "x=[[1,2],[3,4]]"),
    "greek": ("backward", "loss_total=theta_12*alpha+lambda_*under_score_d", "--retain", "all"),
    "not finite": ("backward", "y=[log(x), -1/x, x*nan]", "--at", "x=0", "--v", "ones"),
    "running": ("backward", "y=x**2", "--at", "x=1", "--v", "1,10,100,1000"),
    "deep": ("jacobian", "a0_t=x*z", *(f"a{k + 1}_t=sin(a{k}_t)*a{k}_t" for k in range(12))),
    "structural": ("backward", "y=sum(softmax(x.T)[:,0]*cumsum([1,2]))+max(x)", "--at", "x=[[1,2],[3,4]]"),
    "assembled": ("backward", "y[0]=x[0]**2; y[1]=x[0]*x[1]", "--at", "x=[1,2]", "--v", "1,-10"),
    "unsqueezed": ("backward", "y=norm(log(unsqueeze(w,1)+A))+logsumexp(unsqueeze(w,1)*A)", "--shape", "w=3,A=3x2"),
    "large": ("backward", "y=sum(x**2)", "--at", f"x={[1] * 60}"),
}  # fmt: skip
CASES = [
    pytest.param((*command, *steps, "-f", "latex"), id=name + " steps" * bool(steps))
    for name, command in COMMANDS.items()
    for steps in [(), ("--steps",)][: 1 + (command[0] == "backward")]
]
TOKEN = re.compile(r"\\(begin|end)\{(\w+\*?)\}|\\(left|right)(?![a-z])|(?<!\\)(\\[\[\]])|(?<!\\)([{}])")
OPENS = {"begin": "end", "left": "right", r"\[": r"\]", "{": "}"}


def check_balanced(text: str) -> None:
    """Check that environments, brackets and groups are closed in the order in which they were opened."""
    opened: list[tuple[str, str]] = []
    for token in TOKEN.finditer(text):
        kind, name, *others = token.groups()
        sign = kind or next(filter(None, others))
        if sign in OPENS:
            opened.append((OPENS[sign], name or ""))
        else:
            assert opened, f"{token.group()} closes nothing"
            assert opened.pop() == (sign, name or ""), text[: token.end()]
    assert not opened


@pytest.mark.parametrize("command", CASES)
def test_balanced(cli, command):
    text = cli.done(*command).out
    check_balanced(text)
    assert text.isascii()
    for block in re.findall(r"\\begin\{align\*\}\n(.*?)\n\\end\{align\*\}", text, re.DOTALL):
        rows = block.split(" \\\\\n")
        assert " &= " in rows[0]
        assert all(" &= " in row or row.startswith("&") for row in rows)  # or it goes on
    for columns, block in re.findall(r"\\begin\{array\}\{([lc|]+)\}\n(.*?)\n\\end\{array\}", text, re.DOTALL):
        for row in re.split(r" \\\\(?:\[4pt\])?(?: \\hline)?\n(?:\\hline)?", block.replace(r" \\[-0.7em]", "")):
            cells = re.sub(r"\\begin\{(pmatrix|cases)\}.*?\\end\{\1\}", "", row)
            assert cells.count("&") == len(columns.replace("|", "")) - 1


def test_names_and_numbers(cli):
    text = cli.done(*COMMANDS["greek"], "-f", "latex").out
    assert r"\theta_{12}" in text
    assert r"\alpha" in text
    formulas = text.partition(r"\begin{verbatim}")[0]
    assert not re.search(r"[A-Za-z]_[A-Za-z]", re.sub(r"\\_", "", formulas))
    assert r"1 \times 10^{-7}" in cli.done(*COMMANDS["matrix"], "-f", "latex").out
    assert r"\infty" in cli.done(*COMMANDS["not finite"], "-f", "latex").out
