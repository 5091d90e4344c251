"""Silent surprises: what PyTorch computes as the script says, and as its author has hardly meant it.

Each is a sentence on the page where it arises: values that came through NumPy, entries that a clamp cuts off, `eval()`
beside gradients, hooks that compute a gradient and do not return it, hooks that a call of `forward` skips, and a
constructor that Python does not call.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from gradcli.pytorch.tables import pytorch_names
from gradcli.record.record import CallSite, Cut, Operation
from gradcli.script.errors.edits import instead, is_simple
from gradcli.script.errors.history import SAMPLE, History
from gradcli.script.errors.modules import misspelt_init
from gradcli.script.errors.source import Change, Text
from gradcli.script.errors.syntax import bound, called, calls, last_name, owner_of, parts
from gradcli.script.known import CutLine, line_at, line_of
from gradcli.script.scene import CallScene, without_comment
from gradcli.text.wrapping import in_words

_NUMBERS = ("ARRAY", "LIST", "NUMBER", "COPIED")
_PURE = {  # functions that return a new tensor
    *("relu", "sigmoid", "tanh", "softmax", "log_softmax", "dropout", "normalize", "clamp", "clip", "masked_fill"),
    *("reshape", "view", "flatten", "transpose", "permute", "squeeze", "unsqueeze", "float", "double", "to", "detach"),
}
# The hooks of modules, as PyTorch keeps them: those on the way forward, and all.
_FORWARD = ("forward", "forward_pre")
_HOOKS = (*_FORWARD, "backward", "backward_pre")


def surprises(scene: CallScene, hooks: Sequence[Any]) -> Iterator[str]:
    """Yield what a script has hardly meant, in what a call goes back through, with the hooks there."""
    history = History(Text(scene.script.name, scene.script.source, scene.line), scene.known)
    found = chain(
        _through_numbers(history, scene),
        _clamped(history.text, scene),
        _evaluating(history.text, scene),
        _returning_none(history.text, hooks, scene),
        _skipped(history, scene),
        _unread_result(history, scene),
        _never_called(history.text, scene),
    )
    for text in found:
        if text not in scene.told:
            scene.told.add(text)
            yield text


def _through_numbers(history: History, scene: CallScene) -> Iterator[str]:
    """Yield which gradients leave out a part of the loss that was computed from numbers, beside one that was not."""
    reached = {scene.recorded.name(c.quantity): c.quantity for c in scene.recorded.call.leaves}
    events = scene.recorded.record.events
    drawn = {
        q for e in events if isinstance(e, Cut) and e.code == SAMPLE for q in e.leaves
    }  # whose numbers are rewards
    for cut in history.cuts():
        names = [name for name, q in reached.items() if cut.leads_to(q) and q not in drawn]
        hows = [how for how in cut.hows if how.code != "int()"]  # an integer has no gradient
        if names and any(how.kind in _NUMBERS for how in hows):
            changes = history.kept()
            kept = f"; `{_code(changes[0])}` keeps it in the graph" if len(changes) == 1 else ""
            gradients = f"gradient of {names[0]} leaves" if len(names) == 1 else f"gradients of {in_words(names)} leave"
            how = CutLine(hows).how
            yield f"the {gradients} out a part of the loss: {scene.code(cut.line)} cuts it off: {how}{kept}"


def _code_at(node: Any, scene: CallScene) -> str:
    """Return the line of the script that has a node, with its number."""
    return scene.code(line_of(scene.script.name, node.lineno))


def _code(change: Change) -> str:
    """Return the lines of a change as code in a sentence."""
    return " ".join(map(without_comment, change.shown()))


def _clamped(text: Text, scene: CallScene) -> Iterator[str]:
    """Yield how many entries a clamp cuts off: their derivative is 0."""
    lines: set[CallSite] = set()
    record = scene.recorded.record
    for node, q in scene.recorded.results.items():
        o = scene.recorded.producer[node]
        if not o.grad_fn.startswith("Clamp") or o.site in lines or not isinstance(o.operands[0], int):
            continue
        before, result = (record.quantities[k].numbers.array for k in (o.operands[0], q))
        if before.shape == result.shape and (count := int((before != result).sum())):
            lines.add(o.site)
            of = f" of {name}" if (name := _name(o, scene)) else ""
            some = f"{count} of {result.size} entries{of}" if result.size > 1 else f"the value{of}"
            line = line_at(o.site)
            straight = _straight(text.on(line), line, scene)
            yield f"{scene.code(line)} cuts off {some}: the derivative is 0 there{straight}"


def _straight(text: Text, line: int, scene: CallScene) -> str:
    """Return how a clamp is written that passes the gradient on where it cuts off."""
    for c in text.calls("clamp", "clip", "clamp_min", "clamp_max") if scene.file(line) == text.file else ():
        if (operand := text.operand(c)) is not None and is_simple(operand):
            x = text.of(operand)
            return f"; `{x} + ({text.of(c)} - {x}).detach()` has the same values and the derivative 1"
    return ""


def _name(operation: Operation, scene: CallScene) -> str:
    """Return the name of the first operand of an operation; "" where it has none."""
    q = operation.operands[0]
    return scene.recorded.names.get(q) or scene.recorded.record.quantities[q].name if isinstance(q, int) else ""


def _evaluating(text: Text, scene: CallScene) -> Iterator[str]:
    """Yield which modules get gradients in evaluation mode, beside others that train, or none at all."""
    id_of = scene.known.id_of
    got = {c.quantity for c in scene.recorded.call.leaves if c.after is not None}
    own = {n: m for n, m in scene.names.modules.items() if any(id_of(p) in got for p in m.parameters(recurse=False))}
    # The evaluation mode of a normalisation is used in training too: it keeps the running statistics.
    still = [n for n, m in own.items() if not m.training and "Norm" not in type(m).__name__]
    of_modules = {id_of(p) for m in own.values() for p in m.parameters(recurse=False)}
    if not still or (len(still) == len(own) and got - of_modules):  # what the gradients of the inputs are for
        return
    whole = [n for n, m in scene.names.modules.items() if all(not inner.training for inner in m.modules())]
    outer = [n for n in whole if not any(n.startswith(f"{other}.") for other in whole)]
    names = [n for n in outer if any(s == n or s.startswith(f"{n}.") for s in still)]
    for name in names:
        around = name.split(".")
        for c in calls(text.tree, "eval"):
            if text.of(owner_of(c)).rpartition(".")[2] in around:
                yield (
                    f"{_code_at(c, scene)} does not stop gradients: {name} gets them all the same. It only changes "
                    f"what layers such as dropout compute; `{text.of(owner_of(c))}.requires_grad_(False)` freezes the "
                    "parameters"
                )
                return


def _returning_none(text: Text, hooks: Sequence[Any], scene: CallScene) -> Iterator[str]:
    """Yield which hooks compute a value that nothing reads, and return None."""
    every = [*hooks, *(h for m in scene.names.modules.values() for h in _hooks_of(m, _FORWARD))]
    for code in dict.fromkeys(getattr(_function(h), "__code__", None) for h in every):
        if code is None or code.co_filename != scene.script.name:
            continue
        for function in parts(text.tree, ast.FunctionDef):
            heads = (function.lineno, *(d.lineno for d in function.decorator_list))
            if min(heads) == code.co_firstlineno and (statement := _forgotten_return(function)) is not None:
                value = text.of(statement.targets[0] if isinstance(statement, ast.Assign) else statement.value)
                yield (
                    f"the hook {function.name} returns None, which leaves everything as it is, and nothing reads what "
                    f"{_code_at(statement, scene)} computes: `return {value}` replaces it"
                )


def _hooks_of(module: Any, kinds: Sequence[str] = _HOOKS) -> list[Any]:
    """Return the hooks of a module, of whichever PyTorch."""
    own: Any = vars(module).get("_Module__hooks")  # of gradcli's
    known = [getattr(module, f"_{k}_hooks", {}) if own is None else own[k.replace("forward_", "")] for k in kinds]
    return [hook for hooks in known for hook in hooks.values()]


def _function(hook: Any) -> Any:
    """Return the script's function that a hook calls."""
    _, inner = getattr(hook, "of", (None, hook))
    return getattr(inner, "__wrapped__", inner)


def _forgotten_return(function: ast.FunctionDef) -> ast.Assign | ast.Expr | None:
    """Return the last statement of a hook, if its value is what the hook probably meant to return.

    The function returns nothing and changes nothing in place, and the statement computes a tensor.
    """
    if any(r.value is not None for r in parts(function, ast.Return)) or parts(function, ast.Yield, ast.Global):
        return None
    if any(map(_is_in_place, ast.walk(function))):
        return None
    known = {a.arg for a in function.args.args} | bound(function)
    match function.body[-1]:
        case ast.Assign([ast.Name()], value) as last if any(_computes(n, known) for n in ast.walk(value)):
            return last
        case ast.Expr(value) as last if _computes(value, known):
            return last
    return None


def _is_in_place(node: ast.AST) -> bool:
    """Return whether syntax changes a tensor in place: `g.mul_(2)`, `g *= 2` or `g[0] = 2`."""
    match node:
        case ast.Call(ast.Attribute(_, name)):
            return name.endswith("_")
        case ast.Subscript():
            return isinstance(node.ctx, ast.Store)
    return isinstance(node, ast.AugAssign)


def _computes(node: ast.AST, known: set[str]) -> bool:
    """Return whether an expression computes a tensor of known names."""
    if not any(n.id in known for n in parts(node, ast.Name)):
        return False
    match node:
        case ast.Call(ast.Attribute(owner, name)):
            is_method = name in pytorch_names()["Tensor"] and any(n.id in known for n in parts(owner, ast.Name))
            return is_method or (isinstance(owner, ast.Name) and owner.id in ("torch", "F"))
    return isinstance(node, ast.BinOp | ast.UnaryOp)


def _skipped(history: History, scene: CallScene) -> Iterator[str]:
    """Yield which calls of `forward` on the way skip the hooks of their module."""
    hooked = {n.rpartition(".")[2]: n for n, m in scene.names.modules.items() if _hooks_of(m)}
    for c in [c for e in history.way for c in calls(e, "forward")] if hooked else ():
        owner = owner_of(c)
        if owner is not None and last_name(owner) in hooked:
            name, code = hooked[last_name(owner)], _code_at(c, scene)
            (change,) = history.text.on(c.lineno).edited(instead(c.func, history.text.of(owner)))
            yield f"{code} skips the hooks of {name}; `{_code(change)}` runs them"
            return


def _unread_result(history: History, scene: CallScene) -> Iterator[str]:
    """Yield which statement computes a new tensor from one that the call goes back through, and drops the result."""
    for statement in parts(history.text.tree, ast.Expr):
        call, text = statement.value, history.text
        if not isinstance(call, ast.Call) or called(call) not in _PURE:
            continue
        names = [text.of(node) for node in (owner_of(call), *call.args[:1])]
        name = next((n for n in names if n in scene.names.tensors and history.has(n)), "")
        if name and all(k.arg not in ("inplace", "out") for k in call.keywords):
            yield f"nothing reads what {_code_at(statement, scene)} computes; `{name} = {text.of(call)}` keeps it"
            return


def _never_called(text: Text, scene: CallScene) -> Iterator[str]:
    """Yield which class of a module has a constructor of another name, which has not run."""
    names = {type(m).__name__ for m in scene.names.modules.values()}
    for cls in [c for c in parts(text.tree, ast.ClassDef) if c.name in names]:
        if (function := misspelt_init(cls)) is not None:
            where = scene.where(line_of(scene.script.name, function.lineno))
            yield f"{where} defines `{function.name}` in {cls.name}: Python calls `__init__`, and so this has not run"
