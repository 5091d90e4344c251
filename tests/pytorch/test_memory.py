"""A loop needs no more memory the longer it runs, and what a script keeps of a graph keeps all of it."""

from __future__ import annotations

import pytest
from conftest import long

# Cycles are not collected: what is left is what reference counts do not free.  `maxrss` is in KiB.
STEPS = """\
import gc, resource, torch
from torch import nn
torch.manual_seed(0)
x = torch.randn(32, 2)
target = (x[:, :1] * x[:, 1:]).sin()
net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.{optimizer}(net.parameters(), lr=0.01)
losses = []

def train(steps):
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), target)
        {used}
        optimizer.step()

def used():
    return len(gc.get_objects()), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

gc.disable()
train(100)
objects, memory = used()
train({steps})
print(*(after - before for after, before in zip(used(), (objects, memory))))
"""


def grown(process, tmp_path, **settings):
    path = tmp_path / "steps.py"
    path.write_text(STEPS.format(**settings), "utf-8")
    return map(int, process("run", "--quiet", str(path)).out.split())


@long
@pytest.mark.parametrize(("optimizer", "steps"), [("SGD", 700), ("Adam", 300)])
def test_many_steps_need_no_more_memory_than_a_few(optimizer, steps, process, tmp_path):
    objects, memory = grown(process, tmp_path, optimizer=optimizer, steps=steps, used="loss.backward()")
    assert objects < 50
    assert memory < 1024


def test_a_loss_that_is_kept_keeps_its_graph(process, tmp_path):
    objects, _ = grown(process, tmp_path, optimizer="SGD", steps=200, used="losses.append(loss)")
    assert objects > 200 * 10
