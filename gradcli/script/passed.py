"""What a backward passed through a script: its result in a line, and the gradient of each line that it went through."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gradcli.record.numbers import Numbers
from gradcli.record.record import Contribution
from gradcli.script.errors.syntax import parsed, parts, start
from gradcli.script.system import Recorded

_MANY = 3  # gradients that are counted


def result_of(recorded: Recorded) -> str:
    """Return the result of a call in a line: what it flowed from, and its gradients, the largest by its 2-norm.

    For example `loss = 0.813651 · 4 gradients, the largest model.2.weight`.
    """
    record, call = recorded.record, recorded.call
    roots = zip(recorded.roots, call.roots, strict=False)
    values = [f"{name} = {_size(record.quantities[q].numbers)}" for name, q in roots if not record.quantities[q].shape]
    return " · ".join([*values, *filter(None, [_gradients(recorded, call.leaves)])])


def _gradients(recorded: Recorded, leaves: Sequence[Contribution]) -> str:
    """Return gradients in words: a few with their numbers, or how many there are and the largest."""
    named = [(name, c) for c in leaves if (name := recorded.names.get(c.quantity, ""))]
    if len(named) >= _MANY:
        largest = max(named, key=lambda pair: pair[1].added.norm or 0)
        return f"{len(named)} gradients, the largest {largest[0]}"
    return ", ".join(_left(name if recorded.call.function != "backward" else f"{name}.grad", c) for name, c in named)


def _left(name: str, c: Contribution) -> str:
    """Return what a call leaves in a `.grad`, with the sum where it adds to one; or what it returns for a name."""
    if c.after is None:
        return _sized(f"gradient of {name}", c.added)
    if c.before is None or c.added.shape:
        return _sized(name, c.after)
    return f"{name} = {_size(c.before)} + {_size(c.added)} = {_size(c.after)}"


def gradients_by_line(recorded: Recorded, source: str, file: str) -> dict[int, str]:
    """Return the lines of a script that the gradient passed, each with that of its last named result, or its leaves.

    A leaf is at the line that first assigns its name, or the name before its first dot.

    >>> gradients_by_line(Recorded(), "", "script.py")
    {}
    """
    record, call = recorded.record, recorded.call
    result: dict[int, str] = {}
    alone = len(recorded.roots) == 1 and not call.v[0].shape and _size(call.v[0]) == "1"
    loss = recorded.roots[0] if alone else "L"  # the sum of what the call flowed from, weighted by v
    for o in record.operations:
        for k, q in enumerate(o.results):
            if o.site.file == file and (o.id, k) in call.received:
                name = recorded.names.get(q, "")
                shown = _sized(f"∂{loss}/∂{name}", call.received[o.id, k]) if name else ""
                result[o.site.line] = shown or result.get(o.site.line, "")
    stored = [n for n in parts(parsed(source), ast.Name) if isinstance(n.ctx, ast.Store)]
    assigned = {n.id: n.lineno for n in sorted(stored, key=start, reverse=True)}
    leaves: dict[int, list[Contribution]] = {}
    for c in call.leaves:
        name = recorded.names.get(c.quantity, "")
        if line := assigned.get(name.partition(".")[0].partition("[")[0]):
            leaves.setdefault(line, []).append(c)
    return result | {line: _gradients(recorded, some) for line, some in leaves.items()}


def _sized(name: str, numbers: Numbers) -> str:
    """Return a number with its name, or the 2-norm of several."""
    return f"{name} = {_size(numbers)}" if not numbers.shape else f"|{name}| = {_size(numbers)}"


def _size(numbers: Numbers) -> str:
    if numbers.not_finite:
        return f"{numbers.not_finite}!"
    return f"{numbers.norm or 0 if numbers.shape or numbers.whole is None else numbers.whole.item():.6g}"
