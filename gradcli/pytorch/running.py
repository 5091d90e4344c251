"""Runs recipes: the results of an operation, recorded as those of a step if an operand requires a gradient."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.graph.node import Node
from gradcli.pytorch.cuts import note_lost
from gradcli.pytorch.functions import grad_name
from gradcli.pytorch.layouts import is_column_major, like_operands
from gradcli.pytorch.messages import torch_error
from gradcli.pytorch.modes import Mode
from gradcli.pytorch.moments import moment
from gradcli.pytorch.origins import Maker, Origin
from gradcli.pytorch.recipes import QUIET, Array, Recipe, recipe_for
from gradcli.pytorch.record import Edge, Leaf, Recorder, Step, edge_of, moment_of, script_line
from gradcli.pytorch.tensor import Tensor, new


def leading(a: Array, edge: Edge | None, is_custom: bool = False) -> Tensor:
    """Return a tensor with the history of an edge: the leaf itself for a leaf whose numbers these are."""
    fn, number = edge or (None, 0)
    if is_custom and isinstance(fn, Leaf):
        return fn.variable
    result = new(a)
    if Recorder.explains and (known := moment_of(edge)) is not None and known.array is a:
        result._moment = weakref.ref(known)
    if isinstance(fn, Step):
        result._fn, result._output = fn, number
    elif fn is not None:
        result._leaf, result._requires = (lambda: fn), True  # type: ignore[assignment,return-value]
    return result


def apply(
    op: str,
    build: Callable[..., Node],
    operands: Sequence[Any],
    settings: Any = (),
    name: str | None = None,
    numbers: Sequence[Any] = (),
    shown: Array | None = None,
) -> Tensor:
    """Return the result of an operation, recorded if one of its operands requires a gradient.

    `build` makes the node from nodes: those of the operands, which are tensors, or arrays of one number, and those of
    `numbers`, which are indices, positions and factors.  `settings` are what else it knows, and tell one call from
    another.  A view may be `shown`, as an array that aliases the operand's memory.
    """
    arrays = [x if isinstance(x, np.ndarray) else x._a for x in operands]
    recipe = recipe_for(op, settings, build, arrays, numbers)
    return run(recipe, operands, name or grad_name(op), numbers, shown, arrays)


def run(
    recipe: Recipe,
    operands: Sequence[Any],
    name: str,
    numbers: Sequence[Any] = (),
    shown: Array | None = None,
    arrays: Sequence[Array] = (),
) -> Tensor:
    """Return the result of a recipe for operands and numbers, recorded under a name as `apply` does."""
    if not Mode.is_plain and Mode.tracer is not None:
        return Mode.tracer(recipe, operands, numbers)[0]
    values: Sequence[Array] = ()
    active = active_among(operands)
    if shown is not None:
        out = view_of(operands[0], shown, recipe, numbers)
    else:
        arrays = arrays or [x if isinstance(x, np.ndarray) else x._a for x in operands]
        # A call keeps inner values for a backward, if there may be one.
        program = recipe.forward if recipe.has_calls and active else recipe.program
        values = QUIET.run(program.run, *arrays, *numbers)
        result = values[0]
        if recipe.is_view:
            out = new(result)
            if not result.size or np.may_share_memory(result, arrays[0]):
                _show(out, operands[0], recipe, numbers)
        else:
            result = like_operands(result, arrays) if recipe.is_elementwise else np.ascontiguousarray(result)
            out = new(result)
    noted(out, recipe, operands, name, numbers, active)
    if len(values) > 1 and isinstance(step := out._fn, Step):
        step.residuals = values[1:]
        step.beside = [None if isinstance(x, np.ndarray) else (x._memory, x._memory.version, x._a) for x in operands]
    return out


def active_among(operands: Sequence[Any]) -> tuple[int, ...]:
    """Return the indices of the operands that require a gradient, if gradients are recorded."""
    if not Mode.grad:
        return ()
    return tuple([i for i, x in enumerate(operands) if not isinstance(x, np.ndarray) and x.requires_grad])


def noted(
    out: Tensor,
    recipe: Recipe,
    operands: Sequence[Any],
    name: str,
    numbers: Sequence[Any] = (),
    active: tuple[int, ...] | None = None,
) -> Tensor:
    """Return the result of a recipe, recorded if one of its operands requires a gradient; `active` are those."""
    if not Mode.is_plain or Recorder.explains:
        return noted_results((out,), recipe, operands, name, numbers, active)[0]
    active = active_among(operands) if active is None else active
    if active and not out._inference and out._a.dtype.kind == "f":
        make_step((out,), name, recipe, operands, active, numbers)
    return out


def noted_results(
    outs: tuple[Tensor, ...],
    recipe: Recipe,
    operands: Sequence[Any],
    name: str,
    numbers: Sequence[Any] = (),
    active: tuple[int, ...] | None = None,
) -> tuple[Tensor, ...]:
    """Return the results of a recipe, recorded as those of one step if one of its operands requires a gradient."""
    if Mode.tracer is not None:
        return Mode.tracer(recipe, operands, numbers)
    if Mode.maps:
        for out in outs:
            mapped(out, operands)
    active = active_among(operands) if active is None else active
    if active and not outs[0]._inference and outs[0]._a.dtype.kind == "f":
        record(outs, name, recipe, operands, active, numbers)
    if Mode.dual is not None:
        for out, node in zip(outs, recipe.outputs, strict=True):
            Recorder.pushed(out, operands, recipe, node, name, numbers)
    if Recorder.explains and outs[0]._fn is None:
        for out in outs:
            note_lost(out, operands, recipe.op)
    return outs


def view_of(x: Tensor, array: Array, recipe: Recipe, numbers: Sequence[Any]) -> Tensor:
    """Return a view of a tensor: an array that shows its memory, as a recipe says."""
    out = new(array)
    _show(out, x, recipe, numbers)
    return out


def mapped(out: Tensor, operands: Sequence[Any]) -> Tensor:
    """Return a result, which is an element of the outermost `vmap` of which one of its operands is."""
    if Mode.maps:
        out._map = min((x._map for x in operands if not isinstance(x, np.ndarray)), default=out._map)
    return out


def _show(out: Tensor, x: Tensor, recipe: Recipe, numbers: Sequence[Any]) -> None:
    """Make a result a view of its operand."""
    memory = out._memory = x._memory
    if x._inference or out._inference:
        out._inference = x._inference
        if x._inference:
            return
    if x._base is None:
        out._base, out._how = x, ((recipe, numbers),)
    else:
        out._base, out._how = x._base, (*x._how, (recipe, numbers))
    out._seen = memory.version
    if not Mode.grad:
        out._origin = Origin(Maker.INFERENCE if Mode.inference else Maker.NO_GRAD)
    elif x._origin is not None:
        out._origin = x._origin.inner()


def record(
    outs: Sequence[Tensor],
    name: str,
    recipe: Recipe,
    operands: Sequence[Any],
    active: tuple[int, ...],
    numbers: Sequence[Any] = (),
) -> None:
    """Record the step of results, given its operands, of which the active ones require gradients, and its numbers."""
    step = make_step(outs, name, recipe, operands, active, numbers)
    if Recorder.explains or Mode.anomaly:
        step.line = script_line()
        step.operands = tuple(None if e is not None else x for e, x in zip(step.edges, operands, strict=True))
        if Recorder.explains:
            step.read, step.made = tuple(map(moment, operands)), tuple(map(moment, outs))
    if Mode.hooks is not None and step.keeps:
        Mode.hooks.pack(step, outs)


def make_step(
    outs: Sequence[Tensor],
    name: str,
    recipe: Recipe,
    operands: Sequence[Any],
    active: tuple[int, ...],
    numbers: Sequence[Any],
) -> Step:
    """Return the step of results, which refer to it, with what a backward needs and nothing for explanations."""
    edges: list[Any] = [None] * len(operands)
    for i in active:
        edges[i] = edge_of(operands[i])
    outs[0]._fn = step = Step(tuple(edges))
    pull = step.pull = recipe.pulls.get(active) or recipe.pull(active)
    step.called, step.shapes, step.recipe = name, recipe.shapes, recipe
    if len(outs) > 1:
        step.count = len(outs)
        for i, out in enumerate(outs):
            out._fn, out._output = step, i
    if numbers:
        step.numbers = numbers
    if pull.following:
        step.columns = [i for i in pull.following if is_column_major(operands[i]._a)]
    saved = pull.known.get(name) or pull.saved(name)
    step.keeps = saved.keeps
    if saved.kept:
        given = (*operands, *outs)
        kept: list[Any] = [None] * len(given)
        checks: list[Any] = []
        for i, is_read, is_needed, is_operand in saved.kept:
            x = given[i]
            a = x if isinstance(x, np.ndarray) else x._a
            if is_read:  # a copy of what PyTorch's own rule does not read: a later change in place does no harm
                kept[i] = a if is_needed else a.copy("K")
            if is_needed and x is not a:
                if x._inference:
                    raise torch_error("inference tensor saved")
                memory = x._memory
                checks.append((memory, memory.version, a, x if is_operand else None, i))
        step.checks, step.kept = checks, kept
    return step
