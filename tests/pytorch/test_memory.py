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


EXPANDED = """\
import resource, torch
def used():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
x = torch.ones(1, requires_grad=True)
x.expand(3).sum().backward()
before = used()
x.expand(10**8).sum().backward()
print(x.grad.item(), used() - before < 2**14)
"""


@pytest.mark.parametrize("options", [(), ("--quiet",)])
def test_an_expanded_tensor_needs_no_memory(options, process, tmp_path):
    path = tmp_path / "expanded.py"
    path.write_text(EXPANDED, "utf-8")
    result = process("run", *options, str(path))
    assert "100000000.0 True\n" in result.out
    assert result.err == ""
    if not options:
        assert "not explained: its values are 100,000,002 numbers; a page has at most 67,108,864" in result.out.replace(
            "\n", " "
        )


INDICES = """\
import resource, torch
torch.manual_seed(0)
embedding = torch.nn.Embedding(5000, 16)
X = torch.randn(1000, 8, requires_grad=True)
x = torch.randn(200_000, requires_grad=True)

def step():
    {step}

def used():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

for _ in range(100):
    step()
before = used()
for _ in range({steps}):
    step()
print(used() - before)
"""


@long
@pytest.mark.parametrize(
    ("step", "steps"),
    [
        ("embedding(torch.randint(0, 5000, (64, 128))).sum().backward()", 900),
        ("X[torch.randperm(1000)].sum().backward()", 900),
        ("X[X > torch.rand(())].sum().backward()", 900),
        ("x[torch.randint(0, 200_000, (200_000,))]", 700),
    ],
)
def test_indices_that_vary_need_no_memory_of_their_own(step, steps, process, tmp_path):
    path = tmp_path / "steps.py"
    path.write_text(INDICES.format(step=step, steps=steps), "utf-8")
    assert int(process("run", "--quiet", str(path)).out) < 10 * 1024
