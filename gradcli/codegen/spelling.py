"""The calls of a target that the rows of operations spell."""

from __future__ import annotations

from collections.abc import Callable

from gradcli.graph.operation import Kind
from gradcli.graph.operations import OPERATIONS


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
