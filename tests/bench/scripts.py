"""PyTorch scripts: a loop of training, and a whole run of a short script, against PyTorch itself.

What is compared is time of the processor, so that a busy machine changes little.  Start-up is left out of the loop.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.session import Session

LOOP = """\
import time, torch
from torch import nn
torch.manual_seed(0)
x = torch.randn(32, 2)
target = (x[:, :1] * x[:, 1:]).sin()
net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
start = time.process_time()
for _ in range({steps}):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(net(x), target)
    loss.backward()
    optimizer.step()
print(time.process_time() - start)
"""
SCRIPT = "import torch\nx = torch.tensor([1., 2.], requires_grad=True)\n(x**2).sum().backward()\nprint(x.grad)\n"
_TURNS = 9


def _ran(path: Path, ours: bool) -> tuple[float, str]:
    """Run a script; return the time of the processor that it took, and what it printed."""
    command = [sys.executable, *(("-m", "gradcli", "run", "--quiet") if ours else ()), str(path)]
    before = os.times()
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return spent, done.stdout


def training(session: Session) -> None:
    """1,000 steps of SGD on a network of 2-16-1 with 32 points: at most 3 times what PyTorch takes."""
    _compared("1,000 steps of SGD, 2-16-1, 32 points", LOOP.format(steps=100 if session.quick else 1000), inner=True)


def script(session: Session) -> None:
    """A whole short script: at most half of what `python` takes with PyTorch."""
    _compared("a script of four lines, from start to end", SCRIPT, inner=False)


def _compared(title: str, source: str, inner: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "script.py"
        path.write_text(source, "utf-8")
        runs = [True, False] if importlib.util.find_spec("torch") else [True]
        # By turns, as a processor's clock changes; of each the least, of the run or of what the script itself measured.
        turns = [[_ran(path, ours) for ours in runs] for _ in range(_TURNS)]
        own, *other = (min(float(r[1]) if inner else r[0] for r in own) for own in zip(*turns, strict=True))
        print(f"\n{title}\n  gradcli run --quiet  {own:8.3f} s")
        for peer in other:
            print(f"  PyTorch              {peer:8.3f} s   ratio {own / peer:.2f}")
        if not other:
            print("  PyTorch is not installed here: nothing to compare with")
