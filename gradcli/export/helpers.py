"""Small functions that exported C and JavaScript files bring along, from `helpers.c` and `helpers.js`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

_HEAD = re.compile(r"^(?:static inline \w+|function) (\w+)\(", re.MULTILINE)


def helpers(file: str) -> dict[str, list[str]]:
    """Return the lines of each function in a file of this folder, with its comment, by name.

    Blank lines separate the functions, and a function follows those that it calls.

    >>> helpers("helpers.c")["larger"][1]
    'static inline double larger(double a, double b)'
    """
    blocks = Path(__file__).with_name(file).read_text("utf-8").rstrip("\n").split("\n\n")
    return {head[1]: block.splitlines() for block in blocks if (head := _HEAD.search(block))}


def needed(text: str, known: Mapping[str, list[str]]) -> list[list[str]]:
    """Return the lines of the functions that a text calls, and of those that these call, in the order of the file.

    >>> [lines[1] for lines in needed("y = softplus(x);", helpers("helpers.c"))]
    ['static inline double larger(double a, double b)', 'static inline double softplus(double x)']
    """
    result: set[str] = set()
    pending = [text]
    while pending:
        called = set(re.findall(r"\w+(?=\()", pending.pop())) & known.keys() - result
        result |= called
        pending += ["\n".join(line for line in known[name] if not line.startswith(("/*", "//"))) for name in called]
    return [lines for name, lines in known.items() if name in result]


def camel(name: str) -> str:
    """Return a name as JavaScript has it.

    >>> camel("sort_indices")
    'sortIndices'
    """
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
