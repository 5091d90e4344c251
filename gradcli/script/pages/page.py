"""The page of one call of `backward` or `grad` in a script: the system, the gradients, and what became of `.grad`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from gradcli.errors import InputError
from gradcli.graph.graph import appearance
from gradcli.pages.backward.loss import flat, loss_name
from gradcli.pages.backward.page import backward_pages
from gradcli.pages.backward.question import Gradients
from gradcli.pages.evaluation import evaluated
from gradcli.pages.mentions import mentioned
from gradcli.pages.question import Result
from gradcli.pages.recurrence import Folded
from gradcli.pages.results import Measured, Shown, Wanted, style_of
from gradcli.pages.rounds import ROUNDS, by_round, without_rounds
from gradcli.pages.sections import Block, Grid, Math, Page, Section, Text, Typed
from gradcli.pages.system import system_section
from gradcli.record.numbers import Numbers
from gradcli.record.record import CallSite, Operation
from gradcli.script.errors.warnings import Warned
from gradcli.script.known import line_at
from gradcli.script.loops import folded_loops
from gradcli.script.measured import answered, behind_hooks, differ, measured
from gradcli.script.pages.effects import RETURNED, done
from gradcli.script.pages.flow import MANY, flow_section
from gradcli.script.pages.quantities import constants, earlier_names, quantities
from gradcli.script.pages.slips import changed, slips
from gradcli.script.scene import CallScene
from gradcli.script.system import Recorded
from gradcli.text.wrapping import in_words

MOST = 150  # operations that are looked at one by one
_LINES = 24  # lines of a script that are listed
_CODE = 32  # characters of a line
_MOST_NUMBERS = 2**26  # of all values of a page, which are float64 and there several times


def page(
    scene: CallScene,
    warned: Warned = Warned(),  # noqa: B008 - it is immutable
    only: Sequence[str] = (),
    above: Sequence[str] = (),
    below: Sequence[str] = (),
    unexplained: Sequence[Section] = (),
) -> Page:
    """Return the page that `gradcli backward` prints, then what `.grad` was and is, and whether the graph is freed.

    `warned` is what is said of the call beside its record; `above` and `below` are further notes.  A call that cannot
    be explained has the sections `unexplained`.
    """
    explained, recorded = Page(()), scene.recorded
    record, call = recorded.record, recorded.call
    since = [f"note: {text}" for text in changed(scene)]
    hooks = call.hooks if call.function in RETURNED else behind_hooks(recorded)
    scene.altered = bool(hooks)
    if call.hooks and recorded.wrt and call.function not in RETURNED:
        measured(recorded)  # which names what hooks have changed
    try:
        if recorded.wrt:
            explained = explained_page(scene)
    except InputError as error:
        scene.trouble = error.message
    notes = [f"not explained: {scene.trouble}"] if scene.trouble else []
    notes += [*above, *constants(scene), *earlier_names(scene), *since]
    unmeant = [f"note: {text}" for text in slips(scene)]
    behind = (*scene.notes.lines, *unmeant, *warned.notes, *below)
    said: list[Block] = [*(Text((n,)) for n in notes), *warned.warnings, *(Text((n,)) for n in behind)]
    sections = (*(explained.sections or unexplained), *([Section("notes", tuple(said))] if said else []))
    if not scene.trouble and record.backwards and ("flow" in only or len(call.leaves) > MANY):
        sections = (*sections, flow_section(record, call))
    is_explained = bool(explained.sections) and not scene.trouble and scene.has_gradients
    lines = done(scene, is_explained, warned.unreached)
    return replace(explained, sections=(*sections, Section("script", tuple(map(Text, lines))))).only(only)


def explained_page(scene: CallScene) -> Page:
    """Return the page of `gradcli backward`, or of what is asked for by name, with the loops folded."""
    recorded = scene.recorded
    if not any(recorded.at[name].size for name in recorded.wrt):
        raise InputError("all inputs are empty")
    if (count := sum(n.size for n in recorded.graph.nodes)) > _MOST_NUMBERS:
        raise InputError(f"its values are {count:,} numbers; a page has at most {_MOST_NUMBERS:,}")
    if recorded.functions:
        from gradcli.script.pages.functions import functions_page

        return functions_page(scene)
    loops = Folded(recorded.graph) if scene.unroll else folded_loops(recorded, scene.names)
    graph, v = loops.graph, {loops.renamed.get(name, name): a for name, a in recorded.v.items()}
    inside = loops.inside | loops.unwritten_nodes
    left = len([n for n in graph.nodes if n.args and n not in inside])
    left += sum(len(loop.rounds[0]) for loop in loops.written_loops)
    shown = Shown(graph, tuple(recorded.wrt), style_of(graph))
    is_cut = bool(loops.loops or loops.left_out)
    if left > MOST or (is_cut and len(graph.nodes) > MOST):
        scene.has_gradients = False
        if left > MOST and not scene.unroll:
            return Page((folded_by_line(scene),))
        sections = [_long(scene, shown, loops), *([] if scene.unroll else [Section("grad", (ROUNDS,))])]
        return Page((*sections, *_by_round(loops, measured(recorded), loss_name(graph, v))))
    call = recorded.call
    if call.function in RETURNED and call.function != "vjp":
        from gradcli.script.pages.request import request_page, rounded

        pairs = zip(call.inputs or (), call.tangents, strict=False)
        u = {recorded.name(q): np.asarray(tangent.whole) for q, tangent in pairs}
        known = answered(recorded)
        if not scene.altered and (name := rounded(call.function, shown, recorded.at, u, known)):
            scene.notes.lines.append(_note_of_rounding(recorded, [name]))
        return request_page(call.function, shown, recorded.at, u, loops, known, scene.unroll)
    known = measured(recorded)
    wanted = Wanted(
        tuple(loops.renamed.get(name, name) for name in recorded.retained),
        scene.steps,
        page=True,
        implicit=recorded.call.implicit,
        warn=False,
        script=True,
        returned=recorded.call.returns,
        reached=frozenset(known.gradients),
        unwritten=loops.unwritten,
    )
    question = Gradients(loops.with_elements, recorded.wrt, wanted, [[v]], measured=known)
    result = question.result([recorded.at], scene.notes)
    if not scene.altered and (names := list(_rounded(result))):
        scene.altered = True
        scene.notes.lines.append(_note_of_rounding(recorded, [f"{n}.grad" for n in names]))
    return _of_script(result, loops, scene, known)


def _note_of_rounding(recorded: Recorded, names: Sequence[str]) -> str:
    """Return the note that numbers of the script are not those of their formulas."""
    why = f"the script's {recorded.record.quantities[recorded.call.roots[0]].dtype} rounds each operation"
    if recorded.has_packed:
        why = "hooks on saved tensors change what the backward reads"
    differ = "differs from its formula" if len(names) == 1 else "differ from their formulas"
    return f"note: {why}, so {in_words(names)} {differ}"


def _rounded(result: Result) -> Iterator[str]:
    """Yield the leaves whose gradients in the script are not the page's vᵀJ, because of rounding.

    J is evaluated from its formulas only for this: the script computed no J.
    """
    (point,) = result.points
    if point.matrix is None:
        return
    shown, end = flat(point.calls[0].v) @ point.matrix, 0
    for name in result.wrt:
        grad = point.grad[name].reshape(-1)
        end += grad.size
        if differ(shown[end - grad.size : end], grad):
            yield name


def _of_script(result: Result, loops: Folded, scene: CallScene, known: Measured) -> Page:
    """Return the page of a result: each quantity in a row where they are many, and loops folded."""
    (whole,), (point,) = backward_pages(result), result.points
    values = {**point.named, **point.outputs}
    above = quantities(scene, {name: point.at[name] for name in appearance(result.graph)})
    sections = list(whole.sections)
    is_cut = bool(loops.loops or loops.left_out)
    if is_cut:
        left_out = loops.unwritten if any(n.shape for n in result.graph.nodes) else ()  # scalars have no such formulas
        sections = [
            *without_rounds(sections, result, loops.written_names, left_out),
            *_by_round(loops, known, loss_name(result.graph, point.calls[0].v)),
        ]
    if sections[0].name == "system" and (above or is_cut or scene.unroll):
        read = mentioned(section for section in sections[1:] if section.name != "steps")
        sections[0] = system_section(result, point.at, values, above, loops, scene.unroll, read)
    return replace(whole, sections=tuple(sections))


def _by_round(loops: Folded, known: Measured, loss: str) -> list[Section]:
    texts = by_round(loops, known.adjoints, known.contributions, loss)
    return [Section("grad", tuple(texts))] if texts else []


def _long(scene: CallScene, shown: Shown, loops: Folded) -> Section:
    """Return the system of many operations, folded."""
    recorded, named = scene.recorded, shown.graph.names
    (computed,) = evaluated(shown.graph.inputs, [recorded.at], named.values(), known=measured(recorded).values)
    inside = loops.inside | loops.unwritten_nodes
    read = {a for n in shown.graph.nodes if n not in inside for a in n.args}
    at = {name: a for name, a in recorded.at.items() if name in recorded.wrt or shown.graph.inputs[name] in read}
    known = {name: computed[n] for name, n in named.items()}
    return system_section(shown, at, known, quantities(scene, at), loops, scene.unroll)


# A call through too many operations to show each: they are folded by line


def folded_by_line(scene: CallScene) -> Section:
    """Return a row for each line of the script: how often it ran, its operations, and the adjoint of its result.

    A line in the forward of a module runs once for each of its calls.
    """
    operations = [o for o in scene.recorded.record.operations if o.grad_fn or o.site.line]
    lines: dict[tuple[str, int], list[list[Operation]]] = {}
    last: dict[tuple[str, int], int] = {}
    for k, o in enumerate(operations):
        line = o.site.file, o.site.line
        runs = lines.setdefault(line, [])
        if not runs or _begins(o.site, runs[-1][-1].site, last[line] == k - 1):
            runs.append([])
        runs[-1].append(o)
        last[line] = k
    rows = [_row(scene, runs) for runs in lines.values()]
    cut = rows if len(rows) <= _LINES else [*rows[: _LINES - 4], ("…", "", "", "", ""), *rows[-3:]]
    folded = f"{len(operations):,} operations, folded by the line that runs them; "
    drawn = (Typed("--graph FILE"), " draws each of them.")
    meaning = "|adjoint| is the norm of ∂L/∂(the line's result), in its first and its last run."
    grid = Grid(("line", "code", "runs", "operations", "|adjoint|"), tuple(cut))
    return Section("system", (Text((folded, *drawn)), Text((meaning,)), grid))


def _begins(site: CallSite, before: CallSite, adjacent: bool) -> bool:
    """Return whether a line runs again: its instructions begin from the first, or the same one comes after others."""
    return site.instruction < before.instruction or (site.instruction == before.instruction and not adjacent)


def _row(scene: CallScene, runs: Sequence[Sequence[Operation]]) -> tuple[Math, ...]:
    """Return the row of a line; each of its runs ends with the line's result."""
    received = scene.recorded.call.received
    norms = [norm_text(received.get((run[-1].id, 0))) for run in (runs[0], runs[-1])]
    line = line_at(runs[0][0].site)
    code = scene.source(line)
    code = code if len(code) <= _CODE else f"{code[: _CODE - 1]}…"
    where, count = scene.number(line), sum(map(len, runs))
    return where, code, f"{len(runs):,}", f"{count:,}", " … ".join(dict.fromkeys(norms))


def norm_text(g: Numbers | None) -> str:
    """Return the norm of an adjoint; that of one which nothing arrived at is 0."""
    return "0" if g is None else g.not_finite or ("" if g.norm is None else f"{g.norm:.3g}")
