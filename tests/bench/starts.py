"""How long a short run takes as a whole process: beside one that imports torch and does the same, or imports alone.

Seconds are of the processor, those of the children of a process: another program that runs beside them counts for less.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median

from tests.bench.session import Session
from tests.bench.tables import seconds, title

POINT = "x = torch.tensor({}, dtype=torch.float64, requires_grad=True)"
SINE = f"""
import json, torch
{POINT.format(3.0)}
(torch.sin(x) * x).backward()
print(json.dumps({{"grad": {{"x": x.grad.item()}}}}))
"""
EXAMPLE = """
import torch
x0, x1 = (torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in (1.0, 2.0))
v = [torch.tensor(value, dtype=torch.float64) for value in (1.0, 10.0, 100.0)]
torch.autograd.backward([3 * x0**2, x0**2 + 2 * x1**3, 10 * x1], v)
print(x0.grad, x1.grad)
"""
LOOP = f"""
import torch
{POINT.format(0.5)}
t = x
for _ in range({{}}):
    t = torch.sin(t)
t.backward()
print(x.grad)
"""
SAMPLE = Path(__file__).parents[2] / "samples" / "doubled.py"
SYSTEM = ["y0=3*x0**2", "y1=x0**2+2*x1**3", "y2=10*x1", "--at", "x0=1,x1=2", "--v", "1,10,100"]
IMPORTS = ["-c", "import click, numpy"]
JSON, QUIET = ["backward", "y=sin(x)*x", "--at", "x=3", "-f", "json"], ["run", "--quiet", str(SAMPLE)]
# What is asked of gradcli, the same in a script with torch, and at most which share of its time is to be reached.
STARTS: dict[str, tuple[list[str], list[str], float]] = {
    "backward of sin(x)*x, -f json": (JSON, ["-c", SINE], 0.15),
    "jacobian of sin(x)*x, -f json": (["jacobian", "y=sin(x)*x", "--at", "x=3", "-f", "json"], ["-c", SINE], 0.3),
    "the main example, a page": (["backward", *SYSTEM], ["-c", EXAMPLE], 0.3),
    "run --quiet of samples/doubled.py": (QUIET, [str(SAMPLE)], 0.5),
    "-f json, beside import click, numpy": (JSON, IMPORTS, 1.1),
    "--quiet, beside import click, numpy": (QUIET, IMPORTS, 1.2),
}
CHAIN = 1.5  # times as long as the script with a loop


def start_up(session: Session) -> None:
    """Compare commands as whole processes."""
    _head("whole processes, from the start")
    for name, (arguments, script, most) in STARTS.items():
        _row(name, arguments, script, most, 3 if session.quick else 7)


def chains(session: Session) -> None:
    """Compare chains of statements from a file as whole processes."""
    _head("whole processes: t1 = sin(x); t2 = sin(t1); … from a file, beside a loop")
    for n in map(session.points, (10_000, 100_000)):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "chain.grad")
            text = "\n".join(f"t{i + 1} = sin({f't{i}' if i else 'x'})" for i in range(n))
            file.write_text(text, encoding="utf-8")
            for style in ("json", "table"):
                arguments = ["backward", "-F", str(file), "--at", "x=0.5", "-f", style]
                _row(f"{n:,} statements, -f {style}", arguments, ["-c", LOOP.format(n)], CHAIN, 3)


def _head(text: str) -> None:
    title(f"{text}, seconds of the processor")
    print(f"  {'':36} {'gradcli':>10} {'peer':>10} {'ratio':>8} {'to reach':>9}")


def _row(name: str, arguments: Sequence[str], script: Sequence[str], most: float, turns: int) -> None:
    """Print the times of a command and of its script, which take turns, and their ratio."""
    peer = script == IMPORTS or importlib.util.find_spec("torch") is not None
    commands = [["-m", "gradcli", *arguments], *([script] if peer else [])]
    times = [[_spent(command) for command in commands] for _ in range(turns)]
    found = [median(each) for each in zip(*times, strict=True)]
    ratio = f"{found[0] / found[1]:.2f}" if peer else "–"
    _print(name, [seconds(found[0]), seconds(found[1]) if peer else "–"], ratio, most)


def _print(name: str, times: Iterable[str], ratio: str, most: float) -> None:
    print(f"  {name:36} " + " ".join(f"{t:>10}" for t in times) + f" {ratio:>8} {most:>9}", flush=True)


def _spent(arguments: Sequence[str]) -> float:
    """Return the seconds that a Python process takes of the processor, for itself and in the system."""
    before = getrusage(RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
