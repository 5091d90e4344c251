"""One call of `backward` or `grad` in a script as JSON."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.pages.results import PLAIN
from gradcli.pages.sections import Code, Equations, Page, Text, Value
from gradcli.pages.system import recurrence_lines
from gradcli.record.naming import fresh
from gradcli.record.numbers import Numbers
from gradcli.report.data.json import plain
from gradcli.report.text_math import TextWriter
from gradcli.script.known import is_unknown
from gradcli.script.loops import folded_loops
from gradcli.script.pages.flow import MANY, as_data, flow
from gradcli.script.recorded import root_names
from gradcli.script.scene import CallScene


def explanation(page: Page, scene: CallScene) -> dict[str, Any]:
    """Return the formulas of a page by the names on their left, without the numbers, its notes, and its loops."""
    writer = TextWriter(page.style, None)
    formulas: dict[str, list[str]] = {}
    notes: list[str] = []
    for section in page.sections:
        for block in section.blocks:
            for line in block.lines if isinstance(block, Equations) else ():
                left, *rest = line.sides
                numbers = [isinstance(s, Value) and np.asarray(s.array).dtype != object for s in rest]
                sides = [writer.write(side) for side, is_number in zip(rest, numbers, strict=True) if not is_number]
                if sides:
                    formulas.setdefault(writer.write(left), sides)
            if isinstance(block, Text) and section.name in ("notes", "why"):
                notes.append("".join(map(writer.write, block.parts)))
            if isinstance(block, Code) and notes:  # the lines of a fix
                notes[-1] += "\n" + "\n".join([f"{block.caption}: {block.lines[0]}", *block.lines[1:]])
    return {"formulas": formulas, "notes": notes} | _loop_objects(scene)


def _loop_objects(scene: CallScene) -> dict[str, Any]:
    """Return the loops of a call as recurrences: one as an object, several as a list of them."""
    writer = TextWriter(PLAIN, None)
    result = []
    for loop in folded_loops(scene.recorded, scene.names).loops:
        lines = [[writer.write(s) for s in line.sides] for line in recurrence_lines(loop)]
        start = len(lines) - len(loop.statements)
        result.append(
            {
                "index": loop.index,
                "from": loop.first,
                "to": loop.last,
                "initial": [" = ".join(sides) for sides in lines[:start]],
                "statements": [" = ".join(sides) for sides in lines[start:]],
            }
        )
    return {"loop": result[0] if len(result) == 1 else result} if result else {}


def row(scene: CallScene) -> dict[str, Any]:
    """Return a call as a JSON object."""
    recorded, call = scene.recorded, scene.recorded.call
    roots = recorded.roots or root_names(recorded.record, call, {scene.script.name: scene.script.source})
    leaves: dict[str, Any] = {}
    for c in call.leaves:
        numbers = {"before": _array(c.before), "own": _array(c.added), "after": _array(c.after)}
        leaves[fresh(recorded.name(c.quantity), leaves)] = numbers
    outputs = {name: recorded.record.quantities[q].numbers for name, q in zip(roots, call.roots, strict=True)}
    result = {
        "line": int(scene.line),
        "code": scene.source(scene.line),
        "outputs": {name: _array(n) for name, n in outputs.items()},
        "v": {name: _array(v) for name, v in zip(roots, call.v, strict=True)} | recorded.v,
        "leaves": leaves,
        "retained": {recorded.names[q]: a for q, a in recorded.kept_gradients.items() if q in recorded.names},
        "freed": call.freed,
    }
    if recorded.record.operations and len(call.leaves) > MANY:
        result["flow"] = as_data(flow(recorded.record, call))
    if opaque := dict.fromkeys(o.row for o in recorded.record.operations if is_unknown(o)):
        result["opaque"] = [*opaque]
    return plain(result)  # type: ignore[no-any-return]


def _array(n: Numbers | None) -> Any:
    return None if n is None else n.whole
