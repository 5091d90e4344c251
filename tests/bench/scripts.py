"""PyTorch scripts: a loop of training, and a whole run of a short script, against PyTorch itself.

What is compared is time of the processor, so that a busy machine changes little.  Start-up is left out of the loop.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from tests.bench.session import Session

LOOP = """\
import time, torch
from torch import nn
torch.manual_seed(0)
x = torch.randn(32, 2)
target = (x[:, :1] * x[:, 1:]).sin()
net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range({first} + {steps}):
    if step == {first}:
        start = time.process_time()
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(net(x), target)
    loss.backward()
    optimizer.step()
print(time.process_time() - start)
"""
DEEP = """\
import resource, time, torch
from torch import nn
torch.manual_seed(0)
torch.set_num_threads(1)
net = nn.Sequential(*(layer for _ in range(100) for layer in (nn.Linear({width}, {width}), nn.Tanh())))
x = torch.randn(256, {width})
start = time.process_time()
net(x).square().mean().backward()
print(time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
# Each on numbers, positions and index arrays that differ from call to call.
SMALL = """\
import time, torch
torch.set_num_threads(1)
torch.manual_seed(0)
N, COUNT = 256, {count}
x = torch.randn(N, requires_grad=True)
w = torch.randn(N)
v = x * x + 1
orders = [torch.randperm(N)[:32] for _ in range(COUNT)]
numbers = [1.25 + k / 7 for k in range(COUNT)]
sizes = torch.randint(1, N, (COUNT,)).tolist()

def factors(y):
    for a in numbers: v * a
def elements(y):
    for i in sizes: x[i]
def gathered(y):
    for i in orders: x[i]
def bounds(y):
    for a in numbers: v.clamp(max=a)
def powers(y):
    for a in numbers: v**a
def scaled(y):
    for a in numbers: y.add_(w, alpha=a)
def assigned(y):
    for k in range(N): y[k] = x[k]**2
def assigned_to_many(y):
    for i in orders[:N]: y[i] = x[i]**2
def sliced(y):
    for i in sizes: (x[:i] * 2).sum().backward()
def listed(y):
    [x[:i].sum() for i in sizes]

for function, count in ((factors, COUNT), (elements, COUNT), (gathered, COUNT), (bounds, COUNT), (powers, COUNT),
                        (scaled, COUNT), (assigned, N), (assigned_to_many, N), (sliced, COUNT), (listed, COUNT)):
    least = float("inf")
    for _ in range(5):
        y = torch.zeros(N)
        start = time.process_time()
        function(y)
        least = min(least, (time.process_time() - start) / count)
    print(least * 1e6)
"""
SMALL_NAMES = (
    "v * a", "x[k]", "x[i]", "v.clamp(max=a)", "v**a", "y.add_(w, alpha=a)", "y[k] = x[k]**2", "y[i] = x[i]**2",
    "(x[:k] * 2).sum().backward()", "[x[:k].sum() for k in …]",
)  # fmt: skip
SCRIPT = "import torch\nx = torch.tensor([1., 2.], requires_grad=True)\n(x**2).sum().backward()\nprint(x.grad)\n"
_TURNS = 9
_QUIET = "-m", "gradcli", "run", "--quiet"
_RECORDED = "-m", "gradcli", "run", "--torch"
_FIRST = 120  # steps of which two lines get their pages, and after which PyTorch has its functions back


def _ran(path: Path, words: Sequence[str]) -> tuple[float, str]:
    """Run a script by Python or a module; return the time of the processor that it took, and what it printed."""
    command = [sys.executable, *words, str(path)]
    before = os.times()
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return spent, done.stdout


def training(session: Session) -> None:
    """1,000 steps of SGD on a network of 2-16-1 with 32 points: at most 3 times what PyTorch takes."""
    source = LOOP.format(first=0, steps=100 if session.quick else 1000)
    _compared("1,000 steps of SGD, 2-16-1, 32 points", source, inner=True)


def _lone_number(text: str) -> float:
    """Return the number that a script prints on a line of its own, among pages and a curve of the loss."""
    (number,) = [line for line in text.splitlines() if line.replace(".", "", 1).isdigit()]
    return float(number)


def recorded(session: Session) -> None:
    """1,000 steps under PyTorch once their pages are written: at most 1.05 times what PyTorch takes without gradcli."""
    if not importlib.util.find_spec("torch"):
        print("\nrun --torch: PyTorch is not installed here")
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "script.py"
        path.write_text(LOOP.format(first=_FIRST, steps=300 if session.quick else 3000), "utf-8")
        turns = [[_lone_number(_ran(path, words)[1]) for words in (_RECORDED, ())] for _ in range(_TURNS)]
    own, peer = (median(times) for times in zip(*turns, strict=True))
    ratio = median(a / b for a, b in turns)
    print(f"\nsteps of SGD under PyTorch, once their pages are written\n  gradcli run --torch  {own:8.3f} s")
    print(f"  PyTorch              {peer:8.3f} s   ratio {ratio:.2f}, at most 1.05")


def deep(session: Session) -> None:
    """The explained round of 100 layers and 25 million parameters: at most 3 times what PyTorch takes, and 2 s."""
    if not importlib.util.find_spec("torch"):
        print("\nrun --torch: PyTorch is not installed here")
        return
    width = 100 if session.quick else 500
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "script.py"
        path.write_text(DEEP.format(width=width), "utf-8")
        turns = [[_last_two(_ran(path, words)[1]) for words in (_RECORDED, ())] for _ in range(3)]
    (own, much), (peer, less) = (map(min, zip(*of_one, strict=True)) for of_one in zip(*turns, strict=True))
    activations = 200 * 256 * width * 4 / 2**20
    print(f"\nthe explained round of 100 layers of {width}, with its page, and the peak of memory")
    print(f"  gradcli run --torch  {own:8.3f} s, at most {3 * peer + 2:.3f} s   {much:6.0f} MB")
    print(f"  PyTorch              {peer:8.3f} s   {less:20.0f} MB, of which activations {activations:.0f} MB")


def _last_two(printed: str) -> tuple[float, float]:
    *_, seconds, megabytes = [line for line in printed.splitlines() if line[:1].isdigit()][-1].split()
    return float(seconds), float(megabytes)


def script(session: Session) -> None:
    """A whole short script: at most half of what `python` takes with PyTorch."""
    _compared("a script of four lines, from start to end", SCRIPT, inner=False)


def small(session: Session) -> None:
    """Small operations: at most 6 times what PyTorch takes, in place 10, and twice our own `v * a` but for slices."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "script.py"
        path.write_text(SMALL.format(count=300 if session.quick else 1000), "utf-8")
        runs = [_QUIET, ()] if importlib.util.find_spec("torch") else [_QUIET]
        turns = [[_ran(path, words)[1].split() for words in runs] for _ in range(3 if session.quick else 5)]
    own, *other = (
        [min(map(float, times)) for times in zip(*of_one, strict=True)] for of_one in zip(*turns, strict=True)
    )
    print("\nsmall operations, µs each" + ("" if other else ": PyTorch is not installed here"))
    for k, name in enumerate(SMALL_NAMES):
        most = 10 if name.startswith("y") else 6
        peer = f"   PyTorch {other[0][k]:6.1f}   ratio {own[k] / other[0][k]:5.2f}, at most {most}" if other else ""
        print(f"  {name:30s} {own[k]:7.1f}{peer}")


def _compared(title: str, source: str, inner: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "script.py"
        path.write_text(source, "utf-8")
        runs = [_QUIET, ()] if importlib.util.find_spec("torch") else [_QUIET]
        # By turns, as a processor's clock changes; of each the least, of the run or of what the script itself measured.
        turns = [[_ran(path, words) for words in runs] for _ in range(_TURNS)]
        own, *other = (min(float(r[1]) if inner else r[0] for r in own) for own in zip(*turns, strict=True))
        print(f"\n{title}\n  gradcli run --quiet  {own:8.3f} s")
        for peer in other:
            print(f"  PyTorch              {peer:8.3f} s   ratio {own / peer:.2f}")
        if not other:
            print("  PyTorch is not installed here: nothing to compare with")
