"""Double backward: a gradient that requires a gradient is the result of an operation, under PyTorch's name for it.

An operation that the table does not list is named after the last operation of its VJP rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.graph.graph import Graph, scheduled
from gradcli.graph.node import Node
from gradcli.graph.operations import OPERATIONS
from gradcli.graph.vjp import active_nodes
from gradcli.pytorch.calls import set_grad_fn_name
from gradcli.pytorch.chains import chain_of
from gradcli.pytorch.functions import fact, grad_name, reduction_name
from gradcli.pytorch.recipes import Recipe
from gradcli.pytorch.record import Make, Recorder, Step, leading, mapped, moment_of, record
from gradcli.pytorch.tensor import Tensor


def recorded_vjp(step: Step, arguments: Sequence[Any], arrays: Sequence[Any]) -> list[Tensor]:
    """Return the gradients of a step's inputs, which are these arrays, recorded as operations.

    `arguments` are the inputs of its VJP rule.
    """
    result: dict[int, Tensor] = {}
    for i in _in_turn(step):
        k = step.pull.active.index(i)
        array, node = arrays[k], step.pull.grad_inputs[k]
        if node in step.pull.inputs and not _is_tied(step, i, node):  # as it came
            result[i] = arguments[step.pull.inputs.index(node)]
            continue
        name, positions, active, recipe, numbers = _operation(step, k)
        operands = [_unread(step.edges[p], array) if arguments[p] is None else arguments[p] for p in positions]
        out = result[i] = mapped(Make.tensor(array), operands)
        for x in operands:
            if np.may_share_memory(array, x._a):  # as a view: a gradient that is changed later is noticed
                out._memory = x._memory
        if recorded := tuple([j for j in active if operands[j].requires_grad]):
            record((out,), name, recipe, operands, recorded, [arguments[p] for p in numbers])
    if step.recipe.op == "lanes" and (fn := arguments[-1]._fn) is not None:  # of all elements of a `vmap` at once
        set_grad_fn_name(result[0], fn.called)
    return [result[i] for i in step.pull.active]


def _unread(edge: Any, array: Any) -> Tensor:
    """Return an operand whose numbers the rule does not read: those of its step, where explanations have them."""
    known = moment_of(edge) if Recorder.explains else None
    return leading(np.zeros_like(array) if known is None else known.array, edge)


def _is_tied(step: Step, i: int, node: Node) -> bool:
    """Return whether a gradient depends on the input to PyTorch, though the derivative does not change with it."""
    is_power = (
        i == 0 and "pow" in (step.recipe.op, step.recipe.gradient_of) and not node.is_constant
    )  # whose last factor is x**0
    return is_power or fact("tied", _root(step)) is not None


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
    return pull.derivatives.setdefault(key, (_name(step, i, node), positions, active, recipe, numbers))


def _in_turn(step: Step) -> Sequence[int]:
    """Return the inputs' positions in the order in which PyTorch computes their gradients: by its parameters' names.

    The operations are recorded in this order, so their own gradients are summed in it.
    """
    active, order = step.pull.active, fact("order", _root(step))
    if order is not None:
        return [i for i in map(int, order) if i in active]
    return active[::-1] if len(step.recipe.operands) == 2 else active  # `other`, `mat2`, `exponent` before `self`


def _name(step: Step, i: int, node: Node) -> str:
    """Return PyTorch's name of the step that computes the gradient of an input."""
    if name := _name_of_factor(step, i) or _name_of_form(step, i):
        return name
    if node.op == "corner":  # of a power, whose exponent may be 0
        node = node.args[-1]
    listed = _listed_name(step, i)
    if _broadcasts(step.recipe) and node.shape != step.shape:  # summed over what was broadcast
        if len(step.shape) > len(node.shape):
            return "ViewBackward0" if node.shape else "SumBackward0"
        return "SumBackward1"
    if node.op == "sum":
        reduced = len(step.shape) > len(node.shape)
        listed = "View" if listed == "View" or (reduced and not listed) else ""
    if listed:
        return listed if listed.endswith(("Backward1", "Backward4")) else f"{listed}Backward0"
    op = "mul" if node.op == "neg" and node.args[0].op == "mul" else node.op  # PyTorch turns the factor's sign
    return reduction_name(op, bool(node.shape))


def folded(a: Sequence[int], b: Sequence[int]) -> tuple[bool, bool]:
    """Return which of two factors' shapes is that of one matrix or vector to PyTorch, where the other is a stack."""
    one = [len(s) < 3 or (len(a) == len(b) == 3 and s[0] == 1) for s in (a, b)]
    return (one[0], one[1]) if one[0] != one[1] else (False, False)


def _name_of_factor(step: Step, i: int) -> str:
    """Return PyTorch's name of the gradient of a factor in a product of stacks; "" for any other product."""
    shapes = [n.shape for n in step.recipe.operands]
    if step.recipe.op != "matmul" or max(map(len, shapes)) < 3:
        return ""
    is_one, rank = folded(*shapes), len(shapes[i])
    if is_one[i]:
        name = {1: "Mv", 2: "Mm" if i else "T", 3: "Unsqueeze"}[rank]
    else:
        name = "Transpose" if is_one[0] and 0 in step.pull.active else "View"
    is_broadcast = not any(is_one) and rank == len(step.shape) and shapes[i][:-2] != step.shape[:-2]
    return "SumBackward1" if is_broadcast else f"{name}Backward0"


def _name_of_form(step: Step, i: int) -> str:
    """Return PyTorch's name of the gradient of an operand that the call reads in another form; "" of any other."""
    known = chain_of(step.called)
    path = known.path(i) if known is not None else ()
    inner = path[-1][0].name if len(path) > 1 else ""
    same = {name: name for name in ("TBackward0", "ViewBackward0", "MulBackward1")}
    return {**same, "UnsqueezeBackward0": "SqueezeBackward1"}.get(inner, "")


def _broadcasts(recipe: Recipe) -> bool:
    row = OPERATIONS.get(recipe.op)
    return recipe.op in ("broadcast", "where") or (row is not None and row.broadcasts)


def _root(step: Step) -> str:
    """Return the name under which the table has the facts of a step: of several functions, that of their call."""
    op = step.recipe.op
    is_composed = fact("composed", op) is not None or chain_of(step.called) is not None
    return (grad_name(op) if is_composed else step.name()).removesuffix("Backward0")


def _listed_name(step: Step, i: int) -> str:
    """Return the table's name of the gradient of an input of a step; "" where the table has none."""
    root = _root(step)
    of_mean = fact("of_mean", root)
    known = of_mean if of_mean and step.recipe.settings[0] == "mean" else fact("gradients", root) or ""
    if known.startswith("*"):
        return known[1:]
    names = known.replace("-", f"{root}Backward").split(",")
    return names[i] if i < len(names) else ""
