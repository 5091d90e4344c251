"""The page of one backward under PyTorch, from its record: the system, the gradients, the flow, and `.grad`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from gradcli.errors import InputError
from gradcli.notation.numbers import array_text
from gradcli.pages.sections import Grid, Math, Page, Section, Text
from gradcli.process.script import Script
from gradcli.record.naming import Names
from gradcli.record.numbers import Numbers, size_text
from gradcli.record.record import FORMULAS, OPERATIONS, Backward, Operation, Record
from gradcli.script.errors.warnings import Warned, warned
from gradcli.script.known import Known, is_unknown, line_at
from gradcli.script.pages.flow import MANY, flow
from gradcli.script.pages.page import folded_by_line, norm_text, page
from gradcli.script.recorded import recorded
from gradcli.script.scene import CallScene
from gradcli.script.system import Recorded
from gradcli.script.under_pytorch.verify import completed, verified, verify
from gradcli.text.wrapping import in_words

_ROWS = 24  # operations, or lines of the program, that are listed
_FEW = 12  # elements of a value in the table of operations


def page_of(record: Record, unroll: bool = False) -> Page:
    """Return the page of the backward of a record; loops are recurrences, unless `unroll` is wanted."""
    (backward,) = record.backwards
    scene = CallScene(Script("", "", None), line_at(backward.site), Names(), unroll=unroll)
    scene.known, scene.recorded = Known(record), Recorded(record, backward)
    return explained(scene)


def explained(scene: CallScene, only: Sequence[str] = (), is_live: bool = False) -> Page:
    """Return the page of the record of a scene, and read the system behind it.

    `is_live` is whether the script has just run the call, so that its tensors are known.
    """
    record, backward = scene.recorded.record, scene.recorded.call
    above: list[str] = []
    rows = flow(record, backward)
    below = [*_scaled(backward), *_without_formula(record)]
    is_small = len(record.operations) <= OPERATIONS and len(rows) <= FORMULAS
    if is_small:
        above += [_disagreement(record, backward, o) for o in read_system(scene)]
        record = scene.recorded.record
    said = warned(scene, scene.names.hooks()) if is_live else Warned()
    if (
        len(rows) <= MANY
        and not said.warnings
        and (reasons := [f"{row.name}.grad: {row.why}" for row in rows if row.why and row.grad_norm])
    ):
        above.append(f"warning: {reasons[0]}")
    folded = folded_by_line(scene) if len(record.operations) > _ROWS else _operations(record, backward)
    is_empty = bool(backward.leaves) and not any(math.prod(c.added.shape) for c in backward.leaves)
    return page(scene, said, only, above, below, unexplained=[] if is_empty else [folded])


def read_system(scene: CallScene) -> list[Operation]:
    """Read the system behind the record of a scene, where all numbers are kept; return what gives other numbers."""
    record, backward = scene.recorded.record, scene.recorded.call
    if not _is_real(known := completed(record)):
        return []
    record, wrong = verified(known, backward)
    try:
        scene.recorded = recorded(record, backward, {scene.script.name: scene.script.source})
    except InputError as error:
        scene.recorded, scene.trouble = Recorded(record, backward), error.message
    return wrong


def _is_real(record: Record) -> bool:
    """Return whether formulas can show all numbers: none is complex, nor known by its shape alone."""
    numbers = [record.quantities[x].numbers for o in record.operations for x in o.operands if isinstance(x, int)]
    return all(n.whole is not None and n.whole.dtype.kind != "c" for n in numbers)


def _disagreement(record: Record, backward: Backward, o: Operation) -> str:
    """Return the note that a formula does not give PyTorch's numbers, or its results alone.

    The backward of an operation reads its operands again.  PyTorch does not notice changes through `.data` or NumPy.
    """
    kinds = {record.quantities[x].dtype for x in o.operands if isinstance(x, int)}
    is_exact = kinds <= {"float32", "float64"}
    if verify(record, replace(backward, sent={}), o):
        please = " If neither, please report it." if is_exact else ""
        return (
            f"note: gradcli's formula of `{o.row}` gives what line {o.site.line} computed, and not what its backward "
            "sends back. Were its numbers changed in place in between, through .data or NumPy, or does a hook of its "
            f"grad_fn change what is sent?{please}"
        )
    please = ": please report it" if is_exact else ""
    return f"note: gradcli's formula of `{o.row}` (line {o.site.line}) does not give PyTorch's numbers{please}"


def _scaled(backward: Backward) -> Iterator[str]:
    """Yield that a `GradScaler` has scaled the loss, and what divides the gradients again."""
    if backward.scale != 1:
        times = f"{backward.scale:.10g} times as large"
        what = f"what is added to each .grad is {times}, until `unscale_` or `step` of the scaler divides it"
        if backward.returns:
            what = f"the returned gradients are {times}, and the scaler does not divide them"
        yield f"note: `GradScaler.scale` multiplied the loss by {backward.scale:.10g}: {what}"


def _without_formula(record: Record) -> Iterator[str]:
    """Yield which operations have no formula."""
    unknown = [o for o in record.operations if is_unknown(o)]
    first = {o.row: o.site.line for o in unknown[::-1]}
    named = [f"`{name}`" + (f" (line {line})" if line else "") for name, line in reversed(first.items())]
    if named:
        yield f"note: no formula: gradcli does not know {in_words(named)} of these numbers; the numbers are PyTorch's"


def _operations(record: Record, backward: Backward) -> Section:
    """Return the operations as a table."""
    rows: list[tuple[Math, ...]] = []
    operations = [o for o in record.operations if o.grad_fn or o.site.line]  # parts of data are none
    for o in operations:
        for k, q in enumerate(o.results):
            quantity, g = record.quantities[q], backward.received.get((o.id, k))
            value, norm = _first(quantity.numbers), "" if g is None else norm_text(g)
            rows.append((str(o.site.line or ""), o.row, quantity.name, size_text(quantity.shape), value, norm))
    said = f"{len(operations):,} operations; |adjoint| is the norm of ∂L/∂(its result)"
    return Section(
        "system", (Text((said,)), Grid(("line", "operation", "name", "shape", "value", "|adjoint|"), tuple(rows)))
    )


def _first(numbers: Numbers) -> str:
    a = numbers.whole
    if a is not None and 0 < a.size <= _FEW:
        return array_text(a, lambda v: f"{v:.6g}" if isinstance(v, float | complex) else str(v))
    first = ", ".join(f"{v:.4g}" for v in numbers.summary.first)
    return f"{first}, …" if first else "" if a is None else "empty"
