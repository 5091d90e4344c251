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
from gradcli.record.numbers import Numbers
from gradcli.record.record import Contribution
from gradcli.report.documents.html import STYLE, without_style
from gradcli.report.live.live_page import document, live_section, say, text, word
from gradcli.script.errors.syntax import parsed, parts, start
from gradcli.script.loops import folded_loops
from gradcli.script.pages.effects import RETURNED
from gradcli.script.scene import CallScene
from gradcli.script.shown import Printed, Stream
from gradcli.script.system import Recorded
from gradcli.text.highlighted import highlighted

_NODES = 1_500  # of a graph with a live page
_NUMBERS = 20_000  # of its arrays
_LETTERS = 1_900_000  # of all live pages
_PRINTED = 20_000  # characters that a line prints, before the rest is left out
_MANY = 3  # gradients that are counted


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
            yield from (entry.html or _printed(entry.printed) for entry in below.get(k, ()))


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


# What a backward passed: its result in a line, and the gradient of each line that it went through


def result_of(recorded: Recorded) -> str:
    """Return the result of a call in a line: what it flowed from, and its gradients, the largest by its 2-norm.

    For example `loss = 0.813651 · 4 gradients, the largest model.2.weight`.
    """
    record, call = recorded.record, recorded.call
    roots = zip(recorded.roots, call.roots, strict=False)
    values = [f"{name} = {_size(record.quantities[q].numbers)}" for name, q in roots if not record.quantities[q].shape]
    return " · ".join([*values, *filter(None, [_gradients(recorded, call.leaves)])])


def _gradients(recorded: Recorded, leaves: Sequence[Contribution]) -> str:
    """Return gradients in words: a few with their numbers, or how many there are and the largest."""
    named = [(name, c) for c in leaves if (name := recorded.names.get(c.quantity, ""))]
    if len(named) >= _MANY:
        largest = max(named, key=lambda pair: pair[1].added.norm or 0)
        return f"{len(named)} gradients, the largest {largest[0]}"
    return ", ".join(_left(name if recorded.call.function != "backward" else f"{name}.grad", c) for name, c in named)


def _left(name: str, c: Contribution) -> str:
    """Return what a call leaves in a `.grad`, with the sum where it adds to one; or what it returns for a name."""
    if c.after is None:
        return _sized(f"gradient of {name}", c.added)
    if c.before is None or c.added.shape:
        return _sized(name, c.after)
    return f"{name} = {_size(c.before)} + {_size(c.added)} = {_size(c.after)}"


def gradients_by_line(recorded: Recorded, source: str, file: str) -> dict[int, str]:
    """Return the lines of a script that the gradient passed, each with that of its last named result, or its leaves.

    A leaf is at the line that first assigns its name, or the name before its first dot.

    >>> gradients_by_line(Recorded(), "", "script.py")
    {}
    """
    record, call = recorded.record, recorded.call
    result: dict[int, str] = {}
    alone = len(recorded.roots) == 1 and not call.v[0].shape and _size(call.v[0]) == "1"
    loss = recorded.roots[0] if alone else "L"  # the sum of what the call flowed from, weighted by v
    for o in record.operations:
        for k, q in enumerate(o.results):
            if o.site.file == file and (o.id, k) in call.received:
                name = recorded.names.get(q, "")
                shown = _sized(f"∂{loss}/∂{name}", call.received[o.id, k]) if name else ""
                result[o.site.line] = shown or result.get(o.site.line, "")
    stored = [n for n in parts(parsed(source), ast.Name) if isinstance(n.ctx, ast.Store)]
    assigned = {n.id: n.lineno for n in sorted(stored, key=start, reverse=True)}
    leaves: dict[int, list[Contribution]] = {}
    for c in call.leaves:
        name = recorded.names.get(c.quantity, "")
        if line := assigned.get(name.partition(".")[0].partition("[")[0]):
            leaves.setdefault(line, []).append(c)
    return result | {line: _gradients(recorded, some) for line, some in leaves.items()}


def _sized(name: str, numbers: Numbers) -> str:
    """Return a number with its name, or the 2-norm of several."""
    return f"{name} = {_size(numbers)}" if not numbers.shape else f"|{name}| = {_size(numbers)}"


def _size(numbers: Numbers) -> str:
    if numbers.not_finite:
        return f"{numbers.not_finite}!"
    return f"{numbers.norm or 0 if numbers.shape or numbers.whole is None else numbers.whole.item():.6g}"
