"""Likely mistakes that PyTorch computes without a warning, and what was probably meant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradcli.graph.node import is_const
from gradcli.pages.evaluation import evaluated
from gradcli.pytorch.backward import Call
from gradcli.pytorch.record import Edge, Leaf, Line, Step
from gradcli.script.measured import values
from gradcli.script.scene import CallScene, line_at
from gradcli.script.system import Recorded
from gradcli.text.wrapping import in_words

# By a step, and by the step before it: what the loss does itself, and what it takes.
_TWICE = {
    ("cross_entropy", "softmax"): "applies softmax itself: pass the raw scores (logits), not their softmax",
    (
        "binary_cross_entropy_with_logits",
        "sigmoid",
    ): "applies sigmoid itself: pass the raw scores (logits), not their sigmoid",
    ("nll_loss", "softmax"): "takes log-probabilities: use log_softmax in place of softmax",
}
_SHAPED = frozenset(("reshape", "index", "transpose", "broadcast"))  # after which a shape is meant
_PAIRING = frozenset(("sub", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"))
_ROUNDING = frozenset(("round", "floor", "ceil", "trunc"))


def slips(steps: Sequence[Step], call: Call, scene: CallScene) -> Iterator[str]:
    """Yield likely mistakes in the steps behind a call."""
    steps = [s for s in steps if not s.is_custom]
    result = (_paired(s, scene) or _twice(s, scene) for s in steps)
    yield from [text for text in result if text][:1]
    zero = sorted(scene.name(c.tensor) for c in call.contributions if c.grad._a.size and not c.grad._a.any())
    if zero and (stopped := _stopped(steps, scene)):
        whose = f"gradient of {zero[0]} is" if len(zero) == 1 else f"gradients of {in_words(zero)} are"
        yield f"the {whose} 0: {stopped}"


def changed(scene: CallScene) -> Iterator[str]:
    """Yield which numbers were changed in place after a line had read them, and whether the backward reads the new."""
    told = _read_again(scene)
    yield from told.values()
    for use in scene.recorded.functions.values():
        for name in use.outputs.values() if use.is_change else ():
            site = use.operation.site
            wrote = f"of what {scene.code(line_at(site))} wrote" if site.line else "of its change in place"
            passed = f"the gradient of {name} passes on as if it were {use.of(scene.recorded)}"
            yield f"no step is recorded {wrote}: {passed}"
    for name, (site, by) in scene.recorded.since.items():
        if (name, "read") in told:
            continue
        changed = f"{scene.where(line_at(by))} has changed it" if by.line else "it was changed"
        yield f"{name} is as {scene.where(line_at(site))} read it; {changed} in place since"


def _read_again(scene: CallScene) -> dict[tuple[str, str], str]:
    """Return what is changed after a line that has read or computed it, and before a backward reads it, in sentences.

    They are by the name of what is changed, and "read" or "computed".  PyTorch counts changes and refuses such a
    backward, but counts none that are made through `.data` or NumPy.
    """
    found: dict[tuple[str, str], list[tuple[Line, Line | None]]] = {}
    for use in scene.recorded.functions.values():
        for i, changed_at in use.changed.items():
            is_read = i < len(use.written)
            name = scene.recorded.graph.labels.get(use.written[i], "a tensor") if is_read else use.outputs[0]
            line, by = line_at(use.operation.site), line_at(changed_at) if changed_at.line else None
            found.setdefault((name, "read" if is_read else "computed"), []).append((line, by))
    result: dict[tuple[str, str], str] = {}
    for (name, done), changes in found.items():
        lines, (_, writer) = [line for line, _ in changes], changes[-1]
        how = "through .data" if writer else "through .data or NumPy"
        was = f"{scene.code(writer)} changed {name} in place" if writer else f"{name} was changed in place"
        after = scene.code(lines[0]) if len({*lines}) == 1 else scene.lines(lines)
        result[name, done] = (
            f"{was} {how}, after {after} had {done} it. PyTorch does not notice this, and the backward of "
            f"{scene.lines(lines)} reads the new numbers: change a copy, made with clone(), or change it after the "
            "backward"
        )
    return result


def _op(edge: Edge | None) -> str:
    return edge[0].recipe.op if edge and isinstance(edge[0], Step) and not edge[0].is_custom else ""


def _paired(step: Step, scene: CallScene) -> str | None:
    """Return the sentence about an operand of shape (n,) that broadcasts with another of shape (n, 1)."""
    if step.recipe.op not in _PAIRING or len(step.recipe.operands) < 2:
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
    if is_loss and edge is not None and isinstance(edge[0], Step) and _op(edge) == "broadcast":
        return _operand(edge[0], 0, scene)
    base = getattr(x, "_base", None)
    if is_loss and edge is None and base is not None:
        return tuple(base.shape), scene.names.of(base), ""
    return tuple(step.recipe.inputs[i].shape), operand_name(step, i, scene), _op(edge)


def operand_name(step: Step, i: int, scene: CallScene) -> str:
    """Return the name of an operand of a step; "" where it has none."""
    edge, x = step.edges[i], step.operands[i] if step.operands else None
    if edge is None:
        return scene.names.of(x)
    quantity = None if scene.tape is None else scene.tape.of(edge)
    known = "" if quantity is None else scene.recorded.names.get(quantity, "")
    return known or (scene.names.of(edge[0].variable) if isinstance(edge[0], Leaf) else "")


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
        if scene.tape is not None and scene.tape.operations.get(step) in dead:
            return f"relu ({where}) has the derivative 0 at all of its inputs: none of them is above 0"
    return None


def _dead(recorded: Recorded) -> set[int]:
    """Return the operations of rectifiers whose results are all 0."""
    operations = {n: o.id for n, o in recorded.producer.items() if n.op == "relu"}
    if not operations:
        return set()
    known = values(recorded, operations)
    (computed,) = evaluated(recorded.graph.inputs, [recorded.at], operations, known=known)
    return {operations[n] for n, a in computed.items() if not a.any()}
