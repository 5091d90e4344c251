"""The section `calls`: what several calls of `backward` leave in .grad, one after the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradcli.explain.backward.arithmetic import products
from gradcli.explain.backward.loss import any_loss, cotangent
from gradcli.explain.backward.record import BackwardPoint, BackwardResult, Call
from gradcli.explain.backward.weights import array_of, flat
from gradcli.explain.results import Array, Named
from gradcli.explain.sections import (
    VJP,
    Equal,
    Grad,
    Grid,
    Math,
    Name,
    Partial,
    Product,
    Section,
    Sum,
    Text,
    Typed,
    Value,
    Words,
    sentence,
)

_CALLS = 20  # rows of the table, less than a screen
_LEAVES = 5  # columns of the table: more are wider than 80 characters; the gradients of all stand below
_SUMMED = 3  # leaves whose sums have a row: the gradients of all stand below
_RUNNING = 4  # elements of a gradient whose sum is written as a sum: more are wider than a column

_GRAD = Typed(".grad")


def calls_section(result: BackwardResult, point: BackwardPoint) -> Section:
    """Return a table with a row for each call (its v, its vᵀJ, and `.grad` after it), and the sum of all calls."""
    rows: list[tuple[Math, ...]] = []
    leaves = result.wrt if len(result.wrt) <= _LEAVES else result.wrt[: _LEAVES - 1]
    more: tuple[str, ...] = ("…",) if len(leaves) < len(result.wrt) else ()
    before: Named = {}
    for k, call in enumerate(point.calls, 1):
        weights = flat(call.v)
        equations = [_own(result, point, call, name, weights) for name in leaves]
        after = [_running(before.get(name), call.vjp[name], call.grad[name]) for name in leaves]
        both = [cell for pair in zip(equations, after, strict=True) for cell in pair] if len(equations) == 1 else after
        rows.append((str(k), array_of(result.graph.outputs, call.v), *both, *more))
        before = call.grad
    if len(rows) > _CALLS:
        rows = [*rows[: _CALLS - 1], ("…", *[""] * (len(rows[0]) - 1)), rows[-1]]
    if len(rows) > 1 and len(leaves) <= _SUMMED:
        rows.append(("sum", *_total(result, point, leaves), *more))
    titles = tuple(Words((Grad(name), " after it")) for name in leaves)
    products = (VJP, *titles) if len(titles) == 1 else titles
    called = cotangent(result.graph)
    header = ("call", Name(called) if called else "cotangent", *products, *more)
    return Section("calls", (_meaning(result), Grid(header, tuple(rows)), *_sentences(result, point)))


def _total(result: BackwardResult, point: BackwardPoint, leaves: Sequence[str]) -> tuple[Math, ...]:
    """Return the sum of all v and its vᵀJ, which is what has accumulated in `.grad`."""
    v = _sum_of_all(result, point)
    total = {name: point.grad[name] for name in leaves}
    if len(leaves) != 1:
        return array_of(result.graph.outputs, v), *(Value(g) for g in total.values())
    (name,) = leaves
    sums = products(result, point.jacobian, flat(v), name)
    return array_of(result.graph.outputs, v), Equal((*list(sums)[-1:], Value(total[name]))), Value(total[name])


def _sum_of_all(result: BackwardResult, point: BackwardPoint) -> Named:
    return {name: np.sum([c.v[name] for c in point.calls], axis=0) for name in result.graph.outputs}


def _meaning(result: BackwardResult) -> Text:
    """Return the meaning of v in each call."""
    (output, y), *others = result.graph.outputs.items()
    called, name = cotangent(result.graph), any_loss(result.graph)
    own, adds = "Each call has its own {}", ", and adds {} to {}."
    if others:
        v = Name(called) if called else "cotangent"
        return Text(sentence(f"{own}, the derivatives of its own {{}} by the outputs{adds}", v, Name(name), VJP, _GRAD))
    product = Product((Name(called), Partial(output, result.wrt[0]))) if not y.shape and len(result.wrt) == 1 else VJP
    return Text(sentence(f"{own}{adds}", Equal((Name(called), Partial(name, output))), product, _GRAD))


def _own(result: BackwardResult, point: BackwardPoint, call: Call, name: str, weights: Array) -> Math:
    """Return the vᵀJ of one call, with its arithmetic where that is short."""
    sums = products(result, point.jacobian, weights, name)
    return Equal((*list(sums)[-1:], Value(call.vjp[name])))


def _running(before: Array | None, added: Array, after: Array) -> Math:
    if before is None or after.dtype == object or after.size > _RUNNING:
        return Value(after)
    return Equal((Sum((Value(before), Value(added))), Value(after)))


def _sentences(result: BackwardResult, point: BackwardPoint) -> list[Text]:
    total = _sum_of_all(result, point)
    leaf = result.wrt[0] if result.wrt else "x"
    called = cotangent(result.graph)
    v = Name(called) if called else "the cotangent"
    fresh = f"To start afresh, write `{leaf}.grad = None` (or `optimizer.zero_grad()`) before a call."
    one = Equal((v, array_of(result.graph.outputs, total)))
    return [
        Text((_GRAD, f" accumulates over the calls. {fresh}")),
        Text(sentence("The same as one call with {}: {} is linear in {}.", one, VJP, v)),
        Text(sentence("All calls but the last need {}: backward frees what it kept.", Typed("retain_graph=True"))),
    ]
