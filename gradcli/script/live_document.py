"""A script as an HTML document: its lines, what each printed, and each explained call below its line, with a live page.

What belongs to a line stands below the statement that the line is in; what a line prints in a loop stands together.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gradcli.files import printable
from gradcli.pages.live import Kernels, live
from gradcli.pages.picture.boxes import View
from gradcli.process.script import Script
from gradcli.record.naming import script_frames
from gradcli.report.documents.html import STYLE, without_style
from gradcli.report.live.live_page import document, live_section, say, text, word
from gradcli.script.errors.syntax import parsed, parts
from gradcli.script.loops import folded_loops
from gradcli.script.pages.effects import RETURNED
from gradcli.script.passed import gradients_by_line, result_of
from gradcli.script.scene import CallScene
from gradcli.script.shown import Printed, Stream
from gradcli.text.highlighted import highlighted

_NODES = 1_500  # of a graph with a live page
_NUMBERS = 20_000  # of its arrays
_LETTERS = 1_900_000  # of all live pages
_PRINTED = 20_000  # characters that a line prints, before the rest is left out


@dataclass
class _Entry:
    """The text below a line: the output of the line so far, or HTML."""

    printed: str = ""
    html: str = ""


class LiveDocument(Printed):
    """The document; pages are kept until it is complete.  One for a file leaves the script its standard output, too."""

    def __init__(self, script: Script, to_file: bool = False) -> None:
        super().__init__()
        self.script = script
        self.stream = Stream(self.printed, sys.stdout if to_file else None)
        self.kernels = Kernels()
        self.entries: dict[int, list[_Entry]] = {}
        self.pages = self.letters = 0
        self.explains = False  # whether a call is explained
        self.gradients: dict[int, str] = {}  # beside the lines that a gradient passed

    def printed(self, text: str) -> None:
        """Add a text to what the running line has printed."""
        entries = self.entries.setdefault(self._line(), [])
        if not entries or entries[-1].html:
            entries.append(_Entry())
        if len(entries[-1].printed) <= _PRINTED:
            entries[-1].printed += text

    def explained(self, scene: CallScene, title: str, text_: str) -> None:
        """Add the page of a call in HTML, with its live page: the first is open, the others are a line."""
        passed = gradients_by_line(scene.recorded, self.script.source, self.script.name)
        first, self.gradients = not self.explains, passed | self.gradients
        self.explains = True
        summary = f'<code>{text(title)}</code> <span class="result">{text(result_of(scene.recorded))}</span>'
        page = f"{without_style(text_)}{self._live(scene)}"
        self._add(scene.line, f"<details{' open' * first}><summary>{summary}</summary><div>{page}</div></details>")

    def page(self, title: str, text: str) -> None:
        """Add a page that has no system."""
        self.words([title, text])

    def words(self, lines_: Sequence[str]) -> None:
        """Add lines verbatim."""
        self._add(self._line(), f'<pre class="printed quiet">{lines(chr(10).join(lines_))}</pre>')

    def text(self, text: str) -> None:
        """Add a text verbatim."""
        self.words([text])

    def failed(self, text: str, line: int = 0) -> None:
        """Add an error, why it came, and what fixes it."""
        self._add(line, f'<pre class="printed failed">{lines(text)}</pre>')

    def whole(self) -> str:
        """Return the document."""
        name = "A script" if self.script.folder is None else self.script.name
        heading = f'<header class="top"><h1>{text(name[:200])}</h1></header>'
        body = f'<main class="script">\n{heading}\n{"".join(self._body())}\n</main>'
        return document(name, body, self.kernels.program(), STYLE)

    def _line(self) -> int:
        """Return the line of the script that is running, 0 after its end."""
        return next((f.f_lineno for f in script_frames() if f.f_code.co_filename == self.script.name), 0)

    def _add(self, line: int, html: str) -> None:
        self.entries.setdefault(line, []).append(_Entry(html=html))

    def _live(self, scene: CallScene) -> str:
        """Return the live page of a call, or why there is none."""
        recorded = scene.recorded
        if scene.trouble or not recorded.wrt or recorded.call.function in RETURNED:
            return ""
        if recorded.functions:
            return f'<p class="quiet">{word("noLiveFunctions")}</p>'
        numbers = sum(n.size for n in recorded.graph.nodes)
        if len(recorded.graph.nodes) > _NODES or numbers > _NUMBERS or self.letters > _LETTERS:
            return f'<p class="quiet">{text(say("noLiveLarge", f"{len(recorded.graph.nodes):,}"))}</p>'
        if scene.altered or recorded.call.hooks:
            return f'<p class="quiet">{word("noLiveHooks")}</p>'
        loops = None if scene.unroll else folded_loops(recorded, scene.names)
        view = View(recorded.wrt, recorded.at, recorded.v, unroll=scene.unroll, loops=loops)
        page = live(recorded.graph, view, self.kernels)
        self.pages += 1
        section = live_section(page, self.pages, lean=True)
        self.letters += len(section)
        return section

    def _body(self) -> Iterator[str]:
        """Yield the lines of the script in blocks, what belongs to them between the blocks."""
        source = self.script.source.expandtabs().split("\n")
        while source and not source[-1].strip():
            source.pop()
        below: dict[int, list[_Entry]] = {}
        ends = _ends(self.script.source)
        for line, entries in sorted(self.entries.items()):
            below.setdefault(min(ends.get(line, line), len(source)) if line else len(source), []).extend(entries)
        block: list[str] = []
        coloured = highlighted("\n".join(map(printable, source)), "python").split("\n")
        for k, line_ in enumerate(coloured, 1):
            beside = f'<span class="beside">{text(self.gradients[k])}</span>' if k in self.gradients else ""
            block.append(f"<code{' class=passed' if beside else ''}>{line_ or ' '}{beside}</code>")
            if k in below or k == len(source):
                yield f'<pre class="source" tabindex="0">{"".join(block)}</pre>\n'
                block = []
            for entry in below.get(k, ()):
                yield entry.html or _printed(entry.printed)


def _ends(source: str) -> dict[int, int]:
    """Return the last line of the statement that each line is in, of those of several lines that hold no others."""
    simple = [n for n in parts(parsed(source), ast.stmt) if not hasattr(n, "body")]
    ends = [(n, n.end_lineno or n.lineno) for n in simple]
    return {line: end for n, end in ends for line in range(n.lineno, end + 1)}


def _printed(printed: str) -> str:
    cut = printed if len(printed) <= _PRINTED else f"{printed[:_PRINTED]}\n…"
    return f'<pre class="printed">{lines(cut)}</pre>'


def lines(printed: str) -> str:
    """Return a text of several lines as HTML."""
    return "\n".join(text(line) for line in printed.expandtabs().rstrip("\n").split("\n"))
