"""The table of modules, `modules.txt`: their parameters, the functions that they call, and their `repr`."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Mapping, Sequence
from dataclasses import field, make_dataclass
from functools import cache
from typing import Any, NamedTuple

from gradcli.pytorch.schema import REQUIRED
from gradcli.pytorch.tables import paragraphs, pytorch_names


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
        home, *modules = re.split(r"\n(?! )", re.sub(r"\n  ", " ", paragraph))
        base = ""
        for module in modules:
            words, *more = map(str.split, module.split("\n"))
            names = [word for word in words if not word[0].islower()]
            base = names[0] if names[0].startswith("_") else base
            parts = {_FIELDS.get(word, word): " ".join(rest) for word, *rest in more}
            for name in names:
                result[name] = Row(home, base, _call(name, words[len(names) :]), **parts)
    return result


_FIELDS = {"from": "constructor"}


def _call(module: str, words: list[str]) -> list[str]:
    """Return the function that a module calls, and the attributes that it takes: some words, or behind it.

    >>> _call("KLDivLoss", []), _call("Dropout1d", ["p", "training"]), _call("Upsample", ["interpolate"])
    (['kl_div'], ['dropout1d', 'p', 'training'], ['interpolate'])
    """
    if words and words[0] in pytorch_names()["torch.nn.functional"]:
        return words
    letters = module.lower()
    own = _functions().get(letters) or _functions().get(letters.removesuffix("loss"))
    return [own, *words] if own else words


@cache
def _functions() -> dict[str, str]:
    """Return the functions of `torch.nn.functional` by their letters."""
    return {n.replace("_", ""): n for n in pytorch_names()["torch.nn.functional"] if not n.endswith("_")}


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
