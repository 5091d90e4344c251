"""`--only flow` of an emulated script: a line a parameter, from the record."""

from __future__ import annotations

SCRIPT = """import torch
from torch import nn
torch.manual_seed(0)
body, head, spare = nn.Linear(3, 4), nn.Linear(4, 1), nn.Linear(4, 1)
body.bias.requires_grad_(False)
head(torch.relu(body(torch.ones(5, 3)))).sum().backward()
"""


def test_each_parameter_has_a_line_with_its_gradient_or_the_reason(cli):
    rows = cli.done("run", "--only", "flow", "-c", SCRIPT).out.splitlines()
    lines = {line.split()[0]: line for line in rows if line.startswith("  ")}
    assert lines["head.bias"].split()[1:4] == ["1", "0.182", "5"]
    assert "▇" in lines["body.weight"]
    assert "frozen in line 5" in lines["body.bias"]
    assert "never used in this forward" in lines["spare.weight"]
