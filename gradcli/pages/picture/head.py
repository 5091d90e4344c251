"""The head of a document of a result: its title, and the picture of the system."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gradcli.graph.graph import appearance
from gradcli.pages.picture.boxes import Picture, View
from gradcli.pages.picture.picture import least_boxes, picture
from gradcli.pages.question import Result
from gradcli.pages.sections import Math, Name

_NAMES = 6  # in a title: a line
_NUMBERS = 4  # of an array that a picture of a sheet has room for: the page itself shows larger ones
_BOXES = 40  # more are too small to read on a sheet


class Head(NamedTuple):
    """A title as words and names, and a picture; None where it would be too large for a sheet."""

    title: tuple[Math, ...]
    picture: Picture | None


def head(result: Result) -> Head:
    """Return the head of a document: the picture has the numbers of one point and call, if they are few."""
    graph, kind = result.graph, result.question.plural
    by = [name for name in appearance(graph) if name in result.wrt]
    names = [*_listed(graph.outputs), " with respect to ", *_listed(by)]
    return Head((f"{kind[0].upper()}{kind[1:]} of ", *names), _picture(result))


def _picture(result: Result) -> Picture | None:
    if not result.points or least_boxes(result.graph) > _BOXES:
        return None
    first, *others = result.points
    numbers = not others and all(n.size <= _NUMBERS for n in result.graph.nodes)
    at = first.at if result.numeric and numbers else None
    v = first.calls[0].v if len(first.calls) == 1 and not others else None
    drawn = picture(result.graph, View(result.wrt, at, v))
    return drawn if len(drawn.boxes) <= _BOXES else None


def _listed(names: Iterable[str]) -> Iterator[Math]:
    """Yield names with commas between them, the first ones of many."""
    for k, name in enumerate(names):
        if k == _NAMES:
            yield ", …"
            return
        yield from (", ", Name(name)) if k else (Name(name),)
