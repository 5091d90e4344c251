"""The page of one call of `backward` in a script, and its JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.errors import InputError, Notes

if TYPE_CHECKING:
    from gradcli.cli.explained import Wishes
    from gradcli.pytorch.autograd import Call
    from gradcli.pytorch.trace import Recorded

_SHOWN = 36  # elements of an array that is written out


def page(call: Call, recorded: Recorded | None, wishes: Wishes, trouble: str) -> str:
    """Return the page that `gradcli backward` prints, then what `.grad` was and is, and whether the graph is freed."""
    explained = [_explained(recorded, wishes).rstrip("\n"), ""] if recorded is not None and recorded.wrt else []
    told = [f"  not explained: {trouble}"] if recorded is None else []
    told += _accumulated(call, recorded)
    if call.freed:
        told.append("The graph is freed now; retain_graph=True would keep it for another backward.")
    return "\n".join([*explained, *_words(told, wishes.style)])


def _words(lines: list[str], style: str) -> list[str]:
    """Return lines of words in the format of the page."""
    if style != "latex":
        return lines
    from gradcli.report.latex_math import escaped

    return [rf"{escaped(line.strip())}\\" for line in lines]


def _explained(recorded: Recorded, wishes: Wishes) -> str:
    from gradcli.explain.backward import Wanted, backward
    from gradcli.explain.pages import Choice, backward_pages
    from gradcli.report.render import Look, render_pages

    notes = Notes()
    wanted = Wanted(recorded.retained, wishes.steps, page=True, implicit=recorded.implicit)
    try:
        result = backward(recorded.graph, recorded.wrt, [recorded.at], [[recorded.v]], wanted, notes)
        # The line of PyTorch's stands above the page.
        pages = [
            p.only(tuple(s.name for s in p.sections if s.name != "pytorch")) for p in backward_pages(result, Choice())
        ]
        text = render_pages(pages, Look(wishes.style))
    except InputError as error:
        return "\n".join(_words([f"  not explained: {error.message}"], wishes.style))
    return "\n".join([text.rstrip("\n"), *([""] if notes.lines else []), *_words(notes.lines, wishes.style)])


def _accumulated(call: Call, recorded: Recorded | None) -> list[str]:
    """Return what each leaf's `.grad` was, and what it is."""
    names = {} if recorded is None else {id(e.variable): n for e, n in recorded.steps.items() if hasattr(e, "variable")}
    found = []
    order = [] if recorded is None else recorded.wrt
    leaves = [(names.get(id(x), "x"), before, own, after) for x, before, own, after in call.leaves]
    for name, before, own, after in sorted(leaves, key=lambda leaf: order.index(leaf[0]) if leaf[0] in order else 0):
        if after is None:
            found.append(f"∂L/∂{name} = {_text(own._a)}, which grad returns; {name}.grad stays as it is")
        else:
            was = "None" if before is None else _text(before)
            found.append(f"{name}.grad: {was} → {_text(after._a)}")
    return found


def _text(a: Any) -> str:
    from gradcli.notation.numbers import array_text

    if a.size > _SHOWN:
        return "×".join(map(str, a.shape[:-1])) + " numbers"
    return array_text(a[..., 0], lambda v: f"{v:.6g}" if isinstance(v, float) else str(v))


def row(call: Call, recorded: Recorded, line: int, code: str) -> dict[str, Any]:
    """Return a call as a JSON object."""
    names = {id(e.variable): n for e, n in recorded.steps.items() if hasattr(e, "variable")}
    values = {name: y for name, (y, _) in zip(recorded.graph.outputs, call.roots, strict=False)}
    return {
        "line": line,
        "code": code,
        "outputs": {name: _plain(y._a) for name, y in values.items()},
        "v": {name: _plain(v[..., None]) for name, v in recorded.v.items()},
        "leaves": {
            names.get(id(x), "x"): {
                "before": None if before is None else _plain(before),
                "own": _plain(own._a),
                "after": None if after is None else _plain(after._a),
            }
            for x, before, own, after in call.leaves
        },
        "retained": {n: _plain(g._a) for n, g in recorded.kept_gradients().items()},
        "freed": call.freed,
    }


def _plain(a: Any) -> Any:
    """Return numbers as JSON has them."""

    def text(value: Any) -> Any:
        if isinstance(value, list):
            return [text(v) for v in value]
        if isinstance(value, float) and not np.isfinite(value):
            return "NaN" if np.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return value

    return text(a[..., 0].tolist())
