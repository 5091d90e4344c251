"""What exported files call: functions that the rows of operations spell, and small ones that the files bring along.

Those of C and JavaScript are in `helpers.c` and `helpers.js`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path

from gradcli.graph.operation import Kind
from gradcli.graph.operations import OPERATIONS

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


def names_in(target: str, *kinds: Kind) -> dict[str, str]:
    """Return how a target calls the operations of these kinds, of those that it has a function for.

    >>> names_in("jax", "matrix")["inv"], names_in("torch", "scan")["cumsum"]
    ('linalg.inv', 'cumsum')
    """
    rows = ((op, row.spelling_in(target)) for op, row in OPERATIONS.items() if row.kind in kinds)
    return {op: name for op, name in rows if name}


def calls_in(target: str, whole: Callable[[str], str], *kinds: Kind, arguments: str = "") -> dict[str, str]:
    """Return the calls of operations of these kinds, of elementwise ones if none is given, with fields for arguments.

    `whole` adds a library to a name; `arguments` are those of each call, by default as many as the operation has.

    >>> calls_in("torch", "torch.{}".format)["mod"]
    'torch.remainder({}, {})'
    >>> calls_in("torch", "torch.{}".format, "scan", arguments="{}, dim={axis}")["cumsum"]
    'torch.cumsum({}, dim={axis})'
    """
    names = names_in(target, *(kinds or ("elementwise", "step", "condition")))
    return {
        op: name if "{" in name else f"{whole(name)}({arguments or ', '.join(['{}'] * OPERATIONS[op].arity)})"
        for op, name in names.items()
    }
