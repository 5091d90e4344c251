"""The operands of a script's operations that have no history: numbers, data, and expressions of these."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from gradcli.engine.evaluate import at_point
from gradcli.errors import InputError, Source
from gradcli.graph.array import Weights
from gradcli.graph.graph import Graph
from gradcli.graph.node import ARITHMETIC, Node, const, leaf
from gradcli.graph.shapes import size_of
from gradcli.lang.builder import build
from gradcli.lang.expressions import read_expression
from gradcli.notation.nodes import Notation
from gradcli.record.naming import FreshNames
from gradcli.record.numbers import Numbers, decimal
from gradcli.record.record import CallSite, Changed, Cut, Operation, Quantity, Record
from gradcli.script.expressions import Expressions
from gradcli.script.instances import instance

Array = np.ndarray[Any, Any]
Meaning = Callable[..., Node | None]  # the node of a name, and of a computed one where it is compared
Local = Callable[..., str]  # what an operand was called where it was read; with True, or the function that made it

_SMALL = 16  # elements of an array without a name that is written out
_BRIEF = 24  # digits of all of them
_AXES = 8  # of which the position of a part is written
_WHOLE = 2**53  # below, a float that is an integer is exact
_CLOSE = 1e-5  # of float32 numbers: no record is kept of what has no history, so it is computed again, in float64


def exact(value: Any) -> int | Decimal | float:
    """Return a number as the value of a constant: its shortest decimal, as it was typed (`repr`).

    >>> exact(np.float32(0.1)), exact(np.float64(3)), exact(np.float64("inf"))
    (Decimal('0.1'), 3, inf)
    """
    number = float(str(value)) if isinstance(value, np.float32) else value.item()
    if isinstance(number, int) or (number.is_integer() and abs(number) < _WHOLE and str(number) != "-0.0"):
        return int(number)
    return Decimal(repr(number)) if np.isfinite(number) else number


def _is_one_number(a: Array) -> bool:
    return bool((a == a.reshape(-1)[:1]).all())


def literal(a: Array) -> Node:
    """Return a tensor's numbers as a constant: a list, or one number that fills it; labels are a list also then."""
    numbers = a.reshape(-1)
    is_filled = _is_one_number(numbers) and not (a.dtype.kind == "i" and a.size <= _SMALL)
    values = tuple(exact(v) for v in (numbers[:1] if is_filled else numbers))
    return const(values[0] if len(values) == 1 else values, a.shape, "bool" if a.dtype == bool else "float64")


def number_node(numbers: Numbers) -> Node:
    """Return indices, a position or a factor as a constant."""
    a = numbers.array
    if a.dtype.kind == "f":
        return const(exact(a.reshape(-1)[0]))
    if a.ndim == 1 and a.size <= _AXES:
        return const(tuple(a.tolist()), a.shape, "int64")
    return const(Weights(a), a.shape, "int64")


def part_of(operation: Operation | None, record: Record) -> str:
    """Return a part of a tensor with a name, which an operation shows, as it is typed: data[0:2]; "" for no part."""
    if operation is None or operation.row != "view":
        return ""
    (source,), (q,) = operation.operands, operation.results
    base = record.quantities[source]  # type: ignore[index]
    if size_of(record.quantities[q].shape) >= size_of(base.shape):
        return ""
    node = leaf(base.shape)
    return Notation({node: base.name}).expression(instance(operation.definitions[0], [node])[-1])


def unnamed(_or_function: bool = False) -> str:
    """Return the name of an operand that has none."""
    return ""


class Operands:
    """The inputs of a system, with their values and names, and the nodes of operands."""

    at: dict[str, Array]
    quantities: dict[str, Quantity]
    since: dict[str, tuple[CallSite, CallSite]]
    literals: dict[int, Node]
    used: set[int]  # the quantities that operations read

    def __init__(self, record: Record, sources: Mapping[str, str]) -> None:
        self.record = record
        self.expressions = Expressions(sources)
        named = [(clock, name, q) for q in record.quantities for clock, name in q.names]
        self.named: dict[str, Quantity] = {}  # what each name is now, in the order of the program's definitions
        for _, name, q in sorted(named, key=lambda item: item[0]):
            self.named.pop(name, None)
            self.named[name] = q
        self.every = {name for q in record.quantities if (name := q.name)} | {o.module for o in record.operations}
        self.nodes: dict[int, Node] = {}  # by quantity
        self.inputs: dict[str, Node] = {}
        self.computed: dict[str, Node] = {}
        self.free = FreshNames(self.inputs, self.computed)
        self.free_beside_all = FreshNames(self.every, self.inputs, self.computed)
        self.cuts = {e.result: e for e in reversed(record.events) if isinstance(e, Cut)}  # the first of each
        self.changes = {e.storage: e.site for e in record.events if isinstance(e, Changed)}

    def fresh(self, name: str) -> str:
        """Return a name that no input has."""
        return self.free.like(name)

    def unused(self, *names: str) -> str:
        """Return the first of some names that the script uses for nothing else, or else the last."""
        assigned = self.expressions.assigned()
        return next((n for n in names if n not in self.every and n not in assigned), names[-1])

    def input(self, name: str, array: Array, quantity: Quantity | None = None) -> Node:
        """Add an input, with the quantity that it is."""
        name = self.fresh(name)
        node = leaf(array.shape)
        if quantity is not None:
            self.quantities[name] = quantity
        self.inputs[name] = node
        self.at[name] = decimal(array)
        return node

    def local(self, operation: Operation, i: int, or_function: bool = False) -> str:
        """Return the script's name of an operand where an operation reads it, made distinct from other names.

        Of a call that is read at once, `or_function` takes the function's name: randn_like.
        """
        name, x = self.expressions.operand_name(operation, i, or_function), operation.operands[i]
        is_within = self.expressions.called(operation.site).strip("_") not in ("", operation.row)
        if operation.row in ARITHMETIC and isinstance(x, int) and (operation.site.is_module or is_within):
            known = self.named.get(name)  # a mask within attention, say, is none of the call's arguments
            read = self.record.quantities[x].numbers.array
            name = name if known is not None and np.array_equal(known.numbers.array, read, equal_nan=True) else ""
        return name and self.free_beside_all.like(name)

    def note_since(self, name: str, quantity: Quantity, site: CallSite) -> None:
        """Note that an input is as a line read it, if it was changed in place since."""
        if quantity.changed:
            self.since[name] = site, self.changes.get(quantity.storage, CallSite("", 0))

    def fixed(self, quantity: Quantity, site: CallSite, local: Local = unnamed) -> Node:
        """Return the node of an operand that nothing is recorded of.

        `local` returns what it was called where it was read, of one that is gone.
        """
        if quantity.id not in self.nodes:
            name = quantity.name or None
            known = None
            if name is None:
                known = self.shown(quantity, site) or self.written(quantity.numbers.array, site)
            count = len(self.inputs)
            self.nodes[quantity.id] = known or self.constant(quantity, name, local)
            for new in islice(reversed(self.inputs), len(self.inputs) - count):
                self.note_since(new, quantity, site)
        return self.nodes[quantity.id]

    def constant(self, quantity: Quantity | None, name: str | None, local: Local = unnamed, a: Any = None) -> Node:
        """Return the node of a tensor without a gradient: a literal for few numbers without a name, else an input."""
        a = quantity.numbers.array if quantity is not None else a
        labels = a.dtype.kind == "i" and a.ndim > 0  # no gradient flows to integers: they are constants
        stands = labels or (name is None and _is_one_number(a))  # such as the ones of a sum
        name = name or (None if stands else local() or None)
        node = literal(a) if a.size and (stands or (name is None and a.size <= _SMALL)) else None
        if node is None or not (stands or sum(len(str(v)) for v in node.values) <= _BRIEF):
            return self.input(name or local(True) or self.unused("data", "constant"), a, quantity)
        if name is not None:
            self.computed[self.fresh(name)] = node
        elif quantity is not None and not labels:
            self.literals[quantity.id] = node
        return node

    def shown(self, quantity: Quantity, site: CallSite) -> Node | None:
        """Return what shows the memory of a tensor with a name: h for h.detach(), or a part, an input data[0:2].

        Beside h itself, the alias is an input h.detach().
        """
        operation = self.record.producers.get(quantity.id)
        if operation is None or operation.is_opaque:
            return None
        (source,) = operation.operands
        base = self.record.quantities[source]  # type: ignore[index]
        if operation.row == "alias":
            if (cut := self.cuts.get(quantity.id)) is None:
                return None if base.requires else self.fixed(base, site)
            is_beside = cut.kind == "DETACHED" and (
                base.name in self.computed or (base.requires and base.id in self.used)
            )
            return self.input(f"{base.name}{cut.code}" if is_beside else base.name, quantity.numbers.array, quantity)
        part = part_of(operation, self.record)
        if not part:
            return instance(operation.definitions[0], [self.fixed(base, site)])[-1]
        if part in self.inputs and np.array_equal(self.at[part], decimal(quantity.numbers.array), equal_nan=True):
            return self.inputs[part]  # which has been read before
        return self.input(part, quantity.numbers.array, quantity)

    def written(self, a: Array, site: CallSite) -> Node | None:
        """Return the script's expression for an operand without a name as a node, if it has the operand's values."""
        for expression in self.expressions.operands(site):
            before = {*self.inputs}
            node = node_of(expression, partial(self.meaning, site))
            if node is not None and node.args and gives(node, self.inputs, self.at, decimal(a)):
                return node
            for name in {*self.inputs} - before:
                self.forget(name)
        return None

    def meaning(self, site: CallSite, name: str, compared: bool = False) -> Node | None:
        """Return the node of a tensor that has a name, of one that requires a gradient only to compare it."""
        quantity = self.named.get(name)
        if quantity is not None and quantity.requires:
            return self.nodes.get(quantity.id) if compared else None
        return None if quantity is None else self.fixed(quantity, site)

    def forget(self, name: str) -> None:
        """Remove an input."""
        node = self.inputs.pop(name)
        del self.at[name]
        self.nodes = {k: n for k, n in self.nodes.items() if n is not node}


# The expressions of the script


def node_of(expression: ast.expr, meaning: Meaning) -> Node | None:
    """Return the node of an expression that is a formula of the script's names; None where it is none."""
    inside = [n for c in ast.walk(expression) if isinstance(c, ast.Compare) for n in ast.walk(c)]
    names = {n.id: n in inside for n in ast.walk(expression) if isinstance(n, ast.Name) and n.id != "torch"}
    scope = {name: node for name, compared in names.items() if (node := meaning(name, compared)) is not None}
    formula = re.sub(r"(?<![\w.])torch\.", "", ast.unparse(expression))  # exp for torch.exp
    try:
        return build(read_expression(Source(formula)), scope)
    except InputError:
        return None


def gives(node: Node, inputs: Mapping[str, Node], at: Mapping[str, Array], expected: Array) -> bool:
    """Return whether a node has these values at the point: the tensor of a name may have changed since.

    >>> from gradcli.graph.node import leaf
    >>> x, three = leaf(()), np.array(3.0)
    >>> [gives(x * x, {"x": x}, {"x": three}, np.array(value)) for value in (9.0, 8.0)]
    [True, False]
    """
    if node.shape != expected.shape:
        return False
    known = {name: n for name, n in inputs.items() if name in at}
    graph = Graph.of(known, {"": node})
    result = at_point(graph, {name: at[name] for name in known}, [node])[node]
    return bool(np.allclose(result, expected, rtol=_CLOSE, atol=_CLOSE, equal_nan=True))
