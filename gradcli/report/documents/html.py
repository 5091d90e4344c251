"""A page as HTML that a browser shows as it is: its own style, and mathematics as MathML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from gradcli.pages import sections
from gradcli.pages.results import PLAIN
from gradcli.report.documents.latex import equations, matrices
from gradcli.report.documents.markdown import with_headings
from gradcli.report.image_svg import GAP, Drawn, beside
from gradcli.report.latex_math import LatexWriter
from gradcli.report.mathml import mathml
from gradcli.report.text_math import TextWriter
from gradcli.text.wrapping import visible

STYLE = "\n" + Path(__file__).with_name("page.css").read_text("utf-8")
_OWN_STYLE = f"<style>{STYLE}</style>\n"
_BODY = """<style>
body { margin: 0; background: #fff; }
@media (prefers-color-scheme: dark) { body { background: #16161a; } }
</style>
"""


def render(page: sections.Page, digits: int | None) -> str:
    """Return a page as an HTML fragment; `digits` significant digits of each number."""
    writers = TextWriter(page.style, digits), LatexWriter(page.style, digits)
    parts: list[str] = []
    for heading, section in with_headings(page):
        parts += [f"<h2>{escape(heading)}</h2>"] if heading else []
        parts += [f"<p><b>{_sentence(section.title, writers[1])}</b></p>"] if section.title else []
        for block in section.blocks:
            parts += _block(block, *writers)
    return f'<div class="gradcli">\n{_OWN_STYLE}' + "\n".join(parts) + "\n</div>\n"


def without_style(pages: str) -> str:
    """Return pages without their style, for a document that has it once."""
    return pages.rstrip().replace(_OWN_STYLE, "")


PICTURE = "svg"


def headed(title: Sequence[sections.Math], picture: str) -> str:
    """Return the head of a document: its title, and a picture, if there is one."""
    drawn = f'<div class="display" tabindex="0">{picture}</div>' if picture else ""
    name = _sentence(title, LatexWriter(PLAIN, None))
    return f'<div class="gradcli" style="padding-bottom:0">\n<h1>{name}</h1>\n{drawn}</div>\n'


def document(pages: str) -> str:
    """Return pages as a document, which has their style once."""
    head = '<meta charset="utf-8"/><meta name="viewport" content="width=device-width"/><title>gradcli</title>'
    body = f"<body>\n<main>\n{without_style(pages)}\n</main>\n</body>"
    return f'<!doctype html>\n<html lang="en"><head>{head}\n{_BODY}{_OWN_STYLE}</head>\n{body}</html>\n'


def _block(block: sections.Block, text: TextWriter, latex: LatexWriter) -> Iterator[str]:
    match block:
        case sections.Text(parts):
            yield f"<p>{_sentence(parts, latex)}</p>"
        case sections.Equations(lines):
            yield from (_display(rf"\begin{{aligned}}{part}\end{{aligned}}") for part in equations(lines, latex))
        case sections.Matrix():
            yield from map(_display, matrices(block, latex))
        case sections.Grid(header, rows):
            titles = [_sentence(sections.in_parts(title), latex) for title in header]
            head = "".join(f"<th>{title}</th>" if title else "<td></td>" for title in titles)
            body = "".join(f"<tr>{''.join(f'<td>{_math(cell, latex)}</td>' for cell in row)}</tr>\n" for row in rows)
            yield f"<table>\n<tr>{head}</tr>\n{body}</table>"
        case sections.Code(lines, caption):
            yield from [f"<p>{escape(caption)}:</p>"] * bool(caption)
            yield f"<pre><code>{escape(chr(10).join(map(visible, lines)))}</code></pre>"
        case sections.Images(panels):
            yield _images(panels, text)


def _images(panels: Sequence[sections.Panel], writer: TextWriter) -> str:
    """Return images beside each other, as SVG."""
    images = [Drawn(panel, writer) for panel in panels]
    width, height = beside(images), max(image.height for image in images)
    parts: list[str] = []
    left = 0.0
    for image in images:
        parts += image.svg(left, 0)
        left += image.width + GAP
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} class="images">{"".join(parts)}</svg>'


def _sentence(parts: Sequence[sections.Math], latex: LatexWriter) -> str:
    """Return words with mathematics between them, and code between backticks."""
    written = (
        sections.with_code(p, escape, _code)
        if isinstance(p, str)
        else _code(p.text)
        if isinstance(p, sections.Typed)
        else _math(p, latex)
        for p in parts
    )
    return "".join(written).strip()


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>"


def _math(math: sections.Math, latex: LatexWriter) -> str:
    return escape(math) if isinstance(math, str) else mathml(latex.write(math))


def _display(body: str) -> str:
    return f'<div class="display" tabindex="0">{mathml(body, display=True)}</div>'
