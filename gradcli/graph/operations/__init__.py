"""The table of operations, a row each, by family."""

from gradcli.graph.dtypes import KEEPING_INTEGERS, SELECTING
from gradcli.graph.operation import Operation
from gradcli.graph.operations import (
    activations,
    arithmetic,
    attention,
    choices,
    convolutions,
    dense,
    functions,
    interpolation,
    linear_algebra,
    losses,
    movement,
    normalisations,
    pools,
    recurrent,
    reductions,
    spectra,
)

FAMILIES = (
    arithmetic, functions, activations, choices, losses, dense, normalisations, convolutions, pools, interpolation,
    attention, recurrent, reductions, linear_algebra, spectra, movement,
)  # fmt: skip

OPERATIONS: dict[str, Operation] = {op: row for family in FAMILIES for op, row in family.ROWS.items()}
# The elementwise operation that joins the elements, by kind and operation.
JOINS = {k: {op: r.joins for op, r in OPERATIONS.items() if r.kind == k and r.joins} for k in ("reduction", "scan")}
KEEPING_INTEGERS.update(op for op, row in OPERATIONS.items() if row.keeps_integers and row.broadcasts)
SELECTING.update(op for op, row in OPERATIONS.items() if row.selects)
