"""Answers to questions: the sections of the guide that fit a question best, by full-text search.

The sections are indexed in SQLite's FTS5, in memory, with Porter's stemmer.  A section's score is BM25 of its heading,
its prose and, for the first section of a page, the page's names, plus half of the score of its pairs of neighbouring
words, and half of that of words that mean the same, plus a third of the score of the page's short names.  Names and
headings weigh more than prose.
"""

from __future__ import annotations

import difflib
import math
import re
import sqlite3
import weakref
from collections import defaultdict
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise

from gradcli.guide.messages import Hit
from gradcli.guide.topics import EMPTY, Section, Topic, topics

_WEIGHTS = "10.0, 5.0, 3.0, 0.5"  # of a page's names, of what is asked of it, of a heading, of the prose below it
_SYNONYMS = 0.5  # the weight of a word that means the same
_PAIRS = 0.5  # the weight of two words that are neighbours in the question, too
_NAMED = 0.35  # the weight of words and pairs in the short names of a page: nan, zero-grad
_SURER = 0.15  # how much more surely a page answers a question that has one of its short names
_UNKNOWN = 0.6  # the weight of a word that no page has, where it is asked whether a page answers the question
_RARER = 0.7  # of the score: questions are about gradcli itself, or about a message that they do not quote, less often
_ENOUGH = 0.38  # of what a question is about, in the section that answers it
_QUESTION = 400  # characters of a question that are searched for
_LIKE = 0.8  # how near a misspelt word is to the right one
_CORRECTED = 0.5  # how sure it is that a corrected word is the one that was meant
_SHORT = 4  # letters of a word that is not corrected

# Words of questions that say nothing of what one is about.
_ASKED = frozenset(
    re.findall(
        r"\w+",
        "actually add advice after all allow also always am any anyone appreciate be because been before being "
        "between bug but call called calling cannot code confused could currently differ difference different doc "
        "docs doubt each easy efficient efficiently every example examples expect expected explain explained find "
        "fine first found gets give going good guys hello help here hey hi however huge idea implement into issue "
        "just keep keeping kind know let like logic correct look looking make many matter matters may me mean meaning "
        "meant much need needed needs never nn no not now often one only other place please position possible "
        "problem problems proper properly put pytorch question questions really regarding right same seem seems "
        "should show simple simply since so solve solved some somebody someone something still strange than "
        "thank thanks that their them then there these they thing this those thought too torch train trained "
        "trainer training trying two understand understanding until us use used using versus very vs want wanted "
        "was way we weird were when where which while who whole will without wonder wondering work working works "
        "would yet you your",
    )
)

# Words of questions, and words of the guide that mean the same.
_MEANT = {
    "combine combined multiple": "several",
    "double doubles doubled twice triple larger bigger grow grows growing": "accumulation",
    "batches simulate": "accumulation",
    "stop block freeze frozen exclude": "detach",
    "summed sums": "broadcast",
    "label labels": "target",
    "update updated updating updates lr": "optimizer step",
    "ram gpu oom leak": "memory",
    "correct verify test debug": "check wrong",
    "numerical": "finite difference gradcheck",
    "draw visualize visualise visualization visualizer plot torchviz view": "graph picture",
    "finetune finetuning pretrained": "freeze detach",
    "diverge diverges diverged unstable": "nan exploding",
    "explosion explode explodes": "exploding",
    "autodiff": "forward reverse mode",
    "small tiny": "vanishing",
    "huge large blow": "exploding",
    "kill kills killed dead die": "vanishing",
    "middle": "intermediate",
    "pixel pixels image": "saliency",
    "interactive browser": "live",
    "terminal tui curses": "explorer",
    "multiplication multiply": "matmul product",
    "pooling maxpool pool": "max",
    "fast fastest slow": "speed engine",
    "error fails fail crash": "message",
    "backprop backpropagate": "backward backpropagation",
    "param params parameter": "parameters weights",
    "criterion objective cost": "loss",
    "activation": "relu sigmoid tanh",
    "initialise initialize init initialization": "initialization",
    "handwritten homework derivation": "derivative check",
}

# Operators and numbers in a question, and what they are called.
_CODE = {r"[-+*/]=": "inplace", r"\]\s*=(?!=)": "assign", r"(?<![\w.,])0(?![\w.,])": "zero"}
_CODE |= {r"(?i)grad\w* of (?:the |a )?grad": "second derivative"}

_FENCED = re.compile(r"^(`{3,}).*?^\1$", re.MULTILINE | re.DOTALL)
_LISTED = re.compile(r"(?:`[^`\n]+`[,;]\s+){3,}(?:`[^`\n]+`)?")
_RAISED = re.compile(r"\b(?:Runtime|Type|Value|Key|Index|Attribute|User|Name|Import|NotImplemented)(?:Error|Warning)\b")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])")


@dataclass(frozen=True)
class Answers:
    """The sections nearest to a question, one a page, best first, and whether the first answers it."""

    hits: list[Hit]
    sure: bool


def answers(question: str, count: int = 4) -> Answers:
    """Return the sections that answer a question best; none where this Python's SQLite has no FTS5.

    >>> answers("why does my gradient double when I call backward twice").hits[0].topic.name
    'accumulation'
    >>> answers("how do I bake bread").sure
    False
    """
    try:
        index = _index()
    except sqlite3.OperationalError:  # no such module: fts5
        return Answers([], False)
    words = {word: index.corrected(word) for word in _words(question[:_QUESTION])}
    results: dict[str, Hit] = {}
    for section in index.ranked([*dict.fromkeys(words.values())], _pairs(question[:_QUESTION])):
        results.setdefault(section.topic.name, section)
    best = list(results.values())[:count]
    return Answers(best, bool(best) and index.share(words, best[0].topic) >= _ENOUGH)


def _words(text: str) -> list[str]:
    """Return the words that a question is about; names in code are taken apart.

    >>> _words("Do I need softmax before nn.CrossEntropyLoss?")
    ['softmax', 'cross', 'entropy', 'loss']
    """
    for code, word in _CODE.items():
        text = re.sub(code, f" {word} ", text)
    parts = re.findall(r"[^\W_]+", _CAMEL.sub(" ", _RAISED.sub(" ", text)).casefold())
    return [
        word for word in dict.fromkeys(parts) if len(word) > 1 and word not in EMPTY | _ASKED and not word.isdigit()
    ]


def _pairs(text: str) -> list[str]:
    """Return the neighbouring words of a question, of which one at least says what it is about.

    >>> _pairs("is grad None?")
    ['is grad', 'grad none']
    """
    words = re.findall(r"[^\W_]+", _CAMEL.sub(" ", text).casefold())
    empty = EMPTY | _ASKED
    return [*dict.fromkeys(f"{a} {b}" for a, b in pairwise(words) if a not in empty or b not in empty)]


@cache
def _index() -> _Index:
    return _Index()


class _Index:
    """The sections and the pages in tables of FTS5's; rows are counted from 1, as SQLite does."""

    def __init__(self) -> None:
        self.pages = [*topics().values()]
        self.sections = [Hit(topic, section) for topic in self.pages for section in topic.sections if section.text]
        self.table = sqlite3.connect(":memory:")
        weakref.finalize(self, self.table.close)
        self._fill("sections", [_columns(section) for section in self.sections])
        self._fill("pages", [_whole(topic) for topic in self.pages])
        self._fill("short", [(_plain(" ".join([topic.name, *topic.also])), "", "", "") for topic in self.pages])
        self._fill("meant", [(words, "", "", "") for words in _MEANT])

    def _fill(self, name: str, rows: list[tuple[str, str, str, str]]) -> None:
        columns = "names, asked, heading, prose, tokenize = 'porter unicode61'"
        self.table.execute(f"CREATE VIRTUAL TABLE {name} USING fts5({columns})")
        self.table.executemany(f"INSERT INTO {name} VALUES (?, ?, ?, ?)", rows)

    @cached_property
    def vocabulary(self) -> list[str]:
        """The words of the guide and of questions, as they are written."""
        text = " ".join([*(" ".join(_whole(topic)) for topic in self.pages), *_MEANT])
        return sorted({word for word in re.findall(r"[^\W\d_]+", text.casefold()) if len(word) > _SHORT})

    def scores(self, name: str, words: list[str], where: str = "(", join: str = " OR ") -> dict[int, float]:
        """Return the scores of the rows of a table that have one of the words, or all; rows are counted from 0."""
        if not words:
            return {}
        query = f"SELECT rowid - 1, -bm25({name}, {_WEIGHTS}) FROM {name} WHERE {name} MATCH ?"
        terms = join.join(f'"{word}"' for word in words)
        return dict(self.table.execute(query, [f"{where}{terms})"]).fetchall())

    def corrected(self, word: str) -> str:
        """Return a word that the guide has: this one, or a similar one where it has none."""
        if len(word) <= _SHORT or self.scores("pages", [word]) or self.scores("meant", [word]):
            return word
        known = [other for other in self.vocabulary if other[0] == word[0]]  # the first letter is hardly ever wrong
        return next(iter(difflib.get_close_matches(word, known, n=1, cutoff=_LIKE)), word)

    def same(self, words: list[str]) -> list[str]:
        """Return the words of the guide that mean the same as one of these."""
        groups = [[*_MEANT.values()][row].split() for row in sorted(self.scores("meant", words))]
        return [word for word in dict.fromkeys(word for group in groups for word in group) if word not in words]

    def ranked(self, words: list[str], pairs: list[str]) -> list[Hit]:
        """Return the sections that have one of the words, best first, after those whose heading has all words."""
        total: defaultdict[int, float] = defaultdict(float)
        for terms, weight in ((words, 1), (self.same(words), _SYNONYMS), (pairs, _PAIRS)):
            for row, score in self.scores("sections", terms).items():
                total[row] += weight * score
        named = {self.pages[page].name: score for page, score in self.scores("short", [*words, *pairs]).items()}
        for row in total:
            total[row] += _NAMED * named.get(self.sections[row].topic.name, 0)
        headed = self.scores("sections", words, "heading : (", " AND ") if len(words) > 1 else {}

        def order(row: int) -> tuple[bool, float]:
            topic, section = self.sections[row].topic, self.sections[row].section
            rarer = topic.part == "gradcli" or section.messages
            return row not in headed or bool(section.messages), -total[row] * (_RARER if rarer else 1)

        return [self.sections[row] for row in sorted(total, key=order)]

    def share(self, words: dict[str, str], topic: Topic) -> float:
        """Return how much of what a question is about a page has: rare words count more, corrected ones half.

        A page that has none of them in its names or headings is about something else.
        """
        page, total, have = self.pages.index(topic), 0.0, 0.0
        if page not in self.scores("pages", [*words.values()], "{names asked heading} : ("):
            return 0
        for typed, word in words.items():
            rows = self.scores("pages", [word, *self.same([word])])
            worth = math.log((len(self.pages) + 1) / (len(rows) + 1)) * (1 if rows else _UNKNOWN)
            total += worth
            have += worth * (page in rows) * (1 if word == typed else _CORRECTED)
        named = page in self.scores("short", [*words.values()])
        return have / total + _SURER * named if total else 0


def _columns(result: Hit) -> tuple[str, str, str, str]:
    """Return the searched columns of a section: its page's names if it is the first, its heading, its prose."""
    topic, section = result.topic, result.section
    first = section.heading == topic.title
    names = _names(topic) if first else ("", "")
    return *names, _plain(" ".join([section.heading, *section.messages])), _prose(section)


def _whole(topic: Topic) -> tuple[str, str, str, str]:
    """Return the searched columns of a page: its names, its headings, its prose."""
    headings = _plain(" ".join(section.heading for section in topic.sections if not section.messages))
    return *_names(topic), headings, " ".join(_prose(section) for section in topic.sections)


def _names(topic: Topic) -> tuple[str, str]:
    """Return the names of a page, and the words of questions that it answers."""
    return _plain(" ".join([topic.title, topic.summary, topic.name, *topic.also])), _plain(topic.words)


def _prose(section: Section) -> str:
    """Return the sentences of a section, without blocks of code and lists of names in code."""
    return _plain(_LISTED.sub("", _FENCED.sub("", section.text)))


def _plain(text: str) -> str:
    """Return a text whose names in camel case are taken apart."""
    return _CAMEL.sub(" ", text)
