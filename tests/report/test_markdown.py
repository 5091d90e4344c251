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
