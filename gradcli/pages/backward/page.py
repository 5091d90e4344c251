"""The page of `gradcli backward`: which sections, in which order; and the section `calls`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache

import numpy as np

from gradcli.graph.graph import dimensions
from gradcli.graph.names import ElementName
from gradcli.graph.vjp import differentiated
from gradcli.pages.backward.gradients import gradients_section, products
from gradcli.pages.backward.loss import any_loss, array_of, cotangent, flat, loss_name, weights_section
from gradcli.pages.backward.pytorch import pytorch_section
from gradcli.pages.backward.question import SHOWN_ENTRIES
from gradcli.pages.backward.reasons import reasons
from gradcli.pages.backward.steps import steps_sections
from gradcli.pages.forms.gradients import Forms, forms
from gradcli.pages.formulas import formula_count
from gradcli.pages.images import images_section
from gradcli.pages.jacobian.page import OPERATIONS, has_new_names, heading, is_long, jacobian_sections, zeros
from gradcli.pages.mentions import page_of
from gradcli.pages.question import Call, Point, Result
from gradcli.pages.recurrence import Folded, loops_of_formulas
from gradcli.pages.results import Array, Named
from gradcli.pages.rounds import by_round, without_rounds
from gradcli.pages.sections import (
    VJP,
    Code,
    Equal,
    Grad,
    Grid,
    Math,
    Name,
    Page,
    Partial,
    Product,
    Section,
    Sum,
    Text,
    Typed,
    Value,
    Words,
    chosen,
    sentence,
)
from gradcli.pages.system import system_section

_ENTRY = 160  # characters of an entry of J that is long and is read all the same: two lines
_ROW = 800  # characters of all entries in the row of J that is a gradient: half a screen


@np.errstate(all="ignore")  # a product may overflow
def backward_pages(result: Result, only: Sequence[str] = (), jacobian: bool | None = None) -> list[Page]:
    """Return a page for each point, with the sections `only`, or with all; `jacobian` is whether J is shown."""
    wanted = result.wanted
    loops = Folded(result.graph) if wanted.unroll or wanted.script else loops_of_formulas(result.graph)
    sections = (_backward(result, point, loops, only, jacobian) for point in result.points)
    return [page_of(result, of_point, loops.elements.values()) for of_point in sections]


def _backward(
    result: Result, point: Point, loops: Folded, only: Sequence[str], wants_jacobian: bool | None
) -> Iterator[Section]:
    single = len(point.calls) == 1
    at, values = point.at if result.numeric else None, {**point.named, **point.outputs}
    written = forms(result, point.calls[0].v, at=at) if single else Forms({}, {})
    trace, wanted = point.trace, result.wanted
    jacobian = cache(lambda: _product(result, point, wants_jacobian, "jacobian" in only, written))
    entries = result.symbolic is not None and (not only or "jacobian" in only)
    build: dict[str, Callable[[], Sequence[Section]]] = {
        "system": lambda: [system_section(result, at, values, whole=wanted.unroll)],
        "v": lambda: [weights_section(result.graph, point.calls[0].v, result.wanted.implicit)] if single else [],
        "jacobian": jacobian,
        "steps": lambda: steps_sections(trace, [call.v for call in point.calls]) if trace and wanted.steps else [],
        "calls": lambda: [] if single else [calls_section(result, point)],
        "grad": lambda: [gradients_section(result, point, written, entries and bool(jacobian()), loops.elements)],
        "why": lambda: _reasons(result, point),
        "images": lambda: images_section(result, point),
        "pytorch": lambda: [_pytorch(result, point, loops.elements, alone=tuple(only) == ("pytorch",))],
    }
    unwanted = {"system"} if result.wanted.steps else set()
    if result.question.hooks:
        unwanted.add("why")  # which is why of the rules alone
    if result.wanted.script:
        unwanted.add("pytorch")
    if not single and len(result.wrt) == 1 and not point.retained:
        unwanted.add("grad")
    sections = chosen(build, only, unwanted)
    return sections if not loops.loops or not single or not result.numeric else _folded(result, point, sections, loops)


def _folded(result: Result, point: Point, sections: Iterator[Section], loops: Folded) -> Iterator[Section]:
    """Yield the sections without formulas that mention rounds of loops, and what each round adds to gradients."""
    yield from without_rounds([*sections], result, loops.graph.names)
    if point.trace is not None:
        reverse = point.trace.calls[0]
        contributions = {(p.node, p.position): a for p, a in reverse.contributions.items()}
        loss = loss_name(result.graph, point.calls[0].v)
        if texts := by_round(loops, reverse.adjoints, contributions, loss):
            yield Section("grad", tuple(texts))


def _reasons(result: Result, point: Point) -> list[Section]:
    """Return why the gradients are what they are, where a rule surprises."""
    if not any(n.shape for n in result.graph.nodes):
        return []  # no rule of arrays
    loss = loss_name(result.graph, point.calls[0].v)
    sentences = reasons(result.graph, result.question.swept, result.wrt, loss, point.trace if result.numeric else None)
    texts = tuple(Text((s,)) if isinstance(s, str) else s for s in sentences)
    return [Section("why", texts)] if texts else []


def _product(
    result: Result, point: Point, wants_jacobian: bool | None, is_named: bool, written: Forms
) -> list[Section]:
    """Return the section `jacobian`: J beside v, unless J is too large or the gradients' lines show it."""
    wanted = wants_jacobian or is_named
    if wants_jacobian is False or (not wanted and _gradients_say_it(result, point, written)):
        return []
    if result.symbolic is None:
        return [] if result.wanted.script else [_too_large(result)]
    if len(point.calls) > 1:
        return jacobian_sections(result, point.matrix)
    total = {name: point.grad[name] for name in result.wrt}
    brief = not wanted and len(result.symbolic.rows) > 1
    return jacobian_sections(result, point.matrix, point.calls[0], total, brief)


def _gradients_say_it(result: Result, point: Point, written: Forms) -> bool:
    """Return whether J is too large for a page, or its only row is what the lines of the gradients show."""
    if result.symbolic is None:
        return not result.numeric
    rows, columns = len(result.symbolic.rows), len(result.symbolic.columns)
    formulas = written.gradients.keys() == set(result.wrt)
    if rows > 1 or len(point.calls) > 1:
        return not result.numeric and (rows * columns > SHOWN_ENTRIES or (formulas and is_long(result)))
    if all(not n.shape for n in result.leaves.values()):
        return True
    if not result.numeric and columns > SHOWN_ENTRIES and written.covers(result.wrt):
        return True
    plain = not any(entry.free_symbols for entry in result.symbolic.entries.values())
    same = bool((flat(point.calls[0].v) == 1).all()) and (formulas or plain)
    long = result.numeric and (is_long(result) or bool(result.symbolic.defined))
    return same or (long and not _is_readable(result, written))


def _is_readable(result: Result, written: Forms) -> bool:
    """Return whether the only row of J is short, and no line of a gradient has a formula."""
    if written.gradients or (result.symbolic and has_new_names(result)) or formula_count(result.graph) > OPERATIONS:
        return False
    lengths = [len(result.formula(entry)) for entry in result.formulas.entries.values()]
    return max(lengths, default=0) <= _ENTRY and sum(lengths) <= _ROW


def _too_large(result: Result) -> Section:
    rows, columns = dimensions(result.graph, result.wrt)
    size = f": {rows:,} × {columns:,}{zeros(result, rows, columns)}; "
    shown = sentence("{} shows it, and {} does not need it", Typed("--jacobian"), VJP)
    return Section("jacobian", (Text((*heading(result), size, *shown)),))


def _pytorch(result: Result, point: Point, elements: Mapping[str, str], alone: bool) -> Section:
    """Return the line of PyTorch; where nothing else is wanted, a script that runs."""
    if not alone:
        kept = [elements.get(h, h) for h in point.retained if h not in result.question.unreached]
        return pytorch_section(result.graph, point.calls, kept)
    from gradcli.pages.backward.torch_script import torch_script

    return Section("pytorch", (Code(tuple(torch_script(result, point)), whole=True),))


_CALLS = 20  # rows of the table, less than a screen
_LEAVES = 5  # columns of the table: more are wider than 80 characters; the gradients of all stand below
_SUMMED = 3  # leaves whose sums have a row: the gradients of all stand below
_RUNNING = 4  # elements of a gradient whose sum is written as a sum: more are wider than a column

_GRAD = Typed(".grad")


def calls_section(result: Result, point: Point) -> Section:
    """Return a table with a row for each call (its v, its vᵀJ, and `.grad` after it), and the sum of all calls."""
    leaves = result.wrt if len(result.wrt) <= _LEAVES else result.wrt[: _LEAVES - 1]
    more: tuple[str, ...] = ("…",) if len(leaves) < len(result.wrt) else ()

    def row(title: str, call: Call, before: Named) -> tuple[Math, ...]:
        cells: list[Math] = [_running(before.get(name), call.vjp[name], call.grad[name]) for name in leaves]
        if len(leaves) == 1:
            sums = products(result, point.matrix, flat(call.v), leaves[0])
            cells.insert(0, Equal((*list(sums)[-1:], Value(call.vjp[leaves[0]]))))
        return (title, array_of(result.graph.outputs, call.v), *cells, *more)

    before = [{}, *(call.grad for call in point.calls)]
    rows = [row(str(k), call, grad) for k, (call, grad) in enumerate(zip(point.calls, before, strict=False), 1)]
    if len(rows) > _CALLS:
        rows = [*rows[: _CALLS - 1], ("…", *[""] * (len(rows[0]) - 1)), rows[-1]]
    if len(rows) > 1 and len(leaves) <= _SUMMED:
        rows.append(row("sum", Call(_sum_of_all(result, point), point.grad, point.grad), {}))
    titles = tuple(Words((Grad(name), " after it")) for name in leaves)
    headings = (VJP, *titles) if len(titles) == 1 else titles
    called = cotangent(result.graph)
    header = ("call", Name(called) if called else "cotangent", *headings, *more)
    return Section("calls", (_meaning(result), Grid(header, tuple(rows)), *_sentences(result, point)))


def _sum_of_all(result: Result, point: Point) -> Named:
    """Return the sum of all v, whose vᵀJ is what has accumulated in `.grad`."""
    return {name: np.sum([c.v[name] for c in point.calls], axis=0) for name in result.graph.outputs}


def _meaning(result: Result) -> Text:
    """Return the meaning of v in each call."""
    (output, y), *others = result.graph.outputs.items()
    called, name = cotangent(result.graph), any_loss(result.graph)
    own, adds = "Each call has its own {}", ", and adds {} to {}."
    if others:
        v = Name(called) if called else "cotangent"
        return Text(sentence(f"{own}, the derivatives of its own {{}} by the outputs{adds}", v, Name(name), VJP, _GRAD))
    product = Product((Name(called), Partial(output, result.wrt[0]))) if not y.shape and len(result.wrt) == 1 else VJP
    return Text(sentence(f"{own}{adds}", Equal((Name(called), Partial(name, output))), product, _GRAD))


def _running(before: Array | None, added: Array, after: Array) -> Math:
    if before is None or after.dtype == object or after.size > _RUNNING:
        return Value(after)
    return Equal((Sum((Value(before), Value(added))), Value(after)))


def _sentences(result: Result, point: Point) -> list[Text]:
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


def forgotten(result: Result) -> list[str]:
    """Return the intermediates of which PyTorch keeps no gradient unless `retain_grad` is called."""
    graph = result.graph
    kept = {*graph.inputs.values(), *graph.outputs.values(), *(graph.names[name] for name in result.wanted.retain)}
    lost = differentiated(graph, result.wrt) - kept
    shown = loops_of_formulas(graph).graph.names
    return [name for name, n in shown.items() if n in lost and not isinstance(name, ElementName)]
