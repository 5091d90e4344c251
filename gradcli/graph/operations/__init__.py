"""The table of operations, a row each, by family."""

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
)

FAMILIES = (arithmetic, functions, activations, choices, losses, reductions, sorting, linear_algebra, movement)

OPERATIONS: dict[str, Operation] = {op: row for family in FAMILIES for op, row in family.ROWS.items()}
