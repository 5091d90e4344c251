"""Nodes rewritten: with others in the place of some that they are computed from, or by a rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

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
    known = dict(meant) | {n: n for n in kept if n not in meant}
    new = rewritten(scheduled(wanted, known), lambda n: n, known)
    return [new[n] for n in wanted]


def rewritten(
    nodes: Iterable[Node], rule: Callable[[Node], Node], known: Mapping[Node, Node] | None = None
) -> dict[Node, Node]:
    """Return for each node, in the order of computation, what a rule makes of it, its arguments being rewritten.

    Those in `known` are rewritten already.

    >>> from gradcli.graph.node import elementwise, leaf
    >>> x = leaf()
    >>> nodes = scheduled([y := elementwise("sin", -x)])
    >>> rewritten(nodes, lambda n: n.args[0] if n.op == "neg" else n)[y].args[0] is x
    True
    """
    new = dict(known or {})
    for n in nodes:
        if n not in new:
            args = tuple([new[a] for a in n.args])
            new[n] = rule(n if args == n.args else n.with_args(args))
    return new
