"""Changes to a script where it makes a tensor: so that it requires a gradient, or is a leaf."""

from __future__ import annotations

import ast

from gradcli.record.record import Quantity
from gradcli.script.errors import edits
from gradcli.script.errors.failure import Answer, Failure
from gradcli.script.errors.history import History, detached_answer
from gradcli.script.errors.source import Change, Text
from gradcli.script.errors.syntax import called, calls, keyword, parts, requires_target, start, within

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
    for part in filter(None, map(requires_target, text.statements())):  # x for x[0] in x[0].requires_grad_()
        if isinstance(part, ast.Subscript) and text.of(within(part, ast.Subscript)) == name:
            return text.edited(edits.instead(part, name))
    are_whole = x is not None and not x.dtype.startswith(("float", "bfloat"))
    real = ".float()" * are_whole
    for call in _creations(text, name):
        if _is_of_self(text, call):
            return text.edited(edits.wrapped(call, "torch.nn.Parameter(", f"{real})"))
        if called(call) not in MAKERS:
            return text.edited(edits.behind(call, f"{real}.requires_grad_()"))
        dtype = ["dtype=torch.float32"] if are_whole and called(call) != "Variable" else []
        if said := keyword(call, "requires_grad"):
            return text.edited(edits.instead(said.value, ", ".join(["True", *dtype])))
        return text.edited(edits.appended(call, ", ".join([*dtype, "requires_grad=True"]), text))
    return []


def _creations(text: Text, name: str) -> list[ast.Call]:
    """Return where the script makes the tensor from which a name was computed; a module's comes first."""
    named = [n for n in ast.walk(text.statement) if text.of(n) == name]
    behind = [c for n in named for value in text.back(n) for c in calls(value)]
    creations = [c for c in behind if called(c) in MAKERS | _OTHER_MAKERS]
    return sorted(creations, key=lambda c: not _is_of_self(text, c))


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


def as_leaf(text: Text, name: str, is_made_there: bool = True) -> list[Change]:
    """Return the fix that makes a leaf of what a line computes: (0.1 * w).detach().requires_grad_().

    Unless that does not matter, it is only done where the line itself makes the tensor that it computes from.
    """
    node = next((n for n in ast.walk(text.statement) if text.of(n) == name), None)
    while isinstance(node, ast.Name | ast.Attribute):  # another name for the same
        node = next(iter(text.values(node)), None)
    node = node.elt if isinstance(node, ast.ListComp) else node
    if not isinstance(node, ast.Call | ast.BinOp):
        return []
    is_made = any(keyword(c, "requires_grad") for c in calls(node))
    return text.edited(edits.behind(node, ".detach().requires_grad_()")) if is_made or not is_made_there else []


def leaf_arguments(at: Failure) -> list[Change]:
    """Give an optimizer the leaf that a tensor was computed from, or else make one of the tensor."""
    tensors = at.names.tensors
    for element in (e for c in calls(at.text.statement) if c.args for e in getattr(c.args[0], "elts", ())):
        if at.known.is_computed(at.value(element)):
            names = [at.text.of(n) for e in at.text.back(element) for n in parts(e, ast.Name)]
            for leaf in [n for n in names if n in tensors and tensors[n].is_leaf and tensors[n].requires_grad]:
                return at.text.edited(edits.instead(element, leaf))
            return as_leaf(at.text, at.text.of(element), is_made_there=False)
    return []


def of_old_type(at: Failure, *_: str) -> Answer | None:
    """Return the answer about torch.Tensor([…], requires_grad=True), which takes no options: torch.tensor does."""
    for call in at.text.calls("Tensor", "FloatTensor", "DoubleTensor"):
        if keyword(call, "requires_grad", "dtype"):
            name = at.text.of(call.func)
            dtype = "torch.float64" if name.endswith("DoubleTensor") else "torch.float32"
            added = [] if keyword(call, "dtype") else edits.appended(call, f"dtype={dtype}", at.text)
            new = [*edits.renamed(call, "tensor"), *added]
            reason = f"{name} takes neither requires_grad nor dtype."
            return at.answer(reason, "use torch.tensor, which does", new, "leaf-and-intermediate")
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
