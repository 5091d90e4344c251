"""The page of a call through too many operations to show each: they are folded by line."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.pages.sections import Grid, Math, Section, Text, Typed
from gradcli.record.numbers import Numbers
from gradcli.record.record import CallSite, Operation
from gradcli.script.known import line_at
from gradcli.script.scene import CallScene

_MOST = 24  # lines of a script that are listed
_CODE = 32  # characters of a line


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
    cut = rows if len(rows) <= _MOST else [*rows[: _MOST - 4], ("…", "", "", "", ""), *rows[-3:]]
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
