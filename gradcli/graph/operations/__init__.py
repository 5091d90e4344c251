"""The table of operations, a row each, by family."""

from gradcli.graph.dtypes import KEEPING_INTEGERS, SELECTING
from gradcli.graph.operation import Operation
from gradcli.graph.operations import (
    activations,
    arithmetic,
    choices,
    functions,
    linear_algebra,
    losses,
    movement,
    reductions,
    sorting,
    spectra,
)

FAMILIES = (
    arithmetic,
    functions,
    activations,
    choices,
    losses,
    reductions,
    sorting,
    linear_algebra,
    spectra,
    movement,
)

OPERATIONS: dict[str, Operation] = {op: row for family in FAMILIES for op, row in family.ROWS.items()}
KEEPING_INTEGERS.update(op for op, row in OPERATIONS.items() if row.keeps_integers and row.broadcasts)
SELECTING.update(op for op, row in OPERATIONS.items() if row.selects)
