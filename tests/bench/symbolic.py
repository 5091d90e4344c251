"""Symbolic Jacobians against SymPy's."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import sympy

from gradcli import parse, symbolic_jacobian
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
