"""The positions of boxes and arrows: in layers from top to bottom, with few crossings, nothing above anything else.

The method is Sugiyama's: ranks, then orders within layers, then coordinates, which heed how wide each box is and where
its arrows end.  A value that several boxes read has one line for all of them, which branches off: a long line costs no
more than a lane does.

Orders are found by barycentres (K. Sugiyama, S. Tagawa, M. Toda, "Methods for visual understanding of hierarchical
system structures", IEEE Trans. SMC 11(2), 1981).  Where lines still cross and fast-sugiyama is installed, its order is
taken if it has fewer crossings.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

_SPAN = 24  # layers that a line may pass
_PASSES = 30  # the same for all lines together, by box
_SWEEPS = 12
_SMALL = 800  # items that are put in order with more care
_LIBRARY = 1000  # items: for two thousand, fast-sugiyama can take minutes, in which it cannot be interrupted
_LINE = 10.0  # of room for a line between boxes
_GAP = 24.0  # between boxes
_WEIGHTS = (2.0, 3.0, 8.0)  # of links that are to be straight: between boxes, to a line, of a line
_FROM_LEAF = 0.05

Layers = list[list[int]]


class Ranks(NamedTuple):
    """The layer of each box, and the arrows that would pass too many: by the box and the position."""

    of: tuple[int, ...]
    far: frozenset[tuple[int, int]]


def ranks(sources: Sequence[Sequence[int]]) -> Ranks:
    """Return the layers of boxes that read others, their `sources`: each right above the first of its readers.

    An arrow over more layers than a line may pass is far: in its place, the reader has the name of the source.

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
    arrows = ((k, i, s) for k, mine in enumerate(sources) for i, s in enumerate(mine))
    return Ranks(tuple(of), frozenset((k, i) for k, i, s in arrows if of[k] - of[s] > span))


def _layers_crossed(sources: Sequence[Sequence[int]], of: Sequence[int], span: int) -> int:
    """Return how many layers the lines cross, of those that cross no more than a span."""
    longest: dict[int, int] = {}
    for k, mine in enumerate(sources):
        for s in mine:
            if of[k] - of[s] <= span:
                longest[s] = max(longest.get(s, 0), of[k] - of[s] - 1)
    return sum(longest.values())


def placed(targets: Sequence[float], weights: Sequence[float], gaps: Sequence[float]) -> list[float]:
    """Return x with x[k+1] - x[k] ≥ gaps[k] for which Σ weights·(x - targets)² is least.

    It is isotonic regression, by pooling neighbours that want to be nearer than they may (M. Ayer and others, "An
    empirical distribution function for sampling with incomplete information", Ann. Math. Statist. 26(4), 1955).

    >>> placed([0, 0, 10], [1, 1, 1], [4, 4])
    [-2.0, 2.0, 10.0]
    """
    shifts = [0.0, *accumulate(gaps)]
    blocks: list[tuple[float, float, int]] = []  # the position, the weight, how many
    for target, weight, shift in zip(targets, weights, shifts, strict=True):
        position, total, count = float(target - shift), float(weight), 1
        while blocks and blocks[-1][0] > position:
            before, heavy, many = blocks.pop()
            position = (before * heavy + position * total) / (heavy + total)
            total, count = total + heavy, count + many
        blocks.append((position, total, count))
    result = [position for position, _, count in blocks for _ in range(count)]
    return [position + shift for position, shift in zip(result, shifts, strict=True)]


class Size(NamedTuple):
    """The size of a box: its width and height, and the width of the label at each arrow into it."""

    width: float
    height: float
    ports: tuple[float, ...] = ()

    @classmethod
    def of(cls, width: float, height: float, ports: list[float]) -> Size:
        """Return the size of a box at least so wide; where it is wider than its ports, they share the rest."""
        if ports and sum(ports) < width:
            ports = [p + (width - sum(ports)) / len(ports) for p in ports]
        return cls(max(width, sum(ports)), height, tuple(ports))


class Position(NamedTuple):
    """The position of a box: its left upper corner, and the left end of the label at each arrow into it."""

    left: float
    top: float
    ports: tuple[float, ...]


class Curve(NamedTuple):
    """A piece of a line: from one layer to the next, or straight down through one; at its end may be an arrowhead."""

    x1: float
    y1: float
    x2: float
    y2: float
    head: bool


@dataclass(frozen=True)
class Layout:
    """Positions of boxes, the lines between them, and the size of it all."""

    positions: tuple[Position, ...]
    curves: tuple[Curve, ...]
    width: float
    height: float


@dataclass
class _Item:
    """A box in its layer, or a line that passes it; `above` are the items that it reads, by its ports."""

    layer: int
    width: float
    box: int | None
    above: list[_Item]
    ports: tuple[float, ...] = ()
    position: int = 0
    x: float = 0.0  # of its middle
    order: tuple[int, ...] = ()  # of its ports, from the left

    def offsets(self) -> list[float]:
        """Return where each port is, from the middle of the item."""
        if not self.ports:
            return [0.0] * len(self.above)
        result = [0.0] * len(self.ports)
        left = -sum(self.ports) / 2
        for k in self.order:
            result[k] = left + self.ports[k] / 2
            left += self.ports[k]
        return result


def layered(sizes: Sequence[Size], sources: Sequence[Sequence[int]], ranked: Ranks, horizontal: bool = False) -> Layout:
    """Return the layout of boxes that read others; what led down leads to the right if it is horizontal.

    Ports are where each arrow ends, from the left or from the top.
    """
    result = _Layers(sizes, sources, ranked)
    result.arrange()
    _set_coordinates(result.layers)
    layout = _drawn(result, sizes, ranked)
    if not horizontal:
        return layout
    positions = tuple(Position(p.top, p.left, p.ports) for p in layout.positions)
    curves = tuple(Curve(c.y1, c.x1, c.y2, c.x2, c.head) for c in layout.curves)
    return Layout(positions, curves, layout.height, layout.width)


class _Layers:
    """The items of each layer, and the links between them."""

    def __init__(self, sizes: Sequence[Size], sources: Sequence[Sequence[int]], ranked: Ranks) -> None:
        self.layers: list[list[_Item]] = [[] for _ in range(max(ranked.of, default=-1) + 1)]
        boxes = enumerate(zip(sizes, ranked.of, strict=True))
        self.boxes = [self._add(_Item(rank, size.width, k, [], size.ports)) for k, (size, rank) in boxes]
        self.far = ranked.far
        lines: dict[tuple[int, int], _Item] = {}
        for k, mine in enumerate(sources):
            for i, s in enumerate(mine):
                item = self.boxes[s]
                for rank in range(ranked.of[s] + 1, ranked.of[k] if (k, i) not in self.far else 0):
                    if (s, rank) not in lines:
                        lines[s, rank] = self._add(_Item(rank, _LINE, None, [item]))
                    item = lines[s, rank]
                self.boxes[k].above.append(item)
        self.near = {
            id(self.boxes[k]): [i for i in range(len(mine)) if (k, i) not in self.far] for k, mine in enumerate(sources)
        }

    def _add(self, item: _Item) -> _Item:
        item.position = len(self.layers[item.layer])
        self.layers[item.layer].append(item)
        return item

    def links(self, item: _Item) -> list[_Item]:
        """Return the items of the layer above that an item is linked to."""
        return item.above if item.box is None else [item.above[i] for i in self.near[id(item)]]

    def arrange(self) -> None:
        """Put the items of each layer in an order with few crossings."""
        items = [item for layer in self.layers for item in layer]
        number = {id(item): k for k, item in enumerate(items)}
        above = [[number[id(other)] for other in self.links(item)] for item in items]
        self.layers = [[items[k] for k in layer] for layer in ordered([item.layer for item in items], above)]
        for layer in self.layers:
            for position, item in enumerate(layer):
                item.position = position
        for item in self.boxes:
            item.order = tuple(sorted(range(len(item.above)), key=lambda k: (item.above[k].position, k)))


def _links(item: _Item) -> Iterator[tuple[_Item, float]]:
    """Yield the items above, with the position of the port from the middle of the item."""
    for other, offset in zip(item.above, item.offsets(), strict=True):
        if other.layer == item.layer - 1:
            yield other, offset


def _weighted_links(item: _Item) -> Iterator[tuple[_Item, float, float]]:
    """Yield the items above, with the distance that each should have from the item, and how much it matters.

    Long lines are to be straight, and then the way of what is computed: it leads straight down where leaves alone join
    it, and these are beside it.
    """
    links = list(_links(item))
    alone = sum(bool(other.above) for other, _ in links) == 1
    for other, offset in links:
        if other.above:
            yield other, 0.0 if alone else offset, _WEIGHTS[(item.box is None) + (other.box is None)]
        else:
            yield other, offset, _FROM_LEAF


def _set_coordinates(layers: Sequence[list[_Item]]) -> None:
    """Move items towards what they are linked with, by turns from above and from below."""
    above = {id(item): list(_weighted_links(item)) for layer in layers for item in layer}
    below: dict[int, list[tuple[_Item, float, float]]] = {}
    for layer in layers:
        for item in layer:
            for other, offset, weight in above[id(item)]:
                below.setdefault(id(other), []).append((item, -offset, weight))
    for layer in layers:
        _move(layer, {})
    for turn in range(_SWEEPS):
        both = turn >= _SWEEPS // 2
        for layer in layers if turn % 2 == 0 else reversed(layers):
            wanted = {
                id(i): (above[id(i)] if both or turn % 2 == 0 else [])
                + (below.get(id(i), []) if both or turn % 2 else [])
                for i in layer
            }
            _move(layer, wanted)


def _move(layer: Sequence[_Item], wanted: dict[int, list[tuple[_Item, float, float]]]) -> None:
    """Move the items of a layer towards the wanted positions, as far as their order and their widths allow."""
    targets, weights, gaps = [], [], []
    for k, item in enumerate(layer):
        links = wanted.get(id(item), [])
        weight = sum(w for *_, w in links)
        targets.append(sum((o.x - offset) * w for o, offset, w in links) / weight if links else item.x)
        weights.append(weight or 0.01)
        if k:
            gaps.append((layer[k - 1].width + item.width) / 2 + _GAP)
    for item, x in zip(layer, placed(targets, weights, gaps), strict=True):
        item.x = x


def _drawn(layering: _Layers, sizes: Sequence[Size], ranked: Ranks) -> Layout:
    left = min(i.x - i.width / 2 for layer in layering.layers for i in layer)
    for layer in layering.layers:
        for item in layer:
            item.x -= left
    tops, bottoms = _rows(layering, sizes)
    positions = []
    for item, size in zip(layering.boxes, sizes, strict=True):
        corner = item.x - size.width / 2
        ports = tuple(item.x + o - p / 2 for o, p in zip(item.offsets(), size.ports, strict=True))
        positions.append(Position(corner, tops[item.layer], ports))
    width = max(i.x + i.width / 2 for layer in layering.layers for i in layer)
    curves = tuple(_curves(layering, sizes, tops, bottoms))
    return Layout(tuple(positions), curves, width, bottoms[-1])


def _rows(layering: _Layers, sizes: Sequence[Size]) -> tuple[list[float], list[float]]:
    """Return the top and the bottom of each layer; the gap between layers grows with the slant of the lines between."""
    tops, bottoms = [0.0], list[float]()
    for k, layer in enumerate(layering.layers):
        bottoms.append(tops[-1] + max((sizes[i.box].height for i in layer if i.box is not None), default=0.0))
        after = layering.layers[k + 1] if k + 1 < len(layering.layers) else []
        aside = max((abs(item.x + o - other.x) for item in after for other, o in _links(item)), default=0.0)
        tops.append(bottoms[-1] + min(96.0, max(30.0, aside / 6)))
    return tops, bottoms


def _curves(
    layering: _Layers, sizes: Sequence[Size], tops: Sequence[float], bottoms: Sequence[float]
) -> Iterable[Curve]:
    """Yield the lines: straight through layers, curved between them."""
    straight = set[int]()
    for layer in layering.layers:
        for item in layer:
            if item.box is None:
                yield Curve(item.x, tops[item.layer], item.x, bottoms[item.layer], False)
            for other, offset in _links(item):
                end = bottoms[other.layer]
                if other.box is not None and id(other) not in straight:
                    straight.add(id(other))
                    start = tops[other.layer] + sizes[other.box].height
                    if start < end:
                        yield Curve(other.x, start, other.x, end, False)
                yield Curve(other.x, end, item.x + offset, tops[item.layer], item.box is not None)


# The order of items within layers, from left to right, in which few of the links between neighbouring layers cross


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
