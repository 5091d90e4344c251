"""Symbolic Jacobians against SymPy's, and the cost of a statement on its way from text to numbers."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
import sympy

from gradcli import evaluate, parse, symbolic_jacobian, vjp
from tests.bench.broyden import broyden
from tests.bench.session import Session
from tests.bench.tables import title


def median(job: Callable[[], object], before: Callable[[], object] = lambda: None, repeat: int = 3) -> float:
    """Return the median time of a job, each run after the same preparation."""
    times = []
    for _ in range(repeat):
        before()
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def jacobian(session: Session) -> None:
    """Compare the symbolic Jacobian with SymPy's own, from formulas that are ready on both sides, caches empty."""
    title("symbolic Jacobian of Broyden's tridiagonal function, seconds")
    print(f"  {'n':>6} {'gradcli':>10} {'SymPy':>10} {'ratio':>8}")
    for n in (50, 100, 200) if session.quick else (50, 100, 200, 400):
        graph = parse(broyden(n))
        x = sympy.symbols(f"x0:{n}")
        padded = [0, *x, 0]
        y = sympy.Matrix(
            [(3 - 2 * padded[i]) * padded[i] - padded[i - 1] - 2 * padded[i + 1] + 1 for i in range(1, n + 1)]
        )
        mine = median(lambda g=graph: symbolic_jacobian(g), sympy.core.cache.clear_cache)
        peer = median(lambda f=y, s=x: f.jacobian(s), sympy.core.cache.clear_cache)
        print(f"  {n:>6} {mine:>10.4f} {peer:>10.4f} {peer / mine:>8.1f}", flush=True)


def statements(session: Session) -> None:
    """Time a chain of statements at one point: 10 times the statements take about 10 times the time."""
    title("a chain t1 = sin(t0); t2 = sin(t1); … at one point, microseconds a statement")
    print(f"  {'n':>8} {'parse':>8} {'vjp':>8} {'evaluate':>9}")
    for n in map(session.points, (1_000, 10_000, 100_000)):
        text = "\n".join(f"t{i + 1} = sin(t{i})" for i in range(n))
        graph = parse(text)
        swept = vjp(graph)
        point = {"t0": np.array([0.5]), f"t{n}.v": np.ones(1)}
        times = [
            median(lambda t=text: parse(t)),
            median(lambda g=graph: vjp(g)),
            median(lambda g=swept, p=point: evaluate(g, p)),
        ]
        print(f"  {n:>8,} " + " ".join(f"{t / n * 1e6:>8.1f}" for t in times), flush=True)
