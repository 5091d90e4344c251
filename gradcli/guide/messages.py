"""The section of the guide that explains a message of PyTorch's.

Messages are compared as rows of words: numbers, shapes and punctuation vary from run to run, and the wording drifts
from version to version.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from functools import cache

from gradcli.guide.topics import Section, Topic, topics

_WORD = re.compile(r"\b[^\W\d]\w*")
_ENOUGH = 0.75  # of a message's words, where the wording has drifted
_LEAST = 3  # words that tell one message from another
_MANY = 6  # words of a message that may drift: a shorter one would be found in too many texts
_LONGEST = 20_000  # characters of a text that are looked at: a traceback ends with the message


@dataclass(frozen=True)
class Hit:
    """A section that explains a message, and its topic."""

    topic: Topic
    section: Section


def words(text: str) -> list[str]:
    """Return the words of a text that do not vary.

    >>> words("a Tensor with 2 elements cannot be converted")
    ['a', 'tensor', 'with', 'elements', 'cannot', 'be', 'converted']
    """
    return _WORD.findall(text.casefold())


@cache
def _known() -> list[tuple[list[list[str]], Hit]]:
    """Return each wording of each message, as the rows of words between what varies."""
    return [
        ([words(part) for part in wording.split("…")], Hit(topic, section))
        for topic in topics().values()
        for section in topic.sections
        for wording in section.messages
    ]


def find(text: str) -> Hit | None:
    """Return the section that explains the message in a text: the message alone, a part of it, or a whole traceback.

    >>> find("RuntimeError: grad can be implicitly created only for scalar outputs").topic.name
    'gradient-argument'
    """
    question = words(text[-_LONGEST:])
    for score in (_in_text, _of_message, _drifted):
        best = max(((score(rows, question), result) for rows, result in _known()), key=lambda pair: pair[0])
        if best[0]:
            return best[1]
    return None


def _in_text(rows: list[list[str]], question: list[str]) -> float:
    """Return how many words a message has, if the text has all its rows of words in order; else 0."""
    line, start = f" {' '.join(question)} ", 0
    for row in rows:
        if row:
            at = line.find(f" {' '.join(row)} ", start)
            if at < 0:
                return 0
            start = at + len(" ".join(row)) + 1
    return sum(map(len, rows))


def _of_message(rows: list[list[str]], question: list[str]) -> float:
    """Return the share of a message's words that the text has, if the text is a part of the message; else 0."""
    line = " ".join(word for row in rows for word in row)
    inside = len(question) >= _LEAST and f" {' '.join(question)} " in f" {line} "
    return len(question) / len(line.split()) if inside else 0


def _drifted(rows: list[list[str]], question: list[str]) -> float:
    """Return the share of a message's words that the text has in order, if it is most of them."""
    message = [word for row in rows for word in row]
    blocks = difflib.SequenceMatcher(None, message, question[-500:], autojunk=False).get_matching_blocks()
    share = sum(block.size for block in blocks) / len(message)
    return share if share >= _ENOUGH and len(message) >= _MANY else 0
