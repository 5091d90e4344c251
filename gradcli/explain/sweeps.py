"""What a page says of how a Jacobian was worked out: forward or reverse, and why."""

from __future__ import annotations

from gradcli.explain.results import JacobianResult
from gradcli.graph.jacobian import plan


def sweeps_told(result: JacobianResult) -> str:
    """Return in a sentence which mode the Jacobian was worked out in; nothing of one row, which is a gradient."""
    rows, columns = len(result.formulas.rows), len(result.formulas.columns)
    if rows == 1:
        return ""
    found = plan(result.graph, result.wrt)
    if found.forward:
        mode, line, shared, lines, sweeps = "forward", "column", "output", columns, found.forward_sweeps
        other, more = "reverse", found.reverse_sweeps
    else:
        mode, line, shared, lines, sweeps = "reverse", "row", "input", rows, found.reverse_sweeps
        other, more = "forward", found.forward_sweeps
    each = f"one a {line}" if sweeps == lines else f"{line}s that share no {shared} go together"
    there = f", where {other} mode takes {more:,}" if more > sweeps else ""
    return f"gradcli computes J in {mode} mode: {sweeps:,} pass{'es' * (sweeps > 1)}, {each}{there}."
