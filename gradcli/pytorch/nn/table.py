"""The table of modules, `modules.txt`: their parameters, the functions that they call, and their `repr`."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Mapping, Sequence
from dataclasses import field, make_dataclass
from functools import cache
from typing import Any, NamedTuple

from gradcli.pytorch.schema import REQUIRED
from gradcli.pytorch.tables import paragraphs


class Row(NamedTuple):
    """A module: PyTorch's file, its base, the function that its forward calls with some attributes, and arguments.

    `constructor` is the class whose constructor it is, where that is another one.
    """

    home: str
    base: str
    calls: list[str]
    takes: str | None = None
    shows: str | None = None
    constructor: str | None = None


@cache
def rows() -> dict[str, Row]:
    """Return the row of each module by its name."""
    result: dict[str, Row] = {}
    for paragraph in paragraphs("nn/modules.txt")[1:]:
        home, *modules = re.split(r"\n(?! )", paragraph)
        base = ""
        for module in modules:
            (name, *calls), *more = map(str.split, module.split("\n"))
            base = name if name.startswith("_") else base
            parts = {_FIELDS.get(word, word): " ".join(rest) for word, *rest in more}
            result[name] = Row(home, base, calls, **parts)
    return result


_FIELDS = {"from": "constructor"}


def parameters(row: str) -> dict[str, Any]:
    """Return the defaults of arguments by their names.

    >>> parameters("start_dim=1 end_dim=-1")
    {'start_dim': 1, 'end_dim': -1}
    """
    words = (word.partition("=") for word in row.split())
    return {name: literal_eval(value) if value else REQUIRED for name, _, value in words}


def bound_arguments(name: str, known: Mapping[str, Any], args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of the constructor of a class of this name, with the defaults of those that are not there.

    Errors: Python's `TypeError` for what does not fit.
    """
    first = dict(zip(known, args, strict=False))
    result = {k: v for k, v in known.items() if v is not REQUIRED} | first | kwargs
    if result.keys() != known.keys() or len(args) > len(known) or first.keys() & kwargs:
        fields: list[Any] = [k if v is REQUIRED else (k, Any, field(default=v)) for k, v in known.items()]
        row = rows().get(name)
        owner = (row and row.constructor) or name
        make_dataclass(owner, fields)(*args, **kwargs)  # so that Python says what does not fit
    return result
