"""Errors of modules: parameters that an optimizer does not get, constructors that do not run, states of others."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from gradcli.record.naming import is_tensor
from gradcli.script.errors import edits, leaves
from gradcli.script.errors.failure import Answer, Failure, is_module, is_whole
from gradcli.script.errors.fixes import resized
from gradcli.script.errors.syntax import called, calls, methods, owner_of, parts
from gradcli.text.wrapping import in_words

_REGISTERS = "a module registers the parameters and modules that are its attributes"
_CONTAINERS: Mapping[type, Any] = {ast.List: [], ast.ListComp: [], ast.Tuple: (), ast.Dict: {}, ast.DictComp: {}}
_TRAINED = re.compile("Linear|Conv|Norm|RNN|LSTM|GRU|Embedding|Attention|Transformer|PReLU")
_MISSPELT = re.compile(r"_+(init|int|inti|ini|intit|initi)_*|init_+|_*initialize__")
_MOST_NAMES = 3  # of parameters that are listed
# The packages whose names differ from those of their modules.
_PACKAGES = {
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "PIL": "pillow",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}


def missing(at: Failure, name: str) -> Answer:
    """Return the answer about a module of Python's that is not installed."""
    reason = f"{at.code(at.line)} needs `{name}`, and the Python that runs gradcli has no module of this name."
    command = f"`python -m pip install {_PACKAGES.get(name, name)}`"
    fix = f"{command} where gradcli is installed, if it is a package; a file of yours must be beside the script"
    return Answer(reason, fix)


# Parameters


def none(at: Failure, *_: str) -> Answer | None:
    """Return the answer about an optimizer without parameters: why the class has not registered them."""
    modules = [m for m in _modules(at) if is_module(m)]
    if (answer := _read_before(at)) or (answer := not_constructed(at)):
        return answer
    if any(True for m in modules for _ in m.parameters()):
        changes = leaves.thawed(at.text)
        reason = "all parameters are frozen: their requires_grad is False, and the optimizer gets none of them."
        return Answer(reason, "let some of the parameters require a gradient", changes) if changes else None
    held = {name: x for m in modules for inner in m.modules() for name, x in vars(inner).items()}
    for cls in _classes(at, modules):
        answer = _in_a_container(at, cls, held) or _local(at, cls) or _plain(cls, held) or _in_forward(at, cls)
        if answer:
            return answer
    return None


def unset(at: Failure, owner: str, name: str) -> Answer | None:
    """Return the answer about an attribute of a module that its constructor keeps in a local variable."""
    for cls in _classes(at):
        if cls.name == owner and (answer := _local(at, cls, name)):
            return answer
    return None


def _modules(at: Failure) -> Iterator[Any]:
    """Yield the objects whose parameters the line of an error, or what it reads, asks for."""
    for node in (at.text.statement, *at.text.back(at.text.statement)):
        yield from (at.value(owner_of(call)) for call in calls(node, "parameters", "named_parameters"))


def _read_before(at: Failure) -> Answer | None:
    """Return the answer about parameters that were read before: parameters() can be read once."""
    for node in at.failed_parts(ast.Name):
        for value in at.text.values(node) if isinstance(at.value(node), Iterator) else ():
            if called(value) in ("parameters", "named_parameters", "filter"):
                code = at.code(value.lineno)
                reason = f"{node.id} can be read only once, and the script has read it since {code} created it."
                changes = at.text.on(value.lineno).edited(edits.wrapped(value, "list("))
                return Answer(reason, "keep the parameters in a list", changes)
    return None


def _in_a_container(at: Failure, cls: ast.ClassDef, held: Mapping[str, Any]) -> Answer | None:
    """Return the answer about layers or parameters in a list, a tuple or a dictionary of Python's."""
    for name, value in _of_self(cls):
        x = held.get(name, _CONTAINERS.get(type(value)))
        items = [*x.values()] if isinstance(x, dict) else [*x] if isinstance(x, list | tuple) else []
        if not held:  # the module is gone: SGD(Net().parameters())
            items = [at.value(c.func) for c in calls(value) if _is_of_modules(at, c)]
        are_modules = any(is_module(e) or isinstance(e, type) for e in items)
        if x is not None and (are_modules or any(is_tensor(e) and e.requires_grad and e.is_leaf for e in items)):
            kind = f"{'Module' if are_modules else 'Parameter'}{'Dict' if isinstance(x, dict) else 'List'}"
            reason = f"{_REGISTERS}, and self.{name} is a Python {type(x).__name__}, which it does not look into."
            changes = at.main.edited(edits.wrapped(value, f"torch.nn.{kind}("))
            return Answer(reason, f"use what is a module too, torch.nn.{kind}", changes)
    return None


def _local(at: Failure, cls: ast.ClassDef, name: str = "") -> Answer | None:
    """Return the answer about a layer that `__init__` gives a name without self, which ends with the function."""
    for function in methods(cls, "__init__"):
        read = {n.id for n in parts(function, ast.Name) if isinstance(n.ctx, ast.Load)}
        made = [s for s in parts(function, ast.Assign) if _is_of_modules(at, s.value)]
        targets = [t for s in made for t in s.targets if isinstance(t, ast.Name) and t.id not in read]
        if targets and (not name or name in {t.id for t in targets}):
            owner = function.args.args[0].arg if function.args.args else "self"
            code = at.code(targets[0].lineno)
            reason = f"{code} names the layer in `__init__` alone: {_REGISTERS}."
            changes = at.main.edited([e for t in targets for e in edits.instead(t, f"{owner}.{t.id}")])
            return Answer(reason, f"make it an attribute, {owner}.{targets[0].id}", changes)
    return None


def _plain(cls: ast.ClassDef, held: Mapping[str, Any]) -> Answer | None:
    """Return the answer about tensors that are attributes, and no parameters."""
    tensors = {n: x for n, x in held.items() if is_tensor(x) and not is_whole(x)}
    names = [n for n, v in _of_self(cls) if n in tensors or (not held and called(v) in leaves.MAKERS)]
    for name in sorted(names, key=lambda n: not (n in tensors and tensors[n].requires_grad)):
        is_computed = name in tensors and tensors[name].requires_grad and not tensors[name].is_leaf
        computed = ", and this one is computed from a Parameter" * is_computed
        reason = f"{_REGISTERS}; self.{name} is a tensor, which counts only if it is a torch.nn.Parameter{computed}."
        return Answer(reason, f"make a Parameter of it: self.{name} = torch.nn.Parameter(…)")
    return None


def _in_forward(at: Failure, cls: ast.ClassDef) -> Answer | None:
    """Return the answer about a layer that `forward` creates, anew in each call."""
    for function in methods(cls, "forward"):
        for call in [c for c in calls(function) if _is_of_modules(at, c) and _TRAINED.search(called(c))]:
            made = f"{at.code(call.lineno)} creates a layer in forward, a new one in each call"
            fix = f"create it in `__init__`, `self.layer = {at.main.of(call)}`, and call self.layer in forward"
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


# Classes


def misspelt_init(cls: ast.ClassDef) -> ast.FunctionDef | None:
    """Return the method of a class that is meant as its constructor, and is called otherwise: `_init_`, `__int__`.

    It calls the constructor of the base class, or assigns attributes of the object.
    """
    if methods(cls, "__init__"):
        return None
    for function in [f for f in methods(cls) if _MISSPELT.fullmatch(f.name) and f.args.args]:
        name = function.args.args[0].arg
        stored = [n for n in parts(function, ast.Attribute) if isinstance(n.ctx, ast.Store)]
        if calls(function, "__init__", function.name) or any(getattr(n.value, "id", "") == name for n in stored):
            return function
    return None


def not_constructed(at: Failure, *_: Any) -> Answer | None:
    """Return the answer to an error of an object whose class has a constructor of another name."""
    for cls in _classes(at):
        if (function := misspelt_init(cls)) is not None:
            reason = f"Python calls `__init__` where {cls.name} is created, and line {function.lineno} defines "
            fix = f"give it that name, and write super().__init__() where it calls super().{function.name}()"
            return Answer(f"{reason}`{function.name}`, which nothing calls.", fix, topic="layers")
    return None


def _classes(at: Failure, modules: Iterable[Any] = ()) -> Iterator[ast.ClassDef]:
    """Yield the script's classes of `self`, of objects in the failed statement, and of parts of some modules."""
    values = [part for m in modules for part in m.modules()]
    values += [at.value(n) for n in parts(at.text.statement, ast.Name, ast.Attribute)]
    kinds = {v if isinstance(v, type) else type(v) for v in values} | {type(at.frame.f_locals.get("self"))}
    names = {k.__name__ for kind in kinds for k in kind.__mro__}
    yield from (cls for cls in parts(at.main.tree, ast.ClassDef) if cls.name in names)


def without_forward(at: Failure, name: str) -> Answer | None:
    """Return the answer about a module without a forward: a method of a name like that, or a function in another."""
    for cls in [c for c in parts(at.main.tree, ast.ClassDef) if c.name == name]:
        for outer in methods(cls):
            if any(f.name == "forward" and f is not outer for f in parts(outer, ast.FunctionDef)):
                reason = f"forward stands in `{outer.name}` of {name}, by its indentation, so that the class has none."
                return Answer(reason, f"indent forward as `{outer.name}`", topic="layers")
        named = {f.name.strip("_").lower(): f.name for f in methods(cls)}
        for like in get_close_matches("forward", named, cutoff=0.7):
            reason = f"calling a module calls its forward, and {name} defines `{named[like]}`."
            return Answer(reason, "name it forward", topic="layers")
    return None


# The states that are loaded


def loaded(at: Failure, *_: Any) -> Answer | None:
    """Return the answer about a state that is not one of the module."""
    scope = at.scope("load_state_dict")
    if not scope or not isinstance(saved := scope["state_dict"], Mapping):
        return None
    module: Any = scope["self"]
    own = module.state_dict()
    call = next(iter(at.failed_calls("load_state_dict", least=1)), None)
    code = at.text.of(call.args[0]) if call is not None else "state"
    for key, value in saved.items():
        if isinstance(value, Mapping) and own.keys() <= value.keys():
            reason = f"the state is one of several entries of what was saved: that of `{key}`."
            new = edits.instead(call.args[0], f'{code}["{key}"]') if call is not None else []
            return at.answer(reason, "load that entry", new)
    if prefix := _prefix(own, saved):
        reason = f"the saved names begin with `{prefix}`, as in `{next(iter(saved))}`, and those of the module do not."
        return Answer(
            reason, f'remove that from each name: `{{k.removeprefix("{prefix}"): x for k, x in {code}.items()}}`'
        )
    if prefix := _prefix(saved, own):
        reason = f"the names of the module begin with `{prefix}`, as in `{next(iter(own))}`, and the saved ones do not."
        return Answer(reason, f'add that to each name: `{{"{prefix}" + k: x for k, x in {code}.items()}}`')
    for name in [n for n in own if n in saved and own[n].shape != getattr(saved[n], "shape", None)]:
        kind = type(module.get_submodule(name.rpartition(".")[0])).__name__
        return _of_other_sizes(at, name, tuple(own[name].shape), kind, tuple(saved[name].shape))
    absent, unexpected = [n for n in own if n not in saved], [n for n in saved if n not in own]
    said = [f"also has {_listed(absent)}"] if absent else []
    said += [f"has no {_listed(unexpected)}"] if unexpected else []
    reason = f"the names that are loaded must be those of the module, and the module {' and '.join(said)}."
    fix = "create the module as it was saved; or load the names that both have, with strict=False"
    return Answer(reason, fix)


def _prefix(names: Any, longer: Any) -> str:
    """Return what each of some names has before it among others, as `DataParallel` writes it; "" for nothing."""
    prefixes = {k.removesuffix(n) for k, n in zip(longer, names, strict=False)}
    (prefix, *more) = prefixes or {""}
    return "" if more or [*longer] != [prefix + n for n in names] else prefix


def _of_other_sizes(at: Failure, name: str, shape: Sequence[int], kind: str, saved: Sequence[int]) -> Answer:
    """Return the answer about a parameter of another shape, and the sizes of its layer where they follow from it."""
    reason = f"{name} has the shape {shape} in the module, and {saved} in what is loaded: "
    reason += "that was saved from layers of other sizes."
    if kind == "Linear" or kind.startswith("Conv"):  # their weights are (out, in, …)
        shape, saved = shape[1::-1], saved[1::-1]
    changes = resized(at, (kind,), shape, saved) if len(shape) == len(saved) == 2 else []
    return Answer(reason, "create the layers with the sizes that were saved", changes)


def _listed(names: Sequence[str]) -> str:
    more = [f"{len(names) - _MOST_NAMES} more"] if len(names) > _MOST_NAMES else []
    return in_words([*names[:_MOST_NAMES], *more])


def no_state(at: Failure, *_: Any) -> Answer | None:
    """Return the answer about a module, or the name of a file, in place of a state."""
    for call in at.failed_calls("load_state_dict", least=1):
        value, code = at.value(call.args[0]), at.text.of(call.args[0])
        if is_module(value):
            reason = f"load_state_dict takes a state, and {code} is a module."
            return at.answer(reason, "pass its state", edits.behind(call.args[0], ".state_dict()"))
        if isinstance(value, str):
            reason = "load_state_dict takes a state, and not the name of a file."
            return Answer(reason, f"load the file first, torch.load({code})")
    return None
