"""PyTorch reads what gradcli's `torch.save` writes, and gradcli what PyTorch's writes."""

from __future__ import annotations

import contextlib
import io

import pytest

pytest.importorskip("torch", reason="the tests of --torch need PyTorch")

from gradcli.process.script import Script
from gradcli.pytorch.session import run

SAVED = """\
import torch, numpy as np
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
opt = torch.optim.Adam(net.parameters())
net(torch.ones(2, 2)).sum().backward()
opt.step()
torch.save({"net": net.state_dict(), "opt": opt.state_dict(), "x": torch.arange(6).view(2, 3).t(),
            "size": net[0].weight.shape, "same": [net[0].weight] * 2, "set": {1}, "bytes": b"ab", "big": 10**20,
            "rest": (torch.float64, torch.device("cpu"), torch.tensor(True), None, torch.ones(2).half())}, PATH)
"""
SHOWN = "import torch\nfound = torch.load(PATH)\nprint(found, found['same'][0] is found['same'][1])\n"


@pytest.mark.parametrize("by_pytorch", [False, True])
def test_either_reads_what_the_other_writes(by_pytorch, tmp_path):
    programs = [code.replace("PATH", repr(str(tmp_path / "m.pt"))) for code in (SAVED, SHOWN)]
    texts = []
    for k, code in enumerate(programs):
        for emulates in [not by_pytorch] if k == 0 else [False, True]:
            with contextlib.redirect_stdout(io.StringIO()) as out:
                assert run(Script(code, "-c", None), emulates).error is None
            texts.append(out.getvalue())
    assert texts[1] == texts[2]
    assert len(texts[1]) > 1000
