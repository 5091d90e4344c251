"""Changes to a script where it makes a tensor: so that it requires a gradient, or is a leaf, or none of the two."""

from __future__ import annotations

import ast

from gradcli.record.record import Quantity
from gradcli.script.errors import edits, fixes
from gradcli.script.errors.failure import Answer, Failure
from gradcli.script.errors.flow import Flow
from gradcli.script.errors.history import History, detached_answer
from gradcli.script.errors.source import Change, Text
from gradcli.script.errors.syntax import called, calls, end, keyword, parts, requires_target, start

# Functions that make tensors, and take requires_grad.
MAKERS = {
    *("tensor", "ones", "zeros", "rand", "randn", "full", "empty", "eye", "arange", "linspace", "logspace", "Variable"),
    *("ones_like", "zeros_like", "rand_like", "randn_like", "full_like"),
}
_OTHER_MAKERS = {
    *("FloatTensor", "DoubleTensor", "LongTensor", "Tensor", "from_numpy", "as_tensor", "randint", "normal"),
}


def required(reason: str, changes: list[Change]) -> Answer:
    """Return the answer where an input does not require a gradient."""
    before = "" if changes else ": requires_grad=True, or x.requires_grad_() before it is used"
    return Answer(reason, f"let the input require a gradient, where it is made{before}", changes)


def requiring(text: Text, name: str, x: Quantity | None = None) -> list[Change]:
    """Return the fix that makes the tensor from which a name was computed require a gradient, where it is created.

    `x` is the quantity of that name: its numbers may be integers, which cannot.
    """
    if of_the_whole := _of_the_whole(text, name):
        return of_the_whole
    whole = x is not None and not x.dtype.startswith(("float", "bfloat"))
    real = ".float()" * whole
    for call in _creations(text, name):
        if _is_of_self(text, call):
            return text.edited(edits.wrapped(call, "torch.nn.Parameter(", f"{real})"))
        if called(call) not in MAKERS:
            return text.edited(edits.behind(call, f"{real}.requires_grad_()"))
        dtype = ["dtype=torch.float32"] if whole and called(call) != "Variable" else []
        if said := keyword(call, "requires_grad"):
            return text.edited(edits.instead(said.value, ", ".join(["True", *dtype])))
        return text.edited(edits.appended(call, ", ".join([*dtype, "requires_grad=True"]), text))
    return []


def _of_the_whole(text: Text, name: str) -> list[Change]:
    """Return the fix that makes a whole tensor require a gradient, not a part: x for x[0] in x[0].requires_grad_()."""
    for statement in text.statements():
        part = whole = requires_target(statement)
        while isinstance(whole, ast.Subscript):
            whole = whole.value
        if part is not None and whole is not part and text.of(whole) == name:
            return text.edited(edits.instead(part, name))
    return []


def _creations(text: Text, name: str) -> list[ast.Call]:
    """Return where the script makes the tensor from which a name was computed; a module's comes first."""
    creations = [c for c in _calls_behind(text, name) if called(c) in MAKERS | _OTHER_MAKERS]
    return sorted(creations, key=lambda c: not _is_of_self(text, c))


def _calls_behind(text: Text, name: str) -> list[ast.Call]:
    """Return the calls that a name in the statement was computed by, the nearest first."""
    flow, named = Flow(text), [n for n in ast.walk(text.statement) if text.of(n) == name]
    return [c for n in named for value in flow.back(n) for c in calls(value)]


def _is_of_self(text: Text, call: ast.Call) -> bool:
    statement = text.on(call.lineno).statement
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    return isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"


def thawed(text: Text) -> list[Change]:
    """Return the fix that makes frozen parameters require gradients again."""
    wishes: list[ast.expr] = []
    for statement in text.statements():
        if isinstance(statement, ast.Assign) and requires_target(statement) is not None:
            wishes.append(statement.value)
    for call in calls(text.tree, "requires_grad_"):
        wishes += [*call.args[:1], *(k.value for k in call.keywords)]
    off = [w for w in wishes if isinstance(w, ast.Constant) and w.value is False]
    return text.edited(edits.instead(min(off, key=start), "True")) if off else []


def real(at: Failure) -> list[Change]:
    """Make a tensor of real numbers, where a script makes one of whole ones."""
    text = at.text
    if owner := text.of(requires_target(text.statement)):
        return text.replaced(text.statement, f"{owner} = {owner}.float().requires_grad_()")
    for call in text.calls("requires_grad_"):
        return text.edited(edits.before_call(call, ".float()"))
    for call in text.calls("Variable", "Parameter"):
        if call.args:
            return text.edited(edits.behind(call.args[0], ".float()"))
    for call in text.calls(*MAKERS):
        below = [text.on(s.lineno) for s in text.block(text.statement) if s.lineno > text.line]
        return [
            change
            for version in (text, *(t for t in below if any(_is_whole(c) for c in t.calls("tensor"))))
            for change in fixes.with_argument(
                version, "dtype", "torch.float32", called(call) if version is text else "tensor"
            )
        ]
    return []


def _is_whole(call: ast.Call) -> bool:
    """Return whether a call makes a tensor of integers that is to require a gradient."""
    numbers = [n.value for a in call.args[:1] for n in parts(a, ast.Constant)]
    argument = keyword(call, "requires_grad") and not keyword(call, "dtype")
    return bool(argument) and all(isinstance(n, int) for n in numbers)


def cut_off(at: Failure) -> list[Change]:
    """Detach a computed tensor, where a script says that it needs no gradient."""
    owner = at.text.of(requires_target(at.text.statement))
    return at.text.replaced(at.text.statement, f"{owner} = {owner}.detach()") if owner else []


def cloned_result(text: Text, name: str) -> list[Change]:
    """Copy what a Function returns, from which a name was computed: F.apply(x).clone()."""
    applications = [c for c in _calls_behind(text, name) if called(c) == "apply"]
    return text.edited(edits.behind(applications[0], ".clone()")) if applications else []


def as_leaf(text: Text, name: str) -> list[Change]:
    """Return the fix that makes a tensor require a gradient after the operations on it in the line that creates it."""
    flow = Flow(text)
    value: ast.AST | None = next((n for n in ast.walk(text.statement) if text.of(n) == name), None)
    while isinstance(value, ast.Name | ast.Attribute):  # another name for the same
        value = next(iter(flow.of_name(value)), None)
    value = value.elt if isinstance(value, ast.ListComp) else value
    if not isinstance(value, ast.Call | ast.BinOp):
        return []
    cut = []
    for call in calls(value):
        if said := keyword(call, "requires_grad"):
            before = [*call.args, *(k.value for k in call.keywords[: call.keywords.index(said)])]
            cut.append((end(before[-1]) if before else start(said), end(said.value), ""))
    return text.edited([*cut, *edits.behind(value, ".requires_grad_()")]) if cut else []


def last(at: Failure) -> list[Change]:
    """Return the change that calls requires_grad_() on an optimizer's parameter last, after its construction."""
    read = {n.id for n in parts(at.text.statement, ast.Name)}
    names = [n for n, x in at.frame.f_locals.items() if n in read and at.known.is_computed(x)]
    result = (as_leaf(at.text, n) for n in names)
    return next(filter(None, result), [])


def leaf_arguments(at: Failure) -> list[Change]:
    """Give an optimizer the leaf that a tensor was computed from."""
    flow, tensors = Flow(at.text), at.names.tensors
    for call in [c for c in calls(at.text.statement) if c.args]:
        for element in getattr(call.args[0], "elts", ()):
            names = [at.text.of(n) for e in flow.back(element) for n in parts(e, ast.Name)]
            for leaf in [n for n in names if n in tensors and tensors[n].is_leaf and tensors[n].requires_grad]:
                return at.text.edited(edits.instead(element, leaf))
    return []


def begun(at: Failure) -> list[Change]:
    """Return the change that makes an optimizer's parameter a leaf with the numbers that were computed for it."""
    for call in [c for c in calls(at.text.statement) if c.args]:
        for element in getattr(call.args[0], "elts", ()):
            if (assignment := at.text.assigned(at.text.of(element))) and at.known.is_computed(at.value(element)):
                return at.text.edited(edits.behind(assignment[1], ".detach().requires_grad_()"))
    return []


def of_old_type(at: Failure, *_: str) -> Answer | None:
    """Return the answer about torch.Tensor([…], requires_grad=True), which takes no options: torch.tensor does."""
    for call in at.text.calls("Tensor", "FloatTensor", "DoubleTensor"):
        if keyword(call, "requires_grad", "dtype"):
            name = at.text.of(call.func)
            dtype = "torch.float64" if name.endswith("DoubleTensor") else "torch.float32"
            added = [] if keyword(call, "dtype") else edits.appended(call, f"dtype={dtype}", at.text)
            changes = [*edits.renamed(call, "tensor"), *added]
            reason = f"{name} takes neither requires_grad nor dtype."
            return Answer(reason, "use torch.tensor, which does", at.text.edited(changes), "leaf-and-intermediate")
    return None


def needs(at: Failure) -> Answer:
    """Return the answer about a tensor whose gradient is requested, and that requires none."""
    owners = at.text.owners("retain_grad", "register_hook")
    for x in map(at.known.of, map(at.value, owners)):
        if x is not None and (cut := at.known.cut_of(x)) is not None:
            return detached_answer(at, x.name or "it", cut, History(at.text, at.known))
    reason = "only tensors that require a gradient, or were computed from such tensors, have gradients and hooks."
    result = (c for owner in owners if (c := requiring(at.text, at.text.of(owner))))
    return required(reason, next(result, []))
