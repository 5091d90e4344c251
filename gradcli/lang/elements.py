"""Elements that a loop assigns, as operations on whole arrays: `y[i] = x[i] - x[i-1] for i in 1..9`.

An elementwise operation becomes one operation for all iterations, and `x[i-1]` a slice.  Anything else, such as an
element that is computed from the one before, is written out iteration by iteration.
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
from gradcli.lang.indices import too_many, whole_key
from gradcli.lang.loops import Integers, Loop, integers_of, iterations_by_part, mask_of, varying
from gradcli.lang.statements import Statement

MAX_WRITTEN_OUT = 10_000  # iterations

_BEFORE = "give it a statement before this one"
_FIRST = "; the first is left out by `x[i-1] if i > 0 else 0`"

Scope = Mapping[str, Node]
Built = tuple[Sequence[ast.expr], Callable[[list[Node]], Node]]


class _NotElementwiseError(InputError):
    """Raised for an expression that is not elementwise: each round of the loop becomes an expression of its own."""


def build_elements(statement: Statement, loop: Loop, scope: Scope, spans: dict[Node, Span]) -> Node | None:
    """Return the elements that a statement assigns as one vector; None where each has to be written out.

    Errors: `InputError` at its position, also for elements that are too many to be written out.
    """
    expression = statement.expression
    try:
        return _WholeLoop(statement, loop, scope, spans).elements()
    except _NotElementwiseError as error:
        if loop.size > MAX_WRITTEN_OUT:
            hint = f"up to {MAX_WRITTEN_OUT:,} elements may be; {error.hint}"
            message = f"{error.message}, and {loop.size:,} elements are too many to be computed one by one"
            raise InputError(message, error.span or expression.span(expression.tree), hint) from None
        return None


def coupled(statements: Sequence[Statement], scope: Scope) -> Iterator[tuple[Statement, tuple[int, ...], Node]]:
    """Yield the elements that loops over the same range assign, round by round: a statement, an index and a node.

    The scope has the elements before each.

    Errors: `InputError` at its position.
    """
    loops = [(s, s.loop) for s in statements if s.loop is not None]
    names = frozenset(s.name or "" for s in statements)
    (first, loop), *others = loops
    if others and loop.size > MAX_WRITTEN_OUT:
        message = (
            f"these elements are computed from each other, and {loop.size:,} are too many to be computed one by one"
        )
        raise InputError(message, first.span, f"up to {MAX_WRITTEN_OUT:,} elements may be")
    for k in range(loop.size):
        variables = {name: int(a[k]) for name, a in loop.variables.items()}
        for s, its in loops:
            node = _OneIteration(s, {**its.integers, **variables}, names, scope).run()
            yield s, tuple(int(a[k]) for a in its.key), node


def build_rounds(expression: Expression, loop: Loop, scope: Scope) -> Node:
    """Return the values of an expression in the iterations of a loop, stacked along a new first axis.

    Errors: `InputError` at its position.
    """
    statement = Statement(None, None, False, expression, 0, 0, loop=loop)
    result = build_elements(statement, loop, scope, {})
    return construct.stack([node for *_, node in coupled([statement], scope)]) if result is None else result


def picked(x: Node, flat: Array) -> Node:
    """Return the elements of an array at indices into its flattened form: as a slice, if they are one.

    >>> picked(const(0, (2, 3)), np.array([[0, 3]])).shape
    (1, 2)
    """
    x = x if x.shape else construct.reshape(x, (1,))
    along = np.unravel_index(flat.reshape(-1), x.shape)
    ranges = _product(along)
    if ranges is not None:
        return construct.reshape(construct.index(x, ranges), flat.shape)
    return take(construct.reshape(x, (x.size,)), 0, IndexArray.of(flat))


class _WholeLoop(Walk):
    """A walk over an expression in all iterations of a loop.

    What depends on loop variables is a vector, with an element for each iteration.
    """

    def __init__(self, statement: Statement, loop: Loop, scope: Scope, spans: dict[Node, Span]) -> None:
        super().__init__(statement.expression, scope, spans)
        self.name = statement.name
        self.loop = loop
        tree = statement.expression.tree
        self.varies = varying(tree, loop.variables)
        try:
            self.iterations = iterations_by_part(tree, loop)
        except InputError as error:
            raise error.at(statement.expression.span(error.about)) from None

    def elements(self) -> Node:
        """Return the elements, in the order of the iterations."""
        tree = self.expression.tree
        node = self.run()
        if id(tree) not in self.varies and node.shape:
            raise _NotElementwiseError("each element is an array", self.expression.span(tree), "an element is a number")
        return node if is_condition(node) else construct.broadcast(node, (self.loop.size,))

    def count(self, tree: ast.AST) -> int:
        """Return the number of iterations in which a part is computed."""
        return len(next(iter(self.iterations[id(tree)].values())))

    def variable(self, tree: ast.Name) -> Node:
        if id(tree) not in self.varies:
            if tree.id == self.name and tree.id not in self.scope:
                raise _NotElementwiseError("its own elements are read", self.expression.span(tree), _BEFORE)
            return super().variable(tree)
        values = self.iterations[id(tree)][tree.id]
        return const(tuple(values.tolist()), values.shape)

    def visit(self, tree: ast.expr) -> Built:
        if isinstance(tree, ast.IfExp):
            return self.choice(tree)
        result = super().visit(tree)
        return result if isinstance(tree, ast.Subscript) else self.each(tree, *result)

    def call(self, tree: ast.Call) -> Built:
        return self.each(tree, *super().call(tree))

    def each(self, tree: ast.expr, parts: Sequence[ast.expr], finish: Callable[[list[Node]], Node]) -> Built:
        """Return the parts, and the function that builds the node; it raises an error unless that is elementwise."""
        if id(tree) not in self.varies:
            return parts, finish
        shape = (self.count(tree),)

        def checked(args: list[Node]) -> Node:
            scalars = all(id(p) in self.varies or not a.shape for p, a in zip(parts, args, strict=True))
            try:
                node = finish(args) if scalars else None
            except InputError as error:  # a function that takes numbers only
                raise _NotElementwiseError(error.message, self.expression.span(tree), error.hint) from None
            if node is None or not _is_pointwise(node, args, shape):
                hint = "whole arrays are the way for more: y = x[1:] - x[:-1]"
                raise _NotElementwiseError("this takes arrays", self.expression.span(tree), hint)
            return node

        return parts, checked

    def choice(self, tree: ast.IfExp) -> Built:
        """Return the branches of `a if i > 0 else b`, each in its own iterations, and the function that joins them."""
        mask = mask_of(tree, {**self.loop.integers, **self.iterations[id(tree)]})
        chosen = [(b, np.flatnonzero(m)) for b, m in ((tree.body, mask), (tree.orelse, ~mask)) if m.any()]

        def finish(args: list[Node]) -> Node:
            pieces = []
            for (branch, positions), node in zip(chosen, args, strict=True):
                if is_condition(node) or (node.shape and id(branch) not in self.varies):
                    raise _NotElementwiseError(
                        "this is an array", self.expression.span(branch), "an element is a number"
                    )
                pieces.append((positions, construct.broadcast(node, positions.shape)))
            return joined(pieces)

        return [branch for branch, _ in chosen], finish

    def subscript(self, value: ast.expr, key: ast.expr) -> Built:
        if id(key) not in self.varies and id(value) not in self.varies:
            return super().subscript(value, _worked_out(key, self.loop.integers, self.expression))
        if isinstance(value, ast.Name) and value.id == self.name:
            hint = "sums and products of all elements before are `cumsum` and `cumprod`"
            raise _NotElementwiseError(
                f"an element of `{value.id}` is computed from others", self.expression.span(value), hint
            )
        if id(value) in self.varies:
            raise _NotElementwiseError(
                "this takes an element of an element", self.expression.span(value), "an element is a number"
            )
        parts = key.elts if isinstance(key, ast.Tuple) else [key]
        try:
            keys = indices_in(key, {**self.loop.integers, **self.iterations[id(key)]}, self.expression)
        except InputError:
            if any(isinstance(part, ast.Slice) for part in parts):
                raise _NotElementwiseError(
                    "this is a slice", self.expression.span(key), "an element is a number"
                ) from None
            raise
        return (value,), lambda args: self.taken(args[0], keys, value, key)

    def taken(self, x: Node, keys: Sequence[Array | int], value: ast.expr, key: ast.expr) -> Node:
        """Return the vector of the elements of `x` at the indices `keys`: one element for each round of the loop."""
        if len(keys) < len(x.shape) or is_condition(x):
            raise _NotElementwiseError("this is an array", self.expression.span(key), "an element is a number")
        if len(keys) > len(x.shape):
            raise too_many(x, value).at(self.expression.span(key))
        count = (self.count(key),)
        along = [np.broadcast_to(np.asarray(k), count) for k in keys]
        for size, positions in zip(x.shape, along, strict=True):
            if (outside := (positions < 0) | (positions >= size)).any():
                raise self.outside_error(int(positions[outside.argmax()]), size, key, int(outside.argmax()))
        return picked(x, np.ravel_multi_index(along, x.shape))

    def outside_error(self, index: int, size: int, key: ast.expr, iteration: int) -> InputError:
        where = ", ".join(f"{name} = {a[iteration]}" for name, a in self.iterations[id(key)].items())
        hint = f"elements are counted from 0 to {size - 1}{_FIRST if index < 0 else ''}"
        return InputError(f"there is no element {index} among {size}, which is needed at {where}",
                          self.expression.span(key), hint)  # fmt: skip


class _OneIteration(Walk):
    """A walk over an expression in one iteration of a loop, in which its variables are integers.

    `assigned` are the names whose elements the loop assigns.
    """

    def __init__(self, statement: Statement, names: Mapping[str, int], assigned: frozenset[str], scope: Scope) -> None:
        super().__init__(statement.expression, scope, {})
        self.assigned = assigned
        self.names = names

    def variable(self, tree: ast.Name) -> Node:
        if tree.id in self.assigned and (len(self.assigned) > 1 or tree.id not in self.scope):
            message = f"`{tree.id}` is used as a whole while its elements are computed"
            raise InputError(message, None, f"an element is `{tree.id}[{' - 1, '.join(self.names)} - 1]`")
        return const(self.names[tree.id]) if tree.id in self.names else super().variable(tree)

    def visit(self, tree: ast.expr) -> Built:
        if isinstance(tree, ast.IfExp):
            return [tree.body if mask_of(tree, self.names) else tree.orelse], lambda args: args[0]
        return super().visit(tree)

    def subscript(self, value: ast.expr, key: ast.expr) -> Built:
        key = _worked_out(key, self.names, self.expression)
        whole = whole_key(key)
        if isinstance(value, ast.Name) and value.id in self.assigned and whole is not None:
            element = element_name(value.id, whole)
            if all(element_name(value.id, whole[:n]) not in self.scope for n in range(1, len(whole) + 1)):
                several = "; a round computes its statements in their order" * (len(self.assigned) > 1)
                raise InputError(f"`{element}` is used before it is assigned", None, f"{_BEFORE}{several}")
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
        raise InputError(f"there is no element {index}", expression.span(key), f"elements are counted from 0{_FIRST}")
    return ast.Constant(int(index))


def indices_in(key: ast.expr, names: Integers, expression: Expression) -> list[Array | int]:
    """Return the integers of a subscript, for each axis one, or an array of one for each iteration.

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

    An input of which only elements are read has the smallest shape with these indices.

    Errors: `InputError` at its position, for a condition that is not one of indices.
    """
    try:
        iterations = iterations_by_part(expression.tree, loop)
    except InputError as error:
        raise error.at(expression.span(error.about)) from None
    result: dict[int, tuple[int, ...] | None] = {}
    for tree in ast.walk(expression.tree):
        if isinstance(tree, ast.Subscript) and id(tree) in iterations:
            try:
                keys = indices_in(tree.slice, {**loop.integers, **iterations[id(tree)]}, expression)
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
    """Return the integers and ranges whose combinations, in order, are the iterations with these indices, or None."""
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
