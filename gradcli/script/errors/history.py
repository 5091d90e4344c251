"""The history of the values of a line: where they were cut off from the graph, and the change that keeps them in it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

from gradcli.record.naming import is_tensor
from gradcli.record.record import Cut
from gradcli.script.errors import custom, edits, fixes, syntax, updates
from gradcli.script.errors.failure import Answer, Failure
from gradcli.script.errors.source import Change, Edit, Text, changed
from gradcli.script.known import CutLine, Known
from gradcli.text.wrapping import in_words

_ROUNDING = ("round", "floor", "ceil", "trunc", "sign")  # whose derivative is 0
_NUMBERS = {("", "float"), ("", "int"), *(("torch", name) for name in _ROUNDING)}
# Methods that take numbers out of the graph, and what replaces each.
_AWAY = {
    **dict.fromkeys(_ROUNDING, ""),
    **dict.fromkeys(("detach", "item", "numpy", "tolist", "astype", "int", "long", "requires_grad_"), ""),
    "copy": ".clone()",
}
# Functions that make tensors of such numbers again.
_BACK = {
    *("tensor", "as_tensor", "asarray", "from_numpy", "Tensor", "FloatTensor", "DoubleTensor", "array", "Variable"),
    *("LongTensor", "new_tensor"),
}
_MODULES = ("np", "numpy", "math")
SAMPLE = ".sample()"
_LISTS = ast.List | ast.ListComp | ast.Tuple


class History:
    """The expressions that the values of a line were computed from."""

    def __init__(self, text: Text, known: Known) -> None:
        self.text, self.known = text, known
        self.needs_numpy = False  # whether NumPy computes something on the way that has no function in torch
        self.has_edits = True  # whether edits of expressions keep all in the graph
        back = [c for c in text.calls("backward", "grad") if syntax.owner_of(c) is not None]
        self.root = _root(text, back[0]) if back else ""  # what backward is called of

    @cached_property
    def way(self) -> list[ast.expr]:
        """The expressions that lead to the statement: first what it computes itself, without the statements in it."""
        statement = self.text.statement
        children = [] if hasattr(statement, "body") else [*ast.iter_child_nodes(statement)]
        own = [n for n in children if isinstance(n, ast.expr)]
        return [*own, *self.text.back(statement)] if children else own

    def cuts(self) -> list[CutLine]:
        """Return the cuts on the way, the nearest first."""
        return list({id(c): c for e in self.way for c in self._at(e)}.values()) if self.known.has_cuts else []

    def _at(self, expression: ast.AST) -> Iterator[CutLine]:
        lines = sorted({n.lineno for n in syntax.parts(expression, ast.expr)})
        yield from filter(None, (self.known.cut_at(self.text.file, line) for line in lines))

    def has(self, name: str) -> bool:
        """Return whether an expression with this text is on the way."""
        return any(self.text.of(n) == name for e in self.way for n in ast.walk(e))

    def is_of_constant_gradient(self, at: Failure) -> bool:
        """Return whether a gradient on the way was taken with create_graph=True, and has no history all the same."""
        names = [n for e in self.way for n in syntax.parts(e, ast.Name) if is_tensor(at.value(n))]
        names = [n for n in names if not at.value(n).requires_grad]
        gradient_calls = [
            g for n in names if (assignment := self.text.assigned(n.id)) for g in syntax.calls(assignment[1], "grad")
        ]
        return any(syntax.keyword(g, "create_graph") for g in gradient_calls) and not self.gradient_recorded()

    def gradient_recorded(self) -> list[Change]:
        """Return the change that records a gradient on the way: grad(…, create_graph=True), or backward.

        An update of a parameter, where nothing is recorded, is not on the way.
        """
        recorded = [e for e in self.way if not updates.is_unrecorded(self.text.on(e.lineno))]
        nodes = (n for e in recorded for n in ast.walk(e))
        for call in filter(None, map(self._gradient, nodes)):
            if call.lineno != self.text.line and syntax.keyword(call, "create_graph") is None:
                return fixes.with_argument(self.text.on(call.lineno), "create_graph", "True", syntax.called(call))
        return []

    def _gradient(self, node: ast.AST) -> ast.Call | None:
        """Return the call that computes a gradient, where a node is grad(…), or x.grad, which is backward's."""
        match node:
            case ast.Call(function) if syntax.called(node) == "grad" and self.text.of(function) != "torch.grad":
                return node
            case ast.Attribute(attr="grad") if node not in [c.func for c in syntax.calls(self.text.tree)]:
                return next(iter(syntax.calls(self.text.tree, "backward")), None)
        return None

    def kept(self) -> list[Change]:
        """Return the changes that keep the values in the graph: tensors for numbers, PyTorch for NumPy."""
        nodes = [(n, self.text.on(e.lineno).statement) for e in self.way for n in ast.walk(e)]
        changes = self.text.edited([edit for node, statement in nodes for edit in self._edits(node, statement)])
        is_right = bool(syntax.parsed(changed(self.text.source, changes)).body)
        return changes if is_right and self.has_edits and not self.needs_numpy else []

    def _edits(self, node: ast.AST, statement: Any) -> Iterator[Edit]:
        """Yield the edits of a node, if numbers were detached in it or before it."""
        if isinstance(node, ast.Attribute) and node.attr == "data" and self._is_cut_off(node):
            yield edits.dot(node), syntax.end(node), ""
        # Of two tensors neither may go to NumPy, though only one is cut off.
        if isinstance(node, ast.Call) and (syntax.called(node) == "numpy" or self._is_cut_off(node)):
            yield from self._of_call(node, getattr(statement, "value", None) is node)

    def _of_call(self, node: ast.Call, alone: bool) -> Iterator[Edit]:
        """Yield the edits of a call; `alone` if it is all that a statement computes."""
        name, owner, inner = syntax.called(node), self.text.of(syntax.owner_of(node)), next(iter(node.args), None)
        if owner and name in _AWAY and owner not in ("torch", *_MODULES):
            yield from edits.method(node, _AWAY[name])
        elif inner is not None and (name in _BACK or (owner, name) in _NUMBERS):
            yield from self._unwrapped(node, inner, alone)
        elif isinstance(node.func, ast.Attribute) and owner in _MODULES:
            self.needs_numpy |= not fixes.torch_has(name)
            yield from edits.instead(node.func.value, "torch")
            if inner is not None and self._is_list(inner):
                yield from edits.wrapped(inner, "torch.stack(")

    def _unwrapped(self, node: ast.Call, inner: ast.expr, alone: bool) -> Iterator[Edit]:
        bare = alone or edits.is_simple(inner)
        if any(isinstance(n, ast.Constant | _LISTS) for n in getattr(inner, "elts", ())):
            self.has_edits = False  # numbers among tensors
        before, after = ("torch.stack(", ")") if self._is_list(inner) else ("", "") if bare else ("(", ")")
        yield syntax.start(node), syntax.start(inner), before
        yield syntax.end(inner), syntax.end(node), after

    def _is_list(self, node: ast.expr) -> bool:
        """Return whether an expression is a list, or a name to which one is assigned."""
        return any(isinstance(e, _LISTS) for e in (node, *self.text.values(node)))

    def _is_cut_off(self, node: ast.AST) -> bool:
        """Return whether numbers were detached at a node, or on the way to it."""
        return any(True for e in (node, *self.text.back(node)) for _ in self._at(e))


def _root(text: Text, call: ast.Call) -> str:
    receiver = syntax.receiver_of(call)
    return text.of(receiver if receiver is not None else next(iter(call.args), syntax.owner_of(call)))


def detached_answer(at: Failure, name: str, cut: CutLine, history: History, to: str = "the graph") -> Answer:
    """Return the answer where a line cuts a tensor off from the graph, or from a leaf: what keeps it."""
    text, kinds = at.text_at(cut.line), cut.kinds
    reason = f"{at.code(cut.line)} cuts {name} off from {to}"
    if "FORWARD" in kinds:
        return custom.constant(at, text)
    if drawn := [how for how in cut.hows if how.code == SAMPLE]:
        return _drawn(at, text, name, f"{reason}: {drawn[0].how}.")
    if "UNRECORDED" in kinds:
        return _unrecorded(at, text, name, reason)
    line = at.known.cut_at(text.file, cut.line) if kinds == {"DETACHED"} else None  # of several operands
    hows = [*{h.code: _as_written(text, h) for h in (line or cut).hows if h.kind in kinds}.values()]
    kinds = {how.kind for how in hows}
    codes, are_detached = in_words([how.call or how.code for how in hows]), len(hows) > 1 and kinds == {"DETACHED"}
    reason += f": {codes} return tensors without a graph." if are_detached else f": {in_words([h.how for h in hows])}."
    jumps = [how for how in cut.hows if how.kind in ("DISCRETE", "INDICES") and not how.is_cast]
    if jumps and "DETACHED" not in kinds:
        fix = f"use a loss of {_jumping(text, jumps[0])}: a step function has the derivative 0"
        fix += "; cross_entropy takes the scores of classes" * (jumps[0].code == "argmax")
        compared = syntax.parts(text.statement, ast.Compare) if jumps[0].code in ("gt", "lt", "ge", "le") else []
        return Answer(reason, fix, text.edited([e for n in compared[:1] for e in edits.instead(n, text.of(n.left))]))
    changes = history.kept()
    if are_detached or (len(hows) == 1 and kinds <= {"DETACHED", "COPIED"}):
        return Answer(
            reason, f"compute {name} without {codes}{'; NumPy records no graph' * history.needs_numpy}", changes
        )
    return Answer(reason, f"compute {name} with PyTorch's operations alone", changes)


def _drawn(at: Failure, text: Text, name: str, reason: str) -> Answer:
    """Return the answer about what was drawn from a distribution: rsample() keeps the graph, where there is one."""
    owners = [at.value(owner) for owner in text.owners("sample")]
    if any(owner is not None and not owner.has_rsample for owner in owners):
        fix = "a sample of integers has no derivative: use the log_prob of the sample, times its reward, in the loss"
        return Answer(reason, fix)
    changes = text.edited([e for call in text.calls("sample") for e in edits.renamed(call, "rsample")])
    return Answer(reason, f"draw {name} with rsample(), which is computed from the parameters", changes)


def _as_written(text: Text, how: Cut) -> Cut:
    """Return how a line copies numbers with the name of the function that the script calls: torch.as_tensor(…)."""
    is_copied = how.code == "float()" and not text.calls("float")  # by torch.Tensor, element by element
    for call in text.calls(*_BACK) if how.kind == "COPIED" or is_copied else ():
        code = f"torch.{syntax.called(call)}"
        written = f"{code}([…])" if is_copied else how.call.replace(how.code, code, 1)
        return replace(how, kind="COPIED", code=code, call=written)
    return how


def number(at: Failure) -> Answer | None:
    """Return the answer about a number instead of a tensor to go back from."""
    history = History(at.text, at.known)
    for cut in history.cuts():
        reason = f"{at.code(cut.line)} cuts numbers off from the graph: {cut.how}."
        return Answer(
            reason, "call backward on the tensor; use plain numbers for printing and logging only", history.kept()
        )
    return None


def _unrecorded(at: Failure, text: Text, name: str, reason: str) -> Answer:
    """Return the answer about what was computed where nothing is recorded."""
    function = next(text.around(ast.FunctionDef), None)
    if function is not None and any(syntax.last_name(d) == "once_differentiable" for d in function.decorator_list):
        return Answer(f"{reason}: once_differentiable has it.", custom.RECORD)
    if changes := updates.kept_leaves(text):
        return Answer(f"{reason}: the name now belongs to a new tensor.", "change the tensor in place", changes)
    changes = fixes.recorded(text)
    switches = [
        c for c in syntax.calls(text.tree, "set_grad_enabled") if any(c.lineno == change.first for change in changes)
    ]
    if switches:
        where = at.where(switches[0].lineno)
        fix = "use a block, with torch.no_grad():, around what needs no gradient; or switch the recording on again"
        return Answer(f"{reason}: {where} switches recording off for good.", fix, changes)
    fix = f"compute {name} without no_grad(); such a block is for what needs no gradient"
    if not changes and function is not None:  # a caller is in such a block
        fix = f"record in {function.name}, whose caller does not: write @torch.enable_grad() above it"
    return Answer(f"{reason}: no_grad() records nothing.", fix, changes)


def _jumping(text: Text, how: Cut) -> str:
    """Return the operand of the step function at a line: out, where the script has out.argmax(1), or (out > 0)."""
    for call in text.calls(how.code):
        return f"{text.of(text.operand(call) or call)} itself, not of {text.of(call)}"
    for node in syntax.parts(text.statement, ast.Compare):
        return f"{text.of(node.left)} itself, not of {text.of(node)}"
    return f"what {how.code} is given"
