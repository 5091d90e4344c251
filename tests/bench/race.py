"""Competitors that compute the same: their results are compared, then they are timed in turn.

Each has a process of its own, as its users run it: in a process that they share, one gets memory that another has
already taken from the system, and waits for another's threads.
"""

from __future__ import annotations

import multiprocessing
import signal
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from tests.bench.problems import Problem

Array = np.ndarray[Any, Any]

MOST, FEWEST = 25, 3  # rounds
ENOUGH = 1.0  # seconds of a competitor's runs, after which there are no more than the fewest
COLD = 0.2  # seconds of a run to which it does not matter what another has left in the cache
SLOWEST, LONGEST = 5.0, 30.0  # predicted seconds of a run, and until the first result, beyond which one is left out
LARGE = 2**30  # bytes of points, of which memory has no room for the arrays of all competitors at once

clock = time.perf_counter  # `--busy` takes time of the processor

FORK = multiprocessing.get_context("fork")  # the points are there already

LEFT_OUT, NO_MEMORY = "–", "not enough memory"


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


def race(
    problem: Problem,
    competitors: Sequence[Competitor],
    before: Rows | None = None,
    growth: float = 1,
    longer: float = 1,
) -> Rows:
    """Return the rows of all competitors; the results of the first are the measure of the others'.

    `before` are the rows of a problem that was smaller by the factor `growth`, in a program that is `longer` now.
    """
    first = competitors[0].prepare(problem)
    named = first.named or dict
    expected = {name: np.copy(a) for name, a in named(first.run()).items()}
    large = sum(a.nbytes for a in problem.points.values()) > LARGE
    rows: Rows = {}
    entrants = []
    for competitor in competitors:
        row = rows[competitor.name] = Row(
            competitor.name, note=_hopeless((before or {}).get(competitor.name), growth, longer)
        )
        if row.note:
            continue
        entrant = Entrant(row, competitor, problem, expected)
        if large:
            _in_turn([entrant])
        else:
            entrants.append(entrant)
    _in_turn(entrants)
    return rows


def _hopeless(before: Row | None, growth: float, longer: float) -> str:
    """Return why a competitor is left out, if it is."""
    if before is None or before.note:
        return before.note if before is not None else ""
    run = before.median * growth
    return LEFT_OUT if run > SLOWEST or before.first * longer + run > LONGEST else ""


class Entrant:
    """A competitor in its process, and its row."""

    def __init__(self, row: Row, competitor: Competitor, problem: Problem, expected: Mapping[str, Array]) -> None:
        self.row = row
        self._pipe, there = FORK.Pipe()
        self._process = FORK.Process(target=_serve, args=(there, competitor, problem, expected), daemon=True)
        self._process.start()
        there.close()
        self.row.first = self._answer()

    def run(self) -> None:
        """Compute once more."""
        self._pipe.send(True)
        seconds = self._answer()
        if not self.row.note:
            self.row.times.append(seconds)

    def stop(self) -> None:
        """End the process."""
        if not self.row.note:
            self._pipe.send(False)
        self._process.join()

    def _answer(self) -> float:
        """Return the seconds that a run took; if there is a reason instead, the row has that note, and no times."""
        try:
            answer = self._pipe.recv()
        except EOFError:
            self._process.join()
            if self._process.exitcode != -signal.SIGKILL:
                raise RuntimeError(f"{self.row.name} ended with status {self._process.exitcode}") from None
            answer = NO_MEMORY  # the system has ended it
        if isinstance(answer, float):
            return answer
        self.row.note = answer
        self.row.times.clear()
        return 0.0


def _serve(pipe: Connection, competitor: Competitor, problem: Problem, expected: Mapping[str, Array]) -> None:
    """Run a competitor as often as the pipe asks for it; answer with the seconds, or with why there are none."""
    try:
        import_module(competitor.package)
        start = clock()
        entrant = competitor.prepare(problem)
        results = entrant.run()
        first, seconds = clock() - start, 0.0
        if entrant.named is not None and (mistake := difference(entrant.named(results), expected, problem.agreement)):
            print(f"*** {competitor.name} does not agree: {mistake}", file=sys.stderr, flush=True)
            pipe.send("WRONG")
            return
        del results
        pipe.send(first)
        while pipe.recv():
            if seconds < COLD:
                entrant.run()  # in the cache is what another has left there, and a core may be asleep
            start = clock()
            results = entrant.run()
            pipe.send(seconds := clock() - start)
            del results
    except ImportError:
        pipe.send("not installed")
    except LeftOutError as error:
        pipe.send(str(error))
    except (MemoryError, RuntimeError) as error:  # the second is how PyTorch and JAX say it
        if isinstance(error, RuntimeError) and "memory" not in str(error).lower():
            raise
        pipe.send(NO_MEMORY)


def difference(found: Mapping[str, Array | list[Array]], expected: Mapping[str, Array], agreement: float) -> str:
    """Return where results are not those expected, to a relative difference; empty where they are."""
    for name, wanted in expected.items():
        if name not in found:
            return f"no {name}"
        array = found[name]
        array = np.stack(np.broadcast_arrays(*array)) if isinstance(array, list) else np.asarray(array)
        atol = agreement * float(np.abs(wanted).max())
        try:
            np.testing.assert_allclose(*np.broadcast_arrays(array, wanted), agreement, atol)
        except (AssertionError, ValueError) as error:
            return f"{name}: {' '.join(str(error).split())[:300]}"
    return ""


def _in_turn(entrants: Sequence[Entrant]) -> None:
    """Time the runs round by round, so that a slow moment of the machine is shared by all, and end the processes."""
    for done in range(MOST):
        for entrant in entrants:
            if not entrant.row.note and (done < FEWEST or sum(entrant.row.times) < ENOUGH):
                time.sleep(0.005)  # for the other's threads, which wait for more work before they sleep
                entrant.run()
    for entrant in entrants:
        entrant.stop()
