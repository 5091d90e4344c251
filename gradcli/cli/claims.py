"""Claims of the user's as nodes, ready to be tried: names found, shapes checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from gradcli.errors import InputError, Span
from gradcli.explain.check.claim import Case, derivative
from gradcli.graph.construct import index, total
from gradcli.graph.graph import Graph
from gradcli.graph.node import Node, const, leaf
from gradcli.graph.shapes import Shape, check_size, inside, size_of
from gradcli.lang.builder import build
from gradcli.lang.claims import Claim, Quantity, restored, unknown

MAX_ENTRIES = 10**6


def cases(claims: Sequence[Claim], graph: Graph, outputs: Sequence[str]) -> list[Case]:
    """Return the claims about a graph, whose names are all in `graph.names`; `outputs` are what pullbacks start from.

    Errors: `InputError`, at its position, for unknown names and for shapes that do not fit.
    """
    scope = {**graph.inputs, **graph.names}
    return [_pullback(c, graph, scope, outputs) if c.of is None else _derivative(c, graph, scope) for c in claims]


def _derivative(claim: Claim, graph: Graph, scope: Mapping[str, Node]) -> Case:
    assert claim.of is not None
    if claim.of.name in graph.inputs:
        raise InputError(
            f"`{claim.of.name}` is an input, and depends on nothing", claim.span, f"write {claim.of.name}.grad for L"
        )
    y = _quantity_node(claim, claim.of, scope, "computed in the system")
    if claim.of.key is not None:
        y = index(y, _checked(claim, claim.of, y.shape))
    if len(claim.by) > 1 and any(q.name not in graph.inputs for q in claim.by):
        raise InputError("higher derivatives are taken by inputs", claim.span, "for example d2f/dx2")
    truth = y
    for quantity in claim.by:
        x, base = _quantity_node(claim, quantity, scope, "in the system"), truth
        _check_size(claim, (*base.shape, *x.shape))
        key = () if quantity.key is None else _checked(claim, quantity, x.shape)
        truth = index(derivative(graph, base, x), (*map(range, base.shape), *key))
    keys: tuple[int | slice, ...] = (*(slice(None),) * len(base.shape), *key)
    truths = Graph.of(graph.inputs, {"": truth}, names=graph.names)
    yours = _yours(claim, scope, truth.shape, y.shape)
    return Case(claim.text, claim.said, truths, base, x, keys, truth, yours)


def _check_size(claim: Claim, shape: Shape) -> None:
    """Check that a derivative has at most a million entries."""
    try:
        size = size_of(check_size(shape))
    except InputError as error:
        raise error.at(claim.span) from None
    if size > MAX_ENTRIES:
        raise InputError(
            f"`{claim.text}` has {size:,} entries", claim.span, "a pullback x.grad = … is as large as x alone"
        )


def _pullback(claim: Claim, graph: Graph, scope: Mapping[str, Node], outputs: Sequence[str]) -> Case:
    (quantity,) = claim.by
    x = _quantity_node(claim, quantity, scope, "in the system")
    cotangents: dict[str, Node] = {}  # by what the claim calls them
    shown: dict[str, Node] = {}
    ends: list[Node] = []
    for name in outputs:
        y, called = scope[name], _called(claim, name, scope, len(outputs) == 1)
        if called is not None:
            v = cotangents[called] = shown["v" if called == "v" else f"{name}.v"] = leaf(y.shape)
            y = y * v
        ends.append(total(y))
    base = reduce(lambda a, b: a + b, ends)
    whole = Graph.of({**graph.inputs, **shown}, {"": base}, names=graph.names)
    keys = () if quantity.key is None else _checked(claim, quantity, x.shape)
    result = derivative(whole, base, x)
    truth = index(result, keys) if keys else result
    yours = _yours(claim, {**scope, **cotangents}, truth.shape, base.shape)
    return Case(claim.text, claim.said, whole, base, x, keys, truth, yours, tuple(shown))


def _called(claim: Claim, name: str, scope: Mapping[str, Node], single: bool) -> str | None:
    """Return the name that a claim uses for an output's cotangent; None for the 1 of `y.backward()`, which has none."""
    if single and "v" not in scope and any(n.id == "v" for n in claim.expression.names):
        return "v"
    alias = claim.aliases.get(f"{name}.v")
    return alias if alias is not None or (single and scope[name].size == 1) else f"{name}.v"


def _quantity_node(claim: Claim, quantity: Quantity, scope: Mapping[str, Node], what: str) -> Node:
    if quantity.name not in scope:
        raise unknown(claim, quantity.name, scope, what)
    return scope[quantity.name]


def _checked(claim: Claim, quantity: Quantity, shape: Shape) -> tuple[int, ...]:
    """Return the index of an element, of an array of that shape."""
    key = quantity.key or ()
    if not inside(key, shape):
        raise InputError(f"`{quantity.name}` has shape {shape}, and no such element", claim.span)
    return key


def _yours(claim: Claim, scope: Mapping[str, Node], shape: Shape, above: Shape) -> Node:
    """Return the node of the claim's right side.

    Errors: `InputError` where its shape is not that of the derivative.
    """
    source = claim.expression.source
    try:
        node = build(claim.expression, scope)
    except InputError as error:
        raise restored(error, [claim.span.source], [source]) from None
    if node.dtype == "bool":
        raise InputError("a condition is not a derivative", claim.span, "write `where(x > 0, 1, 0)`")
    if node.shape == shape:
        return node
    if node.is_constant and not node.shape and node.value is not None:
        return const(node.value, shape)
    where = claim.expression.span(claim.expression.tree)
    wanted = "a scalar" if not shape else f"of shape {shape}"
    kind = "a scalar" if not node.shape else f"of shape {node.shape}"
    raise InputError(
        f"`{claim.text}` is {wanted}, and your formula is {kind}",
        Span(claim.span.source, where.start, where.end),
        _advice(node.shape, shape, claim, above),
    )


def _advice(yours: Shape, shape: Shape, claim: Claim, above: Shape) -> str:
    """Return a question or hint on a shape that does not fit."""
    if yours == tuple(reversed(shape)) and len(shape) > 1:
        return "is it transposed?"
    extra = len(yours) - len(shape)
    if extra >= 0:
        padded = (1,) * extra + shape
        axes = [k for k, (a, b) in enumerate(zip(yours, padded, strict=True)) if a != b and b == 1]
        if axes and all(a == b for k, (a, b) in enumerate(zip(yours, padded, strict=True)) if k not in axes):
            listed = str(axes[0]) if len(axes) == 1 else str(tuple(axes))
            return f"what was broadcast is summed: sum(…, axis={listed})"
    if claim.of is None:
        return "a gradient has the shape of what it is the gradient of"
    return f"the shape of {claim.of.name}, {above}, is followed by that of {', '.join(q.name for q in claim.by)}"
