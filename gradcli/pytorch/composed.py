"""Calls that are one operation and are computed in several steps, such as a recurrent layer.

The backward of a call goes through its steps, from its results to its operands: they are not compiled as one, which
would take seconds for a layer of some hundred steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from gradcli.graph.construct import call
from gradcli.graph.node import Node
from gradcli.pytorch.backward import Call
from gradcli.pytorch.modes import Mode
from gradcli.pytorch.moments import moment
from gradcli.pytorch.recipes import Recipe, recipe_for
from gradcli.pytorch.record import Edge, Recorder, Step, dependencies, edge_of, script_line
from gradcli.pytorch.running import make_step
from gradcli.pytorch.tensor import Tensor, new


class ComposedStep(Step):
    """The step of a call that has steps of its own, from `entries`, which stand for its operands, to `seen_as`."""

    is_composed = keeps = True

    def __init__(self, recipe: Recipe, entries: Sequence[Step | None], ends: Sequence[Edge]) -> None:
        super().__init__(tuple([None if e is None else e.edges[0] for e in entries]))
        self.recipe, self.shapes, self.count = recipe, recipe.shapes, len(recipe.outputs)
        self.entries, self.seen_as, self.called = entries, ends, ends[0][0].name()
        self.ends = frozenset(e for e in entries if e is not None)

    def grad_inputs(self, grads: Sequence[Any], create: bool) -> list[Any]:
        targets: dict[Edge, Any] = {(e, 0): None for e in self.entries if e is not None}
        inner = Call([], inputs=[], returns=True, freed=False, create=create, targets=targets, ends=self.ends)
        inner.sweep([(end, g) for end, g in zip(self.seen_as, grads, strict=True) if g is not None])
        return [None if e is None else targets[e, 0] for e in self.entries]

    def steps(self) -> list[Step]:
        return [fn for fn in dependencies((fn for fn, _ in self.seen_as), self.ends) if isinstance(fn, Step)]


def composed(
    op: str, settings: Any, build: Callable[..., tuple[Node, ...]], compute: Callable[..., Sequence[Tensor]],
    operands: Sequence[Tensor], numbers: Sequence[Any] = (),
) -> Sequence[Tensor]:  # fmt: skip
    """Return the results that `compute` has of operands in several steps, recorded as those of one.

    Its first argument is a list, to which it adds the masks that it draws.  `build` makes the nodes of the results from
    those of the operands, the masks and the numbers.
    """
    masks: list[Tensor] = []
    is_recorded = Mode.grad and any(x.requires_grad for x in operands)
    if not is_recorded or Mode.tracer is not None or Mode.maps or Mode.dual is not None:
        return compute(masks, *operands)
    entries = [_entry(x) if x.requires_grad else None for x in operands]
    ends = compute(masks, *(x if e is None else e[0] for x, e in zip(operands, entries, strict=True)))
    every = (*operands, *masks)
    recipe = recipe_for(op, settings, build, [x._a for x in every], numbers)
    steps = [None if e is None else e[1] for e in entries] + [None for _ in masks]
    step = ComposedStep(recipe, steps, [edge_of(y) for y in ends])
    step.numbers = numbers
    _check_operands(step, {id(e[0]): x for x, e in zip(operands, entries, strict=True) if e is not None})
    outs = [new(y._a) for y in ends]
    for i, (out, end) in enumerate(zip(outs, ends, strict=True)):
        out._memory, out._fn, out._output = end._memory, step, i
    if Recorder.explains or Mode.anomaly:
        step.line = script_line()
        step.operands = tuple(None if e is not None else x for e, x in zip(steps, every, strict=True))
        step.read, step.made = tuple(map(moment, every)), tuple(map(moment, outs))
    return outs


_IDENTITY = partial(call, "identity")


def _entry(x: Tensor) -> tuple[Tensor, Step]:
    """Return an operand as the steps of a call read it, where their backward ends."""
    result = new(x._a)
    result._memory = x._memory
    step = make_step((result,), "AliasBackward0", recipe_for("identity", (), _IDENTITY, [x._a]), (x,), (0,), ())
    step.seen_as = step.edges  # type: ignore[assignment]
    return result, step


def _check_operands(step: ComposedStep, operands: dict[int, Tensor]) -> None:
    """Let the steps of a call check the call's operands for changes, which they have read under other names."""
    for inner in step.steps():
        inner.checks = [(*c[:3], operands.get(id(c[3]), c[3]), c[4]) for c in inner.checks]
