"""What a call did to the gradients in a script: hooks, `.grad` before and after, and what is not finite."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from gradcli.notation.numbers import array_text
from gradcli.pytorch.backward import Call
from gradcli.pytorch.cuts import CUTS
from gradcli.pytorch.record import Line, Step, edge_of, finite
from gradcli.script.recorded import reachable
from gradcli.script.scene import Told
from gradcli.wrapping import in_words

_MANY = 2  # leaves whose .grad is told one by one
_LONG = 8  # numbers that are not told again
ROUNDING = 1e-3  # of the largest gradient: what may be lost in float32
# What is said of what is returned, where a script asks for it by name.
_ROWS = "returns J, a row at a time: a backward for each output, with a v that is 1 there and 0 elsewhere."
RETURNED = {
    "jacobian": f"jacobian {_ROWS}",
    "jacrev": f"jacrev {_ROWS}",
    "jacfwd": "jacfwd returns J, a column at a time: J·u for each input, with a u that is 1 there and 0 elsewhere.",
    "hessian": "hessian returns H, which is the Jacobian of the gradient.",
    "gradcheck": "gradcheck compares J with differences: how far the outputs move when an input moves a little.",
    "vjp": "This, vᵀJ, is returned.",
    "jvp": "This, J·u, is returned.",
    "hvp": "This, H·u, is returned; it is uᵀH as well, as H is symmetric.",
}
SHOWN = 36  # elements of an array that is written out


def hooks(call: Call, told: Told) -> Iterator[str]:
    """Yield what hooks changed, in their order."""
    for k, change in enumerate(call.changes):
        if not k:
            yield "Hooks changed gradients on their way; the formulas above are without them."
        yield f"{_hook(change, told)}: {array_words(change.before._a)} → {array_words(change.after._a)}"


def _hook(change: Any, told: Told) -> str:
    """Return what a hook is called: x's hook (line 5), or that of a module."""
    module, hook = getattr(change.hook, "of", (None, change.hook))
    function = hook if hasattr(hook, "__code__") else type(hook).__call__
    code = getattr(function, "__code__", None)
    name = getattr(hook, "__name__", "<lambda>")
    own = "" if name.startswith("<") else f" {name}"
    place = ""
    if code is not None and not code.co_filename.startswith("<frozen"):
        line = Line(code.co_firstlineno)
        line.file = code.co_filename
        place = f" ({told.where(line)})"
    if module is not None:
        return f"{type(module).__name__}'s backward hook{own}{place}"
    steps = told.recorded.steps if told.recorded is not None else {}
    owner = steps.get(change.edge) or told.names.get(id(change.edge)) or change.edge.name()
    return f"{owner}'s hook{own}{place}"


def accumulated(call: Call, told: Told, explained: bool, far: float) -> Iterator[str]:
    """Yield what each leaf's `.grad` was, and what it is; `far` is its `distance` from what is explained."""
    order = [] if told.recorded is None else told.recorded.wrt
    leaves = [(told.name(x), before, own, after, told.reached.get(id(x))) for x, before, own, after in call.leaves]
    first = all(b is None and a is not None and name in told.shown for name, b, _, a, _ in leaves)
    long = len(leaves) > _MANY or sum(x.numel() for x, *_ in call.leaves) > _LONG
    if explained and first and not call.changes and long and far < ROUNDING:
        whose = "Each .grad" if len(leaves) > 1 else f"{leaves[0][0]}.grad"
        yield f"{whose} was None before, and holds the above now{', as far as float32 has digits' * (far > 0)}."
        return
    leaves.sort(key=lambda leaf: order.index(leaf[0]) if leaf[0] in order else 0)
    for name, before, own, after, line in leaves:
        if after is not None:
            held = "None" if before is None else array_words(before)
            held += f" (left by {told.where(line)})" if before is not None and before.any() and line else ""
            held += f" + {array_words(own._a)}" if before is not None and before.size <= SHOWN else ""
            yield f"{name}.grad: {held} → {array_words(after._a)}"
        elif call.asked is None and (not explained or call.changes):
            yield f"∂/∂{name}: {array_words(own._a)}"
    listed = {name for name, *_ in leaves}  # also what is computed, where `inputs=` asks for it
    for name, g in {} if told.recorded is None else told.recorded.kept_gradients().items():
        if name in listed:
            continue
        if name in told.kept:
            before = told.kept[name]
            yield f"{name}.grad: {array_words(before)} + {array_words(g._a - before)} → {array_words(g._a)}"
        elif not call.returns:
            yield f"{name}.grad: None → {array_words(g._a)}, kept by {name}.retain_grad()"
    if call.asked is not None:
        yield f"{RETURNED[call.asked.name]} Every .grad is as it was."
    elif call.returns and call.leaves:
        yield "grad returns " + ("this" if len(call.leaves) == 1 else "these") + ", and leaves every .grad as it was."


def distance(call: Call, told: Told) -> float:
    """Return how far the gradients of a page, in float64, are from the script's, as a share of the largest of these.

    It is 0 where nobody sees it, and infinite where they are not finite at the same places.
    """
    own = {told.name(x): g._a[..., 0].astype(float) for x, _, g, _ in call.leaves}
    found = [(told.shown[name], g) for name, g in own.items() if name in told.shown]
    largest = [np.abs(b[np.isfinite(b)]).max(initial=0) for _, b in found]
    if all(np.allclose(a, b, 0, 1e-5 * m, equal_nan=True) for (a, b), m in zip(found, largest, strict=True)):
        return 0.0 if found else np.inf
    if not any(largest) or not all(np.array_equal(np.isfinite(a), np.isfinite(b)) for a, b in found):
        return np.inf
    return float(max(np.abs(a[np.isfinite(a)] - b[np.isfinite(b)]).max(initial=0) for a, b in found) / max(largest))


def not_kept(call: Call, told: Told) -> Iterator[str]:
    """Yield which intermediates keep no gradient that the script asks for elsewhere."""
    recorded = told.recorded
    asked = set(re.findall(r"([A-Za-z_][\w.]*)\.grad\b(?!_)", told.script.source))
    for edge, name in recorded.steps.items() if recorded is not None and not call.returns else ():
        if name in asked and isinstance(edge, Step) and edge.retained is None:
            yield f"{name}.grad stays None: {name} is computed, not a leaf; {name}.retain_grad() before this keeps it."


def _unused(call: Call, told: Told) -> Iterator[str]:
    """Yield which inputs of `grad` have no gradient, as nothing was computed from them."""
    missed = [x for x in call.inputs or () if call.returns and call.wanted[edge_of(x)] is None]
    if names := [told.names.get(id(x)) or x._called or "the input" for x in missed]:
        who, its = (names[0], "its gradient is") if len(names) == 1 else (in_words(names), "their gradients are")
        yield f"No path leads back to {who}: {its} None, or zeros where these are asked for."


def unreached(call: Call, told: Told) -> Iterator[str]:
    """Yield which leaves of the script the call did not reach, because numbers went on alone on the way to them."""
    from gradcli.script.errors.source import Text
    from gradcli.script.errors.threads import Threads

    yield from _unused(call, told)
    reached = {id(x) for x, *_ in call.leaves}
    named = told.names.tensors.items()
    left = {n: x for n, x in named if x._fn is None and x._requires and x._grad is None and id(x) not in reached}
    if call.inputs is not None or not left or not CUTS:
        return
    for cut in Threads(Text(told.script.name, told.script.source, told.line)).cuts():
        names = [n for n, x in left.items() if cut.leads_to(x)]
        left = {n: x for n, x in left.items() if n not in names}
        if names:
            own, it = (f"{names[0]}.grad", "it") if len(names) == 1 else (f".grad of {in_words(names)}", "them")
            yield f"{own} stays None: {told.code(cut.line)} cut the thread to {it} by {cut.how}."


def array_words(a: Any) -> str:
    """Return an array as words: its numbers, or how many they are."""
    if a.size > SHOWN:
        return "×".join(map(str, a.shape[:-1])) + " numbers"
    return array_text(a[..., 0], lambda v: f"{v:.6g}" if isinstance(v, float) else str(v))


def not_finite(call: Call, told: Told) -> Iterator[str]:
    """Yield which gradients are not finite, and where that arose: the operation, with its line."""
    for x, _, own, _ in call.leaves:
        bad = own._a[~np.isfinite(own._a)]
        if bad.size:
            what = "nan" if np.isnan(bad).any() else "inf" if (bad > 0).all() else "-inf"
            yield f"the gradient of {told.name(x)} is {what}: {_arose(call, told)}"
            return


def _arose(call: Call, told: Told) -> str:
    if not all(finite(v._a) for _, v in call.roots):
        return "v itself is not finite"
    step = call.arose
    if step is None:
        return "it arises where contributions are added" if not call.changes else "a hook made it"
    first = next((s for s in reachable([step]) if s.arose), None)
    found = first or step
    op = found.recipe.op if hasattr(found, "recipe") else found.name().removesuffix("Backward")
    what = "value" if first is not None and first is not step else "local derivative"
    g, *passed = (getattr(a, "_a", a) for a in (call.passing[0], *call.passing[1]) if a is not None)
    hidden = found is step and not step.is_own and (g == 0).any() and any(np.isnan(a).any() for a in passed)
    where = told.code(found.line).rstrip(",")
    return f"it arises in {op} ({where}), whose {what} is not finite there{': 0·inf is nan' * bool(hidden)}"
