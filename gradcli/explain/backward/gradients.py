"""The section `grad`: the gradient of each leaf, with what leads to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from gradcli.explain.backward import chain
from gradcli.explain.backward.arithmetic import products
from gradcli.explain.backward.disagreement import disagreements
from gradcli.explain.backward.entries import Entries
from gradcli.explain.backward.indeterminate import indeterminate
from gradcli.explain.backward.loss import cotangent, loss_name
from gradcli.explain.backward.no_gradient import leaves_without
from gradcli.explain.backward.record import BackwardPoint, BackwardResult
from gradcli.explain.backward.weights import flat
from gradcli.explain.forms.gradients import Forms
from gradcli.explain.results import Array
from gradcli.explain.sections import (
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
    sentence,
)
from gradcli.graph.names import AdjointName, adjoint_name
from gradcli.graph.vjp import active_nodes
from gradcli.wrapping import in_words

WHOLE = 12  # elements of a gradient that is written out in formulas: a matrix of 3 by 4
_COLUMNS = 12  # of a J beside which sums are written out, too: a wider one says them itself
_READABLE = 120  # characters of all of them: two lines
_MATRIX = 2  # axes of an array that has rows
_ROWS = 6  # rows that are not 0 and are listed, a line each
_FEW = 3  # rows of an array that shows which of them are 0


def gradients_section(result: BackwardResult, point: BackwardPoint, written: Forms, beside: bool) -> Section:
    """Return the gradients at a point after all calls, and those of retained intermediates.

    `written` are the formulas of the gradients in a system of arrays; `beside` is whether J is shown, too.
    """
    lines = []
    bare = []
    weights = flat(point.calls[0].v)
    for name in result.wrt:
        sides = [*_in_v(result, name), *_sides(result, point, name, written.gradients.get(name), weights)]
        grad = point.grad.get(name)
        value = [] if grad is None or (sides and _is_long(result, grad)) else [Value(grad)]
        lines.append(Line((Grad(name), *sides, *value), (), True))
        if not sides and result.leaves[name].shape:
            bare.append(name)
    lines += [_retained(result, point, name, written) for name in point.retained]
    adjoints = _adjoints(result, point, written)
    why = _nan(point, lines) or list(disagreements(result, point, lines))
    spelled = _spelled(result, point, written, () if beside else bare)
    rows = [block for name, grad in point.grad.items() for block in nonzero_rows(name, grad)]
    return Section("grad", (*adjoints, Equations(tuple(lines)), *spelled, *rows, *why, *_kept(result, point)))


def _in_v(result: BackwardResult, name: str) -> list[Math]:
    """Return a gradient as formulas in the letters of the cotangents, where they are asked for and can be read."""
    formulas = result.in_v.get(name)
    return [] if formulas is None or _is_long(result, formulas) else [Value(formulas)]


def _spelled(result: BackwardResult, point: BackwardPoint, written: Forms, bare: Sequence[str]) -> list[Block]:
    """Return the sum that gives one entry, for each gradient whose line has neither a formula nor arithmetic."""
    if not bare or not result.numeric or point.trace is None or len(point.calls) > 1:
        return []
    entries = Entries(result, point.trace, written.adjoints)
    for name in bare:
        entries.add(name, point.grad[name])
    return list(entries.blocks())


def nonzero_rows(name: str, grad: Array) -> Iterator[Block]:
    """Yield the rows of a large gradient that are not 0, where most rows are 0, as for an embedding."""
    if grad.dtype == object or grad.ndim < _MATRIX or grad.size <= WHOLE:
        return
    rows = np.flatnonzero(grad.reshape(len(grad), -1).any(axis=1))
    if 0 < len(rows) <= min(_ROWS, len(grad) // 2) and len(grad) > _FEW:
        yield Equations(tuple(Line((Grad(name, (int(i),)), Value(grad[i]))) for i in rows))
        yield Text(sentence(f"The other {len(grad) - len(rows):,} rows of {{}} are 0.", Grad(name)))


def _adjoints(result: BackwardResult, point: BackwardPoint, written: Forms) -> list[Block]:
    """Return the definitions of the adjoints in the gradients' formulas, below a sentence that defines adjoints."""
    lines = tuple(Line((Name(bar), formula)) for bar, formula in written.adjoints.items())
    return [introduced(list(written.adjoints)), Equations(lines)] if lines else []


def introduced(adjoints: Sequence[AdjointName]) -> Text:
    """Return a sentence that defines adjoints by the first name with a bar; ∂L/∂h defines itself."""
    said = f"with the adjoint{'s' * (len(adjoints) > 1)}"
    barred = next((name for name in adjoints if name.barred), None)
    if barred is None:
        return Text((said,))
    return Text((f"{said} (", Equal((Name(barred), Partial(barred.loss, barred.by))), ")"))


def _is_long(result: BackwardResult, grad: Array) -> bool:
    """Return whether a gradient is an array of formulas too long to be shown beside its formula of matrices."""
    if grad.dtype != object:
        return False
    texts = [result.formula(e) for e in grad.reshape(-1)[:WHOLE]]
    return grad.size > WHOLE or sum(map(len, texts)) > _READABLE or bool(result.symbolic and result.symbolic.defined)


def _retained(result: BackwardResult, point: BackwardPoint, name: str, written: Forms) -> Line:
    """Return the line of an intermediate's gradient: as a derivative, as a short formula, and as a number."""
    loss = loss_name(result.graph, point.calls[0].v)
    sides: list[Math] = [Grad(name), Partial(loss, name)]
    formulas = point.adjoints.get(name)
    if (adjoint := adjoint_name(name, loss)) in written.adjoints:
        sides += [Name(adjoint)] if adjoint.barred else [written.adjoints[adjoint]]
    elif formulas is not None and sum(len(result.formula(e)) for e in formulas.reshape(-1)) <= _READABLE:
        sides.append(Value(formulas))
    return Line((*sides, Value(point.retained[name])))


def _nan(point: BackwardPoint, lines: Sequence[Line]) -> list[Text]:
    """Return why a gradient is nan; nothing where a line shows the product 0·inf."""
    if len(point.calls) > 1 or point.trace is None or not any(_has_nan(g) for g in point.grad.values()):
        return []
    result = (
        None if any(_is_indeterminate(side) for line in lines for side in line.sides) else indeterminate(point.trace)
    )
    return [] if result is None else [result]


def _has_nan(grad: Array) -> bool:
    return grad.dtype != object and bool(np.isnan(grad).any())


def _is_indeterminate(side: Math) -> bool:
    """Return whether a side is a product or a sum of products that is nan, although no number in it is."""
    if isinstance(side, Sum | Listed):
        return any(map(_is_indeterminate, side.terms if isinstance(side, Sum) else side.items))
    factors = side.factors if isinstance(side, Product) else ()
    numbers = [np.asarray(f.array) for f in factors if isinstance(f, Value) and np.asarray(f.array).dtype != object]
    if not numbers or len(numbers) != len(factors) or any(n.shape or np.isnan(n) for n in numbers):
        return False
    return bool(np.isnan(np.prod(numbers)))


def _kept(result: BackwardResult, point: BackwardPoint) -> list[Text]:
    """Return which gradients are None in PyTorch, and how `retain_grad` keeps those of intermediates."""
    unreached = [name for name in result.wrt if name not in result.wanted.reached]
    texts = list(leaves_without(result.graph, unreached))
    if result.wanted.returned:
        return texts
    texts += [Text(_why_none(result, h)) for h in result.unreached]
    kept = (name for name in point.retained if name not in result.graph.outputs and name not in result.unreached)
    if not result.wanted.script and (h := next(kept, None)) is not None:
        said = (
            "{} is computed, not a leaf (leaves are inputs): PyTorch leaves {} None unless {} comes before backward. "
            "A hook on {} sees the same number, which is called the adjoint of {}."
        )
        name = Name(h)
        texts.append(Text(sentence(said, name, Grad(h), Typed(f"{h}.retain_grad()"), name, name)))
    return texts


def _why_none(result: BackwardResult, h: str) -> tuple[Math, ...]:
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


def _sides(result: BackwardResult, point: BackwardPoint, name: str, form: Math | None, weights: Array) -> list[Math]:
    """Return the sides between a gradient's name and its value; `form` is its formula in a system of arrays."""
    leaf = result.leaves[name]
    if len(point.calls) > 1:
        return []
    if result.wanted.steps and not leaf.shape:
        return [Name(adjoint_name(name, loss_name(result.graph, point.calls[0].v)))]
    formulas = list(_along_a_path(result, point, name, form))
    if form is not None:
        formulas.append(form)
    is_shown = len(formulas) > 1 if not leaf.shape else len(weights) == 1 and weights[0] == 1
    if is_shown or (form is not None and (not result.numeric or len(weights) == 1)):
        return formulas
    if result.numeric and result.symbolic is not None and len(result.symbolic.columns) > _COLUMNS:
        return formulas if leaf.shape or len(weights) == 1 else []  # J and vᵀJ say it, above
    return [*formulas, *list(products(result, point.jacobian, weights, name))[-1 if form else 0 :]]


def _along_a_path(result: BackwardResult, point: BackwardPoint, name: str, form: Math | None) -> Iterator[Math]:
    """Yield the derivative of a scalar output by a leaf, multiplied out along the path between them if there is one."""
    output, y = next(iter(result.graph.outputs.items()))
    if len(result.graph.outputs) > 1 or y.shape:
        return
    leaf, v = result.leaves[name], point.calls[0].v[output]
    passes = chain.path(result.swept, leaf, y) or []
    along = chain.factors(passes, result.graph.labels)
    if form is None and not leaf.shape:
        called = cotangent(result.graph, loss_name(result.graph, point.calls[0].v))
        yield Product((Name(called), Partial(output, name)))
    if along is not None:
        yield Product((Value(v), *along))
        if point.trace is not None and (chained := chain.numbers(passes, point.trace)):
            yield Product((Value(v), *chained))
