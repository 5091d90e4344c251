"""Pictures as text: lanes lead from each value to what uses it, and no line is wider than the page."""

from __future__ import annotations

import random

import pytest

from gradcli.report.pictures.text import Lanes
from gradcli.text.wrapping import cells

SIGNS = "○●◆"


def read_back(rows):
    """Return which values each entry reads, found by following the lanes."""
    live: dict[int, int] = {}
    found = []
    for k, row in enumerate(rows):
        (own,) = [i for i, c in enumerate(row.first) if c in SIGNS]
        mine = {live[own]} if own in live else set()
        for step in (-1, 1):
            i = own + step
            while 0 <= i < len(row.first) and row.first[i] in "─│├┤┼╰╯┴":
                if row.first[i] in "├┤┼╰╯┴":
                    mine.add(live[i])
                if (row.first[i] in "├╰" and step < 0) or (row.first[i] in "┤╯" and step > 0):
                    break
                i += step
        found.append(mine)
        after = {i for i, c in enumerate(row.after) if c == "│"}
        live = {i: k if i == own else live[i] for i in after}
    return found


@pytest.mark.parametrize("seed", range(30))
def test_lanes_lead_from_each_value_to_what_uses_it(seed):
    chance = random.Random(seed)
    sources = [sorted(chance.sample(range(k), min(k, chance.randrange(4)))) for k in range(40)]
    rows = list(Lanes(60).rows(sources, [SIGNS[chance.randrange(3)] for _ in sources]))
    assert read_back(rows) == [set(mine) for mine in sources]


WIDE = (
    "\n".join(f"a{k} = x{k}*w" for k in range(30)) + "\ny = " + " + ".join(f"a{k}*a{(k * 7) % 30}" for k in range(30))
)


@pytest.mark.parametrize("columns", [40, 80])
@pytest.mark.parametrize(
    "arguments",
    [
        ("-F", "samples/bundle_adjustment.grad", "--v", "ones"),
        ("h=tanh(x@W+b)", "L=-log(softmax(h@U)[0])", "--shape", "x=2,W=2x3,b=3,U=3x4"),
        ("p=softmax(z)", "L=-log(p[0])", "--at", "z=[1,2,3]"),
        (WIDE, "--all", "--at", ",".join([*(f"x{k}={k}" for k in range(30)), "w=2"])),
    ],
)
def test_no_line_is_wider_than_the_page(arguments, columns, cli, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    out = cli.done("graph", *arguments).out
    assert [line for line in out.splitlines() if cells(line) > columns] == []
    assert out.count("∂") > 3
