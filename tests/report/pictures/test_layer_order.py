"""The order of items in layers: few links cross, and a library's order is taken only where it has fewer crossings."""

from __future__ import annotations

import random
import sys
from itertools import combinations

import pytest

from gradcli.report.pictures.layers import crossings, ordered


def some_layers(seed, layers=7, wide=8):
    """Ranks, and links to the layer above."""
    chance = random.Random(seed)
    ranks = [rank for rank in range(layers) for _ in range(chance.randrange(2, wide))]
    places = {rank: [k for k, r in enumerate(ranks) if r == rank] for rank in range(-1, layers)}
    return ranks, [chance.sample(places[r - 1], min(len(places[r - 1]), chance.randrange(3))) for r in ranks]


def crossing_pairs(layers, above):
    """The same number, from its definition."""
    position = {item: k for layer in layers for k, item in enumerate(layer)}
    links = [
        (rank, position[a], position[item]) for rank, layer in enumerate(layers) for item in layer for a in above[item]
    ]
    return sum(r == s and (a - b) * (c - d) < 0 for (r, a, c), (s, b, d) in combinations(links, 2))


@pytest.mark.parametrize("seed", range(20))
def test_each_item_stands_once_in_its_layer_and_crossings_are_few(seed, monkeypatch):
    monkeypatch.setitem(sys.modules, "fast_sugiyama", None)
    ranks, above = some_layers(seed)
    given = [[k for k, r in enumerate(ranks) if r == rank] for rank in range(7)]
    found = ordered(ranks, above)
    assert [sorted(layer) for layer in found] == given
    assert crossings(found, above) == crossing_pairs(found, above)
    assert crossings(found, above) < max(1, crossings(given, above) * 0.7)
