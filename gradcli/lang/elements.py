"""Elements that a loop assigns, as operations on whole arrays: `y[i] = x[i] - x[i-1] for i in 1..9`.

An elementwise operation becomes one operation for all points, and `x[i-1]` a slice.  Anything else, such as an element
that is computed from the one before, is written out point by point.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from gradcli.errors import InputError, Span
from gradcli.graph import construct
from gradcli.graph.array import Array
from gradcli.graph.index_arrays import IndexArray, take
from gradcli.graph.names import element_name
from gradcli.graph.node import Node, const
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.shapes import size_of
from gradcli.lang.builder import Walk, is_condition
from gradcli.lang.expressions import Expression
from gradcli.lang.indices import whole_key
from gradcli.lang.loops import Integers, Loop, integers_of, mask_of, points_in, varying
from gradcli.lang.statements import Statement

MAX_WRITTEN_OUT = 10_000  # points

Scope = Mapping[str, Node]
Built = tuple[Sequence[ast.expr], Callable[[list[Node]], Node]]


class _OneByOne(InputError):
    """Raised for an expression that is not elementwise: each round of the loop becomes an expression of its own."""


def build_elements(statement: Statement, loop: Loop, scope: Scope, spans: dict[Node, Span]) -> Node | None:
    """Return the elements that a statement assigns as one vector; None where each has to be written out.

    Errors: `InputError` at its position, also for elements that are too many to be written out.
    """
    expression = statement.expression
    try:
        return _AllPoints(statement, loop, scope, spans).elements()
    except _OneByOne as error:
        if loop.size > MAX_WRITTEN_OUT:
            hint = f"up to {MAX_WRITTEN_OUT:,} elements may be; {error.hint}"
            message = f"{error.message}, and {loop.size:,} elements are too many to be computed one by one"
            raise InputError(message, error.span or expression.span(expression.tree), hint) from None
        return None


def one_by_one(
    statement: Statement, loop: Loop, scope: Scope, spans: dict[Node, Span]
) -> Iterator[tuple[tuple[int, ...], Node]]:
    """Yield the index and the node of each element; the scope has those before it.

    Errors: `InputError` at its position.
    """
    for k in range(loop.size):
        point = {name: int(a[k]) for name, a in loop.variables.items()}
        yield tuple(int(a[k]) for a in loop.key), _OnePoint(statement, {**loop.integers, **point}, scope, spans).run()


class _AllPoints(Walk):
    """A walk over an expression at all points of a loop: what depends on them is a vector, with a point an element."""

    def __init__(self, statement: Statement, loop: Loop, scope: Scope, spans: dict[Node, Span]) -> None:
        super().__init__(statement.expression, scope, spans)
        self.name = statement.name
        self.loop = loop
        tree = statement.expression.tree
        self.varies = varying(tree, loop.variables)
        try:
            self.points = points_in(tree, loop)
        except InputError as error:
            raise error.at(statement.expression.span(error.about)) from None

    def elements(self) -> Node:
        """Return the elements, in the order of the points."""
        tree = self.expression.tree
        node = self.run()
        if id(tree) not in self.varies and node.shape:
            raise _OneByOne("each element is an array", self.expression.span(tree), "an element is a number")
        return node if is_condition(node) else construct.broadcast(node, (self.loop.size,))

    def count(self, tree: ast.AST) -> int:
        """Return the number of points at which a part is computed."""
        return len(next(iter(self.points[id(tree)].values())))

    def variable(self, tree: ast.Name) -> Node:
        if id(tree) not in self.varies:
            return super().variable(tree)
        values = self.points[id(tree)][tree.id]
        return const(tuple(values.tolist()), values.shape)

    def visit(self, tree: ast.expr) -> Built:
        if isinstance(tree, ast.IfExp):
            return self.choice(tree)
        result = super().visit(tree)
        return result if isinstance(tree, ast.Subscript) else self.each(tree, *result)

    def call(self, tree: ast.Call) -> Built:
        return self.each(tree, *super().call(tree))

    def each(self, tree: ast.expr, parts: Sequence[ast.expr], finish: Callable[[list[Node]], Node]) -> Built:
        """Return the parts, and the function that builds the node; it raises `_OneByOne` unless that is elementwise."""
        if id(tree) not in self.varies:
            return parts, finish
        shape = (self.count(tree),)

        def checked(args: list[Node]) -> Node:
            scalars = all(id(p) in self.varies or not a.shape for p, a in zip(parts, args, strict=True))
            try:
                node = finish(args) if scalars else None
            except InputError as error:  # a function that takes numbers only
                raise _OneByOne(error.message, self.expression.span(tree), error.hint) from None
            if node is None or not _is_pointwise(node, args, shape):
                hint = "whole arrays are the way for more: y = x[1:] - x[:-1]"
                raise _OneByOne("this takes arrays", self.expression.span(tree), hint)
            return node

        return parts, checked

    def choice(self, tree: ast.IfExp) -> Built:
        """Return the branches of `a if i > 0 else b`, each at its own points, and the function that joins them."""
        mask = mask_of(tree, {**self.loop.integers, **self.points[id(tree)]})
        chosen = [(b, np.flatnonzero(m)) for b, m in ((tree.body, mask), (tree.orelse, ~mask)) if m.any()]

        def finish(args: list[Node]) -> Node:
            pieces = []
            for (branch, positions), node in zip(chosen, args, strict=True):
                if is_condition(node) or (node.shape and id(branch) not in self.varies):
                    raise _OneByOne("this is an array", self.expression.span(branch), "an element is a number")
                pieces.append((positions, construct.broadcast(node, positions.shape)))
            return joined(pieces)

        return [branch for branch, _ in chosen], finish

    def subscript(self, value: ast.expr, key: ast.expr) -> Built:
        if id(key) not in self.varies and id(value) not in self.varies:
            return super().subscript(value, _worked_out(key, self.loop.integers, self.expression))
        if isinstance(value, ast.Name) and value.id == self.name:
            hint = "sums and products of all elements before are `cumsum` and `cumprod`"
            raise _OneByOne(f"an element of `{value.id}` is computed from others", self.expression.span(value), hint)
        if id(value) in self.varies:
            raise _OneByOne(
                "this takes an element of an element", self.expression.span(value), "an element is a number"
            )
        parts = key.elts if isinstance(key, ast.Tuple) else [key]
        try:
            keys = indices_in(key, {**self.loop.integers, **self.points[id(key)]}, self.expression)
        except InputError:
            if any(isinstance(part, ast.Slice) for part in parts):
                raise _OneByOne("this is a slice", self.expression.span(key), "an element is a number") from None
            raise
        return (value,), lambda args: self.taken(args[0], keys, key)

    def taken(self, x: Node, keys: Sequence[Array | int], key: ast.expr) -> Node:
        """Return the vector of the elements of `x` at the indices `keys`: one element for each round of the loop."""
        if len(keys) < len(x.shape) or is_condition(x):
            raise _OneByOne("this is an array", self.expression.span(key), "an element is a number")
        if len(keys) > len(x.shape):
            raise InputError(f"an array of shape {x.shape} has fewer axes than indices", self.expression.span(key))
        count = (self.count(key),)
        along = [np.broadcast_to(np.asarray(k), count) for k in keys]
        for size, positions in zip(x.shape, along, strict=True):
            if (outside := (positions < 0) | (positions >= size)).any():
                raise self.outside(int(positions[outside.argmax()]), size, key, int(outside.argmax()))
        ranges = _product(along)
        if ranges is not None:
            return construct.reshape(construct.index(x, ranges), count)
        flat = np.ravel_multi_index(along, x.shape)
        return take(construct.reshape(x, (x.size,)), 0, IndexArray.of(flat))

    def outside(self, index: int, size: int, key: ast.expr, point: int) -> InputError:
        where = ", ".join(f"{name} = {a[point]}" for name, a in self.points[id(key)].items())
        hint = f"elements are counted from 0 to {size - 1}; the first is left out by `x[i-1] if i > 0 else 0`"
        return InputError(f"there is no element {index} among {size}, which is needed at {where}",
                          self.expression.span(key), hint)  # fmt: skip


class _OnePoint(Walk):
    """A walk over an expression at one point of a loop, at which its variables are integers."""

    def __init__(self, statement: Statement, names: Mapping[str, int], scope: Scope, spans: dict[Node, Span]) -> None:
        super().__init__(statement.expression, scope, spans)
        self.name = statement.name
        self.names = names

    def variable(self, tree: ast.Name) -> Node:
        return const(self.names[tree.id]) if tree.id in self.names else super().variable(tree)

    def visit(self, tree: ast.expr) -> Built:
        if isinstance(tree, ast.IfExp):
            return [tree.body if mask_of(tree, self.names) else tree.orelse], lambda args: args[0]
        return super().visit(tree)

    def subscript(self, value: ast.expr, key: ast.expr) -> Built:
        key = _worked_out(key, self.names, self.expression)
        whole = whole_key(key)
        if isinstance(value, ast.Name) and value.id == self.name and whole is not None:
            element = element_name(value.id, whole)
            if element not in self.scope:
                hint = "give it a statement before this one"
                raise InputError(f"`{element}` is used before it is assigned", None, hint)
        return super().subscript(value, key)


def _worked_out(key: ast.expr, names: Mapping[str, int], expression: Expression) -> ast.expr:
    """Return a subscript with its integers, and those in its slices, computed.

    Errors: `InputError` at its position, for a negative one: `x[i-1]` is not meant to be the last element.
    """
    match key:
        case ast.Tuple(parts):
            return ast.Tuple([_worked_out(part, names, expression) for part in parts])
        case ast.Slice():
            return ast.Slice(*(end and _worked_out(end, names, expression) for end in (key.lower, key.upper, key.step)))
    if not any(isinstance(part, ast.Name | ast.BinOp) for part in ast.walk(key)):
        return key
    (index,) = indices_in(key, names, expression)
    if index < 0:
        raise InputError(f"there is no element {index}", expression.span(key), "elements are counted from 0")
    return ast.Constant(int(index))


def indices_in(key: ast.expr, names: Integers, expression: Expression) -> list[Array | int]:
    """Return the integers of a subscript, for each axis one, or an array of one a point.

    Errors: `InputError` at the part that is not an integer.
    """
    result = []
    for part in key.elts if isinstance(key, ast.Tuple) else [key]:
        try:
            index = integers_of(part, names)
            if np.asarray(index).dtype == np.bool_:
                raise InputError("an index must be an integer", None, "a condition follows `if`", part)
        except InputError as error:
            raise error.at(expression.span(error.about)) from None
        result.append(index)
    return result


def largest_indices(expression: Expression, loop: Loop) -> dict[int, tuple[int, ...] | None]:
    """Return the largest indices at which arrays are read, by `id` of the array's name; None if not by integers.

    Errors: `InputError` at its position, for a condition that is not one of indices.
    """
    try:
        points = points_in(expression.tree, loop)
    except InputError as error:
        raise error.at(expression.span(error.about)) from None
    result: dict[int, tuple[int, ...] | None] = {}
    for tree in ast.walk(expression.tree):
        if isinstance(tree, ast.Subscript) and id(tree) in points:
            try:
                keys = indices_in(tree.slice, {**loop.integers, **points[id(tree)]}, expression)
            except InputError:
                keys = []
            largest = tuple(int(np.max(k)) for k in keys)
            result[id(tree.value)] = largest if keys and min(largest) >= 0 else None
    return result


def joined(pieces: Sequence[tuple[Array, Node]]) -> Node:
    """Return one array of all slices; each piece has the positions of its slices, and together they are complete.

    >>> joined([(np.array([1, 2]), const((5, 6), (2,))), (np.array([0]), const(4, (1,)))]).shape
    (3,)
    """
    pieces = sorted(pieces, key=lambda piece: int(piece[0][0]))
    whole = construct.concatenate([node for _, node in pieces], 0)
    positions = np.concatenate([positions for positions, _ in pieces])
    if (positions[1:] > positions[:-1]).all():
        return whole
    return take(whole, 0, IndexArray.of(np.argsort(positions)))


def _is_pointwise(node: Node, args: Sequence[Node], shape: tuple[int, ...]) -> bool:
    """Return whether a node is computed from the arguments element by element."""
    seen = set(args)
    work = [node]
    while work:
        step = work.pop()
        if step in seen:
            continue
        seen.add(step)
        if step.shape not in ((), shape):
            return False
        if not step.is_constant and not OPERATIONS[step.op].broadcasts:
            return False
        work += step.args
    return True


def _product(along: Sequence[Array]) -> tuple[int | range, ...] | None:
    """Return the integers and ranges whose combinations, in order, are the points with these indices, or None."""
    axes = [_progression(positions) for positions in along]
    if any(axis is None for axis in axes):
        return None
    result = [axis for axis in axes if axis is not None]
    if size_of(tuple(map(len, result))) != len(along[0]):
        return None
    grid = np.meshgrid(*(np.array(axis) for axis in result), indexing="ij")
    if not all(np.array_equal(g.reshape(-1), positions) for g, positions in zip(grid, along, strict=True)):
        return None
    return tuple(axis[0] if len(axis) == 1 and len(along[0]) == 1 else axis for axis in result)


def _progression(positions: Array) -> range | None:
    """Return the range of the different integers in an array, in the order in which they come first; or None."""
    different, first = np.unique(positions, return_index=True)
    ordered = different[np.argsort(first)]
    start = int(ordered[0])
    if len(ordered) == 1:
        return range(start, start + 1)
    step = int(ordered[1]) - start
    return range(start, int(ordered[-1]) + (1 if step > 0 else -1), step) if (np.diff(ordered) == step).all() else None
