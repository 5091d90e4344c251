"""The section `grad`: the gradient of each leaf, with what leads to it: arithmetic, or the chain rule along a path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gradcli.graph.calls import opened
from gradcli.graph.graph import Graph
from gradcli.graph.jacobian import numbered
from gradcli.graph.names import AdjointName, adjoint_name
from gradcli.graph.node import Node, const
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.vjp import Pass, Sweep, active_nodes, contributions_of, sweep, textbook_slope
from gradcli.notation.nodes import written_size
from gradcli.pages.backward.disagreement import disagreements, indeterminate
from gradcli.pages.backward.entries import Entries
from gradcli.pages.backward.loss import cotangent, flat, loss_name
from gradcli.pages.backward.reasons import leaves_without
from gradcli.pages.forms.gradients import Forms
from gradcli.pages.question import Point, Result
from gradcli.pages.results import Array, Measured
from gradcli.pages.sections import (
    Block,
    Equal,
    Equations,
    Grad,
    Line,
    Listed,
    Math,
    Name,
    Partial,
    Product,
    Section,
    Sum,
    Text,
    Typed,
    Value,
    gradient,
    quantity,
    sentence,
)
from gradcli.pages.trace import Trace, numeric_trace
from gradcli.text.wrapping import in_words

WHOLE = 12  # elements of a gradient that is written out in formulas: a matrix of 3 by 4
_COLUMNS = 12  # of a J beside which sums are written out, too: a wider one says them itself
_READABLE = 120  # characters of all of them: two lines
_MATRIX = 2  # axes of an array that has rows
_ROWS = 6  # rows that are not 0 and are listed, a line each
_OPENED = 1_000  # operations in the definitions of calls: entries of more would keep the reader waiting
_FEW = 3  # rows of an array that shows which of them are 0


def gradients_section(
    result: Result, point: Point, written: Forms, beside: bool, elements: Mapping[str, str]
) -> Section:
    """Return the gradients at a point after all calls, and those of retained intermediates.

    `written` are the formulas of the gradients in a system of arrays; `beside` is whether J is shown, too; `elements`
    are the names of what loops assign, on a page that has them as recurrences.
    """
    lines = []
    bare = []
    v = point.calls[0].v
    weights, loss = flat(v), loss_name(result.graph, v)
    for name in result.wrt:
        in_v = point.more.get("in_v", {}).get(name)
        sides: list[Math] = [] if in_v is None or _is_long(result, in_v) else [Value(in_v)]
        sides += [*_sides(result, point, name, written.gradients.get(name), weights, loss)]
        grad = point.grad.get(name)
        value = [] if grad is None or (sides and _is_long(result, grad)) else [Value(grad)]
        lines.append(Line((gradient(name, (), loss, result.wanted.returned), *sides, *value), (), True))
        if not sides and result.leaves[name].shape and name not in result.wanted.unwritten:
            bare.append(name)
    lines += [_retained(result, point, name, written, loss, elements.get(name, name)) for name in point.retained]
    bars = tuple(Line((Name(bar), formula)) for bar, formula in written.adjoints.items())
    adjoints = (introduced(list(written.adjoints)), Equations(bars)) if bars else ()
    differing = list(disagreements(result, point, lines))
    why = _nan(point, lines) or differing
    spelled = _spelled(result, point, written, () if beside else bare)
    rows = [block for name, grad in point.grad.items() for block in _nonzero_rows(result, name, grad, loss)]
    return Section("grad", (*adjoints, Equations(tuple(lines)), *spelled, *rows, *why, *_kept(result, point, elements)))


def _spelled(result: Result, point: Point, written: Forms, bare: Sequence[str]) -> list[Block]:
    """Return the sum that gives one entry, for each gradient whose line has neither a formula nor arithmetic."""
    if not bare or not result.numeric or point.trace is None or len(point.calls) > 1:
        return []
    graph = opened(result.graph)
    if graph is not result.graph and len(graph.nodes) > _OPENED:
        return []
    entries = Entries(*_opened(result, graph, point, point.trace), written.adjoints)
    for name in bare:
        entries.add(name, point.grad[name])
    return list(entries.blocks())


def _opened(result: Result, graph: Graph, point: Point, trace: Trace) -> tuple[Result, Trace]:
    """Return a result and its trace with the definitions of calls in their places: entries have no other words."""
    if graph is result.graph:
        return result, trace
    before = {**result.graph.inputs, **result.graph.names}
    same = {n: before[name] for name, n in (*graph.inputs.items(), *graph.names.items())}
    adjoints = trace.calls[0].adjoints
    known = Measured(
        adjoints={n: adjoints[old] for n, old in same.items() if old in adjoints},
        values={n: trace.values[old] for n, old in same.items() if old in trace.values},
    )
    swept = sweep(graph, result.wrt)
    return replace(result, graph=graph), numeric_trace(graph, swept, point.at, [point.calls[0].v], known)


def _nonzero_rows(result: Result, name: str, grad: Array, loss: str) -> Iterator[Block]:
    """Yield the rows of a large gradient that are not 0, where most rows are 0, as for an embedding."""
    if grad.dtype == object or grad.ndim < _MATRIX or grad.size <= WHOLE:
        return
    rows = np.flatnonzero(grad.reshape(len(grad), -1).any(axis=1))
    if 0 < len(rows) <= min(_ROWS, len(grad) // 2) and len(grad) > _FEW:
        lefts = [gradient(name, (int(i),), loss, result.wanted.returned) for i in rows]
        yield Equations(tuple(Line((left, Value(grad[i]))) for left, i in zip(lefts, rows, strict=True)))
        yield Text(sentence(f"The other {len(grad) - len(rows):,} rows of {{}} are 0.", Grad(name)))


def introduced(adjoints: Sequence[AdjointName]) -> Text:
    """Return a sentence that defines adjoints by the first name with a bar; ∂L/∂h defines itself."""
    said = f"with the adjoint{'s' * (len(adjoints) > 1)}"
    barred = next((name for name in adjoints if name.barred), None)
    if barred is None:
        return Text((said,))
    return Text((f"{said} (", Equal((Name(barred), Partial(barred.loss, barred.by))), ")"))


def _is_long(result: Result, grad: Array) -> bool:
    """Return whether a gradient is an array of formulas too long to be shown beside its formula of matrices."""
    if grad.dtype != object:
        return False
    texts = [result.formula(e) for e in grad.reshape(-1)[:WHOLE]]
    return grad.size > WHOLE or sum(map(len, texts)) > _READABLE or bool(result.symbolic and result.symbolic.defined)


def _retained(result: Result, point: Point, name: str, written: Forms, loss: str, shown: str) -> Line:
    """Return the line of an intermediate's gradient: as a derivative, as a short formula, and as a number."""
    sides: list[Math] = [Partial(loss, shown)] if result.wanted.returned else [Grad(shown), Partial(loss, shown)]
    formulas = point.more.get("adjoints", {}).get(name)
    if (hook := result.question.swept.hooks.get(result.graph.names[name])) is not None:
        sides = [gradient(shown, (), loss, result.wanted.returned), Name(result.question.hooks[hook])]
    elif (adjoint := adjoint_name(name, loss)) in written.adjoints:
        sides += [Name(adjoint)] if adjoint.barred else [written.adjoints[adjoint]]
    elif formulas is not None and sum(len(result.formula(e)) for e in formulas.reshape(-1)) <= _READABLE:
        sides.append(Value(formulas))
    return Line((*sides, Value(point.retained[name])))


def _nan(point: Point, lines: Sequence[Line]) -> list[Text]:
    """Return why a gradient is nan; nothing where a line shows the product 0·inf."""
    if (
        len(point.calls) > 1
        or point.trace is None
        or not any(g.dtype != object and np.isnan(g).any() for g in point.grad.values())
    ):
        return []
    result = (
        None if any(_is_indeterminate(side) for line in lines for side in line.sides) else indeterminate(point.trace)
    )
    return [] if result is None else [result]


def _is_indeterminate(side: Math) -> bool:
    """Return whether a side is a product or a sum of products that is nan, although no number in it is."""
    if isinstance(side, Sum | Listed):
        return any(map(_is_indeterminate, side.terms if isinstance(side, Sum) else side.items))
    factors = side.factors if isinstance(side, Product) else ()
    numbers = [np.asarray(f.array) for f in factors if isinstance(f, Value) and np.asarray(f.array).dtype != object]
    if not numbers or len(numbers) != len(factors) or any(n.shape or np.isnan(n) for n in numbers):
        return False
    return bool(np.isnan(np.prod(numbers)))


def _kept(result: Result, point: Point, elements: Mapping[str, str]) -> list[Text]:
    """Return which gradients are None in PyTorch, and how `retain_grad` keeps those of intermediates."""
    unreached = [name for name in result.wrt if name not in result.wanted.reached]
    texts = list(leaves_without(result.graph, unreached))
    if result.wanted.returned:
        return texts
    texts += [Text(_why_none(result, h)) for h in result.question.unreached]
    kept = (
        name for name in point.retained if name not in result.graph.outputs and name not in result.question.unreached
    )
    if not result.wanted.script and (h := next((elements.get(name, name) for name in kept), None)) is not None:
        said = (
            "{} is computed, not a leaf (leaves are inputs): PyTorch leaves {} None unless {} comes before backward. "
            "A hook on {} sees the same number, which is called the adjoint of {}."
        )
        name = Name(h)
        texts.append(Text(sentence(said, name, Grad(h), Typed(f"{h}.retain_grad()"), name, name)))
    return texts


def _why_none(result: Result, h: str) -> tuple[Math, ...]:
    """Return that the `.grad` of an intermediate stays None, as no gradient arrives there."""
    name, grad, retain = Name(h), Grad(h), Typed(f"{h}.retain_grad()")
    if result.graph.names[h] not in active_nodes(result.graph, result.leaves.values()):
        said = "{} does not require a gradient in PyTorch: {} is None, and {} is an error."
        return sentence(said, name, grad, retain)
    said = (
        f"No differentiable path leads from {in_words(list(result.graph.outputs))} back to {{}}: in PyTorch {{}} stays "
        "None, even after {}, and no hook on {} is called."
    )
    return sentence(said, name, grad, retain, name)


def _sides(result: Result, point: Point, name: str, form: Math | None, weights: Array, loss: str) -> list[Math]:
    """Return the sides between a gradient's name and its value; `form` is its formula in a system of arrays."""
    leaf = result.leaves[name]
    if len(point.calls) > 1:
        return []
    if result.wanted.steps and not leaf.shape:
        return [Name(adjoint_name(name, loss))]
    formulas = list(_along_a_path(result, point, name, form, loss))
    if form is not None:
        formulas.append(form)
    is_shown = len(formulas) > 1 if not leaf.shape else len(weights) == 1 and weights[0] == 1
    if is_shown or (form is not None and (not result.numeric or len(weights) == 1)):
        return formulas
    if result.numeric and result.symbolic is not None and len(result.symbolic.columns) > _COLUMNS:
        return formulas if leaf.shape or len(weights) == 1 else []  # J and vᵀJ say it, above
    return [*formulas, *list(products(result, point.matrix, weights, name))[-1 if form else 0 :]]


def _along_a_path(result: Result, point: Point, name: str, form: Math | None, loss: str) -> Iterator[Math]:
    """Yield the derivative of a scalar output by a leaf, multiplied out along the path between them if there is one.

    Local derivatives are formulas without those that are 1, unless these are long, and numbers where all are scalars.
    """
    output, y = next(iter(result.graph.outputs.items()))
    if len(result.graph.outputs) > 1 or y.shape:
        return
    leaf, v, labels = result.leaves[name], Value(point.calls[0].v[output]), result.graph.labels
    if form is None and not leaf.shape and not result.question.hooks and not result.wanted.returned:
        called = cotangent(result.graph, loss)
        yield Product((Name(called), Partial(output, name)))
    passes = path_between(result.question.swept, leaf, y) or []
    factors = {p: n for p in passes if (n := _local(p)).value != 1}
    if len(factors) < 2 or sum(written_size(n, labels) for n in factors.values()) > _MEDIUM:
        return
    yield Product((v, *(quantity(n, labels) for n in factors.values())))
    slopes = {} if point.trace is None else point.trace.calls[0].slopes
    if all(p in slopes and not slopes[p].shape for p in passes):
        yield Product((v, *(Value(slopes[p]) for p in factors)))


ELEMENTS = 6  # of a leaf whose arithmetic is written out, a line each: more push the result off the screen
_TERMS = 16  # in all of these sums together: more are longer than two lines


def products(result: Result, jacobian: Array | None, weights: Array, name: str) -> Iterator[Math]:
    """Yield vᵀJ for one leaf as a sum of products: in formulas without a point or for scalars, then in numbers."""
    symbolic, leaf = result.symbolic, result.leaves[name]
    if symbolic is None or leaf.size > ELEMENTS:
        return
    columns = numbered(result.leaves)[name]
    if jacobian is None or (len(symbolic.rows) == 1 and not leaf.shape):
        entries = [[symbolic.entries.get((i, j), 0.0) for i in range(len(weights))] for j in columns]
        yield from _written(leaf, [_terms(weights, column) for column in entries])
    if jacobian is not None:
        finite = np.isfinite(weights).tolist()  # rows whose v_i is, or whose entry is not structurally 0
        products = [[i for i, known in enumerate(finite) if known or (i, j) in symbolic.entries] for j in columns]
        yield from _written(
            leaf, [_terms(weights[i], jacobian[i, j].tolist()) for i, j in zip(products, columns, strict=True)]
        )


def _terms(weights: Array, column: Sequence[Any]) -> list[Math]:
    """Return the terms v_i·J_ij of a column of J without those that are 0, but one; 0·inf is nan and stays."""
    pairs = list(zip(weights.tolist(), column, strict=True))
    shown = pairs if len(pairs) == 1 else [(weight, entry) for weight, entry in pairs if weight * entry != 0]
    return [Product((Value.of(weight), Value.of(entry))) for weight, entry in shown]


def _written(leaf: Node, elements: Sequence[list[Math]]) -> Iterator[Math]:
    """Yield the sums in the shape of the leaf, unless they have no term, or more than `_TERMS` together."""
    if sum(map(len, elements)) <= _TERMS and any(elements):
        yield _nested([Sum(tuple(terms)) if terms else "0" for terms in elements], leaf.shape)


def _nested(elements: Sequence[Math], shape: tuple[int, ...]) -> Math:
    if not shape:
        return elements[0]
    size = len(elements) // shape[0]
    return Listed(tuple(_nested(elements[k * size : (k + 1) * size], shape[1:]) for k in range(shape[0])))


_LONGEST = 5  # factors of a chain that is written: a longer one is a table (--steps)
_MEDIUM = 30  # operations in all factors: more are longer than two lines


def path_between(swept: Sweep, leaf: Node, output: Node) -> list[Pass] | None:
    """Return the passes from an output to a leaf; none unless one path leads there, of products entry by entry.

    None leads through a hook.
    """
    result: list[Pass] = []
    node = leaf
    while node is not output:
        passes = [] if node in swept.hooks else swept.incoming.get(node, [])
        if len(passes) != 1 or len(result) == _LONGEST or not _multiplies(passes[0]):
            return None
        result.insert(0, passes[0])
        node = passes[0].node
    return result


def _multiplies(p: Pass) -> bool:
    """Return whether a pass multiplies an adjoint of the argument's shape, or a scalar that broadcasts to it."""
    if OPERATIONS[p.node.op].broadcasts:
        return p.node.shape == p.argument.shape
    return p.node.op in ("sum", "mean", "norm")


def _local(p: Pass) -> Node:
    """Return the local derivative of a pass: the factor of its adjoint."""
    if p.slope is not None:
        return textbook_slope(p.node, p.position)
    result = contributions_of(p.node, const(1, p.node.shape), [p.position])[p.position]
    while result.args and OPERATIONS[result.op].kind == "view" and result.args[0].size == 1:
        result = result.args[0]
    return const(result.value) if result.value is not None else result
