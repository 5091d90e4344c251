"""Gradients that are not finite: the operations in which that arises, and what keeps their operands from a pole."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gradcli.pages.not_finite import guard, misbehaving, safer
from gradcli.record.numbers import Array, Numbers
from gradcli.record.record import Backward, Operation, Quantity
from gradcli.script.errors import edits
from gradcli.script.errors.failure import Answer, Failure
from gradcli.script.errors.source import Change, Edit, Text, text_at
from gradcli.script.errors.syntax import called, calls, end, owner_of
from gradcli.script.known import Known, is_custom, line_at
from gradcli.script.scene import CallScene, Scene

# What keeps an operand from the pole of an operation where its result is used: a number that is added, or a method.
_LEAST, _WITHIN = ".clamp(min=1e-12)", ".clamp(-1 + 1e-6, 1 - 1e-6)"
_AWAY = {
    **dict.fromkeys(("sqrt", "rsqrt"), " + 1e-12"),
    **dict.fromkeys(("div", "reciprocal"), " + 1e-8"),
    **dict.fromkeys(("log", "log2", "log10"), _LEAST),
    **dict.fromkeys(("acos", "asin", "atanh"), _WITHIN),
    "pow": ".clamp(min=1e-8)",
    "exp": ".clamp(max=80)",
}
_QUOTIENTS = ("div", "divide", "true_divide")
# The operations that leave some elements out, so that the gradients of these are 0.
_SELECTING = frozenset(("where", "masked_fill", "assign", "nan_to_num", "index_places"))
_FUNCTIONALS = ("torch", "F", "torch.nn.functional", "nn.functional")
_LOGARITHMS = {"softmax": "torch.log_softmax", "sigmoid": "torch.nn.functional.logsigmoid"}

_GUARD = "replace the operand of {} where its result is not used; a `where` on the result is too late"
_KEEP_AWAY = "keep the operand of {} away from that point"


@dataclass(frozen=True)
class Cause:
    """An operation whose value, or whose local derivative, is the first that is not finite; then with its gradients."""

    operation: Operation
    received: Array | None = None  # the gradient of its only result
    sent: Sequence[Numbers] = ()  # what it sends to its operands; nothing where it is the value that is not finite

    @property
    def op(self) -> str:
        """The operation, or the class of a Function."""
        return self.operation.row

    @property
    def is_hidden(self) -> bool:
        """Whether the gradient of the result is 0 wherever the slope is not finite: the result is not used there."""
        g, arrays = self.received, [n.whole for n in self.sent]
        if g is None or not arrays or any(a is None for a in arrays) or is_custom(self.operation):
            return False
        bad = [~np.isfinite(a) for a in arrays if a is not None]
        return all(not g[b].any() if b.shape == g.shape else not g.all() for b in bad)

    @property
    def is_undefined(self) -> bool:
        """Whether the slope is nan, and not infinite, where the result is used: of the root of a negative number."""
        g = self.received
        if g is None or self.is_hidden:
            return False
        return any(np.isnan(n.whole[g != 0]).any() for n in self.sent if n.whole is not None and n.shape == g.shape)

    def words(self, scene: Scene) -> str:
        """Return where it arises, in words."""
        what = "local derivative" if self.sent else "value"
        is_zero = self.received is not None and bool((self.received == 0).any()) and not is_custom(self.operation)
        hidden = ": 0·inf is nan" * (is_zero and any(n.summary.nan for n in self.sent))
        where = scene.code(line_at(self.operation.site)).rstrip(",")
        return f"in {self.op} ({where}), whose {what} is not finite there{hidden}"


def causes(known: Known, call: Backward) -> list[Cause]:
    """Return the operations in which gradients of a call began not to be finite, in the order of the script."""
    if not all(n.is_finite for n in call.v):
        return []
    result: dict[int, Cause] = {}
    for o in known.record.operations:
        received, sent = call.arose.get(o.id) or _sent(o, call)
        if all(n.is_finite for n in sent):
            continue
        behind, _ = known.behind(o.results)
        first = [p for p in behind if _arises(p, known.record.quantities)]
        if not first or first[0].id == o.id:
            result[o.id] = Cause(o, received[0].whole if len(o.results) == len(received) == 1 else None, sent)
        else:
            result = {p.id: Cause(p) for p in first} | result
    return [result[k] for k in sorted(result)]


def _sent(o: Operation, call: Backward) -> tuple[Sequence[Numbers], Sequence[Numbers]]:
    """Return what an operation received, and what it sent of that, if all of the former is finite."""
    received = [g for k in range(len(o.results)) if (g := call.received.get((o.id, k))) is not None]
    sent = [g for i in range(len(o.operands)) if (g := call.sent.get((o.id, i))) is not None]
    return received, sent if all(n.is_finite for n in received) else ()


def _arises(o: Operation, quantities: Sequence[Quantity]) -> bool:
    """Return whether the value of an operation is the first that is not finite, of finite operands."""
    read = [quantities[x].numbers if isinstance(x, int) else x for x in o.operands[: len(o.operands) - o.numbers]]
    return not all(quantities[q].numbers.is_finite for q in o.results) and all(n.is_finite for n in read)


def not_finite_answer(at: Failure | CallScene, call: Backward) -> Answer | None:
    """Return where gradients of a call began not to be finite, and the change that keeps all of them finite."""
    known = causes(at.known, call)
    if not known:
        return None
    changed: dict[str, tuple[Text, list[Edit]]] = {}
    fixes: dict[str, None] = {}
    for cause in known:
        text = text_at(at, line_at(cause.operation.site))
        words, new = _fix(at, text, cause, call.roots)
        fixes[words] = None
        changed.setdefault(text.file, (text, []))[1].extend(new)
    changes: list[Change] = [c for text, new in changed.values() for c in text.edited(new)]
    # Of several equal operations on a line, the first.
    reasons = {(c.op, line_at(c.operation.site)): c.words(at) for c in reversed(known)}
    reason = f"it arises {'; and '.join(reversed(reasons.values()))}"
    return Answer(reason, "; ".join(filter(None, fixes)), changes)


def _fix(scene: Failure | CallScene, text: Text, cause: Cause, roots: Sequence[int]) -> tuple[str, list[Edit]]:
    """Return the fix in words, and its edits; none where the script's text does not have the operation itself."""
    is_selected = not is_custom(cause.operation) and _is_selected(scene.known, cause.operation, roots)
    node = text.expression(cause.operation.site)
    operand = None if is_custom(cause.operation) else _operand(text, node, cause.op)
    if node is None or operand is None or (cause.op not in _AWAY and not is_selected):
        return safer(cause.op, _name(scene, cause)), []
    if cause.op == "log" and (both := _in_one(text, node, operand)):
        return "compute both in one function, which does not round to 0 in between", both
    is_used = bool(cause.sent) and not cause.is_hidden
    if not is_selected or is_used or calls(operand):  # what is computed twice may differ
        is_nan = any(scene.known.record.quantities[q].numbers.summary.nan for q in cause.operation.results)
        limit = "; 0/0 then gives 0, whatever the limit is" * (misbehaving(cause.op) and is_nan)
        return _KEEP_AWAY.format(cause.op) + limit, [*_kept_away(text, node, operand, cause)]
    before, behind = guard(cause.op, *_condition(text, operand, cause.op), where="torch.where", point=".")
    return _GUARD.format(cause.op), edits.wrapped(operand, before, behind)


def _operand(text: Text, node: ast.expr | ast.AugAssign | None, op: str) -> ast.expr | None:
    """Return the expression of the operand that has the pole, where the line computes the operation itself."""
    match node:
        case ast.BinOp(_, ast.Div(), right) | ast.AugAssign(_, ast.Div(), right):
            return right if op in ("div", "reciprocal") else None
        case ast.BinOp(left, ast.Pow(), _):
            return left if op == "pow" else None
        case ast.Call(args=args):
            name = called(node).strip("_").replace("arc", "a")
            if op == "div" and name in _QUOTIENTS and args:
                return args[-1]
            return text.operand(node) if name == op else None
    return None


def _in_one(text: Text, node: ast.AST, operand: ast.expr) -> list[Edit]:
    """Return the edits that compute the logarithm of a softmax, of a part of it, or of a sigmoid in one function."""
    base, part = operand, ""
    while isinstance(base, ast.Subscript):
        part = f"[{text.of(base.slice)}]{part}"
        base = base.value
    for value in (base, *text.values(base)):
        name, owner = called(value), text.of(owner_of(value)) if isinstance(value, ast.Call) else ""
        if isinstance(value, ast.Call) and name in _LOGARITHMS and owner in _FUNCTIONALS:
            arguments = ", ".join(map(text.of, (*value.args, *value.keywords)))
            return edits.instead(node, f"{_LOGARITHMS[name]}({arguments}){part}")
    return []


def _name(scene: Failure | CallScene, cause: Cause) -> str:
    operands, i = cause.operation.operands, misbehaving(cause.op)
    x = operands[i] if i < len(operands) else None
    return (isinstance(x, int) and scene.known.record.quantities[x].name) or "x"


def _kept_away(text: Text, node: ast.AST, operand: ast.expr, cause: Cause) -> Iterator[Edit]:
    """Yield the edits that keep an operand from the pole, where its result is used."""
    below = cause.is_undefined or not cause.sent  # a root of a negative number: not even a value
    words = _LEAST if below and cause.op in ("sqrt", "rsqrt") else _AWAY[cause.op]
    if words.startswith("."):
        is_owner = isinstance(node, ast.Call) and owner_of(node) is operand
        yield from edits.before_call(node, words) if is_owner else edits.behind(operand, words)  # type: ignore[arg-type]
    elif text.is_bracketed(operand):
        yield end(operand), end(operand), words
    else:
        yield from edits.wrapped(operand, "(", f"{words})")


def _condition(text: Text, operand: ast.expr, op: str) -> tuple[str, bool]:
    """Return a condition on an operand, and whether it holds away from the pole, or at it."""
    code = text.of(operand)
    match op:
        case "div" | "reciprocal":
            return f"{code} == 0", False
        case "acos" | "asin" | "atanh":
            return f"{code if edits.is_simple(operand) else f'({code})'}.abs() < 1", True
        case "exp":
            return f"{code} < 80", True
    return f"{code} > 0", True


def _is_selected(known: Known, operation: Operation, roots: Sequence[int]) -> bool:
    """Return whether an operation behind one leaves elements of its result out."""
    behind = {*operation.results}
    for o in known.behind(roots)[0]:
        if any(isinstance(x, int) and x in behind for x in o.operands):
            if not o.is_opaque and o.row in _SELECTING:
                return True
            behind |= {*o.results}
    return False
