"""The cells of a row of CSV, in quotes where they must be."""

from __future__ import annotations

import re
from collections.abc import Iterable

_SPECIAL = re.compile(r'[",\r\n]')
_QUOTE = '"'


def line(values: Iterable[object]) -> str:
    """Return the cells of a row, and the commas between them.

    >>> line(["a,b", 3, None])
    '"a,b",3,'
    """
    return ",".join(map(cell, values))


def cell(value: object) -> str:
    """Return a value as a cell; None is an empty one."""
    text = "" if value is None else str(value)
    return f'"{text.replace(_QUOTE, 2 * _QUOTE)}"' if _SPECIAL.search(text) else text
