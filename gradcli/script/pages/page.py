"""The page of one call of `backward` or `grad` in a script: the system, the gradients, and what became of `.grad`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from gradcli.errors import InputError
from gradcli.explain.backward.accumulation import backward
from gradcli.explain.backward.backward_page import Choice, backward_pages
from gradcli.explain.backward.loss import loss_name
from gradcli.explain.backward.record import BackwardResult
from gradcli.explain.backward.weights import flat
from gradcli.explain.evaluation import evaluated
from gradcli.explain.mentions import DEFINITIONS, names_in
from gradcli.explain.results import Shown, Wanted
from gradcli.explain.sections import (
    Block,
    Equations,
    Grad,
    Math,
    Name,
    Page,
    Partial,
    Product,
    Section,
    Text,
    Typed,
    sentence,
)
from gradcli.explain.shared import style_of
from gradcli.explain.system import system_section
from gradcli.graph.graph import Graph, appearance
from gradcli.graph.names import element_name
from gradcli.pytorch.backward import Call
from gradcli.pytorch.record import edge_of
from gradcli.script.loops import Loop, Written, folded_system, loops, named
from gradcli.script.measured import answered, differ, measured, values
from gradcli.script.pages.gradients import done, not_finite
from gradcli.script.pages.long import folded_by_line
from gradcli.script.pages.quantities import constants, earlier_names, quantities
from gradcli.script.pages.slips import changed, slips
from gradcli.script.scene import CallScene
from gradcli.script.system import Recorded, reachable
from gradcli.wrapping import in_words

MOST = 150  # operations that are looked at one by one


def page(call: Call, scene: CallScene) -> Page:
    """Return the page that `gradcli backward` prints, then what `.grad` was and is, and whether the graph is freed."""
    explained = Page(())
    steps = reachable(edge_of(y) for y, _ in call.roots)
    since = [f"note: {text}" for text in changed(steps, call, scene)]
    scene.altered = bool(call.changes or since)
    if since:  # the page shows the values of now, of which the gradients are
        scene.recorded.forget_values()
    try:
        if scene.recorded.wrt:
            explained = _explained(call, scene, scene.recorded)
    except InputError as error:
        scene.trouble = error.message
    notes = [f"not explained: {scene.trouble}"] if scene.trouble else []
    notes += [*constants(scene), *earlier_names(scene), *since, *not_finite(call, scene), *scene.notes.lines]
    notes += [f"note: {text}" for text in slips(steps, call, scene)]
    said = Section("notes", tuple(Text((note,)) for note in notes))
    sections = (*explained.sections, *([said] if notes else []))
    lines = done(call, scene, bool(sections) and not scene.trouble and scene.has_gradients)
    return replace(explained, sections=(*sections, Section("script", tuple(map(Text, lines)))))


def _explained(call: Call, scene: CallScene, recorded: Recorded) -> Page:
    """Return the page of `gradcli backward`, or of what is asked for by name, with the loops folded."""
    if not any(recorded.at[name].size for name in recorded.wrt):
        raise InputError("all inputs are empty")
    if recorded.functions:
        from gradcli.script.pages.functions import functions_page

        whole = functions_page(call, scene)
        return replace(whole, sections=tuple(_returned(whole.sections, recorded))) if call.returns else whole
    graph, folded, left = _with_loops(scene, recorded)
    if left > MOST or (folded and len(graph.nodes) > MOST):
        scene.has_gradients = False
        steps = reachable(edge_of(y) for y, _ in call.roots)
        if left > MOST:
            return Page((folded_by_line(call, scene, steps),))
        return Page((_long(scene, graph, folded), Section("grad", (_ROUNDS,))))
    if call.request is not None and call.request.name != "vjp":
        from gradcli.script.pages.request import request_page, rounded

        u = {scene.name(x): tangent._a[..., 0] for x, tangent in zip(call.inputs or (), call.request.u, strict=False)}
        shown = Shown(graph, tuple(recorded.wrt), style_of(graph))
        known = answered(call, recorded)
        if not scene.altered and (name := rounded(call.request.name, shown, recorded.at, u, known)):
            scene.notes.lines.append(_note_of_rounding(call, recorded, [name]))
        return request_page(call.request.name, shown, recorded.at, u, folded, known)
    known = measured(call, recorded)
    wanted = Wanted(
        recorded.retained,
        scene.steps,
        page=True,
        implicit=call.implicit,
        warn=False,
        script=True,
        returned=call.returns,
        reached=frozenset(known.gradients),
    )
    result = backward(graph, recorded.wrt, [recorded.at], [[recorded.v]], wanted, scene.notes, known)
    if not scene.altered and (names := list(_rounded(result))):
        scene.altered = True
        scene.notes.lines.append(_note_of_rounding(call, recorded, [f"{n}.grad" for n in names]))
    return _of_script(result, folded, scene)


def _note_of_rounding(call: Call, recorded: Recorded, names: Sequence[str]) -> str:
    """Return the note that numbers of the script are not those of their formulas."""
    why = f"the script's {call.roots[0][0].dtype.name} rounds each operation"
    if recorded.has_packed:
        why = "hooks on saved tensors change what the backward reads"
    differ = "differs from its formula" if len(names) == 1 else "differ from their formulas"
    return f"note: {why}, so {in_words(names)} {differ}"


_ROUNDS = Text(
    sentence("A formula through all rounds of a loop is not written out; {} draws each round.", Typed("--graph FILE"))
)


def _rounded(result: BackwardResult) -> Iterator[str]:
    """Yield the leaves whose gradients are not vᵀJ, with J as the page has it, because of rounding.

    The formulas of J are evaluated for that alone: what they give is not in the record.
    """
    (point,) = result.points
    if point.jacobian is None:
        return
    shown, end = flat(point.calls[0].v) @ point.jacobian, 0
    for name in result.wrt:
        grad = point.grad[name].reshape(-1)
        end += grad.size
        if differ(shown[end - grad.size : end], grad):
            yield name


def _with_loops(scene: CallScene, recorded: Recorded) -> tuple[Graph, list[Loop], int]:
    """Return the graph with names for what its loops carry, the loops, and how many operations are left to show."""
    keep = {recorded.graph.names[name] for name in recorded.retained}
    result = loops(recorded.graph, lambda parts: _loop(scene, recorded, parts), keep)
    left = len([n for n in recorded.graph.nodes if n.args]) - sum(len(p) for loop in result for p in loop.parts[1:])
    return named(recorded.graph, result, lambda n: recorded.target(n) or ""), result, left


def _of_script(result: BackwardResult, folded: Sequence[Loop], scene: CallScene) -> Page:
    """Return the page of a result: each quantity in a row where they are many, and loops folded."""
    (whole,), (point,) = backward_pages(result, Choice()), result.points
    values = {**point.intermediates, **point.value}
    above = quantities(scene, {name: point.at[name] for name in appearance(result.graph)})
    sections = list(whole.sections)
    if above and sections[0].name == "system":
        sections[0] = system_section(result, point.at, values, above)
    if folded:
        sections = list(_folded(sections, result, folded, above))
    return replace(whole, sections=tuple(_returned(sections, scene.recorded) if result.wanted.returned else sections))


def _loop(scene: CallScene, recorded: Recorded, parts: Sequence[Sequence[Any]]) -> Written | None:
    """Return the code of isomorphic parts that are rounds of a loop; None for layers of a module."""
    lines = [[recorded.producer[n].line for n in part if n in recorded.producer] for part in parts]
    if not all(lines):
        return None
    first, second = lines[:2]
    in_one_call = len({line.call for line in first}) == 1 and all(line.inside for line in first)
    if in_one_call or {*map(id, first)} & {*map(id, second)}:
        return None
    # What runs each time: the first time may be another statement.
    usual = {(line.file, int(line)): line for line in second}
    code = tuple(_body(scene.source(line)) for _, line in sorted(usual.items()))
    return Written(scene.lines(line for part in lines for line in part), code)


def _body(code: str) -> str:
    """Return the body of a loop that is written in one line, and any other code as it is."""
    with suppress(SyntaxError):
        (statement,) = ast.parse(code).body
        if isinstance(statement, ast.For | ast.While):
            return code[statement.body[0].col_offset :]
    return code


def _long(scene: CallScene, graph: Graph, folded: Sequence[Loop]) -> Section:
    """Return the system of many operations, folded."""
    recorded = scene.recorded
    named = graph.names
    (computed,) = evaluated(graph.inputs, [recorded.at], named.values(), known=values(recorded, named.values()))
    at = {name: a for name, a in recorded.at.items() if name in recorded.wrt}
    return folded_system(graph, folded, at, {name: computed[n] for name, n in named.items()}, quantities(scene, at))


def _folded(
    sections: Sequence[Section], result: BackwardResult, folded: Sequence[Loop], above: Sequence[Block]
) -> Iterator[Section]:
    """Yield the sections without what mentions the inside of a loop."""
    (point,) = result.points
    names = set(result.symbolic.defined) if result.symbolic else set()
    written = False
    for section in sections:
        if section.name == "system":
            yield folded_system(result.graph, folded, point.at, {**point.intermediates, **point.value}, above)
        elif section.name == "grad" and section.title != DEFINITIONS:
            plain = tuple(_plain(section.blocks, names))
            written = written or plain == section.blocks
            yield replace(section, blocks=plain)
        elif section.name != "grad":
            yield section
    if not written:
        yield Section("grad", (_ROUNDS,))


def _plain(blocks: Sequence[Block], hidden: set[str]) -> Iterator[Block]:
    """Yield the gradients without formulas that mention what is hidden, and the adjoints that are left."""
    hidden = set(hidden)
    heading: list[Block] = []  # waits for the equations below it
    for block in blocks:
        if not isinstance(block, Equations):
            heading.append(block)
            continue
        lines = []
        for line in block.lines:
            left, *rest = line.sides
            kept = [side for side in rest if hidden.isdisjoint(names_in(side))]
            if isinstance(left, Name) and not kept:  # an adjoint that is not known, nor what is computed of it
                hidden.add(left.name)
            else:
                lines.append(replace(line, sides=(left, *kept)))
        if lines:
            yield from (*heading, Equations(tuple(lines)))
        heading = []
    yield from heading


def _says(side: Math, left: Math) -> bool:
    """Return whether a product has the left side in it."""
    return isinstance(side, Product) and isinstance(left, Partial) and any(f == left for f in side.factors[1:2])


def _returned(sections: Sequence[Section], recorded: Recorded) -> list[Section]:
    """Return the gradients under the name of what `grad` returns: no `.grad` has them."""
    loss = loss_name(recorded.graph, recorded.v)
    return [replace(s, blocks=tuple(_named(s.blocks, loss))) if s.name == "grad" else s for s in sections]


def _named(blocks: Sequence[Block], loss: str) -> Iterator[Block]:
    for block in blocks:
        if isinstance(block, Equations):
            lines = []
            for line in block.lines:
                left, *rest = [_partial(loss, s) if isinstance(s, Grad) else s for s in line.sides]
                kept = [s for s in rest if not isinstance(s, Partial) and not _says(s, left)]
                lines.append(replace(line, sides=(left, *kept)))
            yield Equations(tuple(lines))
        else:
            yield block


def _partial(loss: str, grad: Grad) -> Partial:
    """Return a gradient, an element or a row of it, as a derivative."""
    return Partial(loss, element_name(grad.name, grad.key) if grad.key else grad.name)
