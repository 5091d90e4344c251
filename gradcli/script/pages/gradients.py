"""The effects of a call on a script's gradients: hooks, `.grad` before and after, and values that are not finite."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import numpy as np

from gradcli.explain.safer import safer
from gradcli.explain.sections import HVP, JVP, VJP, Grad, Math, Name, Partial, Typed, VectorProduct, sentence
from gradcli.notation.numbers import array_text
from gradcli.pytorch.backward import Call, Contribution, Pulled
from gradcli.pytorch.cuts import CUTS
from gradcli.pytorch.record import Step, edge_of, finite
from gradcli.pytorch.tensor import Tensor
from gradcli.script.errors.history import History
from gradcli.script.errors.source import Text
from gradcli.script.errors.syntax import parts
from gradcli.script.pages.quantities import by_module
from gradcli.script.scene import CallScene, line_of
from gradcli.script.system import reachable
from gradcli.script.written import decimal
from gradcli.wrapping import in_words

Array = np.ndarray[Any, Any]
Sentence = tuple[Math, ...]

_GRAD = Typed(".grad")
_LISTED = 16  # leaves whose gradients are listed one by one where no formula is shown
_MANY = 2  # leaves whose .grad is listed one by one
_LONG = 8  # numbers that are not listed again
# What is said of what is returned, where a script asks for it by name.
_J, _H, _V, _U = (Name(name) for name in "JHvu")
_ROWS = sentence("returns {}, computed row by row: one backward for each output, with a one-hot {}.", _J, _V)
_COLUMNS = sentence("returns {}, computed column by column: one {} for each input, with a one-hot {}.", _J, JVP, _U)
_SYMMETRIC = "returns {}, which is also {}, because {} is symmetric."
RETURNED: dict[str, Sentence] = {
    "jacobian": ("jacobian ", *_ROWS),
    "jacrev": ("jacrev ", *_ROWS),
    "jacfwd": ("jacfwd ", *_COLUMNS),
    "hessian": ("hessian returns ", _H, ", the Jacobian of the gradient."),
    "gradcheck": ("gradcheck compares ", _J, " with finite differences of the outputs."),
    "vjp": ("vjp returns ", VJP, "."),
    "jvp": ("jvp returns ", JVP, "."),
    "hvp": ("hvp ", *sentence(_SYMMETRIC, HVP, VectorProduct("H", "u", first=True), _H)),
}
SHOWN = 36  # elements of an array that is written out


def done(call: Call, scene: CallScene, explained: bool) -> list[Sentence]:
    """Return the effects of a call; `explained` is whether the page shows its gradients."""
    lines = [*((text,) for text in _hooks(call, scene)), *_accumulated(call, scene, explained)]
    lines += [*_not_kept(call, scene), *_unused(call, scene), *_unreached(call, scene)]
    if call.freed:
        said = f"The graph is freed now; {{}} would keep it for another {'call' if call.returns else 'backward'}."
        lines.append(sentence(said, Typed("retain_graph=True")))
    return lines


def _hooks(call: Call, scene: CallScene) -> Iterator[str]:
    """Yield the changes by hooks, in their order."""
    for k, change in enumerate(call.changes):
        if not k:
            yield "Hooks changed gradients in this backward; the formulas above leave that out."
        yield f"{_hook(change, scene)}: {array_words(change.before._a)} → {array_words(change.after._a)}"


def _hook(change: Any, scene: CallScene) -> str:
    """Return the name of a hook: x's hook (line 5), or that of a module."""
    module, hook = getattr(change.hook, "of", (None, change.hook))
    function = hook if hasattr(hook, "__code__") else type(hook).__call__
    code = getattr(function, "__code__", None)
    name = getattr(hook, "__name__", "<lambda>")
    label = "" if name.startswith("<") else f" {name}"
    if code is not None and not code.co_filename.startswith("<frozen"):
        label += f" ({scene.where(line_of(code.co_filename, code.co_firstlineno))})"
    if module is not None:
        called = scene.names.of(module) or type(module).__name__
        return f"{called}'s backward hook{label}, the gradient of its input"
    owner = scene.recorded.steps.get(change.edge) or scene.names.of(change.edge) or change.edge.name()
    return f"{owner}'s hook{label}"


def _accumulated(call: Call, scene: CallScene, explained: bool) -> Iterator[Sentence]:
    """Yield each `.grad` before and after the call."""
    if explained and _is_first_of_many(call, scene):
        first, *others = call.contributions
        whose: Sentence = ("Each ", _GRAD) if others else (Grad(scene.name(first.tensor)),)
        yield *whose, " was None before, and now holds the values above."
        return
    if not explained and len(call.contributions) > _LISTED:
        yield from _by_module(call, scene)
    else:
        yield from _of_leaves(call, scene, explained)
    yield from _of_intermediates(call, scene)
    if call.request is not None:
        yield *RETURNED[call.request.name], " No ", _GRAD, " changes."
    elif call.returns and call.contributions:
        yield f"grad returns {'this' if len(call.contributions) == 1 else 'these'}; no ", _GRAD, " changes."


def _is_first_of_many(call: Call, scene: CallScene) -> bool:
    """Return whether the page shows many numbers that each `.grad` holds now, and held none before."""
    every = call.contributions
    many = len(every) > _MANY or sum(c.tensor.numel() for c in every) > _LONG
    none_before = all(c.before is None and c.after is not None for c in every)
    return many and none_before and not call.changes and all(scene.name(c.tensor) in scene.recorded.wrt for c in every)


def _by_module(call: Call, scene: CallScene) -> Iterator[Sentence]:
    """Yield the norm of all gradients of each module."""
    by_name = {scene.name(c.tensor): c for c in call.contributions}
    for module, names in by_module(list(by_name)).items():
        squares = (np.vdot(a, a) for a in (by_name[name].grad._a.astype(float) for name in names))
        norm = f"norm {np.sqrt(sum(squares)):.6g}"
        what: Sentence = (Grad(names[0]),) if len(names) == 1 else (_GRAD, f" of {module}.…, {len(names)} arrays")
        yield *what, f": {norm}{' is added' if any(by_name[n].before is not None for n in names) else ''}"


def _of_leaves(call: Call, scene: CallScene, explained: bool) -> Iterator[Sentence]:
    order = {name: k for k, name in enumerate(scene.recorded.wrt)}
    added: list[str] = []
    for c in sorted(call.contributions, key=lambda c: order.get(scene.name(c.tensor), 0)):
        name = scene.name(c.tensor)
        if c.after is not None:
            if c.before is not None and c.before.any():
                added.append(name)
            yield Grad(name), f": {_held(c, scene)} → {array_words(c.after._a)}"
        elif call.request is None and (not explained or call.changes):
            yield Partial("", name), f": {array_words(c.grad._a)}"
    if named := [name for name in added if name in scene.names.tensors]:
        yield (f"To start afresh, write `{named[0]}.grad = None` (or `optimizer.zero_grad()`) before the call.",)


def _held(c: Contribution, scene: CallScene) -> str:
    """Return a `.grad` before the call, the line that left it, and what is added to it: [2] (left by line 5) + [4]."""
    cleared, reached = c.tensor._cleared, scene.reached.get(id(c.tensor))
    if c.before is None:
        return f"None (cleared in {scene.where(cleared)})" if cleared is not None else "None"
    added = f" + {array_words(c.grad._a)}" if c.before.size <= SHOWN else ""
    if c.before.any():
        return array_words(c.before) + (f" (left by {scene.where(reached)})" if reached else "") + added
    if cleared is None and c.after is not None and c.after._memory.changed is not None:
        cleared = c.after._memory.changed[0]
    return array_words(c.before) + (f" (set to 0 in {scene.where(cleared)})" if cleared is not None else "") + added


def _of_intermediates(call: Call, scene: CallScene) -> Iterator[Sentence]:
    for c in call.retained:
        name, grad = scene.name(c.tensor), array_words(c.after._a)
        if c.before is not None:
            yield Grad(name), f": {array_words(c.before)} + {array_words(c.grad._a)} → {grad}"
        elif not call.returns:
            yield Grad(name), f": None → {grad}, kept by ", Typed(f"{name}.retain_grad()")


def _not_kept(call: Call, scene: CallScene) -> Iterator[Sentence]:
    """Yield which intermediates keep no gradient that the script asks for elsewhere."""
    tree = Text(scene.script.name, scene.script.source).tree
    read = {ast.unparse(n.value) for n in parts(tree, ast.Attribute) if n.attr == "grad"}
    for edge, name in scene.recorded.steps.items() if not call.returns else ():
        if name in read and isinstance(edge, Step) and edge.retained is None:
            retain = Typed(f"{name}.retain_grad()")
            yield Grad(name), f" stays None: {name} is computed, not a leaf. ", retain, " before this keeps it."


def _unused(call: Call, scene: CallScene) -> Iterator[Sentence]:
    """Yield which inputs of `grad` have no gradient, as nothing was computed from them."""
    missed = [x for x in call.inputs or () if call.returns and call.targets[edge_of(x)] is None]
    if names := [scene.names.of(x) or x._called or "the input" for x in missed]:
        who, its = (names[0], "its gradient is") if len(names) == 1 else (in_words(names), "their gradients are")
        said = f"The result does not depend on {who}: {its} None, or zeros with {{}}."
        yield sentence(said, Typed("materialize_grads=True"))


def _unreached(call: Call, scene: CallScene) -> Iterator[Sentence]:
    """Yield the tensors whose `.grad` stays None because the graph is cut between them and the loss."""
    left = _left(call, scene)
    if not left or not CUTS:
        return
    for cut in History(Text(scene.script.name, scene.script.source, scene.line)).cuts():
        if names := [n for n, x in left.items() if cut.leads_to(x)]:
            left = {n: x for n, x in left.items() if n not in names}
            which: Sentence = (Grad(names[0]),) if len(names) == 1 else (_GRAD, f" of {in_words(names)}")
            it = "it" if len(names) == 1 else "them"
            yield *which, f" stays None: {scene.code(cut.line)} cuts the loss off from {it}: {cut.how}."


def _left(call: Call, scene: CallScene) -> dict[str, Tensor]:
    """Return the tensors of the script, by name, that should get a `.grad` and that no call has reached."""
    reached = {id(c.tensor) for c in call.contributions}
    without = {n: x for n, x in scene.names.tensors.items() if x._grad is None and x.requires_grad}
    leaves = {n: x for n, x in without.items() if x._fn is None or (x._fn.retained and not x._fn.reached)}
    return {n: x for n, x in leaves.items() if id(x) not in reached} if call.inputs is None else {}


def array_words(a: Any) -> str:
    """Return an array as words: its numbers, or how many they are."""
    if a.size > SHOWN:
        return "×".join(map(str, a.shape[:-1])) + " numbers"
    numbers = decimal(a[..., 0]) if a.dtype.kind == "f" else a[..., 0]
    return array_text(numbers, lambda v: f"{v:.6g}" if isinstance(v, float) else str(v))


def not_finite(call: Call, scene: CallScene, where: str = "") -> Iterator[str]:
    """Yield a warning of gradients that are not finite, with the operation and the line where that arose, and a fix.

    `where` says which call it is, where no page does.
    """
    for c in call.contributions:
        bad = c.grad._a[~np.isfinite(c.grad._a)]
        if bad.size:
            what = "nan" if np.isnan(bad).any() else "inf" if (bad > 0).all() else "-inf"
            yield f"warning: {where}the gradient of {scene.name(c.tensor)} is {what}: {_arose(call, scene)}"
            if (step := _origin(call)) is not None:
                yield f"fix: {_safer(call, step, scene)}"
            return


def _arose(call: Call, scene: CallScene) -> str:
    if not all(finite(v._a) for _, v in call.roots):
        return "v itself is not finite"
    result = _origin(call)
    if call.arose is None or result is None:
        return "it arises where contributions are summed" if not call.changes else "a hook returned it"
    what = "local derivative" if result is call.arose.step else "value"
    hidden = ": 0·inf is nan" * (result is call.arose.step and _is_zero_times_inf(call.arose))
    where = scene.code(result.line).rstrip(",")
    return f"it arises in {_op(result)} ({where}), whose {what} is not finite there{hidden}"


def _origin(call: Call) -> Step | None:
    """Return the step whose result or gradient is the first that is not finite."""
    if call.arose is None or not all(finite(v._a) for _, v in call.roots):
        return None
    step = call.arose.step
    return next((s for s in reachable([step]) if s.arose), step)


def _op(step: Step) -> str:
    function: Any = getattr(step, "whole", step)  # of one of several outputs
    return function.cls.__name__ if step.is_custom else step.recipe.op


def _safer(call: Call, step: Step, scene: CallScene) -> str:
    """Return the numerically safer expression for a step, in one line."""
    edge, x = step.edges[0] if step.edges else None, next(iter(step.operands or ()), None)
    name = scene.recorded.steps.get(edge, "") if edge is not None else scene.names.of(x)
    name, op = name or (scene.names.of(edge) if edge is not None else "") or "x", _op(step)
    behind = [s for s in reachable(edge_of(y) for y, _ in call.roots) if _op(s) == "where"]
    chosen = any(step in reachable([e]) for s in behind for e in s.edges if isinstance(e, Step))
    return safer(op, name, chosen)


def _is_zero_times_inf(pulled: Pulled) -> bool:
    """Return whether a gradient of 0 met a derivative that is infinite."""
    if pulled.step.is_custom:
        return False
    is_zero = bool((pulled.grad_output._a == 0).any())
    return is_zero and any(np.isnan(g._a).any() for g in pulled.grad_inputs if g is not None)
