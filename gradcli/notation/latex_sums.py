"""Reductions as LaTeX: over the elements, each written at the index of the sum."""

from __future__ import annotations

from collections.abc import Callable
from itertools import starmap

from gradcli.graph.node import Node
from gradcli.graph.shapes import size_of
from gradcli.notation.latex_calls import call, setting
from gradcli.notation.latex_writer import ALL, LatexNodeWriter
from gradcli.notation.writer import EXTREMA, Binds, Rule, Written, settings_of, through


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
    inside = rf"\left\|{w.name(x)}\right\|"
    if axis := next(starmap(setting, settings_of(node)), None):
        return Written(f"{inside}_{{{axis}}}", Binds.POWER)
    return Written(inside + (r"_{\mathrm{F}}" if len(x.shape) > 1 else ""), Binds.POWER)


SUMS: dict[str, Rule] = {
    "sum": _sum,
    "mean": _mean,
    "prod": _over(r"\prod", Binds.POWER),
    "norm": _norm,
    **dict.fromkeys(EXTREMA, call),
}
