"""Markdown as GitHub renders it: well-formed tables, closed blocks of mathematics and of code."""

from __future__ import annotations

import re

import pytest

COMMANDS = {
    "main": ("backward", "y0=3*x0**2", "y1=x0**2+2*x1**3", "y2=10*x1", "--at", "x0=1,x1=2", "--v", "1,10,100"),
    "formulas": ("backward", "h=x**2; y=sin(h)"),
    "bars": ("backward", "y=where((x>0)|(x<-1), abs(x), 0)", "--at", "x=1"),
    "bars in formulas": ("backward", "y=where((x>0)|(z<-1), x, z)"),
    "vectors": ("backward", "y=x@M", "--at", "x=[1,2],M=[[1,2],[3,4]]", "--v", "ones", "--retain", "all"),
    "running": ("backward", "y=x**2", "--at", "x=1", "--v", "1,10,100,1000"),
    "points": ("backward", "y=x**2", "--at", "x=1", "--at", "x=2"),
    "jacobian": ("jacobian", "y=where((x>0)|(x<-1), x, lgamma(x))"),
    "not finite": ("backward", "y=log(x)", "--at", "x=0"),
}
CASES = [
    pytest.param((*command, *steps, "-f", "markdown"), id=name + " steps" * bool(steps))
    for name, command in COMMANDS.items()
    for steps in [(), ("--steps",)][: 1 + (command[0] == "backward")]
]


def cells(row: str) -> list[str]:
    """Return the cells of a row of a table: a bar with a backslash before it is text."""
    assert row.startswith("|")
    assert row.endswith("|")
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", row[1:-1])]


def tables(text: str) -> list[list[list[str]]]:
    blocks = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
    return [[cells(row) for row in rows] for rows in blocks]


@pytest.mark.parametrize("command", CASES)
def test_tables_are_well_formed(cli, command):
    text = cli.done(*command).out
    for header, rule, *rows in tables(text):
        assert rule == ["---"] * len(header)
        assert rows
        for row in rows:
            assert len(row) == len(header)
            assert all(re.fullmatch("(`[^`]+`)?", cell) for cell in row)


@pytest.mark.parametrize("command", CASES)
def test_blocks_are_closed(cli, command):
    text = cli.done(*command).out
    fences = [line for line in text.splitlines() if line.startswith("```")]
    assert set(fences[::2]) <= {"```python", "```math"}
    assert set(fences[1::2]) == {"```"}
    assert fences.count("```python") == text.count("in PyTorch:")
    for block in re.findall(r"^```math\n(.*?)\n```$", text, re.DOTALL | re.MULTILINE):
        (kind,) = re.findall(r"^\\begin\{(aligned|array)\}", block)
        assert block.endswith(f"\n\\end{{{kind}}}")
        assert "\n\n" not in block


@pytest.mark.parametrize("command", CASES)
def test_github_shows_it(cli, command):
    text = cli.done(*command).out
    assert "$" not in re.sub(r"\\text\{.*?\$\}", "", text)  # Markdown would take backslashes out of it
    for macro in (r"\operatorname", r"\newcommand", r"\def", r"\mbox", r"\phantom", r"\cssId"):
        assert macro not in text  # "The following macros are not allowed"


def test_the_main_example(cli):
    text = cli.done(*COMMANDS["main"], "-f", "markdown").out
    assert [line for line in text.splitlines() if line.startswith("### ")] == [
        "### System",
        "### The cotangent",
        "### Jacobian",
        "### Gradients",
        "### PyTorch",
    ]
    assert r"y_{1} &= x_{0}^{2} + 2 x_{1}^{3} = 17 \\" in text
    assert r"x_{1}\mathtt{.grad} &= 10 \cdot 24 + 100 \cdot 10 = 1240" in text
    assert "the gradient of  `L = 1·y0 + 10·y1 + 100·y2`" in text
    assert "\n(1*y0 + 10*y1 + 100*y2).backward()\n" in text


def test_steps_are_equations_and_a_table(cli):
    text = cli.done("backward", "y=x*x+x", "--at", "x=3", "--steps", "-f", "markdown").out
    (reverse,) = tables(text)
    assert "\ny &= t_{1} + x = 12\n" in text
    assert reverse[-1] == ["`∂t1/∂x = x = 3`", "`x̄ = 4 + 1·3 = 7`", "`product`"]


def test_running_sums(cli):
    text = cli.done(*COMMANDS["running"], "-f", "markdown").out
    assert [row[-1] for row in tables(text)[0][2:]] == [
        "`2`",
        "`2 + 20 = 22`",
        "`22 + 200 = 222`",
        "`222 + 2000 = 2222`",
        "`2222`",
    ]
