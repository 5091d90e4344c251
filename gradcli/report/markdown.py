"""A page as GitHub's Markdown: fences of mathematics for equations and matrices, tables for the steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradcli.explain.sections import Block, Code, Equations, Grid, Math, Matrix, Page, Section, Text
from gradcli.report.latex import equations, matrices
from gradcli.report.latex_math import LatexWriter
from gradcli.report.text_math import TextWriter

_TITLES = {  # of sections whose names do not say it
    "v": "The cotangent",
    "u": "The tangent",
    "jvp": "J·u",
    "grad": "Gradients",
    "pytorch": "PyTorch",
    "script": "In the script",
}


def render(page: Page, digits: int | None) -> str:
    """Return a page as Markdown; `digits` significant ones of each number."""
    writers = TextWriter(page.style, digits), LatexWriter(page.style, digits)
    parts: list[str] = []
    before = ""
    for section in page.sections:
        if section.name != before:
            parts.append(f"### {_TITLES.get(section.name, section.name.capitalize())}")
        before = section.name
        parts += _section(section, *writers)
    return "\n\n".join(parts) + "\n"


def _section(section: Section, text: TextWriter, latex: LatexWriter) -> Iterator[str]:
    if section.title:
        yield f"**{_sentence(section.title, text)}**"
    for block in section.blocks:
        yield from _block(block, text, latex)


def _block(block: Block, text: TextWriter, latex: LatexWriter) -> Iterator[str]:
    match block:
        case Text(parts):
            yield _sentence(parts, text)
        case Equations(lines):
            yield from (_math(f"\\begin{{aligned}}\n{part}\n\\end{{aligned}}") for part in equations(lines, latex))
        case Matrix():
            yield from map(_math, matrices(block, latex))
        case Grid(header, rows):
            yield _table(header, [[text.write(cell) for cell in row] for row in rows])
        case Code():
            yield from [f"{block.caption}:"] * bool(block.caption)
            yield f"```{block.language}\n" + "\n".join(block.lines) + "\n```"


def _sentence(parts: Sequence[Math], text: TextWriter) -> str:
    """Return words with mathematics between them."""
    return "".join(_escaped(p) if isinstance(p, str) else _code(text.write(p)) for p in parts).strip()


def _escaped(words: str) -> str:
    """Return words with their signs, and code between backticks as it is."""
    parts = words.split("`")
    return "`".join(p if k % 2 and len(parts) % 2 else _signs(p) for k, p in enumerate(parts))


def _signs(words: str) -> str:
    return words.replace("*", r"\*").replace("_", r"\_").replace("$", r"\$")


def _math(body: str) -> str:
    r"""Return a display, in a fence, where GitHub leaves every sign as it is; it refuses `\operatorname`."""
    allowed = body.replace(r"\operatorname{", r"\mathrm{")
    return f"```math\n{allowed}\n```"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of GitHub's; a bar in a cell would end it."""
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    lines += [f"| {' | '.join(_code(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines)


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|") if text else ""
