"""The tangent of a run: what `--u` says, as one array for each leaf."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gradcli.cli.points import example_of
from gradcli.data.arrays import array_of
from gradcli.errors import InputError, Notes, nearest
from gradcli.graph.array import Array, Named
from gradcli.graph.node import Node
from gradcli.graph.shapes import inside
from gradcli.lang.values import Assignment, read_point
from gradcli.platform import quote


def read_tangent(leaves: Mapping[str, Node], options: Sequence[str], notes: Notes) -> Named:
    """Return the tangent of each leaf: what `--u` gives, and 0 for the rest; without it, 1 for a single scalar leaf.

    Errors: `InputError` for names that are no leaves, for shapes that do not fit, and for several leaves without --u.
    """
    if len(options) > 1:
        raise InputError(
            "--u is given twice",
            hint=f"one tangent has all inputs in it: --u {quote(','.join(options))}",
            options=("--u",),
        )
    if not options:
        return _implicit(leaves)
    tangent: Named = {name: np.zeros(x.shape) for name, x in leaves.items()}
    said = read_point(options[0], "--u")
    for a in said:
        if a.name not in leaves:
            raise InputError(f"`{a.name}` is not an input here", a.span, nearest(a.name, leaves, "inputs"))
        try:
            value = array_of(a.value)
        except InputError as error:
            raise error.at(a.span) from None
        _put(tangent, a, value)
    named = {a.name for a in said}
    missing = [name for name in leaves if name not in named]
    if missing:
        notes.add("note", f"{', '.join(missing[:6])}{', …' * (len(missing) > 6)}: not in `--u`, so the tangent is 0")
    return tangent


def _put(tangent: Named, said: Assignment, value: Array) -> None:
    """Assign a tangent to a leaf, or to one of its elements."""
    name, shape = said.name, tangent[said.name].shape
    if said.key is None and value.shape != shape:
        raise InputError(
            f"the tangent has shape {value.shape}, and `{name}` has shape {shape}",
            said.span,
            "a tangent has a number for each element: how fast it changes",
        )
    if said.key is None:
        tangent[name] = value
    elif value.shape or not inside(said.key, shape):
        raise InputError(f"`{said.span.text}` is not an element of `{name}`, of shape {shape}", said.span)
    else:
        tangent[name][said.key] = value


def _implicit(leaves: Mapping[str, Node]) -> Named:
    if len(leaves) == 1 and (name := next(iter(leaves))) and leaves[name].size == 1:
        return {name: np.ones(leaves[name].shape)}
    example = quote(example_of({name: x.shape for name, x in leaves.items()}))
    raise InputError(
        "no tangent is given: J·u needs a u, which says how fast each input changes",
        hint=f"for example --u {example}; an input that is left out has 0",
    )
