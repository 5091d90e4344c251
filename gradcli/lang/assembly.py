"""Assignments in the order of the text: names, and vectors that are assigned element by element."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import zip_longest

import numpy as np

from gradcli.errors import InputError, Span
from gradcli.graph import construct
from gradcli.graph.array import Array, Named
from gradcli.graph.graph import Graph, needed_for, scheduled
from gradcli.graph.names import element_name
from gradcli.graph.node import Node
from gradcli.graph.shapes import indices, size_of
from gradcli.graph.subsystem import Subsystem
from gradcli.lang.builder import build, is_condition
from gradcli.lang.elements import build_elements, coupled, joined
from gradcli.lang.indices import whole_key
from gradcli.lang.statements import Statement


def no_value(condition: Statement) -> InputError:
    """Return the error of a condition that is assigned."""
    return InputError("a condition is not a value", condition.span, "write `where(x > 0, 1, 0)`")


class Assembly:
    """The scope while statements are read: names, and vectors of which some elements are assigned."""

    def __init__(self, scope: dict[str, Node]) -> None:
        self.scope = scope
        self.names: dict[str, Node] = {}
        self.spans: dict[Node, Span] = {}
        self.parts: dict[Node, str] = {}
        self.variables: dict[Node, str] = {}
        self.elements: dict[str, dict[tuple[int, ...], Node]] = {}
        self.vectors: dict[str, list[tuple[tuple[Array, ...], Node]]] = {}  # that loops assign, with their indices
        self.first: dict[str, Span] = {}  # of the elements of each
        self.open: set[str] = set()

    def add(self, statement: Statement, *others: Statement) -> None:
        """Add the name, the element, or the elements of a loop, that a statement assigns.

        With `others`, loops over the same range, their elements are computed together, round by round.

        Errors: `InputError`, with its position.
        """
        together = (statement, *others)
        if self.open:
            read = {name for s in together for name in self._wholes(s)}
            for name in sorted(read & self.open - {s.name for s in together}):
                self._close(name)
        if others:
            for s, key, element in coupled(together, self.scope):
                self._assign(s._replace(key=key), element)
            return
        loop = statement.loop
        if loop is None:
            self._assign(statement, build(statement.expression, self.scope, self.spans))
        # The text of a loop is that of any element: nodes do not keep it, and a page shows what they compute.
        elif (vector := build_elements(statement, loop, self.scope, {})) is not None:
            self._begin(statement, vector)
            self.vectors.setdefault(statement.name or "", []).append((loop.key, vector))
        else:
            for _, key, element in coupled(together, self.scope):
                self._assign(statement._replace(key=key), element)

    def _wholes(self, statement: Statement) -> Iterator[str]:
        """Yield the names that a statement reads otherwise than by an element that is assigned."""
        elements = set()
        for tree in ast.walk(statement.expression.tree):
            if isinstance(tree, ast.Subscript) and isinstance(tree.value, ast.Name):
                key = whole_key(tree.slice)
                if key is not None and element_name(tree.value.id, key) in self.scope:
                    elements.add(id(tree.value))
        yield from (n.id for n in statement.expression.names if id(n) not in elements)

    def include(self, part: Subsystem, inputs: Mapping[str, Node], fixed: Named) -> None:
        """Add the names that a subsystem computes from its inputs.

        Errors: those of `Subsystem.build`.
        """
        nodes = part.build(inputs, fixed)
        self.scope.update(nodes)
        self.names.update(nodes)
        self.spans.update(part.spans)
        self.parts.update(part.parts)
        self.variables.update(part.variables)

    def finish(self, outputs: Collection[str], begun: Collection[str | None]) -> None:
        """Put together the vectors that no statement has used as a whole; others may have no element 0.

        Those are what each round of a recurrence from 1 on computes, whose elements alone are read.
        """
        for name in sorted(self.open):
            if name in outputs or name in begun:
                self._close(name)

    def _begin(self, statement: Statement, node: Node) -> None:
        """Check the assigned node, and record the elements of a vector."""
        name = statement.name or ""
        if is_condition(node):
            raise no_value(statement)
        if statement.assembles:
            if name in self.first and name not in self.open:
                raise InputError(f"`{name}` has been used as a whole, and cannot get another element", statement.span)
            self.first.setdefault(name, statement.expression.span(statement.expression.tree))
            self.open.add(name)

    def _assign(self, statement: Statement, node: Node) -> None:
        name = full = statement.name or ""
        self._begin(statement, node)
        if statement.key is not None:
            full = element_name(name, statement.key)
            if full in self.names:
                raise InputError(f"`{full}` is assigned twice", statement.span, "every element is assigned once")
            self.elements.setdefault(name, {})[statement.key] = node
        self.scope[full] = self.names[full] = node

    def _close(self, name: str) -> None:
        """Put the elements of a vector or matrix together, at its first use as a whole or at the end."""
        self.open.remove(name)
        try:
            self.scope[name] = self.names[name] = _assembled(name, self._pieces(name))
        except InputError as error:
            raise error.at(self.first[name]) from None

    def _pieces(self, name: str) -> list[tuple[Array, Node]]:
        """Return the elements that were assigned, with their indices, a row an element."""
        elements, vectors = self.elements.get(name, {}), self.vectors.get(name, [])
        keys = [*elements, *(tuple(k[0] for k in key) for key, _ in vectors)]
        if len({*map(len, keys)}) > 1:
            raise InputError(f"elements of `{name}` are assigned by one index and by several")
        pieces = [(np.stack(key, axis=1), vector) for key, vector in vectors]
        if not vectors:
            order = sorted(elements)
            return [(np.array(order), construct.stack([elements[key] for key in order]))]
        return pieces + [(np.array([key]), construct.stack([element])) for key, element in elements.items()]

    def graph(self, inputs: Mapping[str, Node], outputs: Sequence[str]) -> Graph:
        """Return the graph of the outputs, with all names that they need, in the order of the text."""
        chosen = {name: self.scope[name] for name in outputs}
        nodes = scheduled(self.names.values(), inputs.values())
        needed = needed_for(chosen.values(), nodes)
        names = {name: n for name, n in self.names.items() if n in needed}
        needed.update(inputs.values())
        known = self.spans, self.parts, self.variables
        return Graph(tuple([n for n in nodes if n in needed]), inputs, chosen, names, *known)


def _assembled(name: str, pieces: Sequence[tuple[Array, Node]]) -> Node:
    """Return the array of which each piece has some elements, with their indices.

    Errors: `InputError` for an element that is assigned twice, or never.
    """
    keys = np.concatenate([key for key, _ in pieces])
    shape = tuple(int(n) + 1 for n in keys.max(axis=0))
    ordered = keys[np.lexsort(keys.T[::-1])]
    repeated = (ordered[1:] == ordered[:-1]).all(axis=1)
    if repeated.any():
        element = element_name(name, ordered[int(repeated.argmax())])
        raise InputError(f"`{element}` is assigned twice", hint="every element is assigned once")
    if size_of(shape) != len(keys):
        # Those that are assigned follow each other, in order, up to the first that is not.
        pairs = zip_longest(indices(shape), map(tuple, ordered.tolist()))
        missing = next(wanted for wanted, assigned in pairs if wanted != assigned)
        raise InputError(f"`{element_name(name, missing)}` is never assigned")
    flat = [(np.ravel_multi_index(tuple(key.T), shape), node) for key, node in pieces]
    whole = joined(flat)
    return construct.reshape(whole, shape + whole.shape[1:])
