"""The destinations of pages: among the script's output, a file, or one document in Markdown or LaTeX."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from gradcli.text.wrapping import page_width, visible, wrapped

if TYPE_CHECKING:
    from gradcli.script.scene import CallScene

_MOST = 120  # columns of a page
_PAPER = 80  # characters of a line on paper
_PRINTED = 10**7  # characters of what a script prints that a document holds


def columns() -> int:
    """Return the width of a page."""
    return min(_MOST, page_width())


class Printed:
    """Standard output, with pages between the lines that the script prints; for a file, pages are kept."""

    def __init__(self, alone: bool = False, keeps: bool = False) -> None:
        self.out = sys.stdout
        self.stream = sys.stderr if alone else sys.stdout  # what the script prints to
        self.kept: list[str] | None = [] if keeps else None

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Redirect the script's standard output to its stream within a block."""
        before, sys.stdout = sys.stdout, self.stream
        try:
            yield
        finally:
            sys.stdout = before

    def page(self, title: str, text: str) -> None:
        """Show a page between two lines, the upper one with its title."""
        width = columns()
        title = visible(title)
        title = title if len(title) <= width - 8 else title[: width - 9].rstrip() + "…"
        head = f"── {title} "
        self.text(f"{head}{'─' * max(2, width - len(head))}\n{text.rstrip()}\n{'─' * width}")

    def explained(self, scene: CallScene, title: str, text: str) -> None:
        """Show the page of a call."""
        self.page(title, text)

    def words(self, lines: Sequence[str]) -> None:
        """Show a few lines; those behind the first are indented."""
        scene = [visible(lines[0]), *(f"  {visible(text)}" for text in lines[1:])]
        self.text("\n".join(part for text in scene for part in wrapped(text, columns(), "    ")))

    def text(self, text: str) -> None:
        """Show a text."""
        if self.kept is not None:
            self.kept.append(text)
        else:
            if not self.stream.closed:
                self.stream.flush()
            if not self.out.closed:  # as by `sys.stdout.close()`
                self.out.write(f"{text}\n")
                self.out.flush()

    def failed(self, text: str, line: int = 0) -> None:
        """Show nothing of an error at a line: standard error has it."""

    def whole(self) -> str:
        """Return the pages that were kept."""
        return "\n".join(self.kept or ())


class Stream(io.StringIO):
    """The script's standard output: each text is kept as it comes, and `also` is a stream that gets it, too."""

    def __init__(self, keep: Callable[[str], None], also: TextIO | None) -> None:
        super().__init__()
        self.keep, self.also = keep, also

    def write(self, text: str) -> int:
        """Write a text."""
        if self.also is not None:
            self.also.write(text)
        self.keep(text)
        return len(text)


class Document(Printed):
    """The script, what it prints and its pages as one document; `style` is markdown or latex.

    One for a file leaves the script its standard output, too.
    """

    def __init__(self, source: str, style: str, to_file: bool = False) -> None:
        super().__init__()
        self.style = style
        self.stream = Stream(self._keep, sys.stdout if to_file else None)
        self.printed: list[str] = []  # by the script, behind the last part
        self.room = _PRINTED
        self.parts = [self._fenced("python", source)]

    def page(self, title: str, text: str) -> None:
        """Add a page that is written in the style already."""
        self.text(self._heading(title))
        self.text(text)

    def words(self, lines: Sequence[str]) -> None:
        """Add lines verbatim; those on paper are wrapped."""
        if self.style == "latex":
            lines = [part for line in lines for part in wrapped(line, _PAPER, "    ")]
        self.text(self._fenced("text", "\n".join(lines)))

    def text(self, text: str) -> None:
        """Add a text, behind what the script has printed until now."""
        self._take_printed()
        self.parts.append(text.rstrip("\n") + "\n")

    def failed(self, text: str, line: int = 0) -> None:
        """Add an error, and what was said of it."""
        self.words(text.splitlines())

    def whole(self) -> str:
        """Return the document."""
        self._take_printed()
        text = "\n".join(self.parts)
        if self.style == "markdown":
            return text
        from gradcli.report.documents.latex import document

        return document(text)

    def _keep(self, text: str) -> None:
        """Keep what the script prints, up to the limit."""
        if self.room > 0:
            self.printed.append(text if len(text) <= self.room else f"{text[: self.room]}\n… and more …\n")
        self.room -= len(text)

    def _take_printed(self) -> None:
        if printed := "".join(self.printed):
            self.parts.append(self._fenced("text", printed))
            self.printed.clear()

    def _heading(self, title: str) -> str:
        if self.style == "markdown":
            from gradcli.report.documents.markdown import code

            return f"## {code(title)}"
        from gradcli.report.latex_math import escaped

        return f"\\subsection*{{\\texttt{{{escaped(title)}}}}}"

    def _fenced(self, language: str, text: str) -> str:
        lines = text.rstrip("\n").expandtabs().split("\n")
        if self.style == "markdown":
            from gradcli.report.documents.markdown import fenced

            return fenced(language, lines) + "\n"
        from gradcli.report.documents.latex import verbatim

        return verbatim(lines) + "\n"
