"""The layout of boxes and lines: none over another, each line where it leads, and little time for thousands."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest
from conftest import long

from gradcli.report.pictures.layers import Size, layered, placed, ranks

EDGE = 0.01


def some_graph(seed, count, near):
    chance = random.Random(seed)
    sources = [
        sorted(chance.sample(range(max(0, k - near), k), min(k, near, chance.randrange(4)))) for k in range(count)
    ]
    sizes = [
        Size(max(60.0, 50.0 * len(s)) + chance.random() * 100, 40 + 40 * chance.random(), tuple(50.0 for _ in s))
        for s in sources
    ]
    return sizes, sources


def drawn(sizes, sources):
    ranked = ranks(sources)
    return ranked, layered(sizes, sources, ranked)


def rectangles(sizes, layout):
    return [(p.left, p.top, p.left + s.width, p.top + s.height) for p, s in zip(layout.positions, sizes, strict=True)]


@pytest.mark.parametrize("seed", range(12))
def test_no_box_over_another_and_no_line_over_a_box(seed):
    sizes, sources = some_graph(seed, 60, 60)
    _, layout = drawn(sizes, sources)
    boxes = rectangles(sizes, layout)
    for i, (left, top, right, bottom) in enumerate(boxes):
        assert left >= -EDGE
        assert right <= layout.width + EDGE
        assert bottom <= layout.height + EDGE
        for other in boxes[:i]:
            apart = left >= other[2] or right <= other[0] or top >= other[3] or bottom <= other[1]
            assert apart
    for c in layout.curves:
        for left, top, right, bottom in boxes:
            beside = max(c.x1, c.x2) <= left or min(c.x1, c.x2) >= right
            assert beside or c.y2 <= top + EDGE or c.y1 >= bottom - EDGE


@pytest.mark.parametrize("seed", range(12))
def test_each_arrow_leads_from_its_source_to_its_port(seed):
    sizes, sources = some_graph(seed, 40, 40)
    ranked, layout = drawn(sizes, sources)
    assert not ranked.far
    ends: dict[tuple[float, float], list[tuple[float, float]]] = {}
    for c in layout.curves:
        ends.setdefault((round(c.x2, 3), round(c.y2, 3)), []).append((round(c.x1, 3), round(c.y1, 3)))
    boxes = rectangles(sizes, layout)
    starts = {(round((b[0] + b[2]) / 2, 3), round(b[3], 3)): k for k, b in enumerate(boxes)}
    for k, mine in enumerate(sources):
        found = set()
        for left, wide in zip(layout.positions[k].ports, sizes[k].ports, strict=True):
            place = (round(left + wide / 2, 3), round(layout.positions[k].top, 3))
            while place not in starts:
                (place,) = ends[place]
            found.add(starts[place])
        assert found == set(mine)


def test_layers_with_leaves_of_their_own_stand_in_a_column():
    """Each reads the one before it, and a leaf that stands beside it; the column does not wander off to a side."""
    sources = [[], [], [0, 1]]
    for _ in range(12):
        sources += [[], [len(sources) - 1, len(sources)]]
    sizes = [Size(200.0, 40.0, tuple(100.0 for _ in mine)) for mine in sources]
    layout = drawn(sizes, sources)[1]
    left = [position.left for position, mine in zip(layout.positions, sources, strict=True) if mine]
    assert max(left) - min(left) < 60
    assert layout.width < 3 * 200


@long
@pytest.mark.parametrize("near", [3, 40, 3000])
def test_thousands_take_seconds(near):
    sizes, sources = some_graph(1, 3000, near)
    begun = time.process_time()
    _, layout = drawn(sizes, sources)
    assert time.process_time() - begun < 40
    assert len(layout.curves) < 200_000


@pytest.mark.parametrize("seed", range(20))
def test_places_are_the_best_there_are(seed):
    """No small move that keeps the distances brings them nearer to where they are wanted."""
    chance = np.random.default_rng(seed)
    targets, weights, gaps = chance.normal(size=8) * 10, chance.uniform(0.1, 5, 8), chance.uniform(1, 5, 7)
    best = np.array(placed(list(targets), list(weights), list(gaps)))
    assert (np.diff(best) >= gaps - 1e-9).all()

    def cost(x):
        return float(weights @ (x - targets) ** 2)

    for _ in range(300):
        other = best + chance.normal(size=8) * 0.1 * (chance.random(8) < 0.5)
        if (np.diff(other) >= gaps).all():
            assert cost(other) >= cost(best) - 1e-9
