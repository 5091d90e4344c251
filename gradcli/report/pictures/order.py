"""The order of items within layers, from left to right, in which few of the links between neighbouring layers cross.

It is found by barycentres (K. Sugiyama, S. Tagawa, M. Toda, "Methods for visual understanding of hierarchical system
structures", IEEE Trans. SMC 11(2), 1981).  Where lines still cross and fast-sugiyama is installed, its order is taken
if it has fewer crossings.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence

_SWEEPS = 12
_SMALL = 800  # items that are put in order with more care
_LIBRARY = 1000  # items: for two thousand, fast-sugiyama can take minutes, in which it cannot be interrupted

Layers = list[list[int]]


def ordered(ranks: Sequence[int], above: Sequence[Sequence[int]]) -> Layers:
    """Return the items of each layer in order, given their ranks, and those of the layer above that each is linked to.

    >>> ordered([0, 0, 1, 1], [[], [], [1], [0]])
    [[0, 1], [3, 2]]
    """
    layers: Layers = [[] for _ in range(max(ranks, default=-1) + 1)]
    for item, rank in enumerate(ranks):
        layers[rank].append(item)
    result = _by_barycentres(layers, above)
    fewest = crossings(result, above)
    if fewest and len(ranks) <= _LIBRARY:
        other = _by_library(layers, above)
        if other and crossings(other, above) < fewest:
            return other
    return result


def crossings(layers: Layers, above: Sequence[Sequence[int]]) -> int:
    """Return how many pairs of links cross.

    >>> crossings([[0, 1], [2, 3]], [[], [], [1], [0]])
    1
    """
    position = {item: k for layer in layers for k, item in enumerate(layer)}
    total = 0
    for layer in layers[1:]:
        seen: list[int] = []
        for item in layer:
            ends = sorted(position[a] for a in above[item])
            total += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return total


def _by_barycentres(layers: Layers, above: Sequence[Sequence[int]]) -> Layers:
    """Return the best order found by putting each item at the middle of what it is linked to, down and up by turns."""
    below: list[list[int]] = [[] for _ in above]
    for item, mine in enumerate(above):
        for a in mine:
            below[a].append(item)
    now = [list(layer) for layer in layers]
    position = [0.0] * len(above)
    for layer in now:
        _number(layer, position)
    best, fewest = now, crossings(now, above)
    for sweep in range(_SWEEPS * 2 if len(above) <= _SMALL else _SWEEPS):
        if not fewest:
            break
        linked = above if sweep % 2 == 0 else below
        now = [list(layer) for layer in now]
        for layer in now if linked is above else reversed(now):
            layer.sort(key=lambda k: sum(position[o] for o in linked[k]) / len(linked[k]) if linked[k] else position[k])
            _number(layer, position)
        if (count := crossings(now, above)) < fewest:
            best, fewest = now, count
    return best


def _number(layer: Sequence[int], position: list[float]) -> None:
    for k, item in enumerate(layer):
        position[item] = k


def _by_library(layers: Layers, above: Sequence[Sequence[int]]) -> Layers | None:
    """Return the order that fast-sugiyama finds, its components side by side; None where it is not installed."""
    try:
        from fast_sugiyama import from_edges
    except ImportError:
        return None
    links = [(a, item) for item, mine in enumerate(above) for a in mine]
    keys: dict[int, tuple[int, float]] = {}
    for positions, *_ in from_edges(links):
        first = min(item for item, _ in positions)
        keys |= {item: (first, x) for item, (x, _) in positions}
    return [sorted(layer, key=lambda item: keys.get(item, (item, 0.0))) for layer in layers]
