"""`torch.nn.Module` and `Parameter`: a tree of layers with their parameters and buffers, by name."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

import numpy as np

from gradcli.pytorch.dtypes import float16, float32, float64
from gradcli.pytorch.handles import Handle
from gradcli.pytorch.messages import refusal, typename
from gradcli.pytorch.tensor import Tensor, alias, new

__all__ = ["Module", "Parameter"]


class Parameter(Tensor):
    """A tensor that belongs to a module and wants a gradient."""

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        found = alias(new(np.zeros((0, 1), np.float32)) if data is None else data, cls)
        if requires_grad and found._a.dtype.kind != "f":
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        found._requires = requires_grad
        return found

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = Parameter(new(self._a.copy()), self._requires)
        return memo[id(self)]


Parameter.__module__ = "torch.nn.parameter"


class _Incompatible(tuple[Any, Any]):
    """What `load_state_dict` returns."""

    missing_keys = property(lambda self: self[0])
    unexpected_keys = property(lambda self: self[1])

    def __repr__(self) -> str:
        if not self[0] and not self[1]:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self[0]}, unexpected_keys={self[1]})"


def _hooking(kind: str) -> Callable[..., Handle]:
    """Return a method that has a function called, before or after the forward or the backward."""

    def register(self: Module, hook: Callable[..., Any], prepend: bool = False, **_: Any) -> Handle:
        hooks = self.__dict__["_hooks"]
        if (kind == "backward" and hooks["old"]) or (kind == "old" and hooks["backward"]):
            raise refusal("two kinds of backward hooks")
        return Handle(hooks[kind], hook, object())

    return register


_OWN = ("_parameters", "_buffers", "_modules")


class Module:
    """A layer, or what is made of layers."""

    training: bool
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        put = super().__setattr__
        put("training", True)
        for name in _OWN:
            put(name, {})
        put("_hooks", {"pre": {}, "forward": {}, "backward": {}, "backward_pre": {}, "old": {}})
        put("_transient", set())

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        kind = "_parameters" if isinstance(value, Parameter) else "_modules" if isinstance(value, Module) else ""
        if kind:
            if kind not in own:
                word = "parameters" if kind == "_parameters" else "module"
                raise AttributeError(f"cannot assign {word} before Module.__init__() call")
            self._forget(name)
            own[kind][name] = value
        elif name in own.get("_parameters", ()):
            if value is not None:
                word = value.type() if isinstance(value, Tensor) else type(value).__name__
                raise TypeError(f"cannot assign '{word}' as parameter '{name}' (torch.nn.Parameter or None expected)")
            own["_parameters"][name] = None
        elif name in own.get("_modules", ()):
            if value is not None:
                word = type(value).__name__
                raise TypeError(f"cannot assign '{word}' as child module '{name}' (torch.nn.Module or None expected)")
            own["_modules"][name] = None
        elif name in own.get("_buffers", ()):
            own["_buffers"][name] = value
        else:
            super().__setattr__(name, value)

    def _forget(self, name: str) -> None:
        self.__dict__.pop(name, None)
        for kind in _OWN:
            self.__dict__[kind].pop(name, None)

    def __getattr__(self, name: str) -> Any:
        for kind in _OWN:
            found = self.__dict__.get(kind)
            if found is not None and name in found:
                return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        for kind in _OWN:
            if name in self.__dict__[kind]:
                del self.__dict__[kind][name]
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._parameters, *self._buffers, *self._modules]

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        self._forget(name)
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        self._buffers[name] = tensor
        if not persistent:
            self.__dict__["_transient"].add(name)

    def register_module(self, name: str, module: Module | None) -> None:
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        if "." in name:
            raise KeyError(f'module name can\'t contain ".", got: {name}')
        self._modules[name] = module

    add_module = register_module

    # Calls

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        hooks = self.__dict__["_hooks"]
        if not any(hooks.values()):
            return self._owned(self.forward(*args, **kwargs))
        for hook in list(hooks["pre"].values()):
            found = hook(self, args)
            if found is not None:
                args = found if isinstance(found, tuple) else (found,)
        watched = None
        if hooks["backward"] or hooks["backward_pre"]:
            from gradcli.pytorch.nn.module_hooks import Watched

            watched = Watched(self, hooks)
            args = watched.inputs(args)
        result = self._owned(self.forward(*args, **kwargs))
        for hook in list(hooks["forward"].values()):
            found = hook(self, args, result)
            result = result if found is None else found
        if hooks["old"]:
            from gradcli.pytorch.nn.module_hooks import watch_step

            watch_step(self, list(hooks["old"].values()), args, result)
        return result if watched is None else watched.outputs(result)

    def _owned(self, result: Any) -> Any:
        """Let what made the result know whose output it is, for explanations."""
        made = getattr(result, "_fn", None)
        if made is not None and made.module is None:
            made.module = self
        return result

    register_forward_hook, register_forward_pre_hook = _hooking("forward"), _hooking("pre")
    register_full_backward_hook, register_full_backward_pre_hook = _hooking("backward"), _hooking("backward_pre")
    register_backward_hook = _hooking("old")

    # What there is in it

    def named_modules(self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True) -> Any:
        memo = set() if memo is None else memo
        if self in memo:
            return
        memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name)

    def modules(self) -> Iterator[Module]:
        yield from (m for _, m in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        yield from ((n, m) for n, m in self._modules.items() if m is not None)

    def children(self) -> Iterator[Module]:
        yield from (m for _, m in self.named_children())

    def _named(self, kind: str, prefix: str, recurse: bool) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        for path, module in self.named_modules(prefix=prefix) if recurse else [(prefix, self)]:
            for name, value in getattr(module, kind).items():
                if value is not None and id(value) not in seen:
                    seen.add(id(value))
                    yield f"{path}.{name}" if path else name, value

    def named_parameters(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Any:
        yield from self._named("_parameters", prefix, recurse)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        for _, p in self.named_parameters(recurse=recurse):
            yield p

    def named_buffers(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Any:
        yield from self._named("_buffers", prefix, recurse)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        yield from (b for _, b in self.named_buffers(recurse=recurse))

    def get_parameter(self, target: str) -> Any:
        return dict(self.named_parameters())[target]

    def get_submodule(self, target: str) -> Any:
        return dict(self.named_modules())[target]

    def state_dict(self, *, prefix: str = "", **_: Any) -> OrderedDict[str, Tensor]:
        found: OrderedDict[str, Tensor] = OrderedDict()
        for path, module in self.named_modules(prefix=prefix.removesuffix(".")):
            for name, value in (*module._parameters.items(), *module._buffers.items()):
                if value is not None and name not in module.__dict__["_transient"]:
                    found[f"{path}.{name}" if path else name] = value.detach()
        return found

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        own = dict((*self.named_parameters(), *self.named_buffers()))
        absent = [n for n in self.state_dict() if n not in state_dict]
        unexpected = [n for n in state_dict if n not in own]
        lines = []
        if strict and unexpected:
            lines.append("Unexpected key(s) in state_dict: " + ", ".join(f'"{n}"' for n in unexpected) + ". ")
        if strict and absent:
            lines.insert(0, "Missing key(s) in state_dict: " + ", ".join(f'"{n}"' for n in absent) + ". ")
        for name, value in state_dict.items():
            if name in own:
                if own[name].shape != value.shape:
                    lines.append(
                        f"size mismatch for {name}: copying a param with shape {value.shape} from checkpoint, the "
                        f"shape in current model is {own[name].shape}."
                    )
                    continue
                own[name]._a[...] = value._a
                own[name]._memory.version += 1
        if lines:
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t" + "\n\t".join(lines))
        return _Incompatible((absent, unexpected))

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
        for module in self.modules():
            for value in (*module._parameters.values(), *module._buffers.values()):
                if value is not None and value.is_floating_point():
                    value._a = value.detach().to(*args, **kwargs)._a
        return self

    def double(self) -> Self:
        return self.to(float64)

    def float(self) -> Self:
        return self.to(float32)

    def half(self) -> Self:
        return self.to(float16)

    def cpu(self) -> Self:
        return self

    def cuda(self, device: Any = None) -> Self:
        raise AssertionError("Torch not compiled with CUDA enabled")

    def share_memory(self) -> Self:
        return self

    def extra_repr(self) -> str:
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr().split("\n") if self.extra_repr() else []
        children = [f"({n}): " + repr(m).replace("\n", "\n  ") for n, m in self._children_shown()]
        single = len(extra) == 1 and not children
        inner = extra[0] if single else "".join(f"\n  {line}" for line in (*extra, *children))
        return f"{self._get_name()}({inner}" + (")" if single or not inner else "\n)")

    def _children_shown(self) -> list[tuple[str, Any]]:
        return list(self._modules.items())


Module.__module__ = "torch.nn.modules.module"


def forget(parameters: Iterable[Tensor], set_to_none: bool) -> None:
    """Forget the gradients of parameters, or set them to 0."""
    for p in parameters:
        if p._grad is not None and not set_to_none:
            p._grad._a[...] = 0
        elif set_to_none:
            p._grad = None


def listed(names: dict[str, Any], own: str) -> list[str]:
    """Return the modules that a file defines, and let them say that they are `torch.nn`'s."""
    found = [n for n, v in names.items() if isinstance(v, type) and issubclass(v, Module) and n[0] != "_"]
    found = [n for n in found if names[n].__module__ == own]
    for name in found:
        names[name].__module__ = f"torch.nn.modules.{HOMES.get(name, own.rpartition('.')[2])}"
    return found


_HOMES = {
    "linear": "Linear Bilinear Identity",
    "conv": "Conv1d Conv2d ConvTranspose1d ConvTranspose2d",
    "upsampling": "Upsample",
    "batchnorm": "BatchNorm1d BatchNorm2d",
    "normalization": "LayerNorm GroupNorm",
    "dropout": "Dropout Dropout2d",
    "sparse": "Embedding",
    "rnn": "RNN RNNCell",
    "flatten": "Flatten Unflatten",
    "activation": "PReLU",
    "container": "Sequential ModuleList ModuleDict ParameterList",
}
# Where PyTorch defines a module, which `type` tells.
HOMES = {name: home for home, names in _HOMES.items() for name in names.split()}
