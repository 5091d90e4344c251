"""Answers about a script's own Functions: what forward saves for backward, and how forward is called."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

from gradcli.script.errors.failure import Answer, Failure
from gradcli.script.errors.source import Text
from gradcli.script.errors.syntax import called, calls, elements, last_name, methods, owner_of, parts

RECORD = "remove it: a backward of PyTorch's operations can be recorded"
_TOPIC = "custom-function"


def saved(at: Failure, *_: str) -> Answer | None:
    """Return the answer where backward unpacks another number of tensors than forward has saved."""
    match at.text.statement:
        case ast.Assign([target], ast.Attribute(_, "saved_tensors") as tensors):
            names, count = [at.text.of(e) for e in elements(target)], len(at.value(tensors))
            number = f"{count} tensor{'s' * (count != 1)}" if count else "no tensors"
            reason = f"forward saves {number} for backward, and {at.code(at.line)} unpacks {len(names)}."
            fix = f"save in forward what backward reads, in that order: ctx.save_for_backward({', '.join(names)})"
            return Answer(reason, fix, topic=_TOPIC)
    return None


def constant(at: Failure, text: Text) -> Answer:
    """Return the answer where a backward that is differentiated reads what forward has computed at a line.

    Nothing is recorded in forward, so that backward takes it as a constant.
    """
    what = next(_computed(text), "it")
    reason = (
        f"{at.code(text.line)} computes {what} in the forward of a Function, where nothing is recorded: backward takes "
        f"{what} as a constant when it is differentiated."
    )
    fix = f"save the inputs, with ctx.save_for_backward, and compute {what} from them in backward"
    return Answer(reason, fix, topic="double-backward")


def _computed(text: Text) -> Iterator[str]:
    """Yield what the forward at a line computes there and backward reads: an attribute of ctx, or a saved tensor."""
    cls = next(text.around(ast.ClassDef), None)
    named = {f.name: f for f in (methods(cls) if cls is not None else ()) if f.args.args}
    if not {"forward", "backward"} <= named.keys():
        return
    reads = {n.attr for n in parts(named["backward"], ast.Attribute)}
    for statement in parts(named["forward"], ast.Assign):
        match statement.targets:
            case [ast.Attribute(ast.Name(), name)] if name in reads and _is_there(text, statement.value):
                yield f"ctx.{name}"
    for call in calls(named["forward"], "save_for_backward"):
        yield from (a.id for a in call.args if isinstance(a, ast.Name) and _is_there(text, a))


def _is_there(text: Text, node: ast.expr) -> bool:
    """Return whether a value is computed at the line of a text."""
    while isinstance(node, ast.Name) and (values := text.values(node)):
        node = values[0]
    return node.lineno <= text.line <= (node.end_lineno or 0) and not isinstance(node, ast.Name | ast.Constant)


def kept(at: Failure, way: Iterable[ast.AST] = ()) -> Answer | None:
    """Return the answer about a Function whose gradient is differentiated, at the line or on the way to it.

    Its forward keeps what it has computed, or its backward is not recorded.
    """
    nodes = [n for e in (at.text.statement, *way) for n in parts(e, ast.Attribute) if n.attr == "apply"]
    functions = [at.text.of(n.value) for n in nodes]
    for cls in [c for c in parts(at.text.tree, ast.ClassDef) if c.name in functions]:
        for function in methods(cls, "backward") if way else ():
            if any(last_name(d) == "once_differentiable" for d in function.decorator_list):
                return Answer(f"the backward of {cls.name} is not recorded: once_differentiable has it.", RECORD)
        for line in sorted({s.lineno for f in methods(cls, "forward") for s in f.body}):
            if next(_computed(at.text.on(line)), None) is not None:
                return constant(at, at.text.on(line))
    return None


def called_directly(at: Failure, *_: str) -> Answer | None:
    """Return the answer where a script calls forward of a Function instead of apply."""
    for call in at.text.calls("forward"):
        cls: Any = at.value(owner_of(call))
        if isinstance(cls, type) and hasattr(cls, "apply") and hasattr(cls, "backward"):
            reason = f"{at.code(at.line)} calls {called(call)} itself; only apply passes ctx, and records the backward."
            return Answer(reason, f"call {at.text.of(owner_of(call))}.apply", topic=_TOPIC)
    return None


def unset(at: Failure, owner: str, name: str) -> Answer | None:
    """Return the answer where backward reads an attribute of ctx that forward does not set."""
    for node in [n for n in parts(at.text.statement, ast.Attribute) if n.attr == name and owner.endswith("Backward")]:
        ctx = at.text.of(node.value)
        reason = f"{at.code(at.line)} reads {ctx}.{name}, and forward does not set it."
        return Answer(reason, f"set it in forward, {ctx}.{name} = …", topic=_TOPIC)
    return None
