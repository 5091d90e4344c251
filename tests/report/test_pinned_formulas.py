"""Pages of formulas as they are: `pinned/` has each as text of 80 columns, and as LaTeX and Markdown.

`python -m tests.report.test_pinned_formulas` writes the outputs of today; read the difference before you keep it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.conftest import Command

FOLDER = Path(__file__).with_name("pinned")
CONV = ("--at", "x=[[[[1,2,3],[4,5,6],[7,8,9]]]],k=[[[[1,0],[0,2]]]]")
COMMANDS = {
    "rosenbrock": ("backward", "y=(1-x[0])**2+100*(x[1]-x[0]**2)**2", "--at", "x=[-1.2,1]"),
    "convolution": ("backward", "y=conv2d(x,k)", *CONV, "--v", "ones"),
    "convolution_inside": ("backward", "y=sum(conv2d(x,k)**2)", *CONV),
    "batch_norm": ("backward", "z=batch_norm(x)", "y=sum(z**3)", "--at", "x=[[1,2],[3,5],[0,1],[2,2]]"),
    "embedding": (
        "backward",
        "h=W[[1,4,1]]",
        "y=sum(h**3)",
        "--at",
        "W=[[1,2,0],[3,4,1],[5,6,2],[1,1,1],[2,0,1],[0,3,1],[1,1,1],[2,2,2],[3,3,3],[4,4,4],[5,5,5],[6,6,6],[7,7,7]]",
    ),
    "letters": ("backward", "y=M@x", "--shape", "x=2,M=2x2", "--v", "v"),
    "letters_and_numbers": ("backward", "y=w*x**2", "z=3*x", "--at", "x=1,w=2", "--v", "v=1,10"),
    "maximum": ("backward", "y=max(x)", "--at", "x=[1,3,2]"),
    "target": ("backward", "y=-sum(t*log(softmax(x)))", "--wrt", "x", "--at", "x=[1,3,2],t=[0,0,1]"),
    "bias": (
        "backward",
        "y=x@M",
        "z=X@W+b",
        "--at",
        "x=[1,3],M=[[1,2],[3,4]],X=[[1,2],[0,1]],W=[[1],[2]],b=[0]",
        "--v",
        "ones",
    ),
    "calls": ("backward", "y=x**2", "--at", "x=3", "--v", "1", "--v", "10"),
    "stacked": ("backward", "a=3*x**2", "b=x*z", "c=10*z", "--at", "x=1,z=2", "--v", "1,10,100"),
}
FORMATS = ("table", "latex", "markdown")


def pinned(name, style):
    return FOLDER / f"{name}.{style}.txt"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_is_as_it_was(cli, name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for style in FORMATS:
        assert cli.done(*COMMANDS[name], "-f", style).out == pinned(name, style).read_text("utf-8")


def main():
    """Write the outputs of today."""
    os.environ["COLUMNS"] = "80"
    for name, command in COMMANDS.items():
        for style in FORMATS:
            pinned(name, style).write_text(Command().done(*command, "-f", style).out, "utf-8")


if __name__ == "__main__":
    main()
