"""The picture of a live page: the boxes and lines of the static picture, with marks for the numbers that change."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gradcli.pages.live import LiveInside, LivePage
from gradcli.pages.picture.boxes import Box, Picture
from gradcli.pages.sections import Formula
from gradcli.report.live.numbers import exact, shown
from gradcli.report.pictures.drawing import Line, Sign, escaped, laid_out
from gradcli.report.pictures.labels import Labels, lines_of
from gradcli.text.wrapping import cells

_LETTERS, _SMALL_LETTERS = 34, 30  # of a line
_NUMBER, _ARRAY, _SMALL_ARRAY = 10, 27, 17  # letters that a number or an array may have
_MARGIN = 12.0
_OWN_LOOK = re.compile(r' class="gg-text"|(?<=><path) class="gg-(?:line|head)"')  # as the style of the page has it


def drawn(page: LivePage, horizontal: bool = False) -> str:
    """Return the picture as an SVG element, and the insides of its boxes as templates."""
    parts = [_svg(_Signs(page, page.drawing, page.inside, "", horizontal), f"{page.title[:200]}: the graph", "picture")]
    parts += _templates(page, "", horizontal)
    return "\n".join(parts)


def insides(page: LivePage, above: str = "") -> Iterator[tuple[str, LiveInside]]:
    """Yield the insides of a page's boxes, and of the boxes in these, by their keys: `3` and `3.1`."""
    for k, inside in page.insides.items():
        yield f"{above}{k}", inside
        if inside.page is not None:
            yield from insides(inside.page, f"{above}{k}.")


def _templates(page: LivePage, above: str, horizontal: bool) -> Iterator[str]:
    for k, inside in page.insides.items():
        key, own = f"{above}{k}", inside.page
        shown, opening = (page, None) if own is None else (own, f"{key}.")
        signs = _Signs(shown, inside.drawing, inside.inside, opening, horizontal)
        title = f"inside {page.drawing.boxes[k].name}"
        yield f'<template data-inside="{key}">{_svg(signs, title, "inside")}</template>'
        if own is not None:
            yield from _templates(own, f"{key}.", horizontal)


def _svg(signs: _Signs, title: str, look: str) -> str:
    """Return the boxes and arrows of a picture as an SVG element of the CSS class `look`."""
    drawing = laid_out(signs.drawing.boxes, signs.sign, signs.horizontal)
    width, height = (side + 2 * _MARGIN for side in (drawing.layout.width, drawing.layout.height))
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    size += " data-horizontal" * signs.horizontal
    return "\n".join(
        [
            f'<svg class="{look}" role="group" aria-label="{escaped(title)}" {size}>',
            f'<g transform="translate({_MARGIN} {_MARGIN})">',
            *(_OWN_LOOK.sub("", element) for element in drawing.elements()),
            "</g></svg>",
        ]
    )


class _Signs:
    """The content of boxes, whose numbers are elements that the script fills.

    `inside` are the nodes of the page in each of the drawing's boxes; those of the page's own open, by keys that begin
    with `above`.
    """

    def __init__(
        self, page: LivePage, drawing: Picture, inside: Sequence[Sequence[int]], above: str | None, horizontal: bool
    ) -> None:
        self.page, self.drawing, self.above, self.horizontal = page, drawing, above, horizontal
        self.labels = Labels(drawing, 6)
        self.indices = []
        for box, nodes in zip(drawing.boxes, inside, strict=True):
            named = (n for n in reversed(nodes) if page.nodes[n].name == box.name)
            self.indices.append(-1 if box.ends else next(named, -1))
        self.box_of = {n: k for k, nodes in enumerate(inside) for n in nodes}
        self.passes: dict[tuple[int, int], list[int]] = {}  # by the boxes that they lead from and to
        for i, p in enumerate(page.passes):
            ends = (self.box_of.get(p.node, -1), self.box_of.get(page.nodes[p.node].args[p.position], -1))
            self.passes.setdefault(ends, []).append(i)

    def sign(self, k: int, far: Sequence[str]) -> Sign:
        """Return the content of a box, given the names of the sources whose lines are not drawn."""
        box, node = self.drawing.boxes[k], self.indices[k]
        ports, passes = [], []
        for arrow, text, name in zip(box.arrows, self.labels.locals(box), far, strict=True):
            between = self.passes.get((k, arrow.source), [])
            is_number = isinstance(arrow.local, Formula) and arrow.local.number is not None
            said = [Line("local", f"from {name}")] if name else []
            ports.append([*said, *self.port(text, [] if is_number or len(box.nodes) != 1 else between)])
            passes.append(" ".join(map(str, between)))
        opens = self.above is not None and k in self.page.insides
        ours = f' data-box="{escaped(box.name)}" data-node="{node}"' if node >= 0 or opens else ""
        ours += f' data-inside="{self.above}{k}" aria-expanded="false"' if opens else ""
        return Sign(box, ports, [*self.lines(box, node)], (), ours, passes, self.horizontal, opens)

    def port(self, text: str, between: Sequence[int]) -> list[Line]:
        """Return the label of an arrow: its rule, and the number of an elementwise one `between` the boxes."""
        lines = [Line("local", line) for line in lines_of(text, _SMALL_LETTERS)] if text else []
        passes = self.page.passes
        if not lines or not between or any(passes[p].pull.slope is None for p in between):
            return lines
        room = 3 + (_SMALL_ARRAY if self.page.nodes[passes[between[0]].node].shape else _NUMBER)
        mark = f'<tspan data-slope="{" ".join(map(str, between))}"></tspan>'
        return _with_number(lines, mark, room, _SMALL_LETTERS + 6)

    def lines(self, box: Box, node: int) -> Iterator[Line]:
        """Yield the lines of a box: its text and value, its adjoint, and the sizes that a loop shows of its rounds.

        `node` is the one whose numbers it shows, -1 where it shows none.
        """
        lines = [Line("text", line) for line in self.labels.value_lines(box, _LETTERS)]
        if node < 0:
            yield from lines
            return
        n = self.page.nodes[node]
        room = 3 + (_ARRAY if n.shape else _NUMBER)
        yield from _with_number(lines, self.mark("value", node), room, _LETTERS + 4)
        if n.adjoint is not None:
            yield Line("adjoint", n.bar, self.mark("adjoint", node), room)
        for rounds, ids in zip(box.rounds, self.page.rounds.get(node, ()), strict=False):
            said = "".join(map(self.labels.writer.write, rounds.math()))
            yield Line("adjoint", said, f'<tspan data-rounds="{ids}"></tspan>', 24 + min(24, len(rounds.reads)))

    def mark(self, kind: str, k: int) -> str:
        """Return the part of a line that changes."""
        n = self.page.nodes[k]
        array = n.value if kind == "value" else n.adjoint
        if n.shape or array is None:
            return f' = <tspan data-{kind}="{k}"></tspan>'
        number = f'data-{kind}-of="{escaped(n.name)}" data-number="{exact(float(array))}"'
        return f' = <tspan data-{kind}="{k}" {number}>{shown(float(array))}</tspan>'


def _with_number(lines: Sequence[Line], mark: str, room: int, letters: int) -> list[Line]:
    """Return lines with a number behind the last one, or below it where that is long."""
    *others, last = lines
    if cells(last.text) + room <= letters:
        return [*others, last._replace(svg=mark, room=room)]
    return [*lines, Line(last.look, "  ", mark, room)]
