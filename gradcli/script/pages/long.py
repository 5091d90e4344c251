"""The page of a call through too many operations to show each: they are folded by line."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradcli.pages.sections import Grid, Math, Section, Text, Typed
from gradcli.pytorch.backward import Call
from gradcli.pytorch.record import Step
from gradcli.script.scene import CallScene

_MOST = 24  # lines of a script that are listed
_CODE = 32  # characters of a line


def folded_by_line(call: Call, scene: CallScene, steps: Sequence[Step]) -> Section:
    """Return a row for each line of the script: how often it ran, its operations, and the adjoint of its result.

    A line in the forward of a module runs once for each of its calls.
    """
    lines: dict[tuple[str, int], list[list[Step]]] = {}
    last: dict[tuple[str, int], int] = {}
    for k, step in enumerate(steps):
        line = step.line.file, int(step.line)
        runs = lines.setdefault(line, [])
        if not runs or _begins(step, runs[-1][-1], last[line] == k - 1):
            runs.append([])
        runs[-1].append(step)
        last[line] = k
    rows = [_row(call, scene, runs) for runs in lines.values()]
    cut = rows if len(rows) <= _MOST else [*rows[: _MOST - 4], ("…", "", "", "", ""), *rows[-3:]]
    folded = f"{len(steps):,} operations, folded by the line that runs them; "
    drawn = (Typed("--graph FILE"), " draws each of them.")
    meaning = "|adjoint| is the norm of ∂L/∂(the line's result), in its first and its last run."
    grid = Grid(("line", "code", "runs", "operations", "|adjoint|"), tuple(cut))
    return Section("system", (Text((folded, *drawn)), Text((meaning,)), grid))


def _begins(step: Step, before: Step, adjacent: bool) -> bool:
    """Return whether a line runs again: its instructions begin from the first, or the same one comes after others."""
    return step.line.call[1] < before.line.call[1] or (step.line.call[1] == before.line.call[1] and not adjacent)


def _row(call: Call, scene: CallScene, runs: Sequence[Sequence[Step]]) -> tuple[Math, ...]:
    """Return the row of a line; each of its runs ends with the line's result."""
    norms = [_norm(call, runs[0][-1]), _norm(call, runs[-1][-1])]
    line = runs[0][0].line
    code = scene.source(line)
    code = code if len(code) <= _CODE else f"{code[: _CODE - 1]}…"
    where, count = scene.number(line), sum(map(len, runs))
    return where, code, f"{len(runs):,}", f"{count:,}", " … ".join(dict.fromkeys(norms))


def _norm(call: Call, step: Step) -> str:
    g = call.adjoints.get((step, 0))
    return "0" if g is None else f"{np.linalg.norm(g._a.astype(float)):.3g}"
