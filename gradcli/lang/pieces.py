"""A text as pieces: comments blanked, statements separated, brackets matched."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from gradcli.errors import InputError, Source, Span
from gradcli.graph.names import NAME
from gradcli.lang.characters import check_characters

PAIRS = {"(": ")", "[": "]", "{": "}"}
# The left side of an assignment.
TARGET = re.compile(rf"(input\s+)?({NAME})\s*(\[[^\]=]*\])?\s*=(?!=)\s*", re.ASCII)

_TOKEN = re.compile(r"[()\[\]{};\n]")
_PLAIN = re.compile(
    r"[^()\[\]{};\n]*+(?:\([^()\[\]{};\n]*+\)[^()\[\]{};\n]*+)*+(?=[;\n]|\Z)"
)  # no brackets in brackets
_COMMENT = re.compile(r"#[^\n]*")
_CONTINUED = re.compile(r"\\ *\n")
_MAX_DEPTH = 150  # Python's own parser stops at 200 brackets


def split(source: Source) -> Iterator[tuple[str, int]]:
    """Yield the text and the offset of each non-empty statement; `;` and newlines separate them."""
    text = clean(source)
    check_characters(source, text, 0)
    for start, end in pieces(source, text, 0):
        piece = text[start:end]
        stripped = piece.lstrip()
        if stripped:
            yield stripped.rstrip().replace("\n", " "), start + len(piece) - len(stripped)


@lru_cache(maxsize=1)  # a point may have thousands of values, each of which is read by itself
def clean(source: Source) -> str:
    """Return the text with comments and unusual white space blanked, all other characters at the same offsets.

    `·` is the product sign of gradcli's own tables: what is printed can be typed.
    """
    text = source.text
    if "#" in text:
        text = _COMMENT.sub(lambda m: " " * len(m.group()), text)
    text = text.translate({ord("\r"): " ", ord("\t"): " ", ord("·"): "*", 0xFEFF: " "})
    # A backslash at the end of a line continues it, as in Python.
    return _CONTINUED.sub(lambda m: " " * len(m.group()), text) if "\\" in text else text


def pieces(source: Source, text: str, offset: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of each piece between `;` and newlines outside of brackets, and check the brackets."""
    end = -1
    while end < len(text):
        start = end + 1
        plain = _PLAIN.match(text, start)
        end = plain.end() if plain else _end(source, text, start, offset)
        yield start, end


def _end(source: Source, text: str, start: int, offset: int) -> int:
    """Return where a piece ends, with its brackets checked one by one."""
    opened: list[re.Match[str]] = []
    for token in _TOKEN.finditer(text, start):
        sign = token.group()
        if sign in PAIRS:
            opened.append(token)
            if len(opened) > _MAX_DEPTH:
                raise InputError(
                    f"brackets are nested more than {_MAX_DEPTH} deep",
                    _at(source, offset, token),
                    "give the inner part a name of its own",
                )
        elif sign in ")]}":
            if not opened:
                raise InputError(f"unmatched `{sign}`", _at(source, offset, token), "remove it, or open it before")
            wanted = PAIRS[opened.pop().group()]
            if wanted != sign:
                span = _at(source, offset, token)
                raise InputError(f"`{sign}` closes a bracket that needs `{wanted}`", span, f"type `{wanted}`")
        elif sign == ";" and opened:
            break
        elif not opened:
            return token.start()
    if opened:
        sign = opened[-1].group()
        raise InputError(f"`{sign}` is never closed", _at(source, offset, opened[-1]), f"add a `{PAIRS[sign]}`")
    return len(text)


def _at(source: Source, offset: int, match: re.Match[str]) -> Span:
    return Span(source, offset + match.start(), offset + match.end())
