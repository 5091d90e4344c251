"""The smallest changes to a script that mend an error of autograd: each as the lines that it changes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from gradcli.script.flow import Flow
from gradcli.script.source import Change, Edit, Text, behind, called, end, is_simple, start

# Functions that make tensors, and take requires_grad.
_MAKERS = {
    *("tensor", "ones", "zeros", "rand", "randn", "full", "empty", "eye", "arange", "linspace", "logspace", "Variable"),
    *("ones_like", "zeros_like", "rand_like", "randn_like", "full_like"),
}
_OTHER_MAKERS = {
    *("FloatTensor", "DoubleTensor", "LongTensor", "Tensor", "from_numpy", "as_tensor", "randint", "normal"),
}


def thawed(text: Text) -> list[Change]:
    """Let parameters require gradients again, where a script says that they do not."""
    for statement in text.statements():
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
            target = statement.targets[0]
            if isinstance(target, ast.Attribute) and target.attr == "requires_grad" and statement.value.value is False:
                return [text.edited(statement, (start(statement.value), end(statement.value), "True"))]
        if isinstance(statement, ast.Expr):
            for call in text.calls(statement.lineno, "requires_grad_"):
                if call.args and text.text(call.args[0]) == "False":
                    return [text.edited(statement, (start(call.args[0]), end(call.args[0]), "True"))]
    return []


def with_argument(text: Text, line: int, name: str, argument: str) -> list[Change]:
    """Give a call at a line one more argument: y.backward(retain_graph=True)."""
    for call in text.calls(line, name):
        statement = text.at(line)
        assert statement is not None
        for keyword in call.keywords:
            if keyword.arg == argument.partition("=")[0]:
                return [text.edited(statement, (start(keyword.value), end(keyword.value), argument.partition("=")[2]))]
        return [text.edited(statement, _appended(text, call, argument))]
    return []


def _appended(text: Text, call: ast.Call, argument: str) -> Edit:
    """Put an argument behind the others of a call."""
    place = (end(call)[0], end(call)[1] - 1)
    last = text.text(call)[:-1].rstrip()[-1:]
    return place, place, argument if last in ("(", ",") else f", {argument}"


def summed(text: Text, line: int, name: str) -> list[Change]:
    """Call backward of a sum: y.sum().backward(); or give grad a weight of ones."""
    for call in text.calls(line, "backward"):
        statement = text.at(line)
        assert statement is not None
        if isinstance(call.func, ast.Attribute) and text.text(call.func.value).rpartition(".")[2] != "autograd":
            return [text.edited(statement, *behind(call.func.value, ".sum()", text))]
        roots = call.args[0].elts if call.args and isinstance(call.args[0], ast.List | ast.Tuple) else call.args[:1]
        edits = [e for root in roots if text.text(root) == name or len(roots) < 2 for e in behind(root, ".sum()")]
        return [text.edited(statement, *edits)] if edits else []
    for call in text.calls(line, "grad"):
        statement = text.at(line)
        assert statement is not None
        if call.args and is_simple(call.args[0]):
            return [
                text.edited(
                    statement, _appended(text, call, f"grad_outputs=torch.ones_like({text.text(call.args[0])})")
                )
            ]
    return []


def added_up(text: Text, line: int) -> list[Change]:
    """Call backward of the sum of a list."""
    statement = text.at(line)
    for call in text.calls(line, "backward"):
        if statement is not None and isinstance(call.func, ast.Attribute):
            own = call.func.value
            return [text.edited(statement, (start(own), end(own), f"sum({text.text(own)})"))]
    return []


def other_weight(text: Text, line: int, y: Any, v: Any) -> list[Change]:
    """Give backward, or grad, a v of the right shape: the same numbers where there are as many, or ones."""
    for call in text.calls(line, "backward", "grad"):
        statement, whole = text.at(line), text.text(call.func).rpartition(".")[0]
        apart = called(call) == "grad" or whole.rpartition(".")[2] == "autograd"  # y is an argument
        receiver = text.text(call.args[0]) if apart and call.args else whole
        place = 2 if called(call) == "grad" else int(apart)
        given = [*call.args[place:], *(k.value for k in call.keywords if k.arg in ("gradient", "grad_outputs"))][:1]
        if statement is None or not given:
            return []
        if v.numel() == y.numel():
            return [text.edited(statement, *behind(given[0], f".reshape({receiver}.shape)"))]
        made = next(iter(Flow(text).of_name(given[0])), None) if isinstance(given[0], ast.Name) else None
        if isinstance(made, ast.Call) and called(made) in ("zeros", "ones", "rand", "randn") and y.dim():
            above = text.at(made.lineno) or statement
            return [text.edited(above, (start(made), end(made), f"torch.{called(made)}_like({receiver})"))]
        new = f"torch.ones_like({receiver})" if y.dim() else "torch.tensor(1.0)"
        return [text.edited(statement, (start(given[0]), end(given[0]), new))]
    return []


def requiring(text: Text, name: str, line: int, whole: bool = False) -> list[Change]:
    """Let the tensor from which a name was computed require a gradient, where the script makes it.

    `whole` tells that its numbers are whole ones, which cannot.
    """
    found = _made(text, name, line)
    if found is None:
        return []
    statement, call = found
    if _is_of_self(text, statement):
        real = ".float()" if whole else ""
        edits = (start(call), start(call), "torch.nn.Parameter("), (end(call), end(call), f"{real})")
        return [text.edited(statement, *edits)]
    if called(call) == "Variable" or called(call) in _MAKERS:
        dtype = [_appended(text, call, "dtype=torch.float32")] if whole and called(call) != "Variable" else []
        for keyword in call.keywords:
            if keyword.arg == "requires_grad":
                return [text.edited(statement, (start(keyword.value), end(keyword.value), "True"), *dtype)]
        argument = "dtype=torch.float32, requires_grad=True" if dtype else "requires_grad=True"
        return [text.edited(statement, _appended(text, call, argument))]
    return [text.edited(statement, *behind(call, (".float()" if whole else "") + ".requires_grad_()"))]


def _made(text: Text, name: str, line: int) -> tuple[ast.stmt, ast.Call] | None:
    """Return where the script makes the tensor from which a name was computed: the statement, and the call in it."""
    statement = text.at(line)
    named = [n for n in ast.walk(statement) if text.text(n) == name] if statement is not None else []
    flow = Flow(text)
    values = [e for n in named for e in flow.back(n)]
    calls = [n for value in values for n in ast.walk(value) if isinstance(n, ast.Call)]
    made = [(text.at(c.lineno) or text.tree.body[0], c) for c in calls if called(c) in _MAKERS | _OTHER_MAKERS]
    own = [pair for pair in made if _is_of_self(text, pair[0])]  # a module's, before what it is called with
    return next(iter([*own, *made]), None)


def _is_of_self(text: Text, statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and text.text(statement.targets[0]).startswith("self.")


def recorded(text: Text, line: int) -> list[Change]:
    """Take a `with torch.no_grad()` away from around a line, or such a decorator."""
    for node in text.around(line, ast.With):
        for item in node.items:
            if isinstance(item.context_expr, ast.Call) and called(item.context_expr) in ("no_grad", "inference_mode"):
                return [_dedented(text, node)] if len(node.items) == 1 else []
    for node in text.around(line, ast.FunctionDef):
        for decorator in node.decorator_list:
            if any(word in text.text(decorator) for word in ("no_grad", "inference_mode")):
                return [Change(text.file, decorator.lineno, decorator.lineno, ())]
    for statement in reversed([s for s in text.statements() if isinstance(s, ast.Expr) and s.lineno < line]):
        for call in text.calls(statement.lineno, "set_grad_enabled"):
            if call.args:
                return [text.edited(statement, (start(call.args[0]), end(call.args[0]), "True"))]
    return []


def _dedented(text: Text, node: ast.With) -> Change:
    first, last = node.lineno, node.end_lineno or node.lineno
    indent = " " * node.col_offset
    if node.body[0].lineno == first:
        return text.replaced(node, text.lines[first - 1][node.body[0].col_offset :])
    inner = node.body[0].col_offset
    lines = [indent + line[inner:] if line.strip() else "" for line in text.lines[node.body[0].lineno - 1 : last]]
    return Change(text.file, first, last, tuple(lines))


def detached(text: Text, line: int, value: Callable[[ast.expr], Any]) -> list[Change]:
    """Take numbers out of the graph before NumPy gets them: x.detach().numpy(), np.sin(x.detach())."""
    statement = text.at(line)
    for call in text.calls(line, "numpy"):
        if statement is not None and isinstance(call.func, ast.Attribute):
            return [text.edited(statement, *behind(call.func.value, ".detach()", text))]
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call) and n.args] if statement is not None else []
    given = [c.args[0] for c in calls if text.text(c.func).partition(".")[0] in ("np", "numpy")]
    found = [own for own in given if getattr(value(own), "requires_grad", False) or isinstance(value(own), list)]
    for own in (found or given)[:1]:
        listed = [(start(own), end(own), f"[e.detach() for e in {text.text(own)}]")]
        edits = listed if isinstance(value(own), list) else behind(own, ".detach()")
        return [text.edited(statement, *edits)] if statement is not None else []
    return []


def if_there(text: Text, line: int, grad: str) -> list[Change]:
    """Ask whether there is a gradient, before it is set to zero."""
    statement = text.at(line)
    if isinstance(statement, ast.Expr | ast.AugAssign):  # what gives nothing a name
        return [text.replaced(statement, f"if {grad} is not None: {text.text(statement)}")]
    return []


def real(text: Text, line: int) -> list[Change]:
    """Make a tensor of real numbers, where a script makes one of whole ones."""
    statement = text.at(line)
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Attribute):  # x.requires_grad = True
        owner = text.text(statement.targets[0].value)
        return [text.replaced(statement, f"{owner} = {owner}.float().requires_grad_()")]
    for call in text.calls(line, "requires_grad_"):
        if isinstance(statement, ast.Expr) and isinstance(call.func, ast.Attribute) and statement.value is call:
            owner = text.text(call.func.value)
            return [text.replaced(statement, f"{owner} = {owner}.float().requires_grad_()")]
        if statement is not None and isinstance(call.func, ast.Attribute):
            return [text.edited(statement, *behind(call.func.value, ".float()", text))]
    for call in text.calls(line, "Variable", "Parameter"):
        if statement is not None and call.args:
            return [text.edited(statement, *behind(call.args[0], ".float()"))]
    for call in text.calls(line, *_MAKERS):
        assert statement is not None
        for keyword in call.keywords:
            if keyword.arg == "dtype":
                return [text.edited(statement, (start(keyword.value), end(keyword.value), "torch.float32"))]
        return [text.edited(statement, _appended(text, call, "dtype=torch.float32"))]
    return []


def more_returned(text: Text, name: str, missing: int) -> list[Change]:
    """Let the backward of a class return None for the arguments of forward that it forgot."""
    for owner in [n for n in ast.walk(text.tree) if isinstance(n, ast.ClassDef) and n.name == name]:
        for function in [n for n in owner.body if isinstance(n, ast.FunctionDef) and n.name == "backward"]:
            for node in [n for n in ast.walk(function) if isinstance(n, ast.Return) and n.value is not None]:
                if isinstance(node.value, ast.List):
                    edit = (start(node.value), end(node.value), text.text(node.value)[1:-1])
                    return [text.edited(node, edit)]
                if missing > 0 and node.value is not None:
                    more = ", ".join(["None"] * missing)
                    comma = "" if text.text(node).rstrip().endswith(",") else ","
                    return [text.edited(node, (end(node), end(node), f"{comma} {more}"))]
    return []


def cloned(text: Text, line: int, value: Callable[[ast.expr], Any]) -> list[Change]:
    """Copy a computed tensor's numbers, in the place of the tensor; let go of one that something else holds."""
    statement = text.at(line)
    for call in text.calls(line, "deepcopy"):
        if statement is None or not call.args:
            continue
        own, name = value(call.args[0]), text.text(call.args[0])
        if hasattr(own, "grad_fn"):
            return [text.edited(statement, (start(call), end(call), f"{name}.detach().clone()"))]
        inner = own.items() if isinstance(own, dict) else getattr(own, "__dict__", {}).items()
        held = [key for key, x in inner if getattr(x, "grad_fn", None) is not None]
        if held and isinstance(own, dict):
            new = f"{{k: v.detach().clone() for k, v in {name}.items()}}"
            return [text.edited(statement, (start(call), end(call), new))]
        if held:
            return [text.replaced(statement, *(f"{name}.{key} = None" for key in held), text.text(statement))]
    return []


def not_inference(text: Text) -> list[Change]:
    """Compute without recording, in the place of inference_mode, whose tensors autograd never uses."""
    for statement in text.statements():
        if isinstance(statement, ast.With):
            for item in statement.items:
                call = item.context_expr
                if isinstance(call, ast.Call) and called(call) == "inference_mode":
                    line = text.lines[statement.lineno - 1].replace("inference_mode", "no_grad")
                    return [Change(text.file, statement.lineno, statement.lineno, (line,))]
        for decorator in getattr(statement, "decorator_list", ()):
            if "inference_mode" in text.text(decorator):
                line = text.lines[decorator.lineno - 1].replace("inference_mode", "no_grad")
                return [Change(text.file, decorator.lineno, decorator.lineno, (line,))]
    return []


def twice_differentiable(text: Text) -> list[Change]:
    """Take @once_differentiable away."""
    for statement in text.statements():
        for decorator in getattr(statement, "decorator_list", ()):
            if "once_differentiable" in text.text(decorator):
                return [Change(text.file, decorator.lineno, decorator.lineno, ())]
    return []


def without_out(text: Text, line: int) -> list[Change]:
    """Give a result its name by an assignment, in the place of out=."""
    statement = text.at(line)
    for call in [n for n in ast.walk(statement) if isinstance(n, ast.Call)] if statement is not None else []:
        for keyword in call.keywords:
            own = isinstance(statement, ast.Expr | ast.Assign) and statement.value is call
            if keyword.arg == "out" and own and statement is not None:
                rest = [*map(text.text, call.args), *(text.text(k) for k in call.keywords if k is not keyword)]
                new = f"{text.text(keyword.value)} = {text.text(call.func)}({', '.join(rest)})"
                return [text.edited(statement, (start(call), end(call), new))]
    return []


def kept_away(text: Text, line: int) -> list[Change]:
    """Keep what a root or a logarithm is taken of away from 0, where its slope is infinite."""
    statement = text.at(line)
    for call in text.calls(line, "sqrt", "rsqrt", "log", "log2", "log10"):
        own = call.func.value if isinstance(call.func, ast.Attribute) else call
        own = call.args[0] if text.text(own) == "torch" and call.args else own
        if statement is not None and own is not call:
            return [text.edited(statement, *behind(own, ".clamp(min=1e-12)", text))]
    return []


def cut_off(text: Text, line: int) -> list[Change]:
    """Detach a computed tensor, where a script says that it needs no gradient."""
    statement = text.at(line)
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Attribute):
        name = text.text(statement.targets[0].value)
        return [text.replaced(statement, f"{name} = {name}.detach()")]
    for call in text.calls(line, "requires_grad_"):
        if isinstance(statement, ast.Expr) and isinstance(call.func, ast.Attribute):
            name = text.text(call.func.value)
            return [text.replaced(statement, f"{name} = {name}.detach()")]
    return []


def as_a_tensor(text: Text, line: int, like: bool = False) -> list[Change]:
    """Set .grad to a tensor of the right shape, where a script sets it to a number, or to one of another shape."""
    statement = text.at(line)
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Attribute):
        owner, value = text.text(statement.targets[0].value), statement.value
        new = f"torch.full_like({owner}, {text.text(value)})"
        if like:
            made = called(value) if isinstance(value, ast.Call) else ""
            new = f"torch.{made if made in ('zeros', 'ones', 'rand', 'randn') else 'zeros'}_like({owner})"
        return [text.edited(statement, (start(value), end(value), new))]
    return []


def given_leaves(text: Text, line: int, tensors: Mapping[str, Any]) -> list[Change]:
    """Give an optimizer the leaf that a tensor was computed from."""
    flow, statement = Flow(text), text.at(line)
    for call in [n for n in ast.walk(statement) if isinstance(n, ast.Call)] if statement is not None else []:
        given = call.args[0].elts if call.args and isinstance(call.args[0], ast.List | ast.Tuple) else []
        for own in given:
            names = [text.text(n) for e in flow.back(own) for n in ast.walk(e) if isinstance(n, ast.Name)]
            leaf = next((n for n in names if n in tensors and tensors[n].is_leaf and tensors[n].requires_grad), "")
            if leaf and statement is not None:
                return [text.edited(statement, (start(own), end(own), leaf))]
    return []


def transposed(text: Text, line: int, left: tuple[int, int], right: tuple[int, int]) -> list[Change]:
    """Transpose the factor of a product of matrices that fits then: x @ w.T."""
    statement = text.at(line)
    for node in ast.walk(statement) if statement is not None else ():
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            factors = [node.left, node.right]
        elif isinstance(node, ast.Call) and called(node) in ("matmul", "mm"):
            own = isinstance(node.func, ast.Attribute) and text.text(node.func.value) != "torch"
            factors = [node.func.value, *node.args] if own and isinstance(node.func, ast.Attribute) else node.args
        else:
            continue
        turned = factors[1] if left[1] == right[1] else factors[0] if left[0] == right[0] else None
        if turned is not None and statement is not None:
            return [text.edited(statement, *behind(turned, ".T"))]
    return []


def with_inputs(text: Text, given: int, inputs: int, outputs: int) -> list[Change]:
    """Give a layer as many inputs as it gets numbers: nn.Linear(784, 10)."""
    for call in [n for n in ast.walk(text.tree) if isinstance(n, ast.Call) and called(n) == "Linear"]:
        statement = text.at(call.lineno)
        sizes = [a.value if isinstance(a, ast.Constant) else None for a in call.args[:2]]
        if statement is not None and sizes == [inputs, outputs]:
            return [text.edited(statement, (start(call.args[0]), end(call.args[0]), str(given)))]
    return []


def whole(text: Text, line: int) -> list[Change]:
    """Make whole numbers of the targets of a loss."""
    statement = text.at(line)
    for node in ast.walk(statement) if statement is not None else ():
        if isinstance(node, ast.Call) and len(node.args) > 1 and statement is not None:
            return [text.edited(statement, *behind(node.args[1], ".long()"))]
    return []
