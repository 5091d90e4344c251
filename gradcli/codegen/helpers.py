"""Small functions that exported C and JavaScript files bring along, from `helpers.c` and `helpers.js`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
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


def needed(called: Iterable[str], known: Mapping[str, list[str]]) -> list[list[str]]:
    """Return the lines of the functions that are called, and of those that these call, in the order of the file.

    Names of other functions are left out.

    >>> [lines[1] for lines in needed({"softplus", "sqrt"}, helpers("helpers.c"))]
    ['static inline double larger(double a, double b)', 'static inline double softplus(double x)']
    """
    result: set[str] = set()
    pending = set(called)
    while pending:
        if (name := pending.pop()) in known and name not in result:
            result.add(name)
            pending |= calls("\n".join(line for line in known[name] if not line.startswith(("/*", "//"))))
    return [lines for name, lines in known.items() if name in result]


@cache
def calls(rule: str) -> frozenset[str]:
    """Return the names of the functions that the text of a rule, or of a helper, calls.

    >>> sorted(calls("smaller(larger({}, {}), {})"))
    ['larger', 'smaller']
    """
    return frozenset(re.findall(r"\w+(?=\()", rule))


def camel(name: str) -> str:
    """Return a name as JavaScript has it.

    >>> camel("sort_indices")
    'sortIndices'
    """
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
