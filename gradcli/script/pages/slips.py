"""Likely mistakes that PyTorch computes without a warning, and what was probably meant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from gradcli.explain.evaluation import evaluated
from gradcli.graph.node import is_const
from gradcli.pytorch.backward import Call
from gradcli.pytorch.record import Edge, Leaf, Step, edge_of
from gradcli.script.measured import values
from gradcli.script.pages.gradients import array_words
from gradcli.script.scene import CallScene
from gradcli.script.system import Array, Recorded
from gradcli.wrapping import in_words

# By a step, and by the step before it: what the loss does itself, and what it takes.
_TWICE = {
    ("log_softmax", "softmax"): "applies softmax itself: pass the raw scores (logits), not their softmax",
    (
        "binary_cross_entropy_with_logits",
        "sigmoid",
    ): "applies sigmoid itself: pass the raw scores (logits), not their sigmoid",
    ("nll_loss", "softmax"): "takes log-probabilities: use log_softmax in place of softmax",
}
_SHAPED = frozenset(("reshape", "index", "transpose", "broadcast"))  # after which a shape is meant
_PAIRING = frozenset(("sub", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"))
_ROUNDING = frozenset(("round", "floor", "ceil", "trunc"))
_MOST = 2_000  # steps that are computed once more


def slips(steps: Sequence[Step], call: Call, scene: CallScene) -> Iterator[str]:
    """Yield likely mistakes in the steps behind a call."""
    steps = [s for s in steps if not s.is_custom]
    result = (_paired(s, scene) or _twice(s, scene) for s in steps)
    yield from [text for text in result if text][:1]
    zero = sorted(scene.name(c.tensor) for c in call.contributions if c.grad._a.size and not c.grad._a.any())
    if zero and (stopped := _stopped(steps, scene)):
        whose = f"gradient of {zero[0]} is" if len(zero) == 1 else f"gradients of {in_words(zero)} are"
        yield f"the {whose} 0: {stopped}"


def changed(steps: Sequence[Step], call: Call, scene: CallScene) -> Iterator[str]:
    """Yield that a result is not what its operands give now: they were changed since they were used.

    Nothing counts what is written through `.data` or NumPy, so the steps are computed once more, up to rounding.
    """
    if len(steps) > _MOST or any(s.is_custom or s.operands is None for s in steps):
        return
    result: dict[Edge, Array] = {}
    with np.errstate(all="ignore"):
        for step in steps:
            numbers = [_number(step, i, result) for i in range(len(step.edges))]
            if any(a.shape[:-1] != n.shape for a, n in zip(numbers, step.recipe.inputs, strict=True)):
                return  # the shape was changed
            (result[step],) = step.recipe.program(numbers)
    for y, _ in call.roots:
        now = result.get(edge_of(y), y._a)
        if not np.allclose(now, y._a, rtol=1e-5, atol=1e-6, equal_nan=True):
            name = next(iter(scene.recorded.roots), "the result")
            yield (
                f"recomputed from the current values, {name} is {array_words(now)}, not {array_words(y._a)}: "
                "a tensor was modified in place after it was used, through .data or under no_grad(). The "
                "backward reads the new values"
            )
            return


def _number(step: Step, i: int, known: dict[Edge, Array]) -> Array:
    """Return the current numbers of an operand of a step."""
    edge = step.edges[i]
    if edge is not None:
        return edge.variable._a if isinstance(edge, Leaf) else known[edge]
    x = (step.operands or ())[i]
    return x if isinstance(x, np.ndarray) else x._a


def _op(edge: Edge | None) -> str:
    return edge.recipe.op if isinstance(edge, Step) and not edge.is_custom else ""


def _paired(step: Step, scene: CallScene) -> str | None:
    """Return the sentence about an operand of shape (n,) that broadcasts with another of shape (n, 1)."""
    if step.recipe.op not in _PAIRING or len(step.recipe.inputs) < 2:
        return None
    (size, one, _), (longer, other, origin) = sorted(
        (_operand(step, i, scene) for i in (0, 1)), key=lambda o: len(o[0])
    )
    if len(size) != 1 or size[0] < 2 or longer != (*size, 1) or origin in _SHAPED:
        return None
    n = size[0]
    fix = f"; {one}.view(-1, 1) pairs them row by row" if one else ""
    return (
        f"{scene.code(step.line)} broadcasts {one or 'a vector'} ({n}) and {other or 'a column'} ({n}×1) to {n}×{n}: "
        f"each number is paired with each row{fix}"
    )


def _operand(step: Step, i: int, scene: CallScene) -> tuple[tuple[int, ...], str, str]:
    """Return the shape of an operand, its name and the operation that it is the result of.

    A loss expands its operands first: it is what is expanded.
    """
    edge, x = step.edges[i], step.operands[i] if step.operands else None
    is_loss = step.recipe.op != "sub"
    if is_loss and isinstance(edge, Step) and _op(edge) == "broadcast":
        return _operand(edge, 0, scene)
    base = getattr(x, "_base", None)
    if is_loss and edge is None and base is not None:
        return tuple(base.shape), scene.names.of(base), ""
    return tuple(step.recipe.inputs[i].shape), _named(step, i, scene), _op(edge)


def _named(step: Step, i: int, scene: CallScene) -> str:
    """Return the name of an operand of a step; "" where it has none."""
    edge, x = step.edges[i], step.operands[i] if step.operands else None
    return scene.recorded.steps.get(edge, "") if edge is not None else scene.names.of(x)


def _twice(step: Step, scene: CallScene) -> str | None:
    """Return the sentence about an operation that the loss behind it does itself."""
    for edge in step.edges:
        if said := _TWICE.get((step.recipe.op, _op(edge))):
            return f"the loss of {scene.code(step.line)} {said}"
    return None


def _stopped(steps: Sequence[Step], scene: CallScene) -> str | None:
    """Return the sentence about a step whose gradients are all 0."""
    dead = _dead(scene.recorded)
    for step in reversed(steps):
        grad_inputs, where = step.pull.grad_inputs, scene.where(step.line)
        if grad_inputs and all(is_const(n, 0) for n in grad_inputs) and not step.recipe.gradient_of:
            op = step.recipe.op
            through = f"; `x + (x.{op}() - x).detach()` has the same values and the derivative 1" * (op in _ROUNDING)
            return f"{op} ({where}) has the derivative 0 everywhere{through}"
        if step in dead:
            return f"relu ({where}) has the derivative 0 at all of its inputs: none of them is above 0"
    return None


def _dead(recorded: Recorded) -> set[Step]:
    """Return the steps of rectifiers whose results are all 0."""
    steps = {n: step for n, step in recorded.producer.items() if n.op == "relu"}
    if not steps:
        return set()
    known = values(recorded, steps)
    (computed,) = evaluated(recorded.graph.inputs, [recorded.at], steps, known=known)
    return {steps[n] for n, a in computed.items() if not a.any()}
