"""A picture in Mermaid's language, which GitHub draws where Markdown has a block of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gradcli.files import printable
from gradcli.pages.picture.boxes import Picture
from gradcli.report.pictures.labels import INTERMEDIATE, LEAF, OUTPUT, Labels, lines_of
from gradcli.report.pictures.render import PLAIN, Options

_LETTERS, _LABEL = 40, 28
_SHAPES = {LEAF: ('("', '")'), INTERMEDIATE: ('["', '"]'), OUTPUT: ('["', '"]')}
# ASCII that Mermaid or Markdown may read as a sign.
_SIGN = re.compile(r"(?=[\0-\x7f])[^a-zA-Z0-9 .,=+/()@:-]")


def render(picture: Picture, digits: int | None, options: Options = PLAIN) -> str:
    """Return a picture as a flowchart of Mermaid."""
    return "\n".join(_lines(picture, Labels(picture, digits), options)) + "\n"


def _lines(picture: Picture, labels: Labels, options: Options) -> Iterator[str]:
    yield '%%{init: {"flowchart": {"wrappingWidth": 480}}}%%'  # or it breaks lines anywhere, at 200 pixels
    yield f"flowchart {'LR' if options.horizontal else 'TD'}"
    for k, box in enumerate(picture.boxes):
        left, right = _SHAPES[box.kind]
        lines = [*labels.value_lines(box, _LETTERS), *labels.adjoint_lines(box, _LETTERS), *labels.paths(box)]
        yield f"  n{k}{left}{_label(lines)}{right}{f':::{box.kind}' * (box.kind != INTERMEDIATE)}"
        for arrow, text in zip(box.arrows, labels.locals(box), strict=True):
            said = f'|"{_label(lines_of(text, _LABEL))}"|' if text else ""
            yield f"  n{arrow.source} -->{said} n{k}"
        if box.repeats:
            yield f'  n{k} -->|"{box.times:,} times"| n{k}'
    if foot := labels.foot():
        yield f'  foot["{_label(foot)}"]:::foot'
    yield "  classDef leaf stroke:#2e7d32,stroke-width:2px"
    yield "  classDef output stroke:#0b57b0,stroke-width:4px"
    if foot:
        yield "  classDef foot fill:none,stroke:none"


def _label(lines: Sequence[str]) -> str:
    """Return lines as a label; what Mermaid or Markdown would read as a sign is written by its number.

    >>> _label(["y = x*x < 2", "z"])
    'y = x#42;x #60; 2<br>z'
    """
    return "<br>".join(_SIGN.sub(lambda sign: f"#{ord(sign[0])};", printable(line)) for line in lines)
