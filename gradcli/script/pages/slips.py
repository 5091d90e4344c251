"""Likely mistakes that PyTorch computes without a warning, and what was probably meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gradcli.graph.graph import Graph
from gradcli.graph.node import is_const
from gradcli.graph.vjp import sweep
from gradcli.record.numbers import Numbers
from gradcli.record.record import Backward, Operand, Operation, Record
from gradcli.script.known import line_at
from gradcli.script.scene import CallScene
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
_LOSSES = frozenset(loss for loss, _ in _TWICE)
_SHOWING = ("view", "alias")  # what shows a part of data, and is no operation of the script's
_SHAPED = frozenset(("reshape", "index", "transpose", "broadcast"))  # after which a shape is meant
_PAIRING = frozenset(("sub", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"))
_PRODUCTS = frozenset(("mul", "matmul", "linear"))
_MOST = 3  # reasons that are told beside the first
_ROUNDING = frozenset(("round", "floor", "ceil", "trunc"))


def slips(scene: CallScene) -> Iterator[str]:
    """Yield likely mistakes in the operations behind a call."""
    recorded = scene.recorded
    operations = [o for o in recorded.record.operations if not o.is_opaque]
    yield from [text for o in operations if (text := _paired(o, scene) or _twice(o, scene))][:1]
    yield from _zeros(operations, scene)


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
    found: dict[tuple[str, str], list[tuple[int, int | None]]] = {}
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


def _producer(x: Operand, record: Record) -> Operation | None:
    """Return the operation that has computed an operand; None of a leaf, data or numbers."""
    return record.producers.get(x) if isinstance(x, int) else None


def _paired(o: Operation, scene: CallScene) -> str | None:
    """Return the sentence about an operand of shape (n,) that broadcasts with another of shape (n, 1)."""
    if o.row not in _PAIRING or len(o.operands) < 2:
        return None
    (size, one, _), (longer, other, origin) = sorted(
        (_operand(o, i, scene) for i in (0, 1)), key=lambda operand: len(operand[0])
    )
    if len(size) != 1 or size[0] < 2 or longer != (*size, 1) or origin in _SHAPED:
        return None
    n = size[0]
    fix = f"; {one}.view(-1, 1) pairs them row by row" if one else ""
    return (
        f"{scene.code(line_at(o.site))} broadcasts {one or 'a vector'} ({n}) and {other or 'a column'} ({n}×1) to "
        f"{n}×{n}: each number is paired with each row{fix}"
    )


def _operand(o: Operation, i: int, scene: CallScene) -> tuple[tuple[int, ...], str, str]:
    """Return the shape of an operand, its name and the operation that it is the result of.

    A loss expands its operands first: it is what is expanded.
    """
    x, record = o.operands[i], scene.recorded.record
    if isinstance(x, Numbers):
        return x.shape, "", ""
    producer = _producer(x, record)
    row = "" if producer is None or producer.row in _SHOWING else producer.row
    if producer is not None and o.row != "sub" and (row == "broadcast" or not row):
        return _operand(producer, 0, scene)
    return record.quantities[x].shape, scene.recorded.name(x, ""), row


def _twice(o: Operation, scene: CallScene) -> str | None:
    """Return the sentence about an operation that the loss behind it does itself."""
    for x in o.operands if o.row in _LOSSES else ():
        producer = _producer(x, scene.recorded.record)
        if producer is not None and (said := _TWICE.get((o.row, producer.row))):
            return f"the loss of {scene.code(line_at(o.site))} {said}"
    return None


def _zeros(operations: Sequence[Operation], scene: CallScene) -> Iterator[str]:
    """Yield which gradients are 0, and why: what makes them 0 on each way to them, as the call had the numbers."""
    recorded = scene.recorded
    zero = [c.quantity for c in recorded.call.leaves if c.added.is_zero]
    if not zero or recorded.call.hooks:
        return
    why: dict[int, list[str]] = {q: [] for q in zero}
    for o, i, x in _stops(operations, recorded.call):
        behind = {x, *(a for p in recorded.record.behind([x]) for a in p.operands if isinstance(a, int))}
        for q in behind.intersection(zero):
            why[q].append(_stopped(o, i, operations, scene))
    names: dict[str, list[str]] = {}
    for q, reasons in why.items():
        if reasons and all(reasons):
            first, *others = dict.fromkeys(reasons)
            more = others if len(others) < _MOST else [f"so it is with {len(others):,} more operations"]
            names.setdefault("; ".join((first, *more)), []).append(recorded.name(q))
    for reason, of in sorted(names.items(), key=lambda item: min(item[1])):
        whose = f"gradient of {of[0]} is" if len(of) == 1 else f"gradients of {in_words(sorted(of))} are"
        yield f"the {whose} 0: {reason}"


def _stops(operations: Iterable[Operation], call: Backward) -> Iterator[tuple[Operation, int, int]]:
    """Yield each operation that receives a gradient and sends an operand only 0; with its position and quantity."""
    for o in operations:
        received = [g for k in range(len(o.results)) if (g := call.received.get((o.id, k))) is not None]
        if not all(g.is_zero for g in received):
            for i, x in enumerate(o.operands):
                if isinstance(x, int) and (g := call.sent.get((o.id, i))) is not None and g.is_zero:
                    yield o, i, x


def _stopped(o: Operation, i: int, operations: Sequence[Operation], scene: CallScene) -> str:
    """Return why an operation sends an operand 0: its derivative, or a factor; "" where neither is known to be."""
    quantities = scene.recorded.record.quantities
    if _is_flat(o, scene.recorded):
        through = f"; `x + (x.{o.row}() - x).detach()` has the same values and the derivative 1"
        return f"{_which(o, operations, scene)} has the derivative 0 everywhere{through * (o.row in _ROUNDING)}"
    if o.row == "relu" and quantities[o.results[0]].numbers.is_zero:
        which = _which(o, operations, scene)
        return f"{which} has the derivative 0 at all of its inputs: none of them is above 0"
    if o.row not in _PRODUCTS or i > 1:
        return ""
    x = o.operands[1 - i]
    factor = _producer(x, scene.recorded.record)
    while factor is not None and factor.row in (*_SHOWING, *_SHAPED):
        x, factor = factor.operands[0], _producer(factor.operands[0], scene.recorded.record)
    if factor is None or factor.row != "relu" or not quantities[factor.results[0]].numbers.is_zero:
        return ""
    return f"the result of {_which(factor, operations, scene)}, a factor of the derivative, is 0"


def _which(o: Operation, operations: Sequence[Operation], scene: CallScene) -> str:
    """Return an operation with its line: relu (line 6), or the 2nd relu that line 6 computes, where it has several."""
    where = scene.where(line_at(o.site))
    alike = [p.id for p in operations if (p.row, p.site.file, p.site.line) == (o.row, o.site.file, o.site.line)]
    if len(alike) == 1:
        return f"{o.row} ({where})"
    k = alike.index(o.id) + 1
    ending = {1: "st", 2: "nd", 3: "rd"}.get(k % 10 if k // 10 % 10 != 1 else 0, "th")
    return f"the {k}{ending} {o.row} that {where} computes"


def _is_flat(o: Operation, recorded: Recorded) -> bool:
    """Return whether the derivative of an operation is 0 everywhere; not of one that is a derivative itself."""
    quantities, (definition, *_) = recorded.record.quantities, o.definitions
    reached = [str(i) for i, x in enumerate(o.operands) if isinstance(x, int) and quantities[x].requires]
    if not reached or o.results[0] not in recorded.copies or o.row.endswith("_backward"):
        return False
    *nodes, result = recorded.copies[o.results[0]]
    graph = Graph.of({str(i): n for i, n in enumerate(nodes[: definition.operands])}, {"y": result})
    return all(is_const(g, 0) for g in sweep(graph, reached).gradients.values())
