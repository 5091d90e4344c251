"""The sections of the guide that answer a question best, by full-text search.

The sections are rows of a table of SQLite's FTS5, in memory, with Porter's stemmer.  A section's score is BM25 of the
question's words, plus half of that of its pairs of neighbouring words.  A question that quotes code or numbers, such as
`v@M.T` or 2222, is about the sections that have these.
"""

from __future__ import annotations

import difflib
import re
import sqlite3
import weakref
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from gradcli.guide.messages import Hit, find
from gradcli.guide.topics import EMPTY, Section, Topic, topics

_WEIGHTS = "10.0, 6.0, 2.0, 0.5"  # of a page's names, of what it is asked, of a heading, of the prose below it
_PAIRS = 0.5  # the weight of two words that are neighbours in the question, too
_QUOTED = 20.0  # the score of quoted code, shared by the sections that have it
_NEAR = 0.45  # of the best score: a section that has it is shown beside the best
_QUESTION = 400  # characters of a question that are searched for
_LIKE = 0.85  # how near a misspelt word is to the right one
_SHORT = 4  # letters of a word that is not corrected

# What people say, and what the guide says.
_SYNONYMS = {
    "double": "accumulation",
    "freeze": "requires_grad False",
    "leak": "memory grows",
    "oom": "memory",
    "simulate": "accumulation",
    "torchviz": "picture",
    "visualize": "picture",
    "pixel": "image saliency",
    "diverge": "nan exploding",
    "homework": "check derivative",
    "+=": "in-place",
    "*=": "in-place",
    "-=": "in-place",
}

_FENCED = re.compile(r"^(`{3,}).*?^\1$", re.MULTILINE | re.DOTALL)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|_|(?<=[A-Z])(?=[A-Z][a-z])")
_RAISED = re.compile(r"\b(?:Runtime|Type|Value|Key|Index|Attribute|User|Name|Import|NotImplemented)(?:Error|Warning)\b")
# Code in a question: what stands in backquotes, a call, a list of numbers, an operator between names, a number.
_CODE = re.compile(
    r"`([^`]+)`|([\w.]+\([^()]*(?:\([^()]*\)[^()]*)*\)?)|(\[[-\d., e+]+\])|(\w+(?:[@*/]{1,2}\w[\w.]*)+)"
    r"|(?<![\w.])(\d+\.\d+|\d{2,})(?![\w.])"
)
_LEAST = 2  # characters of quoted code


def answers(question: str, count: int = 3) -> list[Hit]:
    """Return the sections that answer a question best, one a page; only one where no other comes near.

    The section of a message of PyTorch's that the question has comes first.  Without FTS5 in this Python's SQLite, it
    is the only one.  Nothing is returned where no section has a word of the question.

    >>> [hit.section.heading for hit in answers("where does my nan come from")][:2]
    ['Where does my nan come from?', 'My loss is nan']
    >>> answers("how do I bake bread")
    []
    """
    message = find(question)
    best = [] if message is None else [message]
    try:
        scores = _Index().scores(question[:_QUESTION])
    except sqlite3.OperationalError:  # no such module: fts5
        return best
    for hit in sorted(scores, key=lambda hit: -scores[hit]):
        if hit.topic not in [other.topic for other in best]:
            best.append(hit)
    alone = message is None and len(best) > 1 and scores[best[1]] < _NEAR * scores[best[0]]
    return best[: 1 if alone else count]


def headed(heading: str) -> Hit | None:
    """Return the section of a heading, as far as its letters and digits go.

    >>> headed("what is weight decay").topic.name
    'optimizers'
    """
    words = words_of(heading)
    return next((hit for hit in _hits() if words and words_of(hit.section.heading) == words), None)


def words_of(text: str) -> list[str]:
    """Return the words of a text, with names in code taken apart.

    >>> words_of("Do I need softmax before nn.CrossEntropyLoss?")
    ['do', 'i', 'need', 'softmax', 'before', 'nn', 'cross', 'entropy', 'loss']
    """
    return re.findall(r"[^\W_]+", _plain(_RAISED.sub(" ", text)).casefold())


def _plain(text: str) -> str:
    """Return a text whose names in camel case and with underscores are taken apart."""
    return _CAMEL.sub(" ", text)


def _quoted(text: str) -> Iterator[str]:
    """Yield the code that a question quotes, without spaces, as far as an ellipsis.

    >>> [*_quoted("what is v @ M.T, y.backward([0.1, 1.0]) or where(x > 0, …), and why 2222?")]
    ['y.backward([0.1,1.0])', 'where(x>0,', 'v@M.T', '2222']
    """
    joined = re.sub(r"\s*([@*/,])\s*", r"\1", text)
    found = ["".join(match.groups("")) for match in _CODE.finditer(joined)]
    for code in sorted(found, key=len, reverse=True):
        code = re.split(r"…|\.\.\.", _closed(code))[0]
        if len(code) >= _LEAST:
            yield code


def _closed(code: str) -> str:
    return re.sub(r"\s", "", code)


@cache
def _hits() -> list[Hit]:
    """Return all sections that have a text."""
    return [Hit(topic, section) for topic in topics().values() for section in topic.sections if section.text]


@cache
class _Index:
    """The sections in a table of FTS5's; its rows are counted from 1, as SQLite does."""

    def __init__(self) -> None:
        self.hits = _hits()
        self.closed = [_closed(hit.section.text) for hit in self.hits]
        self.table = sqlite3.connect(":memory:")
        weakref.finalize(self, self.table.close)
        columns = "names, asked, heading, prose, tokenize = 'porter unicode61'"
        self.table.execute(f"CREATE VIRTUAL TABLE sections USING fts5({columns})")
        rows = [tuple(map(_plain, searched(hit.topic, hit.section))) for hit in self.hits]
        self.table.executemany("INSERT INTO sections VALUES (?, ?, ?, ?)", rows)
        self.vocabulary = sorted({word for row in rows for word in words_of(" ".join(row)) if len(word) > _SHORT})

    def scores(self, question: str) -> dict[Hit, float]:
        """Return the scores of the sections that have a word of the question, or the code that it quotes."""
        words = words_of(question)
        content = [self.corrected(w) for w in dict.fromkeys(words) if w not in EMPTY and not w.isdigit()]
        pairs = [f"{a} {b}" for a, b in pairwise(words) if a not in EMPTY or b not in EMPTY]
        content += words_of(" ".join(meant for word, meant in _SYNONYMS.items() if word in (*words, *question.split())))
        total: defaultdict[int, float] = defaultdict(float)
        for terms, weight in ((content, 1.0), (pairs, _PAIRS)):
            for row, score in self.matching(terms).items():
                total[row] += weight * score
        for code in _quoted(question):
            whole = re.compile(rf"(?<![\d.]){re.escape(code)}(?![\d.])" if code[0].isdigit() else re.escape(code))
            rows = [row for row, text in enumerate(self.closed) if whole.search(text)]
            for row in rows:
                total[row] += _QUOTED / len(rows)
        return {self.hits[row]: score for row, score in total.items()}

    def matching(self, terms: list[str]) -> dict[int, float]:
        """Return the scores of the rows that have one of the terms; rows are counted from 0."""
        query = f"SELECT rowid - 1, -bm25(sections, {_WEIGHTS}) FROM sections WHERE sections MATCH ?"
        terms = [f'"{term}"' for term in dict.fromkeys(terms)]
        return dict(self.table.execute(query, [" OR ".join(terms)]).fetchall()) if terms else {}

    def corrected(self, word: str) -> str:
        """Return a word that the guide has: this one, or a similar one where it has none."""
        if len(word) <= _SHORT or word in _SYNONYMS or self.matching([word]):
            return word
        known = [other for other in self.vocabulary if other[0] == word[0]]  # the first letter is hardly ever wrong
        return next(iter(difflib.get_close_matches(word, known, n=1, cutoff=_LIKE)), word)


def searched(topic: Topic, section: Section) -> tuple[str, str, str, str]:
    """Return a section's columns in the index; the section with the page's title has its names and `words`, too."""
    names = words = ""
    if section.heading == topic.title:
        names, words = " ".join([topic.title, topic.summary, topic.name, *topic.also]), topic.words
    return names, words, " ".join([section.heading, *section.messages]), _FENCED.sub("", section.text)
