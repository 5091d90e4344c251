"""`torch.nn.Module` and `Parameter`: a tree of layers with their parameters and buffers, by name."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import update_wrapper
from typing import Any, Self

import numpy as np

from gradcli.pytorch.dtypes import float16, float32, float64
from gradcli.pytorch.messages import message, missing, missing_if, raise_if, torch_error, typename
from gradcli.pytorch.nn.module_hooks import Watched, watch_step
from gradcli.pytorch.nn.table import rows
from gradcli.pytorch.operations.creation import zeros
from gradcli.pytorch.record import SEQUENCE, Handle, Recorder
from gradcli.pytorch.tables import pytorch_names
from gradcli.pytorch.tensor import Array, Tensor, alias, new, of_array

__all__ = ["Module", "Parameter"]


class Parameter(Tensor):
    """A tensor that belongs to a module and wants a gradient."""

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        result = alias(new(np.zeros((0, 1), np.float32)) if data is None else data.detach(), cls)
        raise_if(requires_grad and result._a.dtype.kind != "f", "integers that require grad")
        result._requires, result._made = requires_grad, next(SEQUENCE)
        return result

    def __reduce_ex__(self, protocol: Any) -> Any:
        return rebuilt_parameter, (self._a[..., 0].copy(), self._requires)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = Parameter(new(self._a.copy()), self._requires)
        return memo[id(self)]


def rebuilt_parameter(array: Array, requires_grad: bool) -> Parameter:
    """Return a parameter that was pickled."""
    return Parameter(of_array(array), requires_grad)


Parameter.__module__ = "torch.nn.parameter"


class _IncompatibleKeys(namedtuple("_Keys", ("missing_keys", "unexpected_keys"))):
    """The result of `load_state_dict`."""

    def __repr__(self) -> str:
        return super().__repr__() if any(self) else "<All keys matched successfully>"


def _hooking(kind: str) -> Callable[..., Handle]:
    """Return a method that has a function called, before or after the forward or the backward."""
    is_of_forward = kind in ("pre", "forward")

    def register(self: Module, hook: Callable[..., Any], prepend: bool = False, **more: Any) -> Handle:
        with_kwargs = is_of_forward and more.pop("with_kwargs", False)
        missing_if(any(more.values()), f"torch.nn.Module's hooks with {', '.join(f'{n}=…' for n in more)}")
        hooks = hooks_of(self)
        other = {"backward": "old", "old": "backward"}.get(kind)
        raise_if(other and hooks[other], "two kinds of backward hooks")
        key = object()
        handle = Handle(hooks[kind], _with_kwargs(hook, with_kwargs) if is_of_forward else hook, key)
        if prepend:
            hooks[kind].move_to_end(key, last=False)
        return handle

    return register


def _with_kwargs(hook: Callable[..., Any], takes: bool) -> Callable[..., Any]:
    """Return a hook of a forward that is called with the keyword arguments behind the others, and may not take them."""
    if takes:
        return hook
    return update_wrapper(lambda m, args, kwargs, *result: _of_args(hook(m, args, *result), kwargs, result), hook)


def _of_args(changed: Any, kwargs: dict[str, Any], result: Any) -> Any:
    """Return what a hook returns that does not take keyword arguments, with those if it is one before the forward."""
    if result or changed is None:
        return changed
    return changed if isinstance(changed, tuple) else (changed,), kwargs


def hooks_of(module: Any) -> dict[str, OrderedDict[Any, Any]]:
    """Return the hooks of a module by their kinds: `pre`, `forward`, `backward_pre`, `backward` and `old`."""
    return module.__dict__["_Module__hooks"]  # type: ignore[no-any-return]


def _converting(dtype: Any) -> Callable[[Any], Any]:
    return lambda self: self.to(dtype)


def _word(value: Any) -> str:
    """Return PyTorch's name of the type of a value that a module registers."""
    return value.type() if isinstance(value, Tensor) else typename(value)


# What a module has by name: each kind is a dictionary.
_KINDS = {"_parameters": "parameter", "_buffers": "buffer", "_modules": "module"}


class Module:
    """A layer, or what is made of layers."""

    training: bool
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    __hooks: dict[str, OrderedDict[Any, Any]]

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        if cls.__module__.startswith("gradcli."):
            cls.__module__ = f"torch.nn.modules.{row.home if (row := rows().get(cls.__name__)) else 'module'}"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        name = type(self).__name__
        raise_if(kwargs, "unknown keyword", f"{name}.__init__", next(iter(kwargs), ""))
        raise_if(args, "arguments of Module's constructor", name, len(args) + 1)
        hooks: dict[str, Any] = {kind: OrderedDict() for kind in ("pre", "forward", "backward_pre", "backward", "old")}
        self.__dict__.update(
            training=True, **{kind: {} for kind in _KINDS}, _Module__hooks=hooks, _non_persistent_buffers_set=[]
        )

    def __holder(self, name: str) -> Any:
        """Return which dictionary has a name; it is empty where none has."""
        attributes = self.__dict__
        for kind in _KINDS:
            if name in attributes.get(kind, ()):
                return attributes[kind]
        return {}

    def __setattr__(self, name: str, value: Any) -> None:
        kind = "_parameters" if isinstance(value, Parameter) else "_modules" if isinstance(value, Module) else ""
        if kind:
            raise_if(kind not in self.__dict__, "module before its making", f"{_KINDS[kind]}{'s' * (kind[1] == 'p')}")
            members = self.__dict__[kind]
            if name not in members:
                self.__forget(name)
            members[name] = value
        elif holder := self.__holder(name):
            if value is not None and holder is not self._buffers:
                is_module = holder is self._modules
                raise torch_error("no module to assign" if is_module else "no parameter to assign", _word(value), name)
            holder[name] = value
        else:
            super().__setattr__(name, value)

    def __forget(self, name: str) -> None:
        self.__dict__.pop(name, None)
        self.__holder(name).pop(name, None)

    def __getattr__(self, name: str) -> Any:
        for kind in _KINDS:
            if name in (members := self.__dict__.get(kind, ())):
                return members[name]
        if name in pytorch_names()["torch.nn.Module"]:
            raise missing(name, dir(Module), "torch.nn.Module.")
        raise torch_error("unknown attribute", type(self).__name__, name)

    def __delattr__(self, name: str) -> None:
        if holder := self.__holder(name):
            del holder[name]
        else:
            super().__delattr__(name)

    def __dir__(self) -> list[str]:
        names = (*super().__dir__(), *self._parameters, *self._buffers, *self._modules)
        return [n for n in names if not n[0].isdigit()]

    def register_parameter(self, name: str, param: Tensor | None) -> None:
        self.__check_name("_parameters", name)
        wrong = param is not None and not isinstance(param, Parameter)
        raise_if(wrong, "no parameter to register", _word(param), "parameter", name, "torch.nn.Parameter")
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        self.__check_name("_buffers", name)
        wrong = tensor is not None and not isinstance(tensor, Tensor)
        raise_if(wrong, "no parameter to register", _word(tensor), "buffer", name, "torch Tensor")
        self._buffers[name] = tensor
        if not persistent:
            self.__dict__["_non_persistent_buffers_set"].append(name)

    def register_module(self, name: str, module: Module | None) -> None:
        raise_if(module is not None and not isinstance(module, Module), "no module", typename(module))
        self.__check_name("_modules", name)
        self._modules[name] = module

    def __check_name(self, kind: str, name: Any) -> None:
        """Check that a name is valid, and not that of an attribute of another kind."""
        word = _KINDS[kind]
        raise_if(not isinstance(name, str), "name that is no text", word, type(name).__name__)
        raise_if("." in name, "dot in a name", word, f", got: {name}" * (word == "module"))
        raise_if(not name, "empty name", word)
        raise_if(name not in self.__dict__[kind] and hasattr(self, name), "name that is taken", name)

    add_module = register_module

    # Calls

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise torch_error("module without a forward", type(self).__name__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        hooks = self.__hooks
        if not any(hooks.values()):
            return self.__noted(self.forward(*args, **kwargs))
        for hook in list(hooks["pre"].values()):
            changed = hook(self, args, kwargs)
            if changed is not None:
                raise_if(not isinstance(changed, tuple) or len(changed) != 2, "arguments from a hook", changed)
                args, kwargs = changed
        is_watched = hooks["backward"] or hooks["backward_pre"]
        watched = Watched(self, hooks["backward"], hooks["backward_pre"]) if is_watched else None
        args = watched.inputs(args) if watched else args
        result = self.__noted(self.forward(*args, **kwargs))
        for hook in list(hooks["forward"].values()):
            changed = hook(self, args, kwargs, result)
            result = result if changed is None else changed
        if hooks["old"]:
            watch_step(self, list(hooks["old"].values()), args, result)
        return watched.outputs(result) if watched else result

    def __noted(self, result: Any) -> Any:
        """Note on the result's step, or on a tensor without a step, that it is this module's output."""
        if Recorder.explains and isinstance(result, Tensor):
            if (step := result._fn) is None:
                result._module = self if result._module is None else result._module
            elif step.module is None:
                step.module = self
        return result

    register_forward_hook, register_forward_pre_hook = _hooking("forward"), _hooking("pre")
    register_full_backward_hook, register_backward_hook = _hooking("backward"), _hooking("old")
    register_full_backward_pre_hook = _hooking("backward_pre")

    # What there is in it

    def named_modules(self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True) -> Any:
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def __named(self, kind: str, prefix: str, recurse: bool, once: bool) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        for path, module in self.named_modules(None, prefix, once) if recurse else [(prefix, self)]:
            for name, value in getattr(module, kind).items():
                if value is not None and not (once and id(value) in seen):
                    seen.add(id(value))
                    yield f"{path}.{name}" if path else name, value

    def named_parameters(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Any:
        yield from self.__named("_parameters", prefix, recurse, remove_duplicate)

    def named_buffers(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Any:
        yield from self.__named("_buffers", prefix, recurse, remove_duplicate)

    def named_children(self) -> Iterator[tuple[str, Module]]:
        yield from self.__named("_modules", "", False, True)

    def parameters(self, recurse: bool = True) -> Iterator[Any]:
        for _, p in self.named_parameters(recurse=recurse):
            yield p

    def buffers(self, recurse: bool = True) -> Iterator[Any]:
        for _, b in self.named_buffers(recurse=recurse):
            yield b

    def modules(self, remove_duplicate: bool = True) -> Iterator[Any]:
        for _, m in self.named_modules(remove_duplicate=remove_duplicate):
            yield m

    def children(self) -> Iterator[Any]:
        for _, m in self.named_children():
            yield m

    def get_submodule(self, target: str) -> Any:
        return dict(self.named_modules(remove_duplicate=False))[target]

    def get_parameter(self, target: str) -> Any:
        return dict(self.named_parameters(remove_duplicate=False))[target]

    def get_buffer(self, target: str) -> Any:
        return dict(self.named_buffers(remove_duplicate=False))[target]

    def state_dict(self, *, prefix: str = "", keep_vars: bool = False) -> OrderedDict[str, Tensor]:
        result: OrderedDict[str, Tensor] = OrderedDict()
        for name, value in (*self._parameters.items(), *self._buffers.items()):
            if value is not None and name not in self.__dict__["_non_persistent_buffers_set"]:
                result[f"{prefix}{name}"] = value if keep_vars else value.detach()
        for name, module in self._modules.items():
            result |= {} if module is None else module.state_dict(prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        return result

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        missing_if(assign, "torch.nn.Module.load_state_dict(assign=True)")
        raise_if(not isinstance(state_dict, Mapping), "no state to load", type(state_dict))
        state = self.state_dict()
        absent = [n for n in state if n not in state_dict]
        unexpected = [n for n in state_dict if n not in state]
        lines = [
            f"{what} key(s) in state_dict: " + ", ".join(f'"{n}"' for n in names) + ". "
            for what, names in (("Missing", absent), ("Unexpected", unexpected))
            if strict and names
        ]
        for name, value in [(n, v) for n, v in state_dict.items() if n in state]:
            if state[name].shape != value.shape:
                lines.append(message("size of what is loaded", name, value.shape, state[name].shape))
                continue
            state[name]._memory.keep()
            state[name]._a[...] = value._a
            state[name]._memory.version += 1
        text = "\n\t".join(lines)
        raise_if(lines, "errors in loading", type(self).__name__, text)
        return _IncompatibleKeys(absent, unexpected)

    # What is done to all of it

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Self:
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        for p in self.parameters():
            p.requires_grad = requires_grad
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        forget(self.parameters(), set_to_none)

    def to(self, *args: Any, **kwargs: Any) -> Self:
        dtype = zeros(0).to(*args, **kwargs).dtype
        raise_if(not dtype.is_floating_point, "dtype of a module", dtype)
        return self._apply(lambda x: x.to(*args, **kwargs) if x.is_floating_point() else x)

    def type(self, dst_type: Any) -> Self:
        return self._apply(lambda x: x.type(dst_type))

    def _apply(self, fn: Callable[[Tensor], Tensor]) -> Self:
        """Replace the numbers of parameters and of their gradients, and the buffers, by what a function returns."""
        for p in self.parameters():
            for x in (p, *([] if p._grad is None else [p._grad])):
                x._a = fn(alias(x))._a
        for module in self.modules():
            for name, b in module._buffers.items():
                module._buffers[name] = None if b is None else fn(b)
        return self

    double, float, half = map(_converting, (float64, float32, float16))

    def cpu(self) -> Self:
        return self

    def cuda(self, device: Any = None) -> Self:
        for value in (*self.parameters(), *self.buffers()):
            value.cuda(device)  # which is an error
        return self

    def extra_repr(self) -> str:
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr().split("\n") if self.extra_repr() else []
        children = [f"({n}): " + text.replace("\n", "\n  ") for n, text in self._children_shown()]
        single = len(extra) == 1 and not children
        inner = extra[0] if single else "".join(f"\n  {line}" for line in (*extra, *children))
        return f"{self._get_name()}({inner}" + (")" if single or not inner else "\n)")

    def _children_shown(self) -> list[tuple[str, str]]:
        return [(n, repr(m)) for n, m in self._modules.items()]


Module.__module__ = "torch.nn.modules.module"


def forget(parameters: Iterable[Tensor], set_to_none: bool) -> None:
    """Forget the gradients of parameters, or set them to 0."""
    for p in parameters:
        p.cleared()
        if set_to_none:
            p._grad = None
        elif p._grad is not None:
            p._grad.detach_().requires_grad_(False).zero_()
