"""Parameters that an optimizer does not get, or a module does not have: why the class has not registered them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from gradcli.record.naming import is_tensor
from gradcli.script.errors import edits, leaves
from gradcli.script.errors.classes import classes_of, not_constructed
from gradcli.script.errors.failure import Answer, Failure, is_module, is_whole
from gradcli.script.errors.flow import Flow
from gradcli.script.errors.source import Text
from gradcli.script.errors.syntax import called, calls, end, methods, owner_of, parts, start

_REGISTERS = "a module registers the parameters and modules that are its attributes"
_CONTAINERS: Mapping[type, Any] = {ast.List: [], ast.ListComp: [], ast.Tuple: (), ast.Dict: {}, ast.DictComp: {}}
_TRAINED = (
    "Linear",
    "Bilinear",
    "Conv",
    "Norm",
    "RNN",
    "LSTM",
    "GRU",
    "Embedding",
    "Attention",
    "Transformer",
    "PReLU",
)


def none(at: Failure, *_: str) -> Answer | None:
    """Return the answer about an optimizer without parameters."""
    modules = [m for m in _modules(at) if is_module(m)]
    if (answer := _read_before(at)) or (answer := not_constructed(at)):
        return answer
    if any(True for m in modules for _ in m.parameters()):
        changes = leaves.thawed(at.text)
        reason = "all parameters are frozen: their requires_grad is False, and the optimizer gets none of them."
        return Answer(reason, "let some of the parameters require a gradient", changes) if changes else None
    held = {name: x for m in modules for inner in m.modules() for name, x in vars(inner).items()}
    for text, cls in classes_of(at, modules):
        answer = _in_a_container(at, text, cls, held) or _local(at, text, cls) or _plain(text, cls, held)
        if answer or (answer := _in_forward(at, text, cls)):
            return answer
    return None


def unset(at: Failure, owner: str, name: str) -> Answer | None:
    """Return the answer about an attribute of a module that its constructor keeps in a local variable."""
    for text, cls in classes_of(at):
        if cls.name == owner and (answer := _local(at, text, cls, name)):
            return answer
    return None


def _modules(at: Failure) -> Iterator[Any]:
    """Yield the objects whose parameters the line of an error, or what it reads, asks for."""
    for node in (at.text.statement, *Flow(at.text).back(at.text.statement)):
        for call in calls(node, "parameters", "named_parameters"):
            yield at.value(owner_of(call))


def _read_before(at: Failure) -> Answer | None:
    """Return the answer about parameters that were read before: parameters() can be read once."""
    for node in at.failed_parts(ast.Name):
        for value in Flow(at.text).of_name(node) if isinstance(at.value(node), Iterator) else ():
            if called(value) in ("parameters", "named_parameters", "filter"):
                code = at.code(value.lineno)
                reason = f"{node.id} can be read only once, and the script has read it since {code} created it."
                changes = at.text.on(value.lineno).edited(edits.wrapped(value, "list("))
                return Answer(reason, "keep the parameters in a list", changes)
    return None


def _in_a_container(at: Failure, text: Text, cls: ast.ClassDef, held: Mapping[str, Any]) -> Answer | None:
    """Return the answer about layers or parameters in a list, a tuple or a dictionary of Python's."""
    new: list[Any] = []
    words = ""
    for name, value in _of_self(cls):
        x = held.get(name, _CONTAINERS.get(type(value)))
        items = [*x.values()] if isinstance(x, dict) else [*x] if isinstance(x, list | tuple) else []
        if not held:  # the module is gone: SGD(Net().parameters())
            items = [at.value(c.func) for c in calls(value) if _is_of_modules(at, c)]
        are_modules = any(is_module(e) or isinstance(e, type) for e in items)
        if x is None or not (are_modules or any(map(_is_trained, items))):
            continue
        shape = "Dict" if isinstance(x, dict) else "List"
        words = words or f"self.{name} is a Python {type(x).__name__}"
        is_plain = all(is_module(e) or isinstance(e, type) or _is_trained(e) for e in items)
        if is_plain and (shape == "List" or all(isinstance(k, str) and "." not in k for k in x)):
            new += edits.wrapped(value, f"{_nn(text)}{'Module' if are_modules else 'Parameter'}{shape}(")
    if not words:
        return None
    reason = f"{_REGISTERS}, and {words}, which it does not look into."
    fix = "use what is a module too: ModuleList or ModuleDict, ParameterList or ParameterDict"
    return Answer(reason, fix, text.edited(new))


def _local(at: Failure, text: Text, cls: ast.ClassDef, name: str = "") -> Answer | None:
    """Return the answer about a layer that `__init__` gives a name without self, which ends with the function."""
    for function in methods(cls, "__init__"):
        read = {n.id for n in parts(function, ast.Name) if isinstance(n.ctx, ast.Load)}
        targets = [
            target
            for statement in parts(function, ast.Assign)
            for target in statement.targets
            if isinstance(target, ast.Name) and target.id not in read and _is_of_modules(at, statement.value)
        ]
        if targets and (not name or name in {t.id for t in targets}):
            owner = function.args.args[0].arg if function.args.args else "self"
            code = at.code(targets[0].lineno)
            reason = f"{code} names the layer in `__init__` alone: {_REGISTERS}."
            changes = text.edited([(start(t), start(t), f"{owner}.") for t in targets])
            return Answer(reason, f"make it an attribute, {owner}.{targets[0].id}", changes)
    return None


def _plain(text: Text, cls: ast.ClassDef, held: Mapping[str, Any]) -> Answer | None:
    """Return the answer about tensors that are attributes, and no parameters."""
    tensors = {n: x for n, x in held.items() if is_tensor(x) and not is_whole(x)}
    values = [(n, v) for n, v in _of_self(cls) if n in tensors or (not held and called(v) in leaves.MAKERS)]
    wanted = [(n, v) for n, v in values if n in tensors and tensors[n].requires_grad] or values
    if not wanted:
        return None
    new: list[Any] = []
    for _, value in wanted:
        made = [c for c in calls(value, "Parameter") if c.args and c is not value]
        if made:  # Parameter(torch.randn(3)) * 0.1, which is computed
            inner = made[0].args[0]
            new += [(start(made[0]), start(inner), ""), (end(inner), end(made[0]), "")]
        new += edits.wrapped(value, f"{_nn(text)}Parameter(")
    name = wanted[0][0]
    is_computed = name in tensors and tensors[name].requires_grad and not tensors[name].is_leaf
    computed = ", and this one is computed from a Parameter" * is_computed
    reason = f"{_REGISTERS}; self.{name} is a tensor, which counts only if it is a torch.nn.Parameter{computed}."
    return Answer(reason, "make a Parameter of it", text.edited(new))


def _in_forward(at: Failure, text: Text, cls: ast.ClassDef) -> Answer | None:
    """Return the answer about a layer that `forward` creates, anew in each call."""
    for function in methods(cls, "forward"):
        named = {s.value: s.targets[0] for s in parts(function, ast.Assign)}
        for call in calls(function):
            if _is_of_modules(at, call) and any(kind in called(call) for kind in _TRAINED):
                target = named.get(call)
                layer = f"self.{target.id if isinstance(target, ast.Name) else 'layer'}"
                made = f"{at.code(call.lineno)} creates a layer in forward, a new one in each call"
                fix = f"create it in `__init__`, `{layer} = {text.of(call)}`, and call {layer} in forward"
                return Answer(f"{made}: the module itself has none.", fix)
    return None


def _of_self(cls: ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    """Yield the attributes of an object that its class assigns, with their values."""
    for statement in parts(cls, ast.Assign):
        for target in statement.targets:
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
                yield target.attr, statement.value


def _is_of_modules(at: Failure, value: ast.expr) -> bool:
    """Return whether an expression creates a module or a parameter."""
    kind = at.value(value.func) if isinstance(value, ast.Call) else None
    return isinstance(kind, type) and (hasattr(kind, "named_parameters") or kind.__name__ == "Parameter")


def _is_trained(x: Any) -> bool:
    """Return whether a value is a leaf that requires a gradient."""
    return is_tensor(x) and x.requires_grad and x.is_leaf


def _nn(text: Text) -> str:
    """Return how the script writes `torch.nn.`: nn., where it imports that."""
    imports: list[Any] = [*parts(text.tree, ast.Import), *parts(text.tree, ast.ImportFrom)]
    return "nn." if any((a.asname or a.name) == "nn" for n in imports for a in n.names) else "torch.nn."
