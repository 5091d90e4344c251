"""The names of a script's tensors."""

from __future__ import annotations

import sys
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from gradcli.graph.names import element_name

_FEW = 64  # tensors of a list, a dictionary or an object that get names
_DEEP = 2  # lists and dictionaries within each other


def is_tensor(x: Any) -> bool:
    """Return whether an object is a tensor, of whichever PyTorch."""
    return hasattr(type(x), "grad_fn") and hasattr(type(x), "backward")  # no record of an operation


def is_readable(x: Any) -> bool:
    """Return whether the graph of a tensor can be read: not that of a view which a change in place has left behind."""
    try:
        _ = is_tensor(x) and x.grad_fn
    except RuntimeError:
        return False
    return True


def script_frames(frame: Any = None) -> Iterator[Any]:
    """Yield the frames of the script that is running, or those that led to one, the innermost first."""
    frame = frame or sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module == "gradcli.pytorch.session":  # below it is what runs the script
            return
        if not module.startswith(("gradcli.", "importlib", "runpy", "torch.")):
            yield frame
        frame = frame.f_back


class Names:
    """The script's names of its tensors and of its modules.

    Two tensors are never compared, as that compares their elements.  What has a name is kept as long as its name, so
    that nothing else takes its identity.  `tensors` and `modules` are what has names of its own.

    >>> names, x = Names(), object()
    >>> names.add(x, "x")
    >>> names.add(x, "same")
    >>> names.of(x), names.of(object())
    ('x', '')
    """

    def __init__(self) -> None:
        self._named: dict[int, tuple[Any, str]] = {}
        self.tensors: dict[str, Any] = {}
        self.modules: dict[str, Any] = {}

    def add(self, x: Any, name: str) -> None:
        """Give a name to what has none."""
        if id(x) not in self._named:
            self._named[id(x)] = x, name

    def of(self, x: Any) -> str:
        """Return the name of a tensor or a module; "" where it has none."""
        return self._named[id(x)][1] if id(x) in self._named else ""

    def named(self) -> Iterator[tuple[str, Any]]:
        """Yield each tensor that still has its name, once."""
        yield from ((name, x) for name, x in self.tensors.items() if self.of(x) == name)

    def readable(self) -> Names:
        """Return them without the tensors whose graph cannot be read, which still count as held."""
        self.tensors = {name: x for name, x in self.tensors.items() if is_readable(x)}
        return self

    def held(self) -> list[Any]:
        """Return what has a name, also one that something else has where the script runs."""
        return [x for x, _ in self._named.values()]

    def hooks(self) -> list[Any]:
        """Return the hooks of gradients of PyTorch's tensors and modules."""
        kinds = ("_backward_hooks", "_post_accumulate_grad_hooks", "_backward_pre_hooks")
        having = (*self.tensors.values(), *self.modules.values())
        return [h for x in having for k in kinds for h in (getattr(x, k, None) or {}).values()]


class FreshNames:
    """Names that are not taken; of many with one stem, each search begins at the last one that was found.

    >>> taken = {"x", "h1"}
    >>> names = FreshNames(taken)
    >>> names.like("x"), names.like("y"), names.numbered("h"), names.numbered("h"), names.numbered("row[2]")
    ('x_2', 'y', 'h2', 'h2', 'row1')
    """

    def __init__(self, *taken: Container[str]) -> None:
        self.taken = taken
        self.last: dict[str, int] = {}

    def numbered(self, stem: str, first: int = 1) -> str:
        """Return a stem with the first number of which the name is not taken; of an element, its list is the stem."""
        stem = stem.partition("[")[0]
        k = self.last.get(stem, first)
        while any(f"{stem}{k}" in names for names in self.taken):
            k += 1
        self.last[stem] = k
        return f"{stem}{k}"

    def like(self, name: str) -> str:
        """Return a name as it is, or with a number: x, or x_2."""
        return self.numbered(f"{name.partition('[')[0]}_", 2) if any(name in names for names in self.taken) else name


def fresh(stem: str, taken: Container[str]) -> str:
    """Return a name that is not taken: x, or x_2."""
    return FreshNames(taken).like(stem)


def names_of(frame: Any) -> Names:
    """Return the names of tensors in a frame, and in the frames that called it."""
    return names_in(script_frames(frame))


def names_in(frames: Iterable[Any]) -> Names:
    """Return the names of tensors in frames, of which the first are the innermost."""
    result = Names()
    for each in frames:
        _collect(each.f_locals, result)
        if each.f_globals is not each.f_locals:
            _collect(each.f_globals, result)
    return result


def _collect(scope: Mapping[str, Any], names: Names) -> None:
    items = list(scope.items())
    if not {list, tuple, dict}.isdisjoint([type(value) for name, value in items if name[:2] != "__"]):
        # What is computed is loss rather than losses[0]; a leaf is ws[0], and not the variable of a loop.
        items.sort(key=lambda item: not _is_computed(item[1]))
    for name, value in items:
        if name.startswith("__"):
            continue
        for inner, x in _parts(name, value, names):
            add_tensor(x, inner, names)


def _is_computed(x: Any) -> bool:
    with suppress(RuntimeError):  # of a view that was changed in a way that is not allowed
        return is_tensor(x) and not x.is_leaf
    return False


def _parts(name: str, value: Any, names: Names, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the tensors with names in a value: itself, or those of a list, a dictionary or an object."""
    if is_tensor(value):
        yield name, value
        return
    if hasattr(type(value), "named_parameters"):
        _of_module(name, value, names)
    for inner, part in _inside(name, value, depth) if depth <= _DEEP else ():
        yield from _parts(inner, part, names, depth + 1)


def _inside(name: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """Yield the items of a list, a dictionary or an object that may be or hold tensors, with their names."""
    items: Iterable[tuple[str, Any]] = ()
    match value:
        case list() | tuple() if len(value) <= _FEW:
            items = ((element_name(name, (i,)), x) for i, x in enumerate(value))
        case dict() if len(value) <= _FEW:
            keys = ((key, x) for key, x in value.items() if isinstance(key, str) and key.isidentifier())
            items = ((f"{name}.{key}" if depth else key, x) for key, x in keys)
        case _ if not depth and not isinstance(value, type):
            attributes = getattr(value, "__dict__", None)
            some = [*attributes.items()][:_FEW] if isinstance(attributes, dict) else []
            some.sort(key=lambda item: item[0][:1] == "_")  # a private one may be the same tensor
            shown = ((key, x) for key, x in some if is_tensor(x) or key[:1] != "_")
            items = ((key if name == "self" else f"{name}.{key}", x) for key, x in shown)
    for inner, part in items:
        if isinstance(part, list | tuple | dict) or is_tensor(part) or hasattr(type(part), "named_parameters"):
            yield inner, part


def _of_module(name: str, module: Any, names: Names) -> None:
    try:
        parameters, modules = list(module.named_parameters()), list(module.named_modules())
    except Exception:  # a module in the middle of its making has none yet
        return
    before = "" if name == "self" else f"{name}."
    for inner, parameter in parameters:
        add_tensor(parameter, before + inner, names)
    for inner, part in modules:
        names.add(part, before + inner if inner else name)
        names.modules.setdefault(names.of(part), part)


def add_tensor(x: Any, name: str, names: Names) -> None:
    """Give a name to a tensor."""
    names.add(x, name)
    names.tensors.setdefault(name, x)
