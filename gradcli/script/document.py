"""A script, what it printed and its pages as one document, in Markdown or LaTeX."""

from __future__ import annotations

import io
from collections.abc import Sequence

_PRINTED = 10**7  # characters of what a script prints


class _Kept(io.StringIO):
    """What a script prints, for a document: an endless one is cut off."""

    left = _PRINTED

    def write(self, text: str) -> int:
        """Keep a text, as far as there is room."""
        if self.left > 0:
            super().write(text[: self.left] if len(text) <= self.left else f"{text[: self.left]}\n… and more …\n")
            self.left -= len(text)
        return len(text)

    def taken(self) -> str:
        """Return what was printed since."""
        text = self.getvalue()
        self.seek(0)
        self.truncate()
        return text


class Document:
    """The parts of a document, in their order; `style` is markdown or latex."""

    def __init__(self, source: str, style: str) -> None:
        self.style = style
        self.stream = _Kept()
        self.parts = [self._fenced("python", source)]

    def page(self, title: str, text: str) -> None:
        """Add a page that is written in the style already."""
        self.text(self._heading(title))
        self.text(text)

    def words(self, lines: Sequence[str]) -> None:
        """Add lines as they stand."""
        self.text(self._fenced("text", "\n".join(lines)))

    def text(self, text: str) -> None:
        """Add a text, behind what the script has printed until now."""
        if printed := self.stream.taken():
            self.parts.append(self._fenced("text", printed))
        self.parts.append(text.rstrip("\n") + "\n")

    def whole(self) -> str:
        """Return the document."""
        if printed := self.stream.taken():
            self.parts.append(self._fenced("text", printed))
        text = "\n".join(self.parts)
        if self.style == "markdown":
            return text
        from gradcli.report.latex import document

        return document(text)

    def _heading(self, title: str) -> str:
        if self.style == "markdown":
            return f"## `` {title} ``" if "`" in title else f"## `{title}`"
        from gradcli.report.latex_math import escaped

        return f"\\subsection*{{\\texttt{{{escaped(title)}}}}}"

    def _fenced(self, language: str, text: str) -> str:
        body = text.rstrip("\n")
        if self.style == "markdown":
            fence = "```"
            while fence in body:
                fence += "`"
            return f"{fence}{language}\n{body}\n{fence}\n"
        body = body.replace("\\end{verbatim}", "\\end {verbatim}")
        return f"\\begin{{verbatim}}\n{body}\n\\end{{verbatim}}\n"
