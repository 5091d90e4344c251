"""A script, what it printed and its pages as one document, in Markdown or LaTeX."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradcli.pytorch.session import Script


@dataclass
class Document:
    """The parts of a document, in their order; `style` is markdown or latex."""

    script: Script
    style: str
    parts: list[str] = field(default_factory=list)

    def output(self, text: str) -> None:
        """Add what the script printed."""
        if text:
            self.parts.append(self._fenced("text", text))

    def page(self, title: str, text: str) -> None:
        """Add a page that is written in the style already."""
        if self.style == "markdown":
            self.parts.append(f"## {_code(title)}\n")
        else:
            from gradcli.report.latex_math import escaped

            self.parts.append(f"\\subsection*{{\\texttt{{{escaped(title)}}}}}\n")
        self.parts.append(text.rstrip("\n") + "\n")

    def words(self, text: str) -> None:
        """Add lines as they stand."""
        self.output(text)

    def whole(self) -> str:
        """Return the document."""
        text = "\n".join([self._fenced("python", self.script.source), *self.parts])
        if self.style == "markdown":
            return text
        from gradcli.report.latex import document

        return document(text)

    def _fenced(self, language: str, text: str) -> str:
        body = text.rstrip("\n")
        if self.style == "markdown":
            fence = "```"
            while fence in body:
                fence += "`"
            return f"{fence}{language}\n{body}\n{fence}\n"
        body = body.replace("\\end{verbatim}", "\\end {verbatim}")
        return f"\\begin{{verbatim}}\n{body}\n\\end{{verbatim}}\n"


def _code(text: str) -> str:
    """Return a line of code in Markdown, whatever quotes it has."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"
