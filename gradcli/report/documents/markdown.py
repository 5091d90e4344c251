"""A page as GitHub's Markdown: fences of mathematics for equations and matrices, tables for the steps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gradcli.pages import sections
from gradcli.pages.results import PLAIN
from gradcli.report.documents.latex import equations, matrices
from gradcli.report.image_text import image_lines
from gradcli.report.latex_math import LatexWriter
from gradcli.report.text_math import TextWriter
from gradcli.text.wrapping import PIPE, visible

_TITLES = {  # of sections whose names do not say it
    "v": "The cotangent",
    "u": "The tangent",
    "jvp": "J·u",
    "grad": "Gradients",
    "pytorch": "PyTorch",
    "script": "In the script",
}


def with_headings(page: sections.Page) -> Iterator[tuple[str, sections.Section]]:
    """Yield the sections of a page with their headings; one of the same name as the section before has none."""
    before = ""
    for section in page.sections:
        yield "" if section.name == before else _TITLES.get(section.name, section.name.capitalize()), section
        before = section.name


def render(page: sections.Page, digits: int | None) -> str:
    """Return a page as Markdown; `digits` significant ones of each number."""
    writers = TextWriter(page.style, digits), LatexWriter(page.style, digits)
    parts: list[str] = []
    for heading, section in with_headings(page):
        parts += [f"### {heading}"] if heading else []
        parts += [f"**{_sentence(section.title, writers[0])}**"] if section.title else []
        for block in section.blocks:
            parts += _block(block, *writers)
    return "\n\n".join(parts) + "\n"


PICTURE = "mermaid"


def headed(title: Sequence[sections.Math], picture: str) -> str:
    """Return the head of a document: its title, and a picture that GitHub draws, if there is one."""
    parts = [f"# {_sentence(title, TextWriter(PLAIN, None))}"]
    return "\n\n".join([*parts, *([fenced(PICTURE, picture.rstrip().split("\n"))] if picture else []), ""])


def document(pages: str) -> str:
    """Return pages as a document, which Markdown is as it is."""
    return pages


def _block(block: sections.Block, text: TextWriter, latex: LatexWriter) -> Iterator[str]:
    match block:
        case sections.Text(parts):
            yield _sentence(parts, text)
        case sections.Equations(lines):
            yield from (_math(f"\\begin{{aligned}}\n{part}\n\\end{{aligned}}") for part in equations(lines, latex))
        case sections.Matrix():
            yield from map(_math, matrices(block, latex))
        case sections.Grid(header, rows):
            titles = [_sentence(sections.in_parts(title), text) for title in header]
            head = [f"| {' | '.join(titles)} |", f"|{'---|' * len(titles)}"]
            # A bar in a cell would end it.
            cells = ([code(text.write(cell)).replace("|", r"\|") for cell in row] for row in rows)
            yield "\n".join([*head, *(f"| {' | '.join(row)} |" for row in cells)])
        case sections.Code():
            yield from [f"{_escaped(block.caption)}:"] * bool(block.caption)
            yield fenced(block.language, block.lines)
        case sections.Images():  # GitHub shows no image that a file holds itself
            yield fenced("", image_lines(block, text, PIPE, styled=False))


def _sentence(parts: Sequence[sections.Math], text: TextWriter) -> str:
    """Return words with mathematics between them; what begins them begins no heading, list or quotation."""
    whole = "".join(_escaped(p) if isinstance(p, str) else code(text.write(p)) for p in parts).strip()
    return _BLOCK.sub(r"\1\\\2", whole, count=1)


def _escaped(words: str) -> str:
    """Return words with their signs, and code between backticks as code."""
    return sections.with_code(visible(words), _signs, code)


_BLOCK = re.compile(r"^(\d*)([-+#=.)](?=[#=-]*(?: |$))|>)")
_SIGNS = re.compile(r"[\\*_$<~`]|&(?=#?\w+;)|(?<=\])[(\[:]|(?<=!)\[")


def _signs(words: str) -> str:
    """Return words in which no sign is Markdown's or HTML's.

    >>> print(_signs("a_b <script> ![x](y) &lt; [i, j]"))
    a\\_b \\<script> !\\[x]\\(y) \\&lt; [i, j]
    """
    return _SIGNS.sub(r"\\\g<0>", words)


def fenced(language: str, lines: Sequence[str]) -> str:
    """Return lines verbatim, in a fence that is longer than any of theirs."""
    body = "\n".join(map(visible, lines))
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", body)), 3)
    return f"{fence}{language}\n{body}\n{fence}"


def _math(body: str) -> str:
    r"""Return a display, in a fence, where GitHub leaves every sign as it is; it refuses `\operatorname`."""
    allowed = body.replace(r"\operatorname{", r"\mathrm{")
    return f"```math\n{allowed}\n```"


def code(text: str) -> str:
    """Return a text as code, between more backticks than it has.

    >>> code("x.grad"), code("a`b"), code("`")
    ('`x.grad`', '``a`b``', '`` ` ``')
    """
    text = visible(text)
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    blank = " " if text[:1] == "`" or text[-1:] == "`" or (text[:1] == text[-1:] == " ") else ""
    return f"{fence}{blank}{text}{blank}{fence}" if text else ""
