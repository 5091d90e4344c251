"""Double backward: a gradient that requires a gradient is the result of an operation.

It is named after the last operation of its VJP rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.node import Node
from gradcli.graph.vjp import active_nodes
from gradcli.pytorch.functions import fact, reduction_name
from gradcli.pytorch.recipes import Recipe
from gradcli.pytorch.record import Recorder, Step, moment_of
from gradcli.pytorch.running import leading, mapped, record
from gradcli.pytorch.tensor import Tensor, new


def recorded_vjp(step: Step, arguments: Sequence[Any], arrays: Sequence[Any]) -> list[Tensor]:
    """Return the gradients of a step's inputs, which are these arrays, recorded as operations.

    `arguments` are the inputs of its VJP rule.
    """
    result: list[Tensor] = []
    for k, (i, array, node) in enumerate(zip(step.pull.active, arrays, step.pull.grad_inputs, strict=True)):
        if node in step.pull.inputs and not _is_tied(step, i, node):  # as it came
            result.append(arguments[step.pull.inputs.index(node)])
            continue
        name, positions, active, recipe, numbers = _operation(step, k)
        operands = [_unread(step.edges[p], array) if arguments[p] is None else arguments[p] for p in positions]
        out = mapped(new(array), operands)
        for x in operands:
            if np.may_share_memory(array, x._a):  # as a view: a gradient that is changed later is noticed
                out._memory = x._memory
        if recorded := tuple([j for j in active if operands[j].requires_grad]):
            record((out,), name, recipe, operands, recorded, [arguments[p] for p in numbers])
        result.append(out)
    return result


def _unread(edge: Any, array: Any) -> Tensor:
    """Return an operand whose numbers the rule does not read: those of its step, where explanations have them."""
    known = moment_of(edge) if Recorder.explains else None
    return leading(np.zeros_like(array) if known is None else known.array, edge)


def _is_tied(step: Step, i: int, node: Node) -> bool:
    """Return whether a gradient depends on the input to PyTorch, though the derivative does not change with it."""
    op = step.recipe.gradient_of or step.recipe.op
    is_power = i == 0 and op == "pow" and not node.is_constant  # whose last factor is x**0
    return is_power or fact("tied", op) is not None


def _operation(step: Step, k: int) -> tuple[str, list[int], list[int], Any, list[int]]:
    """Return the operation of one gradient of a step.

    This is its name, the positions of its operands, the active ones among these, its recipe, and the positions of its
    numbers.
    """
    pull, key = step.pull, (step.name(), k)
    if key in pull.derivatives:
        return pull.derivatives[key]
    node, i = pull.grad_inputs[k], pull.active[k]
    tied = i if _is_tied(step, i, node) else -1
    read = {*scheduled([node])}
    positions = [p for p, n in enumerate(pull.inputs) if n in read or p == tied]
    numbers = [p for p in positions if pull.inputs[p] in step.recipe.numbers]
    positions = [p for p in positions if p not in numbers]
    inputs = [pull.inputs[p] for p in positions]
    graph = Graph.of({str(p): n for p, n in enumerate(pull.inputs)}, {"": node})
    active = [j for j, p in enumerate(positions) if p == tied or node in active_nodes(graph, [pull.inputs[p]])]
    recipe: Any = None  # of a constant there is nothing to record
    if inputs:
        op = step.recipe.op
        varying = [pull.inputs[p] for p in numbers]
        recipe = Recipe(f"{op}_backward", step.recipe.settings, inputs, varying, [node], step.recipe.gradient_of or op)
    return pull.derivatives.setdefault(key, (_name(node), positions, active, recipe, numbers))


def _name(node: Node) -> str:
    """Return the name of the step that computes a gradient: that of its last operation."""
    node = node.args[-1] if node.op == "corner" else node  # of a power, whose exponent may be 0
    is_product = node.is_leaf or (node.op == "neg" and node.args[0].op == "mul")  # PyTorch turns the factor's sign
    return reduction_name("mul" if is_product else node.op, bool(node.shape))
