"""The operands of a script's operations that have no history: numbers, data, and expressions of these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from gradcli.graph.node import Node, const, leaf
from gradcli.notation.nodes import Notation
from gradcli.pytorch.calls import exact
from gradcli.pytorch.cuts import Kind
from gradcli.pytorch.record import Line, Step, edge_of
from gradcli.pytorch.tensor import Tensor, new
from gradcli.script.expressions import Expressions
from gradcli.script.instances import instance
from gradcli.script.naming import Names, fresh
from gradcli.script.written import decimal, gives, node_of, shortest

Array = np.ndarray[Any, Any]
Local = Callable[..., str]  # what an operand was called where it was read; with True, or the function that made it

_SMALL = 16  # elements of an array without a name that is written out
_BRIEF = 24  # digits of all of them


def _address(a: Array) -> tuple[Any, ...]:
    """Return where in memory the numbers of an array lie."""
    return a.__array_interface__["data"][0], a.strides


def _is_one_number(a: Array) -> bool:
    return bool((a == a.reshape(-1)[:1]).all())


def literal(x: Tensor) -> Node:
    """Return a tensor's numbers as a constant."""
    numbers = x._a.reshape(-1)
    values = tuple(exact(shortest(v)) for v in (numbers[:1] if _is_one_number(numbers) else numbers))
    return const(
        values[0] if len(values) == 1 else values, x._a.shape[:-1], "bool" if x._a.dtype == bool else "float64"
    )


def unnamed(_or_function: bool = False) -> str:
    """Return the name of an operand that has none."""
    return ""


class Operands:
    """The inputs of a system, with their values and names, and the nodes of operands."""

    at: dict[str, Array]
    tensors: dict[str, Tensor]

    def __init__(self, names: Names, sources: Mapping[str, str]) -> None:
        self.names = names
        self.expressions = Expressions(sources)
        self.nodes: dict[Any, Node] = {}
        self.inputs: dict[str, Node] = {}
        self.computed: dict[str, Node] = {}

    def fresh(self, name: str) -> str:
        """Return a name that no input has."""
        return fresh(name, {*self.inputs, *self.computed})

    def unused(self, *names: str) -> str:
        """Return the first of some names that the script uses for nothing else, or else the last."""
        taken = {*self.names.in_order(), *self.expressions.assigned()}
        return next((name for name in names if name not in taken), names[-1])

    def input(self, name: str, array: Array, x: Tensor | None = None) -> Node:
        """Add an input, with the tensor that it is."""
        name = self.fresh(name)
        node = leaf(array.shape[:-1])
        if x is not None:
            self.tensors[name] = x
        self.inputs[name] = node
        self.at[name] = decimal(array[..., 0])
        return node

    def local(self, step: Step, i: int, or_function: bool = False) -> str:
        """Return the script's name of an operand where a step reads it, made distinct from other names.

        Of a call that is read at once, `or_function` takes the function's name: randn_like.
        """
        name = self.expressions.operand_name(step, i, or_function)
        return name and fresh(name, {*self.names.in_order(), *self.inputs, *self.computed})

    def fixed(self, x: Any, line: Line, local: Local = unnamed) -> Any:
        """Return the node of an operand that nothing is recorded of: a number, a tensor, or something else.

        `local` returns what it was called where it was read, of one that is gone.
        """
        if not isinstance(x, np.ndarray | Tensor):
            return str(x) if isinstance(x, int | float | str) else "…"
        if isinstance(x, np.ndarray):
            return const(exact(shortest(x.reshape(-1)[0]))) if x.size == 1 else self.constant(new(x), None)
        if id(x) not in self.nodes:
            name = self.names.of(x) or None
            result = None if name else self.shown(x, line) or self.view(x, line) or self.written(x, line)
            self.nodes[id(x)] = result or self.constant(x, name, local)
        return self.nodes[id(x)]

    def constant(self, x: Tensor, name: str | None, local: Local = unnamed) -> Node:
        """Return the node of a tensor without a gradient: a literal for few numbers without a name, else an input."""
        labels = x._a.dtype.kind == "i" and x._a.ndim > 1  # no gradient flows to integers: they are constants
        stands = labels or (name is None and _is_one_number(x._a))  # such as the ones of a sum
        name = name or (None if stands else local() or None)
        node = literal(x) if x._a.size and (stands or (name is None and x._a.size <= _SMALL)) else None
        if node is None or not (stands or sum(len(str(v)) for v in node.values) <= _BRIEF):
            return self.input(name or local(True) or self.unused("data", "constant"), x._a, x)
        if name is not None:
            self.computed[self.fresh(name)] = node
        return node

    def shown(self, x: Tensor, line: Line) -> Node | None:
        """Return a tensor that has a name and shows the same memory: h, for h.detach(), or that beside h itself."""
        name, base = self.alias(x)
        if not name or (cut := x._detached) is None:
            return self.fixed(base, line) if name and not base.requires_grad else None
        is_beside = name in self.computed and cut.hows[0].kind is Kind.DETACHED
        return self.input(f"{name}{cut.hows[0].code}" if is_beside else name, x._a, x)

    def alias(self, x: Tensor) -> tuple[str, Tensor]:
        """Return a tensor that has a name and shows the same memory, with that name; "" where there is none."""
        named = self.names.tensors.items()
        same = ((n, y) for n, y in named if y._a.shape == x._a.shape and _address(y._a) == _address(x._a))
        return next(same, ("", x))

    def view(self, x: Tensor, line: Line) -> Node | None:
        """Return a view of a tensor that has a name; a part of it is an input such as data[0:2]."""
        base: Any = x._base
        name = "" if base is None or base.requires_grad else self.names.of(base)
        if not name:
            return None
        whole = leaf(base.shape) if x.numel() < base.numel() else self.fixed(base, line)
        node = whole
        for recipe in x._how:
            node = instance(recipe.output, {recipe.inputs[0]: node})
        return self.input(Notation({whole: name}).expression(node), x._a) if x.numel() < base.numel() else node

    def written(self, x: Tensor, line: Line) -> Node | None:
        """Return the script's expression for an operand without a name as a node, if it has the operand's values."""
        for expression in self.expressions.operands(line):
            before = {*self.inputs}
            node = node_of(expression, partial(self.named, line))
            if node is not None and node.args and gives(node, self.inputs, self.at, decimal(x._a[..., 0])):
                return node
            for name in {*self.inputs} - before:
                self.forget(name)
        return None

    def named(self, line: Line, name: str, compared: bool = False) -> Node | None:
        """Return the node of a tensor that has a name, of one that requires a gradient only to compare it."""
        x = self.names.tensors.get(name)
        if x is not None and x.requires_grad:
            return self.nodes.get(edge_of(x)) if compared else None
        return None if x is None else self.fixed(x, line)

    def forget(self, name: str) -> None:
        """Remove an input."""
        node = self.inputs.pop(name)
        del self.at[name]
        self.nodes = {k: n for k, n in self.nodes.items() if n is not node}
