"""The smallest changes to the calls of a script that fix an error."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from gradcli.pytorch.tables import pytorch_names
from gradcli.script.errors import edits
from gradcli.script.errors.failure import Failure
from gradcli.script.errors.flow import Flow
from gradcli.script.errors.source import Change, Edit, Text
from gradcli.script.errors.syntax import (
    called,
    calls,
    decorators,
    elements,
    end,
    keyword,
    last_name,
    methods,
    owner_of,
    parts,
    receiver_of,
    start,
)

_OFF = ("no_grad", "inference_mode")  # where nothing is recorded
_LIKE = ("zeros", "ones", "rand", "randn")  # makers that have a form for another tensor's shape


# Arguments


def with_argument(text: Text, name: str, value: str, *functions: str) -> list[Change]:
    """Give a call at a line one more argument: y.backward(retain_graph=True)."""
    for call in sorted(text.calls(*functions), key=lambda c: functions.index(called(c))):
        known = keyword(call, name)
        added = edits.instead(known.value, value) if known else edits.appended(call, f"{name}={value}", text)
        return text.edited(added)
    return []


def with_randomness(at: Failure) -> list[Change]:
    """Return the fix that gives each element of vmap random numbers of its own."""
    maps = calls(at.text.tree, "vmap")
    return at.text.edited(edits.appended(maps[0], 'randomness="different"', at.text)) if maps else []


def second(at: Failure) -> list[Change]:
    """Return the fix from the gradient of a gradient to its Jacobian: jacrev(grad(f)) for grad(grad(f))."""
    outer = [c for c in calls(at.text.tree, "grad") if any(called(a) == "grad" for a in c.args[:1])]
    return at.text.edited(edits.instead(outer[0].func, "torch.func.jacrev")) if outer else []


def summed(text: Text, name: str) -> list[Change]:
    """Return the fix that calls backward of a sum, y.sum().backward(), or gives grad a weight of ones."""
    for call in text.calls("backward"):
        if receiver_of(call) is not None:
            return text.edited(edits.before_call(call, ".sum()"))
        roots = elements(call.args[0]) if call.args else []
        chosen = [root for root in roots if text.of(root) == name or len(roots) < 2]
        return text.edited([e for root in chosen for e in edits.behind(root, ".sum()")])
    for call in text.calls("grad"):
        if call.args and edits.is_simple(call.args[0]):
            weight = f"grad_outputs=torch.ones_like({text.of(call.args[0])})"
            return text.edited(edits.appended(call, weight, text))
    return []


def of_a_list(at: Failure) -> list[Change]:
    """Go back from the sum of a list, or of the values of a dictionary: sum(losses).backward()."""
    owner = at.text.owners("backward")[0]
    values = ".values()" * isinstance(at.value(owner), dict)
    return at.text.edited(edits.instead(owner, f"sum({at.text.of(owner)}{values})"))


def of_the_whole(text: Text, whole: str) -> list[Change]:
    """Return the fix that differentiates by a whole tensor and then takes the part: grad(u, xt)[0][:, 0:1].

    Other gradients by parts of that tensor are changed as well.
    """
    first = {node.value: node for node in parts(text.tree, ast.Subscript)}
    new: list[Edit] = []
    for call in [c for c in calls(text.tree, "grad") if len(c.args) > 1]:
        argument, *others = elements(call.args[1])
        values = [] if others else (argument, *Flow(text).of_name(argument))
        for behind in [b for value in values if (b := _part_of(text, value, whole))][:1]:
            new += edits.instead(argument, whole)
            if call in first:
                new.append((end(first[call]), end(first[call]), behind))
            else:  # g, = grad(y, w)
                new += edits.wrapped(call, "(", f"[0]{behind},)")
    return text.edited(new)


def _part_of(text: Text, part: ast.AST, whole: str) -> str:
    """Return what takes a part of a tensor, or changes its shape: [0] of W[0]; "" for another expression."""
    match part:
        case ast.Subscript(tensor, index) if text.of(tensor) == whole:
            return f"[{text.of(index)}]"
        case ast.Call(ast.Attribute(tensor, "view" | "reshape" | "flatten" as name), args) if text.of(tensor) == whole:
            return f".{name}({', '.join(map(text.of, args))})"
    return ""


def other_weight(text: Text, y: Sequence[int], v: Sequence[int]) -> list[Change]:
    """Give backward, or grad, a v of the shape of y: the same numbers where there are as many, or ones."""
    for call in text.calls("backward", "grad"):
        receiver, weight = weighted(text, call)
        if isinstance(weight, ast.List | ast.Tuple):  # a v for each of several
            pairs = zip(weight.elts, getattr(call.args[0], "elts", ()), strict=False)
            return text.edited([e for v, y in pairs for e in edits.behind(v, f".reshape({text.of(y)}.shape)")])
        return text.edited(_other(text, weight, receiver, y, v)) if weight is not None else []
    return []


def weighted(text: Text, call: ast.Call) -> tuple[str, ast.expr | None]:
    """Return the code of y and the expression of v in a call of backward or grad."""
    is_grad, receiver = called(call) == "grad", receiver_of(call)
    is_argument = is_grad or receiver is None  # y is
    named = keyword(call, "gradient", "grad_outputs")
    weight = next(iter(call.args[2 if is_grad else int(is_argument) :]), named.value if named else None)
    y = call.args[0] if is_argument and call.args else receiver
    code = text.of(y)
    return code if y is None or edits.is_simple(y) else f"({code})", weight


def _other(text: Text, weight: ast.expr, receiver: str, y: Sequence[int], v: Sequence[int]) -> list[Edit]:
    if math.prod(v) == math.prod(y):
        return edits.behind(weight, f".reshape({receiver}.shape)")
    origin = next(iter(Flow(text).of_name(weight)), None)
    if isinstance(origin, ast.Call) and called(origin) in _LIKE and y:
        return edits.instead(origin, f"torch.{called(origin)}_like({receiver})")
    return edits.instead(weight, f"torch.ones_like({receiver})" if y else "torch.tensor(1.0)")


def solved(at: Failure) -> list[Change]:
    """Call torch.linalg.solve(A, b) instead of torch.solve(b, A), which returned a pair."""
    result = []
    for call in [c for c in at.text.calls("solve") if len(c.args) == 2]:
        result += [
            *edits.instead(call.func, "torch.linalg.solve"),
            *edits.instead(call.args[0], at.text.of(call.args[1])),
        ]
        result += edits.instead(call.args[1], at.text.of(call.args[0]))
        match at.text.statement:
            case ast.Assign([ast.Tuple([first, *_]) as pair], value) if value is call:
                result = [*edits.instead(pair, at.text.of(first)), *result]
    return at.text.edited(result)


def by_matmul(at: Failure) -> list[Change]:
    """Multiply by matmul, which takes vectors, matrices and stacks of them."""
    products = at.failed_calls("mm", "mv", "dot", "bmm")[:1]
    return at.text.edited([e for c in products for e in edits.renamed(c, "matmul")])


def floating(at: Failure) -> list[Change]:
    """Convert integers to floating point before their mean is computed: x.float().mean(), torch.mean(x.float())."""
    for call in at.failed_calls("mean", "std", "var"):
        is_function = isinstance(at.value(owner_of(call)), ModuleType)
        new = edits.behind(call.args[0], ".float()") if is_function else edits.before_call(call, ".float()")
        return at.text.edited(new)
    return []


def without_out(at: Failure) -> list[Change]:
    """Give a result its name by an assignment, instead of out=."""
    call = getattr(at.text.statement, "value", at.text.statement)
    out = keyword(call, "out") if isinstance(call, ast.Call) else None
    if not isinstance(call, ast.Call) or out is None:
        return []
    before = [a for a in (*call.args, *(k.value for k in call.keywords)) if start(a) < start(out)]
    named = (start(call), start(call), f"{at.text.of(out.value)} = ")
    return at.text.edited([named, (end(max(before, key=start)), end(out), "")]) if before else []


# Recorded, or not


def recorded(text: Text) -> list[Change]:
    """Write enable_grad for the no_grad of a block around a line, or of a decorator, and switch recording on."""
    blocks = [item.context_expr for block in text.around(ast.With) for item in block.items]
    functions = [d for function in text.around(ast.FunctionDef) for d in function.decorator_list]
    for off in [e for e in (*blocks, *functions) if last_name(e) in _OFF][:1]:
        return text.edited(edits.renamed(off, "enable_grad"))
    switches = [c for s in parts(text.tree, ast.Expr) for c in calls(s, "set_grad_enabled")]
    above = [c for c in switches if c.args and c.lineno < text.line]
    return text.edited(edits.instead(max(above, key=start).args[0], "True")) if above else []


def not_inference(at: Failure) -> list[Change]:
    """Compute without recording, instead of inference_mode, whose tensors autograd never uses."""
    blocks = [item.context_expr for block in parts(at.text.tree, ast.With) for item in block.items]
    result = [e for e in blocks if last_name(e) == "inference_mode"] + decorators(at.text.tree, "inference_mode")
    return at.text.edited(edits.renamed(min(result, key=start), "no_grad")) if result else []


def twice_differentiable(text: Text) -> list[Change]:
    """Remove @once_differentiable."""
    return [text.instead_of(d) for d in decorators(text.tree, "once_differentiable")[:1]]


def _is_of_numpy(at: Failure, function: ast.expr) -> bool:
    """Return whether the script calls a function of NumPy's: np.sin, np.linalg.norm."""
    while isinstance(function, ast.Attribute):
        function = function.value
    return at.value(function) is np


def torch_has(name: str) -> bool:
    """Return whether PyTorch's main module has a function of a name, which NumPy has or `math`."""
    return name in pytorch_names()["torch"] and not isinstance(getattr(np, name, None), type | ModuleType | float)


def in_torch(at: Failure) -> list[Change]:
    """Return the change that calls PyTorch's functions for NumPy's of the same names: torch.sin(x) for np.sin(x)."""
    names = [c.func for c in calls(at.text.statement) if _is_of_numpy(at, c.func)]
    known = [f for f in names if isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name) and torch_has(f.attr)]
    same = len(known) == len(names)
    return at.text.edited([e for f in known for e in edits.instead(f.value, "torch")]) if same else []


def detached(at: Failure) -> list[Change]:
    """Detach tensors before NumPy reads them: x.detach().numpy(), np.sin(x.detach())."""
    text = at.text
    for call in text.calls("numpy"):
        return text.edited(edits.before_call(call, ".detach()"))
    arguments = [c.args[0] for c in calls(text.statement) if c.args and _is_of_numpy(at, c.func)]
    for argument in arguments:
        if isinstance(argument, ast.ListComp | ast.List):
            each = [argument.elt] if isinstance(argument, ast.ListComp) else argument.elts
            return text.edited([e for x in each for e in edits.behind(x, ".detach()")])
    result = [
        argument
        for argument in arguments
        if getattr(x := at.value(argument), "requires_grad", False)
        or (isinstance(x, list) and any(getattr(e, "requires_grad", False) for e in x))
    ]
    for argument in result or arguments:
        listed = isinstance(at.value(argument), list)
        new = f"[e.detach() for e in {text.of(argument)}]"
        return text.edited(edits.instead(argument, new) if listed else edits.behind(argument, ".detach()"))
    return []


def cloned(at: Failure) -> list[Change]:
    """Copy a computed tensor's numbers, instead of the tensor."""
    text = at.text
    for call in [c for c in text.calls("deepcopy") if c.args]:
        value, name = at.value(call.args[0]), text.of(call.args[0])
        if hasattr(value, "grad_fn"):
            return text.edited(edits.instead(call, f"{name}.detach().clone()"))
        if isinstance(value, dict) and _computed(value):
            return text.edited(edits.instead(call, f"{{k: v.detach().clone() for k, v in {name}.items()}}"))
    return []


def forgotten(at: Failure) -> list[Change]:
    """Set attributes that are computed tensors to None, before their object is copied."""
    text = at.text
    for call in [c for c in text.calls("deepcopy") if c.args]:
        value, name = at.value(call.args[0]), text.of(call.args[0])
        inner = {} if hasattr(value, "grad_fn") else getattr(value, "__dict__", {})
        if names := _computed(inner):
            return text.replaced(text.statement, *(f"{name}.{n} = None" for n in names), text.of(text.statement))
    return []


def _computed(values: Mapping[str, Any]) -> list[str]:
    return [key for key, x in values.items() if getattr(x, "grad_fn", None) is not None]


def available_device(at: Failure) -> list[Change]:
    """Return the change that chooses the GPU only where there is one."""
    values = [a for c in calls(at.main.tree) for a in (*c.args, *(k.value for k in c.keywords))]
    values += [s.value for s in parts(at.main.tree, ast.Assign)]
    names = [v for v in values if isinstance(v, ast.Constant) and str(v.value).startswith("cuda")]
    written = [(v, at.main.of(v)) for v in names]
    new = "{0} if torch.cuda.is_available() else {1}cpu{1}"
    return at.main.edited([e for v, code in written for e in edits.instead(v, new.format(code, code[-1]))])


# Gradients


def if_there(text: Text, grad: str) -> list[Change]:
    """Ask whether there is a gradient, before it is set to zero."""
    if isinstance(text.statement, ast.Expr | ast.AugAssign):  # what gives nothing a name
        return text.replaced(text.statement, f"if {grad} is not None: {text.of(text.statement)}")
    return []


def as_a_tensor(at: Failure) -> list[Change]:
    """Set .grad to a tensor of the right shape, where a script sets it to a number, or to one of another shape."""
    match at.text.statement:
        case ast.Assign([ast.Attribute(tensor), *_], value):
            name, code = at.text.of(tensor), at.text.of(value)
            new = f"torch.{called(value) if called(value) in _LIKE else 'zeros'}_like({name})"
            is_number = not isinstance(value, ast.Call)
            return at.text.edited(edits.instead(value, f"torch.full_like({name}, {code})" if is_number else new))
    return []


def more_returned(at: Failure, name: str, count: int) -> list[Change]:
    """Return the fix that makes the backward of a class return None for further arguments of forward."""
    classes = [c for c in parts(at.main.tree, ast.ClassDef) if c.name == name]
    functions = [f for c in classes for f in methods(c, "backward")]
    for value in [r.value for f in functions for r in parts(f, ast.Return) if r.value is not None]:
        if isinstance(value, ast.List):  # a list is one thing
            return at.main.edited(edits.listed(value, value.elts, at.main))
        values = value.elts if isinstance(value, ast.Tuple) else [value]
        return at.main.edited(edits.listed(value, [*values, *[ast.Constant(None)] * count], at.main)) if count else []
    return []


# Modules


def begun(text: Text) -> list[Change]:
    """Return the change that calls super().__init__() before a module assigns its first part."""
    return text.replaced(text.statement, "super().__init__()", text.of(text.statement))
