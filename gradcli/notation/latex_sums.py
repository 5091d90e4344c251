"""Reductions as LaTeX: over the elements, each written at the index of the sum."""

from __future__ import annotations

from collections.abc import Callable

from gradcli.graph.node import Node
from gradcli.graph.shapes import size_of
from gradcli.notation.latex_calls import applied, setting
from gradcli.notation.latex_writer import ALL, LatexNodeWriter
from gradcli.notation.writer import Binds, Rule, Written, through


def _over(sign: str, binds: Binds) -> Callable[[LatexNodeWriter, Node], Written]:
    """Return the rule of a sum, or of a product, over the axes that are its first setting."""

    def write(w: LatexNodeWriter, node: Node) -> Written:
        (x,) = node.args
        axes = node.settings[0]
        if not axes:
            return through(w, node)
        letters = w.fresh_indices(len(axes))
        indices = [ALL] * len(x.shape)
        for axis, letter in zip(axes, letters, strict=True):
            indices[axis] = letter
        # From where to where is said of one index; of several, the elements tell it.
        limits = f"_{{{letters[0]}=0}}^{{{x.shape[axes[0]] - 1}}}" if len(axes) == 1 else f"_{{{','.join(letters)}}}"
        return Written(f"{sign}{limits} {w.at(x.shape, indices).argument(x, binds)}", Binds.PRODUCT, open=True)

    return write


_sum = _over(r"\sum", Binds.LOOSE)


def _mean(w: LatexNodeWriter, node: Node) -> Written:
    shape = node.args[0].shape
    count = size_of(tuple(shape[axis] for axis in node.settings[0]))
    return Written(rf"\frac{{1}}{{{count}}} {_sum(w, node).text}", Binds.PRODUCT, open=True)


def _norm(w: LatexNodeWriter, node: Node) -> Written:
    (x,) = node.args
    (axes,) = node.settings
    inside = rf"\left\|{w.name(x)}\right\|"
    if len(axes) < len(x.shape):
        return Written(f"{inside}_{{{setting('axis', axes[0] if len(axes) == 1 else axes)}}}", Binds.POWER)
    return Written(inside + (r"_{\mathrm{F}}" if len(x.shape) > 1 else ""), Binds.POWER)


def _extremum(op: str) -> Rule:
    """Return the rule of an extremum; how it treats ties, which its gradient depends on, tells them apart."""

    def write(w: LatexNodeWriter, node: Node) -> Written:
        (x,) = node.args
        axes, ties = node.settings
        name = rf"\operatorname{{a{op}}}" if ties == "factors" else rf"\operatorname{{{op}}}"
        name = rf"\{op}" if op != "median" and ties != "factors" else name
        some = len(axes) < len(x.shape)
        shown = axes[0] if len(axes) == 1 and ties != "even" else axes
        return applied(name, [w.name(x)], *([setting("axis", shown)] if some or ties == "first" else []))

    return write


SUMS: dict[str, Rule] = {
    "sum": _sum,
    "mean": _mean,
    "prod": _over(r"\prod", Binds.POWER),
    "norm": _norm,
    "max": _extremum("max"),
    "min": _extremum("min"),
    "median": _extremum("median"),
}
