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
from gradcli.script.errors.failure import Answer, Failure, dtype_of
from gradcli.script.errors.flow import Flow
from gradcli.script.errors.source import Change, Edit, Text, text_at
from gradcli.script.errors.syntax import called, calls, end, owner_of, parts
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
_FUNCTIONALS = ("F", "torch.nn.functional", "nn.functional")
_QUOTIENTS = ("div", "divide", "true_divide")
# The operations that leave some elements out, so that the gradients of these are 0.
_SELECTING = frozenset(("where", "masked_fill", "assign", "nan_to_num", "index_places"))
_CONDITIONS = (ast.Compare, ast.UnaryOp, ast.BinOp, ast.Call)

_GUARD = "replace the operand of {} where its result is not used; a `where` on the result is too late"
_IN_ONE = "compute both in one function, which does not round to 0 in between"
_KEEP_AWAY = "keep the operand of {} away from that point"


@dataclass(frozen=True)
class Cause:
    """An operation whose value, or whose local derivative, is the first that is not finite; then with its gradients."""

    operation: Operation
    received: Array | None = None  # the gradient of its only result
    sent: Sequence[Array] = ()  # what it sends to its operands; nothing where it is the value that is not finite

    @property
    def op(self) -> str:
        """The operation, or the class of a Function."""
        return self.operation.row

    @property
    def is_hidden(self) -> bool:
        """Whether the gradient of the result is 0 wherever the slope is not finite: the result is not used there."""
        if not self.sent or self.received is None or is_custom(self.operation):
            return False
        g, bad = self.received, [~np.isfinite(a) for a in self.sent]
        return all(not g[b].any() if b.shape == g.shape else not g.all() for b in bad)

    @property
    def is_undefined(self) -> bool:
        """Whether the slope is nan, and not infinite, where the result is used: of the root of a negative number."""
        g = self.received
        if g is None or self.is_hidden:
            return False
        return any(np.isnan(a[g != 0]).any() for a in self.sent if a.shape == g.shape)

    def words(self, scene: Scene) -> str:
        """Return where it arises, in words."""
        what = "local derivative" if self.sent else "value"
        is_zero = self.received is not None and bool((self.received == 0).any()) and not is_custom(self.operation)
        hidden = ": 0·inf is nan" * (is_zero and any(np.isnan(a).any() for a in self.sent))
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
        first = next((p for p in behind if _arises(p, known.record.quantities)), o)
        if first.id == o.id:
            arrays = [a.whole for a in sent if a.whole is not None]
            result[o.id] = Cause(o, received[0].whole if len(o.results) == len(received) == 1 else None, arrays)
        else:
            result.setdefault(first.id, Cause(first))
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
        words, new = _Operand(at, text, cause, call.roots).fix()
        fixes[words] = None
        changed.setdefault(text.file, (text, []))[1].extend(new)
    changes: list[Change] = [c for text, new in changed.values() for c in text.edited(new)]
    reason = f"it arises {'; and '.join(dict.fromkeys(cause.words(at) for cause in known))}"
    return Answer(reason, "; ".join(fixes), changes)


class _Operand:
    """The operand of an operation that has to be kept from a pole, in the script's text."""

    def __init__(self, scene: Failure | CallScene, text: Text, cause: Cause, roots: Sequence[int]) -> None:
        self.scene, self.text, self.cause = scene, text, cause
        is_own = is_custom(cause.operation)
        self.selecting, self.branch = (None, 0) if is_own else _selecting(scene.known, cause.operation, roots)
        self.node = text.expression(cause.operation.site)
        self.operand = None if is_own else self._operand()

    def _operand(self) -> ast.expr | None:
        """Return the expression of the operand, where the line computes the operation itself."""
        op = self.cause.op
        match self.node:
            case ast.BinOp(_, ast.Div(), right) | ast.AugAssign(_, ast.Div(), right):
                return right if op in ("div", "reciprocal") else None
            case ast.BinOp(left, ast.Pow(), _):
                return left if op == "pow" else None
            case ast.Call(args=args):
                name = called(self.node).strip("_").replace("arc", "a")
                if op == "div" and name in _QUOTIENTS and args:
                    return args[-1]
                return self.text.operand(self.node) if name == op else None
        return None

    def fix(self) -> tuple[str, list[Edit]]:
        """Return the fix in words, and its edits; none where the script's text does not have the operation itself."""
        if self.operand is None or (self.cause.op not in _AWAY and self.selecting is None):
            return safer(self.cause.op, self._name()), []
        if self.cause.op == "log" and (both := self._in_one(self.operand)):
            return _IN_ONE, both
        is_used = bool(self.cause.sent) and not self.cause.is_hidden
        condition = None if self.selecting is None or is_used else self._condition(self.operand)
        if condition is None:
            return _KEEP_AWAY.format(self.cause.op), [*self._kept_away(self.operand)]
        before, behind = guard(self.cause.op, *condition, where=f"{self._torch()}.where", point=".")
        return _GUARD.format(self.cause.op), edits.wrapped(self.operand, before, behind)

    def _in_one(self, operand: ast.expr) -> list[Edit]:
        """Return the edits that compute the logarithm of a softmax, or of a part of it, in one function."""
        base: ast.expr = operand
        part = ""
        while isinstance(base, ast.Subscript):
            part = f"[{self.text.of(base.slice)}]{part}"
            base = base.value
        for value in (base, *Flow(self.text).of_name(base)):
            owner = self.text.of(owner_of(value)) if isinstance(value, ast.Call) else ""
            if isinstance(value, ast.Call) and owner in (self._torch(), *_FUNCTIONALS):
                arguments = ", ".join(map(self.text.of, (*value.args, *value.keywords)))
                if called(value) == "softmax":
                    return edits.instead(self.node, f"{owner}.log_softmax({arguments}){part}")  # type: ignore[arg-type]
                if called(value) == "sigmoid":
                    logsigmoid = f"{self._torch()}.nn.functional.logsigmoid"
                    return edits.instead(self.node, f"{logsigmoid}({arguments}){part}")  # type: ignore[arg-type]
        return []

    def _name(self) -> str:
        operands, i = self.cause.operation.operands, misbehaving(self.cause.op)
        x = operands[i] if i < len(operands) else None
        return (isinstance(x, int) and self.scene.known.record.quantities[x].name) or "x"

    def _torch(self) -> str:
        """Return the script's name of PyTorch."""
        imports = [a for n in parts(self.text.tree, ast.Import) for a in n.names if a.name == "torch"]
        return next((a.asname or a.name for a in imports), "torch")

    def _kept_away(self, operand: ast.expr) -> Iterator[Edit]:
        """Yield the edits that keep an operand from the pole, where its result is used."""
        below = self.cause.is_undefined or not self.cause.sent  # a root of a negative number: not even a value
        words = _LEAST if below and self.cause.op in ("sqrt", "rsqrt") else _AWAY[self.cause.op]
        if words.startswith("."):
            is_owner = isinstance(self.node, ast.Call) and owner_of(self.node) is operand
            yield from edits.before_call(self.node, words) if is_owner else edits.behind(operand, words)  # type: ignore[arg-type]
        elif self.text.is_bracketed(operand):
            yield end(operand), end(operand), words
        else:
            yield from edits.wrapped(operand, "(", f"{words})")

    # The condition

    def _condition(self, operand: ast.expr) -> tuple[str, bool] | None:
        """Return the condition under which the result is used, or not used, and which of the two it is."""
        written = self._written()
        if written is not None and (code := self._at_operand(written[0])):
            return code, written[1]
        code = self.text.of(operand)
        if calls(operand):  # what is computed twice may differ
            return None
        match self.cause.op:
            case "div" | "reciprocal":
                return f"{code} == 0", False
            case "acos" | "asin" | "atanh":
                return f"{code if edits.is_simple(operand) else f'({code})'}.abs() < 1", True
            case "exp":
                return f"{code} < 80", True
        return f"{code} > 0", True

    def _written(self) -> tuple[ast.expr, bool] | None:
        """Return the script's own condition, and whether the operation's result is used where it holds."""
        if self.selecting is None or self.selecting.site.file != self.text.file:
            return None
        text = text_at(self.scene, line_at(self.selecting.site))
        node = text.expression(self.selecting.site)
        match node:
            case ast.Call(args=[first, *_]) if called(node) == "where":
                return first, self.branch == 1
            case ast.Call(args=args) if called(node).startswith("masked_fill") and len(args) > 1:
                return args[-2], False
        match text.statement:
            case ast.Assign([ast.Subscript(_, place)]) if self.selecting.row == "assign" and not self.branch:
                return (place, False) if self._is_mask(place) else None
        return None

    def _is_mask(self, node: ast.expr) -> bool:
        """Return whether an index is a mask, and not the number of an element."""
        if isinstance(node, ast.Compare):
            return True
        x = self.scene.names.tensors.get(self.text.of(node))
        return dtype_of(x) == "bool"

    def _at_operand(self, condition: ast.expr) -> str:
        """Return a condition as code for the line of the operation; "" where its names are others there, or later."""
        flow = Flow(self.text)
        if flow.scope(condition) is not flow.scope(self.node):
            return ""
        if self._is_known(flow, condition):
            return self.text.of(condition)
        for value in flow.of_name(condition):
            if isinstance(value, _CONDITIONS) and self._is_known(flow, value):
                code = self.text.of(value)
                return code if edits.is_simple(value) or isinstance(value, ast.Compare) else f"({code})"
        return ""

    def _is_known(self, flow: Flow, condition: ast.expr) -> bool:
        """Return whether a condition can be computed before the operation."""
        line = getattr(self.node, "lineno", 0)
        inner = {*ast.walk(condition)}
        names = [n for n in inner if isinstance(n, ast.Name)]
        values = (value for n in names for value in flow.of_name(n))
        later = (v for v in values if v.lineno >= line and flow.scope(v) is flow.scope(self.node))
        return self.node not in inner and not any(True for _ in later)


def _selecting(known: Known, operation: Operation, roots: Sequence[int]) -> tuple[Operation | None, int]:
    """Return the first operation behind one that leaves elements out, and at which operand of it the other one is."""
    behind = {*operation.results}
    for o in known.behind(roots)[0]:
        reads = [i for i, x in enumerate(o.operands) if isinstance(x, int) and x in behind]
        if reads and not o.is_opaque and o.row in _SELECTING:
            return o, reads[0]
        if reads:
            behind |= {*o.results}
    return None, 0
