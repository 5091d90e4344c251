"""The order in which PyTorch lays out the elements of a result in memory, as `stride()` shows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from gradcli.graph.graph import scheduled
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS

Array = np.ndarray[Any, Any]
Layout = Literal["as computed", "contiguous", "as input"]  # of the gradient of an input


def is_elementwise(node: Node) -> bool:
    """Return whether a node takes its memory layout from its operands, as elementwise operations do."""
    return all(not n.args or n.op == "cast" or OPERATIONS[n.op].broadcasts for n in scheduled([node]))


def is_moved(node: Node) -> bool:
    """Return whether a node may show the memory of its only input."""
    while node.args and OPERATIONS[node.op].kind == "view" and node.op != "cast":
        node = node.args[0]
    return node.is_leaf


def like_operands(result: Array, operands: Sequence[Array]) -> Array:
    """Return an elementwise result in PyTorch's layout.

    Of two axes, the first operand whose steps along them differ has the outer one as the larger step; an axis along
    which it repeats its elements does not count.  NumPy orders axes likewise, but where operands differ.
    """
    rank = result.ndim
    if rank < 3 or (result.flags.c_contiguous and all(a.flags.c_contiguous for a in operands)):
        return result  # a vector has but one order: the last axis is that of the point
    if all(a.strides == result.strides or a.size == 1 for a in operands):
        return result
    steps = [(0,) * (rank - a.ndim) + _steps(a) for a in operands]
    axes = [*range(rank)][::-1]  # the innermost first
    for i in range(1, rank):  # by insertion, as in PyTorch: where operands differ, the result depends on the method
        for k in range(i, 0, -1):
            a, b = axes[k - 1], axes[k]
            larger = next((s[a] - s[b] for s in steps if s[a] and s[b] and s[a] != s[b]), 0)
            if larger < 0:
                break
            if larger:
                axes[k - 1], axes[k] = b, a
    axes.reverse()
    ordered = result.transpose(axes)
    return result if ordered.flags.c_contiguous else np.ascontiguousarray(ordered).transpose(np.argsort(axes))


def _steps(a: Array) -> tuple[int, ...]:
    return tuple(0 if n == 1 else abs(step) for n, step in zip(a.shape, a.strides, strict=True))


def is_column_major(a: Array) -> bool:
    """Return whether an array is a matrix whose columns stand one after the other in memory."""
    return a.ndim == 3 and a.flags.f_contiguous and not a.flags.c_contiguous


def gradient_layout(op: str, inputs: Sequence[Node], output: Node, gradient: Node) -> Layout:
    """Return how PyTorch lays out the gradient of an input.

    That of a factor in a product of two matrices has the layout of the factor.
    """
    if op == "linear":
        return "as input" if len(inputs[0].shape) == 2 == len(gradient.shape) else "contiguous"
    if op in ("matmul", "addmm"):
        ranks = [len(n.shape) for n in (*inputs, output)]
        is_of_matrices = min(ranks) < 3 and 0 not in ranks and ranks[-2] > 1
        return "as input" if is_of_matrices else "as computed"
    is_moving = is_moved(gradient) and op != "pad"  # which PyTorch copies
    return "as computed" if is_moving or is_elementwise(gradient) else "contiguous"
