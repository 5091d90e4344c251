"""Sorting, medians, and the indices of extrema.

Of elements that are equal, the first comes first, in PyTorch too where it is asked for (`stable=True`); NaN is the
largest of all.
"""

from __future__ import annotations

from gradcli.graph.construct import along, concatenate, equal, ordered, sliced, where
from gradcli.graph.node import Node, const
from gradcli.graph.operation import Corner, Operation, spelled
from gradcli.graph.operations.reductions import extremum_corner, extremum_pullback


def _ties(y: Node, axis: int, descending: bool, x: Node) -> Node:
    """Return where an element is equal to another one: neighbours in order, at their indices in `x`."""
    n = y.shape[axis]
    tied = where(equal(sliced(y, axis, range(1, n)), sliced(y, axis, range(n - 1))), 1, 0)
    none = const(0, tuple(1 if i == axis else size for i, size in enumerate(y.shape)))
    in_order = concatenate([none, tied], axis) + concatenate([tied, none], axis)
    return along("put_along", in_order, ordered("argsort", x, axis, descending), axis) > 0


ROWS: dict[str, Operation] = {
    "sort": Operation(
        "along",
        ("axis", "descending"),
        lambda g, y, axis, descending, x: [along("put_along", g, ordered("argsort", x, axis, descending), axis)],
        corner=Corner(_ties, "the first of equal elements as the first of them in order"),
    ),
    "argsort": Operation("index", ("axis", "descending")),
    # Along the axis, x[order], and zeros in which z[order] is x.  The order is one of all elements.
    "take_along": Operation(
        "along",
        ("axis",),
        lambda g, y, axis, x, order: [along("put_along", g, order, axis), const(0, order.shape)],
        linear=(0,),
    ),
    "put_along": Operation(
        "along",
        ("axis",),
        lambda g, y, axis, x, order: [along("take_along", g, order, axis), const(0, order.shape)],
        linear=(0,),
    ),
    "median": Operation(
        "reduction", ("axes", "ties"), extremum_pullback, exact=True, corner=extremum_corner("those in the middle")
    ),
    "argmedian_mask": Operation("mask", ("axis",)),
    "argmax": Operation("index", ("axis",), spelling=spelled(numpy="argmax")),
    "argmin": Operation("index", ("axis",), spelling=spelled(numpy="argmin")),
}
