"""How time grows with the length of a program and falls with threads."""

from __future__ import annotations

from functools import partial

from gradcli.engine.compiled import cores
from tests.bench.own import ENGINES, LLVM, NUMPY, engine
from tests.bench.peers import LAMBDIFY, PEERS
from tests.bench.problems import bundle_adjustment, chain
from tests.bench.race import Competitor, Rows, race
from tests.bench.session import Session
from tests.bench.tables import print_growth, print_rows, title

LENGTHS = (10, 40, 160, 640, 2_000)


def length(session: Session) -> None:
    """Race over chains of more and more statements; SymPy, whose formulas of a chain double with each, is left out."""
    count = session.points(10**5)
    by_length: dict[int, Rows] = {}
    rows, last = None, 1
    for n in LENGTHS:
        problem = chain(n, count)
        title(f"t1 = t0*x + 1/(1 + t0**2); t2 = …: vᵀJ of {n:,} such statements, {count:,} points")
        peers = [peer for peer in PEERS if peer.name != LAMBDIFY]
        rows = by_length[n] = race(problem, [*ENGINES, *peers], rows, n / last, n / last)
        last = n
        print_rows(rows)
        session.check(rows)
    what = "how time grows with the length of the program"
    print_growth(by_length, what, 1e-9 * count, "nanoseconds a statement and point")


def threads(session: Session) -> None:
    """Race with more and more threads."""
    problem = bundle_adjustment(session.points(10**6))
    title(f"{problem.title}, {problem.count:,} points: threads")
    competitors = []
    for n in range(1, cores() + 1):
        for name, key, package in ((NUMPY, "numpy", "numpy"), (LLVM, "llvm", "llvmlite")):
            run = partial(engine, name=key, threads=n)
            competitors.append(Competitor(f"{name}, {n} thread{'s' * (n > 1)}", run, package))
    rows = race(problem, competitors)
    print_rows(rows, f"{NUMPY}, 1 thread")
    session.check(rows)
