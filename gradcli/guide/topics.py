"""The pages of the guide: each file `TOPIC.md` beside this one is a topic, and says itself where it belongs.

A page begins with a comment, `<!-- part: gradients, 1; also: other-name, another; words: what is asked -->`: the part
of the guide and the position in it, other names of the topic, and words of questions that the page answers.  Then come
the title, a sentence that says what the page answers, and the text.  A heading in quotes is a message of PyTorch's,
with `…` for what varies in it.  `README.md` lists the pages.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

PARTS = {"gradients": "Gradients", "pytorch": "PyTorch's autograd", "gradcli": "gradcli itself"}

# Words that say nothing of what a text is about.
EMPTY = frozenset(
    re.findall(
        r"\w+",
        "a about after also always an and any anything are as at be been before being but by can could did do does "
        "doing done don down each every for from get go goes got have he her here how i if in into is it its just "
        "like make makes many more much my need needed nothing now of off on or other others our out over people "
        "put s say says she should so some something still t than that the their them then there these they thing "
        "things this those to too up us use used using very vs want wanted was way we were what when which who why "
        "will with would you your",
    )
)

_PAGE = re.compile(r"<!-- (?P<head>.*?) -->\n# (?P<title>.*)\n\n(?P<summary>.*)\n")
_HEADING = re.compile(r"^#+ (.*)$")
_BLOCK = re.compile(r"^(?:(?P<fence>`{3,})(?s:.*?)^(?P=fence)$|(?:.+\n?)+)", re.MULTILINE)  # of code, or of text
_ALSO = re.compile(r'<!-- also: (".*") -->')


@dataclass(frozen=True)
class Section:
    """The section below a heading; `messages` are PyTorch's messages that it explains, in their several wordings."""

    heading: str
    text: str
    messages: tuple[str, ...] = ()

    @property
    def beginning(self) -> str:
        """The first paragraph, behind the sentence that sums up a page.

        Code and tables are left out, and the sentence behind others that only introduces them.
        """
        blocks = [block[0].strip("\n") for block in _BLOCK.finditer(self.text)]
        first, *others = [block for block in blocks if not block.startswith(("```", "|"))] or [self.heading]
        is_summary = others and "\n" not in first and first.count(". ") == 0
        text = f"{first}\n\n{others[0]}" if is_summary else first
        return re.sub(":$", ".", re.sub(r"(?<=[.!?])\s[^.!?]*:$", "", text))


@dataclass(frozen=True)
class Topic:
    """A page of the guide."""

    name: str
    part: str
    position: int
    title: str
    summary: str
    also: tuple[str, ...]
    words: str
    text: str

    @cached_property
    def sections(self) -> list[Section]:
        """The sections of the page."""
        result: list[tuple[str, list[str]]] = []
        fence = ""
        for line in self.text.splitlines():
            fence = _fence(line) if not fence else "" if line == fence else fence
            heading = None if fence else _HEADING.match(line)
            if heading:
                result.append((heading[1], []))
            elif result:
                result[-1][1].append(line)
        return [_section(heading, "\n".join(lines)) for heading, lines in result]


def _fence(line: str) -> str:
    """Return the backticks that open a block of code, or nothing."""
    result = re.match(r"`{3,}", line)
    return result[0] if result else ""


def _section(heading: str, text: str) -> Section:
    if not heading.startswith('"'):
        return Section(heading, text.strip())
    also = _ALSO.search(text)
    phrases = [heading, *(also[1].split("; ") if also else [])]
    return Section(heading, _ALSO.sub("", text).strip(), tuple(phrase.strip('"') for phrase in phrases))


@cache
def topics() -> dict[str, Topic]:
    """Return the topics by name, in the order of the guide."""
    result = [_read(path) for path in Path(__file__).parent.glob("*.md") if path.stem != "README"]
    order = list(PARTS)
    return {t.name: t for t in sorted(result, key=lambda t: (order.index(t.part), t.position, t.name))}


def _read(path: Path) -> Topic:
    text = path.read_text("utf-8")
    page = _PAGE.match(text)
    if page is None:
        raise ValueError(f"{path.name} does not begin as a page of the guide does")
    head = dict(entry.split(": ", 1) for entry in page["head"].split("; "))
    part, position = head["part"].split(", ")
    also = tuple(head["also"].split(", ")) if "also" in head else ()
    rest = text[page.start("title") - 2 :]
    return Topic(path.stem, part, int(position), page["title"], page["summary"], also, head.get("words", ""), rest)


def topic_named(words: str) -> Topic | None:
    """Return the topic of a name, or of another name that it has, however its words are joined, and what asks for it.

    >>> topic_named("Retain graph").name, topic_named("leaf").name, topic_named("what does backward do?").name
    ('retain-graph', 'leaf-and-intermediate', 'vector-jacobian-product')
    """
    question = re.findall(r"\w+", words.lower().replace("_", "-"))
    names = ["-".join(question), "-".join(w for w in question if w not in EMPTY)]
    return next((t for wanted in names for t in topics().values() if wanted in (t.name, *t.also)), None)
