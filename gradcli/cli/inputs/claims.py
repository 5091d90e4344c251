"""Claims of the user's as nodes, ready to be tried: names found, shapes checked."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from types import MappingProxyType

import numpy as np

from gradcli.engine.evaluate import values_of
from gradcli.errors import InputError, Span
from gradcli.graph.array import Array
from gradcli.graph.construct import broadcast, reshape, total
from gradcli.graph.graph import Graph
from gradcli.graph.names import ElementName, element_name
from gradcli.graph.node import Node, leaf
from gradcli.graph.shapes import Shape, check_size, size_of
from gradcli.lang.builder import build, is_condition
from gradcli.lang.claims import Claim, Quantity, restore_span, unknown_name_error
from gradcli.lang.elements import build_rounds, picked
from gradcli.lang.expressions import Expression
from gradcli.lang.loops import Loop
from gradcli.lang.ranges import read_loop
from gradcli.pages.check.claim import Case, derivative

MAX_ENTRIES = 10**6
MAX_ROUNDS = 100  # of a loop, each of which is a claim by itself


def cases(claims: Sequence[Claim], graph: Graph, outputs: Sequence[str]) -> list[Case]:
    """Return the claims about a graph, whose names are all in `graph.names`; `outputs` are what pullbacks start from.

    Errors: `InputError`, at its position, for unknown names, for indices that there are not, and for shapes that do not
    fit.
    """
    lefts = [left for claim in claims for left in _lefts(claim, graph)]
    return [_pullback(left, graph, outputs) if left.claim.of is None else _derivative(left, graph) for left in lefts]


def _lefts(claim: Claim, graph: Graph) -> Iterator[_Left]:
    """Yield the left side of a claim: for each round of a loop, if it differentiates by elements with their own nodes.

    Errors: `InputError`, with its position.
    """
    if claim.loops is None:
        yield _Left(claim, graph, None)
        return
    integers = {name: n.value for name, n in graph.names.items() if type(n.value) is int and not n.shape}
    loop = read_loop(claim.loops, integers, graph.inputs)
    keys = [q.key.tree for q in (claim.of, *claim.by) if q is not None and q.key is not None]
    read = {n.id for key in keys for n in ast.walk(key) if isinstance(n, ast.Name)}
    for name in loop.variables.keys() - read:
        hint = f"for example dy[{name}]/dx[{name}] = … {claim.loops.line}"
        raise InputError(f"`{claim.text}` has no index `{name}`", claim.span, hint)
    for name in loop.variables.keys() & {q.name for q in (claim.of, *claim.by) if q is not None}:
        raise InputError(f"`{name}` is an array of the claim, and the variable of its loop", claim.loops, "call it `i`")
    arrays = {name.array for name in graph.names if isinstance(name, ElementName)}
    if not any(q.key is not None and q.name in arrays for q in claim.by):
        yield _Left(claim, graph, loop)
        return
    if loop.size > MAX_ROUNDS:
        message = f"each of these {loop.size:,} derivatives is one by itself"
        raise InputError(message, claim.loops, f"claim at most {MAX_ROUNDS}")
    for k in range(loop.size):
        variables = {n: a[k : k + 1] for n, a in loop.variables.items()}
        at = ", ".join(f"{n} = {a[0]}" for n, a in variables.items())
        yield _Left(claim, graph, replace(loop, variables=variables), f"{claim.right} for {at}")


def _derivative(left: _Left, graph: Graph) -> Case:
    claim = left.claim
    assert claim.of is not None
    if claim.of.name in graph.inputs:
        y, *others = (q.name for q in claim.by)
        hint = f"did you mean d{y}/d{claim.of.name}?" if y in graph.names and not others else None
        raise InputError(f"`{claim.of.name}` is an input, and depends on nothing", claim.span, hint)
    if len(claim.by) > 1 and any(q.name not in graph.inputs for q in claim.by):
        raise InputError("higher derivatives are taken by inputs", claim.span, "for example d2f/dx2")
    truth, flat = left.narrowed(*left.part(claim.of, "computed in the system"))
    above = truth.shape
    for k, quantity in enumerate(claim.by, 1):
        base, (x, columns) = truth, left.part(quantity, "in the system")
        _check_size(claim, (*base.shape, *x.shape))
        truth, flat = derivative(graph, base, x), left.outer(flat, columns, x)
        if k < len(claim.by):
            truth, flat = left.narrowed(truth, flat)
    return left.case(Graph.of(graph.inputs, {}, names=graph.names), base, x, truth, flat, above=above)


def _pullback(left: _Left, graph: Graph, outputs: Sequence[str]) -> Case:
    claim = left.claim
    x, flat = left.part(claim.by[0], "in the system")
    cotangents: dict[str, Node] = {}  # by what the claim calls them
    shown: dict[str, Node] = {}
    ends: list[Node] = []
    for name in outputs:
        y, called = left.scope[name], _called(claim, name, left.scope, len(outputs) == 1)
        if called is not None:
            v = cotangents[called] = shown["v" if called == "v" else f"{name}.v"] = leaf(y.shape)
            y = y * v
        ends.append(total(y))
    base = reduce(lambda a, b: a + b, ends)
    whole = Graph.of({**graph.inputs, **shown}, {"": base}, names=graph.names)
    return left.case(whole, base, x, derivative(whole, base, x), flat, cotangents, tuple(shown))


class _Left:
    """The left side of a claim: its quantities, and which of their elements the claim is about.

    Elements are indices into a flattened array, in an array of the claim's shape; in a loop, that of each round is
    along the first axis.
    """

    def __init__(self, claim: Claim, graph: Graph, loop: Loop | None, said: str = "") -> None:
        self.claim = claim
        self.said = said or claim.said
        self.scope: Mapping[str, Node] = {**graph.inputs, **graph.names}
        self.inputs = graph.inputs
        self.loop = loop
        self.places: list[tuple[str, Node, Array]] = []

    def part(self, quantity: Quantity, what: str) -> tuple[Node, Array]:
        """Return the node of a quantity as a whole, and its elements that are in the claim.

        An element that the system assigns, such as `h[1]`, has a node of its own, which later elements are computed
        from.

        Errors: `InputError`, with its position, for a name that is not `what`, and for an index that there is not.
        """
        if quantity.name not in self.scope:
            raise unknown_name_error(self.claim, quantity.name, self.scope, what)
        name, x = quantity.name, self.scope[quantity.name]
        flat = np.arange(x.size).reshape(x.shape)
        if quantity.key is not None:
            flat = self._at(quantity.key, name, x, flat)
            for rank in range(1, len(x.shape) + 1):
                element = element_name(name, [int(k) for k in np.unravel_index(flat.flat[0], x.shape)][:rank])
                if element in self.scope:
                    first = int(flat.flat[0]) // self.scope[element].size * self.scope[element].size
                    if flat.min() >= first and flat.max() < first + self.scope[element].size:
                        name, x, flat = element, self.scope[element], flat - first
                        break
        elif self.loop is not None:
            flat = flat[None]
        self.places.append((name, x, flat))
        return x, flat

    def _at(self, key: Expression, name: str, x: Node, flat: Array) -> Array:
        """Return some elements of an array: the subscript is computed of an array that holds their indices."""
        array = leaf(x.shape) if x.shape or x.is_leaf else x  # the error of a scalar input says how to shape it
        try:
            if self.loop is None and (others := [n for n in key.names if n.id != name]):
                loop = f"{self.claim.text} = … for {others[0].id} in 0..2"
                raise InputError(f"`{others[0].id}` is not an integer", key.span(others[0]), f"a loop has some: {loop}")
            node = build(key, {name: array}) if self.loop is None else build_rounds(key, self.loop, {name: array})
        except InputError as error:
            if error.hint is None and not x.shape:
                error.hint = f"give the inputs shapes, for example --shape {next(iter(self.inputs))}=3"
            raise restore_span(error, [self.claim.span.source], [key.source]) from None
        values = values_of(Graph.of({"": array}, {}), {"": flat[..., None]}, [node])[node]
        return np.asarray(values[..., 0]).astype(int)

    def outer(self, rows: Array, columns: Array, x: Node) -> Array:
        """Return the elements of a derivative by `x`, from those of what is differentiated and those of `x`."""
        rounds = int(self.loop is not None)
        above, below = (1,) * (rows.ndim - rounds), (1,) * (columns.ndim - rounds)
        columns = columns.reshape((*columns.shape[:rounds], *above, *columns.shape[rounds:]))
        return np.asarray(rows.reshape((*rows.shape, *below)) * x.size + columns)

    def narrowed(self, whole: Node, flat: Array) -> tuple[Node, Array]:
        """Return the elements alone, unless they differ from round to round, and which of the new array they are."""
        if self.loop is not None:
            return whole, flat
        some = _picked(whole, flat)
        return some, np.arange(some.size).reshape(some.shape)

    def case(
        self, graph: Graph, base: Node, x: Node, whole: Node, flat: Array,
        cotangents: Mapping[str, Node] = MappingProxyType({}), shown: tuple[str, ...] = (), above: Shape = (),
    ) -> Case:  # fmt: skip
        """Return the claim about these elements of a derivative."""
        claim = self.claim
        truth = _picked(whole, flat)
        if len(np.unique(flat)) < flat.size:
            raise InputError(f"`{claim.text}` is claimed more than once for the same element", claim.span)
        yours = _yours(claim, {**self.scope, **cotangents}, self.loop, truth.shape, above)
        some = any(q is not None and q.key is not None for q in (claim.of, *claim.by))
        entries, left = flat if some else None, self._left(flat.ndim)
        return Case(claim.text, self.said, graph, base, x, truth, yours, shown, entries=entries, left=left)

    def _left(self, rank: int) -> tuple[tuple[str, Shape, Array], ...]:
        """Return the names, shapes and elements of the quantities, these as arrays that broadcast together."""
        result, rounds = [], int(self.loop is not None)
        before = rounds
        for name, x, flat in self.places:
            after = before + flat.ndim - rounds
            shape = (*flat.shape[:rounds], *(1,) * (before - rounds), *flat.shape[rounds:], *(1,) * (rank - after))
            result.append((name, x.shape, flat.reshape(shape)))
            before = after
        return tuple(result)


def _picked(whole: Node, flat: Array) -> Node:
    """Return some elements of an array, which is the whole itself where it has no others."""
    every = flat.shape == whole.shape and np.array_equal(flat.reshape(-1), np.arange(whole.size))
    return whole if every else picked(whole, flat)


def _check_size(claim: Claim, shape: Shape) -> None:
    """Check that a derivative has at most a million entries."""
    try:
        size = size_of(check_size(shape))
    except InputError as error:
        raise error.at(claim.span) from None
    if size > MAX_ENTRIES:
        hint = "a pullback x.grad = … is as large as x alone"
        raise InputError(f"`{claim.text}` has {size:,} entries", claim.span, hint)


def _called(claim: Claim, name: str, scope: Mapping[str, Node], single: bool) -> str | None:
    """Return the name that a claim uses for an output's cotangent; None for the 1 of `y.backward()`, which has none."""
    if single and "v" not in scope and any(n.id == "v" for n in claim.expression.names):
        return "v"
    alias = claim.aliases.get(f"{name}.v")
    return alias if alias is not None or (single and scope[name].size == 1) else f"{name}.v"


def _yours(claim: Claim, scope: Mapping[str, Node], loop: Loop | None, whole: Shape, above: Shape) -> Node:
    """Return the node of the claim's right side, for all rounds of a loop.

    Errors: `InputError` where its shape is not that of the derivative.
    """
    source = claim.expression.source
    for cotangent, alias in claim.aliases.items():
        if alias not in scope:
            tree = next(n for n in claim.expression.names if n.id == alias)
            place = claim.expression.span(tree)
            span = Span(claim.span.source, place.start, place.end)
            known = ", ".join(f"`{n}`" for n in scope if n == "v" or n.endswith(".v"))
            only = f"those here are {known}" if known else "they are for the pullback, x.grad = …"
            raise InputError(f"`{cotangent}` is not a cotangent here", span, only)
    try:
        node = build(claim.expression, scope) if loop is None else build_rounds(claim.expression, loop, scope)
    except InputError as error:
        raise restore_span(error, [claim.span.source], [source]) from None
    if is_condition(node):
        raise InputError("a condition is not a derivative", claim.span, "write `where(x > 0, 1, 0)`")
    if node.shape == whole:
        return node
    rounds = int(loop is not None)
    own, shape = node.shape[rounds:], whole[rounds:]
    if node.is_constant and not own:
        return broadcast(reshape(node, (*node.shape, *(1,) * len(shape))), whole)
    where = claim.expression.span(claim.expression.tree)
    wanted = "a scalar" if not shape else f"of shape {shape}"
    kind = "a scalar" if not own else f"of shape {own}"
    of_round = "the formula is that of one round" + (": an element is `x[i]`" if own else "")
    hint = _advice(own, shape, claim, above, scope) if loop is None else of_round
    span = Span(claim.span.source, where.start, where.end)
    raise InputError(f"`{claim.text}` is {wanted}, and your formula is {kind}", span, hint)


def _advice(yours: Shape, shape: Shape, claim: Claim, above: Shape, scope: Collection[str]) -> str:
    """Return a question or hint on a shape that does not fit."""
    unread = [name for name in scope if name.endswith(".v")]
    if unread and not claim.aliases:
        return f"the incoming gradient is missing: {claim.text} = vᵀJ, and v is {' and '.join(unread)}"
    if yours == tuple(reversed(shape)) and len(shape) > 1:
        return "is it transposed?"
    extra = len(yours) - len(shape)
    if extra >= 0:
        padded = (1,) * extra + shape
        axes = [k for k, (a, b) in enumerate(zip(yours, padded, strict=True)) if a != b and b == 1]
        if axes and all(a == b for k, (a, b) in enumerate(zip(yours, padded, strict=True)) if k not in axes):
            listed = str(axes[0]) if len(axes) == 1 else str(tuple(axes))
            return f"what was broadcast is summed: sum(…, axis={listed})"
    if not shape and size_of(yours) == 1:
        return "write it without brackets"
    if claim.of is None:
        return "a gradient has the shape of what it is the gradient of"
    return f"the shape of {claim.of.name}, {above}, is followed by that of {', '.join(q.name for q in claim.by)}"
