"""The smallest changes to the calls of a script that fix an error: each an edit of one expression or line."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from gradcli.pytorch.tables import pytorch_names
from gradcli.record.naming import is_tensor
from gradcli.script.errors import edits, syntax
from gradcli.script.errors.failure import Failure, is_whole
from gradcli.script.errors.source import Change, Text

_OFF = ("no_grad", "inference_mode")  # where nothing is recorded

# What the value must be of the part of a call that a row of `answers.txt` edits.
_KINDS: Mapping[str, Callable[[Any], bool]] = {
    "": lambda x: True,
    "tensor": is_tensor,
    "integers": is_whole,
    "floats": lambda x: is_tensor(x) and x.is_floating_point(),
    "matrix": lambda x: is_tensor(x) and x.dim() == 2,
    "class": lambda x: isinstance(x, type) and hasattr(x, "named_parameters"),
}


def of_call(at: Failure, row: str) -> list[Change]:
    """Return the edit of a part of a call that failed, as `answers.txt` states it: `mean,std operand {}.float()`.

    The first word has the names of the functions, `*` for any.  The second is the part: the `call`, its `function`, or
    that if it is a `builtin`, the `name` of a method, the `operand`, an argument by its index, or `+` for one more; and
    behind a colon what its value must be.  The rest is what is written, with the code of the part, and of the `first`
    argument.
    """
    functions, part, new = row.split(" ", 2)
    part, _, kind = part.partition(":")
    names = [] if functions == "*" else functions.split(",")
    failed = at.failed_calls(*names)  # the outermost first
    for call in failed or at.text.calls(*names) if names else failed[:1]:
        node = _part(at.text, call, part)
        if node is None or not _KINDS[kind](at.value(node)):
            continue
        if part == "+":
            return at.text.edited(edits.appended(call, new, at.text))
        if part == "name":
            return at.text.edited(edits.renamed(call, new))
        if part == "operand" and node is syntax.owner_of(call) and new.startswith("{}."):
            return at.text.edited(edits.before_call(call, new.removeprefix("{}")))
        first = _bare(at.text, call.args[0]) if call.args else ""
        code = _bare(at.text, node) if new.startswith("{}.") else at.text.of(node)
        return at.text.edited(edits.instead(node, new.format(code, first=first)))
    return []


def _part(text: Text, call: ast.Call, part: str) -> ast.expr | None:
    """Return a part of a call that a row names; None where the call has none."""
    match part:
        case "operand":
            return text.operand(call)
        case "function" | "name":
            return call.func
        case "builtin":
            return call.func if isinstance(call.func, ast.Name) else None
        case "+":
            return call
    return next(iter(call.args[int(part) :]), None)


def _bare(text: Text, node: ast.expr) -> str:
    """Return the code of an expression, in brackets where a dot behind it needs them."""
    return text.of(node) if edits.is_simple(node) else f"({text.of(node)})"


def with_argument(text: Text, name: str, value: str, *functions: str) -> list[Change]:
    """Give a call at a line one more argument: y.backward(retain_graph=True)."""
    for call in sorted(text.calls(*functions), key=lambda c: functions.index(syntax.called(c))):
        known = syntax.keyword(call, name)
        added = edits.instead(known.value, value) if known else edits.appended(call, f"{name}={value}", text)
        return text.edited(added)
    return []


def summed(text: Text, name: str) -> list[Change]:
    """Return the fix that calls backward of a sum, y.sum().backward(), or gives grad a weight of ones."""
    for call in text.calls("backward"):
        if syntax.receiver_of(call) is not None:
            return text.edited(edits.before_call(call, ".sum()"))
        roots = [r for r in syntax.elements(call.args[0]) if text.of(r) == name] if call.args else []
        return text.edited([e for root in roots for e in edits.behind(root, ".sum()")])
    for call in text.calls("grad"):
        if call.args and edits.is_simple(call.args[0]):
            weight = f"grad_outputs=torch.ones_like({text.of(call.args[0])})"
            return text.edited(edits.appended(call, weight, text))
    return []


def other_weight(text: Text, y: Sequence[int], v: Sequence[int]) -> list[Change]:
    """Give backward, or grad, a v of the shape of y: the same numbers where there are as many, or ones."""
    for call in text.calls("backward", "grad"):
        code, weight = weighted(text, call)
        if weight is not None and not isinstance(weight, ast.List | ast.Tuple):
            is_reshaped = math.prod(v) == math.prod(y)
            new = edits.behind(weight, f".reshape({code}.shape)")
            return text.edited(new if is_reshaped else edits.instead(weight, f"torch.ones_like({code})"))
    return []


def weighted(text: Text, call: ast.Call) -> tuple[str, ast.expr | None]:
    """Return the code of y and the expression of v in a call of backward or grad."""
    is_grad, receiver = syntax.called(call) == "grad", syntax.receiver_of(call)
    is_argument = is_grad or receiver is None  # y is
    weight = syntax.argument(call, 2 if is_grad else int(is_argument), "gradient", "grad_outputs")
    y = call.args[0] if is_argument and call.args else receiver
    return "" if y is None else _bare(text, y), weight


def recorded(text: Text) -> list[Change]:
    """Write enable_grad for the no_grad of a block around a line, or of a decorator, and switch recording on."""
    for off in [e for e in text.contexts() if syntax.last_name(e) in _OFF][:1]:
        return text.edited(edits.renamed(off, "enable_grad"))
    switches = [c for s in syntax.parts(text.tree, ast.Expr) for c in syntax.calls(s, "set_grad_enabled")]
    above = [c for c in switches if c.args and c.lineno < text.line]
    return text.edited(edits.instead(max(above, key=syntax.start).args[0], "True")) if above else []


def of_module(at: Failure, candidates: Sequence[ast.Call], module: ModuleType = np) -> list[ast.Call]:
    """Return the calls of a module's functions among some: np.sin, np.linalg.norm."""
    return [call for call in candidates if at.value(syntax.within(call.func, ast.Attribute)) is module]


def torch_has(name: str) -> bool:
    """Return whether PyTorch's main module has a function of a name, which NumPy has or `math`."""
    return name in pytorch_names()["torch"] and not isinstance(getattr(np, name, None), type | ModuleType | float)


def in_torch(at: Failure, module: ModuleType = np) -> list[Change]:
    """Return the change that calls PyTorch's functions for a module's of the same names: torch.sin(x) for np.sin(x)."""
    functions = [c.func for c in of_module(at, syntax.calls(at.text.statement), module)]
    known = [f for f in functions if isinstance(f, ast.Attribute) and torch_has(f.attr)]
    known = [f for f in known if isinstance(f.value, ast.Name)]
    same = len(known) == len(functions)
    return at.text.edited([e for f in known for e in edits.instead(f.value, "torch")]) if same else []


def detached(at: Failure) -> list[Change]:
    """Detach a tensor before NumPy reads it: x.detach().numpy(), np.sin(x.detach())."""
    for call in at.text.calls("numpy"):
        return at.text.edited(edits.before_call(call, ".detach()"))
    arguments = [c.args[0] for c in of_module(at, at.failed_calls()) if c.args]
    for x in sorted(arguments, key=lambda a: not getattr(at.value(a), "requires_grad", False)):
        is_list = isinstance(x, ast.List | ast.ListComp) or isinstance(at.value(x), list)
        new = f"[e.detach() for e in {at.text.of(x)}]" if is_list else f"{_bare(at.text, x)}.detach()"
        return at.text.edited(edits.instead(x, new))
    return []


def if_there(text: Text, grad: str) -> list[Change]:
    """Ask whether there is a gradient, before it is set to zero."""
    if isinstance(text.statement, ast.Expr | ast.AugAssign):  # what gives nothing a name
        return text.replaced(text.statement, f"if {grad} is not None: {text.of(text.statement)}")
    return []


def resized(at: Failure, kinds: Sequence[str], sizes: Sequence[int], new: Sequence[int]) -> list[Change]:
    """Return the fix that gives the layer of some kinds that is created with some sizes other ones."""
    text = at.main
    for call in [c for c in syntax.calls(text.tree) if syntax.called(c).startswith(tuple(kinds))]:
        nodes = [_number(text, a) for a in call.args[: len(sizes)]]
        if [syntax.integer(n) for n in nodes] == [*sizes]:
            pairs = [(n, b) for n, a, b in zip(nodes, sizes, new, strict=True) if a != b]
            return text.edited([e for node, size in pairs for e in edits.instead(node, str(size))])
    return []


def _number(text: Text, node: ast.expr) -> ast.expr:
    """Return where the number of an argument is written: there, or in the only assignment to its name."""
    values = text.values(node)
    return values[0] if len(values) == 1 else node
