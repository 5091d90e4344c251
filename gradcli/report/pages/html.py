r"""A page as HTML, with formulas as LaTeX between \( and \) or \[ and \], which MathJax and KaTeX set."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape

from gradcli.explain.sections import (
    Block,
    Code,
    Equations,
    Grid,
    Images,
    Math,
    Matrix,
    Page,
    Panel,
    Section,
    Text,
    Typed,
    in_parts,
    with_code,
)
from gradcli.report.latex_math import LatexWriter
from gradcli.report.pages.latex import equations, matrices
from gradcli.report.pages.markdown import headed
from gradcli.report.pictures.drawn import GAP, Drawn, beside
from gradcli.report.text_math import TextWriter
from gradcli.wrapping import visible

_SIGNS = re.compile(r"[$\\]")  # that begin mathematics, or could
_LOOKS = "font:11px monospace;background:#fff;max-width:100%"


def render(page: Page, digits: int | None) -> str:
    """Return a page as an HTML fragment; `digits` significant digits of each number."""
    writers = TextWriter(page.style, digits), LatexWriter(page.style, digits)
    parts: list[str] = []
    for heading, section in headed(page):
        parts += [f"<h3>{_words(heading)}</h3>"] if heading else []
        parts += _section(section, *writers)
    return '<div class="gradcli">\n' + "\n".join(parts) + "\n</div>\n"


def document(pages: str) -> str:
    """Return pages as a document; KaTeX's auto-render extension, or MathJax, sets its formulas where it is added."""
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>gradcli</title>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{pages.rstrip()}\n</body></html>\n'


def _section(section: Section, text: TextWriter, latex: LatexWriter) -> Iterator[str]:
    if section.title:
        yield f"<p><b>{_sentence(section.title, latex)}</b></p>"
    for block in section.blocks:
        yield from _block(block, text, latex)


def _block(block: Block, text: TextWriter, latex: LatexWriter) -> Iterator[str]:
    match block:
        case Text(parts):
            yield f"<p>{_sentence(parts, latex)}</p>"
        case Equations(lines):
            yield from (_display(f"\\begin{{aligned}}\n{part}\n\\end{{aligned}}") for part in equations(lines, latex))
        case Matrix():
            yield from map(_display, matrices(block, latex))
        case Grid(header, rows):
            head = "".join(f"<th>{_sentence(in_parts(title), latex)}</th>" for title in header)
            body = "".join(f"<tr>{''.join(f'<td>{_math(cell, latex)}</td>' for cell in row)}</tr>\n" for row in rows)
            yield f"<table>\n<tr>{head}</tr>\n{body}</table>"
        case Code(lines, caption):
            yield from [f"<p>{_words(caption)}:</p>"] * bool(caption)
            yield f"<pre><code>{_words(chr(10).join(map(visible, lines)))}</code></pre>"
        case Images(panels):
            yield _images(panels, text)


def _images(panels: Sequence[Panel], writer: TextWriter) -> str:
    """Return images beside each other, as SVG."""
    images = [Drawn(panel, writer) for panel in panels]
    width, height = beside(images), max(image.height for image in images)
    parts: list[str] = []
    left = 0.0
    for image in images:
        parts += image.svg(left, 0)
        left += image.width + GAP
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} style="{_LOOKS}">{"".join(parts)}</svg>'


def _sentence(parts: Sequence[Math], latex: LatexWriter) -> str:
    """Return words with mathematics between them, and code between backticks."""
    return "".join(_part(p, latex) for p in parts).strip()


def _part(part: Math, latex: LatexWriter) -> str:
    match part:
        case str():
            return with_code(part, _words, _code)
        case Typed(text):
            return _code(text)
    return _math(part, latex)


def _code(text: str) -> str:
    return f"<code>{_words(text)}</code>"


def _words(words: str) -> str:
    r"""Return words in which no sign is HTML's, and none begins mathematics.

    >>> print(_words("<b> & $x$"))
    &lt;b&gt; &amp; <span>$</span>x<span>$</span>
    """
    return _SIGNS.sub(lambda sign: f"<span>{sign[0]}</span>", escape(words))


def _math(math: Math, latex: LatexWriter) -> str:
    return _words(math) if isinstance(math, str) else rf"\({escape(latex.write(math), quote=False)}\)"


def _display(body: str) -> str:
    return f"<div>\\[\n{escape(body, quote=False)}\n\\]</div>"
