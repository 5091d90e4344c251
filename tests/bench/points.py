"""Derivatives of one system at many points, by all competitors: the benchmarks that the others explain."""

from __future__ import annotations

from tests.bench import broyden
from tests.bench.own import COPIES, ENGINES, NUMBA, NUMPY
from tests.bench.peers import AUTOGRAD, LAMBDIFY, PEERS, TORCH, TORCH_ALONE
from tests.bench.problems import Problem, bundle_adjustment, network, rosenbrock
from tests.bench.race import Competitor, Rows, race
from tests.bench.session import Session
from tests.bench.tables import print_growth, print_rows, title

SIZES = (10**3, 10**4, 10**5, 10**6, 10**7)

# At a million points of bundle adjustment on two cores: who is how many times as fast as whom.
TARGETS = [(NUMPY, 2, TORCH), (NUMPY, 5, AUTOGRAD), (NUMPY, 10, LAMBDIFY), (NUMBA, 5, TORCH)]


def bundle(session: Session) -> None:
    """Race at growing numbers of points of bundle adjustment."""
    by_size: dict[int, Rows] = {}
    rows = None
    for size in map(session.points, SIZES):
        problem = bundle_adjustment(size)
        title(f"{problem.title}, {size:,} points: vᵀJ of 15 inputs and 3 outputs")
        rows = by_size[size] = race(problem, [*ENGINES, *PEERS, *COPIES], rows, 10)
        print_rows(rows)
        session.check(rows)
        if size == 10**6:
            _print_targets(rows)
    print_growth(by_size, "bundle adjustment, how time grows with the points", 1e-9, "nanoseconds a point")
    session.growth["bundle adjustment"] = by_size


def _print_targets(rows: Rows) -> None:
    for name, target, peer in TARGETS:
        peers = [rows[n] for n in ((TORCH, TORCH_ALONE) if peer == TORCH else (peer,)) if rows[n].times]
        if peers and rows[name].times:
            ratio = min(row.median for row in peers) / rows[name].median
            fastest = min(min(row.times) for row in peers) / min(rows[name].times)
            print(f"  {name} is {ratio:.1f} times as fast as {peer} (fastest runs: {fastest:.1f}); to reach: {target}")


def rosenbrock_gradient(session: Session) -> None:
    """Race at the gradient of a sum over a vector."""
    _one(session, rosenbrock(session.points(10**5)), "gradient in 100 variables", PEERS)


def tanh_network(session: Session) -> None:
    """Race at products of matrices."""
    _one(session, network(session.points(10**5)), "vᵀJ of 8 inputs, 16 hidden units and 4 outputs", PEERS)


def broyden_jacobian(session: Session) -> None:
    """Race at a sparse Jacobian."""
    problem = broyden.broyden_jacobian(1000, session.points(10**3))
    _one(session, problem, "sparse Jacobian, 2,998 entries", broyden.PEERS)


def _one(session: Session, problem: Problem, what: str, peers: list[Competitor]) -> None:
    title(f"{problem.title}, {problem.count:,} points: {what}")
    rows = race(problem, [*ENGINES, *peers, *COPIES])
    print_rows(rows)
    session.take(f"{problem.title}, {problem.count:,} points", rows)
