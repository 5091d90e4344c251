"""A picture in Graphviz's language: `dot -Tpdf` draws it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from gradcli.files import printable
from gradcli.pages.picture.boxes import Picture
from gradcli.report.pictures.labels import INTERMEDIATE, LEAF, OUTPUT, Labels, lines_of
from gradcli.report.pictures.render import PLAIN, Options

_LETTERS, _LABEL = 40, 28  # of a line in a box, and at an arrow
_BREAK = '<br align="left"/>'
_LOOKS = {
    LEAF: 'style="rounded,filled", fillcolor="#e8f5e9", color="#2e7d32"',
    INTERMEDIATE: "",
    OUTPUT: 'style=filled, fillcolor="#e3effc", color="#0b57b0", penwidth=2.5',
}


def render(picture: Picture, digits: int | None, options: Options = PLAIN) -> str:
    """Return a picture as a graph of Graphviz."""
    return "\n".join(_lines(picture, Labels(picture, digits), options)) + "\n"


def _lines(picture: Picture, labels: Labels, options: Options) -> Iterator[str]:
    yield "digraph {"
    direction = ", rankdir=LR" if options.horizontal else ""
    yield f'  graph [fontname="monospace", fontsize=11, labeljust=l, labelloc=b{direction}]'
    yield '  node [shape=box, fontname="monospace", fontsize=11, color="#8c959f"]'
    yield '  edge [fontname="monospace", fontsize=9, color="#6e7781", fontcolor="#57606a"]'
    if foot := labels.foot():
        yield f"  label={_quoted(foot)}"
    for k, box in enumerate(picture.boxes):
        label = _label(labels.value_lines(box, _LETTERS), [*labels.adjoint_lines(box, _LETTERS), *labels.paths(box)])
        yield f"  n{k} [{', '.join(filter(None, [f'label=<{label}>', _LOOKS[box.kind]]))}]"
        for arrow, text in zip(box.arrows, labels.locals(box), strict=True):
            said = f" [label={_quoted([f'  {line}' for line in lines_of(text, _LABEL)])}]" if text else ""
            yield f"  n{arrow.source} -> n{k}{said}"
        if box.repeats:
            yield f'  n{k} -> n{k} [label="  {box.times:,} times"]'
    yield "}"


def _label(value: Sequence[str], adjoint: Sequence[str]) -> str:
    """Return the label of a box, with the adjoint a little lower, so that its bar does not underline the line above."""
    below = f'<font point-size="4"> </font>{_BREAK}<font color="#b3261e">{_rows(adjoint)}</font>' if adjoint else ""
    return _rows(value) + below


def _rows(lines: Sequence[str]) -> str:
    return "".join(escape(printable(line)) + _BREAK for line in lines)


def _quoted(lines: Sequence[str]) -> str:
    r"""Return lines, aligned at the left, as a string of Graphviz.

    >>> print(_quoted(['a = "b"', 'c']))
    "a = \"b\"\lc\l"
    """
    escaped = (printable(line).replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return '"' + "".join(f"{line}\\l" for line in escaped) + '"'
