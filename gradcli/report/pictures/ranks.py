"""The layer of each box: below all boxes that it reads, and as near to them as possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_SPAN = 24  # layers that a line may pass
_PASSES = 30  # the same for all lines together, by box


class Ranks(NamedTuple):
    """The layer of each box, and the arrows that would pass too many: by the box and the position."""

    of: tuple[int, ...]
    far: frozenset[tuple[int, int]]


def ranks(sources: Sequence[Sequence[int]]) -> Ranks:
    """Return the layers of boxes that read others, their `sources`: each right above the first of its readers.

    >>> ranks([[], [0], [1, 0], [], [2, 3]]).of
    (0, 1, 2, 2, 3)
    """
    of = [0] * len(sources)
    for k, mine in enumerate(sources):
        of[k] = 1 + max((of[s] for s in mine), default=-1)
    first = dict[int, int]()
    for k in range(len(sources) - 1, -1, -1):
        of[k] = first.get(k, of[k] + 1) - 1
        for s in sources[k]:
            first[s] = min(first.get(s, of[k]), of[k])
    span = _SPAN
    while span > 2 and _layers_crossed(sources, of, span) > _PASSES * len(sources):
        span //= 2
    far = {
        (k, i) for k, mine in enumerate(sources) for i, s in enumerate(mine)
        if of[k] - of[s] > span
    }  # fmt: skip
    return Ranks(tuple(of), frozenset(far))


def _layers_crossed(sources: Sequence[Sequence[int]], of: Sequence[int], span: int) -> int:
    """Return how many layers the lines cross, of those that cross no more than a span."""
    longest: dict[int, int] = {}
    for k, mine in enumerate(sources):
        for s in mine:
            if of[k] - of[s] <= span:
                longest[s] = max(longest.get(s, 0), of[k] - of[s] - 1)
    return sum(longest.values())
