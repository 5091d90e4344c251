"""Nodes with others in the place of some that they are computed from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gradcli.graph.graph import scheduled
from gradcli.graph.node import Node


def substituted(wanted: Iterable[Node], meant: Mapping[Node, Node], kept: Iterable[Node] = ()) -> list[Node]:
    """Return the nodes with those that `meant` names in the place of what they stand for; `kept` ones stay as they are.

    >>> from gradcli.graph.node import leaf
    >>> x, z = leaf(), leaf()
    >>> [y] = substituted([2 * x], {x: z})
    >>> y.args[1] is z
    True
    """
    wanted = list(wanted)
    new = dict(meant) | {n: n for n in kept if n not in meant}
    for n in scheduled(wanted, new):
        if n not in new:
            args = tuple(new[a] for a in n.args)
            new[n] = n if args == n.args else n.with_args(args)
    return [new[n] for n in wanted]
