"""Loops in a record: runs of rounds in which the same statements made the same operations, with equal shapes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from gradcli.record.record import Loop, Source

PERIOD = 256  # operations of the longest round that is looked for
TIMES = 3  # rounds: fewer are written out
LEAST = 5  # operations that are worth folding, in all rounds together
_FAILURES = 8  # of searches in one stretch, whose operations recur and read something else each time


class Entry(NamedTuple):
    """An operation of a run: its results and operands, as integers; what cannot be referred to is -1.

    `kind` is equal for operations with the same row, settings and shapes that the same statement made.  `function` and
    `instruction` are where that statement stands.
    """

    kind: Hashable
    operands: tuple[int, ...]
    results: tuple[int, ...]
    function: Hashable = None
    instruction: int = 0


IsRound = Callable[[Sequence[Entry], Sequence[Entry]], bool]


def loops(entries: Sequence[Entry], is_round: IsRound = lambda *_: True) -> list[Loop]:
    """Return the loops in a run, in their order, the longest ones first where they overlap.

    The ids of the operations are their positions in `entries`.  `is_round` says of the operations of the first two
    rounds whether these are rounds of a loop of the program, and not several rounds each.
    """
    search = _Search(entries, is_round)
    return sorted(search.loops(), key=lambda loop: loop.rounds[0][0])


class _Search:
    """A search for loops; an operation belongs to one at most."""

    def __init__(self, entries: Sequence[Entry], is_round: IsRound) -> None:
        self.entries, self.is_round = entries, is_round
        codes: dict[Hashable, int] = {}
        self.codes = np.array([codes.setdefault(e.kind, len(codes)) for e in entries], dtype=np.int64)
        self.made = {q: (k, i) for k, e in enumerate(entries) for i, q in enumerate(e.results)}
        self.last_use: dict[int, int] = {}
        for k, e in enumerate(entries):
            self.last_use |= dict.fromkeys(e.operands, k)
        self.taken = np.zeros(len(entries), dtype=bool)
        self.failures = np.zeros(len(entries), dtype=np.int64)

    def loops(self) -> Iterator[Loop]:
        """Yield the loops, those that leave out most operations first."""
        waiting: list[tuple[int, int, int, int]] = []
        for period in range(1, min(PERIOD, len(self.entries) // TIMES) + 1):
            for start, stop in _stretches(self.codes[period:] == self.codes[:-period]):
                self._push(waiting, start, stop + period, period)
        while waiting:
            _, period, start, stop = heappop(waiting)
            if self.taken[start:stop].any():
                for a, b in _stretches(~self.taken[start:stop]):
                    self._push(waiting, start + a, start + b, period)
                continue
            loop = self._loop(start, stop, period) if self.failures[start] < _FAILURES else None
            if loop is None:
                self.failures[start:stop] += 1
                continue
            first, last = loop.rounds[0][0], loop.rounds[-1][-1] + 1
            self.taken[first:last] = True
            self._push(waiting, start, first, period)
            self._push(waiting, last, stop, period)
            yield loop

    def _push(self, waiting: list[tuple[int, int, int, int]], start: int, stop: int, period: int) -> None:
        times = (stop - start) // period
        if times >= TIMES and times * period >= LEAST:
            heappush(waiting, (-period * (times - 1), period, start, stop))

    def _loop(self, start: int, stop: int, period: int) -> Loop | None:
        """Return the loop in a stretch whose operations recur after a period; None where operands say otherwise."""
        begin = self._begin(start, stop, period)
        second = begin + period
        if not self.is_round(self.entries[begin:second], self.entries[second : second + period]):
            return None
        times = (stop - begin) // period
        rounds = [self._origins(begin, r, period) for r in range(times)]
        first, last = _longest(rounds)
        steady = rounds[first]
        first = self._extended(rounds, first, begin, period)
        if last - first < TIMES or (last - first) * period < LEAST:
            return None
        ids = [tuple(range(begin + r * period, begin + (r + 1) * period)) for r in range(first, last)]
        return Loop(tuple(ids), self._sources(steady, begin, first, last, period))

    def _begin(self, start: int, stop: int, period: int) -> int:
        """Return where rounds begin: the code goes back least within them, most rounds fit, fewest values go on."""

        def badness(begin: int) -> tuple[int, int, int]:
            part = self.entries[begin : begin + period]
            latest: dict[Hashable, int] = {}
            back = 0
            for e in part:
                back += e.function is not None and e.instruction < latest.get(e.function, -1)
                latest[e.function] = e.instruction
            carried = sum(any(self.last_use.get(q, 0) >= begin + period for q in e.results) for e in part)
            return back, -((stop - begin) // period), carried

        return min(range(start, min(start + period, stop - (TIMES - 1) * period)), key=badness)

    def _origins(self, begin: int, r: int, period: int) -> tuple[Any, ...]:
        """Return for each operand of a round its lag, statement and result, or None for what is made before."""
        result: list[Any] = []
        for e in self.entries[begin + r * period : begin + (r + 1) * period]:
            for q in e.operands:
                k, number = self.made.get(q, (-1, 0))
                known = k >= begin and q >= 0
                result.append((r - (k - begin) // period, (k - begin) % period, number) if known else None)
        return tuple(result)

    def _operands(self, begin: int, r: int, period: int) -> list[int]:
        return [q for e in self.entries[begin + r * period : begin + (r + 1) * period] for q in e.operands]

    def _extended(self, rounds: Sequence[tuple[Any, ...]], first: int, begin: int, period: int) -> int:
        """Return the first round, with those before it that read what comes before the loop in a lag's place."""
        steady = rounds[first]
        initial: dict[tuple[int, int, int], int] = {}  # by round, statement and result
        while first > 0:
            more: dict[tuple[int, int, int], int] = {}
            operands = self._operands(begin, first - 1, period)
            for origin, usual, q in zip(rounds[first - 1], steady, operands, strict=True):
                if origin == usual:
                    continue
                if origin is not None or usual is None or usual[0] == 0:
                    return first
                key = (first - 1 - usual[0], *usual[1:])
                if initial.get(key, q) != q or more.setdefault(key, q) != q:
                    return first
            if any(key[0] >= first - 1 for key in initial):
                return first
            initial |= more
            first -= 1
        return first

    def _sources(
        self, steady: tuple[Any, ...], begin: int, first: int, last: int, period: int
    ) -> tuple[tuple[Source | None, ...], ...]:
        read = [self._operands(begin, r, period) for r in range(first, last)]
        flat: list[Source | None] = []
        for i, origin in enumerate(steady):
            if origin is not None:
                lag, statement, number = origin
                flat.append(Source(None, statement, number, lag))
            else:
                same = read[0][i] >= 0 and len({operands[i] for operands in read}) == 1
                flat.append(Source(read[0][i]) if same else None)
        sources = iter(flat)
        return tuple(tuple(next(sources) for _ in e.operands) for e in self.entries[begin : begin + period])


def _longest(rounds: Sequence[tuple[Any, ...]]) -> tuple[int, int]:
    """Return the first and the last of the most rounds in a row whose operands come from the same places."""
    best, start = (0, 0), 0
    for r in range(1, len(rounds) + 1):
        if r == len(rounds) or rounds[r] != rounds[start]:
            best = max(best, (start, r), key=lambda run: (run[1] - run[0], -run[0]))
            start = r
    return best


def _stretches(same: Any) -> list[tuple[int, int]]:
    """Return where stretches of true values begin and end."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], same.astype(np.int8), [0]])))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]
