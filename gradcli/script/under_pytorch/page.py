"""The page of one backward under PyTorch, from its record: the system, the gradients, the flow, and `.grad`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gradcli.errors import InputError
from gradcli.notation.numbers import array_text
from gradcli.pages.sections import Grad, Grid, Math, Page, Partial, Section, Text, Typed, sentence
from gradcli.pytorch.session import Script
from gradcli.record.numbers import Numbers
from gradcli.record.record import Backward, Operation, Record
from gradcli.report.data.json import plain
from gradcli.script.naming import Names
from gradcli.script.pages.flow import MANY, as_data, flow, flow_section
from gradcli.script.pages.page import explained_page
from gradcli.script.pages.quantities import constants
from gradcli.script.recorded import recorded
from gradcli.script.scene import CallScene
from gradcli.script.under_pytorch.verify import completed, verified, verify
from gradcli.script.written import decimal
from gradcli.text.wrapping import in_words

_MOST = 150  # operations whose formulas are shown
_LISTED = 16  # leaves whose `.grad` is listed one by one
_ROWS = 24  # operations, or lines of the program, that are listed
_NAMED = 3  # names of operations in a row
_CODE = 28  # characters of a line
_LEAVES = 24  # leaves whose gradients have formulas: of more, the flow says what there is to say
_SHOWN = 36  # elements of an array that is written out
_FEW = 12  # elements of a value in the table of operations
_NO_SCRIPT = Script("", "", None)


def page_of(
    record: Record,
    steps: bool = False,
    only: Sequence[str] = (),
    script: Script = _NO_SCRIPT,
    unroll: bool = False,
) -> Page:
    """Return the page of the backward of a record; `script` is the program whose file names are left out.

    Loops are recurrences, unless `unroll` is wanted.
    """
    (backward,) = record.backwards
    notes: list[str] = []
    sections: list[Section] = []
    explained = Page(())
    rows = flow(record, backward)
    unknown = [*_without_formula(record)]
    if len(record.operations) <= _MOST and len(rows) <= _LEAVES and _is_real(record):
        record, wrong = verified(completed(record), backward)
        notes += [_disagreement(record, backward, o) for o in wrong]
        scene = CallScene(script, backward.site.line, Names(), steps=steps, unroll=unroll)
        try:
            scene.recorded = recorded(record, backward, {script.name: script.source})
            if scene.recorded.wrt:
                explained = explained_page(scene)
                notes += [*constants(scene), *scene.notes.lines]
        except InputError as error:
            notes.append(f"not explained: {error.message}")
    shows_gradients = any(s.name == "grad" for s in explained.sections)
    sections += explained.sections or (_operations(record, backward),)
    if len(rows) > MANY or "flow" in only:
        sections.append(flow_section(record, backward))
    elif reasons := [f"{row.name}.grad: {row.why}" for row in rows if row.why and row.grad_norm]:
        notes += [f"warning: {reason}" for reason in reasons[:1]]
    notes += unknown
    if notes:
        sections.append(Section("notes", tuple(Text((n,)) for n in notes)))
    lines = _done(record, backward, shows_gradients, len(rows) > MANY)
    sections.append(Section("script", tuple(Text(tuple(line)) for line in lines)))
    return replace(explained, sections=tuple(sections)).only(only)


def _is_real(record: Record) -> bool:
    """Return whether formulas can show all numbers: none is complex, nor known by its shape alone."""
    known = completed(record)
    numbers = [known.quantities[x].numbers for o in record.operations for x in o.operands if isinstance(x, int)]
    return all(n.whole is not None and n.whole.dtype.kind != "c" for n in numbers)


def _disagreement(record: Record, backward: Backward, o: Operation) -> str:
    """Return the note that a formula does not give PyTorch's numbers, or its results alone.

    The backward of an operation reads its operands again.  PyTorch does not notice changes through `.data` or NumPy.
    """
    kinds = {record.quantities[x].dtype for x in o.operands if isinstance(x, int)}
    is_exact = kinds <= {"float32", "float64"}
    if verify(record, replace(backward, sent={}), o):
        please = " If they were not, please report it." if is_exact else ""
        return (
            f"note: gradcli's formula of `{o.row}` gives what line {o.site.line} computed, and not what its backward "
            f"sends back: were its numbers changed in place in between, through .data or NumPy?{please}"
        )
    please = ": please report it" if is_exact else ""
    return f"note: gradcli's formula of `{o.row}` (line {o.site.line}) does not give PyTorch's numbers{please}"


def _without_formula(record: Record) -> Iterator[str]:
    """Yield which operations have no formula."""
    unknown = [o for o in record.operations if o.is_opaque and o.settings[:1] == ("torch",)]  # no function of its own
    first = {o.row: o.site.line for o in unknown[::-1]}
    named = [f"`{name}`" + (f" (line {line})" if line else "") for name, line in reversed(first.items())]
    if named:
        yield f"note: no formula: gradcli does not know {in_words(named)} of these numbers; the numbers are PyTorch's"


def _operations(record: Record, backward: Backward) -> Section:
    """Return the operations as a table, many of them folded by the line of the program that runs them."""
    if len(record.operations) > _ROWS:
        return _folded(record, backward)
    rows: list[tuple[Math, ...]] = []
    for o in record.operations:
        for k, q in enumerate(o.results):
            quantity, g = record.quantities[q], backward.received.get((o.id, k))
            value = _first(quantity.numbers)
            rows.append((str(o.site.line or ""), o.row, quantity.name, _shape(quantity.shape), value, _size(g)))
    said = f"{len(record.operations):,} operations; |adjoint| is the norm of ∂L/∂(its result)"
    return Section(
        "system", (Text((said,)), Grid(("line", "operation", "name", "shape", "value", "|adjoint|"), tuple(rows)))
    )


def _folded(record: Record, backward: Backward) -> Section:
    """Return a row for each line: how often it ran, its operations, and the adjoint of its result, first and last."""
    runs: dict[tuple[str, int], list[list[Operation]]] = {}
    before: Operation | None = None
    for o in record.operations:
        line = runs.setdefault((o.site.file, o.site.line), [])
        is_next = before is not None and (before.site.file, before.site.line, before.site.frame) == (
            o.site.file, o.site.line, o.site.frame,
        )  # fmt: skip
        if not line or not is_next:
            line.append([])
        line[-1].append(o)
        before = o
    rows: list[tuple[Math, ...]] = []
    for (_, number), several in runs.items():
        names = [*dict.fromkeys(o.row for run in several for o in run)]
        shown = ", ".join(names[:_NAMED]) + ", …" * (len(names) > _NAMED)
        sizes = [_size(backward.received.get((run[-1].id, 0))) for run in (several[0], several[-1])]
        count = sum(map(len, several))
        code = several[0][0].site.code
        code = code if len(code) <= _CODE else f"{code[: _CODE - 1]}…"
        adjoints = " … ".join(dict.fromkeys(filter(None, sizes)))
        rows.append((str(number or ""), code, f"{len(several):,}", f"{count:,}: {shown}", adjoints))
    cut = rows if len(rows) <= _ROWS else [*rows[: _ROWS - 4], ("…", "", "", "", ""), *rows[-3:]]
    said = f"{len(record.operations):,} operations, folded by the line that runs them; "
    meaning = "|adjoint| is the norm of ∂L/∂(the line's result), in its first and its last run"
    return Section(
        "system", (Text((said + meaning,)), Grid(("line", "code", "runs", "operations", "|adjoint|"), tuple(cut)))
    )


def _shape(shape: Sequence[int]) -> str:
    return "×".join(map(str, shape)) or "scalar"


def _first(numbers: Numbers) -> str:
    a = numbers.whole
    if a is None:
        return ""
    if a.size <= _FEW and a.size:
        return array_text(a, lambda v: f"{v:.6g}" if isinstance(v, float | complex) else str(v))
    flat = a.reshape(-1)[:3]
    return f"{', '.join(f'{v:.4g}' for v in flat.tolist())}, …" if flat.size else "empty"


def _size(g: Numbers | None) -> str:
    a = None if g is None else g.whole
    return "" if a is None else f"{np.linalg.norm(a.astype(complex if a.dtype.kind == 'c' else float)):.3g}"


def words_of(numbers: Numbers) -> str:
    """Return numbers as words: all of few, or how many they are."""
    a = numbers.whole if numbers.whole is None or numbers.whole.dtype.kind == "c" else decimal(numbers.whole)
    if a is None or a.size > _SHOWN:
        return f"{_shape(numbers.shape)} numbers"
    return array_text(a, lambda v: f"{v:.6g}" if isinstance(v, float | complex) else str(v))


def _done(record: Record, backward: Backward, explained: bool, flows: bool) -> Iterator[Sequence[Math]]:
    """Yield what the call did to each `.grad`, and whether the graph is freed."""
    added = []
    leaves = backward.leaves
    none_before = bool(leaves) and all(c.before is None and c.after is not None for c in leaves)
    if explained and none_before and not backward.hooks and len(leaves) > 2:
        yield "Each ", Typed(".grad"), " was None before, and now holds the values above."
    elif len(leaves) > _LISTED or flows:
        before = len([c for c in leaves if c.before is not None])
        if before:
            yield f"{before:,} of {len(leaves):,} gradients were added to a ", Typed(".grad"), " that was there."
    else:
        for c in leaves:
            name = record.quantities[c.quantity].name or "x"
            if c.after is not None:
                held = "None" if c.before is None else f"{words_of(c.before)} + {words_of(c.added)}"
                if c.before is not None and c.before.whole is not None and c.before.whole.any():
                    added.append(name)
                yield Grad(name), f": {held} → {words_of(c.after)}"
            elif not explained:
                yield Partial("", name), f": {words_of(c.added)}"
    if added:
        yield (f"To start afresh, write `{added[0]}.grad = None` (or `optimizer.zero_grad()`) before the call.",)
    for c in backward.retained:
        if c.after is not None and backward.function != "grad":
            name = record.quantities[c.quantity].name or "h"
            yield (
                Grad(name),
                f": {'None' if c.before is None else words_of(c.before)} → {words_of(c.after)}, kept by ",
                Typed(f"{name}.retain_grad()"),
            )
    if backward.function == "grad" and leaves:
        yield f"grad returns {'this' if len(leaves) == 1 else 'these'}; no ", Typed(".grad"), " changes."
    if backward.freed:
        another = "call" if backward.function == "grad" else "backward"
        said = f"The graph is freed now; {{}} would keep it for another {another}."
        yield sentence(said, Typed("retain_graph=True"))


def row_of(record: Record) -> dict[str, Any]:
    """Return the backward of a record as a JSON object."""
    (backward,) = record.backwards

    def name(q: int, otherwise: str) -> str:
        return record.quantities[q].name or otherwise

    def number(n: Numbers | None) -> Any:
        return None if n is None or n.whole is None else n.whole

    roots = [name(q, "y") for q in backward.roots]
    leaves: dict[str, Any] = {}
    for c in backward.leaves:
        row = {"before": number(c.before), "own": number(c.added), "after": number(c.after)}
        leaves[name(c.quantity, f"x{len(leaves)}")] = row
    outputs = zip(roots, backward.roots, strict=True)
    result = {
        "line": backward.site.line,
        "code": backward.site.code,
        "outputs": {n: number(record.quantities[q].numbers) for n, q in outputs},
        "v": {n: number(v) for n, v in zip(roots, backward.v, strict=True)},
        "leaves": leaves,
        "retained": {name(c.quantity, "h"): number(c.after) for c in backward.retained},
        "freed": backward.freed,
    }
    rows = flow(record, backward)
    more: dict[str, Any] = {}
    if opaque := [*dict.fromkeys(o.row for o in record.operations if o.is_opaque)]:
        more["opaque"] = opaque
    if len(rows) > MANY:
        more["flow"] = as_data(rows)
    return plain(result | more)  # type: ignore[no-any-return]
