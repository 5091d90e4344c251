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
    ways = {
        True: (found.forward_sweeps, columns, "forward", "column"),
        False: (found.reverse_sweeps, rows, "reverse", "row"),
    }
    sweeps, lines, mode, line = ways[found.forward]
    more, _, other, _ = ways[not found.forward]
    each = (
        f"one a {line}"
        if sweeps == lines
        else f"{line}s that share no {'output' if found.forward else 'input'} go together"
    )
    there = f", where {other} mode takes {more:,}" if more > sweeps else ""
    return f"gradcli computes J in {mode} mode: {sweeps:,} pass{'es' * (sweeps > 1)}, {each}{there}."
