"""Elements in order: sorting, medians, and where the extremes stand.

Of elements that are equal, the first comes first, in PyTorch too where it is asked for (`stable=True`); NaN is the
largest of all.
"""

from __future__ import annotations

from gradcli.graph.construct import along, ordered
from gradcli.graph.node import const
from gradcli.graph.operation import Operation
from gradcli.graph.operations.reductions import extremum_pullback

ROWS: dict[str, Operation] = {
    "sort": Operation(
        "along",
        ("axis", "descending"),
        lambda g, y, axis, descending, x: [along("put_along", g, ordered("argsort", x, axis, descending), axis)],
    ),
    "argsort": Operation("place", ("axis", "descending")),
    # Along the axis, x[order], and zeros in which z[order] is x.  The order is one of all elements.
    "take_along": Operation(
        "along",
        ("axis",),
        lambda g, y, axis, x, order: [along("put_along", g, order, axis), const(0, order.shape)],
    ),
    "put_along": Operation(
        "along",
        ("axis",),
        lambda g, y, axis, x, order: [along("take_along", g, order, axis), const(0, order.shape)],
    ),
    "median": Operation("reduction", ("axes", "ties"), extremum_pullback, exact=True),
    "argmedian_mask": Operation("mask", ("axis",)),
    "argmax": Operation("place", ("axis",)),
    "argmin": Operation("place", ("axis",)),
}
