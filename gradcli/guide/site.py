"""The guide as a web site of plain files: a page a topic, with search, and live pages in frames; no network, no server.

Markdown becomes HTML by markdown-it-py, and code gets its colours by Pygments; rich needs both.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

from gradcli.guide.search import searched, words_of
from gradcli.guide.topics import EMPTY, PARTS, Topic, topics
from gradcli.text.highlighted import highlighted

# Draws a live page: the arguments of a command, and the file that is to be written; False for a command without one.
Draw = Callable[[Sequence[str], Path], bool]

START = (
    "vector-jacobian-product",
    "gradient-argument",
    "accumulation",
    "leaf-and-intermediate",
    "script-explained",
    "when-it-fails",
)
GALLERY = "gallery"
_FILES = ("site.css", "site.js")
_AT_A_POINT = ("backward", "jacobian", "hessian", "jvp")
_NEEDED = ("-F", "--at", "--v", "--wrt", "--outputs", "--shape")  # their options that `graph` has, too
_LEFT_OUT = {"--quiet": 1, "--line": 2}  # options of `run` that a live page does not need, with the words of each
_OF_GRADCLI = ("models", "functions")  # pages about computations beside those about options
_COMMAND = re.compile(r"^\$ gradcli (.*(?:\n> .*)*)$", re.MULTILINE)


def write_site(folder: Path, draw: Draw) -> None:
    """Write the pages, their style, script and index for the search, and their live pages."""
    here = Path(__file__).parent
    for name in _FILES:
        (folder / name).write_text((here / name).read_text("utf-8"), "utf-8")
    for picture in here.glob("*.svg"):
        (folder / picture.name).write_bytes(picture.read_bytes())
    (folder / "live").mkdir()
    order = [*_order()]
    for k, topic in enumerate(order):
        before, after = order[k - 1] if k else None, order[k + 1] if k + 1 < len(order) else None
        body = _with_frames(topic, folder, draw)
        (folder / f"{topic.name}.html").write_text(_page(topic.title, body, topic.name, before, after), "utf-8")
    (folder / "index.html").write_text(_page("gradcli", _welcome(), "index", None, order[0]), "utf-8")
    index = json.dumps([*_entries(order)], ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    data = f"const EMPTY = {json.dumps(sorted(EMPTY))};\nconst SECTIONS = {index};\n"
    (folder / "search.js").write_text(data, "utf-8")


def _order() -> Iterator[Topic]:
    """Yield the pages as they are read: those to start with, the gallery, then the parts of the guide."""
    first = [*START, GALLERY]
    yield from (topics()[name] for name in first)
    yield from (topic for topic in topics().values() if topic.name not in first)


def _groups() -> Iterator[tuple[str, list[Topic]]]:
    """Yield the groups of the navigation, with their pages."""
    order = [*_order()]
    yield "Start here", order[: len(START)]
    yield "Play", [topics()[GALLERY]]
    rest = order[len(START) + 1 :]
    yield from ((title, [topic for topic in rest if topic.part == part]) for part, title in PARTS.items())


# One page


def _page(title: str, body: str, name: str, before: Topic | None, after: Topic | None) -> str:
    """Return a file of the site."""
    heading = title if title == "gradcli" else f"{title} · gradcli"
    turns = _turn("prev", "← ", before) + _turn("next", "", after)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(heading)}</title>
<link rel="stylesheet" href="site.css">
<script src="search.js" defer></script>
<script src="site.js" defer></script>
</head>
<body>
<a class="skip" href="#main">Skip to the text</a>
<header>
<a class="home" href="index.html">gradcli</a>
<div class="search" role="search">
<label for="query">Search</label>
<input id="query" type="search" placeholder="a question, or an error message" autocomplete="off" aria-controls="hits">
<ol id="hits" aria-live="polite" hidden></ol>
</div>
</header>
<div class="columns">
<nav aria-label="Pages">
<details class="menu" open><summary>Pages</summary>
{_navigation(name)}
</details>
</nav>
<main id="main">
{body}
<nav class="turns" aria-label="Previous and next page">{turns}</nav>
</main>
</div>
</body>
</html>
"""


def _turn(kind: str, arrow: str, topic: Topic | None) -> str:
    if topic is None:
        return ""
    text = escape(topic.title)
    return f'<a rel="{kind}" href="{topic.name}.html">{arrow}{text}{" →" if kind == "next" else ""}</a>'


def _navigation(name: str) -> str:
    parts = []
    for title, pages in _groups():
        items = "".join(
            f'<li><a href="{t.name}.html"{" aria-current=page" if t.name == name else ""}>{escape(t.title)}</a></li>'
            for t in pages
        )
        parts.append(f"<h2>{escape(title)}</h2><ul>{items}</ul>")
    return "\n".join(parts)


def _welcome() -> str:
    """Return the first page: what gradcli is, and where to begin."""
    first = [topics()[name] for name in START]
    summaries = [re.sub("`(.*?)`", r"<code>\1</code>", escape(t.summary)) for t in first]
    links = [f'<a href="{t.name}.html">{escape(t.title)}</a>' for t in first]
    start = "".join(f"<li>{link}<br>{summary}</li>" for link, summary in zip(links, summaries, strict=True))
    return f"""<h1>What does backward() do?</h1>
<p>gradcli shows what <code>backward()</code> does, with your numbers: type a formula, run your PyTorch script, or
check a derivative by hand, and see every gradient step by step.</p>
<h2>Start here</h2>
<ol class="start">{start}</ol>
<p>Or play: the <a href="{GALLERY}.html">gallery</a> has live pages, in which every number can be changed.</p>
<p>Keys: <kbd>/</kbd> searches, <kbd>n</kbd> is the next page, <kbd>p</kbd> the previous one.</p>
"""


# Markdown


def _with_frames(topic: Topic, folder: Path, draw: Draw) -> str:
    """Return the text of a page as HTML, with a live page behind the first example, and each that writes one."""
    count = 0
    has_one = topic.part == "gradcli" and topic.name not in _OF_GRADCLI  # whose examples are of options

    def frame(code: str) -> str:
        nonlocal count, has_one
        for arguments in _live_commands(code, not has_one):
            file = folder / "live" / f"{topic.name}-{count}.html"
            if draw(arguments, file):
                count, has_one = count + 1, True
                title = escape(f"Live page {count} of {topic.title}")
                return f'<iframe src="live/{file.name}" title="{title}" loading="lazy"></iframe>\n'
        return ""

    return _html(topic.text, frame)


def _live_commands(code: str, derived: bool) -> Iterator[list[str]]:
    """Yield the commands of a console block that write a live page; with `derived`, also what draws its computation.

    >>> [*_live_commands("$ gradcli backward y=x**2 --at x=3 --only grad", True)]
    [['graph', 'y=x**2', '--at', 'x=3']]
    >>> [*_live_commands("$ gradcli run --quiet sum.py", True)]
    [['run', 'sum.py']]
    >>> [*_live_commands("$ gradcli graph y=x**2 --at x=3 --output y.html", False)]
    [['graph', 'y=x**2', '--at', 'x=3']]
    """
    for match in _COMMAND.finditer(code):
        try:
            words = shlex.split(match[1].replace("\n> ", "\n"))
        except ValueError:
            continue
        if words and words[0] in ("graph", "run") and "--output" in words[:-1]:
            k = words.index("--output")
            if words[k + 1].endswith(".html"):
                yield words[:k] + words[k + 2 :]
        elif derived and words and words[0] == "run":
            while len(words) > 1 and words[1] in _LEFT_OUT:
                del words[1 : 1 + _LEFT_OUT[words[1]]]
            if words[1] == "-c" or words[1].endswith(".py"):
                yield words
        elif derived and words and words[0] in _AT_A_POINT and words.count("--at") == 1:
            expressions = [w for k, w in enumerate(words[1:], 1) if "=" in w and not words[k - 1].startswith("--")]
            options = [[name, words[words.index(name) + 1]] for name in _NEEDED if name in words[:-1]]
            yield ["graph", *expressions, *(word for option in options for word in option)]


def _html(markdown: str, frame: Callable[[str], str]) -> str:
    """Return Markdown as HTML; `frame` returns what stands behind a block of commands."""
    from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark", {"html": True}).enable("table")
    tokens = reader.parse(markdown)
    for k, token in enumerate(tokens):
        if token.type == "heading_open":
            token.attrSet("id", _anchor(tokens[k + 1].content))
        for child in token.children or ():
            if child.type == "link_open":
                child.attrSet("href", _target(str(child.attrGet("href"))))
            elif child.type == "image":
                child.attrSet("src", _target(str(child.attrGet("src"))))

    def fence(self: Any, tokens: Sequence[Any], k: int, options: Any, env: Any) -> str:
        code, language = tokens[k].content, tokens[k].info
        coloured = f'<pre tabindex="0"><code>{highlighted(code, language)}</code></pre>\n'
        return coloured + (frame(code) if language == "console" else "")

    def table(self: Any, tokens: Sequence[Any], k: int, options: Any, env: Any) -> str:
        return '<div class="wide" tabindex="0"><table>' if tokens[k].nesting > 0 else "</table></div>"

    reader.add_render_rule("fence", fence)
    reader.add_render_rule("table_open", table)
    reader.add_render_rule("table_close", table)
    return str(reader.renderer.render(tokens, reader.options, {}))


def _anchor(heading: str) -> str:
    """Return the anchor of a heading, as GitHub makes it.

    >>> _anchor("Where does [51.2, 512, 0.0512] come from?")
    'where-does-512-512-00512-come-from'
    """
    return re.sub(r"[^\w\- ]", "", heading.casefold()).replace(" ", "-")


def _target(link: str) -> str:
    """Return where a link of the guide leads on the site: the samples are beside the pages."""
    return re.sub(r"^(?:\.\./)+(?=samples)", "", re.sub(r"\.md(?=#|$)", ".html", link))


# Search


def _entries(order: Sequence[Topic]) -> Iterator[list[str]]:
    """Yield the sections: the page, its title, the anchor, the heading, and the columns that are searched."""
    for topic in order:
        for section in topic.sections:
            anchor = "" if section.heading == topic.title else _anchor(section.heading)
            columns = (" ".join(words_of(column)) for column in searched(topic, section))
            yield [topic.name, topic.title, anchor, section.heading, *columns]
