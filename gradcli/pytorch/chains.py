"""The functions of PyTorch's graph that a call is there, where the record has one step: what its edges show.

`functions.txt` writes them as a chain, such as `NllLoss(LogSoftmax(0))`: the name of each function without `Backward0`,
and its inputs, of which a number is that of an operand.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, NamedTuple

from gradcli.pytorch.functions import fact, find

# What shows, or copies, the elements of its input in another shape.
_SHAPING = ("T", "View", "UnsafeView", "Clone", "Transpose", "Unsqueeze", "Expand")


class Chain(NamedTuple):
    """A function with its inputs: other functions, or the positions of operands; None of one without a gradient."""

    name: str
    inputs: tuple[Any, ...]

    def path(self, position: int) -> list[tuple[Chain, int]]:
        """Return the functions from the last one to the operand at a position, each with the input that leads there."""
        for i, part in enumerate(self.inputs):
            if part == position:
                return [(self, i)]
            if isinstance(part, Chain) and (rest := part.path(position)):
                return [(self, i), *rest]
        return []


@cache
def chain_of(text: str) -> Chain | None:
    """Return a chain that is written so; None for the name of one function.

    >>> chain_of("NllLoss(LogSoftmax(0))").inputs[0].name, chain_of("MulBackward0")
    ('LogSoftmaxBackward0', None)
    """
    if "(" not in text:
        return None
    parts: list[list[Any]] = [[]]
    for name, number, none, end in re.findall(r"([A-Z]\w*)\(|(\d+)|(_)|(\))", text):
        if name:
            parts.append([name if "Backward" in name else f"{name}Backward0"])
        elif number or none:
            parts[-1].append(int(number) if number else None)
        elif end:
            name, *inputs = parts.pop()
            parts[-1].append(Chain(name, tuple(inputs)))
    result: Chain = parts[0][0]
    return result


@cache
def chain(key: str) -> str:
    """Return the chain of a kind of call, as the table has it."""
    result = fact("chain", key)
    assert result is not None, key
    return result


@cache
def name_of(text: str) -> str:
    """Return PyTorch's name of a step that a chain, or a name, tells.

    >>> name_of("Mm(0,T(1))"), name_of("MulBackward0")
    ('MmBackward0', 'MulBackward0')
    """
    known = chain_of(text)
    return text if known is None else known.name


@cache
def shows_base(text: str) -> bool:
    """Return whether PyTorch's result is a view of one that no script has: the rows of a linear map, reshaped.

    >>> shows_base("View(Addmm(2,View(0),T(1)))"), shows_base("Mm(0,T(1))"), shows_base("ViewBackward0")
    (True, False, False)
    """
    known = chain_of(text)
    return known is not None and known.name in ("ViewBackward0", "SqueezeBackward1")


@cache
def root_of(text: str) -> str:
    """Return the last function that computes something, without `Backward0`.

    >>> root_of("View(Addmm(2,View(0),T(1)))"), root_of("SumBackward1")
    ('Addmm', 'SumBackward1')
    """
    known = chain_of(text)
    while known is not None and known.name.removesuffix("Backward0") in _SHAPING and isinstance(known.inputs[0], Chain):
        known = known.inputs[0]
    return (text if known is None else known.name).removesuffix("Backward0")


def returning(text: str, position: int) -> tuple[str, int]:
    """Return the function that computes the gradient of an operand, and of which of its inputs that is the gradient.

    >>> returning("View(Addmm(2,View(0),T(1)))", 1)
    ('AddmmBackward0', 2)
    """
    known = chain_of(text)
    for function, i in reversed(known.path(position) if known is not None else ()):
        if function.name.removesuffix("Backward0") not in _SHAPING:
            return function.name, i
    return name_of(text), position


@cache
def inputs_of(text: str) -> tuple[tuple[int, str], ...] | None:
    """Return the operands that the last function of a chain reads, each with its form: "T", "View", or "" as it is.

    None where it reads what another function computes.

    >>> inputs_of("Addmm(2,0,T(1))"), inputs_of("NllLoss(LogSoftmax(0))")
    (((2, ''), (0, ''), (1, 'T')), None)
    """
    known = chain_of(text)
    parts = () if known is None else known.inputs
    result: list[Any] = [(p.inputs[0], form_of(p)) if isinstance(p, Chain) else (p, "") for p in parts]
    return tuple(result) if all(isinstance(k, int) and form is not None for k, form in result) else None


def form_of(function: Chain) -> str | None:
    """Return the form that a function gives to an operand; None of one that computes something."""
    return {"TBackward0": "T", "ViewBackward0": "View", "UnsqueezeBackward0": "View"}.get(function.name)


def saved_as(text: str, position: int) -> str:
    """Return the form in which PyTorch saves the operand at a position: "T" transposed, "View" as rows, or "".

    >>> saved_as("Addmm(2,0,T(1))", 1), saved_as("Addmm(2,0,T(1))", 0)
    ('T', '')
    """
    known = chain_of(text)
    path = known.path(position) if known is not None else ()
    return (form_of(path[-1][0]) or "") if len(path) > 1 else ""


def saved_position(text: str, word: str) -> int | None:
    """Return the position of the operand that the last function of a call saves under a word; None where it has none.

    >>> saved_position("Addmm(2,0,T(1))", "mat2"), saved_position("NllLoss(LogSoftmax(0))", "mat2")
    (1, None)
    """
    known = chain_of(text)
    schema = None if known is None else find(re.sub(r"Backward\d*$", "", known.name).lower())
    names = [*schema.arguments] if schema is not None else []
    if known is None or word not in names or names.index(word) >= len(known.inputs):
        return None
    part = known.inputs[names.index(word)]
    if isinstance(part, Chain):
        part = part.inputs[0] if part.name == "TBackward0" else None
    return part  # type: ignore[no-any-return]
