"""Nodes as text, in the language of gradcli: what a forward step computes, what a pullback passes on."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from gradcli.graph.elementwise import ELEMENTWISE
from gradcli.graph.node import Graph, Node, fresh_names

_LEVELS = {"add": 1, "sub": 1, "mul": 2, "div": 2, "matmul": 2, "mod": 2, "neg": 2, "pow": 3}
_ATOM = 9


def node_names(graph: Graph) -> dict[Node, str]:
    """Return the names under which the nodes of a system are shown: the user's, `t1`, `t2`, … for the others.

    Constants are shown as they are, and have no name.

    >>> from gradcli.graph.node import leaf
    >>> x = leaf("x")
    >>> list(node_names(Graph.of([x], [(3 * x**2).called("y")])).values())
    ['x', 't1', 'y']
    """
    fresh = fresh_names({n.name for n in graph.nodes if n.name})
    return {n: n.name or next(fresh) for n in graph.nodes if n.op != "const" or n.name}


def bar(name: str) -> str:
    """Return the name of an adjoint: t̄2 of t2.

    >>> unicodedata.name(bar("t2")[1])
    'COMBINING MACRON'
    """
    return f"{name[0]}\u0304{name[1:]}"


class Notation:
    """Writes nodes; those in `names` by their names, the others in terms of them."""

    def __init__(self, names: Mapping[Node, str], times: str = "·") -> None:
        self.names = names
        self.infix = {"mul": times, "div": "/", "pow": "**", "add": " + ", "sub": " - ", "matmul": " @ "}

    def name(self, node: Node) -> str:
        """Return a node's name, or what stands for it."""
        return self.names.get(node) or self.expression(node)

    def expression(self, node: Node) -> str:
        """Return what a node computes, in terms of named nodes.

        >>> from gradcli.graph.node import leaf
        >>> x = leaf("x")
        >>> Notation({x: "x"}).expression(2 * x**3)
        '2·x**3'
        """
        return self._write(node)[0]

    def _write(self, node: Node) -> tuple[str, int]:
        """Return the text of a node and how tightly it binds."""
        if node.op == "const":
            text = str(node.params[0])
            return text, 2 if isinstance(node.params[0], Fraction) else 1 if text.startswith("-") else _ATOM
        if node.op in self.infix:
            level = _LEVELS[node.op]
            left, right = node.args
            # Powers group to the right, the others to the left.
            a = self._argument(left, level + (node.op == "pow"))
            b = self._argument(right, level + (node.op not in ("add", "mul", "pow")))
            return f"{a}{self.infix[node.op]}{b}", level
        if node.op == "neg":
            return f"-{self._argument(node.args[0], 2)}", 1
        if node.op in ELEMENTWISE:
            return self._function(node), _ATOM
        return _STRUCTURAL.get(node.op, _call)(self, node), _ATOM

    def _argument(self, node: Node, level: int) -> str:
        if node in self.names:
            return self.names[node]
        text, binds = self._write(node)
        return text if binds >= level else f"({text})"

    def _function(self, node: Node) -> str:
        infix = ELEMENTWISE[node.op].infix
        if node.op == "identity":
            return self.name(node.args[0])
        if len(node.args) == 2 and infix and node.op != "mod":
            return f"({self.name(node.args[0])} {infix} {self.name(node.args[1])})"
        return f"{node.op}({', '.join(map(self.name, node.args))})"

    def arguments(self, node: Node) -> list[str]:
        """Return the names of a node's arguments."""
        return [self.name(a) for a in node.args]


def _call(notation: Notation, node: Node) -> str:
    return f"{node.op}({', '.join(notation.arguments(node))})"


def _reduction(notation: Notation, node: Node) -> str:
    (x,) = node.args
    axes = node.params[0]
    if len(axes) == len(x.shape):
        return _call(notation, node)
    return f"{node.op}({notation.name(x)}, axis={axes[0] if len(axes) == 1 else axes})"


def _along(notation: Notation, node: Node) -> str:
    axis = f", axis={node.params[0]}" if len(node.shape) > 1 else ""
    return f"{node.op}({notation.name(node.args[0])}{axis})"


def _joined(notation: Notation, node: Node) -> str:
    parts = notation.arguments(node)
    shown = ", ".join(parts[:6]) + (", …" if len(parts) > 6 else "")
    if node.op == "stack" and node.params[0] == 0:
        return f"[{shown}]"
    return f"{node.op}([{shown}], axis={node.params[0]})"


def _subscript(key: Any) -> str:
    return ", ".join(_slice(k) if isinstance(k, range) else str(k) for k in key)


def _slice(k: range) -> str:
    stop = "" if k.stop < 0 else str(k.stop)
    return f"{k.start}:{stop}" + (f":{k.step}" if k.step != 1 else "")


def _scatter(notation: Notation, node: Node) -> str:
    parts = [f"[{_subscript(k)}] += {notation.name(a)}" for k, a in zip(node.params[1], node.args, strict=True)]
    return f"zeros{_size(node.shape)} with " + ", ".join(parts[:4]) + (", …" if len(parts) > 4 else "")


def _size(shape: Any) -> str:
    return f"({', '.join(map(str, shape))})"


def _transpose(notation: Notation, node: Node) -> str:
    (order,) = node.params
    inner = notation._argument(node.args[0], _ATOM)
    return f"{inner}.T" if order == tuple(reversed(range(len(order)))) else f"permute({inner}, {order})"


def _shaped(notation: Notation, node: Node) -> str:
    return f"{node.op}({notation.name(node.args[0])}, {_size(node.shape)})"


_STRUCTURAL = {
    **dict.fromkeys(("sum", "mean", "prod", "max", "min", "norm", "var", "std", "logsumexp"), _reduction),
    **dict.fromkeys(("softmax", "cumsum"), _along),
    **dict.fromkeys(("stack", "concatenate"), _joined),
    **dict.fromkeys(("reshape", "broadcast"), _shaped),
    "index": lambda n, node: f"{n._argument(node.args[0], _ATOM)}[{_subscript(node.params[0])}]",
    "scatter": _scatter,
    "transpose": _transpose,
    "diagonal": lambda n, node: f"diag({n.name(node.args[0])})",
    "from_diagonal": lambda n, node: f"diag({n.name(node.args[0])})",
}
