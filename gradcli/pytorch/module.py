"""`torch.nn.Module` and `Parameter`: a tree of layers with their parameters and buffers, by name."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Self

from gradcli.pytorch.record import Handle
from gradcli.pytorch.tensor import Tensor, new


class Parameter(Tensor):
    """A tensor that belongs to a module and wants a gradient."""

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        if data is None:
            data = new_empty()
        found = new(data._a, cls)
        found._memory = data._memory
        found._requires = requires_grad
        return found

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = Parameter(new(self._a.copy()), self._requires)
        return memo[id(self)]


Parameter.__module__ = "torch.nn.parameter"


def new_empty() -> Tensor:
    """Return a tensor without elements."""
    import numpy as np

    return new(np.zeros((0, 1), np.float32))


class _Incompatible(tuple[Any, Any]):
    """What `load_state_dict` returns."""

    missing_keys = property(lambda self: self[0])
    unexpected_keys = property(lambda self: self[1])

    def __repr__(self) -> str:
        if not self[0] and not self[1]:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self[0]}, unexpected_keys={self[1]})"


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
        put("_hooks", {"pre": {}, "forward": {}, "backward": {}, "backward_pre": {}})
        put("_transient", set())

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        if isinstance(value, Parameter):
            if "_parameters" not in own:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name)
            self._parameters[name] = value
        elif "_parameters" in own and name in own["_parameters"]:
            if value is not None:
                kind = value.type() if isinstance(value, Tensor) else type(value).__name__
                raise TypeError(f"cannot assign '{kind}' as parameter '{name}' (torch.nn.Parameter or None expected)")
            own["_parameters"][name] = None
        elif isinstance(value, Module):
            if "_modules" not in own:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name)
            self._modules[name] = value
        elif "_modules" in own and name in own["_modules"]:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{type(value).__name__}' as child module '{name}' (torch.nn.Module or None "
                    "expected)"
                )
            own["_modules"][name] = None
        elif "_buffers" in own and name in own["_buffers"]:
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
        """Add a parameter."""
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that belongs to the module and is no parameter."""
        self._buffers[name] = tensor
        if not persistent:
            self.__dict__["_transient"].add(name)

    def register_module(self, name: str, module: Module | None) -> None:
        """Add a module."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{_typename(module)} is not a Module subclass")
        if "." in name:
            raise KeyError(f'module name can\'t contain ".", got: {name}')
        self._modules[name] = module

    add_module = register_module

    # Calls

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute; every module says how."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        hooks = self.__dict__["_hooks"]
        if not any(hooks.values()):
            return self.forward(*args, **kwargs)
        for hook in list(hooks["pre"].values()):
            found = hook(self, args)
            if found is not None:
                args = found if isinstance(found, tuple) else (found,)
        watched = None
        if hooks["backward"] or hooks["backward_pre"]:
            from gradcli.pytorch.module_hooks import Watched

            watched = Watched(self, hooks)
            args = watched.inputs(args)
        result = self.forward(*args, **kwargs)
        for hook in list(hooks["forward"].values()):
            found = hook(self, args, result)
            result = result if found is None else found
        return result if watched is None else watched.outputs(result)

    def _hooked(self, kind: str, hook: Callable[..., Any]) -> Handle:
        return Handle(self.__dict__["_hooks"][kind], hook, object())

    def register_forward_hook(self, hook: Callable[..., Any], **_: Any) -> Handle:
        """Have a function called with the inputs and the output of each call."""
        return self._hooked("forward", hook)

    def register_forward_pre_hook(self, hook: Callable[..., Any], **_: Any) -> Handle:
        """Have a function called with the inputs before each call."""
        return self._hooked("pre", hook)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Handle:
        """Have a function called with the gradients of the inputs and of the outputs."""
        return self._hooked("backward", hook)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Handle:
        """Have a function called with the gradients of the outputs."""
        return self._hooked("backward_pre", hook)

    def register_backward_hook(self, hook: Callable[..., Any]) -> Handle:
        """Have a function called with the gradients of the inputs and of the outputs."""
        return self._hooked("backward", hook)

    # What there is in it

    def named_modules(self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True) -> Any:
        """Yield this module and all in it, with their names."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name)

    def modules(self) -> Iterator[Module]:
        """Yield this module and all in it."""
        return (m for _, m in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yield the modules that are directly in it, with their names."""
        return ((n, m) for n, m in self._modules.items() if m is not None)

    def children(self) -> Iterator[Module]:
        """Yield the modules that are directly in it."""
        return (m for _, m in self.named_children())

    def _named(self, kind: str, prefix: str, recurse: bool) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        for path, module in self.named_modules(prefix=prefix) if recurse else [(prefix, self)]:
            for name, value in getattr(module, kind).items():
                if value is not None and id(value) not in seen:
                    seen.add(id(value))
                    yield f"{path}.{name}" if path else name, value

    def named_parameters(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Any:
        """Yield the parameters with their names."""
        return self._named("_parameters", prefix, recurse)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yield the parameters."""
        return (p for _, p in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Any:
        """Yield the buffers with their names."""
        return self._named("_buffers", prefix, recurse)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield the buffers."""
        return (b for _, b in self.named_buffers(recurse=recurse))

    def get_parameter(self, target: str) -> Any:
        """Return a parameter by its name."""
        return dict(self.named_parameters())[target]

    def get_submodule(self, target: str) -> Any:
        """Return a module by its name."""
        return dict(self.named_modules())[target]

    def state_dict(self, *, prefix: str = "", **_: Any) -> OrderedDict[str, Tensor]:
        """Return all parameters and buffers by name, cut off from their history."""
        found: OrderedDict[str, Tensor] = OrderedDict()
        for path, module in self.named_modules(prefix=prefix.removesuffix(".")):
            for name, value in (*module._parameters.items(), *module._buffers.items()):
                if value is not None and name not in module.__dict__["_transient"]:
                    found[f"{path}.{name}" if path else name] = value.detach()
        return found

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        """Copy numbers into the parameters and buffers, by name."""
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
                        f"size mismatch for {name}: copying a param with shape {value.shape} from checkpoint, "
                        "the shape in "
                        f"current model is {own[name].shape}."
                    )
                    continue
                own[name]._a[...] = value._a
                own[name]._memory.version += 1
        if lines:
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t" + "\n\t".join(lines))
        return _Incompatible((absent, unexpected))

    # What is done to all of it

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call a function with every module in it, then with itself."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """Let it be trained."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """Let it be used."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Want gradients of all parameters, or of none."""
        for p in self.parameters():
            p.requires_grad = requires_grad
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        for p in self.parameters():
            if p._grad is not None:
                if set_to_none:
                    p._grad = None
                else:
                    p._grad._a[...] = 0

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Put it on a device, or its real numbers in a dtype."""
        for module in self.modules():
            for kind in (module._parameters, module._buffers):
                for value in kind.values():
                    if value is not None:
                        moved = value.detach().to(*args, **kwargs) if value.is_floating_point() else value
                        value._a = moved._a
        return self

    def double(self) -> Self:
        """Use float64."""
        from gradcli.pytorch.dtypes import float64

        return self.to(float64)

    def float(self) -> Self:
        """Use float32."""
        from gradcli.pytorch.dtypes import float32

        return self.to(float32)

    def cpu(self) -> Self:
        """Return the module: it is on the CPU."""
        return self

    def cuda(self, device: Any = None) -> Self:
        """Refuse, as a PyTorch without CUDA does."""
        raise AssertionError("Torch not compiled with CUDA enabled")

    def share_memory(self) -> Self:
        """Return the module."""
        return self

    def extra_repr(self) -> str:
        """Return what stands in the brackets of its text."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr().split("\n") if self.extra_repr() else []
        children = [f"({n}): {_indented(repr(m))}" for n, m in self._children_shown()]
        if not children:
            inner = extra[0] if len(extra) == 1 else "\n  " + "\n  ".join(extra) + "\n" if extra else ""
        else:
            inner = "\n  " + "\n  ".join([*extra, *children]) + "\n"
        return f"{self._get_name()}({inner})"

    def _children_shown(self) -> list[tuple[str, Any]]:
        return list(self._modules.items())


def _typename(x: Any) -> str:
    """Return what PyTorch calls the type of something, or what is a class or a function itself."""
    own = x if hasattr(x, "__qualname__") else type(x)
    home = getattr(own, "__module__", None) or "builtins"
    return own.__qualname__ if home == "builtins" else f"{home}.{own.__qualname__}"


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")


Module.__module__ = "torch.nn.modules.module"


def listed(names: dict[str, Any], own: str) -> list[str]:
    """Return the modules that a file defines, and let them say that they are `torch.nn`'s."""
    found = [n for n, v in names.items() if isinstance(v, type) and issubclass(v, Module) and n[0] != "_"]
    found = [n for n in found if names[n].__module__ == own]
    for name in found:
        names[name].__module__ = f"torch.nn.modules.{HOMES.get(name, own.rpartition('.')[2])}"
    return found


_HOMES = {
    "linear": "Linear Bilinear Identity",
    "conv": "Conv1d Conv2d",
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
