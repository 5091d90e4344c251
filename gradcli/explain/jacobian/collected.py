"""A Jacobian as PyTorch computes it: one `grad` call a row, each with a one-hot v."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.explain.sections import Code
from gradcli.graph.graph import Graph
from gradcli.graph.names import fresh_names

_NAMES = 6  # outputs, or leaves, that one line has room for: more would hide what the loop does


def collected(graph: Graph, wrt: Sequence[str]) -> Code | None:
    """Return the lines of PyTorch that collect J row by row; None where their names do not fit a line."""
    if max(len(graph.outputs), len(wrt)) > _NAMES:
        return None
    taken = {*graph.inputs, *graph.names}
    names = fresh_names(taken)
    each, rows, matrix, row, grad, out = (
        name if name not in taken else next(names) for name in ("v", "rows", "J", "row", "g", "out")
    )
    lines = []
    if len(graph.outputs) > 1:
        scalars = all(not y.shape for y in graph.outputs.values())
        parts = ", ".join(name if scalars else f"{name}.flatten()" for name in graph.outputs)
        lines.append(f"{out} = torch.{'stack' if scalars else 'cat'}(({parts}))")
    else:
        (out,) = graph.outputs
    size = sum(y.size for y in graph.outputs.values())
    flat = len(graph.outputs) > 1 or len(graph.outputs[out].shape) == 1
    seed = each if flat else f"{each}.view_as({out})"
    leaves = wrt[0] if len(wrt) == 1 else f"({', '.join(wrt)})"
    lines.append(f"{rows} = [torch.autograd.grad({out}, {leaves}, {seed}, retain_graph=True)")
    lines.append(f"{' ' * len(rows)}    for {each} in torch.eye({size})]")
    stacking = f"{matrix} = torch.stack(["
    lines.append(f"{stacking}torch.cat([{grad}.flatten() for {grad} in {row}])")
    lines.append(f"{' ' * len(stacking)}for {row} in {rows}])")
    lines.append(f"# or, where f({', '.join(wrt)}) returns {out}:")
    lines.append(f"# torch.autograd.functional.jacobian(f, {leaves})")
    return Code(tuple(lines), "in PyTorch, one gradient per row")
