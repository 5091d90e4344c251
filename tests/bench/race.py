"""Competitors that compute the same: their results are compared, then they are timed in turn."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

from tests.bench.problems import Problem

Array = np.ndarray[Any, Any]

MOST, FEWEST = 25, 3  # rounds
BUDGET = 20.0  # seconds of rounds, after which there are no more than the fewest
SLOWEST, LONGEST = 20.0, 60.0  # predicted seconds of a run, and until the first result, beyond which one is left out
AGREEMENT = 1e-9

LEFT_OUT = "–"


class LeftOutError(Exception):
    """Raised with the note of a competitor that cannot take part."""


@dataclass(frozen=True)
class Ready:
    """A competitor that is ready: `run` computes once, and `named` finds the arrays by name in what it returns.

    An array may be a list of its rows.  Without `named`, nothing is computed that could be compared.
    """

    run: Callable[[], Any]
    named: Callable[[Any], Mapping[str, Array | list[Array]]] | None


@dataclass(frozen=True)
class Competitor:
    """A way to solve a problem, and the package that it needs."""

    name: str
    prepare: Callable[[Problem], Ready]
    package: str = "numpy"


@dataclass
class Row:
    """What is known of a competitor: seconds until its first result, seconds of each run, or why there are none."""

    name: str
    first: float = 0.0
    times: list[float] = field(default_factory=list)
    note: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.times)


Rows = dict[str, Row]


def race(problem: Problem, competitors: Iterable[Competitor], before: Rows | None = None, growth: float = 1) -> Rows:
    """Return the rows of all competitors; the results of the first are the measure of the others'.

    `before` are the rows of a problem that was smaller by the factor `growth`.
    """
    rows: Rows = {}
    ready: dict[str, Callable[[], Any]] = {}
    expected: dict[str, Array] = {}
    for competitor in competitors:
        row = rows[competitor.name] = Row(competitor.name, note=_hopeless((before or {}).get(competitor.name), growth))
        if row.note:
            continue
        try:
            _enter(competitor, problem, row, ready, expected)
        except ImportError:
            row.note = "not installed"
        except LeftOutError as error:
            row.note = str(error)
        except (MemoryError, RuntimeError) as error:  # the second is how PyTorch and JAX say it
            if isinstance(error, RuntimeError) and "memory" not in str(error).lower():
                raise
            row.note = "not enough memory"
    expected.clear()
    _in_turn(ready, rows)
    return rows


def _hopeless(before: Row | None, growth: float) -> str:
    """Return why a competitor is left out, if it is."""
    if before is None or before.note:
        return before.note if before is not None else ""
    return LEFT_OUT if before.median * growth > SLOWEST or before.first * growth > LONGEST else ""


def _enter(
    competitor: Competitor,
    problem: Problem,
    row: Row,
    ready: dict[str, Callable[[], Any]],
    expected: dict[str, Array],
) -> None:
    """Make a competitor ready, and compare its first results."""
    import_module(competitor.package)
    start = time.perf_counter()
    entrant = competitor.prepare(problem)
    results = entrant.run()
    row.first = time.perf_counter() - start
    ready[competitor.name] = entrant.run
    if entrant.named is None:
        return
    found = entrant.named(results)
    if not expected:
        expected.update({name: np.copy(a) for name, a in found.items()})
    elif mistake := difference(found, expected):
        row.note = "WRONG"
        del ready[competitor.name]
        print(f"*** {competitor.name} does not agree with gradcli NumPy: {mistake}", file=sys.stderr)


def difference(found: Mapping[str, Array | list[Array]], expected: Mapping[str, Array]) -> str:
    """Return where results are not those expected, to nine digits and beside the largest; empty where they are."""
    for name, wanted in expected.items():
        if name not in found:
            return f"no {name}"
        array = found[name]
        array = np.stack(np.broadcast_arrays(*array)) if isinstance(array, list) else np.asarray(array)
        atol = AGREEMENT * float(np.abs(wanted).max())
        try:
            np.testing.assert_allclose(*np.broadcast_arrays(array, wanted), AGREEMENT, atol)
        except (AssertionError, ValueError) as error:
            return f"{name}: {' '.join(str(error).split())[:300]}"
    return ""


def _in_turn(ready: Mapping[str, Callable[[], Any]], rows: Rows) -> None:
    """Time the runs round by round, so that a slow moment of the machine is shared by all."""
    begun = time.perf_counter()
    for done in range(MOST):
        if done >= FEWEST and time.perf_counter() - begun > BUDGET:
            return
        for name, run in ready.items():
            time.sleep(0.005)  # for the other's threads, which wait for more work before they sleep
            start = time.perf_counter()
            results = run()
            rows[name].times.append(time.perf_counter() - start)
            del results
