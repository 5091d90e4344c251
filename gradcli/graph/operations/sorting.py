"""Elements in order: sorting, medians, and where the extremes stand.

Of elements that are equal, the first comes first, in PyTorch too where it is asked for (`stable=True`); NaN is the
largest of all.
"""

from __future__ import annotations

from gradcli.graph.construct import ordered, put_along, take_along
from gradcli.graph.node import const
from gradcli.graph.operation import Operation
from gradcli.graph.operations.reductions import extremum_pullback

ROWS: dict[str, Operation] = {
    "sort": Operation(
        "along",
        settings=("axis", "descending"),
        pullback=lambda g, y, axis, descending, x: [put_along(g, ordered("argsort", x, axis, descending), axis)],
    ),
    "argsort": Operation("place", settings=("axis", "descending")),
    # Along the axis, x[order], and zeros in which z[order] is x.  The order is one of all elements.
    "take_along": Operation(
        "along",
        2,
        settings=("axis",),
        pullback=lambda g, y, axis, x, order: [put_along(g, order, axis), const(0, order.shape)],
    ),
    "put_along": Operation(
        "along",
        2,
        settings=("axis",),
        pullback=lambda g, y, axis, x, order: [take_along(g, order, axis), const(0, order.shape)],
    ),
    "median": Operation("reduction", settings=("axes", "ties"), pullback=extremum_pullback),
    "argmedian_mask": Operation("mask", settings=("axis",)),
    "argmax": Operation("place", settings=("axis",)),
    "argmin": Operation("place", settings=("axis",)),
}
