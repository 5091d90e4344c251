"""Answers about a script's own Functions: what forward saves for backward, and how forward is called."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gradcli.pytorch.autograd.function import Function
from gradcli.script.errors import edits
from gradcli.script.errors.failure import Answer, Failure
from gradcli.script.errors.flow import Flow
from gradcli.script.errors.source import Change, Text
from gradcli.script.errors.syntax import bound, called, calls, elements, end, methods, owner_of, parts, start

_TOPIC = "custom-function"


def saved(at: Failure, *_: str) -> Answer | None:
    """Return the answer where backward unpacks another number of tensors than forward has saved."""
    match at.text.statement:
        case ast.Assign([target], ast.Attribute(_, "saved_tensors") as tensors):
            names, count = [at.text.of(e) for e in elements(target)], len(at.value(tensors))
            number = f"{count} tensor{'s' * (count != 1)}" if count else "no tensors"
            reason = f"forward saves {number} for backward, and {at.code(at.line)} unpacks {len(names)}."
            fix = "save in forward what backward reads, in that order"
            return Answer(reason, fix, _saved_in_forward(at, names), _TOPIC)
    return None


def _saved_in_forward(at: Failure, names: list[str]) -> list[Change]:
    """Return the change that saves tensors in forward under the names that backward gives them."""
    forward = _forward(at)
    if forward is None:
        return []
    context, *arguments = [a.arg for a in forward.args.args]
    saves, returns = calls(forward, "save_for_backward"), parts(forward, ast.Return)
    assigned = bound(forward)
    known = {*names} <= {*arguments} | assigned
    if saves:
        new = f"{at.text.of(saves[0].func)}({', '.join(names)})"
        return at.text.edited(edits.instead(saves[0], new)) if known else []
    if not known:
        names = arguments if len(arguments) == len(names) else []
    if not names or not returns or assigned & {*names} & {*arguments}:  # a new value of an argument
        return []
    return at.text.before(returns[-1], f"{context}.save_for_backward({', '.join(names)})")


def _forward(at: Failure) -> ast.FunctionDef | None:
    """Return the function that keeps what backward needs, of the class at the line: setup_context, or else forward."""
    cls = next(at.text.around(ast.ClassDef), None)
    named = {f.name: f for f in (methods(cls) if cls is not None else ()) if f.args.args}
    return named.get("setup_context", named.get("forward"))


def constant(at: Failure, text: Text) -> Answer:
    """Return the answer where a backward that is differentiated reads what forward has computed at a line.

    Nothing is recorded in forward, so that backward takes it as a constant.
    """
    kept = next(_computed(text), None)
    what = f"ctx.{kept.name}" if kept is not None and kept.is_attribute else kept.name if kept is not None else "it"
    reason = (
        f"{at.code(text.line)} computes {what} in the forward of a Function, where nothing is recorded: backward takes "
        f"{what} as a constant when it is differentiated."
    )
    fix = f"save the inputs, with ctx.save_for_backward, and compute {what} from them in backward"
    return Answer(reason, fix, kept.changes(text) if kept is not None else [], "double-backward")


@dataclass(frozen=True)
class _Kept:
    """A value that forward computes, and keeps for backward: as an attribute of ctx, or as a saved tensor."""

    name: str
    is_attribute: bool
    value: ast.expr
    node: ast.expr | ast.Assign  # the saved name, or the statement that sets the attribute
    forward: ast.FunctionDef
    backward: ast.FunctionDef

    def changes(self, text: Text) -> list[Change]:
        """Return the change that saves the inputs, and computes the value from them in backward."""
        context, *arguments = [a.arg for a in self.forward.args.args]
        used = list(dict.fromkeys(n.id for n in parts(self.value, ast.Name) if n.id in arguments))
        own = bound(self.forward) & {n.id for n in parts(self.value, ast.Name)}
        if own or not used:
            return []
        if self.is_attribute:
            return self._of_attribute(text, context, used)
        return self._of_saved(text, used)

    def _of_attribute(self, text: Text, context: str, used: Sequence[str]) -> list[Change]:
        saves = calls(self.forward, "save_for_backward")
        saved = [text.of(a) for a in saves[0].args] if saves else [*used]
        if not {*used} <= {*saved}:
            return []
        position = start(self.node)
        new = [] if saves else [(position, position, f"{context}.save_for_backward({', '.join(saved)}); ")]
        ctx = self.backward.args.args[0].arg
        code = text.of(self.value)
        names = [n for n in parts(self.value, ast.Name) if n.id in used]
        for n in sorted(names, key=start, reverse=True):
            column = n.col_offset - self.value.col_offset
            code = f"{code[:column]}{ctx}.saved_tensors[{saved.index(n.id)}]{code[column + len(n.id) :]}"
        reads = [n for n in parts(self.backward, ast.Attribute) if n.attr == self.name and text.of(n.value) == ctx]
        return text.edited([*new, *(e for n in reads for e in edits.instead(n, f"({code})"))])

    def _of_saved(self, text: Text, used: Sequence[str]) -> list[Change]:
        unpacked = [s for s in parts(self.backward, ast.Assign) if isinstance(s.value, ast.Attribute)]
        unpacked = [s for s in unpacked if s.value.attr == "saved_tensors"]  # type: ignore[attr-defined]
        names = [n for s in unpacked for n in elements(s.targets[0]) if text.of(n) == self.name]
        if len(used) != 1 or not names or {*used} & bound(self.backward):
            return []
        behind = end(unpacked[0])
        edited = [*edits.instead(self.node, used[0]), *edits.instead(names[0], used[0])]
        return text.edited([*edited, (behind, behind, f"; {self.name} = {text.of(self.value)}")])


def _computed(text: Text) -> Iterator[_Kept]:
    """Yield what the forward at a line computes there, and backward reads."""
    cls = next(text.around(ast.ClassDef), None)
    named = {f.name: f for f in (methods(cls) if cls is not None else ()) if f.args.args}
    if not {"forward", "backward"} <= named.keys():
        return
    forward, backward = named["forward"], named["backward"]
    flow, reads = Flow(text), {n.attr for n in parts(backward, ast.Attribute)}
    for statement in parts(forward, ast.Assign):
        match statement.targets:
            case [ast.Attribute(ast.Name(), name)] if name in reads:
                value = _there(text, flow, statement.value)
                if value is not None:
                    yield _Kept(name, True, value, statement, forward, backward)
    for call in calls(forward, "save_for_backward"):
        for argument in call.args:
            value = _there(text, flow, argument)
            if value is not None and isinstance(argument, ast.Name):
                yield _Kept(argument.id, False, value, argument, forward, backward)


def _there(text: Text, flow: Flow, node: ast.expr) -> ast.expr | None:
    """Return the expression that computes a value, where that is at the line of a text; None for any other value."""
    while isinstance(node, ast.Name) and (values := flow.of_name(node)):
        node = values[0]
    is_there = node.lineno <= text.line <= (node.end_lineno or 0)
    return node if is_there and not isinstance(node, ast.Name | ast.Constant) else None


def kept(at: Failure) -> Answer | None:
    """Return the answer about the Function in a call of gradgradcheck whose forward keeps what it has computed."""
    functions = [at.text.of(n.value) for n in parts(at.text.statement, ast.Attribute) if n.attr == "apply"]
    for cls in [c for c in parts(at.text.tree, ast.ClassDef) if c.name in functions]:
        for line in sorted({s.lineno for f in methods(cls, "forward") for s in f.body}):
            if next(_computed(at.text.on(line)), None) is not None:
                return constant(at, at.text.on(line))
    return None


def called_directly(at: Failure, *_: str) -> Answer | None:
    """Return the answer where a script calls forward of a Function instead of apply."""
    for call in at.text.calls("forward"):
        cls: Any = at.value(owner_of(call))
        if isinstance(cls, type) and issubclass(cls, Function):
            reason = f"{at.code(at.line)} calls {called(call)} itself; only apply passes ctx, and records the backward."
            return Answer(reason, "call apply", at.text.edited(edits.renamed(call, "apply")), _TOPIC)
    return None


def unset(at: Failure, owner: str, name: str) -> Answer | None:
    """Return the answer where backward reads an attribute of ctx that forward does not set."""
    for node in [n for n in parts(at.text.statement, ast.Attribute) if n.attr == name]:
        forward, ctx = _forward(at), at.text.of(node.value)
        if forward is None or not owner.endswith("Backward"):
            return None
        reason = f"{at.code(at.line)} reads {ctx}.{name}, and forward does not set it."
        context, *arguments = [a.arg for a in forward.args.args]
        returns = parts(forward, ast.Return)
        changes = at.text.before(returns[-1], f"{context}.{name} = {name}") if name in arguments and returns else []
        return Answer(reason, f"set it in forward, {context}.{name} = …", changes, _TOPIC)
    return None
