"""Loops of a script under PyTorch are recurrences, as on the emulation's pages, and are written with --unroll."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="the tests of --torch need PyTorch")

from gradcli.report.render import Look, render_pages
from gradcli.script.under_pytorch.page import page_of
from tests.realtorch.runs import records_of

LOOP = """import torch
w = torch.tensor([0.5, 0.2], requires_grad=True)
h = torch.ones(2)
for t in range(8):
    h = torch.sin(w * h)
h.sum().backward()
"""


@pytest.mark.parametrize("unroll", [False, True])
def test_a_loop_is_a_recurrence_unless_it_is_unrolled(tmp_path, unroll):
    (record,) = records_of(tmp_path, LOOP)
    text = render_pages([page_of(record, unroll=unroll)], Look("table"))
    assert (" for t in 1..7" in text) == (not unroll)
    assert ("by round" in text) == (not unroll)
    assert ("h7 = " in text) == unroll


READ = """import torch
xs = torch.tensor([[1., 0.5], [-0.2, 0.3], [0.8, -1.], [0.1, 0.4], [0.7, 0.9]])
w = torch.tensor([0.5, 0.2], requires_grad=True)
h = torch.zeros(2)
{}
    h = torch.tanh(w*h + x)
h.sum().backward()
"""
LOOPS = {"rows": ("for t in range(5):\n    x = xs[t]", "xs[t-1]"), "iterated": ("for x in xs:", "xs[t-1]")}


@pytest.mark.parametrize("loop", [*LOOPS])
def test_a_loop_reads_parts_of_data_by_their_names(tmp_path, loop):
    head, part = LOOPS[loop]
    (record,) = records_of(tmp_path, READ.format(head))
    text = render_pages([page_of(record)], Look("table"))
    assert part in text
    assert " in 1..5" in text
    assert "h[5] = " in text
