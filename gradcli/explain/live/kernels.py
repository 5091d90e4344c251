"""The JavaScript of a live page: a function for each kind of operation, of its passes and of its local derivatives.

The functions are exported from the graphs that everything else comes from: an operation alone, and its reverse sweep.
Equal operations share theirs, so that a page of 2,000 of them has a few dozen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gradcli.export.helpers import needed
from gradcli.export.javascript import HELPERS, RESERVED, body
from gradcli.export.program import Function, loop_function
from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.node import Node, leaf
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.rewrite import substituted
from gradcli.graph.vjp import reverse

ADJOINT, RESULT = -1, -2  # what a function may read beside the arguments of its operation


class Call(NamedTuple):
    """A call of a function: its index, and what it reads: arguments by their positions, or one of the above."""

    function: int
    reads: tuple[int, ...]


class Pull(NamedTuple):
    """The calls of a node's contribution to an argument and, for an elementwise node, of its local derivative."""

    contribution: Call
    slope: Call | None


@dataclass
class Kernels:
    """The functions of a program, which several pages may share.

    >>> x = leaf()
    >>> kernels = Kernels()
    >>> kernels.forward(x * x), kernels.forward(leaf() * leaf())
    (Call(function=0, reads=(0, 1)), Call(function=0, reads=(0, 1)))
    """

    functions: list[Function] = field(default_factory=list)
    _forward: dict[Any, Call] = field(default_factory=dict)
    _pulls: dict[Any, dict[int, Pull]] = field(default_factory=dict)
    _corners: dict[Any, Call] = field(default_factory=dict)

    def forward(self, node: Node) -> Call:
        """Return the call that computes a node from its arguments."""
        key = _signature(node)
        if key not in self._forward:
            alone, arguments = standing_alone(node)
            self._forward[key] = self._add(alone, arguments)
        return self._forward[key]

    def pull(self, node: Node, position: int) -> Pull:
        """Return the calls of the VJP rule of a node for one argument."""
        key = _signature(node)
        if key not in self._pulls:
            self._pulls[key] = {}
        if position not in self._pulls[key]:
            alone, arguments = standing_alone(node)
            adjoint = leaf(alone.shape, alone.dtype)
            active = {alone, alone.args[position]}
            graph = Graph.of({f"a{i}": a for i, a in arguments.items()}, {"y": alone})
            (contribution,) = reverse(graph, [(alone, adjoint)], active)[0]
            read = arguments | {ADJOINT: adjoint, RESULT: alone}
            slope = None if contribution.slope is None else self._add(contribution.slope, read)
            self._pulls[key][position] = Pull(self._add(contribution.contribution, read), slope)
        return self._pulls[key][position]

    def corner(self, node: Node) -> Call:
        """Return the call that computes at which elements a node has its corner, from the node and its arguments."""
        key = _signature(node)
        if key not in self._corners:
            alone, arguments = standing_alone(node)
            corner = OPERATIONS[node.op].corner
            assert corner is not None
            self._corners[key] = self._add(corner.at(alone, *alone.settings, *alone.args), arguments | {RESULT: alone})
        return self._corners[key]

    def _add(self, result: Node, read: Mapping[int, Node]) -> Call:
        """Add the function of a node that is computed from some others, which become its arguments."""
        known = {n: leaf(n.shape, n.dtype) for n in read.values() if not n.is_leaf}
        if known:
            (result,) = substituted([result], known)
        names = {known.get(n, n): k for k, n in read.items()}
        used = [(names[n], n) for n in scheduled([result]) if n in names]
        inputs = {f"a{k}" if k >= 0 else "gy"[-k - 1]: n for k, n in used}
        name = f"k{len(self.functions)}"
        self.functions.append(loop_function(name, Graph.of(inputs, {"r": result}), RESERVED | {name}))
        return Call(len(self.functions) - 1, tuple(k for k, _ in used))

    def program(self) -> str:
        """Return the functions as JavaScript: a list of them, in their order."""
        called: set[str] = set()
        tables: list[str] = []
        first: dict[str, int] = {}  # functions of different shapes may be the same program
        names = []
        for k, function in enumerate(self.functions):
            used, statements = body(function, called)
            tables += used
            text = f"({', '.join(function.arguments)}) {{\n" + "\n".join(statements)
            names.append(f"k{first.setdefault(text, k)}")
        helpers = [line for lines in needed(called, HELPERS) for line in lines]
        functions = [f"function k{k}{text}\n}}" for text, k in first.items()]
        lines = [*helpers, *tables, *functions, f"const KERNELS = [{', '.join(names)}];"]
        short = (line.strip() for line in "\n".join(lines).splitlines())
        return "\n".join(line for line in short if line and not line.startswith("//")) + "\n"


def standing_alone(node: Node) -> tuple[Node, dict[int, Node]]:
    """Return the same operation of leaves and of single constants, and these leaves by their positions."""
    arguments = {i: leaf(a.shape, a.dtype) for i, a in enumerate(node.args) if a.value is None}
    return node.with_args(tuple(arguments.get(i, a) for i, a in enumerate(node.args))), arguments


def _signature(node: Node) -> Sequence[Any]:
    """Return a key that is equal for operations with the same function."""
    arguments = tuple((a.shape, a.dtype, str(a.value) if a.value is not None else None) for a in node.args)
    return node.op, node.settings, arguments, node.shape, node.dtype
