"""Benchmarks, as ratios against a peer in the same run: `python -m tests.bench`.  Not part of the test run."""

from __future__ import annotations

import importlib.util
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import sympy

from gradcli import evaluate, parse, symbolic_jacobian, vjp

MAIN = ["y0=3*x0**2", "y1=x0**2+2*x1**3", "y2=10*x1", "--at", "x0=1,x1=2", "--v", "1,10,100", "-f", "json"]

TORCH = """
import json, torch
x0, x1 = (torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in (1.0, 2.0))
v = [torch.tensor(value, dtype=torch.float64) for value in (1.0, 10.0, 100.0)]
torch.autograd.backward([3 * x0**2, x0**2 + 2 * x1**3, 10 * x1], v)
print(json.dumps({"grad": {"x0": x0.grad.item(), "x1": x1.grad.item()}}))
"""


def seconds(job: Callable[[], object], before: Callable[[], object] = lambda: None, repeat: int = 5) -> float:
    """Return the median time of a job, each run after the same preparation."""
    times = []
    for _ in range(repeat):
        before()
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def broyden(n: int) -> str:
    """Return Broyden's tridiagonal function (More, Garbow, Hillstrom 1981, problem 30) as a system."""
    lines = []
    for i in range(n):
        below = f" - x{i - 1}" if i else ""
        above = f" - 2*x{i + 1}" if i < n - 1 else ""
        lines.append(f"y{i} = (3 - 2*x{i})*x{i}{below}{above} + 1")
    return "\n".join(lines)


def jacobian() -> None:
    """Compare the symbolic Jacobian with SymPy's own, from formulas that are ready on both sides, caches empty."""
    print("symbolic Jacobian of Broyden's tridiagonal function, seconds")
    print(f"{'n':>6} {'gradcli':>10} {'SymPy':>10} {'ratio':>8}")
    for n in (50, 100, 200, 400):
        graph = parse(broyden(n))
        x = sympy.symbols(f"x0:{n}")
        padded = [0, *x, 0]
        y = sympy.Matrix(
            [(3 - 2 * padded[i]) * padded[i] - padded[i - 1] - 2 * padded[i + 1] + 1 for i in range(1, n + 1)]
        )
        mine = seconds(lambda g=graph: symbolic_jacobian(g), sympy.core.cache.clear_cache, 3)
        peer = seconds(lambda f=y, s=x: f.jacobian(s), sympy.core.cache.clear_cache, 3)
        print(f"{n:>6} {mine:>10.4f} {peer:>10.4f} {peer / mine:>8.1f}")


def chain() -> None:
    """Time a chain of statements: 10 times the statements take about 10 times the time."""
    print("\na chain t1 = sin(t0); t2 = sin(t1); …, microseconds a statement")
    print(f"{'n':>8} {'parse':>8} {'vjp':>8} {'evaluate':>9}")
    for n in (1_000, 10_000, 100_000):
        text = "\n".join(f"t{i + 1} = sin(t{i})" for i in range(n))
        graph = parse(text)
        swept = vjp(graph)
        point = {"t0": np.array([0.5]), f"t{n}.v": np.ones(1)}
        times = [
            seconds(lambda t=text: parse(t), repeat=3),
            seconds(lambda g=graph: vjp(g), repeat=3),
            seconds(lambda g=swept, p=point: evaluate(g, p), repeat=3),
        ]
        print(f"{n:>8} " + " ".join(f"{t / n * 1e6:>8.1f}" for t in times))


def start_up() -> None:
    """Compare whole processes: gradcli, and a script that imports torch and does the same."""
    print("\na whole process of the main example, seconds")
    mine = seconds(lambda: _process("-m", "gradcli", "backward", *MAIN))
    print(f"gradcli backward -f json {mine:.3f}")
    if importlib.util.find_spec("torch") is None:
        print("torch is not installed here")
        return
    peer = seconds(lambda: _process("-c", TORCH))
    print(f"the same with torch      {peer:.3f}   ratio {mine / peer:.2f}")


def _process(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    jacobian()
    chain()
    start_up()
