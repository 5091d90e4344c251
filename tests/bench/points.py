"""Derivatives of one system at many points, by all competitors: the benchmarks that the others explain."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tests.bench import broyden
from tests.bench.own import COPIES, ENGINES
from tests.bench.peers import PEERS
from tests.bench.problems import Problem, bundle_adjustment, network, rosenbrock
from tests.bench.race import Competitor, Rows, race
from tests.bench.session import Session
from tests.bench.tables import print_growth, print_rows, title


def bundle(session: Session) -> None:
    """Race at bundle adjustment: scalars, and many operations."""
    _growing(session, bundle_adjustment, 7, "vᵀJ of 15 inputs and 3 outputs", PEERS)


def rosenbrock_gradient(session: Session) -> None:
    """Race at the gradient of a sum over a vector."""
    _growing(session, rosenbrock, 6, "gradient in 100 variables", PEERS)


def tanh_network(session: Session) -> None:
    """Race at products of matrices."""
    _growing(session, network, 6, "vᵀJ of 8 inputs, 16 hidden units and 4 outputs", PEERS)


def broyden_jacobian(session: Session) -> None:
    """Race at a sparse Jacobian."""
    _growing(session, partial(broyden.broyden_jacobian, 1000), 4, "sparse Jacobian, 2,998 entries", broyden.PEERS)


def _growing(session: Session, make: Callable[[int], Problem], most: int, what: str, peers: list[Competitor]) -> None:
    """Race at a hundred points, ten times as many, and so on, up to that power of ten."""
    by_size: dict[int, Rows] = {}
    rows = None
    for size in dict.fromkeys(session.points(10**power) for power in range(2 + session.quick, most + 1)):
        problem = make(size)
        title(f"{problem.title}, {size:,} points: {what}")
        rows = by_size[size] = race(problem, [*ENGINES, *peers, *COPIES], rows, 10)
        print_rows(rows)
        session.check(rows)
    print_growth(by_size, f"{problem.title}, how time grows with the points", 1e-9, "nanoseconds a point")
    session.growth[problem.title] = by_size
